// Atomics of CUDA: every type and operation of the CUDA programming guide for sm_60, relaxed, of the device's scope; names
// that end in `_block` and `_system` are of those scopes.
#pragma once

// Of the device's scope clang's own operations, which it resolves to shared or global memory where it can.
#define DURAWARP_FETCH(name, builtin, type)                                                                  \
    __device__ inline type name(type *to, type value) { return builtin(to, value, __ATOMIC_RELAXED); }
#define DURAWARP_ALL(name, builtin)                                                                          \
    DURAWARP_FETCH(name, builtin, int)                                                                       \
    DURAWARP_FETCH(name, builtin, unsigned)                                                                  \
    DURAWARP_FETCH(name, builtin, long long)                                                                 \
    DURAWARP_FETCH(name, builtin, unsigned long long)
DURAWARP_FETCH(atomicAdd, __atomic_fetch_add, int)
DURAWARP_FETCH(atomicAdd, __atomic_fetch_add, unsigned)
DURAWARP_FETCH(atomicAdd, __atomic_fetch_add, unsigned long long)
DURAWARP_FETCH(atomicSub, __atomic_fetch_sub, int)
DURAWARP_FETCH(atomicSub, __atomic_fetch_sub, unsigned)
DURAWARP_ALL(atomicMin, __atomic_fetch_min)
DURAWARP_ALL(atomicMax, __atomic_fetch_max)
DURAWARP_ALL(atomicAnd, __atomic_fetch_and)
DURAWARP_ALL(atomicOr, __atomic_fetch_or)
DURAWARP_ALL(atomicXor, __atomic_fetch_xor)
DURAWARP_FETCH(atomicExch, __atomic_exchange_n, int)
DURAWARP_FETCH(atomicExch, __atomic_exchange_n, unsigned)
DURAWARP_FETCH(atomicExch, __atomic_exchange_n, unsigned long long)
#undef DURAWARP_ALL
#undef DURAWARP_FETCH

__device__ inline float atomicAdd(float *to, float value) { return __nvvm_atom_add_gen_f(to, value); }
__device__ inline double atomicAdd(double *to, double value) { return __nvvm_atom_add_gen_d(to, value); }

__device__ inline float atomicExch(float *to, float value)
{
    int old = __atomic_exchange_n((int *)to, __builtin_bit_cast(int, value), __ATOMIC_RELAXED);
    return __builtin_bit_cast(float, old);
}

__device__ inline unsigned atomicInc(unsigned *to, unsigned limit) { return __nvvm_atom_inc_gen_ui(to, limit); }
__device__ inline unsigned atomicDec(unsigned *to, unsigned limit) { return __nvvm_atom_dec_gen_ui(to, limit); }

#define DURAWARP_CAS(type)                                                                                   \
    __device__ inline type atomicCAS(type *to, type compare, type value)                                     \
    {                                                                                                        \
        __atomic_compare_exchange_n(to, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);         \
        return compare;                                                                                      \
    }
DURAWARP_CAS(int)
DURAWARP_CAS(unsigned)
DURAWARP_CAS(unsigned long long)
#undef DURAWARP_CAS

__device__ inline unsigned short atomicCAS(unsigned short *to, unsigned short compare, unsigned short value)
{
    unsigned short old;
    asm volatile("atom.cas.b16 %0, [%1], %2, %3;" : "=h"(old) : "l"(to), "h"(compare), "h"(value) : "memory");
    return old;
}

// The other two scopes by instruction.
#define DURAWARP_SCOPED(name, scope, op, letter, type)                                                       \
    __device__ inline type name(type *to, type value)                                                        \
    {                                                                                                        \
        type old;                                                                                            \
        asm volatile("atom." scope "." op " %0, [%1], %2;"                                                   \
                     : "=" letter(old) : "l"(to), letter(value) : "memory");                                 \
        return old;                                                                                          \
    }
