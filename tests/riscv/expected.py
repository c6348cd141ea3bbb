#!/usr/bin/env python3
"""Makes what the tests compare with: results of single instructions, by qemu-riscv64.

    tests/riscv/expected.py [ROWS_PER_INSTRUCTION [FOLDER]]

Needs riscv64-linux-gnu-gcc and qemu-riscv64, which the tests themselves do not: the file is committed.

samples/instructions.txt   of each instruction a line `: text word`, then one for each set of operands:
                           a b c, fcsr before, result, fcsr after; all but text in hexadecimal

Rows of arithmetic have each edge value of its format as the first operand, and some more operands at random.
Every rounding mode is there as a field of the instruction, and as one of fcsr.

Sequences of instructions are made by generator.rs and taken from qemu-riscv64 by generated.rs.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES = os.path.join(HERE, "samples")
INCLUDE = os.path.join(HERE, "..", "..", "workloads", "include")
random.seed(20)

INTEGERS = [0, 1, 2, 3, 31, 32, 63, 64, 127, 128, 255, 0x7FF, 0x800, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
            0x100000000, 0x7FFFFFFFFFFFFFFF, 0x8000000000000000, 0x8000000000000001, 0xFFFFFFFF80000000,
            0xFFFFFFFF7FFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFE, 0x0123456789ABCDEF, 0xFEDCBA9876543210,
            (1 << 24) + 1, (1 << 53) + 1, (1 << 25) + 6, (1 << 54) + 4, (1 << 54) + 12]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 1e-310, -5e-324, 1e308, -1.7e308, float("inf"),
           float("-inf"), 2147483647.0, 2147483648.0, -2147483648.5, -2147483649.0, 4294967295.5, 4294967296.0, 9.3e18, 1.9e19,
           -9.3e18, 3.141592653589793, 1.0000000000000002, 1.1754943508222875e-38, 1e-45, 7e-46, 3.5e38, 3.4028235e38,
           3.4028235677973366e38, 16777217.0, 1.00000005960464477539, -1.00000017881393432617]
SINGLES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-45, -1e-40, 3.4e38, -3.4e38, float("inf"), float("-inf"),
           2147483648.0, -2147483648.0, 4294967040.0, 4294967296.0, 9.2e18, 1.9e19, 3.14159274, 1.00000012]
# Zeros, subnormals, the normal numbers next to them, 1 and its neighbours, the largest, infinities, NaN, a signalling one;
# the ends of integers and what rounds to them.
EDGES_D = [0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000,
           0x8010000000000001, 0x001FFFFFFFFFFFFF, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0xBFF0000000000001,
           0x3FE0000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000,
           0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000001234, 0x36A0000000000000, 0x380FFFFFF0000000,
           0x47EFFFFFF0000000, 0x4008000000000000]
LIMITS_D = [0x41DFFFFFFFC00000, 0x41DFFFFFFFE00000, 0x41E0000000000000, 0xC1E0000000000000, 0xC1E0000000100000,
            0xC1E0000000200000, 0x41EFFFFFFFE00000, 0x41EFFFFFFFF00000, 0x41F0000000000000, 0x43DFFFFFFFFFFFFF,
            0x43E0000000000000, 0xC3E0000000000000, 0xC3E0000000000001, 0x43EFFFFFFFFFFFFF, 0x43F0000000000000,
            0xBFE0000000000000, 0xBFEFFFFFFFFFFFFF, 0xBFF0000000000000, 0x3FF8000000000000, 0x4004000000000000,
            0xC00C000000000000, 0x3FB999999999999A]
EDGES_S = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x80800001, 0x00FFFFFF, 0x3F7FFFFF, 0x3F800000,
           0xBF800001, 0x3F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC01234,
           0x33800000, 0x40400000]
LIMITS_S = [0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF, 0x5F000000, 0xDF000000,
            0xDF000001, 0x5F7FFFFF, 0x5F800000, 0xBF000000, 0xBF7FFFFF, 0xBF800000, 0x3FC00000, 0x40200000, 0xC0600000,
            0x3DCCCCCD]
# Products at the border of subnormal numbers: tiny before rounding, or after it, too.
PAIRS_D = [(0x0010000000000000, 0x3FEFFFFFFFFFFFFF), (0x001FFFFFFFFFFFFF, 0x3FE0000000000000),
           (0x0010000000000001, 0x3FEFFFFFFFFFFFFE), (0x0010000000000001, 0x3FEFFFFFFFFFFFFF),
           (0x8010000000000001, 0x3FEFFFFFFFFFFFFD), (0x0000000000000001, 0x3FE0000000000000),
           (0x0000000000000003, 0x3FE0000000000000), (0x7FEFFFFFFFFFFFFF, 0x3FF0000000000001)]
PAIRS_S = [(0x00800000, 0x3F7FFFFF), (0x00FFFFFF, 0x3F000000), (0x00800001, 0x3F7FFFFE), (0x00800001, 0x3F7FFFFF),
           (0x80800001, 0x3F7FFFFD), (0x00000001, 0x3F000000), (0x00000003, 0x3F000000), (0x7F7FFFFF, 0x3F800001)]
NANS_D = [0x7FF8000000000000, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF8000000001234]
NANS_S = [0x7FC00000, 0xFFC00000, 0x7F800001, 0x7FC01234]


def bits_d(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def bits_s(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] | 0xFFFFFFFF00000000


def an_integer():
    return random.choice(INTEGERS) if random.random() < 0.7 else random.getrandbits(64)


def a_double():
    kind = random.random()
    if kind < 0.7:
        return bits_d(random.choice(DOUBLES))
    if kind < 0.85:
        return bits_d(random.uniform(-1, 1) * 2.0 ** random.randint(-140, 140))
    return random.choice(NANS_D) if kind < 0.95 else random.getrandbits(64)


def a_single():
    kind = random.random()
    if kind < 0.7:
        return bits_s(random.choice(SINGLES))
    if kind < 0.85:
        return bits_s(random.uniform(-1, 1) * 2.0 ** random.randint(-60, 60))
    # Not boxed, now and then.
    return random.choice(NANS_S) | 0xFFFFFFFF00000000 if kind < 0.93 else random.getrandbits(64)


# Text of an instruction -> what its operands a, b, c are (x integer, s single, d double, - none), its result, fcsr before,
# and operands that it has besides those at random.
INSTRUCTIONS = []


def instruction(text, operands, result, fcsr=0, edges=()):
    INSTRUCTIONS.append((text, operands, result, fcsr, edges))


BOX = 0xFFFFFFFF00000000
EDGES = {"s": [value | BOX for value in EDGES_S], "d": EDGES_D}
LIMITS = {"s": [value | BOX for value in LIMITS_S], "d": LIMITS_D}
PAIRS = {"s": [(a | BOX, b | BOX) for a, b in PAIRS_S], "d": PAIRS_D}
MODES = "rne rtz rdn rup rmm".split()


def arithmetic(text, f, operands, result, edges):
    """In each mode: by itself, and once by fcsr, whose exceptions stay."""
    for mode in MODES:
        instruction(f"{text}, {mode}", operands, result, 0, edges)
    for number in range(len(MODES)):
        instruction(f"{text}, dyn", operands, result, number << 5 | 0x1F & ~(1 << number), edges[number::len(MODES)])


for name in "add sub sll slt sltu xor srl sra or and mul mulh mulhsu mulhu div divu rem remu".split():
    instruction(f"{name} a0, a1, a2", "xx-", "x")
for name in "addw subw sllw srlw sraw mulw divw divuw remw remuw".split():
    instruction(f"{name} a0, a1, a2", "xx-", "x")
for name in "addi slti sltiu xori ori andi addiw".split():
    for imm in (-2048, -1, 0x7FF):
        instruction(f"{name} a0, a1, {imm}", "x--", "x")
for name, amounts in (("slli srli srai rori bclri bexti binvi bseti slli.uw", (0, 1, 33, 63)),
                      ("slliw srliw sraiw roriw", (1, 31))):
    for name in name.split():
        for amount in amounts:
            instruction(f"{name} a0, a1, {amount}", "x--", "x")
for name in ("add.uw sh1add sh2add sh3add sh1add.uw sh2add.uw sh3add.uw andn orn xnor max maxu min minu rol rolw ror rorw bclr "
             "bext binv bset").split():
    instruction(f"{name} a0, a1, a2", "xx-", "x")
for name in "clz clzw ctz ctzw cpop cpopw sext.b sext.h zext.h orc.b rev8".split():
    instruction(f"{name} a0, a1", "x--", "x", 0, [(0,), (1,), (1 << 63,), (1 << 31,), (1 << 32,), (0xFFFFFFFFFFFFFFFF,)])
instruction("lui a0, 0x80000", "---", "x")
instruction("lui a0, 0x12345", "---", "x")
for short in ("c.addi a0, -32", "c.addiw a0, 31", "c.li a0, -7", "c.lui a0, 0xfffe1", "c.slli a0, 63", "c.srli a0, 33",
              "c.srai a0, 63", "c.andi a0, -3", "c.mv a0, a2", "c.add a0, a2", "c.sub a0, a2", "c.xor a0, a2", "c.or a0, a2",
              "c.and a0, a2", "c.subw a0, a2", "c.addw a0, a2"):
    # Their destination is their first source: a0 holds a, too.
    instruction(short, "xx-", "x")
for f in "sd":
    first = EDGES[f]
    pairs = [(a, random.choice(first)) for a in first] + PAIRS[f]
    # A product that is nearly as large as what is added to it, and of the other sign.
    one = bits_d(1.0) if f == "d" else bits_s(1.0)
    triples = [(a, random.choice(first), random.choice(first)) for a in first] + [(a, b, a) for a, b in PAIRS[f]]
    triples += [(a, one, a ^ (1 << 63 if f == "d" else 1 << 31)) for a in first]
    for name in "fadd fsub fmul fdiv".split():
        arithmetic(f"{name}.{f} fa0, fa1, fa2", f, f * 2 + "-", f, pairs)
    for name in "fmadd fmsub fnmsub fnmadd".split():
        arithmetic(f"{name}.{f} fa0, fa1, fa2, fa3", f, f * 3, f, triples)
    arithmetic(f"fsqrt.{f} fa0, fa1", f, f + "--", f, [(a,) for a in first])
    for name in "fsgnj fsgnjn fsgnjx fmin fmax".split():
        instruction(f"{name}.{f} fa0, fa1, fa2", f * 2 + "-", f, 0, pairs)
    for name in "feq flt fle".split():
        instruction(f"{name}.{f} a0, fa1, fa2", f * 2 + "-", "x", 0, pairs + [(a, a) for a in first])
    instruction(f"fclass.{f} a0, fa1", f + "--", "x", 0, [(a,) for a in first])
    for to in "w wu l lu".split():
        arithmetic(f"fcvt.{to}.{f} a0, fa1", f, f + "--", "x", [(a,) for a in LIMITS[f] + first[:1] + first[12:18]])
        if f == "s" or to in ("l", "lu"):
            arithmetic(f"fcvt.{f}.{to} fa0, a1", f, "x--", f, [(a,) for a in INTEGERS[-14:]])
arithmetic("fcvt.s.d fa0, fa1", "d", "d--", "s", [(a,) for a in EDGES_D + [0x380FFFFFF8000000, 0x380FFFFFE8000000, 0x36A8000000000000]])
instruction("fcvt.d.s fa0, fa1", "s--", "d", 0, [(a,) for a in EDGES["s"]])
instruction("fcvt.d.w fa0, a1", "x--", "d")
instruction("fcvt.d.wu fa0, a1", "x--", "d")
instruction("fmv.x.w a0, fa1", "s--", "x")
instruction("fmv.w.x fa0, a1", "x--", "s")
instruction("fmv.x.d a0, fa1", "d--", "x")
instruction("fmv.d.x fa0, a1", "x--", "d")


def compile_and_run(source, folder, name):
    path = os.path.join(folder, name + ".c")
    with open(path, "w") as file:
        file.write(source)
    elf = os.path.join(folder, name + ".elf")
    command = ["riscv64-linux-gnu-gcc", "-O1", "-march=rv64gc_zba_zbb_zbs", "-mabi=lp64d", "-mcmodel=medany", "-ffreestanding",
               "-fno-builtin", "-fno-pie", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-nostdlib", "-static",
               "-no-pie", "-Wl,--build-id=none", "-Wl,-z,max-page-size=4096,-z,separate-code", "-s", "-I", INCLUDE, path, "-o",
               elf]
    subprocess.run(command, check=True)
    run = subprocess.run(["qemu-riscv64", elf], check=True, capture_output=True, text=True)
    return run.stdout


def single_instructions(rows, folder):
    values = {"x": an_integer, "s": a_single, "d": a_double, "-": lambda: 0}
    source = ['#include "cpu_rt.h"', 'typedef struct { u64 a, b, c, fcsr, out, after; } row_t;', '__asm__(".text\\n"']
    for at, (text, _, result, _, _) in enumerate(INSTRUCTIONS):
        short = ".option norvc" if not text.startswith("c.") else ".option rvc"
        out = "sd a0, 32(t0)" if result == "x" else "fsd fa0, 32(t0)"
        lines = [f"run{at}: mv t0, a0", "ld a0, 0(t0)", "ld a1, 0(t0)", "ld a2, 8(t0)", "fld fa1, 0(t0)", "fld fa2, 8(t0)",
                 "fld fa3, 16(t0)", "ld t1, 24(t0)", "fscsr t1", "fmv.d.x fa0, zero", ".option push", short,
                 f"word{at}: {text}", ".option pop", out, "frcsr t1", "sd t1, 40(t0)", "fscsr zero", "ret"]
        source += [f'"{line}\\n"' for line in lines]
    source.append(");")
    tests = []
    # qemu-riscv64 7.2 gives ctzw of these the zeros of all 64 bits.
    wrong = lambda text, a: text.startswith("ctzw") and a != 0 and a & 0xFFFFFFFF == 0
    for at, (text, operands, _, fcsr, edges) in enumerate(INSTRUCTIONS):
        source.append(f"void run{at}(row_t *row); extern const u16 word{at}[];")
        for edge in edges:
            tests.append((at, list(edge) + [0] * (3 - len(edge)), fcsr))
        for _ in range(rows if operands != "---" else 1):
            tests.append((at, [values[kind]() for kind in operands], fcsr))
    tests = [(at, row, fcsr) for at, row, fcsr in tests if not wrong(INSTRUCTIONS[at][0], row[0])]
    source.append("static row_t rows[] = {")
    source += ["{" + ", ".join(f"{value:#x}ul" for value in operands) + f", {fcsr}, 0, 0}}," for _, operands, fcsr in tests]
    source.append("};\nstatic const u16 which[] = {" + ", ".join(str(at) for at, _, _ in tests) + "};")
    count = len(INSTRUCTIONS)
    source.append("static void (*const runs[])(row_t *) = {" + ", ".join(f"run{at}" for at in range(count)) + "};")
    source.append("static const u16 *const places[] = {" + ", ".join(f"word{at}" for at in range(count)) + "};")
    source.append("""int main(int argc, char **argv) {
    (void)argc, (void)argv;
    for (u64 i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        runs[which[i]](&rows[i]);
        const u16 *word = places[which[i]];
        print_hex((word[0] & 3) == 3 ? word[0] | (u32)word[1] << 16 : word[0]);
        print_char(' '), print_hex(rows[i].a), print_char(' '), print_hex(rows[i].b), print_char(' ');
        print_hex(rows[i].c), print_char(' '), print_hex(rows[i].fcsr), print_char(' ');
        print_hex(rows[i].out), print_char(' '), print_hex(rows[i].after), print_char('\\n');
    }
    return 0;
}""")
    printed = compile_and_run("\n".join(source), folder, "instructions")
    lines = printed.splitlines()
    assert len(lines) == len(tests)
    out, last = [], None
    for (at, _, _), line in zip(tests, lines):
        word, row = line.split(" ", 1)
        if at != last:
            out.append(f": {INSTRUCTIONS[at][0]} {word}")
            last = at
        out.append(row)
    return out


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    out = sys.argv[2] if len(sys.argv) > 2 else SAMPLES
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open(os.path.join(out, "instructions.txt"), "w") as file:
        file.write("\n".join(single_instructions(rows, folder)) + "\n")


main()
