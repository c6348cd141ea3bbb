#!/usr/bin/env python3
"""Where the host instructions of a simulated warp instruction go, by stage of the machine.

    cargo build --profile profiling -p durawarp
    benches/stages.py target/profiling/durawarp [WORKLOAD:FIRST:SECOND ...]

Two prefixes of a run, of FIRST and SECOND cycles, are counted under callgrind; the difference of their counts over that of
their warp instructions is exact on any machine, and leaves the start of the run out. A stage is a set of source files. Code of
the standard library counts where it is inlined: as the file whose instructions come before it. Needs valgrind.
"""

import collections
import json
import re
import subprocess
import sys
import tempfile

WORKLOADS = ["fma:10000:20000", "gemm_tiled:10000:20000", "bfs:20000:40000", "gemm:20000:40000", "stream_triad:40000:80000"]

# The first that a path contains.
STAGES = [
    ("values", ["kernel/src/semantics"]),
    ("lanes of loads and stores", ["kernel/src/warp/memory", "coalescer", "shared_memory.rs"]),
    ("warps and their code", ["kernel/src/"]),
    ("scheduling, wake-ups", ["machine/src/scheduler", "machine/src/timers"]),
    ("scoreboard, accounts", ["sm/slots.rs", "sm/core.rs", "sm/wait.rs"]),
    ("load-store unit", ["sm/lsu", "sm/memory", "sm/requests", "sm/persist", "sm/combine", "sm/cleaning", "sm/ordered", "sm/copies"]),
    ("L1", ["machine/src/l1", "machine/src/cache", "machine/src/replacement"]),
    ("crossbar", ["network.rs", "crossbar.rs", "switch.rs", "sm/port.rs", "machine/src/ports.rs", "packet.rs", "msg.rs"]),
    ("the SM's cycle", ["machine/src/sm"]),
    ("L2", ["machine/src/l2", "machine/src/memory_port", "machine/src/line"]),
    ("memory controller", ["memory_controller", "media", "request_queue", "machine/src/image", "machine/src/contents", "address.rs"]),
    ("engine", ["engine/src/"]),
]


def stage(path):
    return next((name for name, parts in STAGES if any(part in path for part in parts)), "others")


def counts(path):
    """Instructions of a callgrind file by stage, those of called functions left out."""
    names, by_stage, here, skip = {}, collections.Counter(), "", False
    for line in open(path, encoding="utf-8"):
        if found := re.match(r"(c?)f[lie]=\((\d+)\)(?: (.*))?$", line):
            name = names.setdefault(found[2], found[3] or "")
            # What is inlined of the library belongs to what is around it; `cfi` names a file that is called.
            if not found[1] and ("/crates/" in name or line.startswith("fl=")):
                here = name
        elif line.startswith("calls="):
            skip = True
        elif line[0] in "0123456789+-*":
            if not skip:
                by_stage[stage(here)] += int(line.split()[1])
            skip = False
    return by_stage


def run(program, workload, cycles, folder):
    out, told = f"{folder}/{cycles}.out", f"{folder}/{cycles}.json"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, "run", workload, "--threads", "1"]
    command += ["--no-reference", "--max-cycles", cycles, "--json", told, "-q"]
    subprocess.run(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    sms = next(group for group in json.load(open(told, encoding="utf-8"))["counters"] if group["kind"] == "sm")
    column = sms["names"].index("warp_instructions")
    return counts(out), sum(row[column] for row in sms["rows"])


def main():
    program, *asked = sys.argv[1:]
    table = {}
    for each in asked or WORKLOADS:
        workload, first, second = each.split(":")
        with tempfile.TemporaryDirectory() as folder:
            (before, few), (after, many) = (run(program, workload, cycles, folder) for cycles in (first, second))
        table[workload] = {name: (after[name] - before[name]) / (many - few) for name in after | before}
    print("| stage | " + " | ".join(table) + " |\n|---|" + "---:|" * len(table))
    for name in [name for name, _ in STAGES] + ["others"]:
        print(f"| {name} | " + " | ".join(f"{column.get(name, 0):.0f}" for column in table.values()) + " |")
    print("| all | " + " | ".join(f"{sum(column.values()):.0f}" for column in table.values()) + " |")


if __name__ == "__main__":
    main()
