// A stencil of one dimension: weights in constant memory, a tile with a halo in dynamic shared memory.
constexpr int RADIUS = 3;

extern "C" {
__constant__ float weights[2 * RADIUS + 1];
}

__global__ void stencil(const float *in, float *out, int n)
{
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = threadIdx.x + RADIUS;
    tile[at] = i < n ? in[i] : 0;
    if (threadIdx.x < RADIUS) {
        int left = i - RADIUS, right = i + blockDim.x;
        tile[at - RADIUS] = left >= 0 ? in[left] : 0;
        tile[at + blockDim.x] = right < n ? in[right] : 0;
    }
    __syncthreads();
    float sum = 0;
    for (int k = -RADIUS; k <= RADIUS; k++)
        sum += weights[k + RADIUS] * tile[at + k];
    if (i < n)
        out[i] = sum;
}
