// A sum: a grid-stride loop, shuffles in each warp, one word a warp in shared memory, one atomic a CTA.
__device__ int warp_sum(int value)
{
    for (int by = warpSize / 2; by > 0; by /= 2)
        value += __shfl_down_sync(0xffffffff, value, by);
    return value;
}

__global__ void reduce(const int *in, int *sum, int n)
{
    __shared__ int parts[32];
    int mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mine += in[i];
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        mine = warp_sum(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0);
        if (threadIdx.x == 0)
            atomicAdd(sum, mine);
    }
}
