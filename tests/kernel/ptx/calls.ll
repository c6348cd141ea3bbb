; A table of functions, and a factorial that calls itself through it. `build.sh` makes PTX of this.
target triple = "nvptx64-nvidia-cuda"
%fn = type i32 (i64, i32)
@vt = addrspace(1) constant [3 x %fn*] [%fn* null, %fn* @square, %fn* @fact]
define internal i32 @square(i64 %this, i32 %n) noinline {
  %m = mul i32 %n, %n
  ret i32 %m
}
define internal i32 @fact(i64 %this, i32 %n) noinline {
  %buf = alloca i32
  %c = icmp ult i32 %n, 2
  br i1 %c, label %base, label %rec
base:
  ret i32 1
rec:
  store volatile i32 %n, i32* %buf
  %n1 = sub i32 %n, 1
  %p = load volatile %fn*, %fn* addrspace(1)* getelementptr ([3 x %fn*], [3 x %fn*] addrspace(1)* @vt, i64 0, i64 2)
  %r = call i32 %p(i64 %this, i32 %n1)
  %v = load volatile i32, i32* %buf
  %m = mul i32 %r, %v
  ret i32 %m
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define void @k(i32* %in, i32* %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = and i32 %t, 1
  %b64 = zext i32 %b to i64
  %i = add i64 %b64, 1
  %slot = getelementptr [3 x %fn*], [3 x %fn*] addrspace(1)* @vt, i64 0, i64 %i
  %f = load volatile %fn*, %fn* addrspace(1)* %slot
  %r = call i32 %f(i64 7, i32 %t)
  %t64 = zext i32 %t to i64
  %o = getelementptr i32, i32* %out, i64 %t64
  store i32 %r, i32* %o
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void (i32*, i32*)* @k, !"kernel", i32 1}
