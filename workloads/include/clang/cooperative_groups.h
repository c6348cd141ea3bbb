// Cooperative groups of a CTA for clang: the thread block, tiles of 1 to 32 threads, the threads of a warp that are here
// together, and their reductions and scans. Not served: groups of a grid and of several grids, clusters, `memcpy_async`.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {

class thread_block {
public:
    __device__ static dim3 group_index() { return blockIdx; }
    __device__ static dim3 thread_index() { return threadIdx; }
    __device__ static dim3 dim_threads() { return blockDim; }
    __device__ static dim3 group_dim() { return blockDim; }
    __device__ static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    __device__ static unsigned size() { return num_threads(); }
    __device__ static unsigned thread_rank()
    {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    __device__ static void sync() { __syncthreads(); }
};

__device__ inline thread_block this_thread_block() { return {}; }

// A part of a warp: the lanes of `mask`, in order.
class warp_part {
protected:
    unsigned lanes;
    __device__ explicit warp_part(unsigned lanes) : lanes(lanes) {}

    // The lane of the thread with this rank, which may be outside.
    __device__ int lane(int rank) const
    {
        unsigned rest = lanes;
        for (int i = 0; i < rank; i++)
            rest &= rest - 1;
        return rest ? __ffs((int)rest) - 1 : (int)__lane_id();
    }
    // Bits of lanes as bits of ranks.
    __device__ unsigned packed(unsigned bits) const
    {
        unsigned ranks = 0;
        for (unsigned rest = lanes, rank = 0; rest; rest &= rest - 1, rank++)
            ranks |= (bits & rest & (0u - rest) ? 1u : 0u) << rank;
        return ranks;
    }

public:
    __device__ unsigned mask() const { return lanes; }
    __device__ void sync() const { __syncwarp(lanes); }
    __device__ int any(int p) const { return __any_sync(lanes, p); }
    __device__ int all(int p) const { return __all_sync(lanes, p); }
};

// Threads that run together now.
class coalesced_group : public warp_part {
public:
    __device__ explicit coalesced_group(unsigned lanes) : warp_part(lanes) {}
    __device__ unsigned num_threads() const { return __popc(lanes); }
    __device__ unsigned size() const { return num_threads(); }
    __device__ unsigned thread_rank() const { return __popc(lanes & __lanemask_lt()); }
    template <class T> __device__ T shfl(T value, int rank) const { return __shfl_sync(lanes, value, lane(rank)); }
    template <class T> __device__ T shfl_up(T value, unsigned by) const
    {
        unsigned rank = thread_rank();
        return shfl(value, (int)(rank < by ? rank : rank - by));
    }
    template <class T> __device__ T shfl_down(T value, unsigned by) const
    {
        unsigned rank = thread_rank();
        return shfl(value, (int)(rank + by < size() ? rank + by : rank));
    }
    __device__ unsigned ballot(int p) const { return packed(__ballot_sync(lanes, p)); }
    template <class T> __device__ unsigned match_any(T value) const { return packed(__match_any_sync(lanes, value)); }
};

__device__ inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

// N consecutive threads of a block.
template <unsigned N, class Parent = thread_block> class thread_block_tile : public warp_part {
    static_assert(N >= 1 && N <= 32 && (N & (N - 1)) == 0, "tiles have 1, 2, 4, 8, 16 or 32 threads here");
    __device__ static unsigned first() { return __lane_id() & ~(N - 1); }

public:
    __device__ thread_block_tile() : warp_part((N == 32 ? ~0u : (1u << (N % 32)) - 1) << first()) {}
    __device__ static constexpr unsigned num_threads() { return N; }
    __device__ static constexpr unsigned size() { return N; }
    __device__ static unsigned thread_rank() { return __lane_id() & (N - 1); }
    __device__ static unsigned meta_group_rank() { return thread_block::thread_rank() / N; }
    __device__ static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
    template <class T> __device__ T shfl(T value, int rank) const { return __shfl_sync(lanes, value, rank, N); }
    template <class T> __device__ T shfl_up(T value, unsigned by) const { return __shfl_up_sync(lanes, value, by, N); }
    template <class T> __device__ T shfl_down(T value, unsigned by) const { return __shfl_down_sync(lanes, value, by, N); }
    template <class T> __device__ T shfl_xor(T value, unsigned by) const { return __shfl_xor_sync(lanes, value, (int)by, N); }
    __device__ unsigned ballot(int p) const { return __ballot_sync(lanes, p) >> first(); }
    template <class T> __device__ unsigned match_any(T value) const { return __match_any_sync(lanes, value) >> first(); }
    template <class T> __device__ unsigned match_all(T value, int &all) const
    {
        return __match_all_sync(lanes, value, &all) >> first();
    }
};

template <unsigned N, class Parent> __device__ inline thread_block_tile<N, Parent> tiled_partition(const Parent &)
{
    return {};
}

template <class Group> __device__ inline void sync(const Group &group) { group.sync(); }
template <class Group> __device__ inline unsigned thread_rank(const Group &group) { return group.thread_rank(); }
template <class Group> __device__ inline unsigned group_size(const Group &group) { return group.size(); }

#define DURAWARP_OPERATION(name, expression)                                                                 \
    template <class T> struct name {                                                                         \
        __device__ T operator()(T a, T b) const { return expression; }                                       \
    };
DURAWARP_OPERATION(plus, a + b)
DURAWARP_OPERATION(less, b < a ? b : a)
DURAWARP_OPERATION(greater, a < b ? b : a)
DURAWARP_OPERATION(bit_and, a &b)
DURAWARP_OPERATION(bit_or, a | b)
DURAWARP_OPERATION(bit_xor, a ^ b)
#undef DURAWARP_OPERATION

// As CUDA's: a butterfly for tiles.
template <unsigned N, class Parent, class T, class Op>
__device__ inline T reduce(const thread_block_tile<N, Parent> &group, T value, Op op)
{
    for (unsigned by = N / 2; by > 0; by /= 2)
        value = op(value, group.shfl_xor(value, by));
    return value;
}

// Halves of what is left, and every thread gets the first thread's result.
template <class T, class Op> __device__ inline T reduce(const coalesced_group &group, T value, Op op)
{
    unsigned rank = group.thread_rank();
    for (unsigned left = group.size(); left > 1;) {
        unsigned half = (left + 1) / 2;
        T other = group.shfl_down(value, half);
        if (rank + half < left)
            value = op(value, other);
        left = half;
    }
    return group.shfl(value, 0);
}

template <class Group, class T, class Op> __device__ inline T inclusive_scan(const Group &group, T value, Op op)
{
    for (unsigned by = 1; by < group.size(); by *= 2) {
        T other = group.shfl_up(value, by);
        if (group.thread_rank() >= by)
            value = op(other, value);
    }
    return value;
}

template <class Group, class T> __device__ inline T inclusive_scan(const Group &group, T value)
{
    return inclusive_scan(group, value, plus<T>());
}

template <class Group, class T, class Op> __device__ inline T exclusive_scan(const Group &group, T value, Op op)
{
    T before = group.shfl_up(inclusive_scan(group, value, op), 1);
    return group.thread_rank() == 0 ? T() : before;
}

template <class Group, class T> __device__ inline T exclusive_scan(const Group &group, T value)
{
    return exclusive_scan(group, value, plus<T>());
}

}
