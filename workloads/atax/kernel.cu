// y = A' * (A * x): a row a thread, then a column a thread, the sums kept in memory as PolyBench's GPU version does.
// Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void atax_kernel1(const float *a, const float *x, float *tmp, int nx, int ny)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < nx)
        for (int j = 0; j < ny; j++)
            tmp[i] += a[i * ny + j] * x[j];
}

extern "C" __global__ void atax_kernel2(const float *a, float *y, const float *tmp, int nx, int ny)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j < ny)
        for (int i = 0; i < nx; i++)
            y[j] += a[i * ny + j] * tmp[i];
}
