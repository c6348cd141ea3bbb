// CUDA's integer and floating-point intrinsics and math functions for clang, without NVIDIA's math library (libdevice).
//
// | what | how | error |
// |---|---|---|
// | intrinsics (`__popc`, `__fadd_rz`, `__sinf`, ...) | the PTX instructions that CUDA takes | the instruction's |
// | roundings, `sqrt`, `fma`, minimum, maximum, `fabs` | the same | none |
// | `exp2f`, `log2f`, `rsqrtf` | one approximating instruction, as in CUDA | the instruction's |
// | `expf` `exp10f` `expm1f` `logf` `log10f` `log1pf` | own software in single precision | 4 ulp |
// | `sinf` `cosf` `sincosf` `tanf` `asinf` `acosf` `atanf` `atan2f` `sinhf` `coshf` `tanhf` | the same | 4 ulp |
// | `powf` `hypotf` `cbrtf`, and `fmodf`, which is exact | own software in double precision | 1 ulp |
// | `exp` `exp2` `exp10` `log` `log2` `log10` `sin` `cos` `sincos` `tan` of doubles | own software | 4 ulp |
// | `pow` of doubles with a whole exponent of type `int` | multiplications | one rounding each |
// | the others | refused when compiled: "needs NVIDIA's math library" | |
//
// Sines and cosines of numbers from 2^31 on are NaN. The numbers of instructions are not those of CUDA: a kernel whose
// time hangs on such functions is compiled by nvcc or NVRTC. `tests/kernel/clang_math.rs` measures the errors above.
#pragma once

#define DURAWARP_MATH __device__ inline

// Bits.
DURAWARP_MATH int __popc(unsigned x) { return __builtin_popcount(x); }
DURAWARP_MATH int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
DURAWARP_MATH int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
DURAWARP_MATH int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
DURAWARP_MATH int __ffs(int x) { return __builtin_ffs(x); }
DURAWARP_MATH int __ffsll(long long x) { return __builtin_ffsll(x); }
DURAWARP_MATH unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
DURAWARP_MATH unsigned long long __brevll(unsigned long long x) { return __builtin_bitreverse64(x); }
DURAWARP_MATH unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    unsigned r;
    // Without the bits by which the instruction spreads signs.
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(s & 0x7777));
    return r;
}
#define DURAWARP_SHIFT(name, mode)                                                                           \
    DURAWARP_MATH unsigned name(unsigned low, unsigned high, unsigned by)                                    \
    {                                                                                                        \
        unsigned r;                                                                                          \
        asm("shf." mode ".b32 %0, %1, %2, %3;" : "=r"(r) : "r"(low), "r"(high), "r"(by));                    \
        return r;                                                                                            \
    }
DURAWARP_SHIFT(__funnelshift_l, "l.wrap")
DURAWARP_SHIFT(__funnelshift_lc, "l.clamp")
DURAWARP_SHIFT(__funnelshift_r, "r.wrap")
DURAWARP_SHIFT(__funnelshift_rc, "r.clamp")
#undef DURAWARP_SHIFT

// Integers.
DURAWARP_MATH int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
DURAWARP_MATH unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x * y) >> 32); }
DURAWARP_MATH long long __mul64hi(long long x, long long y) { return __nvvm_mulhi_ll(x, y); }
DURAWARP_MATH unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return __nvvm_mulhi_ull(x, y); }
DURAWARP_MATH int __mul24(int x, int y) { return __nvvm_mul24_i(x, y); }
DURAWARP_MATH unsigned __umul24(unsigned x, unsigned y) { return __nvvm_mul24_ui(x, y); }
DURAWARP_MATH unsigned __sad(int x, int y, unsigned z) { return __nvvm_sad_i(x, y, z); }
DURAWARP_MATH unsigned __usad(unsigned x, unsigned y, unsigned z) { return __nvvm_sad_ui(x, y, z); }
DURAWARP_MATH int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
DURAWARP_MATH int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
DURAWARP_MATH unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
DURAWARP_MATH unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
DURAWARP_MATH int __dp4a(int a, int b, int c)
{
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
    return c;
}
DURAWARP_MATH unsigned __dp4a(unsigned a, unsigned b, unsigned c)
{
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
    return c;
}

#define DURAWARP_ORDER(type)                                                                                 \
    DURAWARP_MATH type min(type x, type y) { return x < y ? x : y; }                                         \
    DURAWARP_MATH type max(type x, type y) { return x > y ? x : y; }
DURAWARP_ORDER(int)
DURAWARP_ORDER(unsigned)
DURAWARP_ORDER(long)
DURAWARP_ORDER(unsigned long)
DURAWARP_ORDER(long long)
DURAWARP_ORDER(unsigned long long)
#undef DURAWARP_ORDER
DURAWARP_MATH unsigned min(int x, unsigned y) { return min((unsigned)x, y); }
DURAWARP_MATH unsigned min(unsigned x, int y) { return min(x, (unsigned)y); }
DURAWARP_MATH unsigned max(int x, unsigned y) { return max((unsigned)x, y); }
DURAWARP_MATH unsigned max(unsigned x, int y) { return max(x, (unsigned)y); }
DURAWARP_MATH int abs(int x) { return x < 0 ? -x : x; }
DURAWARP_MATH long abs(long x) { return x < 0 ? -x : x; }
DURAWARP_MATH long long abs(long long x) { return x < 0 ? -x : x; }
DURAWARP_MATH long labs(long x) { return abs(x); }
DURAWARP_MATH long long llabs(long long x) { return abs(x); }

