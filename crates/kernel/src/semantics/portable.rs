//! The portable and the vector executor give the same bits, for every family of operations and any mask.

use std::sync::Arc;

use super::super::ir::{Kernel, Op};
use super::super::launch::{Binding, Launch, Surface};
use super::super::memory::AddressMap;
use super::super::ptx;
use super::super::warp::{Registers, Warp};
use super::{Executor, Frame, execute_portable, execute_vector};

/// One instruction of each shape on `r` (32 bits), `l` (64 bits), `p` (predicates), and types with rounding.
const INSTRUCTIONS: &str = "
    add.s32 r1, r2, r3; mul.lo.s32 r1, r2, r3; mul.hi.s32 r1, r2, r3; mul.hi.u32 r1, r2, r3; mad.lo.s32 r1, r2, r3, r4;
    div.s32 r1, r2, r3; rem.u32 r1, r2, r3; min.s32 r1, r2, r3; shl.b32 r1, r2, r3; shr.s32 r1, r2, r3; abs.s32 r1, r2;
    brev.b32 r1, r2; sad.u32 r1, r2, r3, r4; add.sat.s32 r1, r2, r3; mul24.hi.s32 r1, r2, r3; mad.wide.s32 l1, r2, r3, l2;
    add.s16 r1, r2, r3; div.s16 r1, r2, r3; max.u16 r1, r2, r3; mul.wide.s16 r1, r2, r3; shr.s16 r1, r2, r3;
    add.s64 l1, l2, l3; mul.lo.s64 l1, l2, l3; mul.hi.s64 l1, l2, l3; div.s64 l1, l2, l3; rem.u64 l1, l2, l3; shr.s64 l1, l2, r1;
    add.cc.u32 r1, r2, r3; addc.cc.u32 r1, r2, r3; subc.cc.u64 l1, l2, l3; madc.hi.cc.u32 r1, r2, r3, r4;
    popc.b32 r1, r2; clz.b64 r1, l2; bfind.s32 r1, r2; bfind.shiftamt.u64 r1, l2; fns.b32 r1, r2, r3, r4; bmsk.clamp.b32 r1, r2, r3;
    bfe.s32 r1, r2, r3, r4; bfe.u64 l1, l2, r3, r4; bfi.b32 r1, r2, r3, r4, r5; prmt.b32 r1, r2, r3, r4; prmt.b32.ecl r1, r2, r3, r4;
    lop3.b32 r1, r2, r3, r4, 0x96; shf.l.wrap.b32 r1, r2, r3, r4; shf.r.clamp.b32 r1, r2, r3, r4; dp4a.s32.u32 r1, r2, r3, r4;
    dp2a.hi.s32.s32 r1, r2, r3, r4; mov.b64 l1, {r1, r2}; mov.b64 {r1, r2}, l3; mov.b32 {r1, r2}, r3; selp.b32 r1, r2, r3, p1;
    setp.lt.s32 p1, r2, r3; setp.ltu.f32 p1|p2, r2, r3; setp.neu.and.f64 p1, l2, l3, !p2; set.gt.f32.f32 r1, r2, r3;
    slct.f32.f32 r1, r2, r3, r4; xor.pred p1, p2, p3; testp.normal.f32 p1, r2; testp.subnormal.f64 p1, l2;
    add.f32 r1, r2, r3; sub.ftz.f32 r1, r2, r3; mul.sat.f32 r1, r2, r3; fma.rn.f32 r1, r2, r3, r4; fma.rz.f32 r1, r2, r3, r4;
    fma.rn.ftz.f32 r1, r2, r3, r4; div.rn.f32 r1, r2, r3; div.rp.f32 r1, r2, r3; sqrt.rn.f32 r1, r2; sqrt.rm.f32 r1, r2;
    rcp.rn.f32 r1, r2; min.f32 r1, r2, r3; max.NaN.f32 r1, r2, r3; copysign.f32 r1, r2, r3; neg.ftz.f32 r1, r2;
    add.f64 l1, l2, l3; mul.rz.f64 l1, l2, l3; fma.rn.f64 l1, l2, l3, l4; fma.rp.f64 l1, l2, l3, l4; div.rn.f64 l1, l2, l3;
    sqrt.rn.f64 l1, l2; sqrt.rm.f64 l1, l2; min.f64 l1, l2, l3; rcp.approx.ftz.f64 l1, l2; rsqrt.approx.f64 l1, l2;
    ex2.approx.f32 r1, r2; lg2.approx.f32 r1, r2; sin.approx.f32 r1, r2; cos.approx.f32 r1, r2; tanh.approx.f32 r1, r2;
    rsqrt.approx.ftz.f32 r1, r2; rcp.approx.f32 r1, r2; sqrt.approx.f32 r1, r2; div.approx.f32 r1, r2, r3; div.full.f32 r1, r2, r3;
    cvt.rn.f32.s32 r1, r2; cvt.rz.f32.u64 r1, l2; cvt.rzi.s32.f32 r1, r2; cvt.rni.u64.f32 l1, r2; cvt.rmi.f32.f32 r1, r2;
    cvt.f64.f32 l1, r2; cvt.rp.f32.f64 r1, l2; cvt.rn.f16.f32 r1, r2; cvt.f32.f16 r1, r2; cvt.sat.u8.s32 r1, r2; cvt.s64.s32 l1, r2;
    cvt.rni.s64.f64 l1, l2; shfl.sync.bfly.b32 r1|p1, r2, r3, r4, -1; vote.sync.ballot.b32 r1, p1, -1; vote.sync.uni.pred p1, p2, -1;
    add.f16 r1, r2, r3; sub.ftz.f16x2 r1, r2, r3; mul.sat.f16x2 r1, r2, r3; fma.rn.f16x2 r1, r2, r3, r4; fma.rn.relu.bf16 r1, r2, r3, r4;
    fma.rn.bf16x2 r1, r2, r3, r4; min.NaN.f16x2 r1, r2, r3; max.xorsign.abs.bf16 r1, r2, r3; abs.f16 r1, r2; neg.ftz.f16x2 r1, r2;
    ex2.approx.f16x2 r1, r2; ex2.approx.ftz.bf16 r1, r2; tanh.approx.bf16x2 r1, r2; setp.ltu.f16x2 p1|p2, r2, r3;
    set.gt.bf16x2.bf16x2 r1, r2, r3; cvt.rn.f16x2.f32 r1, r2, r3; cvt.rz.relu.bf16x2.f32 r1, r2, r3; cvt.rn.bf16.f32 r1, r2;
    cvt.f32.bf16 r1, r2; cvt.rm.bf16.f64 r1, l2; cvt.rzi.s32.f16 r1, r2; fma.rz.f32.f16 r1, r2, r3, r4; sub.sat.f32.bf16 r1, r2, r3;
    vadd.s32.u32.s32.sat r1, r2.b0, r3.h1; vsub.u32.s32.s32.min r1, r2, r3, r4; vabsdiff.s32.s32.u32.sat r1.b2, r2.h0, r3, r4;
    vshl.s32.s32.u32.sat.clamp r1, r2, r3.b1; vshr.u32.s32.u32.wrap.add r1, r2, r3, r4; vset.s32.u32.lt.max r1, r2, r3, r4;
    vmad.s32.s32.u32.sat.shr7 r1, r2.h1, -r3.b0, r4; vadd2.s32.s32.u32.sat r1.h1, r2, r3, r4; vavrg4.u32.s32.s32.add r1, r2, r3, r4;
    vset4.u32.s32.ge r1.b20, r2.b7012, r3, r4; vabsdiff2.u32.s32.s32 r1, r2.h30, r3, r4;
    suld.b.2d.b32.clamp r1, [s, {r2, r3}]; sust.b.a1d.b64.zero [s, {r3, r2}], l1;
    match.any.sync.b32 r1, r2, -1; redux.sync.min.s32 r1, r2, -1; activemask.b32 r1; isspacep.shared p1, l2;
