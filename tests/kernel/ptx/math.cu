// Math functions that workloads/include/clang/math.cuh has in software: a kernel each. Compiled to math.clang.ptx by
// build.sh; `tests/kernel/clang_math.rs` measures their errors.
#define EACH(name, type, value)                                                                              \
    extern "C" __global__ void name##_(const type *x, const type *y, type *r, int n)                         \
    {                                                                                                        \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                       \
        if (i < n)                                                                                           \
            r[i] = value;                                                                                    \
    }
#define ONE(name) EACH(name, float, name(x[i]))
#define TWO(name) EACH(name, float, name(x[i], y[i]))
#define WIDE(name) EACH(name, double, name(x[i]))

ONE(expf)
ONE(exp2f)
ONE(exp10f)
ONE(expm1f)
ONE(logf)
ONE(log2f)
ONE(log10f)
ONE(log1pf)
ONE(sinf)
ONE(cosf)
ONE(tanf)
ONE(sinhf)
ONE(coshf)
ONE(tanhf)
ONE(asinf)
ONE(acosf)
ONE(atanf)
ONE(cbrtf)
ONE(roundf)
TWO(powf)
TWO(atan2f)
TWO(hypotf)
TWO(fmodf)
WIDE(exp)
WIDE(exp2)
WIDE(exp10)
WIDE(log)
WIDE(log2)
WIDE(log10)
WIDE(sin)
WIDE(cos)
WIDE(tan)
WIDE(round)
EACH(ldexpf, float, ldexpf(x[i], (int)y[i]))
EACH(ldexp, double, ldexp(x[i], (int)y[i]))

__device__ float halves(float x)
{
    int n;
    float m = frexpf(x, &n), whole;
    float part = modff(x, &whole);
    return whole + part == x && ldexpf(m, n) == x && (x == 0 || (fabsf(m) >= 0.5f && fabsf(m) < 1)) ? x : 12345.0f;
}
ONE(halves)