#define DURAWARP_CAS(name, scope, op, letter, type)                                                          \
    __device__ inline type name(type *to, type compare, type value)                                          \
    {                                                                                                        \
        type old;                                                                                            \
        asm volatile("atom." scope "." op " %0, [%1], %2, %3;"                                               \
                     : "=" letter(old) : "l"(to), letter(compare), letter(value) : "memory");                \
        return old;                                                                                          \
    }
#define DURAWARP_SUB(name, add, type)                                                                        \
    __device__ inline type name(type *to, type value) { return add(to, (type)(0 - value)); }
#define DURAWARP_ORDERED(name, scope, op)                                                                    \
    DURAWARP_SCOPED(name, scope, op ".s32", "r", int)                                                        \
    DURAWARP_SCOPED(name, scope, op ".u32", "r", unsigned)                                                   \
    DURAWARP_SCOPED(name, scope, op ".s64", "l", long long)                                                  \
    DURAWARP_SCOPED(name, scope, op ".u64", "l", unsigned long long)
#define DURAWARP_BITS(name, scope, op)                                                                       \
    DURAWARP_SCOPED(name, scope, op ".b32", "r", int)                                                        \
    DURAWARP_SCOPED(name, scope, op ".b32", "r", unsigned)                                                   \
    DURAWARP_SCOPED(name, scope, op ".b64", "l", long long)                                                  \
    DURAWARP_SCOPED(name, scope, op ".b64", "l", unsigned long long)
#define DURAWARP_SCOPE(suffix, scope)                                                                        \
    DURAWARP_SCOPED(atomicAdd##suffix, scope, "add.s32", "r", int)                                           \
    DURAWARP_SCOPED(atomicAdd##suffix, scope, "add.u32", "r", unsigned)                                      \
    DURAWARP_SCOPED(atomicAdd##suffix, scope, "add.u64", "l", unsigned long long)                            \
    DURAWARP_SCOPED(atomicAdd##suffix, scope, "add.f32", "f", float)                                         \
    DURAWARP_SCOPED(atomicAdd##suffix, scope, "add.f64", "d", double)                                        \
    DURAWARP_SUB(atomicSub##suffix, atomicAdd##suffix, int)                                                  \
    DURAWARP_SUB(atomicSub##suffix, atomicAdd##suffix, unsigned)                                             \
    DURAWARP_ORDERED(atomicMin##suffix, scope, "min")                                                        \
    DURAWARP_ORDERED(atomicMax##suffix, scope, "max")                                                        \
    DURAWARP_BITS(atomicAnd##suffix, scope, "and")                                                           \
    DURAWARP_BITS(atomicOr##suffix, scope, "or")                                                             \
    DURAWARP_BITS(atomicXor##suffix, scope, "xor")                                                           \
    DURAWARP_SCOPED(atomicExch##suffix, scope, "exch.b32", "r", int)                                         \
    DURAWARP_SCOPED(atomicExch##suffix, scope, "exch.b32", "r", unsigned)                                    \
    DURAWARP_SCOPED(atomicExch##suffix, scope, "exch.b64", "l", unsigned long long)                          \
    DURAWARP_SCOPED(atomicExch##suffix, scope, "exch.b32", "f", float)                                       \
    DURAWARP_SCOPED(atomicInc##suffix, scope, "inc.u32", "r", unsigned)                                      \
    DURAWARP_SCOPED(atomicDec##suffix, scope, "dec.u32", "r", unsigned)                                      \
    DURAWARP_CAS(atomicCAS##suffix, scope, "cas.b32", "r", int)                                              \
    DURAWARP_CAS(atomicCAS##suffix, scope, "cas.b32", "r", unsigned)                                         \
    DURAWARP_CAS(atomicCAS##suffix, scope, "cas.b64", "l", unsigned long long)
DURAWARP_SCOPE(_block, "cta")
DURAWARP_SCOPE(_system, "sys")
#undef DURAWARP_SCOPE
#undef DURAWARP_BITS
#undef DURAWARP_ORDERED
#undef DURAWARP_SUB
#undef DURAWARP_CAS
#undef DURAWARP_SCOPED
