"""Attention in Triton by tensor maps, after the algorithm of FlashAttention 2 (Dao, arXiv 2307.08691): both products are
`wgmma`. Writes kernel.ptx; needs no GPU.

TRITON_DISABLE_LINE_INFO=1 python attention.py [100]    # Triton 3.9.0; for Hopper, or Blackwell (../triton_blackwell_attention)
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile


@triton.jit
def attention(q_map, k_map, v_map, o_map, scale, rows, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    first = tl.program_id(0) * BM
    head = tl.program_id(1) * rows
    q = q_map.load([head + first, 0])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for n in range(0, rows, BN):
        k = k_map.load([head + n, 0])
        s = tl.dot(q, k.T) * (scale * 1.44269504)
        larger = tl.maximum(most, tl.max(s, 1))
        p = tl.math.exp2(s - larger[:, None])
        shrink = tl.math.exp2(most - larger)
        total = total * shrink + tl.sum(p, 1)
        v = v_map.load([head + n, 0])
        acc = tl.dot(p.to(tl.float16), v, acc * shrink[:, None])
        most = larger
    o_map.store([head + first, 0], acc / total[:, None])


if __name__ == "__main__":
    capability = int(sys.argv[1]) if len(sys.argv) > 1 else 90
    sizes = {"BM": 64, "BN": 64, "D": 64}
    half = "tensordesc<fp16[64, 64]>"
    signature = {"q_map": half, "k_map": half, "v_map": half, "o_map": "tensordesc<fp32[64, 64]>"}
    signature |= {"scale": "fp32", "rows": "i32"}
    source = ASTSource(attention, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes)
    compiled = compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "num_stages": 3})
    with open("kernel.ptx", "w") as file:
        file.write(compiled.asm["ptx"])
    print(compiled.metadata.shared, "bytes of dynamic shared memory,", compiled.metadata.tensordesc_meta)
