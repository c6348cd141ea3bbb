// Half precision for clang: `__half` and `__half2` with arithmetic, comparisons, conversions and atomics.
//
// | what | how |
// |---|---|
// | sums, differences, products, `fma`, atomics, conversions between two types | one PTX instruction |
// | comparisons, minimum, maximum, quotients, square roots | in single precision, with conversions |
// | exponentials, logarithms, trigonometric functions; `__nv_bfloat16` | not served |
#pragma once
#include "cuda_runtime.h"

struct __align__(2) __half;
__device__ inline __half __float2half_rn(float);
__device__ inline float __half2float(__half);

struct __align__(2) __half {
    unsigned short bits;
    __half() = default;
    __device__ __half(float x) { *this = __float2half_rn(x); }
    __device__ __half(double x) { *this = __float2half_rn((float)x); }
    __device__ __half(int x) { *this = __float2half_rn((float)x); }
    __device__ operator float() const { return __half2float(*this); }
};
struct __align__(4) __half2 {
    __half x, y;
    __half2() = default;
    __device__ __half2(__half x, __half y) : x(x), y(y) {}
};
typedef __half half;
typedef __half2 half2;

__device__ inline unsigned __durawarp_bits(__half2 h) { return __builtin_bit_cast(unsigned, h); }
__device__ inline __half2 __durawarp_half2(unsigned bits) { return __builtin_bit_cast(__half2, bits); }
__device__ inline __half __ushort_as_half(unsigned short bits)
{
    __half h;
    h.bits = bits;
    return h;
}
__device__ inline unsigned short __half_as_ushort(__half h) { return h.bits; }

#define DURAWARP_TO_HALF(name, mode)                                                                         \
    __device__ inline __half name(float x)                                                                   \
    {                                                                                                        \
        __half h;                                                                                            \
        asm("cvt." mode ".f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));                                         \
        return h;                                                                                            \
    }
DURAWARP_TO_HALF(__float2half, "rn")
DURAWARP_TO_HALF(__float2half_rn, "rn")
DURAWARP_TO_HALF(__float2half_rz, "rz")
DURAWARP_TO_HALF(__float2half_rd, "rm")
DURAWARP_TO_HALF(__float2half_ru, "rp")
#undef DURAWARP_TO_HALF
__device__ inline float __half2float(__half h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
    return x;
}
__device__ inline int __half2int_rz(__half h) { return (int)__half2float(h); }
__device__ inline __half __int2half_rn(int x)
{
    __half h;
    asm("cvt.rn.f16.s32 %0, %1;" : "=h"(h.bits) : "r"(x));
    return h;
}

__device__ inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__device__ inline __half2 make_half2(__half x, __half y) { return {x, y}; }
__device__ inline __half2 __half2half2(__half x) { return {x, x}; }
__device__ inline __half2 __float2half2_rn(float x) { return __half2half2(__float2half_rn(x)); }
__device__ inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
__device__ inline __half2 __float22half2_rn(float2 v) { return __floats2half2_rn(v.x, v.y); }
__device__ inline float2 __half22float2(__half2 h) { return {__half2float(h.x), __half2float(h.y)}; }
__device__ inline __half __low2half(__half2 h) { return h.x; }
__device__ inline __half __high2half(__half2 h) { return h.y; }
__device__ inline float __low2float(__half2 h) { return __half2float(h.x); }
__device__ inline float __high2float(__half2 h) { return __half2float(h.y); }
__device__ inline __half2 __lowhigh2highlow(__half2 h) { return {h.y, h.x}; }

#define DURAWARP_PAIRS(name, op)                                                                             \
    __device__ inline __half __h##name(__half a, __half b)                                                   \
    {                                                                                                        \
        __half r;                                                                                            \
        asm(op ".f16 %0, %1, %2;" : "=h"(r.bits) : "h"(a.bits), "h"(b.bits));                                \
        return r;                                                                                            \
    }                                                                                                        \
    __device__ inline __half2 __h##name##2(__half2 a, __half2 b)                                             \
    {                                                                                                        \
        unsigned r;                                                                                          \
        asm(op ".f16x2 %0, %1, %2;" : "=r"(r) : "r"(__durawarp_bits(a)), "r"(__durawarp_bits(b)));           \
        return __durawarp_half2(r);                                                                          \
    }
DURAWARP_PAIRS(add, "add")
DURAWARP_PAIRS(sub, "sub")
DURAWARP_PAIRS(mul, "mul")
DURAWARP_PAIRS(add_sat, "add.sat")
DURAWARP_PAIRS(mul_sat, "mul.sat")
#undef DURAWARP_PAIRS
__device__ inline __half __hfma(__half a, __half b, __half c)
{
    __half r;
    asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r.bits) : "h"(a.bits), "h"(b.bits), "h"(c.bits));
    return r;
}
__device__ inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    unsigned r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(__durawarp_bits(a)), "r"(__durawarp_bits(b)), "r"(__durawarp_bits(c)));
    return __durawarp_half2(r);
}
__device__ inline __half __hneg(__half a) { return __ushort_as_half(a.bits ^ 0x8000); }
__device__ inline __half __habs(__half a) { return __ushort_as_half(a.bits & 0x7fff); }
__device__ inline __half2 __hneg2(__half2 a) { return {__hneg(a.x), __hneg(a.y)}; }
__device__ inline __half2 __habs2(__half2 a) { return {__habs(a.x), __habs(a.y)}; }
// A quotient of halves in single precision, rounded once more, is the rounded quotient: 24 >= 2 * 11 + 2.
__device__ inline __half __hdiv(__half a, __half b) { return __float2half_rn(__half2float(a) / __half2float(b)); }
__device__ inline __half2 __h2div(__half2 a, __half2 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }
__device__ inline __half hsqrt(__half a) { return __float2half_rn(sqrtf(__half2float(a))); }

