//! Tensor memory of Blackwell in traces: products, copies and transfers take what those of `tcgen05` in PTX take
//! (`tests/machine/tensor_memory.rs`, `tensor_pairs.rs`), arrivals come behind products, and a product whose line does not say
//! how large it is takes no time, which is told.

use super::super::clusters::{goes_on, same_at_any_threads, small, workload};
use super::super::tensor_memory::{COMMIT, WAIT, cycles as of_kernel, product as kernel_product};
use super::beside::{ALL, BARRIER, Line, MEMORY, ONE, begin, expect, finished, of_rank, plain, sync, traced, wait};
use crate::bench_machine::machine;
use durawarp::outcome::Outcome;

/// Types of a product of `f16` that sums in single precision.
const F16: u32 = 1 << 4;

/// The descriptor of a product of this number of rows and columns.
fn descriptor(types: u32, rows: u32, columns: u32) -> u32 {
    types | (columns / 8) << 17 | (rows / 16) << 24
}

/// A product, as its line has it.
fn product(opcode: &str, descriptor: u32) -> Line {
    let values = format!("Val 1 6 1 8 1 f 1 0 1 {descriptor:x} 1 1");
    (ONE, format!("0 {opcode} 6 UR6 UR8 UR15 UR12 UR13 UP0 0 0 {values}"))
}

/// An arrival behind products.
fn commit(barrier: u64) -> Line {
    (ONE, format!("0 UTCBAR 2 UR4 UR255 8 0 {barrier:#x} 0 NoVal"))
}

/// The same in the CTAs of a mask.
fn commit_to(opcode: &str, barrier: u64, mask: u32) -> Line {
    (ONE, format!("0 {opcode} 3 UR4 UR255 UR6 8 0 {barrier:#x} 0 Val 1 {barrier:x} 1 0 1 {mask:x}"))
}

/// A trace of one CTA of one warp on a B200.
fn outcome(lines: &[Line]) -> Outcome {
    let (_folder, recipe) = traced(1, 1, 1, |_, _| lines.to_vec());
    finished(small(recipe).machine("blackwell-b200"))
}

fn cycles(lines: &[Line]) -> u64 {
    outcome(lines).time.core_cycles
}

/// Lines between the begin of a barrier and the wait for its first phase.
fn awaited(lines: &[Line]) -> u64 {
    cycles(&[&[begin(BARRIER, 1)], lines, &[commit(BARRIER), wait(BARRIER, 0)]].concat())
}

#[test]
fn a_chain_of_products_has_the_rate_of_its_shape_as_in_ptx() {
    let spec = machine("blackwell-b200", "");
    for (opcode, kind, types, rate, depth) in [
        ("UTCHMMA", "f16", F16, 8192, 16),
        ("UTCHMMA", "tf32", F16 | 2 << 7 | 2 << 10, 4096, 8),
        ("UTCQMMA", "f8f6f4", F16, 16384, 32),
        ("UTCIMMA", "i8", 2 << 4 | 1 << 7 | 1 << 10, 16384, 32),
        ("UTCOMMA.4X", "", 1 << 7 | 1 << 10, 32768, 64),
        ("UTCOMMA.4X", "", 1 << 7 | 1 << 10 | 1 << 31, 32768, 96),
    ] {
        let chain =
            |columns: u32, count: usize| awaited(&vec![product(opcode, descriptor(types, 128, columns)); count]);
        let work = |columns: u64| 2 * 128 * columns * depth / rate;
        assert_eq!(chain(128, 33) - chain(128, 1), 32 * work(128), "{opcode}, {kind}");
        // One takes its work and its tail, which PTX has too.
        assert_eq!(chain(256, 1) - chain(128, 1), work(256) - work(128), "{opcode}, {kind}");
        if kind.is_empty() {
            continue;
        }
        let there =
            |count: usize| of_kernel(&spec, &format!("{}{COMMIT}{WAIT}", kernel_product(kind, 128).repeat(count)));
        let round = there(2) - there(1);
        assert!((there(33) - there(1)).abs_diff(32 * work(128)) <= round, "{kind}");
    }
    // A descriptor may make a product sparse: it takes the time of what is there.
    let sparse = awaited(&[product("UTCHMMA", descriptor(F16 | 1 << 2, 128, 256))]);
    assert_eq!(sparse, awaited(&[product("UTCHMMA", descriptor(F16, 128, 256))]));
}

