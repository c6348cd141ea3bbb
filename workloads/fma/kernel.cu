// Arithmetic only: each thread advances eight independent chains x = x * a + b by `rounds` * 16 steps. The chains
// converge to b / (1 - a), so rounding errors do not add up. Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void fma_chains(float *out, float a, float b, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x[8];
#pragma unroll
    for (int chain = 0; chain < 8; chain++)
        x[chain] = (float)(i % 32 + chain);
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int step = 0; step < 16; step++)
#pragma unroll
            for (int chain = 0; chain < 8; chain++)
                x[chain] = __builtin_fmaf(x[chain], a, b);
    }
    float sum = 0.0f;
#pragma unroll
    for (int chain = 0; chain < 8; chain++)
        sum += x[chain];
    out[i] = sum;
}
