// Regions that store to every word of two lines, on two controllers: a power failure leaves all words of a region or none, so that
// a program which goes on finds them equal.
#include "cpu_rt.h"
#include "pm.h"

enum { LINES = 2, WORDS = 8, TURNS = 12 };

static volatile u64 words[LINES][WORDS] __attribute__((aligned(64)));

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    for (u64 turn = 1; turn <= TURNS; turn++) {
        pm_region();
        for (u64 at = 0; at < LINES * WORDS; at++) check(words[at / WORDS][at % WORDS] == turn - 1, "words of one region");
        pm_region();
#pragma GCC unroll 16
        for (u64 at = 0; at < LINES * WORDS; at++) words[at / WORDS][at % WORDS] = turn;
    }
    return 0;
}