#[test]
fn the_thread_goes_on_and_an_arrival_comes_behind_the_products_before_it() {
    let eight = vec![product("UTCHMMA", descriptor(F16, 128, 256)); 8];
    let begun = cycles(&[&[begin(BARRIER, 1)], &eight[..]].concat());
    assert!(begun + 8 * 128 < awaited(&eight), "{begun}");
    // Nothing is under way: the arrival is at once.
    let none = awaited(&[]);
    assert!(awaited(&eight) >= none + 8 * 128, "{none}");
    let behind = cycles(&[&[begin(BARRIER, 1), commit(BARRIER)], &eight[..], &[wait(BARRIER, 0)]].concat());
    assert!(behind < none + 100, "what comes behind it is not awaited: {behind}");
    assert_eq!(outcome(&eight).total("tensor", "tensor_products"), 8);
}

#[test]
fn a_product_whose_line_has_no_shape_takes_no_time_and_that_is_told() {
    let of = |line: Line| {
        let outcome = outcome(&[begin(BARRIER, 1), line, commit(BARRIER), wait(BARRIER, 0)]);
        let stood_in = outcome.workload["trace"]["stood_in"].clone();
        (outcome.time.core_cycles, stood_in, outcome.workload["trace"]["barriers_unknown"].as_u64().unwrap())
    };
    let without = (ONE, "0 UTCHMMA 6 UR6 UR8 UR15 UR12 UR13 UP0 0 0 NoVal".to_owned());
    let (cycles, told, unknown) = of(without);
    assert_eq!((told, unknown), (serde_json::json!({ "UTCHMMA as NOP": 1 }), 0));
    let (known, told, _) = of(product("UTCHMMA", descriptor(F16, 128, 256)));
    assert_eq!(told, serde_json::json!({}));
    assert!(known > cycles + 128 + 100, "{known}, {cycles}");
    for line in [product("UTCHMMA", 0), product("UTCHMMA.WS", descriptor(F16, 128, 64))] {
        let name = line.1.split(' ').nth(1).unwrap().split('.').next().unwrap().to_owned();
        let (without, told, _) = of(line);
        assert_eq!((without, told), (cycles, serde_json::json!({ format!("{name} as NOP"): 1 })));
    }
}

