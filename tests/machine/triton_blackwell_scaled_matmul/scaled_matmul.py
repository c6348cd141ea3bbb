"""A product of matrices of 4-bit floats with scale factors in Triton (`dot_scaled`): tiles by tensor maps, factors by plain
loads. Writes kernel.ptx; needs no GPU.

TRITON_DISABLE_LINE_INFO=1 python scaled_matmul.py    # Triton 3.9.0
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

@triton.jit
def scaled(a, b, sa, sb, c, K, VEC: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    rm = m + tl.arange(0, BM)
    rn = n + tl.arange(0, BN)
    rs = tl.arange(0, BK // VEC)
    per_row = K // VEC
    for k in range(0, K, BK):
        x = a.load([m, k // 2])
        y = b.load([n, k // 2])
        scale_a = tl.load(sa + rm[:, None] * per_row + k // VEC + rs[None, :])
        scale_b = tl.load(sb + rn[:, None] * per_row + k // VEC + rs[None, :])
        acc = tl.dot_scaled(x, scale_a, "e2m1", y.T, scale_b, "e2m1", acc)
    c.store([m, n], acc)

if __name__ == "__main__":
    sizes = {"VEC": 16, "BM": 128, "BN": 128, "BK": 128}
    tile, factors = "tensordesc<u8[128, 64]>", "*fp8e4nv"
    signature = {"a": tile, "b": tile, "sa": factors, "sb": factors, "c": "tensordesc<fp32[128, 128]>", "K": "i32"}
    source = ASTSource(scaled, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes)
    compiled = compile(source, target=GPUTarget("cuda", 100, 32), options={"num_warps": 4, "num_stages": 3})
    with open("kernel.ptx", "w") as file:
        file.write(compiled.asm["ptx"])
    print(compiled.metadata.shared, "bytes of dynamic shared memory,", compiled.metadata.tensordesc_meta)
