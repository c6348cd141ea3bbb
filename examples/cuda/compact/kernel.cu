// Compaction: each warp writes those of its elements that are multiples of 3 without gaps, by a ballot and its prefix.
__global__ void compact(const int *in, int *out, int *kept)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, first = i - lane;
    bool keep = in[i] % 3 == 0;
    const unsigned FULL_WARP_MASK = 0xffffffff;
    unsigned ballot = __ballot_sync(FULL_WARP_MASK, keep);
    if (keep)
        out[first + __popc(ballot & ((1u << lane) - 1))] = in[i];
    if (lane == 0)
        kept[first / 32] = __popc(ballot);
    // All elements of a CTA, counted at its barrier.
    int of_cta = __syncthreads_count(keep);
    if (threadIdx.x == 0)
        atomicMax(&kept[gridDim.x * blockDim.x / 32], of_cta);
}
