// Two regions store to one word, and its line leaves the caches in between and afterwards (LightWSP Fig. 5): the word must not go
// back to the older value, whichever way is faster.
#include "cpu_rt.h"
#include "pm.h"

enum { MEGABYTE = 1 << 20, SWEEP = 160 << 10, TURNS = 3 };

static volatile u64 word[8] __attribute__((aligned(64)));

// More lines than L1 and a small shared cache have.
static u64 read_others(void) {
    u64 sum = 0;
    for (u64 at = 2 * MEGABYTE; at < 2 * MEGABYTE + SWEEP; at += 64) sum += *(volatile u64 *)at;
    return sum;
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    alloc(3 * (u64)MEGABYTE);
    for (u64 turn = 1; turn <= TURNS; turn++) {
        word[0] = 2 * turn - 1;
        pm_region();
        word[0] = 2 * turn;
        pm_region();
        check(read_others() == 0, "memory that nobody has written");
        check(word[0] == 2 * turn, "the word of the later region");
    }
    return 0;
}
