// A store, the eviction of its line, and a load (LightWSP Fig. 6): the load must not see memory before the store's copy has come.
#include "cpu_rt.h"

enum { MEGABYTE = 1 << 20, SWEEP = 160 << 10, GROUP = 512, BACKLOG = 48 };

static volatile u64 line[8] __attribute__((aligned(64))) = {1};
static volatile u64 unseen[BACKLOG] __attribute__((aligned(64)));

static u64 read_range(u64 start, u64 bytes) {
    u64 sum = 0;
    for (u64 at = start; at < start + bytes; at += 64) sum += *(volatile u64 *)at;
    return sum;
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    alloc(3 * (u64)MEGABYTE);
    check((u64)line < MEGABYTE, "the line is in the first megabyte");
    // What has been stored so far leaves the buffer; then there is a queue before the line's copy.
    u64 turns = 110000;
    __asm__ volatile("1: addi %0, %0, -1\n bnez %0, 1b" : "+r"(turns));
    for (u64 i = 0; i < BACKLOG; i++) unseen[i] = i;
    line[0] = 2;
    // More lines than L1 and a small shared cache have; then those that have its place in a DRAM cache of a megabyte.
    u64 group = (u64)line & ~(u64)(GROUP - 1);
    u64 sum = read_range(group + 2 * MEGABYTE + 4096, SWEEP) + read_range(group + MEGABYTE, GROUP);
    check(sum == 0, "memory that nobody has written");
    check(line[0] == 2, "a word that was written before it was read");
    return 0;
}
