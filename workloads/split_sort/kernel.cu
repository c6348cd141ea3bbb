// One pass of a radix sort, its part within a CTA: 256 keys and their values are sorted by four bits of the key, in place
// and without changing the order of equals, by four splits (a bit each: prefix sums in shared memory tell where zeros and
// ones go); then the CTA stores how often each of the 16 digits occurs, by digit and CTA. After the description of the
// split sort in Parboil's mri-gridding. N is a multiple of 256. Compiled by ../compile.sh.
#include "device.cuh"

#define BLOCK 256
#define BITS 4
#define DIGITS (1 << BITS)

extern "C" __global__ void split_sort(unsigned *key, unsigned *value, unsigned *histogram, int shift)
{
    __shared__ unsigned ones[BLOCK], keys[BLOCK], values[BLOCK], counts[DIGITS];
    int tx = threadIdx.x, i = blockIdx.x * BLOCK + tx;
    unsigned own_key = key[i], own_value = value[i];
    for (int bit = shift; bit < shift + BITS; bit++) {
        unsigned one = own_key >> bit & 1;
        ones[tx] = one;
        __syncthreads();
        for (int distance = 1; distance < BLOCK; distance *= 2) {
            unsigned left = tx >= distance ? ones[tx - distance] : 0;
            __syncthreads();
            ones[tx] += left;
            __syncthreads();
        }
        unsigned before = ones[tx] - one;
        unsigned to = one ? BLOCK - ones[BLOCK - 1] + before : tx - before;
        keys[to] = own_key;
        values[to] = own_value;
        __syncthreads();
        own_key = keys[tx];
        own_value = values[tx];
    }
    if (tx < DIGITS)
        counts[tx] = 0;
    __syncthreads();
    atomicAdd(&counts[own_key >> shift & (DIGITS - 1)], 1);
    __syncthreads();
    key[i] = own_key;
    value[i] = own_value;
    if (tx < DIGITS)
        histogram[tx * gridDim.x + blockIdx.x] = counts[tx];
}
