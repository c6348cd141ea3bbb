// Alignment of two sequences after Needleman and Wunsch. Scores form a matrix in which each element needs its upper, left
// and upper left neighbour. A CTA of 16 threads, half a warp, makes a tile of 16 x 16 in shared memory, diagonal by
// diagonal; a launch makes the tiles of one diagonal of the matrix: launches grow until the middle (`needle_upper`) and
// shrink after it (`needle_lower`). After the description of Rodinia's nw. Compiled by ../compile.sh.
#include "device.cuh"

#define TILE 16

__device__ inline int largest(int a, int b, int c)
{
    int ab = a > b ? a : b;
    return ab > c ? ab : c;
}

// Makes tile (bx, by). The matrix has a row and a column before the first tile.
__device__ inline void tile(const int *similarity, int *score, int columns, int penalty, int bx, int by)
{
    __shared__ int near[TILE + 1][TILE + 1];
    __shared__ int match[TILE][TILE];
    int tx = threadIdx.x;
    int corner = columns * TILE * by + TILE * bx;
    if (tx == 0)
        near[0][0] = score[corner];
    for (int ty = 0; ty < TILE; ty++)
        match[ty][tx] = similarity[corner + columns * (ty + 1) + tx + 1];
    near[tx + 1][0] = score[corner + columns * (tx + 1)];
    near[0][tx + 1] = score[corner + tx + 1];
    __syncthreads();
    for (int diagonal = 0; diagonal < 2 * TILE - 1; diagonal++) {
        int y = diagonal - tx;
        if (y >= 0 && y < TILE)
            near[y + 1][tx + 1] = largest(near[y][tx] + match[y][tx], near[y + 1][tx] - penalty, near[y][tx + 1] - penalty);
        __syncthreads();
    }
    for (int ty = 0; ty < TILE; ty++)
        score[corner + columns * (ty + 1) + tx + 1] = near[ty + 1][tx + 1];
}

extern "C" __global__ void needle_upper(const int *similarity, int *score, int columns, int penalty)
{
    tile(similarity, score, columns, penalty, blockIdx.x, gridDim.x - 1 - blockIdx.x);
}

extern "C" __global__ void needle_lower(const int *similarity, int *score, int columns, int penalty, int tiles)
{
    tile(similarity, score, columns, penalty, blockIdx.x + tiles - gridDim.x, tiles - 1 - blockIdx.x);
}
