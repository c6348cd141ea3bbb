// A histogram: atomics on bins in shared memory, which are added to those in global memory.
constexpr int BINS = 64;

__global__ void histogram(const unsigned char *__restrict__ data, unsigned *bins, int n)
{
    __shared__ unsigned local[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        local[bin] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[__ldg(&data[i]) % BINS], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        atomicAdd(&bins[bin], local[bin]);
}
