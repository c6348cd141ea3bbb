// Two matrix products, C += A B, then E += C D, an element a thread, the sum kept in memory: no tiles, no registers. A
// warp works on 32 neighbours of one row: its lanes read one element of the left matrix and 32 neighbours of the right
// one. After the description of PolyBench's 2MM for GPUs. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void mm2_kernel1(const float *a, const float *b, float *c, int ni, int nj, int nk)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < ni && j < nj)
        for (int k = 0; k < nk; k++)
            c[i * nj + j] += a[i * nk + k] * b[k * nj + j];
}

extern "C" __global__ void mm2_kernel2(const float *c, const float *d, float *e, int ni, int nj, int nl)
{
    int l = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < ni && l < nl)
        for (int j = 0; j < nj; j++)
            e[i * nl + l] += c[i * nj + j] * d[j * nl + l];
}
