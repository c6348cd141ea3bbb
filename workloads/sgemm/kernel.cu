// C = alpha A B' + beta C, all three stored by columns. A CTA of 16 x 8 threads makes 128 rows of 16 columns: a thread
// has a row, keeps its 16 sums in registers and reads A itself, side by side with its neighbours; 8 rows of B' at a time
// are in shared memory. M is a multiple of 128, N of 16, K of 8. After the description of Parboil's sgemm. Compiled by
// ../compile.sh.
#include "device.cuh"

#define COLUMNS 16
#define STEP 8
#define ROWS (COLUMNS * STEP)

extern "C" __global__ void sgemm(const float *a, const float *b, float *c, float alpha, float beta, int m, int n, int depth)
{
    __shared__ float tile[STEP][COLUMNS];
    int row = blockIdx.x * ROWS + threadIdx.y * COLUMNS + threadIdx.x;
    int column = blockIdx.y * COLUMNS;
    float sum[COLUMNS] = {};
    for (int k = 0; k < depth; k += STEP) {
        tile[threadIdx.y][threadIdx.x] = b[column + threadIdx.x + (k + threadIdx.y) * n];
        __syncthreads();
        for (int step = 0; step < STEP; step++) {
            float left = a[row + (k + step) * m];
#pragma unroll
            for (int i = 0; i < COLUMNS; i++)
                sum[i] += left * tile[step][i];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        int at = row + (column + i) * m;
        c[at] = beta * c[at] + alpha * sum[i];
    }
}
