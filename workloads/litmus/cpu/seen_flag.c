// A thread stores, waits for a flag by loads that acquire, and stores again. What it has seen must not commit before the region
// that stored it: a machine whose regions go on over such loads (light_wsp.boundary_at=x86) commits all of it with the ID of the
// first store. After a power failure the second thread is behind its wait, and the first before its stores.
#include "cpu_rt.h"

enum { LONG = 20000 };

static volatile u64 before __attribute__((aligned(64)));
static volatile u64 data __attribute__((aligned(64)));
static volatile u32 flag __attribute__((aligned(64)));
static volatile u64 after __attribute__((aligned(64)));

// Nothing is stored meanwhile.
static void wait_cycles(u64 cycles) {
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(cycles));
}

static void first(void) {
    wait_cycles(LONG);
    data = 1;
    // A store that releases; gcc 12 would make an atomic of it.
    __asm__ volatile("fence rw, w" ::: "memory");
    flag = 1;
    // Its region goes on.
    wait_cycles(LONG);
}

static void second(void) {
    before = 1;
    while (!__atomic_load_n((u32 *)&flag, __ATOMIC_ACQUIRE)) {}
    after = 1;
    // A fence of everything is a boundary of every program.
    __asm__ volatile("fence rw, rw" ::: "memory");
    check(data == 1, "what was stored before the flag");
}

static void run(u64 thread) {
    if (thread) second();
    else first();
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    threads_run(2, run);
    return 0;
}