#[test]
fn who_reads_a_loaded_register_waits_for_it_and_a_wait_for_stores_is_for_all_of_them() {
    let spec = machine("blackwell-b200", "");
    let latency = u64::from(spec.shared.latency_cycles);
    let load = |shape: &str| plain(&format!("1 R8 LDTM.{shape} 1 UR5 0"));
    let read = |register: u32| plain(&format!("1 R4 MOV 1 R{register} 0"));
    let of = |lines: &[Line]| cycles(lines);
    // A cycle a register, then the latency: of the last register as of the first, and of none that is not loaded.
    let [eight, many] = ["x8", "x32"].map(|shape| of(&[load(shape), read(8)]));
    assert_eq!(many - eight, 24);
    assert_eq!(of(&[load("x32"), read(39)]), many);
    let other = of(&[load("x32"), read(40)]);
    assert!(other + latency - 8 <= many, "{other}, {many}");
    assert_eq!(of(&[load("16dp256bit.x2"), read(15)]), eight);
    // Both halves of the threads together take what a whole one takes.
    let halves = |last: u32| of(&[load("16dp32bit_t0_t15.x8"), load("16dp32bit_t16_t31.x8"), read(last)]);
    assert_eq!(halves(15), eight);
    // In PTX the wait is an instruction of its own.
    let list = (8..16).map(|n| format!("%r{n}")).collect::<Vec<_>>().join(", ");
    let ptx = format!("tcgen05.ld.sync.aligned.32x32b.x8.b32 {{{list}}}, [%own];\n");
    let waits = of_kernel(&spec, &format!("{ptx}tcgen05.wait::ld.sync.aligned;\n")) - of_kernel(&spec, &ptx);
    assert_eq!(waits, latency);
    let store = |registers: u32| plain(&format!("0 STTM.x{registers} 2 UR5 R8 0"));
    let stored = plain("0 FENCE.VIEW.ASYNC.T 0 0");
    let chain = |lines: &[Line]| of(&[lines, &[plain("1 R4 IADD3 1 R5 0")]].concat());
    assert_eq!(chain(&[store(32), stored.clone()]) - chain(&[store(8), stored.clone()]), 24);
    let (with, without) = (chain(&[store(8), stored]), chain(&[store(8)]));
    assert!((latency - 4..=latency + 4).contains(&(with - without)), "{with}, {without}");
    // A store waits for each of its registers.
    let late = |register: u32| of(&[plain(&format!("1 R{register} MUFU.RSQ 1 R4 0")), store(8)]);
    assert!(late(15) > late(16) + 4, "{}, {}", late(15), late(16));
}

#[test]
fn a_copy_to_tensor_memory_takes_its_bytes_before_the_products_behind_it() {
    let spec = machine("blackwell-b200", "");
    let copy = |shape: &str| (ONE, format!("0 UTCCP.T.S{shape} 2 UR15 UR6 0 0 NoVal"));
    let product = product("UTCHMMA", descriptor(F16, 128, 64));
    let of = |copies: &[Line]| awaited(&[copies, std::slice::from_ref(&product)].concat());
    let work = |bytes: u32| u64::from(bytes.div_ceil(spec.tensor.memory_copy_bytes));
    assert_eq!(of(&[copy(""), copy("")]) - of(&[copy("")]), work(4096));
    assert_eq!(of(&vec![copy(".4x32dp128bit"); 9]) - of(&[copy(".4x32dp128bit")]), 8 * work(512));
}

/// What two CTAs of a cluster on two SMs execute, by their ranks: cycles.
fn pair(lines: impl Fn(u32) -> Vec<Line>) -> u64 {
    let (_folder, recipe) = traced(2, 2, 1, |cta, _| lines(cta));
    finished(small(recipe).machine("blackwell-b200").set("sm.gpcs", 1)).time.core_cycles
}

#[test]
fn an_arrival_comes_to_the_barriers_of_a_mask_of_ctas() {
    let eight = vec![product("UTCHMMA", descriptor(F16, 128, 256)); 8];
    let of = |mask: u32, waits: &[u32]| {
        pair(|rank| {
            let own = of_rank(rank, BARRIER);
            let mut lines = vec![begin(own, 1)];
            lines.extend(sync());
            if rank == 0 {
                lines.extend(eight.clone());
                lines.push(commit_to("UTCBAR.MULTICAST", own, mask));
            }
            if waits.contains(&rank) {
                lines.push(wait(own, 0));
            }
            // Nobody ends before an arrival comes.
            lines.extend(sync());
            lines
        })
    };
    let link = u64::from(machine("blackwell-b200", "").shared.cluster_cycles);
    let [none, own, other, both] =
        [(1, &[][..]), (1, &[0]), (2, &[1]), (3, &[0, 1])].map(|(mask, waits)| of(mask, waits));
    assert!(own > none + 8 * 128 - 100, "{own}, {none}");
    assert!(other.abs_diff(own + link) < 40 && other.abs_diff(both) < 8, "{other}, {own}, {both}");
}

