// Small kernels that exercise the front end end to end. Compiled to basics.clang.ptx and basics.nvrtc.ptx by
// tests/kernel/ptx/build.sh; `tests/kernel/kernels.rs` computes what they should.
#ifdef __clang__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#include <__clang_cuda_builtin_vars.h>
extern "C" __device__ int atomicAddInt(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
#define SYNC() __nvvm_bar_sync(0)
#define SHFL_DOWN(v, d) __nvvm_shfl_sync_down_i32(0xffffffff, v, d, 31)
#else
extern "C" __device__ int atomicAddInt(int* p, int v) { return atomicAdd(p, v); }
#define SYNC() __syncthreads()
#define SHFL_DOWN(v, d) __shfl_down_sync(0xffffffff, v, d)
#endif

extern "C" __global__ void vecadd(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}

// C = A B, tiles of 16 x 16 in shared memory.
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int n) {
    __shared__ float ta[16][16];
    __shared__ float tb[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        ta[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        SYNC();
        for (int i = 0; i < 16; i++) sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
        SYNC();
    }
    c[y * n + x] = sum;
}

// Tree reduction in dynamic shared memory, then a shuffle tree in the first warp, then an atomic.
extern "C" __global__ void reduce(const int* in, int* out, int n) {
    extern __shared__ int s[];
    int t = threadIdx.x;
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += in[i];
    s[t] = sum;
    SYNC();
    for (int step = blockDim.x / 2; step >= 32; step /= 2) {
        if (t < step) s[t] += s[t + step];
        SYNC();
    }
    if (t < 32) {
        int v = s[t];
        for (int d = 16; d > 0; d /= 2) v += SHFL_DOWN(v, d);
        if (t == 0) atomicAddInt(out, v);
    }
}

// Length of the Collatz sequence: lanes leave the loop one by one.
extern "C" __global__ void collatz(const unsigned* in, unsigned* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i], steps = 0;
    while (v != 1) {
        v = v % 2 ? 3 * v + 1 : v / 2;
        steps++;
    }
    out[i] = steps;
}

struct Pair { double scale; int shift; unsigned char flags[4]; };

__constant__ float table[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ int counter = 5;

// A structure by value, constant and local memory, bytes, shorts and doubles, a module variable.
extern "C" __global__ void mixed(const unsigned char* in, double* out, short* s, struct Pair p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int local[8];
    for (int k = 0; k < 8; k++) local[k] = in[(i + k) % 64] * (k + 1);
    int pick = local[in[i % 64] & 7];
    out[i] = p.scale * pick + table[i & 7] + p.flags[i & 3];
    s[i] = (short)(pick - (i << p.shift));
    if (i == 3) counter += 2;
}

__device__ __attribute__((noinline)) float poly(float x, int n) {
    float r = 0;
    for (int k = 0; k < n; k++) r = r * x + 1.0f / (k + 1);
    return r;
}

// A real function call.
extern "C" __global__ void calls(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = i % 3 ? poly(in[i], i % 5) : in[i];
}