";

fn launch() -> Launch {
    let text = format!(
        ".version 8.0 .global .surfref s; .entry k() {{ .reg .b32 r<6>; .reg .b64 l<5>; .reg .pred p<4>; {INSTRUCTIONS} ret; }}"
    );
    let module = ptx::parse("portable.ptx", &text).unwrap_or_else(|e| panic!("{e}"));
    let surface = Surface { address: 1 << 20, width: 40, height: 30, depth: 20, pitch: 64, element: 1 };
    let binding = Binding {
        grid: [1; 3],
        block: [32, 1, 1],
        dynamic_shared: 0,
        params: &[],
        globals: &[],
        const_bank: None,
        textures: &[],
        surfaces: &[("s".to_owned(), surface)],
        registers: None,
        cluster: None,
        addresses: Arc::new(AddressMap::default()),
    };
    Launch::bind(&module, &module.kernels[0], &binding).unwrap()
}

/// Random bits, small numbers, and floats near one.
fn fill(registers: &mut Registers, state: &mut u64) {
    let mut next = || {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 16 ^ *state << 40
    };
    let mut value = || match next() & 7 {
        0 => next() & 63,
        1 => u64::MAX - (next() & 3),
        2 => u64::from((1.0 + (next() & 0xff) as f32 / 64.0).to_bits()) | 0x3ff0_0000 << 32,
        3 => 0x7f80_0000 | (0x7ff0_0000 << 32) | next() & 1,
        _ => next(),
    };
    for lanes in &mut registers.r32 {
        *lanes = std::array::from_fn(|_| value() as u32);
    }
    for lanes in &mut registers.r64 {
        *lanes = std::array::from_fn(|_| value());
    }
    for lanes in &mut registers.predicates {
        *lanes = value() as u32;
    }
}

fn run(execute: Executor, launch: &Launch, kernel: &Kernel, pc: usize, registers: &Registers, mask: u32) -> Registers {
    let mut after = registers.clone();
    let inst = &kernel.code[pc];
    if let Op::Alu(_) = inst.op {
        let (consts32, consts64) = (&launch.consts32, &launch.consts64);
        execute(&mut Frame { regs: &mut after, consts32, consts64, mask }, std::slice::from_ref(inst));
    }
    after
}

#[test]
fn both_executors_give_the_same_bits() {
    // Hosts without the vector instruction set have one executor only.
    let Some(vector) = execute_vector() else { return };
    let launch = launch();
    let kernel = &*launch.kernel;
    let mut warp = Warp::default();
    warp.start(&launch, 0, 0, 32);
    let mut state = 1;
    for pc in 0..kernel.code.len() {
        for mask in [u32::MAX, 0x8000_0001, 0x00ff_ff00] {
            for _ in 0..40 {
                let mut registers = warp.groups_mut()[0].clone();
                fill(&mut registers, &mut state);
                let portable = run(execute_portable, &launch, kernel, pc, &registers, mask);
                let fast = run(vector, &launch, kernel, pc, &registers, mask);
                let same =
                    portable.r32 == fast.r32 && portable.r64 == fast.r64 && portable.predicates == fast.predicates;
                assert!(same, "line {:?} of the text: {:?}", kernel.pos[pc], kernel.code[pc]);
            }
        }
    }
}
