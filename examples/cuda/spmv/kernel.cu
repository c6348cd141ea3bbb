// A sparse matrix (CSR) times a vector: a warp a row, partial sums added by shuffles.
extern "C" __global__ void spmv(const int *row_ptr, const int *col, const float *val, const float *x, float *y, int n)
{
    int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x & 31;
    if (warp >= n)
        return;
    float sum = 0;
    for (int j = row_ptr[warp] + lane; j < row_ptr[warp + 1]; j += 32)
        sum += val[j] * x[col[j]];
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0)
        y[warp] = sum;
}
