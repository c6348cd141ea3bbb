// What fcsr holds, over calls, stores and system calls and in a new thread; operations on bits as a compiler makes them. The
// exit code is 0, or the number of what is wrong. Compiled by
//
//   CFLAGS=-march=rv64gc_zba_zbb_zbs workloads/compile_riscv.sh tests/riscv/samples/isa/isa.c
//
//   --turns 4
#include "cpu_rt.h"

enum { INEXACT = 1, UNDERFLOW = 2, OVERFLOW = 4, BY_ZERO = 8, INVALID = 16 };

static volatile double zero, one = 1, three = 3, tiny = 0x1p-1022, huge = 0x1p1023, result;
static u64 noted[16], notes;

static inline u64 fcsr(void) {
    u64 value;
    __asm__ volatile("frcsr %0" : "=r"(value));
    return value;
}

static inline void set_fcsr(u64 value) { __asm__ volatile("fscsr %0" : : "r"(value)); }

static inline void clear(u64 exceptions) { __asm__ volatile("csrc fflags, %0" : : "r"(exceptions)); }

__attribute__((noinline)) static void note(u64 value) { noted[notes++ & 15] = value; }

static int exceptions(u64 turn) {
    u64 mode = turn % 5;
    set_fcsr(0);
    result = one / zero;
    note(turn);
    note(turn);
    if (fcsr() != BY_ZERO) return 1;
    result = huge * huge;
    note(turn);
    if (fcsr() != (BY_ZERO | OVERFLOW | INEXACT)) return 2;
    clear(OVERFLOW | INEXACT);
    result = zero / zero;
    note(turn);
    if (fcsr() != (BY_ZERO | INVALID)) return 3;
    set_fcsr(mode << 5);
    result = one / three;
    note(turn);
    if (fcsr() != (mode << 5 | INEXACT)) return 4;
    if (bits_of(result) != (mode == 3 ? 0x3fd5555555555556 : 0x3fd5555555555555)) return 5;
    result = tiny / three;
    note(turn);
    if (fcsr() != (mode << 5 | INEXACT | UNDERFLOW)) return 6;
    // A path that is often predicted wrong.
    set_fcsr(0);
    for (u64 i = 0; i < 8; i++) {
        if (mix(turn, i) & 1) result = one / zero;
        note(i);
        if (fcsr() != (mix(turn, i) & 1 ? BY_ZERO : 0)) return 7;
        set_fcsr(0);
    }
    return 0;
}

static volatile u64 of_thread;

static void inherits(u64 argument) {
    of_thread = fcsr() + argument;
    result = zero / zero;
}

static int threads(void) {
    set_fcsr(3 << 5 | OVERFLOW);
    thread_t thread;
    thread_start(&thread, inherits, 1000);
    thread_join(&thread);
    if (of_thread != 1000 + (3 << 5 | OVERFLOW)) return 8;
    return fcsr() == (3 << 5 | OVERFLOW) ? 0 : 9;
}

// Zeros above a word, bit by bit.
static u64 zeros(u64 word) {
    u64 count = 0;
    while (count < 64 && !(word >> (63 - count) & 1)) count++;
    return count;
}

static int bits(u64 x, u32 y) {
    u64 ones = 0, turned = 0;
    for (u64 i = 0; i < 64; i++) ones += x >> i & 1;
    for (u64 i = 0; i < 8; i++) turned |= (x >> (8 * i) & 255) << (56 - 8 * i);
    if (x && (u64)__builtin_clzl(x) != zeros(x)) return 10;
    if (y && (u64)__builtin_clz(y) + 32 != zeros(y)) return 11;
    if (x && x >> __builtin_ctzl(x) << __builtin_ctzl(x) != x) return 12;
    if ((u64)__builtin_popcountl(x) != ones) return 13;
    if (__builtin_bswap64(x) != turned) return 14;
    u64 amount = y & 63;
    volatile u64 up = x << amount, down = amount ? x >> (64 - amount) : 0;
    if ((x << amount | x >> (-amount & 63)) != (up | down)) return 15;
    i64 signed_x = (i64)x, less = signed_x < -5 ? signed_x : -5;
    u64 more = x > y ? x : y;
    if (less > signed_x || less > -5 || more < x || more < y) return 16;
    if ((x & ~(1ul << amount)) + (x & 1ul << amount) != x) return 17;
    return (u64)&noted[y & 15] - (u64)noted == 8 * (y & 15) ? 0 : 18;
}

int main(int argc, char **argv) {
    u64 turns = arg_u64(argc, argv, "--turns", 4), state = 9;
    int wrong = threads();
    for (u64 turn = 0; turn < turns && !wrong; turn++) {
        wrong = exceptions(turn);
        u64 x = random_next(&state);
        if (!wrong) wrong = bits(x >> (x & 63), (u32)(x >> 32));
    }
    return wrong;
}
