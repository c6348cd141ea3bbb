// A line goes from one core to another while copies of its stores are in the first one's front-end buffer. The second core
// evicts it, the shared cache drops it, and the second core reads it again. Whoever searches the evicting core's buffer alone
// finds nothing, and memory has the old bytes.
//
// It shows where the persist path is slow (10 MB/s: 800 ns for 8 bytes) and the shared cache small (64 KB in 8 slices).
#include "cpu_rt.h"

enum { MEGABYTE = 1 << 20, SWEEP = 176 << 10, GROUP = 512 };

// Word 0 is of thread 0, word 1 of thread 1.
static volatile u64 line[8] __attribute__((aligned(64))) = {1, 1};
static volatile u64 written __attribute__((aligned(64)));

// Nothing is stored meanwhile.
static void wait_cycles(u64 cycles) {
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(cycles));
}

static void first(void) {
    // What it has stored so far leaves its buffer; then there is a queue before the copy of word 0, of the same line: no other
    // line waits for it when the shared cache wants room.
    wait_cycles(110000);
    __asm__ volatile(".rept 56\n  sd %1, 16(%0)\n.endr" : : "r"(line), "r"(3) : "memory");
    line[0] = 2;
    written = 1;
    wait_cycles(120000);
}

static u64 read_range(u64 start, u64 bytes) {
    u64 sum = 0;
    for (u64 at = start; at < start + bytes; at += 64) sum += *(volatile u64 *)at;
    return sum;
}

static void second(void) {
    while (!written) {}
    // The line comes with the first one's word. Its own copy has left when it goes on.
    line[1] = 2;
    wait_cycles(4000);
    // More lines than L1 and shared cache have; then those that have its place in a DRAM cache of a megabyte.
    u64 group = (u64)line & ~(u64)(GROUP - 1);
    u64 sum = read_range(group + 2 * MEGABYTE + 4096, SWEEP) + read_range(group + MEGABYTE, GROUP);
    check(sum == 0, "memory that nobody has written");
    check(line[0] == 2, "a word that was written before it was read");
    check(line[1] == 2, "a word that this thread wrote");
}

static void run(u64 thread) {
    if (thread) second();
    else first();
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    alloc(3 * (u64)MEGABYTE);
    check((u64)line < MEGABYTE, "the line is in the first megabyte");
    threads_run(2, run);
    return 0;
}
