// C = A B by tiles in shared memory: a template over the type and the tile, of which two kernels are made.
template <typename T, int TILE> __global__ void gemm(const T *a, const T *b, T *c, int n)
{
    __shared__ T ta[TILE][TILE], tb[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    T sum = 0;
    for (int k = 0; k < n; k += TILE) {
        ta[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < TILE; i++)
            sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

template __global__ void gemm<float, 16>(const float *, const float *, float *, int);
template __global__ void gemm<int, 8>(const int *, const int *, int *, int);
