// Cooperative groups: sums of tiles of 8 threads, and one atomic for the threads of a warp that take a branch together.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

__global__ void tiles(const int *in, int *sums, int *odd)
{
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
    int i = blockIdx.x * block.size() + block.thread_rank();
    int sum = cg::reduce(tile, in[i], cg::plus<int>());
    if (tile.thread_rank() == 0)
        sums[blockIdx.x * tile.meta_group_size() + tile.meta_group_rank()] = sum;
    block.sync();
    if (in[i] % 2 != 0) {
        cg::coalesced_group together = cg::coalesced_threads();
        if (together.thread_rank() == 0)
            atomicAdd(odd, (int)together.size());
    }
}
