// Regions of eight stores and the program counter's, one behind the other, each long after the one before it: what the persist
// path takes of a region is all that there is. They wait before their stores, or (--late) behind these.
//
//   --early|--late|--burst (of 24 stores) --some|--more (20 or 40 of them)
#include "cpu_rt.h"

static u64 room[8] __attribute__((aligned(64)));

#define WAIT "  li t0, 2000\n 1: addi t0, t0, -1\n  bnez t0, 1b\n"
#define STORES                                                                                                         \
    "  sd zero, 0(a0)\n  sd zero, 8(a0)\n  sd zero, 16(a0)\n  sd zero, 24(a0)\n"                                       \
    "  sd zero, 32(a0)\n  sd zero, 40(a0)\n  sd zero, 48(a0)\n  sd zero, 56(a0)\n"
#define END "  .insn i 0x0b, 2, x0, x0, 0\n"
#define REGIONS(name, count, turn)                                                                                     \
    void name(u64 *room);                                                                                              \
    __asm__(".globl " #name "\n.type " #name ", @function\n" #name ":\n.rept " #count "\n" turn ".endr\n  ret\n"        \
            ".size " #name ", . - " #name "\n")

REGIONS(early_20, 20, WAIT STORES END);
REGIONS(early_40, 40, WAIT STORES END);
REGIONS(late_20, 20, STORES WAIT END);
REGIONS(late_40, 40, STORES WAIT END);
REGIONS(burst_20, 20, WAIT STORES STORES STORES END);
REGIONS(burst_40, 40, WAIT STORES STORES STORES END);

int main(int argc, char **argv) {
    int more = arg_flag(argc, argv, "--more");
    if (arg_flag(argc, argv, "--burst")) (more ? burst_40 : burst_20)(room);
    else if (arg_flag(argc, argv, "--late")) (more ? late_40 : late_20)(room);
    else (more ? early_40 : early_20)(room);
    return 0;
}
