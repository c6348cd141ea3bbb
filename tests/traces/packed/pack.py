"""Makes the packed traces of this folder, with the zstd of Python's `zstandard` (0.25.0, zstd 1.5.7).

    pip install zstandard==0.25.0 && python3 pack.py        # in this folder

`kernel-3` is a product of matrices as Hopper has it: a warp that loads tiles by the copy engine for a cluster
of two CTAs, four that multiply, barriers in shared memory between them, a store of the copy engine.
`python3 pack.py CTAS STEPS FILE` makes one of any size.

`pack` does what Accel-Sim's `post-traces-processing` does: the same layout, a dictionary trained on every
8th instruction, frames of level 3. `kernel-1` has a dictionary; `kernel-2` is too short for one, and has
none. The text that it would write with `--text` lies beside each packed file, compressed by xz: what runs
must be the same.
"""

import lzma
import random
import struct
import sys

import zstandard

INSTRUCTIONS_OF_A_FRAME = 16


def header(kernel, grid, block, shared=1024):
    return [
        f"-kernel name = _Z6packed{kernel}", f"-kernel id = {kernel}", f"-grid dim = ({grid},1,1)",
        f"-block dim = ({block},1,1)", f"-shmem = {shared}", "-nregs = 40", "-binary version = 90", "-cuda stream id = 0",
        "-shmem base_addr = 0x00007f2a00000000", "-local mem base_addr = 0x00007f2a01000000", "-nvbit version = 1.7.6",
        "-accelsim tracer version = 6", "-enable lineinfo = 0", "",
        "#traces format = [line_num] PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [addresses]",
    ]


def instructions(choose, cta, warp, lanes, rounds):
    """A loop of loads and products with scattered addresses, as a warp of a product of matrices has."""
    mask = f"{(1 << lanes) - 1:08x}"
    yield f"0000 {mask} 1 R1 LDC 0 0 0 NoVal"
    yield f"0010 {mask} 1 UR4 ULDC.64 0 0 0 NoVal"
    yield f"0020 {mask} 1 P0 ISETP.GE.AND 3 R1 UR4 P7 0 0 NoVal"
    for at in range(rounds):
        base = 0x7F2B00000000 + 0x4000 * cta + 0x1000 * warp + 0x40 * choose.randrange(32)
        far = " ".join(f"0x{base + 16 * choose.randrange(64):016x}" for _ in range(lanes))
        deltas = " ".join(str(4 * choose.randrange(-8, 9)) for _ in range(lanes - 1))
        yield f"0040 {mask} 1 R8 LDG.E.128 2 R2 UR4 16 0 {far} 0 NoVal"
        yield f"0050 {mask} 1 R16 LDG.E.64 2 R2 UR4 8 1 0x{base + 0x800:016x} 8 0 NoVal"
        yield f"0060 {mask} 1 R20 LDG.E 2 R2 UR4 4 2 0x{base + 0x400:016x} {deltas} 0 NoVal".replace("  ", " ")
        yield f"0070 {mask} 0 STS.128 2 R0 R8 16 1 0x{16 * choose.randrange(16):016x} 0 0 NoVal"
        yield f"0080 {mask} 1 R4 HMMA.16816.F32 3 R8 R16 R4 0 0 NoVal"
        yield f"0090 {mask} 1 R20 IADD3 3 R20 R1 R255 0 {at} 0 NoVal"
        yield f"00a0 {mask} 0 BRA 1 P0 0 0 NoVal"
    yield f"00b0 {mask} 0 STG.E.128 2 R2 R4 16 1 0x{0x7F2B00200000 + 0x4000 * cta + 0x1000 * warp:016x} 16 0 NoVal"
    yield f"00c0 {mask} 0 EXIT 0 0 0 NoVal"


def ctas(seed, numbers, warps, last_lanes, rounds):
    """Of each CTA its number and the lines of its warps; the last warp of CTA 0 has none."""
    choose = random.Random(seed)
    for cta in numbers:
        lanes = [32] * (warps - 1) + [last_lanes]
        lines = [list(instructions(choose, cta, at, lanes[at], rounds)) for at in range(warps)]
        yield cta, lines[:-1] + [[]] if cta == 0 else lines


