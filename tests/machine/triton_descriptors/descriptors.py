"""A sum of matrices in Triton, whose kernel makes the maps of its tensors itself (`tl.make_tensor_descriptor`). Writes
kernel.ptx; needs no GPU.

TRITON_DISABLE_LINE_INFO=1 python descriptors.py    # Triton 3.9.0
"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile

@triton.jit
def add(a, b, c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    x = tl.make_tensor_descriptor(a, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    y = tl.make_tensor_descriptor(b, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    z = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    z.store([m, n], x.load([m, n]) + 2 * y.load([m, n]))

if __name__ == "__main__":
    sizes = {"BM": 32, "BN": 32}
    signature = {"a": "*fp32", "b": "*fp32", "c": "*fp32", "M": "i32", "N": "i32"}
    attrs = {(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]}
    source = ASTSource(add, {**signature, **dict.fromkeys(sizes, "constexpr")}, sizes, attrs)
    compiled = compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
    open("kernel.ptx", "w").write(compiled.asm["ptx"])
