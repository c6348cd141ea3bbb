// One level of breadth-first search, one node a thread. Several threads may reach a node at once: all of them write the
// same level (a benign race). Compiled by ../compile.sh.
#include "device.cuh"

extern "C" __global__ void bfs_level(const unsigned *row_ptr, const unsigned *col, int *level, int *changed, int depth, int nodes)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || level[node] != depth)
        return;
    for (unsigned edge = row_ptr[node]; edge < row_ptr[node + 1]; edge++) {
        unsigned target = col[edge];
        if (level[target] < 0) {
            level[target] = depth + 1;
            *changed = 1;
        }
    }
}