STAGES = 4
TILE_BYTES = 16384  # 128 rows of 64 halves
PRODUCT_SHARED = 1280 + 2 * STAGES * TILE_BYTES


def value(*registers):
    """Values of registers, the same in all lanes."""
    return "Val " + " ".join(f"1 {register:x}" for register in registers)


def address(rank, byte):
    """An address of shared memory in a cluster."""
    return rank << 24 | byte


def tile(first, row_bytes, rows):
    """128 bytes a row: base, transfers, distances."""
    return f"4 0x{first:x} {rows} " + " ".join([str(row_bytes)] * (rows - 1))


def product_of_hopper(cta, steps):
    """C = A B of halves: tiles of 128 x 128, in steps of 64. Both CTAs of a cluster have the same columns: each loads
    half of the tile of B for both. A barrier of each stage is full, and one is empty."""
    rank, mask = cta % 2, "ffffffff"
    full, empty = [[address(rank, 0x400 + 8 * (n + of * STAGES)) for n in range(STAGES)] for of in range(2)]
    row_bytes, a, b, c = 128 * steps, 0x7F2B00000000, 0x7F2C00000000, 0x7F2D00000000
    init = lambda at, count: (
        f"0000 00000001 1 UR63 SYNCS.EXCH.64 2 UR5 UR6 8 0 0x{at:x} 0 "
        + value(0, at, ((0x100000 - count) << 11 & 0xFFFFFFFF) << 32 | (0x100000 - count) << 1)
    )
    wait = lambda pc, at, parity: (
        f"{pc} {mask} 1 P0 SYNCS.PHASECHK.TRANS64.TRYWAIT 2 R5 R6 8 1 0x{at:x} 0 0 " + value(1, at, parity << 31)
    )
    meet = [f"0040 {mask} 0 UCGABAR_ARV 0 0 0 NoVal", f"0050 {mask} 0 UCGABAR_WAIT 0 0 0 NoVal"]
    loads = [f"0010 {mask} 1 R1 S2R 0 0 0 NoVal"]
    loads += [init(at, 1) for at in full] + [init(at, 8) for at in empty] + meet
    for step in range(steps):
        stage, lap = step % STAGES, step // STAGES
        if lap:
            loads.append(wait("0060", empty[stage], (lap - 1) % 2))
        at = full[stage]
        loads.append(
            f"0070 00000001 0 SYNCS.ARRIVE.TRANS64 2 R5 R6 8 0 0x{at:x} 0 " + value(at, 2 * TILE_BYTES)
        )
        of_a, of_b = a + cta // 2 * 128 * row_bytes + 128 * step, b + 128 * step + 64 * rank * row_bytes
        of_a += rank * (1 << 24)
        rest = "0 NoVal"
        loads.append(
            f"0080 00000001 0 UTMALDG.2D 2 UR8 UR16 16 0x{at:x} 0 {TILE_BYTES} 0 {tile(of_a, row_bytes, 128)} {rest}"
        )
        loads.append(
            f"0090 00000001 0 UTMALDG.2D.MULTICAST 2 UR8 UR16 16 0x{at:x} 1 0x3 {TILE_BYTES // 2} 0 "
            f"{tile(of_b, row_bytes, 64)} {rest}"
        )
    yield loads + meet + [f"00f0 {mask} 0 EXIT 0 0 0 NoVal"]
    for warp in range(4):
        lines = [f"0100 {mask} 1 R1 S2R 0 0 0 NoVal", *meet]
        for step in range(steps):
            stage, parity = step % STAGES, step // STAGES % 2
            lines += [wait("0110", full[stage], parity), f"0120 {mask} 0 WARPGROUP.ARRIVE 0 0 0 NoVal"]
            for at in range(0x13, 0x17):
                product = f"1 R24 HGMMA.64x128x16.F32 3 UR8 R24 UP0 {at // 0x16} 0"
                lines.append(f"0{at:02x}0 {mask} {product} 0 NoVal")
            lines.append(f"0180 {mask} 0 WARPGROUP.DEPBAR.LE 0 0 0 NoVal")
            # One thread of each warp tells both CTAs that the stage is free.
            for other in range(2):
                at = address(other, 0x400 + 8 * (stage + STAGES))
                lines.append(f"0190 00000001 0 SYNCS.ARRIVE.TRANS64.RED.A1T0 1 UR6 8 0 0x{at:x} 0 NoVal")
        lines.append(f"01a0 {mask} 0 STSM.16.M88.4 2 R2 R24 16 1 0x{1280 + 512 * warp:x} 16 0 NoVal")
        lines.append(f"01b0 {mask} 0 BAR.SYNC.DEFER_BLOCKING 0 0 1 128 NoVal")
        if warp == 0:
            first = c + cta * 256 * 128
            lines.append(f"01c0 00000001 0 UTMASTG.2D 2 UR8 UR16 16 0x0 0 32768 0 {tile(first, 256, 128)} 0 NoVal")
            lines.append(f"01d0 {mask} 0 UTMACMDFLUSH 0 0 0 NoVal")
            lines.append(f"01e0 {mask} 0 DEPBAR.LE 0 0 0 NoVal")
        yield lines + meet + [f"01f0 {mask} 0 EXIT 0 0 0 NoVal"]


