// A region with more stores than a gated queue has entries: with a threshold of 256 stores the queue overflows before the boundary
// comes, and what it holds is written with an undo log.
#include "cpu_rt.h"
#include "pm.h"

enum { WORDS = 200 };

static volatile u64 words[WORDS] __attribute__((aligned(64)));

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    for (u64 turn = 1; turn <= 3; turn++) {
        pm_region();
        for (u64 at = 0; at < WORDS; at++) check(words[at] == turn - 1, "words of one region");
        pm_region();
        __asm__ volatile(".set at, 0\n.rept 200\n  sd %1, at(%0)\n.set at, at + 8\n.endr" : : "r"(words), "r"(turn) : "memory");
    }
    return 0;
}
