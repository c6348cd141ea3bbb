#!/bin/sh
# Compiles CUDA to PTX: FOLDER/kernel.cu to FOLDER/kernel.ptx, FILE.cu to FILE.ptx beside it. Needs no GPU.
#
#   workloads/compile.sh ~/mine/saxpy                     a folder anywhere
#   workloads/compile.sh a.cu b.cu -- -arch=compute_80    files; what follows -- goes to the compiler
#   workloads/compile.sh --with clang saxpy               with this compiler: nvcc, nvrtc or clang
#   workloads/compile.sh --which                          which compilers are found
#   workloads/compile.sh gemm                             a built-in workload; without a name all of them
#
# The first of these that is found compiles:
#
#   nvcc    of a CUDA toolkit (NVCC, PATH, CUDA_HOME, /usr/local/cuda) or of PyPI: pip install nvidia-cuda-nvcc
#           nvidia-cuda-cccl; needs g++
#   nvrtc   the library alone: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12; device code only
#   clang   Debian's and others, CLANG; CUDA's names come from include/clang, without NVIDIA's math library
#
# PTX is for sm_75 unless -arch says another one. Built-in workloads are compiled by clang 14, which made their committed PTX.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

# The folder of PyPI's packages of CUDA 13.
packages() {
    python3 - 2>/dev/null <<'END' || true
import os, site
for root in site.getsitepackages() + [site.getusersitepackages()]:
    if os.path.exists(root + "/nvidia/cu13/bin/nvcc"):
        print(root + "/nvidia/cu13")
        break
END
}

find_nvcc() {
    command -v "${CXX:-g++}" >/dev/null || return 0
    for found in "${NVCC:-}" "$(command -v nvcc || true)" ${CUDA_HOME:+"$CUDA_HOME/bin/nvcc"} \
        /usr/local/cuda/bin/nvcc "$(packages)/bin/nvcc"; do
        if [ -x "$found" ]; then
            echo "$found"
            break
        fi
    done
}

find_nvrtc() {
    python3 "$here/nvrtc.py" --version 2>/dev/null || true
}

# clang 14 first: it made the committed files.
find_clang() {
    for found in ${CLANG:+"$CLANG"} clang-14 clang clang-19 clang-18 clang-17 clang-16 clang-15; do
        if command -v "$found" >/dev/null; then
            echo "$found"
            break
        fi
    done
}

version() { # of nvcc or clang
    "$1" --version |
        sed -n 's/.*release .*, V\([0-9.]*\).*/\1/p; s/.*clang version \([0-9.]*\).*/\1/p' | head -1
}

# The compiler to use, and its name for people.
choose() {
    with=$1
    case $with in
    nvcc | "")
        tool=$(find_nvcc)
        if [ -n "$tool" ]; then with=nvcc && named="nvcc $(version "$tool")" && return; fi
        ;;
    esac
    case $with in
    nvrtc | "")
        tool=$(find_nvrtc)
        if [ -n "$tool" ]; then with=nvrtc && named="NVRTC $tool" && return; fi
        ;;
    esac
    case $with in
    clang | "")
        tool=$(find_clang)
        if [ -n "$tool" ]; then with=clang && named="clang $(version "$tool")" && return; fi
        ;;
    esac
    case $with in
    "") echo "$0: no compiler of CUDA: pip install nvidia-cuda-nvcc nvidia-cuda-cccl (needs g++), or install clang" >&2 ;;
    nvcc) echo "$0: no nvcc: pip install nvidia-cuda-nvcc nvidia-cuda-cccl (needs g++), or set NVCC" >&2 ;;
    nvrtc) echo "$0: no NVRTC: pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12 (needs python3)" >&2 ;;
    clang) echo "$0: no clang: install it, or set CLANG" >&2 ;;
    *) echo "$0: unknown compiler $with: nvcc, nvrtc or clang" >&2 ;;
    esac
    exit 2
}

