// C = alpha * A * B + beta * C, one element a thread, the sum kept in memory: no tiles, no registers, as the GPU version
// of PolyBench does it. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void gemm(const float *a, const float *b, float *c, float alpha, float beta, int ni, int nj, int nk)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < ni && j < nj) {
        c[i * nj + j] *= beta;
        for (int k = 0; k < nk; k++)
            c[i * nj + j] += alpha * a[i * nk + k] * b[k * nj + j];
    }
}
