// The first thread works, two stores a turn; the others wait for it and store nothing meanwhile. They wait by loads that acquire,
// with `pause` between them, or by plain loads (--plain). What regions the threads execute depends on no latency: nobody waits in
// a call.
//
//   --threads N --turns N --plain
#include "cpu_rt.h"

static u64 data[1024] __attribute__((aligned(64)));
static u64 turns;
static int plain;
static volatile u32 done __attribute__((aligned(64)));

static void work(void) {
    u64 a = 1;
    for (u64 i = 0; i < turns; i++) {
        u64 x = a ^ i;
        // A region of the paper's size has 91 instructions and 11 stores.
        __asm__ volatile(".rept 6\n  add %0, %0, %1\n  xor %0, %0, %2\n.endr" : "+r"(a) : "r"(x), "r"(i));
        data[2 * i & 1023] = a;
        data[(2 * i + 1) & 1023] = x;
    }
    __atomic_store_n((u32 *)&done, 1, __ATOMIC_RELEASE);
}

static void run(u64 thread) {
    if (thread == 0) work();
    else if (plain) while (!done) {}
    else while (!__atomic_load_n((u32 *)&done, __ATOMIC_ACQUIRE)) rt_pause();
}

int main(int argc, char **argv) {
    u64 threads = arg_u64(argc, argv, "--threads", 2);
    turns = arg_u64(argc, argv, "--turns", 400);
    plain = arg_flag(argc, argv, "--plain");
    thread_t *others = alloc(threads * sizeof(thread_t));
    for (u64 i = 1; i < threads; i++) thread_start(&others[i], run, i);
    run(0);
    // The system clears their numbers as they end.
    for (u64 i = 1; i < threads; i++)
        while (__atomic_load_n(&others[i].number, __ATOMIC_ACQUIRE)) rt_pause();
    u64 sum = 0;
    for (int i = 0; i < 1024; i++) sum += data[i];
    print_line("waiting:", sum);
    return 0;
}
