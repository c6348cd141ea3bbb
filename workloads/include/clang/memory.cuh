// Loads and stores with cache operators, of global memory, of every type that CUDA has them for.
#pragma once

#define DURAWARP_LOAD(name, op, type, kind, letter, held)                                                    \
    __device__ inline type name(const type *from)                                                            \
    {                                                                                                        \
        held value;                                                                                          \
        asm volatile("ld.global." op "." kind " %0, [%1];" : "=" letter(value) : "l"(from) : "memory");      \
        return (type)value;                                                                                  \
    }
#define DURAWARP_LOAD2(name, op, type, kind, letter, held)                                                   \
    __device__ inline type name(const type *from)                                                            \
    {                                                                                                        \
        held x, y;                                                                                           \
        asm volatile("ld.global." op ".v2." kind " {%0, %1}, [%2];"                                          \
                     : "=" letter(x), "=" letter(y) : "l"(from) : "memory");                                 \
        type value;                                                                                          \
        value.x = x, value.y = y;                                                                            \
        return value;                                                                                        \
    }
#define DURAWARP_LOAD4(name, op, type, kind, letter, held)                                                   \
    __device__ inline type name(const type *from)                                                            \
    {                                                                                                        \
        held x, y, z, w;                                                                                     \
        asm volatile("ld.global." op ".v4." kind " {%0, %1, %2, %3}, [%4];"                                  \
                     : "=" letter(x), "=" letter(y), "=" letter(z), "=" letter(w) : "l"(from) : "memory");   \
        type value;                                                                                          \
        value.x = x, value.y = y, value.z = z, value.w = w;                                                  \
        return value;                                                                                        \
    }
#define DURAWARP_STORE(name, op, type, kind, letter, held)                                                   \
    __device__ inline void name(type *to, type value)                                                        \
    {                                                                                                        \
        asm volatile("st.global." op "." kind " [%0], %1;" ::"l"(to), letter((held)value) : "memory");       \
    }
#define DURAWARP_STORE2(name, op, type, kind, letter, held)                                                  \
    __device__ inline void name(type *to, type value)                                                        \
    {                                                                                                        \
        asm volatile("st.global." op ".v2." kind " [%0], {%1, %2};"                                          \
                     ::"l"(to), letter((held)value.x), letter((held)value.y) : "memory");                    \
    }
#define DURAWARP_STORE4(name, op, type, kind, letter, held)                                                  \
    __device__ inline void name(type *to, type value)                                                        \
    {                                                                                                        \
        asm volatile("st.global." op ".v4." kind " [%0], {%1, %2, %3, %4};"                                  \
                     ::"l"(to), letter((held)value.x), letter((held)value.y), letter((held)value.z),         \
                     letter((held)value.w) : "memory");                                                      \
    }

// Bytes are held in 16 bits: inline assembly has no smaller registers.
#define DURAWARP_EACH(one, two, four, name, op)                                                              \
    one(name, op, char, "s8", "h", short)                                                                    \
    one(name, op, signed char, "s8", "h", short)                                                             \
    one(name, op, unsigned char, "u8", "h", unsigned short)                                                  \
    one(name, op, short, "s16", "h", short)                                                                  \
    one(name, op, unsigned short, "u16", "h", unsigned short)                                                \
    one(name, op, int, "s32", "r", int)                                                                      \
    one(name, op, unsigned, "u32", "r", unsigned)                                                            \
    one(name, op, long, "s64", "l", long)                                                                    \
    one(name, op, unsigned long, "u64", "l", unsigned long)                                                  \
    one(name, op, long long, "s64", "l", long long)                                                          \
    one(name, op, unsigned long long, "u64", "l", unsigned long long)                                        \
    one(name, op, float, "f32", "f", float)                                                                  \
    one(name, op, double, "f64", "d", double)                                                                \
    two(name, op, char2, "s8", "h", short)                                                                   \
    two(name, op, uchar2, "u8", "h", unsigned short)                                                         \
    two(name, op, short2, "s16", "h", short)                                                                 \
    two(name, op, ushort2, "u16", "h", unsigned short)                                                       \
    two(name, op, int2, "s32", "r", int)                                                                     \
    two(name, op, uint2, "u32", "r", unsigned)                                                               \
    two(name, op, longlong2, "s64", "l", long long)                                                          \
    two(name, op, ulonglong2, "u64", "l", unsigned long long)                                                \
    two(name, op, float2, "f32", "f", float)                                                                 \
    two(name, op, double2, "f64", "d", double)                                                               \
    four(name, op, char4, "s8", "h", short)                                                                  \
    four(name, op, uchar4, "u8", "h", unsigned short)                                                        \
    four(name, op, short4, "s16", "h", short)                                                                \
    four(name, op, ushort4, "u16", "h", unsigned short)                                                      \
    four(name, op, int4, "s32", "r", int)                                                                    \
    four(name, op, uint4, "u32", "r", unsigned)                                                              \
    four(name, op, float4, "f32", "f", float)
#define DURAWARP_LOADS(name, op) DURAWARP_EACH(DURAWARP_LOAD, DURAWARP_LOAD2, DURAWARP_LOAD4, name, op)
#define DURAWARP_STORES(name, op) DURAWARP_EACH(DURAWARP_STORE, DURAWARP_STORE2, DURAWARP_STORE4, name, op)
DURAWARP_LOADS(__ldg, "nc")
DURAWARP_LOADS(__ldca, "ca")
DURAWARP_LOADS(__ldcg, "cg")
DURAWARP_LOADS(__ldcs, "cs")
DURAWARP_LOADS(__ldlu, "lu")
DURAWARP_LOADS(__ldcv, "cv")
DURAWARP_STORES(__stwb, "wb")
DURAWARP_STORES(__stcg, "cg")
DURAWARP_STORES(__stcs, "cs")
DURAWARP_STORES(__stwt, "wt")
#undef DURAWARP_STORES
#undef DURAWARP_LOADS
#undef DURAWARP_EACH
#undef DURAWARP_STORE4
#undef DURAWARP_STORE2
#undef DURAWARP_STORE
#undef DURAWARP_LOAD4
#undef DURAWARP_LOAD2
#undef DURAWARP_LOAD
