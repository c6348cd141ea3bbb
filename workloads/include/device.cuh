// CUDA's names where a compiler lacks them: all of them for clang without CUDA's headers, and for nvcc the few that
// host code beside kernels calls and that CUDA 13 took away. ../compile.sh includes it before each file; built-in
// workloads include it themselves.
#pragma once

#if defined(__clang__) && defined(__CUDA__) && !defined(__CUDACC__)
#include "clang/cuda_runtime.h"
#elif defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ >= 13 && !defined(__CUDACC_RTC__)
#include <cuda_runtime.h>
#define cudaThreadSynchronize cudaDeviceSynchronize
#define cudaThreadExit cudaDeviceReset
#endif
