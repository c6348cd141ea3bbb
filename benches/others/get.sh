#!/usr/bin/env bash
# Fetches kernels that others wrote, beside their manifests: FlashAttention 2's forward kernel out of vLLM's wheel, CUTLASS's dense
# products for sm_90a and sm_100a, compiled by its own compiler, and those of CuTe's tutorial for sm_90a, by nvcc. Needs Python 3.11
# with pip, git, unzip, a C++ compiler and 4 GB of disk; needs neither CUDA nor a GPU (`cuobjdump` is that of Triton's wheel, nvcc
# that of PyPI). Then:
#
#   durawarp run benches/others/fa2 --machine ampere-a100
#   durawarp run benches/others/cutlass_gemm
#   durawarp run benches/others/cutlass_blackwell
#   durawarp run benches/others/cute_wgmma
#   durawarp crash benches/others/fa2 --machine ampere-a100 --scheme strict
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
pip="$work/venv/bin/pip"

# The kernel of halves, 64 columns a head, neither dropout, causal, local, alibi nor softcap, whole blocks.
"$pip" download -q --no-deps --only-binary :all: --platform manylinux_2_28_x86_64 -d "$work" vllm==0.33.0
unzip -q -d "$work" "$work"/vllm-*.whl 'vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so'
"$pip" install -q triton==3.9.0
(cd "$work" && venv/lib/python3*/site-packages/triton/backends/nvidia/bin/cuobjdump -xptx all vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so >/dev/null)
python3 - "$work" "$here/fa2/kernel.ptx" <<'PYTHON'
import pathlib, re, sys

wanted = re.compile(r"flash_fwd_kernelI\S*Li64ELi128ELi128ELi4E\S*half_t\S*EE(?:Lb0E){4}Lb1ELb1ELb0ELb0EEEvNS_16Flash_fwd_params")
for path in pathlib.Path(sys.argv[1]).glob("*.ptx"):
    head, *kernels = re.split(r"(?m)^(?=\.(?:visible|weak) \.entry)", path.read_text())
    for kernel in kernels:
        name = re.search(r"entry (\S+?)\(", kernel).group(1)
        if wanted.search(name):
            pathlib.Path(sys.argv[2]).write_text(head + kernel.replace(name, "flash_fwd"))
            sys.exit()
sys.exit("no such kernel in the wheel")
PYTHON

"$pip" install -q nvidia-cutlass-dsl==4.8.1
git clone -q --filter=blob:none --no-checkout https://github.com/NVIDIA/cutlass "$work/cutlass"
git -C "$work/cutlass" show 7107b0553:examples/python/CuTeDSL/cute/hopper/kernel/dense_gemm/dense_gemm.py > "$work/dense_gemm.py"
mkdir "$work/dump"
(cd "$work" && CUTE_DSL_ARCH=sm_90a CUTE_DSL_KEEP_PTX=1 CUTE_DSL_DUMP_DIR="$work/dump" venv/bin/python - <<'PYTHON'
import cutlass, cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.runtime import make_fake_stream
from dense_gemm import HopperWgmmaGemmKernel


def matrix(rows, columns):
    return make_fake_compact_tensor(cutlass.Float16, (rows, columns, 1), stride_order=(1, 0, 2), assumed_align=16)


# The sizes of the manifest: tiles of 128 x 128, no clusters.
product = HopperWgmmaGemmKernel(cutlass.Float32, (128, 128), (1, 1))
cute.compile(product, matrix(256, 256), matrix(128, 256), matrix(256, 128), make_fake_stream())
PYTHON
)
sed -E 's/kernel_cutlass_kernel_[A-Za-z0-9_]*_0([(_])/dense_gemm\1/' "$work"/dump/*.ptx > "$work/kernel.txt"
cp "$work/kernel.txt" "$here/cutlass_gemm/kernel.ptx"

# The same sizes and tiles for Blackwell: products of one CTA, results stored by tensor maps.
git -C "$work/cutlass" show 7107b0553:examples/python/CuTeDSL/cute/blackwell/kernel/dense_gemm/dense_gemm.py > "$work/blackwell.py"
mkdir "$work/dump100"
(cd "$work" && CUTE_DSL_ARCH=sm_100a CUTE_DSL_KEEP_PTX=1 CUTE_DSL_DUMP_DIR="$work/dump100" venv/bin/python - <<'PYTHON'
import cutlass, cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.runtime import make_fake_stream
from blackwell import DenseGemmKernel


def matrix(rows, columns):
    return make_fake_compact_tensor(cutlass.Float16, (rows, columns, 1), stride_order=(1, 0, 2), assumed_align=16)


product = DenseGemmKernel(cutlass.Float32, False, (128, 128), (1, 1), True)
cute.compile(product, matrix(256, 256), matrix(128, 256), matrix(256, 128), make_fake_stream())
PYTHON
)
sed -E 's/kernel_cutlass_kernel_[A-Za-z0-9_]*_0([(_])/dense_gemm\1/' "$work"/dump100/*.ptx | tr -d '\000' > "$here/cutlass_blackwell/kernel.ptx"

# Products in halves, of columns and of rows, in clusters of two.
"$pip" install -q --no-deps nvidia-cuda-nvcc==13.5.37 nvidia-cuda-crt==13.5.37 nvidia-nvvm==13.5.37 nvidia-cuda-runtime==13.5.37 \
    nvidia-cuda-cccl==13.3.5.0.6
git -C "$work/cutlass" checkout -q 7107b0553 -- include tools/util/include examples/cute/tutorial/hopper
nvcc=$(echo "$work"/venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc)
(cd "$work/cutlass" && "$nvcc" -ptx -arch=sm_90a -std=c++17 --expt-relaxed-constexpr -DNDEBUG -Iinclude -Itools/util/include \
    -o "$work/tutorial.ptx" examples/cute/tutorial/hopper/wgmma_tma_sm90.cu)
python3 - "$work/tutorial.ptx" "$here/cute_wgmma/kernel.ptx" <<'PYTHON'
import pathlib, re, sys

text = pathlib.Path(sys.argv[1]).read_text()
for name, short in zip(re.findall(r"\.entry (\S+?)\(", text), ["gemm_nt", "gemm_tn"], strict=True):
    text = text.replace(name, short)
pathlib.Path(sys.argv[2]).write_text(text)
PYTHON
