// Three matrix products, E += A B, F += C D, then G += E F, an element a thread, the sum kept in memory: no tiles, no
// registers. A kernel a product, because each updates another output. After the description of PolyBench's 3MM for
// GPUs. Compiled by ../compile.sh.
#include "device.cuh"

__device__ inline void multiply(const float *left, const float *right, float *product, int rows, int columns, int depth)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < rows && j < columns)
        for (int k = 0; k < depth; k++)
            product[i * columns + j] += left[i * depth + k] * right[k * columns + j];
}

extern "C" __global__ void mm3_kernel1(const float *a, const float *b, float *e, int ni, int nj, int nk)
{
    multiply(a, b, e, ni, nj, nk);
}

extern "C" __global__ void mm3_kernel2(const float *c, const float *d, float *f, int nj, int nl, int nm)
{
    multiply(c, d, f, nj, nl, nm);
}

extern "C" __global__ void mm3_kernel3(const float *e, const float *f, float *g, int ni, int nl, int nj)
{
    multiply(e, f, g, ni, nl, nj);
}
