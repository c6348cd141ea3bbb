// Element-wise addition of two vectors: the smallest complete workload. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void vecadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}
