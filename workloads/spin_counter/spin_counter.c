// Threads that increment one number under one spin lock: a test-and-test-and-set lock, whose line and the number's go from
// core to core.
//
//   --ops 2000 --threads 1
#include "cpu_rt.h"

static u64 ops, threads;
static struct {
    u32 taken;
    u32 unused[15];
    u64 value;
} counter __attribute__((aligned(64)));

static void count(u64 thread) {
    for (u64 i = thread; i < ops; i += threads) {
        while (__atomic_load_n(&counter.taken, __ATOMIC_RELAXED) ||
               __atomic_exchange_n(&counter.taken, 1, __ATOMIC_ACQUIRE))
            rt_pause();
        counter.value++;
        __atomic_store_n(&counter.taken, 0, __ATOMIC_RELEASE);
    }
}

int main(int argc, char **argv) {
    threads = arg_u64(argc, argv, "--threads", 1);
    ops = arg_u64(argc, argv, "--ops", 2000);
    check(threads > 0, "--threads is at least 1");
    threads_run((u32)threads, count);
    check(counter.value == ops, "value of the counter");
    print_line("spin_counter:", counter.value);
    return 0;
}
