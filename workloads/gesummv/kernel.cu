// y = alpha A x + beta B x, a row of both matrices a thread. Both sums are kept in memory, so that each step updates two
// outputs, and a last update joins them; the lanes of a warp read both matrices a whole row apart (not coalesced). After
// the description of PolyBench's GESUMMV for GPUs. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void gesummv(const float *a, const float *b, const float *x, float *y, float *tmp, float alpha,
                                   float beta, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        for (int j = 0; j < n; j++) {
            tmp[i] += a[i * n + j] * x[j];
            y[i] += b[i * n + j] * x[j];
        }
        y[i] = alpha * tmp[i] + beta * y[i];
    }
}
