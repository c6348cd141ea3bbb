// Convolution of an image with a fixed 3 x 3 filter, one element a thread, the border left alone (the coefficients of
// PolyBench's 2DCONV). Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void conv2d(const float *a, float *b, int ni, int nj)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    const float c11 = +0.2f, c21 = +0.5f, c31 = -0.8f;
    const float c12 = -0.3f, c22 = +0.6f, c32 = -0.9f;
    const float c13 = +0.4f, c23 = +0.7f, c33 = +0.1f;
    if (i > 0 && i < ni - 1 && j > 0 && j < nj - 1)
        b[i * nj + j] = c11 * a[(i - 1) * nj + (j - 1)] + c12 * a[i * nj + (j - 1)] + c13 * a[(i + 1) * nj + (j - 1)]
            + c21 * a[(i - 1) * nj + j] + c22 * a[i * nj + j] + c23 * a[(i + 1) * nj + j]
            + c31 * a[(i - 1) * nj + (j + 1)] + c32 * a[i * nj + (j + 1)] + c33 * a[(i + 1) * nj + (j + 1)];
}
