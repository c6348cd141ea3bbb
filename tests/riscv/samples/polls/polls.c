// Threads that store and meet at a barrier which polls as libgomp's does: a plain load in a loop that counts its turns, with
// neither a fence nor `pause`, in a function that has stored registers before. Built by workloads/compile_riscv.sh.
#include "cpu_rt.h"

enum { THREADS = 8, TURNS = 3, WORDS = 1024 };

static u32 generation __attribute__((aligned(64))), arrived __attribute__((aligned(64)));
static u64 table[THREADS][WORDS] __attribute__((aligned(64)));

static __attribute__((noinline)) void meet(u32 number) {
    volatile u64 saved[10];
    for (u64 i = 0; i < 10; i++) saved[i] = i;
    if (__atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL) == THREADS) {
        __atomic_store_n(&arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&generation, number + 1, __ATOMIC_RELEASE);
        return;
    }
    for (u64 i = 0; i < 10; i++) saved[i] = i;
    u64 turns = 0;
    while (__atomic_load_n(&generation, __ATOMIC_RELAXED) == number) {
        turns++;
        __asm__ volatile("" : "+r"(turns) : : "memory");
    }
    (void)__atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    (void)saved[0];
}

static void work(u64 thread) {
    for (u64 turn = 0; turn < TURNS; turn++) {
        // The later threads have more to do, so that the earlier ones wait.
        for (u64 i = 0; i < WORDS / (THREADS - thread); i++) table[thread][i] += mix(i, turn) & 0xff;
        meet(2 * turn);
        if (thread == 0) {
            for (u64 i = 0; i < WORDS; i++) table[0][i] += table[THREADS - 1][i];
        }
        meet(2 * turn + 1);
    }
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    threads_run(THREADS, work);
    u64 sum = 0, expected = 0;
    for (u64 i = 0; i < WORDS; i++) sum += table[0][i] + table[THREADS - 1][i];
    for (u64 turn = 0; turn < TURNS; turn++) {
        for (u64 i = 0; i < WORDS; i++) expected += (TURNS - turn + 1) * (mix(i, turn) & 0xff);
        for (u64 i = 0; i < WORDS / THREADS; i++) expected += mix(i, turn) & 0xff;
    }
    check(sum == expected, "what was stored");
    return 0;
}
