//! Asynchronous stores and reductions of a trace (`STAS`, `REDAS`): they come to what `st.async` and `red.async` of PTX
//! come to, and barriers count what they complete. A trace that does not say where they complete orders nothing.

use super::super::clusters::{goes_on, same_at_any_threads, small, workload};
use super::beside::{
    ALL, BARRIER, Line, MEMORY, ONE, arrive, begin, expect, finished, of_rank, plain, sync, traced, wait,
};
use durawarp::outcome::{End, Outcome};
use durawarp::run::Recipe;
use tempfile::TempDir;

/// Addresses of 32 lanes, of the data and of the barrier, as a pair of registers has them.
fn pairs(data: impl Fn(u64) -> u64, barrier: u64) -> String {
    (0..32).map(|lane| format!(" {:#x}", barrier << 32 | data(lane))).collect()
}

/// All lanes send 16 bytes each, or what else the modifiers say.
fn send(opcode: &str, data: impl Fn(u64) -> u64, barrier: u64) -> Line {
    (ALL, format!("0 {opcode} 2 R12 R4 8 0{} 0 NoVal", pairs(data, barrier)))
}

/// Where kernel `sends` of `tests/kernel/ptx/clusters.ptx` has its barriers and its count.
const BARRIERS: u64 = 8192;
const COUNT: u64 = 8208;

/// A fence, which a release or an acquisition of that kernel has.
fn fence() -> Line {
    plain("0 MEMBAR.SC.GPU 0 0")
}

/// All of the cluster meet, and see what the others have written.
fn meet() -> Vec<Line> {
    [&[fence()], &sync()[..], &[fence()]].concat()
}

/// What that kernel does in clusters of two CTAs of 64 threads.
fn sends(cta: u32, warp: u32) -> Vec<Line> {
    let rank = cta % 2;
    let at = |byte| of_rank(rank, byte);
    let mut lines = vec![plain("1 R0 S2R 0 0"), plain("1 R1 IMAD 1 R0 0"), plain("1 R2 IADD3 1 R1 0")];
    if warp == 0 {
        lines.extend([begin(at(BARRIERS), 1), begin(at(BARRIERS + 8), 128)]);
        lines.push((ONE, format!("0 STS 2 R3 R255 4 0 {COUNT:#x} 0 NoVal")));
        lines.push(expect(at(BARRIERS), 128 * 20));
    }
    lines.extend(meet());
    let place = |lane: u64| 16 * (u64::from(64 * rank + 32 * warp) + lane);
    for to in 0..2 {
        let there = |byte| of_rank(to, byte);
        lines.extend(["1 R4 PRMT 1 R2 0", "1 R5 PRMT 1 R2 0", "1 R6 IMAD 1 R4 0"].map(plain));
        lines.push(send("STAS.128", |lane| there(place(lane)), there(BARRIERS)));
        lines.push(send("REDAS.ADD", |_| there(COUNT), there(BARRIERS)));
        lines.extend([fence(), arrive(ALL, there(BARRIERS + 8))]);
        lines.push(plain("1 P0 ISETP.LT.U32.AND 1 R2 0"));
    }
    lines.extend([wait(at(BARRIERS), 0), fence(), wait(at(BARRIERS + 8), 0), fence()]);
    for from in 0..2 {
        let first = 16 * (64 * from + 32 * warp);
        lines.push((ALL, format!("1 R8 LDS.128 1 R2 16 1 {first:#x} 16 0 NoVal")));
        lines.extend((8..12).map(|register| plain(&format!("1 R7 IMAD 2 R7 R{register} 0"))));
    }
    let sums = MEMORY + u64::from(cta * 64 + warp * 32) * 4;
    lines.push((ALL, format!("0 STG.E 2 R8 R7 4 1 {sums:#x} 4 0 NoVal")));
    lines.extend(meet());
    lines
}

/// Counters of accesses between CTAs.
fn counted(outcome: &Outcome) -> [u64; 6] {
    ["cluster_stores", "cluster_atomics", "cluster_loads", "cluster_served", "cluster_bytes", "cluster_phases"]
        .map(|name| outcome.total("cluster", name))
}

#[test]
fn what_is_sent_comes_to_what_a_kernel_comes_to() {
    let kernels = include_str!("../../kernel/ptx/clusters.ptx");
    let buffers = "[buffer.sent]\ntype = \"u32\"\nlen = 1024\n[buffer.counts]\ntype = \"u32\"\nlen = 16\n";
    let step = "[[step]]\nkernel = \"sends\"\ngrid = 16\nblock = 64\ncluster = 2\nargs = [\"&sent\", \"&counts\"]\n";
    let (_kernel, kernel) = workload(kernels, buffers, step, "\"sent\"");
    let (_trace, trace) = traced(16, 2, 2, sends);
    // The way between SMs is that of a kernel at any length.
    for link in [100, 600] {
        let [of_kernel, of_trace] = [kernel.clone(), trace.clone()]
            .map(|recipe| finished(small(recipe).set("sm.gpcs", 2).set("shared.cluster_cycles", link)));
        assert_eq!(counted(&of_trace), counted(&of_kernel));
        assert_eq!(counted(&of_trace)[..2], [16 * 2, 16 * 2 * 2]);
        let cycles = [&of_kernel, &of_trace].map(|outcome| outcome.time.core_cycles as f64);
        assert!((cycles[1] / cycles[0] - 1.0).abs() < 0.1, "{cycles:?}");
        assert_eq!(of_trace.workload["trace"]["barriers_unknown"], 0);
        assert!(of_trace.workload["trace"]["stood_in"].as_object().unwrap().is_empty());
    }
}

