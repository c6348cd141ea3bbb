"""A product of matrices in Triton by tensor maps: `dot` is `wgmma`, loads and stores are those of tiles. Writes kernel.ptx;
needs no GPU.

TRITON_DISABLE_LINE_INFO=1 python matmul.py    # Triton 3.9.0
"""

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
    sizes = {"BM": 64, "BN": 64, "BK": 64}
    half = "tensordesc<fp16[64, 64]>"
    signature = {"a": half, "b": half, "c": "tensordesc<fp32[64, 64]>", "K": "i32"}
    source = ASTSource(matmul, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes)
    compiled = compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 3})
    with open("kernel.ptx", "w") as file:
        file.write(compiled.asm["ptx"])
    print(compiled.metadata.shared, "bytes of dynamic shared memory,", compiled.metadata.tensordesc_meta)
