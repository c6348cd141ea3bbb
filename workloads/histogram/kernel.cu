// Two histograms of the same data: atomics on global memory, and atomics on a copy of the bins in shared memory that is
// added to global memory at the end. A grid-stride loop over the data. Compiled by ../compile.sh.
#include "device.cuh"

#define BINS 256

extern "C" __global__ void histogram_global(const unsigned char *data, unsigned *bins, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1);
}

extern "C" __global__ void histogram_shared(const unsigned char *data, unsigned *bins, int n)
{
    __shared__ unsigned local[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        local[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        atomicAdd(&bins[bin], local[bin]);
}
