"""A product of matrices in Triton, which compiles its `dot` to `wgmma`. Writes kernel.ptx; needs no GPU.

TRITON_DISABLE_LINE_INFO=1 python matmul.py [100]    # Triton 3.9.0; for Hopper, or Blackwell (../triton_blackwell_matmul)
"""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * K + rk[None, :]
    b = b_ptr + rk[:, None] * N + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += BK
        b += BK * N
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc)


if __name__ == "__main__":
    capability = int(sys.argv[1]) if len(sys.argv) > 1 else 90
    sizes = {"BM": 64, "BN": 64, "BK": 64}
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
    aligned = {(i,): [["tt.divisibility", 16]] for i in range(6)}
    source = ASTSource(matmul, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes, aligned)
    compiled = compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "num_stages": 3})
    with open("kernel.ptx", "w") as file:
        file.write(compiled.asm["ptx"])
    print(compiled.metadata.shared, "bytes of dynamic shared memory")
