// Cheapest way down a grid, row by row: from a cell one may come from above, above left or above right. A CTA of 256
// threads takes a strip and computes several rows in shared memory before it stores one: the strip shrinks by a cell on
// each side with each row, so CTAs overlap and only the inner threads store. A halo of `border` cells a side, at most
// `border` rows a launch; the host exchanges the rows. After the description of Rodinia's pathfinder. Compiled by
// ../compile.sh.
#include "device.cuh"

#define BLOCK 256
// More than any way costs; cells outside the grid.
#define OUTSIDE (1 << 29)

extern "C" __global__ void pathfinder(const int *wall, const int *source, int *result, int columns, int first, int rows,
                                      int border)
{
    __shared__ int previous[BLOCK];
    int tx = threadIdx.x;
    int x = (BLOCK - 2 * border) * blockIdx.x + tx - border;
    bool inside = x >= 0 && x < columns;
    previous[tx] = inside ? source[x] : OUTSIDE;
    __syncthreads();
    for (int row = 0; row < rows; row++) {
        int cost = OUTSIDE;
        if (inside && tx > row && tx < BLOCK - 1 - row) {
            int left = previous[tx - 1], up = previous[tx], right = previous[tx + 1];
            int least = left < up ? left : up;
            least = right < least ? right : least;
            cost = least + wall[columns * (first + row) + x];
        }
        __syncthreads();
        previous[tx] = cost;
        __syncthreads();
    }
    if (inside && tx >= border && tx < BLOCK - border)
        result[x] = previous[tx];
}
