// Prefix sums of each CTA's part: a scan of each warp by `__shfl_up_sync`, then one of the warps' totals.
__global__ void scan(const unsigned *in, unsigned *out, int n)
{
    __shared__ unsigned totals[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned sum = i < n ? in[i] : 0;
    for (int by = 1; by < 32; by *= 2) {
        unsigned left = __shfl_up_sync(0xffffffff, sum, by);
        if (lane >= by)
            sum += left;
    }
    if (lane == 31)
        totals[warp] = sum;
    __syncthreads();
    for (int before = 0; before < warp; before++)
        sum += totals[before];
    if (i < n)
        out[i] = sum;
}