#define DURAWARP_COMPARE(name, op)                                                                           \
    __device__ inline bool __h##name(__half a, __half b) { return __half2float(a) op __half2float(b); }
DURAWARP_COMPARE(eq, ==)
DURAWARP_COMPARE(ne, !=)
DURAWARP_COMPARE(lt, <)
DURAWARP_COMPARE(le, <=)
DURAWARP_COMPARE(gt, >)
DURAWARP_COMPARE(ge, >=)
#undef DURAWARP_COMPARE
__device__ inline bool __hisnan(__half a) { return isnan(__half2float(a)); }
// Of zeros +0 is the larger, and of a number and a NaN the number is both, as of CUDA's below sm_80.
#define DURAWARP_ORDER(name)                                                                                 \
    __device__ inline __half __h##name(__half a, __half b)                                                   \
    {                                                                                                        \
        float x;                                                                                             \
        asm(#name ".f32 %0, %1, %2;" : "=f"(x) : "f"(__half2float(a)), "f"(__half2float(b)));                \
        return __float2half_rn(x);                                                                           \
    }
DURAWARP_ORDER(max)
DURAWARP_ORDER(min)
#undef DURAWARP_ORDER
__device__ inline __half2 __hmax2(__half2 a, __half2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
__device__ inline __half2 __hmin2(__half2 a, __half2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }

__device__ inline __half operator+(__half a, __half b) { return __hadd(a, b); }
__device__ inline __half operator-(__half a, __half b) { return __hsub(a, b); }
__device__ inline __half operator*(__half a, __half b) { return __hmul(a, b); }
__device__ inline __half operator/(__half a, __half b) { return __hdiv(a, b); }
__device__ inline __half operator-(__half a) { return __hneg(a); }
__device__ inline __half &operator+=(__half &a, __half b) { return a = __hadd(a, b); }
__device__ inline __half &operator-=(__half &a, __half b) { return a = __hsub(a, b); }
__device__ inline __half &operator*=(__half &a, __half b) { return a = __hmul(a, b); }
__device__ inline bool operator==(__half a, __half b) { return __heq(a, b); }
__device__ inline bool operator!=(__half a, __half b) { return __hne(a, b); }
__device__ inline bool operator<(__half a, __half b) { return __hlt(a, b); }
__device__ inline bool operator<=(__half a, __half b) { return __hle(a, b); }
__device__ inline bool operator>(__half a, __half b) { return __hgt(a, b); }
__device__ inline bool operator>=(__half a, __half b) { return __hge(a, b); }
__device__ inline __half2 operator+(__half2 a, __half2 b) { return __hadd2(a, b); }
__device__ inline __half2 operator-(__half2 a, __half2 b) { return __hsub2(a, b); }
__device__ inline __half2 operator*(__half2 a, __half2 b) { return __hmul2(a, b); }
__device__ inline __half2 &operator+=(__half2 &a, __half2 b) { return a = __hadd2(a, b); }

// `atom.add.noftz.f16x2` is of sm_60, that of one half of sm_70.
__device__ inline __half2 atomicAdd(__half2 *to, __half2 value)
{
    unsigned old;
    asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(to), "r"(__durawarp_bits(value)) : "memory");
    return __durawarp_half2(old);
}
__device__ inline __half atomicAdd(__half *to, __half value)
{
    __half old;
    asm volatile("atom.add.noftz.f16 %0, [%1], %2;" : "=h"(old.bits) : "l"(to), "h"(value.bits) : "memory");
    return old;
}
