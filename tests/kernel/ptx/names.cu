// CUDA's names that workloads/include/clang has for clang. Compiled by clang and by NVRTC, which has NVIDIA's own, to
// names.clang.ptx and names.nvrtc.ptx by build.sh; `tests/kernel/clang_names.rs` asks that both store the same bits.
#include <cuda_fp16.h>

#define ALL int *i, unsigned *u, long long *l, unsigned long long *q, float *f, double *d

// One thread: every operation of every type on words of its own; what it returned lies 32 words behind them.
#define DO(p, k, operation, ...) p[k + 32] = operation(p + k, __VA_ARGS__)
#define ORDERED(p, k, suffix, value)                                                                         \
    DO(p, k + 0, atomicMin##suffix, value), DO(p, k + 1, atomicMax##suffix, value);                          \
    DO(p, k + 2, atomicAnd##suffix, value), DO(p, k + 3, atomicOr##suffix, value);                           \
    DO(p, k + 4, atomicXor##suffix, value)
#define ATOMICS(suffix)                                                                                      \
    extern "C" __global__ void atomics##suffix(ALL)                                                          \
    {                                                                                                        \
        ORDERED(i, 0, suffix, 77777), ORDERED(u, 0, suffix, 77777u);                                         \
        ORDERED(l, 0, suffix, 77777ll), ORDERED(q, 0, suffix, 77777ull);                                     \
        DO(i, 5, atomicAdd##suffix, -9), DO(u, 5, atomicAdd##suffix, 9u), DO(q, 5, atomicAdd##suffix, 9ull); \
        DO(f, 5, atomicAdd##suffix, 0.3f), DO(d, 5, atomicAdd##suffix, 0.3);                                 \
        DO(i, 6, atomicSub##suffix, -9), DO(u, 6, atomicSub##suffix, 9u);                                    \
        DO(i, 7, atomicExch##suffix, -9), DO(u, 7, atomicExch##suffix, 9u);                                  \
        DO(q, 7, atomicExch##suffix, 9ull), DO(f, 7, atomicExch##suffix, 9.5f);                              \
        DO(u, 8, atomicInc##suffix, 100u), DO(u, 9, atomicDec##suffix, 100u);                                \
        DO(u, 10, atomicInc##suffix, 4000000000u), DO(u, 11, atomicDec##suffix, 4000000000u);                \
        DO(i, 12, atomicCAS##suffix, i[12], 4), DO(i, 13, atomicCAS##suffix, i[13] + 1, 4);                  \
        DO(u, 12, atomicCAS##suffix, u[12], 4u), DO(q, 12, atomicCAS##suffix, q[12], 4ull);                  \
    }
ATOMICS()
ATOMICS(_block)
ATOMICS(_system)

#define CACHED(type, k)                                                                                      \
    {                                                                                                        \
        type *p = (type *)(bytes + 512 * k);                                                                 \
        p[10] = __ldg(p), p[11] = __ldca(p + 1), p[12] = __ldcg(p + 2), p[13] = __ldcs(p + 3);               \
        p[14] = __ldlu(p + 4), p[15] = __ldcv(p + 5);                                                        \
        __stwb(p + 20, p[6]), __stcg(p + 21, p[7]), __stcs(p + 22, p[8]), __stwt(p + 23, p[9]);              \
    }
extern "C" __global__ void loads(char *bytes)
{
    CACHED(char, 0) CACHED(signed char, 1) CACHED(unsigned char, 2) CACHED(short, 3) CACHED(unsigned short, 4)
    CACHED(int, 5) CACHED(unsigned, 6) CACHED(long long, 7) CACHED(unsigned long long, 8) CACHED(float, 9)
    CACHED(double, 10) CACHED(char2, 11) CACHED(uchar2, 12) CACHED(short2, 13) CACHED(ushort2, 14) CACHED(int2, 15)
    CACHED(uint2, 16) CACHED(longlong2, 17) CACHED(ulonglong2, 18) CACHED(float2, 19) CACHED(double2, 20)
    CACHED(char4, 21) CACHED(uchar4, 22) CACHED(short4, 23) CACHED(ushort4, 24) CACHED(int4, 25) CACHED(uint4, 26)
    CACHED(float4, 27) CACHED(long, 28) CACHED(unsigned long, 29)
}

// A warp: each function of each type by each thread.
#define SHUFFLES(p)                                                                                          \
    p[t + 64] = __shfl_sync(~0u, p[t], t * 7), p[t + 96] = __shfl_up_sync(~0u, p[t], 3, 16);                 \
    p[t + 128] = __shfl_down_sync(~0u, p[t], 5), p[t + 160] = __shfl_xor_sync(~0u, p[t], 9, 8)
extern "C" __global__ void warps(ALL)
{
    int t = threadIdx.x, all;
    SHUFFLES(i), SHUFFLES(u), SHUFFLES(l), SHUFFLES(q), SHUFFLES(f), SHUFFLES(d);
    i[t + 192] = __any_sync(~0u, i[t] & 1), i[t + 224] = __all_sync(~0u, i[t] >= 0);
    u[t + 192] = __ballot_sync(~0u, u[t] & 1), u[t + 224] = __match_any_sync(~0u, u[t] % 3);
    u[t + 256] = __match_any_sync(~0u, q[t] % 5), u[t + 288] = __match_all_sync(~0u, f[t], &all);
    i[t + 256] = all, u[t + 320] = __match_all_sync(~0u, 5.0, &all), i[t + 288] = all;
    if (t % 3 == 1)
        u[t + 352] = __activemask();
    // A usual name of kernels' own.
    const unsigned FULL_WARP_MASK = ~0u;
    __syncwarp(FULL_WARP_MASK);
    i[t + 320] = __syncthreads_count(u[t] & 2), i[t + 352] = __syncthreads_and(u[t] & 2);
    i[t + 384] = __syncthreads_or(u[t] & 2);
    __threadfence(), __threadfence_block(), __threadfence_system();
}

extern "C" __global__ void integers(ALL)
{
    int t = threadIdx.x, *r = i + 64 + 32 * t;
    int a = i[t], b = i[t + 1], c = i[t + 2];
    unsigned x = u[t], y = u[t + 1], z = u[t + 2];
    r[0] = __popc(x), r[1] = __popcll(q[t]), r[2] = __clz(a >> t), r[3] = __clzll(l[t] >> t), r[4] = __ffs(a << t);
    r[5] = __ffsll(l[t] << t), r[6] = __brev(x), r[7] = __byte_perm(x, y, z), r[8] = __funnelshift_l(x, y, z);
    r[9] = __funnelshift_lc(x, y, t * 2), r[10] = __funnelshift_r(x, y, z), r[11] = __funnelshift_rc(x, y, t * 2);
    r[12] = __mulhi(a, -b), r[13] = __umulhi(x, y), r[14] = __mul24(a, -b), r[15] = __umul24(x, y);
    r[16] = __sad(a, -b, z), r[17] = __usad(x, y, z), r[18] = __hadd(a, -b), r[19] = __rhadd(a, -b);
    r[20] = __uhadd(x, y), r[21] = __urhadd(x, y), r[22] = __dp4a(a, -b, c), r[23] = __dp4a(x, y, z);
    r[24] = min(a, -b), r[25] = max(x, y), r[26] = abs(-a);
    l[64 + t] = __mul64hi(l[t], -l[t + 1]), q[64 + t] = __umul64hi(q[t], q[t + 1]), q[128 + t] = __brevll(q[t]);
    l[96 + t] = min(l[t], -l[t + 1]), q[96 + t] = max(q[t], q[t + 1]);
}

#define ROUNDED(mode)                                                                                        \
    extern "C" __global__ void rounded_##mode(ALL)                                                           \
    {                                                                                                        \
        int t = threadIdx.x, *r = i + 64 + 4 * t;                                                            \
        float a = f[t] - 50, b = f[t + 1], c = f[t + 2], *s = f + 64 + 16 * t;                               \
        double x = d[t] - 50, y = d[t + 1], z = d[t + 2], *w = d + 64 + 16 * t;                              \
        r[0] = __float2int_##mode(a), r[1] = __float2uint_##mode(b);                                         \
        r[2] = __double2int_##mode(x), r[3] = __double2uint_##mode(y);                                       \
        l[64 + t] = __float2ll_##mode(a), q[64 + t] = __float2ull_##mode(b);                                 \
        l[96 + t] = __double2ll_##mode(x), q[96 + t] = __double2ull_##mode(y);                               \
        s[0] = __int2float_##mode(i[t]), s[1] = __uint2float_##mode(u[t]), s[2] = __ll2float_##mode(l[t]);   \
        s[3] = __ull2float_##mode(q[t]), s[4] = __double2float_##mode(x), s[5] = __fadd_##mode(a, b);        \
        s[6] = __fsub_##mode(a, b), s[7] = __fmul_##mode(a, b), s[8] = __fdiv_##mode(a, b);                  \
        s[9] = __fmaf_##mode(a, b, c), s[10] = __frcp_##mode(b), s[11] = __fsqrt_##mode(b);                  \
        w[0] = __ll2double_##mode(l[t]), w[1] = __ull2double_##mode(q[t]), w[2] = __dadd_##mode(x, y);       \
        w[3] = __dsub_##mode(x, y), w[4] = __dmul_##mode(x, y), w[5] = __ddiv_##mode(x, y);                  \
        w[6] = __fma_##mode(x, y, z), w[7] = __drcp_##mode(y), w[8] = __dsqrt_##mode(y);                     \
    }
ROUNDED(rn)
ROUNDED(rz)
ROUNDED(rd)
ROUNDED(ru)

extern "C" __global__ void floats(ALL)
{
    int t = threadIdx.x, *r = i + 64 + 16 * t;
    float a = f[t] - 50, b = f[t + 1], c = f[t + 2], *s = f + 64 + 32 * t;
    double x = d[t] - 50, y = d[t + 1], z = d[t + 2], *w = d + 64 + 16 * t;
    s[0] = __expf(a), s[1] = __exp10f(a * 0.1f), s[2] = __logf(b), s[3] = __log2f(b), s[4] = __log10f(b), s[5] = __sinf(a);
    s[6] = __cosf(a), s[7] = __tanf(a), s[8] = __powf(b, c * 0.01f), s[9] = __fdividef(a, b), s[10] = __saturatef(a);
    s[11] = rsqrtf(b), s[12] = sqrtf(b), s[13] = floorf(a), s[14] = ceilf(a), s[15] = truncf(a), s[16] = rintf(a);
    s[17] = fminf(a, b), s[18] = fmaxf(a, b), s[19] = copysignf(b, a), s[20] = fmaf(a, b, c), s[21] = fdimf(a, b);
    s[22] = roundf(a), s[23] = exp2f(a), s[24] = fmodf(a, b), s[25] = fabsf(a), s[26] = ldexpf(a, t - 10);
    s[27] = __int_as_float(i[t]), s[28] = nearbyintf(a);
    w[0] = sqrt(y), w[1] = floor(x), w[2] = ceil(x), w[3] = trunc(x), w[4] = rint(x), w[5] = fmin(x, y), w[6] = fmax(x, y);
    w[7] = fma(x, y, z), w[8] = fabs(x), w[9] = round(x), w[10] = __hiloint2double(i[t] >> 2, i[t + 1]);
    w[11] = __longlong_as_double(l[t]), w[12] = ldexp(x, t - 10);
    r[0] = __float_as_int(a), r[1] = __double2hiint(x), r[2] = __double2loint(x), r[3] = isnan(a), r[4] = isinf(x);
    r[5] = isfinite(a), r[6] = signbit(a) != 0, r[7] = (int)lrintf(a), r[8] = (int)lround(x), r[9] = __float_as_uint(b);
    l[64 + t] = __double_as_longlong(x);
}

extern "C" __global__ void halves(ALL)
{
    int t = threadIdx.x;
    half a = __float2half(f[t] - 50), b = __float2half_rz(f[t + 1]), *s = (half *)(f + 64 + 32 * t);
    half2 v = __floats2half2_rn(f[t], f[t + 1]), w = __halves2half2(b, a), *p = (half2 *)(u + 64 + 16 * t);
    s[0] = a, s[1] = b, s[2] = __hadd(a, b), s[3] = __hsub(a, b), s[4] = __hmul(a, b), s[5] = __hfma(a, b, a);
    s[6] = __hdiv(a, b), s[7] = __hneg(a), s[8] = __habs(a), s[9] = a * b + a, s[10] = __float2half_rd(f[t]);
    s[11] = __float2half_ru(f[t]), s[12] = __int2half_rn(i[t] % 3000), s[13] = __hadd_sat(a, b), s[14] = __hmul_sat(a, b);
    half zero = __float2half(0.0f), minus = __hneg(zero), none = __ushort_as_half(0x7e01);
    s[15] = __hmax(a, b), s[16] = __hmin(a, b), s[17] = __hmax(minus, zero), s[18] = __hmax(zero, minus);
    s[19] = __hmin(minus, zero), s[20] = __hmin(zero, minus), s[21] = __hmax(none, a), s[22] = __hmin(a, none);
    s[23] = __hmax(none, none), s[24] = __high2half(__hmax2(v, w)), s[25] = __low2half(__hmin2(v, w)), s[26] = hsqrt(b);
    p[0] = __hadd2(v, w), p[1] = __hsub2(v, w), p[2] = __hmul2(v, w), p[3] = __hfma2(v, w, v), p[4] = __hneg2(w);
    p[5] = __half2half2(a), p[6] = __lowhigh2highlow(v), p[7] = v + w * v;
    atomicAdd((half2 *)u + t, v);
    i[64 + t] = __hlt(a, b) + 2 * __hle(a, a) + 4 * __heq(a, b) + 8 * __hne(a, b) + 16 * __hgt(a, b) + 32 * (a >= b);
    d[64 + t] = __low2float(v) + __high2float(w), f[t + 32] = __half22float2(v).x;
}