#[test]
fn a_product_of_a_pair_occupies_both_tensor_cores_and_is_done_when_both_are() {
    let products = |opcode: &str, rows: u32, count: usize| vec![product(opcode, descriptor(F16, rows, 256)); count];
    // The second CTA has products of its own, which it begins as soon as all have met.
    let of = |first: &[Line], second: &[Line]| {
        pair(|rank| {
            let own = of_rank(rank, BARRIER);
            let mut lines = vec![begin(own, 1)];
            lines.extend(sync());
            lines.extend(if rank == 0 { first.to_vec() } else { second.to_vec() });
            lines.extend([commit(own), wait(own, 0)]);
            lines.extend(sync());
            lines
        })
    };
    // Work of a CTA: 128 rows of 256, whose pair has both at once.
    let chain = |count: usize| of(&products("UTCHMMA.2CTA", 256, count), &[]);
    assert_eq!(chain(65) - chain(33), 32 * 128);
    let link = u64::from(machine("blackwell-b200", "").shared.cluster_cycles);
    let one = of(&products("UTCHMMA", 128, 1), &[]);
    assert!(chain(1).abs_diff(one.max(one + 2 * link - 128 - 160)) < 40, "{}, {one}", chain(1));
    // Products of the other CTA wait for those of the pair, or these for them.
    let own = products("UTCHMMA", 128, 16);
    let [together, apart] =
        [("UTCHMMA.2CTA", 256), ("UTCHMMA", 128)].map(|(opcode, rows)| of(&products(opcode, rows, 16), &own));
    assert!(together > apart + 8 * 128, "{together}, {apart}");
}

#[test]
fn a_copy_for_a_pair_completes_in_the_cta_that_its_barrier_names() {
    // Each CTA loads 256 bytes, for itself or for both; the even one awaits all of them.
    let of = |multicast: bool| {
        let lines = |cta: u32| {
            let (own, even) = (of_rank(cta, BARRIER), of_rank(0, BARRIER));
            let (name, mask) =
                if multicast { ("UTMALDG.2D.MULTICAST.2CTA", "1 0x3") } else { ("UTMALDG.2D.2CTA", "0") };
            let address = MEMORY + 256 * u64::from(cta);
            let load = format!("0 {name} 2 UR4 UR8 16 {even:#x} {mask} 256 0 3 1 {address:#x} 0 NoVal");
            let mut lines = vec![begin(own, 1)];
            if cta == 0 {
                lines.push(expect(own, if multicast { 1024 } else { 512 }));
            }
            lines.extend(sync());
            lines.push((ONE, load));
            if cta == 0 {
                lines.push(wait(own, 0));
            }
            lines.extend(sync());
            lines
        };
        let (_folder, recipe) = traced(2, 2, 1, |cta, _| lines(cta));
        let outcome = finished(small(recipe).machine("blackwell-b200").set("sm.gpcs", 1));
        assert_eq!(outcome.workload["trace"]["barriers_unknown"], 0);
        ["bulk_loads", "bulk_reads", "bulk_peer_bytes"].map(|name| outcome.total("bulk", name))
    };
    // What a CTA loads for itself takes no link.
    let [loads, reads, to_peers] = of(false);
    assert_eq!((loads, to_peers), (2, 0));
    assert_eq!((of(true)[0], of(true)[1]), (loads, reads));
}

