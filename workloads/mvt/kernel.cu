// Two products of one matrix: x1 += A y1, a row a thread, then x2 += A' y2, a column a thread. A thread adds every
// product to its sum in memory; in the first kernel the lanes of a warp read A a whole row apart (not coalesced), in the
// second side by side. After the description of PolyBench's MVT for GPUs. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void mvt_kernel1(const float *a, float *x1, const float *y1, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int j = 0; j < n; j++)
            x1[i] += a[i * n + j] * y1[j];
}

extern "C" __global__ void mvt_kernel2(const float *a, float *x2, const float *y2, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        for (int j = 0; j < n; j++)
            x2[i] += a[j * n + i] * y2[j];
}