compile() { # SOURCE OUTPUT FLAG...
    source=$1
    output=$2
    shift 2
    # The architecture is one flag for every compiler; other flags go on as they are.
    arch=75
    left=$#
    while [ "$left" -gt 0 ]; do
        flag=$1
        shift
        left=$((left - 1))
        case $flag in
        -arch=*_* | --gpu-architecture=*_* | --cuda-gpu-arch=*_*) arch=${flag##*_} ;;
        -gencode* | --generate-code*) arch= && set -- "$@" "$flag" ;;
        *) set -- "$@" "$flag" ;;
        esac
    done
    case $with in
    nvcc)
        packages=${tool%/bin/nvcc}
        "$tool" -ptx -allow-unsupported-compiler --extended-lambda ${arch:+-arch=compute_$arch} ${CXX:+-ccbin "$CXX"} \
            -I"$here/include" -I"$packages/include/cccl" -include "$here/include/device.cuh" "$@" \
            "$source" -o "$output" </dev/null || return 1
        ;;
    nvrtc)
        python3 "$here/nvrtc.py" "$source" "$output" "--gpu-architecture=compute_${arch:-75}" "-I$here/include" "$@" \
            </dev/null || return 1
        ;;
    clang)
        # Without a toolkit clang takes the oldest PTX that it knows: shuffles and votes need 6.3, `redux` needs 7.0.
        case ${arch:-75} in
        [1-7]?) version=63 ;;
        8[0-8]*) version=75 ;;
        *) version=80 ;;
        esac
        # Functions of the host's headers stay the host's, as with nvcc.
        "$tool" -x cuda --cuda-device-only --cuda-gpu-arch="sm_${arch:-75}" -nocudainc -nocudalib -O3 -S -std=c++17 \
            -Xclang -target-feature -Xclang "+ptx$version" -Xclang -fno-cuda-host-device-constexpr \
            -Wno-unknown-cuda-version -Wno-pass-failed -Wno-register -I"$here/include" -I"$here/include/clang" \
            -include "$here/include/device.cuh" "$@" "$source" -o "$output" </dev/null || return 1
        ;;
    esac
    # PTX of NVIDIA's compilers names its compiler.
    if [ "$with" = clang ]; then
        { echo "// Compiled by $named." && cat "$output"; } >"$output.part" && mv "$output.part" "$output"
    fi
    echo "$output: by $named"
}

builtin() { # FOLDER
    tool=$(find_clang)
    [ -n "$tool" ] || choose clang
    "$tool" -x cuda --cuda-device-only --cuda-gpu-arch=sm_60 -nocudainc -nocudalib -O3 -S -std=c++17 \
        -Xclang -fno-cuda-host-device-constexpr -I"$here/include" -I"$here/include/clang" "$1/kernel.cu" -o "$1/kernel.ptx"
    echo "$1/kernel.ptx: by clang $(version "$tool")"
}

with=
sources=
while [ $# -gt 0 ]; do
    case $1 in
    --with)
        [ $# -gt 1 ] || choose "nothing after --with"
        with=$2
        shift 2
        ;;
    --which)
        for with in nvcc nvrtc clang; do
            (choose $with 2>/dev/null && echo "$with: $named, ${tool}") || echo "$with: not found"
        done
        exit
        ;;
    --help | -h)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit
        ;;
    --)
        shift
        break
        ;;
    -*)
        echo "$0: unknown option $1: flags of the compiler follow --" >&2
        exit 2
        ;;
    *)
        sources="$sources$1
"
        shift
        ;;
    esac
done
if [ -z "$sources" ]; then
    for folder in "$here"/*/; do
        if [ -f "$folder/kernel.cu" ]; then builtin "${folder%/}"; fi
    done
    exit
fi

chosen=
failed=0
while IFS= read -r name; do
    name=${name%/}
    case $name in
    "") continue ;;
    *.cu) source=$name ;;
    *) source=$name/kernel.cu ;;
    esac
    if [ ! -f "$source" ] && [ -f "$here/$name/kernel.cu" ]; then
        builtin "$here/$name"
        continue
    fi
    if [ ! -f "$source" ]; then
        echo "$0: there is no $source" >&2
        exit 2
    fi
    folder=$(cd "$(dirname "$source")" && pwd)
    if [ "${source##*/}" = kernel.cu ] && [ "${folder%/*}" = "$here" ]; then
        builtin "$folder"
        continue
    fi
    if [ -z "$chosen" ]; then
        choose "$with"
        chosen=yes
    fi
    compile "$source" "${source%.cu}.ptx" "$@" || failed=1
done <<END
$sources
END
exit $failed
