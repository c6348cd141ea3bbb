// Samples in space go to the bins of a grid, last step: each place of the sorted order fetches its sample, 24 bytes from
// anywhere, and stores its value and its position as vectors, side by side. After the description of the reordering
// kernel of Parboil's mri-gridding. Compiled by ../compile.sh.
#include "device.cuh"

struct Sample {
    float real, imaginary, x, y, z, weight;
};

typedef float Pair __attribute__((ext_vector_type(2)));
typedef float Four __attribute__((ext_vector_type(4)));

extern "C" __global__ void reorder(const Sample *samples, const unsigned *order, Pair *data, Four *place, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    Sample sample = samples[order[i]];
    data[i] = (Pair){sample.real, sample.imaginary};
    place[i] = (Four){sample.x, sample.y, sample.z, sample.weight};
}
