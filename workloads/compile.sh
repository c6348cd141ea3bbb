#!/bin/sh
# Compiles kernel.cu to the kernel.ptx beside it. Needs only clang (Debian's clang 14 made the committed files): no CUDA
# toolkit, no GPU.
#
#   workloads/compile.sh                  every workload of this folder
#   workloads/compile.sh gemm             one of them
#   workloads/compile.sh ~/mine/saxpy     a folder anywhere
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- "$here"/*/
for name in "$@"; do
    folder=${name%/}
    [ -f "$folder/kernel.cu" ] || folder=$here/$folder
    if [ ! -f "$folder/kernel.cu" ]; then
        case $name in "$here"/*/) continue ;; esac
        echo "$0: no kernel.cu in $name" >&2
        exit 1
    fi
    clang -x cuda --cuda-device-only --cuda-gpu-arch=sm_60 -nocudainc -nocudalib -O3 -S \
        -I"$here/include" "$folder/kernel.cu" -o "$folder/kernel.ptx"
    echo "$folder/kernel.ptx"
done
