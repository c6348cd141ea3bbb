// What CUDA's `cuda_runtime.h` gives device code, for clang without CUDA's headers.
//
// Served: keywords, vector types, warp functions, barriers, fences, atomics of all types and scopes, loads and stores with
// cache operators, integer and floating-point intrinsics, math functions (math.cuh says which, and how exact). Of the
// host's functions those are declared that samples call beside their kernels: they are parsed and never compiled.
// Not served: textures, surfaces, `printf` in kernels, `malloc` in kernels, dynamic parallelism.
#pragma once

// The names by which headers know CUDA's.
#define __DRIVER_TYPES_H__
#define __VECTOR_TYPES_H__

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((device))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __builtin_align__(n) __align__(n)
#if !__has_feature(cuda_noinline_keyword)
#define __noinline__ __attribute__((noinline))
#endif

#include "vector_types.h"
#include <__clang_cuda_builtin_vars.h>

// The conversions that clang's header declares.
__device__ inline __cuda_builtin_threadIdx_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_blockIdx_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_threadIdx_t::operator dim3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_blockIdx_t::operator dim3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_blockDim_t::operator dim3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_gridDim_t::operator dim3() const { return {x, y, z}; }
#if __clang_major__ >= 15
__device__ inline __cuda_builtin_blockDim_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_gridDim_t::operator uint3() const { return {x, y, z}; }
#endif

#include "atomics.cuh"
#include "math.cuh"
#include "memory.cuh"
#include "warp.cuh"
#include "host.cuh"

// What CUDA's header brings of the host's, after the device's functions: those of the same signature are then the host's only.
#if __has_include(<math.h>)
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#endif
