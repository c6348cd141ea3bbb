// Warp functions, barriers and fences. Values of any type of 1 to 16 bytes are shuffled word by word, as CUDA does with 64
// bits. Forms without `_sync`, which CUDA took away from sm_70 on, act on the whole warp.
#pragma once

#define DURAWARP_ALL_LANES 0xffffffffu

// The third operand of `shfl`: bits 8 to 12 are the segment's mask, bits 0 to 4 the clamp.
#define DURAWARP_SHUFFLE(name, builtin, clamp, second)                                                       \
    template <class T> __device__ inline T name##_sync(unsigned mask, T value, second by, int width = 32)    \
    {                                                                                                        \
        const int segment = ((32 - width) << 8) | (clamp);                                                   \
        int words[(sizeof(T) + 3) / 4] = {};                                                                 \
        __builtin_memcpy(words, &value, sizeof(T));                                                          \
        _Pragma("unroll") for (unsigned i = 0; i < (sizeof(T) + 3) / 4; i++)                                 \
            words[i] = builtin(mask, words[i], by, segment);                                                 \
        __builtin_memcpy(&value, words, sizeof(T));                                                          \
        return value;                                                                                        \
    }                                                                                                        \
    template <class T> __device__ inline T name(T value, second by, int width = 32)                          \
    {                                                                                                        \
        return name##_sync(DURAWARP_ALL_LANES, value, by, width);                                            \
    }

DURAWARP_SHUFFLE(__shfl, __nvvm_shfl_sync_idx_i32, 0x1f, int)
DURAWARP_SHUFFLE(__shfl_up, __nvvm_shfl_sync_up_i32, 0, unsigned)
DURAWARP_SHUFFLE(__shfl_down, __nvvm_shfl_sync_down_i32, 0x1f, unsigned)
DURAWARP_SHUFFLE(__shfl_xor, __nvvm_shfl_sync_bfly_i32, 0x1f, int)
#undef DURAWARP_SHUFFLE

__device__ inline int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p); }
__device__ inline int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p); }
__device__ inline int __uni_sync(unsigned mask, int p) { return __nvvm_vote_uni_sync(mask, p); }
__device__ inline unsigned __ballot_sync(unsigned mask, int p) { return __nvvm_vote_ballot_sync(mask, p); }
__device__ inline int __all(int p) { return __all_sync(DURAWARP_ALL_LANES, p); }
__device__ inline int __any(int p) { return __any_sync(DURAWARP_ALL_LANES, p); }
__device__ inline unsigned __ballot(int p) { return __ballot_sync(DURAWARP_ALL_LANES, p); }

__device__ inline unsigned __activemask()
{
    unsigned mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}

#define DURAWARP_MATCH(bits, letter, type)                                                                   \
    __device__ inline unsigned __durawarp_match_any(unsigned mask, type value)                               \
    {                                                                                                        \
        unsigned same;                                                                                       \
        asm volatile("match.any.sync." bits " %0, %1, %2;" : "=r"(same) : letter(value), "r"(mask));         \
        return same;                                                                                         \
    }                                                                                                        \
    __device__ inline unsigned __durawarp_match_all(unsigned mask, type value, int *all)                     \
    {                                                                                                        \
        unsigned same;                                                                                       \
        int equal;                                                                                           \
        asm volatile("{\n\t.reg .pred p;\n\tmatch.all.sync." bits " %0|p, %2, %3;\n\t"                       \
                     "selp.s32 %1, 1, 0, p;\n\t}"                                                            \
                     : "=r"(same), "=r"(equal) : letter(value), "r"(mask));                                  \
        *all = equal;                                                                                        \
        return same;                                                                                         \
    }
DURAWARP_MATCH("b32", "r", unsigned)
DURAWARP_MATCH("b64", "l", unsigned long long)
#undef DURAWARP_MATCH

