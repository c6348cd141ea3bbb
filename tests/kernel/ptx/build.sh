#!/bin/sh
# Compiles the samples of this folder to PTX: with clang (Debian's will do), and with NVRTC if its library is found
# (`pip install nvidia-cuda-nvrtc-cu11`); LLVM's IR with llc 14. `halves.cu` and `names.cu` need NVRTC 12 and the toolkit's
# headers (`pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12`), `swaps16.cu` NVRTC 13. Run it only to change the samples; the PTX is committed.
set -e
cd "$(dirname "$0")"
for source in basics.cu; do
    name=${source%.cu}
    clang -x cuda --cuda-device-only -S -O2 -nocudainc -nocudalib --cuda-gpu-arch=sm_60 \
        -Xclang -target-feature -Xclang +ptx64 "$source" -o "$name.clang.ptx"
    python3 ../../../workloads/nvrtc.py "$source" "$name.nvrtc.ptx" --gpu-architecture=compute_60 ||
        echo "no NVRTC: $name.nvrtc.ptx left as it is"
done
python3 ../../../workloads/nvrtc.py halves.cu halves.nvrtc.ptx --gpu-architecture=compute_86 ||
    echo "no NVRTC 12: halves.nvrtc.ptx left as it is"
python3 ../../../workloads/nvrtc.py swaps16.cu swaps16.nvrtc.ptx --gpu-architecture=sm_90 -std=c++17 ||
    echo "no NVRTC 13: swaps16.nvrtc.ptx left as it is"
../../../workloads/compile.sh --with clang math.cu && mv math.ptx math.clang.ptx
../../../workloads/compile.sh --with clang names.cu && mv names.ptx names.clang.ptx
../../../workloads/compile.sh --with nvrtc names.cu && mv names.ptx names.nvrtc.ptx
llc -march=nvptx64 -mcpu=sm_60 -O2 calls.ll -o calls.llc.ptx
