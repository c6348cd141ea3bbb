// The runtime of freestanding CPU programs (RV64GC, Linux's system calls): start, exit, text output, arguments, threads,
// ticket locks, barriers, memory, persistent memory, random numbers. One program includes it in one file:
//
//     #include "cpu_rt.h"
//     int main(int argc, char **argv) { print_text("hello\n"); return 0; }
//
// workloads/compile_riscv.sh compiles it without a C library, so that an executable has some 10 KB.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

// ---- Start and system calls

int main(int argc, char **argv);

static inline i64 rt_call(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
    register i64 a0 __asm__("a0") = a;
    register i64 a1 __asm__("a1") = b;
    register i64 a2 __asm__("a2") = c;
    register i64 a3 __asm__("a3") = d;
    register i64 a4 __asm__("a4") = e;
    register i64 a5 __asm__("a5") = f;
    register i64 a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
    return a0;
}

enum {
    RT_OPENAT = 56, RT_WRITE = 64, RT_EXIT = 93, RT_EXIT_GROUP = 94, RT_FUTEX = 98, RT_BRK = 214, RT_CLONE = 220,
    RT_MMAP = 222
};

static void print_flush(void);

static inline void rt_exit(int code) {
    print_flush();
    for (;;) rt_call(RT_EXIT_GROUP, code, 0, 0, 0, 0, 0);
}

__attribute__((used)) static void rt_main(u64 *stack) { rt_exit(main((int)stack[0], (char **)(stack + 1))); }

// The global pointer first: the linker relaxes accesses of small data to it.
__asm__(
    ".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  .option push\n"
    "  .option norelax\n"
    "  la gp, __global_pointer$\n"
    "  .option pop\n"
    "  mv a0, sp\n"
    "  andi sp, sp, -16\n"
    "  call rt_main\n"
    ".size _start, . - _start\n");

// The compiler calls these by itself.
__attribute__((used)) void *memset(void *to, int byte, u64 count) {
    for (u64 i = 0; i < count; i++) ((volatile u8 *)to)[i] = (u8)byte;
    return to;
}

__attribute__((used)) void *memcpy(void *to, const void *from, u64 count) {
    for (u64 i = 0; i < count; i++) ((volatile u8 *)to)[i] = ((const u8 *)from)[i];
    return to;
}

static inline int rt_same(const char *a, const char *b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}

// ---- Text output, by one thread at a time

static char print_buffer[512];
static u32 print_used;

static void print_flush(void) {
    if (print_used) rt_call(RT_WRITE, 1, (i64)print_buffer, print_used, 0, 0, 0);
    print_used = 0;
}

static inline void print_char(char c) {
    if (print_used == sizeof print_buffer) print_flush();
    print_buffer[print_used++] = c;
}

static inline void print_text(const char *text) {
    while (*text) print_char(*text++);
}

static inline void print_digits(u64 value, u64 base) {
    char digits[20];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (count) print_char(digits[--count]);
}

static inline void print_u64(u64 value) { print_digits(value, 10); }

static inline void print_hex(u64 value) { print_digits(value, 16); }

static inline void print_i64(i64 value) {
    if (value < 0) print_char('-');
    print_digits(value < 0 ? -(u64)value : (u64)value, 10);
}

// A name and a value on a line.
static inline void print_line(const char *name, u64 value) {
    print_text(name);
    print_char(' ');
    print_u64(value);
    print_char('\n');
}

// A number and what stands before it.
static inline void print_value(const char *before, u64 value) {
    print_text(before);
    print_u64(value);
}

// Ends the program when something that must hold does not.
static inline void check(int holds, const char *what) {
    if (holds) return;
    print_text("wrong: ");
    print_text(what);
    print_char('\n');
    rt_exit(1);
}

// ---- Arguments: --name VALUE, --flag

static inline int arg_flag(int argc, char **argv, const char *name) {
    for (int i = 1; i < argc; i++)
        if (rt_same(argv[i], name)) return i;
    return 0;
}

static inline u64 arg_u64(int argc, char **argv, const char *name, u64 otherwise) {
    int at = arg_flag(argc, argv, name);
    if (!at) return otherwise;
    u64 value = 0;
    const char *digit = at + 1 < argc ? argv[at + 1] : "";
    check(*digit != 0, name);
    for (; *digit; digit++) {
        check(*digit >= '0' && *digit <= '9', name);
        value = value * 10 + (u64)(*digit - '0');
    }
    return value;
}

// ---- A region of interest, between hints that do nothing (durawarp run --roi markers).

static inline void roi_begin(void) { __asm__ volatile("slti x0, x0, 1" ::: "memory"); }
static inline void roi_end(void) { __asm__ volatile("slti x0, x0, 2" ::: "memory"); }

// ---- Locks and barriers. A thread has a hart for itself, so that waiting is spinning.

static inline void rt_pause(void) { __asm__ volatile(".insn i 0x0f, 0, x0, x0, 0x010" ::: "memory"); }

// Threads get a ticket lock in the order in which they came.
typedef struct {
    u32 next;
    u32 serving;
} lock_t;

static inline void lock(lock_t *lock) {
    u32 mine = __atomic_fetch_add(&lock->next, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&lock->serving, __ATOMIC_ACQUIRE) != mine) rt_pause();
}

static inline void unlock(lock_t *lock) {
    __atomic_store_n(&lock->serving, lock->serving + 1, __ATOMIC_RELEASE);
}