template <class T> __device__ inline auto __durawarp_word(T value)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "matches are of 32 or 64 bits");
    if constexpr (sizeof(T) == 4)
        return __builtin_bit_cast(unsigned, value);
    else
        return __builtin_bit_cast(unsigned long long, value);
}
template <class T> __device__ inline unsigned __match_any_sync(unsigned mask, T value)
{
    return __durawarp_match_any(mask, __durawarp_word(value));
}
template <class T> __device__ inline unsigned __match_all_sync(unsigned mask, T value, int *all)
{
    return __durawarp_match_all(mask, __durawarp_word(value), all);
}

// `redux.sync` is of sm_80 and later, as in CUDA.
#if __CUDA_ARCH__ >= 800
#define DURAWARP_REDUX(name, op, kind, type)                                                                 \
    __device__ inline type __reduce_##name##_sync(unsigned mask, type value)                                 \
    {                                                                                                        \
        type result;                                                                                         \
        asm volatile("redux.sync." op "." kind " %0, %1, %2;" : "=r"(result) : "r"(value), "r"(mask));       \
        return result;                                                                                       \
    }
DURAWARP_REDUX(add, "add", "s32", int)
DURAWARP_REDUX(add, "add", "u32", unsigned)
DURAWARP_REDUX(min, "min", "s32", int)
DURAWARP_REDUX(min, "min", "u32", unsigned)
DURAWARP_REDUX(max, "max", "s32", int)
DURAWARP_REDUX(max, "max", "u32", unsigned)
DURAWARP_REDUX(and, "and", "b32", unsigned)
DURAWARP_REDUX(or, "or", "b32", unsigned)
DURAWARP_REDUX(xor, "xor", "b32", unsigned)
#undef DURAWARP_REDUX
#endif

__device__ inline unsigned __lane_id()
{
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

#define DURAWARP_LANES(name)                                                                                 \
    __device__ inline unsigned __lanemask_##name()                                                           \
    {                                                                                                        \
        unsigned mask;                                                                                       \
        asm("mov.u32 %0, %%lanemask_" #name ";" : "=r"(mask));                                               \
        return mask;                                                                                         \
    }
DURAWARP_LANES(lt)
DURAWARP_LANES(le)
DURAWARP_LANES(eq)
DURAWARP_LANES(ge)
DURAWARP_LANES(gt)
#undef DURAWARP_LANES

// `__syncthreads` is a builtin of clang, as in CUDA.
__device__ inline void __syncwarp(unsigned mask = DURAWARP_ALL_LANES) { __nvvm_bar_warp_sync(mask); }
#undef DURAWARP_ALL_LANES
__device__ inline int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }
__device__ inline int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
__device__ inline int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }

__device__ inline void __threadfence_block() { __nvvm_membar_cta(); }
__device__ inline void __threadfence() { __nvvm_membar_gl(); }
__device__ inline void __threadfence_system() { __nvvm_membar_sys(); }

__device__ inline long long clock64()
{
    long long cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles));
    return cycles;
}

__device__ inline int clock()
{
    int cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles));
    return cycles;
}

__device__ inline void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }
__device__ inline void __trap() { __builtin_trap(); }
// What `assert` calls: the kernel ends with a fault.
extern "C" __device__ inline void __assert_fail(const char *, const char *, unsigned, const char *) { __trap(); }
__device__ inline void __brkpt() { asm volatile("brkpt;"); }

__device__ inline unsigned __isGlobal(const void *p) { return __nvvm_isspacep_global(p); }
__device__ inline unsigned __isShared(const void *p) { return __nvvm_isspacep_shared(p); }
__device__ inline unsigned __isConstant(const void *p) { return __nvvm_isspacep_const(p); }
__device__ inline unsigned __isLocal(const void *p) { return __nvvm_isspacep_local(p); }

__device__ inline unsigned long __cvta_generic_to_shared(const void *p)
{
    return (unsigned long)(__attribute__((address_space(3))) const void *)p;
}

__device__ inline unsigned long __cvta_generic_to_global(const void *p)
{
    return (unsigned long)(__attribute__((address_space(1))) const void *)p;
}
