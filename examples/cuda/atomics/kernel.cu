// Atomics: compare-and-swap loops, counters that wrap, bits, scopes, and atomics of a warp's equal keys at once.
__device__ void atomic_multiply(float *to, float by)
{
    int *bits = (int *)to, old = *bits, seen;
    do {
        seen = old;
        old = atomicCAS(bits, seen, __float_as_int(__int_as_float(seen) * by));
    } while (old != seen);
}

__global__ void atomics(float *product, unsigned *words, unsigned long long *wide, double *sum, unsigned *groups)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int most;
    if (threadIdx.x == 0)
        most = 0;
    __syncthreads();
    atomicMax(&most, i);
    atomicMax_block(&most, i - 1);
    if (threadIdx.x < 4)
        atomic_multiply(product, 2.0f);
    atomicInc(&words[0], 99);
    atomicOr(&words[1], 1u << (i % 32));
    atomicAdd_system(&words[2], 3u);
    atomicMin(&words[3], (unsigned)i + 5);
    atomicXor(&wide[0], 1ull << (i % 40));
    atomicMax(&wide[1], (unsigned long long)i << 33);
    atomicAdd(sum, 0.5 * i);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&words[4], (unsigned)most);
    // One atomic for all lanes of a warp that have the same key.
    unsigned same = __match_any_sync(0xffffffff, i % 5);
    if (__ffs(same) - 1 == (int)threadIdx.x % 32)
        atomicAdd(&groups[i % 5], (unsigned)__popc(same));
}