/// Two CTAs of four warps, the first of which begin products of their pair, and of their own, and arrive in both; all load and
/// store.
fn everything(cta: u32, warp: u32) -> Vec<Line> {
    let own = of_rank(cta % 2, BARRIER);
    let mut lines = vec![plain("1 R4 S2R 0 0")];
    if warp == 0 {
        lines.push(begin(own, 2));
    }
    lines.extend(sync());
    for round in 0..3 {
        if warp == 0 {
            lines.push((ONE, "0 UTCCP.T.S.2CTA.4x32dp128bit 2 UR15 UR6 0 0 NoVal".to_owned()));
            lines.push(product("UTCHMMA.2CTA", descriptor(F16, 256, 128)));
            lines.push(product("UTCQMMA", descriptor(F16, 128, 64 + 32 * round)));
            lines.push(commit_to("UTCBAR.2CTA.MULTICAST", own, 3));
        }
        lines.push(wait(own, round & 1));
        lines.push(plain("1 R8 LDTM.x16 1 UR5 0"));
        lines.extend((8..24).map(|register| plain(&format!("1 R4 IADD3 2 R4 R{register} 0"))));
        lines.push(plain("0 STTM.x16 2 UR5 R8 0"));
        lines.push(plain("0 FENCE.VIEW.ASYNC.T 0 0"));
    }
    let sums = MEMORY + u64::from(cta * 128 + warp * 32) * 4;
    lines.push((ALL, format!("0 STG.E 2 R2 R4 4 1 {sums:#x} 4 0 NoVal")));
    lines.extend(sync());
    lines
}

#[test]
fn a_trace_with_tensor_memory_is_the_same_at_every_number_of_threads_and_from_checkpoints() {
    let (_folder, recipe) = traced(8, 2, 4, everything);
    let recipe = small(recipe).machine("blackwell-b200").set("sm.gpcs", 2);
    same_at_any_threads(&recipe, "tensor memory of a trace");
    let outcome = finished(recipe.clone());
    assert_eq!(outcome.total("tensor", "tensor_products"), 8 * 3 * 2);
    assert!(outcome.workload["trace"]["stood_in"].as_object().unwrap().is_empty());
    assert_eq!(outcome.workload["trace"]["barriers_unknown"], 0);
    let resumed = goes_on(recipe, (10..100).step_by(20));
    assert!(resumed >= 4, "{resumed}");
}

/// A kernel of 128 threads, the first of which begins 16 products; all wait, and each stores what it has loaded.
const KERNEL: &str = ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry products(.param .u64 sums)\n{\n\
    .reg .b32 %r<60>;\n.reg .b64 %d<10>;\n.reg .pred %p<8>;\n\
    .shared .align 1024 .b8 tile[32768];\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 place;\n\
    ld.param.u64 %d3, [sums];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\nshr.u32 %r2, %r2, 4;\ncvt.u64.u32 %d1, %r2;\n\
    or.b64 %d1, %d1, 0x4000404000010000;\nsetp.lt.u32 %p1, %r1, 32;\nsetp.eq.u32 %p2, %r1, 0;\nsetp.ge.u32 %p3, %r1, 0;\n\
    @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 256;\n\
    @%p2 mbarrier.init.shared.b64 [done], 1;\nbar.sync 0;\nld.shared.b32 %r3, [place];\n\
    shr.u32 %r4, %r1, 5;\nshl.b32 %r4, %r4, 21;\nadd.u32 %r4, %r4, %r3;\nmov.u32 %r5, 136314896;\nPRODUCTS\
    @%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n\
    AGAIN: mbarrier.try_wait.parity.shared.b64 %p4, [done], 0;\n@!%p4 bra AGAIN;\n\
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17}, [%r4];\n\
    tcgen05.wait::ld.sync.aligned;\nadd.u32 %r10, %r10, %r17;\n\
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r4], {%r10, %r11, %r12, %r13, %r14, %r15, %r16, %r17};\n\
    tcgen05.wait::st.sync.aligned;\nmul.wide.u32 %d4, %r1, 4;\nadd.u64 %d4, %d4, %d3;\nst.global.u32 [%d4], %r10;\n\
    bar.sync 0;\n@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 256;\nret;\n}\n";

