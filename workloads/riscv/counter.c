// Threads that count under a ticket lock, by atomic additions and in compare-and-swap loops, round by round between
// barriers; all three counters must agree with the number of steps.
//
//   --threads 4 --steps 1000
#include "cpu_rt.h"

static u64 steps, under_lock, by_addition, by_exchange;
static lock_t counter_lock;
static barrier_t rounds;

static void count(u64 thread) {
    u64 seen = 0;
    for (u64 i = 0; i < steps; i++) {
        lock(&counter_lock);
        under_lock++;
        unlock(&counter_lock);
        __atomic_fetch_add(&by_addition, 1, __ATOMIC_RELAXED);
        u64 old = __atomic_load_n(&by_exchange, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&by_exchange, &old, old + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
        if (i % 100 == 99) {
            barrier_wait(&rounds);
            // Between two barriers nobody counts: all see the same.
            seen = by_addition;
            check(seen == (i + 1) * rounds.threads, "count between barriers");
            barrier_wait(&rounds);
        }
    }
    check(thread < rounds.threads, "number of the thread");
}

int main(int argc, char **argv) {
    u32 threads = (u32)arg_u64(argc, argv, "--threads", 4);
    steps = arg_u64(argc, argv, "--steps", 1000);
    barrier_init(&rounds, threads);
    threads_run(threads, count);
    print_line("lock", under_lock);
    print_line("addition", by_addition);
    print_line("exchange", by_exchange);
    u64 all = steps * threads;
    return under_lock == all && by_addition == all && by_exchange == all ? 0 : 1;
}
