// CUDA's vector types, their `make_` functions and `dim3`.
#pragma once

#define DURAWARP_VECTORS(name, type, a2, a4)                                                                 \
    struct name##1 { type x; };                                                                              \
    struct __align__(a2) name##2 { type x, y; };                                                             \
    struct name##3 { type x, y, z; };                                                                        \
    struct __align__(a4) name##4 { type x, y, z, w; };                                                       \
    __host__ __device__ inline name##1 make_##name##1(type x) { return {x}; }                                \
    __host__ __device__ inline name##2 make_##name##2(type x, type y) { return {x, y}; }                     \
    __host__ __device__ inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }          \
    __host__ __device__ inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

// Alignments of two and of four elements: sixteen bytes at most.
DURAWARP_VECTORS(char, signed char, 2, 4)
DURAWARP_VECTORS(uchar, unsigned char, 2, 4)
DURAWARP_VECTORS(short, short, 4, 8)
DURAWARP_VECTORS(ushort, unsigned short, 4, 8)
DURAWARP_VECTORS(int, int, 8, 16)
DURAWARP_VECTORS(uint, unsigned, 8, 16)
DURAWARP_VECTORS(long, long, 16, 16)
DURAWARP_VECTORS(ulong, unsigned long, 16, 16)
DURAWARP_VECTORS(longlong, long long, 16, 16)
DURAWARP_VECTORS(ulonglong, unsigned long long, 16, 16)
DURAWARP_VECTORS(float, float, 8, 16)
DURAWARP_VECTORS(double, double, 16, 16)
#undef DURAWARP_VECTORS

struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    __host__ __device__ constexpr operator uint3() const { return {x, y, z}; }
};
