// Three threads and one lock (LightWSP Fig. 4): their critical sections store to the same words, so that regions have to persist
// in the order in which the lock went round.
#include "cpu_rt.h"

enum { THREADS = 3, TURNS = 6 };

static lock_t turn;
static u64 entered, owners[THREADS * TURNS], entries[THREADS] __attribute__((aligned(64)));

static void enter(u64 thread) {
    for (u64 i = 0; i < TURNS; i++) {
        lock(&turn);
        owners[entered] = thread + 1;
        entered++;
        entries[thread]++;
        unlock(&turn);
    }
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    threads_run(THREADS, enter);
    check(entered == THREADS * TURNS, "how often the lock was taken");
    u64 seen[THREADS] = {0, 0, 0};
    for (u64 i = 0; i < THREADS * TURNS; i++) {
        check(owners[i] >= 1 && owners[i] <= THREADS, "who has taken the lock");
        seen[owners[i] - 1]++;
    }
    for (u64 i = 0; i < THREADS; i++) check(seen[i] == TURNS && entries[i] == TURNS, "how often a thread has taken it");
    return 0;
}
