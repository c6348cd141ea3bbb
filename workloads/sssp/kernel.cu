// Shortest paths from one node, a node a thread: in each round every node that was reached offers its length plus the
// weight of an edge to the node at the edge's end, which takes the least offer, atomically. A round without a change ends
// the work. After the description of LonestarGPU's sssp (first kernel: initial lengths, second: a round), but for one
// thing: a round reads the lengths of the round before, not those that it makes itself, so that neither its
// result nor its work depends on which thread comes first. Compiled by ../compile.sh.
#include "device.cuh"

#define UNREACHED 0xffffffffu

extern "C" __global__ void sssp_start(unsigned *length, int nodes, int start)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes)
        length[node] = node == start ? 0 : UNREACHED;
}

extern "C" __global__ void sssp_relax(const unsigned *row_ptr, const unsigned *col, const unsigned *weight,
                                      const unsigned *before, unsigned *length, unsigned *changed, int nodes)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || before[node] == UNREACHED)
        return;
    for (unsigned edge = row_ptr[node]; edge < row_ptr[node + 1]; edge++) {
        unsigned offer = before[node] + weight[edge];
        if (offer < before[col[edge]]) {
            atomicMin(&length[col[edge]], offer);
            *changed = 1;
        }
    }
}
