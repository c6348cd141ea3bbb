#!/bin/sh
# Compiles NAME.c to the freestanding executable NAME.elf beside it. Needs only a RISC-V cross compiler (Debian's
# gcc-riscv64-linux-gnu 12.2 made the committed files).
#
#   workloads/compile_riscv.sh                     every C program of workloads
#   workloads/compile_riscv.sh ~/mine/hash.c       a program anywhere
#   CC=riscv64-unknown-elf-gcc workloads/compile_riscv.sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- "$here"/*/*.c "$here"/litmus/cpu/*.c
for source in "$@"; do
    "${CC:-riscv64-linux-gnu-gcc}" -O2 -march=rv64gc -mabi=lp64d -mcmodel=medany -ffreestanding -fno-builtin -fno-pie \
        -fno-stack-protector -fno-asynchronous-unwind-tables -Wall -Wextra ${CFLAGS-} -I"$here/include" \
        -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,max-page-size=4096,-z,separate-code "$source" -o "${source%.c}.elf"
    echo "${source%.c}.elf"
done
