#!/bin/sh
# Compiles every workloads/*/kernel.cu to the kernel.ptx beside it. Needs only clang (Debian's clang 14 made the committed
# files): no CUDA toolkit, no GPU. Run it in this folder; name workloads to compile only these.
set -eu
cd "$(dirname "$0")"
for source in ${@:-*}; do
    source=${source%/}/kernel.cu
    [ -f "$source" ] || continue
    clang -x cuda --cuda-device-only --cuda-gpu-arch=sm_60 -nocudainc -nocudalib -O3 -S \
        -Iinclude "$source" -o "${source%.cu}.ptx"
    echo "$source"
done