def text(lines, kernel):
    out = [*lines]
    for cta, warps in kernel:
        out += ["", "#BEGIN_TB", "", f"thread block = {cta},0,0", f"cluster id = {cta // 2},0,0"]
        out += [f"cluster cta = {cta % 2},0,0", f"cluster rank = {cta % 2}"]
        for at, warp in enumerate(warps):
            out += ["", f"warp = {at}", f"insts = {len(warp)}", *warp]
        out += ["", "#END_TB"]
    return "".join(f"{line}\n" for line in out).encode()


def pack(lines, kernel, dictionary_bytes):
    samples = [line.encode() for _, warps in kernel for warp in warps for line in warp[::8]]
    trained = zstandard.train_dictionary(dictionary_bytes, samples) if dictionary_bytes else None
    dictionary = trained.as_bytes() if trained else b""
    level = {"level": 3, "write_checksum": False, "write_content_size": True}
    compress = zstandard.ZstdCompressor(dict_data=trained, **level) if trained else zstandard.ZstdCompressor(**level)
    out = "".join(f"{line}\n" for line in lines).encode() + b"\0"
    out += struct.pack("<II", len(dictionary), INSTRUCTIONS_OF_A_FRAME) + dictionary
    index = struct.pack("<I", len(kernel))
    for cta, warps in kernel:
        index += struct.pack("<11I", cta, 0, 0, cta // 2, 0, 0, cta % 2, 0, 0, cta % 2, len(warps))
        for warp in warps:
            frames = [warp[at:at + INSTRUCTIONS_OF_A_FRAME] for at in range(0, len(warp), INSTRUCTIONS_OF_A_FRAME)]
            index += struct.pack("<IIQ", len(warp), len(frames), len(out))
            index += b"".join(struct.pack("<I", len(frame)) for frame in frames)
            out += struct.pack("<II", len(warp), len(frames))
            for frame in frames:
                packed = compress.compress("\n".join(frame).encode())
                out += struct.pack("<I", len(packed)) + packed
    return out + index + struct.pack("<Q", len(out))


def products(count, steps):
    return [(cta, list(product_of_hopper(cta, steps))) for cta in range(count)]


if len(sys.argv) > 1:
    count, steps = map(int, sys.argv[1:3])
    with open(sys.argv[3], "wb") as file:
        file.write(pack(header(3, count, 160, PRODUCT_SHARED), products(count, steps), 16384))
    sys.exit()

for number, grid, block, shared, dictionary_bytes, kernel in [
    (1, 5, 120, 1024, 1024, list(ctas(1, [0, 1, 2, 4], 4, 24, 3))),
    (2, 1, 64, 1024, 0, list(ctas(2, [0], 2, 32, 1))),
    (3, 4, 160, PRODUCT_SHARED, 1024, products(4, 6)),
]:
    lines = header(number, grid, block, shared)
    with open(f"kernel-{number}.tracez", "wb") as file:
        file.write(pack(lines, kernel, dictionary_bytes))
    with open(f"kernel-{number}.traceg.xz", "wb") as file:
        file.write(lzma.compress(text(lines, kernel), preset=6))