#[test]
fn a_trace_that_sends_is_the_same_at_every_number_of_threads_and_from_checkpoints() {
    let (_folder, recipe) = traced(16, 2, 2, sends);
    let recipe = small(recipe).set("sm.gpcs", 2);
    same_at_any_threads(&recipe, "sends of a trace");
    let resumed = goes_on(recipe, (10..100).step_by(20));
    assert!(resumed >= 4, "{resumed}");
}

/// A trace of a CTA in whose first warp all lanes send to the CTA itself by these lines; the second waits for `awaited` bytes.
fn to_itself(awaited: u32, lines: &[Line]) -> (TempDir, Recipe) {
    let (folder, recipe) = traced(1, 1, 2, |_, warp| match warp {
        0 => [&[plain("0 BAR.SYNC 0 0")], lines].concat(),
        _ => vec![begin(BARRIER, 1), expect(BARRIER, awaited), plain("0 BAR.SYNC 0 0"), wait(BARRIER, 0)],
    });
    (folder, small(recipe))
}

#[test]
fn a_barrier_counts_the_bytes_of_each_width() {
    for (opcode, bytes) in
        [("STAS", 4), ("STAS.64", 8), ("STAS.128", 16), ("REDAS.ADD", 4), ("REDAS.MIN.S32", 4), ("REDAS.ADD.64", 8)]
    {
        let line = send(opcode, |lane| u64::from(bytes) * lane, BARRIER);
        let (_folder, recipe) = to_itself(32 * bytes, &[line]);
        let outcome = finished(recipe);
        assert_eq!(outcome.workload["trace"]["barriers_unknown"], 0, "{opcode}");
        assert_eq!(outcome.total("sm", "shared_accesses"), 1 + 2, "{opcode}");
    }
    // Who awaits more than comes would wait for ever.
    let (_folder, recipe) = to_itself(32 * 4 + 4, &[send("STAS", |lane| 4 * lane, BARRIER)]);
    assert_eq!(finished(recipe).workload["trace"]["barriers_unknown"], 1);
}

#[test]
fn where_the_address_has_no_barrier_the_register_has_it_or_barriers_order_nothing() {
    let data: String = (0..32).map(|lane| format!(" {:#x}", 4 * lane)).collect();
    let of = |values: &str| {
        let line = (ALL, format!("0 STAS 2 R12 R4 8 0{data} 0 {values}"));
        let (_folder, recipe) = to_itself(128, &[line]);
        let outcome = finished(recipe);
        let unknown = outcome.workload["trace"]["barriers_unknown"].as_u64().unwrap();
        let told =
            outcome.validity.iter().any(|caveat| caveat.text.contains("barriers in shared memory order nothing"));
        assert_eq!(told, unknown == 1);
        (unknown, outcome.workload["trace"]["stood_in"].as_object().unwrap().contains_key("STAS as NOP"))
    };
    let both: String = (0..32).map(|lane| format!(" {:x}", (BARRIER << 32) | (4 * lane))).collect();
    assert_eq!(of(&format!("Val 32{both} 1 0")), (0, false));
    assert_eq!(of("Val 1 400 1 0"), (1, true));
    assert_eq!(of("NoVal"), (1, true));
}

#[test]
fn what_is_sent_beside_a_barrier_or_to_another_cta_than_its_barrier_is_told() {
    let fault = |data: u64, barrier: u64| {
        let (_folder, recipe) = to_itself(128, &[send("STAS", |lane| data + 4 * lane, barrier)]);
        recipe.run().map(drop).unwrap_err().to_string()
    };
    assert!(fault(2, BARRIER).contains("address 0x2 is no multiple of its 4 bytes"), "{}", fault(2, BARRIER));
    assert!(fault(0, 0x404).contains("address 0x404 is no multiple of its 8 bytes"), "{}", fault(0, 0x404));
    // The data goes to the other CTA, and the barrier is here.
    let (_folder, recipe) = traced(2, 2, 1, |cta, _| {
        let own = |byte| of_rank(cta, byte);
        let line = send("STAS", |lane| of_rank(1 - cta, 4 * lane), own(BARRIER));
        [&[begin(own(BARRIER), 1), expect(own(BARRIER), 128)], &sync()[..], &[line], &sync()].concat()
    });
    let outcome = super::run(small(recipe).reference(false));
    let End::Failed { error } = &outcome.end else { panic!("{:?}", outcome.end) };
    assert!(error.contains("lies in another CTA than what it accesses"), "{error}");
}
