//! Time of one warp instruction, and speed of the functional driver.
//!
//! `cargo bench --bench kernel`. The first group reports time per warp instruction, dispatch included; the second warp
//! instructions per second of whole kernels.

#[path = "../src/allocator.rs"]
mod allocator;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use durawarp::kernel::functional::{Limits, run};
use durawarp::kernel::ir::{Module, Op};
use durawarp::kernel::launch::{Binding, Launch, ParamBlock};
use durawarp::kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp::kernel::ptx;
use durawarp::kernel::warp::Warp;

const INSTRUCTIONS: [&str; 16] = [
    "mov.u32 %r4, %r1",
    "add.s32 %r4, %r1, %r2",
    "mad.lo.s32 %r4, %r1, %r2, %r3",
    "shl.b32 %r4, %r1, 3",
    "setp.lt.s32 %p1, %r1, %r2",
    "selp.b32 %r4, %r1, %r2, %p1",
    "add.f32 %f4, %f1, %f2",
    "fma.rn.f32 %f4, %f1, %f2, %f3",
    "mul.ftz.f32 %f4, %f1, %f2",
    "div.rn.f32 %f4, %f1, %f2",
    "ex2.approx.f32 %f4, %f1",
    "cvt.rn.f32.s32 %f4, %r1",
    "cvt.u64.u32 %rd4, %r1",
    "mul.wide.s32 %rd4, %r1, %r2",
    "add.s64 %rd4, %rd1, %rd2",
    "fma.rn.f64 %d4, %d1, %d2, %d3",
];

fn launch(module: &Module, grid: u32, block: [u32; 3], params: &[u8], map: &AddressMap) -> Launch {
    let binding = Binding {
        grid: [grid, 1, 1],
        block,
        dynamic_shared: 0,
        params,
        globals: &[],
        const_bank: None,
        textures: &[],
        surfaces: &[],
        registers: None,
        cluster: None,
        addresses: Arc::new(map.clone()),
    };
    Launch::bind(module, &module.kernels[0], &binding).unwrap()
}

fn warp_instructions(c: &mut Criterion) {
    let mut group = c.benchmark_group("warp_instruction");
    for instruction in INSTRUCTIONS {
        // The sources stay alive behind the instruction, so that every operand has a slot of its own.
        let text = format!(
            ".version 8.0 .visible .entry k() {{ .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .reg .f64 %d<9>; .reg .pred %p<3>;
            mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, 7; mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000;
            mov.f32 %f3, 0f3F000000; mov.u64 %rd1, 5; mov.u64 %rd2, 6; mov.f64 %d1, 0d3FF0000000000000;
            mov.f64 %d2, 0d4000000000000000; mov.f64 %d3, 0d3FE0000000000000; setp.eq.s32 %p1, %r1, %r2;
            {instruction};
            add.s32 %r5, %r1, %r2; add.s32 %r5, %r3, %r4; add.f32 %f5, %f1, %f2; add.f32 %f5, %f3, %f4;
            add.s64 %rd5, %rd1, %rd2; add.s64 %rd5, %rd4, %rd4; add.f64 %d5, %d1, %d2; add.f64 %d5, %d3, %d4;
            selp.b32 %r5, %r1, %r2, %p1; ret; }}"
        );
        let module = ptx::parse("bench.ptx", &text).unwrap_or_else(|e| panic!("{e}"));
        let launch = launch(&module, 1, [32, 1, 1], &[], &AddressMap::default());
        let mut warp = Warp::default();
        warp.start(&launch, 0, 0, 32);
        let code = &launch.kernel.code;
        for inst in &code[..12] {
            warp.alu(inst, &launch, u64::from(u32::MAX));
        }
        let inst = &code[12];
        assert!(matches!(inst.op, Op::Alu(_)));
        let name = instruction.split(' ').next().unwrap_or("");
        for (suffix, lanes) in [("full", u64::from(u32::MAX)), ("partial", 0x5a5a_00ff)] {
            group.bench_function(format!("{name}/{suffix}"), |b| {
                b.iter(|| warp.alu(black_box(inst), &launch, black_box(lanes)));
            });
        }
    }
    group.finish();
}