#[test]
fn a_trace_comes_to_what_the_kernel_comes_to() {
    let mma = "@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r3], %d1, %d1, %r5, %p3;\n";
    let idesc = descriptor(F16, 128, 256);
    let text = KERNEL.replace("PRODUCTS", &mma.repeat(16)).replace("136314896", &idesc.to_string());
    let buffers = "[buffer.sums]\ntype = \"u32\"\nlen = 128\n";
    let step = "[[step]]\nkernel = \"products\"\ngrid = 1\nblock = 128\nargs = [\"&sums\"]\n";
    let (_kernel, kernel) = workload(&text, buffers, step, "\"sums\"");
    let lines = |_: u32, warp: u32| {
        let mut lines = vec![plain("1 R0 S2R 0 0"); 4];
        if warp == 0 {
            lines.extend(vec![plain("1 R1 IADD3 1 R0 0"); 4]);
            lines.push(begin(BARRIER, 1));
        }
        lines.push(plain("0 BAR.SYNC.DEFER_BLOCKING 0 0"));
        lines.push((ALL, "1 R2 LDS 1 R1 4 1 0x0 0 0 NoVal".to_owned()));
        lines.extend(vec![plain("1 R1 IADD3 1 R2 0"); 3]);
        if warp == 0 {
            lines.extend(vec![product("UTCHMMA", idesc); 16]);
            lines.push(commit(BARRIER));
        }
        lines.push(wait(BARRIER, 0));
        lines.push(plain("1 R8 LDTM.x8 1 UR5 0"));
        lines.push(plain("0 NOP 0 0"));
        lines.push(plain("1 R8 IADD3 2 R8 R15 0"));
        lines.push(plain("0 STTM.x8 2 UR5 R8 0"));
        lines.push(plain("0 FENCE.VIEW.ASYNC.T 0 0"));
        lines.extend(vec![plain("1 R4 IMAD 1 R0 0"); 2]);
        let sums = MEMORY + u64::from(warp) * 128;
        lines.push((ALL, format!("0 STG.E 2 R4 R8 4 1 {sums:#x} 4 0 NoVal")));
        lines.push(plain("0 BAR.SYNC.DEFER_BLOCKING 0 0"));
        lines
    };
    let (_trace, trace) = traced(1, 1, 4, lines);
    let [kernel, trace] = [kernel, trace].map(|recipe| finished(small(recipe).machine("blackwell-b200")));
    let products = [&kernel, &trace].map(|outcome| outcome.total("tensor", "tensor_products"));
    assert_eq!(products, [16; 2]);
    assert_eq!(trace.total("l2", "writes"), kernel.total("l2", "writes"));
    let cycles = [&kernel, &trace].map(|outcome| outcome.time.core_cycles as f64);
    assert!((cycles[1] / cycles[0] - 1.0).abs() < 0.05, "{cycles:?}");
}

#[test]
fn a_machine_without_tensor_memory_refuses_it_unless_a_table_says_what_it_is() {
    let line = product("UTCHMMA", descriptor(F16, 128, 256));
    let (folder, recipe) = traced(1, 1, 1, |_, _| vec![line.clone()]);
    let fault = recipe.clone().run().map(drop).unwrap_err().to_string();
    assert!(
        fault.contains("has tensor memory (tcgen05) here, which hopper-h100 has not; machines that have"),
        "{fault}"
    );
    assert!(fault.contains("`UTCHMMA = \"NOP\"` in a file of `--opcodes`"), "{fault}");
    let table = folder.path().join("table.toml");
    std::fs::write(&table, "UTCHMMA = \"NOP\"\n").unwrap();
    let outcome = finished(recipe.set("opcodes", table.display()));
    assert_eq!(outcome.workload["trace"]["renamed"], serde_json::json!({ "UTCHMMA as NOP": 1 }));
}

#[test]
fn barriers_lie_at_multiples_of_their_bytes() {
    for line in [begin(BARRIER + 4, 1), commit(BARRIER + 4), commit_to("UTCBAR.MULTICAST", BARRIER + 4, 1)] {
        let (_folder, recipe) = traced(1, 1, 1, |_, _| vec![line.clone()]);
        let fault = recipe.machine("blackwell-b200").run().map(drop).unwrap_err().to_string();
        let told = format!("a barrier at byte {:#x}, which is no multiple of 8", BARRIER + 4);
        assert!(fault.contains(&told), "{}: {fault}", line.1);
    }
}
