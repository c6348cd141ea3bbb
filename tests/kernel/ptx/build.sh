#!/bin/sh
# Compiles the samples of this folder to PTX: with clang (Debian's will do), and with NVRTC if its library is found
# (`pip install nvidia-cuda-nvrtc-cu11`); LLVM's IR with llc 14. Run it only to change the samples; the PTX is committed.
set -e
cd "$(dirname "$0")"
for source in *.cu; do
    name=${source%.cu}
    clang -x cuda --cuda-device-only -S -O2 -nocudainc -nocudalib --cuda-gpu-arch=sm_60 \
        -Xclang -target-feature -Xclang +ptx64 "$source" -o "$name.clang.ptx"
    python3 nvrtc.py "$source" "$name.nvrtc.ptx" || echo "no NVRTC: $name.nvrtc.ptx left as it is"
done
llc -march=nvptx64 -mcpu=sm_60 -O2 calls.ll -o calls.llc.ptx