const ALU: &str = ".version 8.0 .visible .entry alu(.param .u64 out, .param .u32 n) {
    .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b64 %rd<6>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.s32 %r5, %r3, %r4, %r2;
    cvt.rn.f32.s32 %f1, %r5; mov.f32 %f2, 0f3F000000; mov.u32 %r6, 0;
LOOP:
    fma.rn.f32 %f1, %f1, %f2, %f2; fma.rn.f32 %f3, %f1, %f1, %f2; add.f32 %f4, %f3, %f1; mul.f32 %f1, %f4, %f2;
    shl.b32 %r7, %r5, 3; xor.b32 %r5, %r5, %r7; shr.u32 %r7, %r5, 5; xor.b32 %r5, %r5, %r7; mad.lo.s32 %r5, %r5, 5, %r6;
    add.s32 %r6, %r6, 1; setp.lt.s32 %p1, %r6, %r1; @%p1 bra LOOP;
    mul.wide.s32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2; cvt.rn.f32.u32 %f5, %r5; add.f32 %f5, %f5, %f1;
    st.global.f32 [%rd3], %f5; ret; }";

const BASICS: &str = include_str!("../tests/kernel/ptx/basics.nvrtc.ptx");

fn kernels(c: &mut Criterion) {
    let mut group = c.benchmark_group("functional");
    group.sample_size(10);
    {
        let module = ptx::parse("alu.ptx", ALU).unwrap_or_else(|e| panic!("{e}"));
        let mut map = AddressMap::default();
        let out = map.allocate("out", 4096, Medium::Dram);
        let params = ParamBlock::new(&module.kernels[0]).u64(out).u32(1000).finish();
        let launch = launch(&module, 8, [256, 1, 1], &params, &map);
        let mut memory = FlatMemory::new(&map);
        let counts = run(&launch, &mut memory, &Limits::default()).unwrap();
        group.throughput(Throughput::Elements(counts.warp_instructions));
        group.bench_function("alu", |b| b.iter(|| run(&launch, &mut memory, &Limits::default()).unwrap()));
    }
    let n = 128u64;
    for name in ["vecadd", "gemm", "collatz"] {
        let mut module = ptx::parse("basics.ptx", BASICS).unwrap_or_else(|e| panic!("{e}"));
        module.kernels.retain(|k| k.name == name);
        module.globals.clear();
        let mut map = AddressMap::default();
        let buffers: Vec<u64> = (0..3).map(|_| map.allocate("buffer", 4 * n * n, Medium::Dram)).collect();
        let mut memory = FlatMemory::new(&map);
        let data: Vec<u32> = (1..=(n * n) as u32).collect();
        memory.write_u32s(buffers[0], &data).unwrap();
        let mut block = ParamBlock::new(&module.kernels[0]);
        for &buffer in &buffers[..module.kernels[0].params.len() - 1] {
            block = block.u64(buffer);
        }
        let gemm = name == "gemm";
        let params = block.u32(if gemm { n } else { n * n } as u32).finish();
        let (grid, shape) = if gemm { (n as u32 / 16, [16, 16, 1]) } else { ((n * n / 256) as u32, [256, 1, 1]) };
        let mut launch = launch(&module, grid, shape, &params, &map);
        if gemm {
            launch.grid[1] = grid;
        }
        let counts = run(&launch, &mut memory, &Limits::default()).unwrap();
        group.throughput(Throughput::Elements(counts.warp_instructions));
        group.bench_function(name, |b| b.iter(|| run(&launch, &mut memory, &Limits::default()).unwrap()));
    }
    group.finish();
}

criterion_group!(benches, warp_instructions, kernels);
criterion_main!(benches);
