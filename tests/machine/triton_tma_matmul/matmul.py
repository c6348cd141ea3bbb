"""A product of matrices in Triton by tensor maps: `dot` is `wgmma`, loads and stores are those of tiles. Writes kernel.ptx;
needs no GPU.

TRITON_DISABLE_LINE_INFO=1 python matmul.py [100]    # Triton 3.9.0; for Hopper, or Blackwell (../triton_blackwell_tma_matmul)
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = a.load([m, k])
        y = b.load([n, k])
        acc = tl.dot(x, y.T, acc)
    c.store([m, n], acc)

if __name__ == "__main__":
    capability = int(sys.argv[1]) if len(sys.argv) > 1 else 90
    rows = 64 if capability < 100 else 128
    sizes = {"BM": rows, "BN": 64, "BK": 64}
    half = "tensordesc<fp16[64, 64]>"
    tiles = {"a": f"tensordesc<fp16[{rows}, 64]>", "b": half, "c": f"tensordesc<fp32[{rows}, 64]>"}
    signature = {**tiles, "K": "i32"}
    source = ASTSource(matmul, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes)
    compiled = compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "num_stages": 3})
    with open("kernel.ptx", "w") as file:
        file.write(compiled.asm["ptx"])
    print(compiled.metadata.shared, "bytes of dynamic shared memory,", compiled.metadata.tensordesc_meta)
