// What a kernel source needs of CUDA, without the CUDA toolkit: compiled by clang alone (see ../compile.sh).
#pragma once

#include <__clang_cuda_builtin_vars.h>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

// `__syncthreads` is a builtin of clang, as in CUDA.
__device__ inline unsigned atomic_add(unsigned *to, unsigned value)
{
    return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

__device__ inline unsigned atomic_min(unsigned *to, unsigned value)
{
    return __atomic_fetch_min(to, value, __ATOMIC_RELAXED);
}

__device__ inline unsigned long long atomic_xor(unsigned long long *to, unsigned long long value)
{
    return __atomic_fetch_xor(to, value, __ATOMIC_RELAXED);
}