// Bits of floats.
DURAWARP_MATH int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
DURAWARP_MATH unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
DURAWARP_MATH float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
DURAWARP_MATH float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
DURAWARP_MATH long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
DURAWARP_MATH double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
DURAWARP_MATH int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
DURAWARP_MATH int __double2loint(double x) { return (int)__double_as_longlong(x); }
DURAWARP_MATH double __hiloint2double(int hi, int lo)
{
    return __longlong_as_double((long long)hi << 32 | (unsigned)lo);
}

// Conversions and arithmetic with a rounding in the name: `rn`, `rz`, `rd` (down) and `ru` (up).
#define DURAWARP_CONVERT(name, op, to, from, out, in)                                                        \
    DURAWARP_MATH to name(from x)                                                                            \
    {                                                                                                        \
        to r;                                                                                                \
        asm("cvt." op " %0, %1;" : "=" out(r) : in(x));                                                      \
        return r;                                                                                            \
    }
#define DURAWARP_TO_WHOLE(suffix, mode)                                                                      \
    DURAWARP_CONVERT(__float2int_##suffix, mode ".s32.f32", int, float, "r", "f")                            \
    DURAWARP_CONVERT(__float2uint_##suffix, mode ".u32.f32", unsigned, float, "r", "f")                      \
    DURAWARP_CONVERT(__float2ll_##suffix, mode ".s64.f32", long long, float, "l", "f")                       \
    DURAWARP_CONVERT(__float2ull_##suffix, mode ".u64.f32", unsigned long long, float, "l", "f")             \
    DURAWARP_CONVERT(__double2int_##suffix, mode ".s32.f64", int, double, "r", "d")                          \
    DURAWARP_CONVERT(__double2uint_##suffix, mode ".u32.f64", unsigned, double, "r", "d")                    \
    DURAWARP_CONVERT(__double2ll_##suffix, mode ".s64.f64", long long, double, "l", "d")                     \
    DURAWARP_CONVERT(__double2ull_##suffix, mode ".u64.f64", unsigned long long, double, "l", "d")
DURAWARP_TO_WHOLE(rn, "rni")
DURAWARP_TO_WHOLE(rz, "rzi")
DURAWARP_TO_WHOLE(rd, "rmi")
DURAWARP_TO_WHOLE(ru, "rpi")
#undef DURAWARP_TO_WHOLE
#define DURAWARP_ARITHMETIC(name, op, type, letter)                                                          \
    DURAWARP_MATH type name(type x, type y)                                                                  \
    {                                                                                                        \
        type r;                                                                                              \
        asm(op " %0, %1, %2;" : "=" letter(r) : letter(x), letter(y));                                       \
        return r;                                                                                            \
    }
#define DURAWARP_UNARY(name, op, type, letter)                                                               \
    DURAWARP_MATH type name(type x)                                                                          \
    {                                                                                                        \
        type r;                                                                                              \
        asm(op " %0, %1;" : "=" letter(r) : letter(x));                                                      \
        return r;                                                                                            \
    }
#define DURAWARP_FUSED(name, op, type, letter)                                                               \
    DURAWARP_MATH type name(type x, type y, type z)                                                          \
    {                                                                                                        \
        type r;                                                                                              \
        asm(op " %0, %1, %2, %3;" : "=" letter(r) : letter(x), letter(y), letter(z));                        \
        return r;                                                                                            \
    }
#define DURAWARP_ROUNDED(suffix, mode)                                                                       \
    DURAWARP_CONVERT(__int2float_##suffix, mode ".f32.s32", float, int, "f", "r")                            \
    DURAWARP_CONVERT(__uint2float_##suffix, mode ".f32.u32", float, unsigned, "f", "r")                      \
    DURAWARP_CONVERT(__ll2float_##suffix, mode ".f32.s64", float, long long, "f", "l")                       \
    DURAWARP_CONVERT(__ull2float_##suffix, mode ".f32.u64", float, unsigned long long, "f", "l")             \
    DURAWARP_CONVERT(__ll2double_##suffix, mode ".f64.s64", double, long long, "d", "l")                     \
    DURAWARP_CONVERT(__ull2double_##suffix, mode ".f64.u64", double, unsigned long long, "d", "l")           \
    DURAWARP_CONVERT(__double2float_##suffix, mode ".f32.f64", float, double, "f", "d")                      \
    DURAWARP_ARITHMETIC(__fadd_##suffix, "add." mode ".f32", float, "f")                                     \
    DURAWARP_ARITHMETIC(__fsub_##suffix, "sub." mode ".f32", float, "f")                                     \
    DURAWARP_ARITHMETIC(__fmul_##suffix, "mul." mode ".f32", float, "f")                                     \
    DURAWARP_ARITHMETIC(__fdiv_##suffix, "div." mode ".f32", float, "f")                                     \
    DURAWARP_FUSED(__fmaf_##suffix, "fma." mode ".f32", float, "f")                                          \
    DURAWARP_UNARY(__frcp_##suffix, "rcp." mode ".f32", float, "f")                                          \
    DURAWARP_UNARY(__fsqrt_##suffix, "sqrt." mode ".f32", float, "f")                                        \
    DURAWARP_ARITHMETIC(__dadd_##suffix, "add." mode ".f64", double, "d")                                    \
    DURAWARP_ARITHMETIC(__dsub_##suffix, "sub." mode ".f64", double, "d")                                    \
    DURAWARP_ARITHMETIC(__dmul_##suffix, "mul." mode ".f64", double, "d")                                    \
    DURAWARP_ARITHMETIC(__ddiv_##suffix, "div." mode ".f64", double, "d")                                    \
    DURAWARP_FUSED(__fma_##suffix, "fma." mode ".f64", double, "d")                                          \
    DURAWARP_UNARY(__drcp_##suffix, "rcp." mode ".f64", double, "d")                                         \
    DURAWARP_UNARY(__dsqrt_##suffix, "sqrt." mode ".f64", double, "d")
DURAWARP_ROUNDED(rn, "rn")
DURAWARP_ROUNDED(rz, "rz")
DURAWARP_ROUNDED(rd, "rm")
DURAWARP_ROUNDED(ru, "rp")
#undef DURAWARP_ROUNDED
DURAWARP_MATH double __int2double_rn(int x) { return x; }
DURAWARP_MATH double __uint2double_rn(unsigned x) { return x; }

// Approximations by one or two instructions.
DURAWARP_UNARY(__exp2f_approx, "ex2.approx.f32", float, "f")
DURAWARP_UNARY(__log2f, "lg2.approx.f32", float, "f")
DURAWARP_UNARY(__sinf, "sin.approx.f32", float, "f")
DURAWARP_UNARY(__cosf, "cos.approx.f32", float, "f")
DURAWARP_UNARY(rsqrtf, "rsqrt.approx.f32", float, "f")
DURAWARP_UNARY(__frsqrt_rn, "rsqrt.approx.f32", float, "f")
DURAWARP_UNARY(__saturatef, "cvt.sat.f32.f32", float, "f")
DURAWARP_ARITHMETIC(__fdividef, "div.approx.f32", float, "f")
#undef DURAWARP_FUSED
#undef DURAWARP_UNARY
#undef DURAWARP_ARITHMETIC
#undef DURAWARP_CONVERT
DURAWARP_MATH float __expf(float x) { return __exp2f_approx(x * 1.4426950408889634f); }
DURAWARP_MATH float __exp10f(float x) { return __exp2f_approx(x * 3.3219280948873623f); }
DURAWARP_MATH float __logf(float x) { return __log2f(x) * 0.69314718055994531f; }
DURAWARP_MATH float __log10f(float x) { return __log2f(x) * 0.30102999566398120f; }
DURAWARP_MATH float __tanf(float x) { return __fdividef(__sinf(x), __cosf(x)); }
DURAWARP_MATH void __sincosf(float x, float *s, float *c) { *s = __sinf(x), *c = __cosf(x); }
DURAWARP_MATH float __powf(float x, float y) { return __exp2f_approx(y * __log2f(x)); }

// What PTX has instructions for, in both precisions; the names without `f` are of C++ for both.
#define DURAWARP_BOTH1(name)                                                                                 \
    DURAWARP_MATH float name##f(float x) { return __builtin_##name##f(x); }                                  \
    DURAWARP_MATH float name(float x) { return __builtin_##name##f(x); }                                     \
    DURAWARP_MATH double name(double x) { return __builtin_##name(x); }
#define DURAWARP_BOTH2(name)                                                                                 \
    DURAWARP_MATH float name##f(float x, float y) { return __builtin_##name##f(x, y); }                      \
    DURAWARP_MATH float name(float x, float y) { return __builtin_##name##f(x, y); }                         \
    DURAWARP_MATH double name(double x, double y) { return __builtin_##name(x, y); }
DURAWARP_BOTH1(fabs)
DURAWARP_BOTH1(sqrt)
DURAWARP_BOTH1(floor)
DURAWARP_BOTH1(ceil)
DURAWARP_BOTH1(trunc)
DURAWARP_BOTH1(rint)
DURAWARP_BOTH1(nearbyint)
DURAWARP_BOTH2(fmin)
DURAWARP_BOTH2(fmax)
DURAWARP_BOTH2(copysign)
#undef DURAWARP_BOTH1
#undef DURAWARP_BOTH2
DURAWARP_MATH float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
DURAWARP_MATH float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
DURAWARP_MATH double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
DURAWARP_MATH float abs(float x) { return fabsf(x); }
DURAWARP_MATH double abs(double x) { return fabs(x); }
DURAWARP_MATH float min(float x, float y) { return fminf(x, y); }
DURAWARP_MATH float max(float x, float y) { return fmaxf(x, y); }
DURAWARP_MATH double min(double x, double y) { return fmin(x, y); }
DURAWARP_MATH double max(double x, double y) { return fmax(x, y); }
DURAWARP_MATH double rsqrt(double x) { return 1.0 / sqrt(x); }
DURAWARP_MATH float rsqrt(float x) { return rsqrtf(x); }
DURAWARP_MATH float fdimf(float x, float y) { return x > y ? x - y : x <= y ? 0.0f : x + y; }
DURAWARP_MATH double fdim(double x, double y) { return x > y ? x - y : x <= y ? 0.0 : x + y; }
// Half away from zero.
DURAWARP_MATH float roundf(float x)
{
    float whole = truncf(x);
    return fabsf(x - whole) >= 0.5f ? whole + copysignf(1.0f, x) : copysignf(whole, x);
}
DURAWARP_MATH double round(double x)
{
    double whole = trunc(x);
    return fabs(x - whole) >= 0.5 ? whole + copysign(1.0, x) : copysign(whole, x);
}
DURAWARP_MATH float round(float x) { return roundf(x); }
DURAWARP_MATH long lrintf(float x) { return (long)__float2ll_rn(x); }
DURAWARP_MATH long lrint(double x) { return __double2ll_rn(x); }
DURAWARP_MATH long lroundf(float x) { return (long)roundf(x); }
DURAWARP_MATH long lround(double x) { return (long)round(x); }
#define DURAWARP_CLASS(name, type, builtin)                                                                  \
    DURAWARP_MATH bool name(type x) { return builtin; }
DURAWARP_CLASS(isnan, float, x != x)
DURAWARP_CLASS(isnan, double, x != x)
DURAWARP_CLASS(isinf, float, fabsf(x) == __builtin_inff())
DURAWARP_CLASS(isinf, double, fabs(x) == __builtin_inf())
DURAWARP_CLASS(isfinite, float, fabsf(x) < __builtin_inff())
DURAWARP_CLASS(isfinite, double, fabs(x) < __builtin_inf())
DURAWARP_CLASS(signbit, float, __float_as_int(x) < 0)
DURAWARP_CLASS(signbit, double, __double_as_longlong(x) < 0)
#undef DURAWARP_CLASS

// x 2^n, exact until it leaves the range: three factors that are powers of two.
DURAWARP_MATH float ldexpf(float x, int n)
{
    n = n < -300 ? -300 : n > 300 ? 300 : n;
    int third = n / 3, rest = n - 2 * third;
    float by = __int_as_float((third + 127) << 23);
    return x * by * by * __int_as_float((rest + 127) << 23);
}
DURAWARP_MATH double ldexp(double x, int n)
{
    n = n < -2400 ? -2400 : n > 2400 ? 2400 : n;
    int third = n / 3, rest = n - 2 * third;
    double by = __longlong_as_double((long long)(third + 1023) << 52);
    return x * by * by * __longlong_as_double((long long)(rest + 1023) << 52);
}
DURAWARP_MATH float ldexp(float x, int n) { return ldexpf(x, n); }
DURAWARP_MATH float scalbnf(float x, int n) { return ldexpf(x, n); }
DURAWARP_MATH double scalbn(double x, int n) { return ldexp(x, n); }
DURAWARP_MATH float frexpf(float x, int *n)
{
    *n = 0;
    if (x == 0 || !isfinite(x))
        return x;
    int down = 0;
    if (fabsf(x) < 0x1p-126f)
        x *= 0x1p32f, down = 32;
    int bits = __float_as_int(x);
    *n = ((bits >> 23) & 255) - 126 - down;
    return __int_as_float((bits & 0x807fffff) | 0x3f000000);
}
DURAWARP_MATH double frexp(double x, int *n)
{
    *n = 0;
    if (x == 0 || !isfinite(x))
        return x;
    int down = 0;
    if (fabs(x) < 0x1p-1022)
        x *= 0x1p64, down = 64;
    long long bits = __double_as_longlong(x);
    *n = (int)((bits >> 52) & 2047) - 1022 - down;
    return __longlong_as_double((bits & 0x800fffffffffffffll) | 0x3fe0000000000000ll);
}
DURAWARP_MATH float modff(float x, float *whole)
{
    *whole = truncf(x);
    return copysignf(isinf(x) ? 0.0f : x - *whole, x);
}
DURAWARP_MATH double modf(double x, double *whole)
{
    *whole = trunc(x);
    return copysign(isinf(x) ? 0.0 : x - *whole, x);
}

// Exponentials: x = n ln 2 + r, then e^r. The first constant of each pair has so few bits that n times it is exact.
DURAWARP_MATH float __durawarp_expf(float x, int doublings)
{
    x = x > 150.0f ? 150.0f : x < -150.0f ? -150.0f : x;
    float n = rintf(x * 1.4426950408889634f);
    float r = fmaf(n, 2.1219444170128554e-4f, fmaf(n, -0.693359375f, x));
    return ldexpf(__exp2f_approx(r * 1.4426950408889634f), (int)n + doublings);
}
DURAWARP_MATH float expf(float x) { return __durawarp_expf(x, 0); }
DURAWARP_MATH float exp2f(float x) { return __exp2f_approx(x); }
DURAWARP_MATH float exp10f(float x)
{
    x = x > 70.0f ? 70.0f : x < -70.0f ? -70.0f : x;
    float n = rintf(x * 3.3219280948873623f);
    float r = fmaf(n, -4.605039066518657e-6f, fmaf(n, -0.301025390625f, x));
    return ldexpf(__exp2f_approx(r * 3.3219280948873623f), (int)n);
}
DURAWARP_MATH float expm1f(float x)
{
    if (!(fabsf(x) < 0.5f))
        return expf(x) - 1.0f;
    float sum = 1.0f / 40320;
    sum = fmaf(sum, x, 1.0f / 5040);
    sum = fmaf(sum, x, 1.0f / 720);
    sum = fmaf(sum, x, 1.0f / 120);
    sum = fmaf(sum, x, 1.0f / 24);
    sum = fmaf(sum, x, 1.0f / 6);
    return fmaf(fmaf(sum, x, 0.5f) * x, x, x);
}
DURAWARP_MATH double exp(double x)
{
    x = x > 1500.0 ? 1500.0 : x < -1500.0 ? -1500.0 : x;
    double n = rint(x * 1.4426950408889634);
    double r = fma(n, -1.9082149292705877e-10, fma(n, -0.6931471803691238, x));
    double sum = 1.0 / 6227020800;
    double inverse[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                        1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0};
    _Pragma("unroll") for (int i = 0; i < 13; i++) sum = fma(sum, r, inverse[i]);
    return ldexp(sum, (int)n);
}
DURAWARP_MATH double exp2(double x)
{
    if (!(fabs(x) < 2000))
        return x > 0 ? __builtin_inf() : x < 0 ? 0.0 : x;
    double n = rint(x);
    return ldexp(exp((x - n) * 0.6931471805599453), (int)n);
}
DURAWARP_MATH double exp10(double x)
{
    if (!(fabs(x) < 700))
        return x > 0 ? __builtin_inf() : x < 0 ? 0.0 : x;
    double n = rint(x * 3.321928094887362);
    // 10^x = 2^n 10^r; the pair is log10(2).
    double r = fma(n, -8.241712586023572e-13, fma(n, -0x1.34413509f4p-2, x));
    return ldexp(exp(r * 2.302585092994046), (int)n);
}

// Logarithms: x = 2^k (1 + f), and log(1 + f) by the series of artanh(f / (2 + f)).
DURAWARP_MATH float logf(float x)
{
    if (!(x > 0) || x == __builtin_inff())
        return x == 0 ? -__builtin_inff() : x < 0 ? __builtin_nanf("") : x;
    int k = 0;
    if (x < 0x1p-126f)
        x *= 0x1p32f, k = -32;
    // From the square root of 1/2 on.
    int bits = __float_as_int(x) - 0x3f3504f3;
    k += bits >> 23;
    float f = __int_as_float((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    float s = f / (2.0f + f), z = s * s;
    float r = z * fmaf(z, fmaf(z, fmaf(z, fmaf(z, 2.0f / 11, 2.0f / 9), 2.0f / 7), 2.0f / 5), 2.0f / 3);
    float half = 0.5f * f * f, n = (float)k;
    return fmaf(n, 0.693145751953125f, f - (half - fmaf(s, half + r, n * 1.428606765330187e-6f)));
}
DURAWARP_MATH float log2f(float x) { return __log2f(x); }
DURAWARP_MATH float log10f(float x) { return logf(x) * 0.43429448190325182f; }
DURAWARP_MATH float log1pf(float x)
{
    float sum = 1.0f + x;
    return sum == 1.0f || x == __builtin_inff() ? x : logf(sum) * (x / (sum - 1.0f));
}
DURAWARP_MATH double log(double x)
{
    if (!(x > 0) || x == __builtin_inf())
        return x == 0 ? -__builtin_inf() : x < 0 ? __builtin_nan("") : x;
    int k = 0;
    if (x < 0x1p-1022)
        x *= 0x1p64, k = -64;
    long long bits = __double_as_longlong(x) - 0x3fe6a09e667f3bcdll;
    k += (int)(bits >> 52);
    double f = __longlong_as_double((bits & 0xfffffffffffffll) + 0x3fe6a09e667f3bcdll) - 1.0;
    double s = f / (2.0 + f), z = s * s, r = 0;
    _Pragma("unroll") for (int i = 11; i > 0; i--) r = z * (r + 2.0 / (2 * i + 1));
    double half = 0.5 * f * f;
    return fma((double)k, 0.6931471803691238, f - (half - fma(s, half + r, k * 1.9082149292705877e-10)));
}
DURAWARP_MATH double log2(double x)
{
    // Powers of two have exact logarithms.
    int k;
    return frexp(x, &k) == 0.5 ? k - 1.0 : log(x) * 1.4426950408889634;
}
DURAWARP_MATH double log10(double x) { return log(x) * 0.4342944819032518; }

// Powers, by doubles: |x|^y = e^(y log |x|).
DURAWARP_MATH float powf(float x, float y)
{
    if (y == 0 || x == 1.0f)
        return 1.0f;
    bool whole = truncf(y) == y, odd = whole && fabsf(y) < 0x1p24f && ((int)fabsf(y) & 1);
    if (isnan(x) || isnan(y))
        return x + y;
    if (x < 0 && !whole && !isinf(x))
        return __builtin_nanf("");
    float size = fabsf(x), power;
    if (size == 1.0f)
        power = 1.0f;
    else if (size == 0 || isinf(size))
        power = (size == 0) == (y > 0) ? 0.0f : __builtin_inff();
    else if (isinf(y))
        power = (size < 1.0f) == (y > 0) ? 0.0f : __builtin_inff();
    else
        power = (float)exp((double)y * log((double)size));
    return odd && signbit(x) ? -power : power;
}
DURAWARP_MATH double pow(double x, int n)
{
    double power = 1.0, square = n < 0 ? 1.0 / x : x;
    for (unsigned rest = n < 0 ? 0u - (unsigned)n : (unsigned)n; rest; rest >>= 1, square *= square)
        if (rest & 1)
            power *= square;
    return power;
}
DURAWARP_MATH float cbrtf(float x)
{
    float size = fabsf(x);
    if (!(size > 0) || isinf(size))
        return x;
    double root = __exp2f_approx(__log2f(size) * (1.0f / 3));
    // Two steps of Newton's method.
    root -= (root * root * root - size) / (3 * root * root);
    root -= (root * root * root - size) / (3 * root * root);
    return copysignf((float)root, x);
}
DURAWARP_MATH float hypotf(float x, float y)
{
    return isinf(x) || isinf(y) ? __builtin_inff() : (float)sqrt((double)x * x + (double)y * y);
}
DURAWARP_MATH float norm3df(float x, float y, float z)
{
    return (float)sqrt((double)x * x + (double)y * y + (double)z * z);
}
// Exact: steps of 2^48 at most, whose products are exact in double precision.
DURAWARP_MATH float fmodf(float x, float y)
{
    double rest = fabsf(x), by = fabsf(y);
    if (!(by > 0) || !isfinite(x))
        return __builtin_nanf("");
    while (rest >= by && isfinite(y)) {
        double step = by;
        while (step * 0x1p24 <= rest)
            step *= 0x1p24;
        rest = fma(-trunc(rest / step), step, rest);
        if (rest < 0)
            rest += step;
    }
    return copysignf((float)rest, x);
}

// Angles: x = n pi/2 + r. The parts of pi/2 have all their bits, and the first subtraction is exact since r is small.
DURAWARP_MATH float __durawarp_quarters(float x, int *quarter)
{
    if (!(fabsf(x) >= 48039.0f)) {
        float n = rintf(x * 0.63661977236758134f);
        *quarter = (int)n;
        float r = fmaf(n, 0x1.777a5cp-25f, fmaf(n, -0x1.921fb6p+0f, x));
        return fmaf(n, 0x1.ee59dap-50f, r);
    }
    if (!(fabsf(x) < 0x1p31f)) {
        *quarter = 0;
        return __builtin_nanf("");
    }
    double n = rint(x * 0.63661977236758134);
    *quarter = (int)n;
    return (float)fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p+0, (double)x));
}
DURAWARP_MATH float __durawarp_sinf(float r)
{
    float z = r * r;
    float sum = fmaf(z, fmaf(z, fmaf(z, 1.0f / 362880, -1.0f / 5040), 1.0f / 120), -1.0f / 6);
    return fmaf(sum * z, r, r);
}
DURAWARP_MATH float __durawarp_cosf(float r)
{
    float z = r * r;
    float sum = fmaf(z, fmaf(z, fmaf(z, -1.0f / 3628800, 1.0f / 40320), -1.0f / 720), 1.0f / 24);
    return fmaf(z * z, sum, fmaf(z, -0.5f, 1.0f));
}
DURAWARP_MATH void sincosf(float x, float *s, float *c)
{
    int quarter;
    float r = __durawarp_quarters(x, &quarter), sine = __durawarp_sinf(r), cosine = __durawarp_cosf(r);
    float first = quarter & 1 ? cosine : sine, second = quarter & 1 ? sine : cosine;
    *s = quarter & 2 ? -first : first;
    *c = (quarter + 1) & 2 ? -second : second;
}
#define DURAWARP_OF_BOTH(type, name, both, value)                                                            \
    DURAWARP_MATH type name(type x)                                                                          \
    {                                                                                                        \
        type s, c;                                                                                           \
        both(x, &s, &c);                                                                                     \
        return value;                                                                                        \
    }
DURAWARP_OF_BOTH(float, sinf, sincosf, s)
DURAWARP_OF_BOTH(float, cosf, sincosf, c)
DURAWARP_OF_BOTH(float, tanf, sincosf, s / c)
DURAWARP_MATH void sincos(double x, double *s, double *c)
{
    double n = rint(x * 0.63661977236758134);
    double r = fma(n, 0x1.f1976b7ed8fbcp-110, fma(n, -0x1.1a62633145c07p-54, fma(n, -0x1.921fb54442d18p+0, x)));
    if (!(fabs(x) < 0x1p31))
        n = 0, r = __builtin_nan("");
    double z = r * r, sine = 0, cosine = 0, factor = 1;
    double odd[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0,
                    -1.0 / 1307674368000.0, 1.0 / 355687428096000.0};
    double even[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.0,
                     1.0 / 20922789888000.0, -1.0 / 6402373705728000.0};
    _Pragma("unroll") for (int i = 7; i >= 0; i--)
    {
        sine = fma(sine, z, odd[i]);
        cosine = fma(cosine, z, even[i]);
    }
    sine = fma(sine * z, r, r);
    factor = fma(z, -0.5, 1.0);
    // What 1 - z/2 lost in its rounding is given back.
    cosine = factor + (fma(z * z, cosine, (1.0 - factor) - 0.5 * z));
    int quarter = (int)n;
    double first = quarter & 1 ? cosine : sine, second = quarter & 1 ? sine : cosine;
    *s = quarter & 2 ? -first : first;
    *c = (quarter + 1) & 2 ? -second : second;
}
DURAWARP_OF_BOTH(double, sin, sincos, s)
DURAWARP_OF_BOTH(double, cos, sincos, c)
DURAWARP_OF_BOTH(double, tan, sincos, s / c)
#undef DURAWARP_OF_BOTH

// Hyperbolic functions.
DURAWARP_MATH float sinhf(float x)
{
    float size = fabsf(x);
    if (size < 1.0f) {
        float z = x * x;
        float sum = fmaf(z, fmaf(z, fmaf(z, 1.0f / 362880, 1.0f / 5040), 1.0f / 120), 1.0f / 6);
        return fmaf(sum * z, x, x);
    }
    float e = __durawarp_expf(size, -1);
    return copysignf(e - 0.25f / e, x);
}
DURAWARP_MATH float coshf(float x)
{
    float e = __durawarp_expf(fabsf(x), -1);
    return e + 0.25f / e;
}
DURAWARP_MATH float tanhf(float x)
{
    float size = fabsf(x);
    // e^2x - 1 = (e^x - 1) (e^x + 1).
    float half = expm1f(size), e = half * (half + 2.0f);
    float t = size < 0.5f ? e / (e + 2.0f) : 1.0f - 2.0f / (expf(2.0f * size) + 1.0f);
    return isnan(x) ? x : copysignf(t, x);
}

// The arc tangent of y / x in [0, 1], then the octant. Above tan(pi/8) it is pi/4 more than that of (t - 1) / (t + 1).
DURAWARP_MATH float __durawarp_atan(float y, float x)
{
    bool far = y > 0.41421356f * x;
    float t = far ? (y - x) / (y + x) : y / x, z = t * t;
    float sum = 1.0f / 17;
    _Pragma("unroll") for (int i = 15; i > 1; i -= 2) sum = 1.0f / i - sum * z;
    float angle = fmaf(-sum * z, t, t);
    return far ? 0.78539816339744831f + angle : angle;
}
DURAWARP_MATH float atan2f(float y, float x)
{
    float ay = fabsf(y), ax = fabsf(x);
    if (isnan(x) || isnan(y))
        return x + y;
    float angle;
    if (ay == ax)
        angle = ay == 0 ? 0.0f : 0.78539816339744831f;
    else if (ay > ax)
        angle = isinf(ay) ? 1.5707963267948966f : 1.5707963267948966f - __durawarp_atan(ax, ay);
    else
        angle = isinf(ax) ? 0.0f : __durawarp_atan(ay, ax);
    if (signbit(x))
        angle = 3.1415926535897932f - angle;
    return copysignf(angle, y);
}
DURAWARP_MATH float atanf(float x) { return atan2f(x, 1.0f); }
DURAWARP_MATH float asinf(float x) { return atan2f(x, sqrtf((1.0f - x) * (1.0f + x))); }
DURAWARP_MATH float acosf(float x) { return 2.0f * atan2f(sqrtf(1.0f - x), sqrtf(1.0f + x)); }

// Names of C++ without `f`.
#define DURAWARP_OVERLOAD(name) DURAWARP_MATH float name(float x) { return name##f(x); }
DURAWARP_OVERLOAD(exp)
DURAWARP_OVERLOAD(exp2)
DURAWARP_OVERLOAD(expm1)
DURAWARP_OVERLOAD(log)
DURAWARP_OVERLOAD(log2)
DURAWARP_OVERLOAD(log10)
DURAWARP_OVERLOAD(log1p)
DURAWARP_OVERLOAD(sin)
DURAWARP_OVERLOAD(cos)
DURAWARP_OVERLOAD(tan)
DURAWARP_OVERLOAD(sinh)
DURAWARP_OVERLOAD(cosh)
DURAWARP_OVERLOAD(tanh)
DURAWARP_OVERLOAD(asin)
DURAWARP_OVERLOAD(acos)
DURAWARP_OVERLOAD(atan)
DURAWARP_OVERLOAD(cbrt)
#undef DURAWARP_OVERLOAD
DURAWARP_MATH float pow(float x, float y) { return powf(x, y); }
DURAWARP_MATH float pow(float x, int y) { return powf(x, (float)y); }
DURAWARP_MATH float atan2(float y, float x) { return atan2f(y, x); }
DURAWARP_MATH float fmod(float x, float y) { return fmodf(x, y); }
DURAWARP_MATH float hypot(float x, float y) { return hypotf(x, y); }

// Whole numbers are taken as doubles, as in C++.
template <bool, class> struct __durawarp_if {};
template <class T> struct __durawarp_if<true, T> {
    typedef T type;
};
#define DURAWARP_WHOLE(name)                                                                                 \
    template <class T> DURAWARP_MATH typename __durawarp_if<(T(1) / 2 == 0), double>::type name(T x)         \
    {                                                                                                        \
        return name((double)x);                                                                              \
    }
DURAWARP_WHOLE(fabs)
DURAWARP_WHOLE(sqrt)
DURAWARP_WHOLE(floor)
DURAWARP_WHOLE(ceil)
DURAWARP_WHOLE(exp)
DURAWARP_WHOLE(log)
DURAWARP_WHOLE(log2)
DURAWARP_WHOLE(log10)
DURAWARP_WHOLE(sin)
DURAWARP_WHOLE(cos)
#undef DURAWARP_WHOLE
DURAWARP_MATH unsigned umin(unsigned x, unsigned y) { return min(x, y); }
DURAWARP_MATH unsigned umax(unsigned x, unsigned y) { return max(x, y); }

// What is missing says so, rather than being taken from the host.
#define DURAWARP_MISSING __attribute__((unavailable("needs NVIDIA's math library: compile with nvcc or NVRTC")))
#define DURAWARP_MISSING1(name, type) DURAWARP_MISSING __device__ type name(type);
#define DURAWARP_MISSING2(name, type) DURAWARP_MISSING __device__ type name(type, type);
DURAWARP_MISSING1(erff, float)
DURAWARP_MISSING1(erfcf, float)
DURAWARP_MISSING1(erfinvf, float)
DURAWARP_MISSING1(erfcinvf, float)
DURAWARP_MISSING1(erfcxf, float)
DURAWARP_MISSING1(normcdff, float)
DURAWARP_MISSING1(normcdfinvf, float)
DURAWARP_MISSING1(lgammaf, float)
DURAWARP_MISSING1(tgammaf, float)
DURAWARP_MISSING1(j0f, float)
DURAWARP_MISSING1(j1f, float)
DURAWARP_MISSING1(y0f, float)
DURAWARP_MISSING1(y1f, float)
DURAWARP_MISSING1(sinpif, float)
DURAWARP_MISSING1(cospif, float)
DURAWARP_MISSING1(asinhf, float)
DURAWARP_MISSING1(acoshf, float)
DURAWARP_MISSING1(atanhf, float)
DURAWARP_MISSING1(erf, double)
DURAWARP_MISSING1(erfc, double)
DURAWARP_MISSING1(erfinv, double)
DURAWARP_MISSING1(lgamma, double)
DURAWARP_MISSING1(tgamma, double)
DURAWARP_MISSING1(sinh, double)
DURAWARP_MISSING1(cosh, double)
DURAWARP_MISSING1(tanh, double)
DURAWARP_MISSING1(asin, double)
DURAWARP_MISSING1(acos, double)
DURAWARP_MISSING1(atan, double)
DURAWARP_MISSING1(asinh, double)
DURAWARP_MISSING1(acosh, double)
DURAWARP_MISSING1(atanh, double)
DURAWARP_MISSING1(expm1, double)
DURAWARP_MISSING1(log1p, double)
DURAWARP_MISSING1(cbrt, double)
DURAWARP_MISSING2(remainderf, float)
DURAWARP_MISSING2(nextafterf, float)
DURAWARP_MISSING2(pow, double)
DURAWARP_MISSING2(atan2, double)
DURAWARP_MISSING2(fmod, double)
DURAWARP_MISSING2(hypot, double)
DURAWARP_MISSING2(remainder, double)
#undef DURAWARP_MISSING2
#undef DURAWARP_MISSING1
#undef DURAWARP_MISSING
#undef DURAWARP_MATH

// In `std`, too, before `<cmath>` comes: its functions are the host's wherever the device has one of the same signature.
namespace std {
using ::abs;
using ::acos;
using ::asin;
using ::atan;
using ::atan2;
using ::cbrt;
using ::ceil;
using ::copysign;
using ::cos;
using ::cosh;
using ::exp;
using ::exp2;
using ::expm1;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::fmin;
using ::fmod;
using ::hypot;
using ::isfinite;
using ::isinf;
using ::isnan;
using ::log;
using ::log10;
using ::log1p;
using ::log2;
using ::nearbyint;
using ::pow;
using ::rint;
using ::round;
using ::signbit;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;
using ::trunc;
}