// Threads wait until all have come; it may be used again at once.
typedef struct {
    u32 threads;
    u32 arrived;
    u32 round;
} barrier_t;

static inline void barrier_init(barrier_t *barrier, u32 threads) {
    barrier->threads = threads;
    barrier->arrived = barrier->round = 0;
}

static inline void barrier_wait(barrier_t *barrier) {
    u32 round = __atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == barrier->threads) {
        barrier->arrived = 0;
        __atomic_store_n(&barrier->round, round + 1, __ATOMIC_RELEASE);
    } else {
        while (__atomic_load_n(&barrier->round, __ATOMIC_ACQUIRE) == round) rt_pause();
    }
}

// ---- Memory: given out and never taken back

static lock_t rt_heap_lock;
static u64 rt_heap_next, rt_heap_end;

// Zeroed memory that begins with a line of 64 bytes.
static inline void *alloc(u64 bytes) {
    bytes = (bytes + 63) & ~63ul;
    lock(&rt_heap_lock);
    if (!rt_heap_next) rt_heap_next = rt_heap_end = ((u64)rt_call(RT_BRK, 0, 0, 0, 0, 0, 0) + 63) & ~63ul;
    if (rt_heap_end - rt_heap_next < bytes) {
        u64 wanted = (rt_heap_next + bytes + 0xffff) & ~0xfffful;
        rt_heap_end = (u64)rt_call(RT_BRK, (i64)wanted, 0, 0, 0, 0, 0);
        check(rt_heap_end == wanted, "out of memory");
    }
    u64 start = rt_heap_next;
    rt_heap_next += bytes;
    unlock(&rt_heap_lock);
    return (void *)start;
}

// The first bytes of persistent memory: what the last run left there.
static inline void *pm_map(u64 bytes) {
    i64 file = rt_call(RT_OPENAT, -100, (i64) "/pm/pool", 2, 0, 0, 0);
    check(file >= 0, "no persistent memory");
    i64 start = rt_call(RT_MMAP, 0, (i64)bytes, 3, 1, file, 0);
    check(start > 0, "persistent memory is too small");
    return (void *)start;
}

// ---- Threads

enum { RT_STACK_BYTES = 64 << 10, RT_CLONE_FLAGS = 0x350f00 };

typedef struct {
    void (*body)(u64);
    u64 argument;
    // Its number, 0 when it has ended.
    u32 number;
} thread_t;

i64 rt_clone(u64 flags, void *stack, u32 *parent, u64 pointer, u32 *child);

// The new thread finds its function and argument on its stack.
__asm__(
    ".globl rt_clone\n"
    ".type rt_clone, @function\n"
    "rt_clone:\n"
    "  li a7, 220\n"
    "  ecall\n"
    "  bnez a0, 1f\n"
    "  ld a0, 8(sp)\n"
    "  ld t0, 0(sp)\n"
    "  jalr t0\n"
    "  li a0, 0\n"
    "  li a7, 93\n"
    "  ecall\n"
    "1: ret\n"
    ".size rt_clone, . - rt_clone\n");

static inline void thread_start(thread_t *thread, void (*body)(u64), u64 argument) {
    u64 *stack = (u64 *)((u8 *)alloc(RT_STACK_BYTES) + RT_STACK_BYTES) - 2;
    stack[0] = (u64)body;
    stack[1] = argument;
    thread->body = body;
    thread->argument = argument;
    check(rt_clone(RT_CLONE_FLAGS, stack, &thread->number, 0, &thread->number) > 0, "no thread");
}

static inline void thread_join(thread_t *thread) {
    u32 number;
    while ((number = __atomic_load_n(&thread->number, __ATOMIC_ACQUIRE)) != 0)
        rt_call(RT_FUTEX, (i64)&thread->number, 0, number, 0, 0, 0);
}

// Runs `body` with 0, 1, ... in as many threads, the caller being the first.
static inline void threads_run(u32 threads, void (*body)(u64)) {
    thread_t *others = alloc(threads * sizeof(thread_t));
    for (u32 i = 1; i < threads; i++) thread_start(&others[i], body, i);
    body(0);
    for (u32 i = 1; i < threads; i++) thread_join(&others[i]);
}

// ---- Random numbers: xorshift64*; a state is never 0

static inline u64 random_next(u64 *state) {
    u64 x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dul;
}

// Numbers that look like chance and follow from two.
static inline u64 mix(u64 a, u64 b) {
    u64 x = a * 0xd1342543de82ef95ul + b * 0x9e3779b97f4a7c15ul + 0x7f4a7c159e3779b9ul;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
    return x ^ (x >> 31);
}

// ---- Parts of work

typedef struct {
    u64 first, end;
} range_t;

// Part `part` of `parts` of the numbers below `all`.
static inline range_t range_of(u64 all, u64 part, u64 parts) {
    return (range_t){all * part / parts, all * (part + 1) / parts};
}

// ---- Floating point

// 0 to 1, without 1, of the upper 53 bits of a word.
static inline double uniform(u64 bits) { return (double)(bits >> 11) * 0x1p-53; }

static inline double square_root(double x) {
    __asm__("fsqrt.d %0, %1" : "=f"(x) : "f"(x));
    return x;
}

static inline u64 bits_of(double x) {
    union {
        double value;
        u64 bits;
    } of = {x};
    return of.bits;
}
