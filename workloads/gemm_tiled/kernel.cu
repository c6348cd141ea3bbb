// C = A * B with tiles in shared memory and a 4 x 4 block of C in the registers of each thread. A CTA of 16 x 16 threads
// makes a tile of 64 x 64 in steps of 16. Sizes are multiples of 64 (M, N) and 16 (K). Compiled by ../compile.sh.
#include "device.cuh"

#define TILE 64
#define STEP 16
#define BLOCK 4

extern "C" __global__ void gemm_tiled(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c,
                                      int n, int depth)
{
    // One word of padding a row: the stores of a column of A fall into different banks.
    __shared__ float tile_a[STEP][TILE + 1];
    __shared__ float tile_b[STEP][TILE];
    int tx = threadIdx.x, ty = threadIdx.y;
    int thread = ty * 16 + tx;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    float sum[BLOCK][BLOCK] = {};
    for (int k = 0; k < depth; k += STEP) {
#pragma unroll
        for (int part = 0; part < TILE * STEP / 256; part++) {
            int at = part * 256 + thread;
            tile_a[at % STEP][at / STEP] = a[(row + at / STEP) * depth + k + at % STEP];
            tile_b[at / TILE][at % TILE] = b[(k + at / TILE) * n + column + at % TILE];
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < STEP; step++) {
            float left[BLOCK], right[BLOCK];
#pragma unroll
            for (int i = 0; i < BLOCK; i++) {
                left[i] = tile_a[step][ty + 16 * i];
                right[i] = tile_b[step][tx + 16 * i];
            }
#pragma unroll
            for (int i = 0; i < BLOCK; i++)
#pragma unroll
                for (int j = 0; j < BLOCK; j++)
                    sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < BLOCK; i++)
#pragma unroll
        for (int j = 0; j < BLOCK; j++)
            c[(row + ty + 16 * i) * n + column + tx + 16 * j] = sum[i][j];
}
