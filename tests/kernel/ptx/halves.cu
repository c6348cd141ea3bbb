// Half precision, surfaces and video instructions as CUDA C writes them, for compute_86, with the headers of the toolkit
// (see build.sh).
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void axpy(const __half2 *x, __half2 *y, __half a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __hfma2(__half2half2(a), x[i], y[i]);
}

extern "C" __global__ void softplus(const float *x, __half *y, __half *total, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    __half h = __float2half(x[i]);
    __half e = hexp(h);
    __half r = __hgt(h, __float2half(4.0f)) ? h : hlog(__hadd(e, __float2half(1.0f)));
    y[i] = __hmax(r, __hneg(__habs(h)));
    atomicAdd(total, __hmul_sat(h, h));
}

extern "C" __global__ void normalize(const __nv_bfloat16 *x, __nv_bfloat162 *y, float scale, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = __bfloat162float(x[i]);
    __nv_bfloat162 pair = __floats2bfloat162_rn(v * scale, v + scale);
    __nv_bfloat162 sum = __hadd2(pair, __hmul2(pair, pair));
    y[i] = __hbgt2(sum, pair) ? __hmax2(sum, pair) : __hfma2_relu(pair, pair, sum);
}

extern "C" __global__ void rotate(cudaSurfaceObject_t from, cudaSurfaceObject_t to, unsigned width, unsigned height) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    ushort2 v = surf2Dread<ushort2>(from, x * sizeof(ushort2), y);
    unsigned outside = surf2Dread<unsigned>(from, (x + width) * sizeof(unsigned), y, cudaBoundaryModeZero);
    v.x += outside;
    surf2Dwrite(v, to, (height - 1 - y) * sizeof(ushort2), x, cudaBoundaryModeClamp);
}

extern "C" __global__ void bytes(const unsigned *a, const unsigned *b, unsigned *out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned sad;
    asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(sad) : "r"(a[i]), "r"(b[i]), "r"(i));
    unsigned part;
    asm("vadd.u32.u32.s32.sat.min %0, %1.b1, %2.h0, %3;" : "=r"(part) : "r"(a[i]), "r"(b[i]), "r"(1000));
    out[i] = sad + 3 * part + __vmaxu4(a[i], b[i]) + __vsadu2(a[i], b[i]) + __vcmpgts2(a[i], b[i]);
}
