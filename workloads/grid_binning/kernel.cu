// Samples in space go to the bins of a grid, first step: a thread finds its sample's bin and counts it, atomically; the
// sample gets the bin as its key and its own number as its value, to be sorted by. What finds its bin full is given the
// key behind the last bin. After the description of the binning kernel of Parboil's mri-gridding. Compiled by
// ../compile.sh.
#include "device.cuh"

struct Sample {
    float real, imaginary, x, y, z, weight;
};

extern "C" __global__ void binning(const Sample *samples, unsigned *key, unsigned *value, unsigned *count, int n, int width,
                                   int height, unsigned bins, unsigned capacity)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Sample sample = samples[i];
    unsigned bin = ((unsigned)sample.z * height + (unsigned)sample.y) * width + (unsigned)sample.x;
    if (atomicAdd(&count[bin], 1) < capacity) {
        key[i] = bin;
        value[i] = i;
    } else {
        atomicAdd(&count[bin], -1u);
        key[i] = bins;
        value[i] = n;
    }
}
