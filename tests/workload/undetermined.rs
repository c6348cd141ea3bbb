//! What a program leaves undetermined is told beside its verdict: the order of floating-point additions,
//! numbers that only the machine knows, memory and registers that nobody has written, races.

use crate::cli_common::{durawarp_in, folder};
use durawarp::Experiment;
use durawarp::kernel::functional::Limits;
use durawarp::kernel::functional::scrutiny::Scrutiny;
use durawarp::outcome::{End, Outcome};
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::workload::{Choice, FunctionalError, FunctionalRun, Workload};

/// A workload of one launch: `%rd1` is the buffer f of 64 words, `%rd2` the buffer o of 1024, `%rd3` the thread's
/// word in o, `%r1` the thread, `%r2` the CTA.
fn manifest(ty: &str, shape: (u32, u32), verify: &str, body: &str) -> String {
    let (grid, block) = shape;
    format!(
        r#"schema = 1
name = "undetermined"
description = "a kernel"
buffer.f = {{ type = "u32", len = 64, init = {{ kind = "iota" }} }}
buffer.o = {{ type = "{ty}", len = 1024, role = "output" }}
step = [{{ kernel = "k", grid = {grid}, block = {block}, args = ["&f", "&o"] }}]
{verify}
isa = {{ kind = "ptx", text = '''
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p_f, .param .u64 p_o) {{
.reg .pred %p<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %rd<20>; .shared .align 16 .b32 s[256];
ld.param.u64 %rd1, [p_f]; ld.param.u64 %rd2, [p_o]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mad.wide.u32 %rd3, %r4, 4, %rd2;
{body}
ret;
}}
''' }}
"#
    )
}

/// Line of the first instruction of a body: manifests have as many lines before it.
const LINE: usize = 16;

fn outcome_of(manifest: &str, races: bool) -> Outcome {
    let recipe = Experiment::of(Workload::from_text(manifest).unwrap_or_else(|faults| panic!("{faults}")));
    let recipe = recipe.machine("titan-x").set("sm.count", 4);
    let Ok(AnyExperiment::Gpu(experiment)) = recipe.build_any() else { panic!("kernels") };
    let conduct = Conduct { races, ..Conduct::default() };
    let outcome = AnyExperiment::Gpu(experiment).run(&conduct).outcome;
    assert_eq!(outcome.end, End::Finished);
    outcome
}

/// The failures of a run, and the messages of its checks.
fn verdict(ty: &str, shape: (u32, u32), verify: &str, body: &str) -> (Vec<String>, String) {
    let outcome = outcome_of(&manifest(ty, shape, verify, body), false);
    let verification = outcome.verification.expect("it has finished");
    let checks = verification.checks["checks"].as_array().unwrap();
    let messages: Vec<&str> = checks.iter().filter_map(|check| check["message"].as_str()).collect();
    (verification.failures, messages.join("; "))
}

/// Every thread adds a number of its own magnitude to one sum: the order of additions shows.
const FLOAT_SUM: &str = "add.u32 %r5, %r4, 1; cvt.rn.f32.u32 %f1, %r5; rcp.rn.f32 %f2, %f1;\nmul.f32 %f2, %f2, 0f3F8CCCCD; add.f32 %f2, %f2, 0f3DCCCCCD;
red.global.add.f32 [%rd2], %f2;";

const FUNCTIONAL: &str = "verify = { ref = { kind = \"functional\" }, RTOL }";

#[test]
fn the_order_of_floating_point_additions_is_told_and_a_tolerance_allows_for_it() {
    let (failures, _) = verdict("f32", (16, 256), "", FLOAT_SUM);
    assert_eq!(failures.len(), 1, "the sum must depend on its order: {failures:?}");
    let told = format!(
        "the order of floating-point additions by atomics may be the reason (kernel `k`, workload.toml:{}:1); the largest difference is",
        LINE + 2
    );
    assert!(failures[0].contains("1 of 1088 elements differ") && failures[0].contains(&told), "{}", failures[0]);
    let with = |tolerance: &str| verdict("f32", (16, 256), &FUNCTIONAL.replace(", RTOL", tolerance), FLOAT_SUM).0;
    assert_eq!(with(", rtol = 1e-4"), [""; 0]);
    assert_eq!(with(", atol = 4000.0"), [""; 0]);
    assert_eq!(with(", rtol = 1e-12").len(), 1);
    assert_eq!(with("").len(), 1, "without a tolerance bits are compared");
}

#[test]
fn a_tolerance_takes_no_wrong_value_and_is_of_floats() {
    // Each thread stores its SM: nothing to do with rounding, and no atomics to blame.
    let body = "mov.u32 %r5, %smid; cvt.rn.f32.u32 %f1, %r5; st.global.f32 [%rd3], %f1;";
    let (_, message) = verdict("f32", (4, 32), &FUNCTIONAL.replace("RTOL", "rtol = 1e-3"), body);
    assert!(message.contains("elements follow from %smid"), "{message}");
    let fault = |ty: &str, key: &str| {
        let text = manifest(ty, (1, 32), &FUNCTIONAL.replace("RTOL", key), "");
        Workload::from_text(&text).err().map_or_else(String::new, |faults| faults.to_string())
    };
    assert_eq!(fault("f32", "rtol = 1e-3"), "");
    let none = "`rtol` means nothing here: none of the buffers that are compared holds floats";
    assert!(fault("u32", "rtol = 1e-3").contains(none), "{}", fault("u32", "rtol = 1e-3"));
    assert!(fault("f32", "rtol = -1.0").contains("`rtol` must be a finite number from 0"));
    assert!(fault("f32", "sample = 3").contains("`sample` means nothing in a check of kind `functional`"));
}

#[test]
fn results_that_follow_from_the_machine_are_not_judged_and_others_are() {
    for (name, read) in [
        ("%clock", "mov.u32 %r5, %clock;"),
        ("%clock_hi", "mov.u32 %r5, %clock_hi;"),
        ("%clock64", "mov.u64 %rd5, %clock64; cvt.u32.u64 %r5, %rd5;"),
        ("%globaltimer", "mov.u64 %rd5, %globaltimer; cvt.u32.u64 %r5, %rd5;"),
        ("%smid", "mov.u32 %r5, %smid;"),
        ("%nsmid", "mov.u32 %r5, %nsmid;"),
        ("%warpid", "mov.u32 %r5, %warpid;"),
        ("%nwarpid", "mov.u32 %r5, %nwarpid;"),
    ] {
        let body = format!("{read} add.u32 %r5, %r5, 1; st.global.u32 [%rd3], %r5;");
        let (failures, message) = verdict("u32", (4, 64), "", &body);
        assert_eq!(failures, [""; 0], "{name}");
        // Where both machines happen to give one number there is nothing to tell.
        let told = format!("follow from {name} (kernel `k`, workload.toml:{LINE}:1), which no functional run knows");
        assert!(message.is_empty() || message.contains(&told), "{name}: {message}");
        assert!(!message.is_empty() || ["%warpid", "%clock_hi"].contains(&name), "{name}");
    }
    // The clock is read and nothing follows; a race makes the result wrong all the same.
    let racing =
        "mov.u32 %r5, %clock; st.global.u32 [%rd2], %r1; ld.global.u32 %r6, [%rd2]; st.global.u32 [%rd3+256], %r6;";
    let (failures, _) = verdict("u32", (1, 64), "", racing);
    assert_eq!(failures.len(), 1);
    assert!(!failures[0].contains("%clock"), "{}", failures[0]);
    // It is stored beside the wrong value: that one is told, and the clock for the others.
    let (failures, _) = verdict("u32", (1, 64), "", &format!("{racing} st.global.u32 [%rd3+1024], %r5;"));
    assert!(failures[0].contains("32 of 1088 elements differ"), "{}", failures[0]);
    assert!(failures[0].contains("64 elements more follow from it and are not judged"), "{}", failures[0]);
}

/// What a run warns of.
fn warnings(shape: (u32, u32), body: &str) -> Vec<String> {
    let outcome = outcome_of(&manifest("u32", shape, "", body), false);
    outcome.warnings.into_iter().map(|warning| warning.message).collect()
}

#[test]
fn reads_of_what_nobody_has_written_are_told_once_a_kernel() {
    let register = |column: u32| {
        format!(
            "workload.toml:{LINE}:{column}: kernel `k` uses a register that nobody has written, first in CTA (0,0,0) thread (0,0,0); \
             it holds 0 here, and anything on a GPU; others of the kernel are not told"
        )
    };
    assert_eq!(warnings((2, 64), "st.global.u32 [%rd3], %r15;"), [register(1)]);
    assert_eq!(warnings((2, 64), "add.u32 %r5, %r15, %r14; st.global.u32 [%rd3], %r5;"), [register(26)]);
    let shared = |place: &str, byte: u32, thread: &str| {
        format!(
            "workload.toml:{place}: kernel `k` reads shared memory that nobody has written, at byte {byte}, first in CTA (0,0,0) \
             thread {thread}; it holds zeros here, and anything on a GPU; others of the kernel are not told"
        )
    };
    let own = "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9;";
    let load = "ld.shared.u32 %r5, [%r9]; st.global.u32 [%rd3], %r5;";
    assert_eq!(warnings((2, 64), &format!("{own}\n{load}")), [shared(&format!("{}:1", LINE + 1), 0, "(0,0,0)")]);
    // Half of it is written: the first thread of the other half tells.
    let half = format!("{own} setp.lt.u32 %p1, %r1, 40; @%p1 st.shared.u32 [%r9], %r1; bar.sync 0;\n{load}");
    assert_eq!(warnings((1, 64), &half), [shared(&format!("{}:1", LINE + 1), 160, "(40,0,0)")]);
    // Bytes count: one of a word is not the word.
    let byte = format!("{own} st.shared.u8 [%r9], %r1;\n{load}");
    assert_eq!(warnings((1, 32), &byte), [shared(&format!("{}:1", LINE + 1), 1, "(0,0,0)")]);
    let atomic = "atom.shared.add.u32 %r5, [s], 1; st.global.u32 [%rd3], %r5;";
    assert_eq!(warnings((1, 32), atomic), [shared(&format!("{LINE}:1"), 0, "(0,0,0)")]);
    // A bulk copy reads all of its bytes.
    let bulk = "st.shared.v2.u32 [s], {%r1, %r2};\ncp.async.bulk.global.shared::cta.bulk_group [%rd2], [s], 16;\n\
                cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";
    assert_eq!(warnings((1, 1), bulk), [shared(&format!("{}:1", LINE + 1), 8, "(0,0,0)")]);
}

#[test]
fn what_is_written_wherever_it_is_used_is_not_told() {
    for body in [
        // Under a guard that is that of the use.
        "setp.lt.u32 %p1, %r1, 5; @%p1 mov.u32 %r15, 7; @%p1 st.global.u32 [%rd3], %r15;",
        // On the way that is taken, of two that meet.
        "setp.lt.u32 %p1, %r1, 5; @%p1 bra A; bra B; A: mov.u32 %r15, 7; B: @%p1 st.global.u32 [%rd3], %r15;",
        // A copy of nothing that nothing follows from.
        "mov.u32 %r5, %r15; mov.u32 %r5, 3; st.global.u32 [%rd3], %r5;",
        "xor.b32 %r15, %r15, %r15; st.global.u32 [%rd3], %r15;",
        "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9; st.shared.u32 [%r9], %r1; bar.sync 0; ld.shared.u32 %r5, [%r9]; st.global.u32 [%rd3], %r5;",
        "st.shared.v4.u32 [s], {%r1, %r2, %r1, %r2}; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [s], 16;",
        "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 8, %r9; st.shared.v2.u32 [%r9], {%r1, %r2}; ld.shared.u32 %r5, [%r9+4]; st.global.u32 [%rd3], %r5;",
    ] {
        assert_eq!(warnings((2, 64), body), [""; 0], "{body}");
    }
}

/// The functional run of a workload, watched for races.
fn watched(manifest: &str) -> Result<FunctionalRun, FunctionalError> {
    let workload = Workload::from_text(manifest).unwrap_or_else(|faults| panic!("{faults}"));
    let resolved = workload.resolve(&Choice::default()).unwrap_or_else(|faults| panic!("{faults}"));
    resolved.run_under(&Limits::default(), Scrutiny::new(true))
}

/// The races of a run.
fn races(shape: (u32, u32), body: &str) -> Vec<String> {
    let outcome = outcome_of(&manifest("u32", shape, "", body), true);
    outcome.races.expect("they are looked for").iter().map(ToString::to_string).collect()
}

#[test]
fn two_warps_that_access_one_word_without_order_are_told_with_both_places() {
    let found = races((1, 64), "st.global.u32 [%rd2], %r1;\nld.global.u32 %r6, [%rd2]; st.global.u32 [%rd3+256], %r6;");
    let (store, load) = (format!("workload.toml:{LINE}:1"), format!("workload.toml:{}:1", LINE + 1));
    let expected = [
        format!(
            "kernel `k`, `o` + 0: store at {store} by warp 0 of CTA (0,0,0) and store at {store} by warp 1 of CTA (0,0,0), without order"
        ),
        format!(
            "kernel `k`, `o` + 0: load at {load} by warp 0 of CTA (0,0,0) and store at {store} by warp 1 of CTA (0,0,0), without order"
        ),
    ];
    for line in &expected {
        assert!(found.iter().any(|race| race.starts_with(line)), "{line}\n{found:#?}");
    }
    assert_eq!(found.len(), 2, "{found:#?}");
    let found = races((1, 64), "st.shared.u32 [s+8], %r1; ld.shared.u32 %r2, [s+8]; st.global.u32 [%rd3], %r2;");
    assert!(found.iter().all(|race| race.starts_with("kernel `k`, shared memory + 8: ")), "{found:#?}");
    assert_eq!(found.len(), 2, "{found:#?}");
    // CTAs.
    let found = races((2, 32), "st.global.u32 [%rd2+128], %r2;");
    assert!(found[0].contains("`o` + 128: store") && found[0].contains("warp 0 of CTA (1,0,0)"), "{found:#?}");
    // An atomic and a plain access; the same value.
    assert_eq!(races((2, 32), "atom.global.add.u32 %r5, [%rd2], 1;").len(), 0);
    assert_eq!(races((2, 32), "atom.global.add.u32 %r5, [%rd2], 1; ld.global.u32 %r6, [%rd2];").len(), 1);
    let same = races((2, 32), "st.global.u32 [%rd2], 7;");
    assert!(same.len() == 1 && same[0].contains("; the value stays the same"), "{same:#?}");
    // Neighbours in a word.
    assert_eq!(races((4, 1), "cvt.u64.u32 %rd5, %r2; add.u64 %rd5, %rd2, %rd5; st.global.u8 [%rd5], %r2;").len(), 0);
}

#[test]
fn an_asynchronous_copy_reads_the_bytes_that_each_lane_reads() {
    // Lanes 0 and 1 of a warp copy 8 bytes each, of which they read as many as stated; another warp writes a word.
    let copies = |bytes: &str, written: u32| {
        let body = format!(
            "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 8, %r9; mul.wide.u32 %rd5, %r1, 8; add.u64 %rd5, %rd2, %rd5; {bytes}\n\
             setp.lt.u32 %p1, %r1, 2; @%p1 cp.async.ca.shared.global [%r9], [%rd5], 8, %r5;\n\
             setp.eq.u32 %p2, %r1, 32; @%p2 st.global.u32 [%rd2+{written}], 7;"
        );
        let manifest = manifest("u32", (1, 64), "", &body).replace("sm_70", "sm_80");
        let run = watched(&manifest).unwrap_or_else(|error| panic!("{error}"));
        run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let half = "mov.u32 %r5, 4;";
    assert_eq!(copies("mov.u32 %r5, 8;", 4).len(), 1);
    assert_eq!(copies(half, 0).len(), 1);
    assert_eq!(copies(half, 4), [""; 0]);
    // Lane 0 reads one word, lane 1 two.
    let own = "mad.lo.u32 %r5, %r1, 4, 4;";
    assert_eq!((copies(own, 4).len(), copies(own, 8).len(), copies(own, 12).len()), (0, 1, 1));
    assert_eq!(copies("mul.lo.u32 %r5, %r1, 8;", 0), [""; 0], "lane 0 reads nothing");
}

#[test]
fn an_access_at_the_end_of_the_address_space_is_a_fault() {
    for access in [
        "ld.global.u32 %r5, [%rd5];",
        "st.global.u8 [%rd5+2], 1;",
        "st.global.u8 [%rd5+3], 1;",
        "ld.global.v2.u32 {%r5, %r6}, [%rd5+-4];",
        "ld.shared.u32 %r5, [%rd5]; st.global.u32 [%rd3], %r5;",
        "atom.shared.add.u32 %r5, [%rd5], 1;",
    ] {
        let ended = watched(&manifest("u32", (1, 32), "", &format!("mov.u64 %rd5, -4; {access}")));
        let fault = ended.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(fault.contains("is out of bounds"), "{access} {fault}");
    }
}

/// As in CUDA's sample `threadFenceReduction`, and in kernels of libraries (`argmax_kernel` of fusedtok 2.5.0).
#[test]
fn the_last_cta_that_counts_may_reset_the_counter() {
    let counts = "membar.gl; atom.global.add.u32 %r5, [%rd1], 1; setp.ne.u32 %p1, %r5, 3; @%p1 bra END;
        st.global.u32 [%rd1], 0; END:";
    assert_eq!(races((4, 1), counts), [""; 0]);
    // One that is not the last is not alone.
    assert_eq!(races((4, 1), &counts.replace("%r5, 3", "%r5, 1")).len(), 1);
    // Without a result there is nothing to know it by.
    let blind = counts.replace("atom.global.add.u32 %r5,", "mov.u32 %r5, 3; red.global.add.u32");
    assert!(!races((4, 1), &blind).is_empty());
    // What is behind the counter of the others is not ordered by it without a fence before.
    let data =
        "st.global.u32 [%rd3+64], %r2; atom.global.add.u32 %r5, [%rd1], 1; setp.ne.u32 %p1, %r5, 1; @%p1 bra END;
        ld.global.u32 %r6, [%rd3+60]; st.global.u32 [%rd2+4], %r6; END:";
    assert_eq!(races((2, 1), data).len(), 1);
    assert_eq!(races((2, 1), &data.replace("atom", "membar.gl; atom")), [""; 0]);
}

#[test]
fn barriers_fences_and_flags_order() {
    let exchange = "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9; st.shared.u32 [%r9], %r1; BARRIER\n\
                    xor.b32 %r8, %r1, 32; mov.u32 %r10, s; mad.lo.u32 %r10, %r8, 4, %r10; ld.shared.u32 %r5, [%r10];\n\
                    st.global.u32 [%rd3], %r5;";
    assert_eq!(races((1, 64), &exchange.replace("BARRIER", "bar.sync 0;")), [""; 0]);
    assert_eq!(races((1, 64), &exchange.replace("BARRIER", "bar.sync 3, 64;")), [""; 0]);
    // Where registers have the barrier, the threads, or both.
    for barrier in ["bar.sync %r15;", "bar.sync %r15, 64;", "bar.sync 3, %r16;", "bar.sync %r15, %r16;"] {
        let barrier = format!("mov.u32 %r15, 3; mov.u32 %r16, 64; {barrier}");
        assert_eq!(races((1, 64), &exchange.replace("BARRIER", &barrier)), [""; 0], "{barrier}");
    }
    // Another barrier orders nothing here: each warp passes its own.
    let apart = "shr.u32 %r15, %r1, 5; mov.u32 %r16, 32; bar.sync %r15, %r16;";
    assert!(!races((1, 64), &exchange.replace("BARRIER", apart)).is_empty());
    assert_eq!(races((1, 64), &exchange.replace("BARRIER", "pm.barrier.wg;")), [""; 0]);
    assert!(!races((1, 64), &exchange.replace("BARRIER", "membar.cta;")).is_empty(), "a fence alone orders nothing");
    // The same once more without a barrier before the second write.
    let twice = format!("{} st.shared.u32 [%r9], %r5;", exchange.replace("BARRIER", "bar.sync 0;"));
    assert!(!races((1, 64), &twice).is_empty());
    // CTA 0 writes a word and raises a flag, CTA 1 waits for it.
    let message = "setp.ne.u32 %p1, %r2, 0; @%p1 bra W;\nst.global.u32 [%rd2], 5; FENCE RAISE bra E;\n\
                   W: WAIT setp.eq.u32 %p2, %r6, 0; @%p2 bra W; ld.global.u32 %r7, [%rd2]; st.global.u32 [%rd2+512], %r7; E:";
    let with = |fence: &str, raise: &str, wait: &str| {
        races((2, 1), &message.replace("FENCE", fence).replace("RAISE", raise).replace("WAIT", wait)).is_empty()
    };
    let volatile = ("st.volatile.global.u32 [%rd2+1024], 1;", "ld.volatile.global.u32 %r6, [%rd2+1024];");
    let atomic = ("atom.global.exch.b32 %r8, [%rd2+1024], 1;", "atom.global.add.u32 %r6, [%rd2+1024], 0;");
    assert!(with("membar.gl;", volatile.0, volatile.1));
    assert!(with("fence.acq_rel.gpu;", atomic.0, atomic.1));
    assert!(with("membar.gl;", atomic.0, volatile.1));
    assert!(with("", "st.release.gpu.global.u32 [%rd2+1024], 1;", "ld.acquire.gpu.global.u32 %r6, [%rd2+1024];"));
    assert!(with("", "atom.release.gpu.global.exch.b32 %r8, [%rd2+1024], 1;", atomic.1));
    assert!(!with("", volatile.0, volatile.1), "nothing is fenced");
    assert!(!with("", atomic.0, atomic.1), "nothing is fenced");
    assert!(!with("membar.cta;", volatile.0, volatile.1), "a fence of the CTA is not enough for another one");
    // A flag that is no flag: it races itself, and what follows.
    assert!(!with("membar.gl;", "st.global.u32 [%rd2+1024], 1;", "ld.volatile.global.u32 %r6, [%rd2+1024];"));
    // The barrier of the whole grid.
    let grid = "st.global.u32 [%rd3], %r4; pm.barrier.kr; xor.b32 %r5, %r4, 64; mad.wide.u32 %rd5, %r5, 4, %rd2;\n\
                ld.global.u32 %r6, [%rd5]; st.global.u32 [%rd3+1024], %r6;";
    assert_eq!(races((2, 64), grid), [""; 0]);
    assert!(!races((2, 64), &grid.replace("pm.barrier.kr;", "bar.sync 0;")).is_empty());
    // Threads fence, one of them counts the CTA behind a barrier: the last CTA reads what all have written.
    let last = "st.global.u32 [%rd3], %r4; membar.gl; bar.sync 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra S;\n\
                atom.global.inc.u32 %r5, [%rd2+2048], 1000; mov.u32 %r9, s; st.shared.u32 [%r9], %r5;\nS: bar.sync 0; ld.shared.u32 %r6, [s];\n\
                setp.ne.u32 %p2, %r6, 1; @%p2 ret; xor.b32 %r7, %r4, 64; mad.wide.u32 %rd5, %r7, 4, %rd2; ld.global.u32 %r8, [%rd5]; st.global.u32 [%rd3+1024], %r8;";
    assert_eq!(races((2, 64), last), [""; 0]);
    assert!(!races((2, 64), &last.replace("membar.gl;", "")).is_empty());
}

/// Races of two warps that store a word a thread in shared and global memory, meet, and of which the second makes a bulk
/// copy of the first one's 128 bytes: to global memory, or from there.
fn races_of_copy(before: &str, barrier: &str, after: &str, copy: &str) -> Vec<String> {
    let body = format!(
        "mov.u32 %r9, s; mad.lo.u32 %r10, %r1, 4, %r9; add.u32 %r11, %r1, 1; st.shared.u32 [%r10], %r11;\n\
         st.global.u32 [%rd3], %r11; {before}\n\
         {barrier}\nsetp.ne.u32 %p1, %r1, 32; @%p1 bra E; {after}\n{copy} E:"
    );
    let manifest =
        manifest("u32", (1, 64), "", &body).replace("sm_70", "sm_90").replace(".version 7.0", ".version 8.0");
    let run = watched(&manifest).unwrap_or_else(|error| panic!("{error}"));
    run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn a_bulk_copy_reads_plain_stores_behind_order_and_a_fence_between_proxies() {
    let out = "cp.async.bulk.global.shared::cta.bulk_group [%rd2+2048], [%r9], 128; cp.async.bulk.commit_group;\n\
               cp.async.bulk.wait_group 0;";
    let into = "mbarrier.init.shared::cta.b64 [%r9+512], 1;\n\
                mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9+512], 128;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9+768], [%rd2], 128, [%r9+512];";
    let (meet, fence, of_shared) = ("bar.sync 0;", "fence.proxy.async;", "fence.proxy.async.shared::cta;");
    for copy in [out, into] {
        // Of the warp that stored, and of the one that copies.
        assert_eq!(races_of_copy(fence, meet, "", copy), [""; 0]);
        assert_eq!(races_of_copy("", meet, fence, copy), [""; 0]);
        for other in ["", "membar.gl;"] {
            let found = races_of_copy(other, meet, "", copy);
            assert!(found.len() == 1 && found[0].contains(": store at "), "{found:?}");
            let told = "of CTA (0,0,0) and bulk copy at ";
            assert!(found[0].contains(told) && found[0].contains("without a `fence.proxy.async` between"), "{found:?}");
        }
        let apart = races_of_copy(fence, "", "", copy);
        assert!(apart.len() == 1 && apart[0].contains("without order"), "{apart:?}");
    }
    assert_eq!(races_of_copy(of_shared, meet, "", out), [""; 0]);
    assert_eq!(races_of_copy(of_shared, meet, "", into).len(), 1, "global memory is not of its fence");
    // The warps meet before the fence, and hand over by an `mbarrier`, or by a flag, alone.
    let phase = |fence: &str| {
        format!(
            "setp.lt.u32 %p2, %r1, 32; @!%p1 mbarrier.init.shared::cta.b64 [%r9+640], 32; bar.sync 0;\n\
             @%p2 {fence} @%p2 mbarrier.arrive.shared::cta.b64 _, [%r9+640];\n\
             W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9+640], 0; @!%p2 bra W;"
        )
    };
    let flag = |fence: &str| {
        format!(
            "setp.lt.u32 %p2, %r1, 32; @!%p1 st.shared.u32 [%r9+640], 0; bar.sync 0; bar.warp.sync -1;\n\
             @%p2 {fence} @!%p1 st.release.cta.shared.u32 [%r9+640], 1;\n\
             W: ld.acquire.cta.shared.u32 %r12, [%r9+640]; setp.eq.u32 %p2, %r12, 0; @%p2 bra W;"
        )
    };
    let first = "setp.ne.u32 %p1, %r1, 0;";
    for meet in [&phase as &dyn Fn(&str) -> String, &flag] {
        assert_eq!(races_of_copy(first, &meet(fence), "", out), [""; 0]);
        assert_eq!(races_of_copy(first, &meet(fence), "", into), [""; 0]);
        assert_eq!(races_of_copy(first, &meet(of_shared), "", out), [""; 0]);
        assert_eq!(races_of_copy(first, &meet("fence.acq_rel.cta;"), "", out).len(), 1, "of another proxy");
    }
    // What a copy writes: ordered, whatever fences there are.
    let over = into.replace("[%r9+768]", "[%r9]");
    assert_eq!(races_of_copy(fence, meet, "", &over), [""; 0]);
    assert_eq!(races_of_copy(of_shared, "", fence, &over).len(), 2, "the store to what is copied, that to where");
}

/// Races of a thread that initialises the barrier `s + 512` and copies in bulk, of its warp behind that, and of a second
/// warp behind a barrier. `%r9` is `s`.
fn races_behind(copy: &str, own: &str, other: &str) -> Vec<String> {
    let body = format!(
        "mov.u32 %r9, s; setp.ne.u32 %p1, %r1, 0; @%p1 bra M; mbarrier.init.shared::cta.b64 [%r9+512], 1; {copy} {own}\n\
         M: bar.sync 0; setp.ne.u32 %p1, %r1, 32; @%p1 bra E; {other} E:"
    );
    let manifest =
        manifest("u32", (1, 64), "", &body).replace("sm_70", "sm_90").replace(".version 7.0", ".version 8.0");
    let run = watched(&manifest).unwrap_or_else(|error| panic!("{error}"));
    run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect()
}

/// One race, of a bulk copy and of what does not wait for it.
#[track_caller]
fn lacks(found: Vec<String>, what: &str) {
    let told = format!("and {what} at workload.toml");
    let of_copy = |race: &String| {
        race.contains(": bulk copy at ") && race.contains(&told) && race.contains("without a wait for the end of")
    };
    assert!(found.len() == 1 && of_copy(&found[0]), "{found:#?}");
}

#[test]
fn what_comes_behind_a_bulk_copy_waits_for_its_end() {
    let wait = |step: &str| format!("cp.async.bulk.wait_group{step};");
    // Out of shared memory: by the same thread, and by another warp that meets it.
    let out = "cp.async.bulk.global.shared::cta.bulk_group [%rd2+2048], [%r9], 128; cp.async.bulk.commit_group;";
    let over = "st.shared.u32 [%r9+4], 7;";
    lacks(races_behind(out, over, ""), "store");
    lacks(races_behind(out, "", over), "store");
    lacks(races_behind(out, &format!("{} {over}", wait(".read 1")), ""), "store");
    for read in [wait(".read 0"), wait(" 0")] {
        assert_eq!(races_behind(out, &format!("{read} {over}"), ""), [""; 0]);
        assert_eq!(races_behind(out, &read, over), [""; 0]);
    }
    assert_eq!(races_behind(out, "ld.shared.u32 %r5, [%r9]; st.global.u32 [%rd3], %r5;", ""), [""; 0]);
    // What it has written: that it has read is not enough.
    let back = "ld.global.u32 %r5, [%rd2+2048]; st.global.u32 [%rd3], %r5;";
    lacks(races_behind(out, &wait(".read 0"), back), "load");
    assert_eq!(races_behind(out, &wait(" 0"), back), [""; 0]);
    // Of two groups the first alone is waited for.
    let two = format!("{out} {}", out.replace("2048], [%r9]", "2304], [%r9+256]"));
    assert_eq!(races_behind(&two, &wait(".read 1"), over), [""; 0]);
    lacks(races_behind(&two, &wait(".read 1"), "st.shared.u32 [%r9+260], 7;"), "store");
    // Elements are added one by one, in any order.
    let add = out
        .replace("cp.async.bulk.global", "cp.reduce.async.bulk.global")
        .replace("bulk_group [", "bulk_group.add.u32 [");
    assert_eq!(races_behind(&format!("{add} {add}"), "", "red.global.add.u32 [%rd2+2048], 1;"), [""; 0]);
    lacks(races_behind(&format!("{out} {out}"), "", ""), "bulk copy");
    // To shared memory: who tests the barrier, and who is ordered behind that.
    let into = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9+512], 128;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9+768], [%rd1], 128, [%r9+512];";
    let test = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9+512], 0; @!%p2 bra W;";
    let used = "ld.shared.u32 %r5, [%r9+772]; st.global.u32 [%rd3], %r5;";
    lacks(races_behind(into, used, ""), "load");
    lacks(races_behind(into, "", used), "load");
    assert_eq!(races_behind(into, &format!("{test} {used}"), ""), [""; 0]);
    assert_eq!(races_behind(into, test, used), [""; 0]);
    assert_eq!(races_behind(into, "", &format!("{test} {used}")), [""; 0]);
    // Groups of nothing.
    assert_eq!(races_behind("cp.async.bulk.commit_group;", &wait(" 0"), ""), [""; 0]);
    // It reads global memory as long.
    let source = "st.global.u32 [%rd1+4], 7;";
    lacks(races_behind(into, "", source), "store");
    assert_eq!(races_behind(into, test, source), [""; 0]);
}

/// Races of built-in programs that are meant: program, buffer, whether every pair must leave the value as it is, and
/// why the result does not depend on them. None else may have any.
const MEANT: [(&str, &str, bool, &str); 5] = [
    (
        "bfs",
        "level",
        false,
        "a vertex goes from -1 to the next depth: who reads either does the same, or stores that depth again",
    ),
    ("bfs", "changed", true, "all store 1"),
    ("sssp", "changed", true, "all store 1"),
    ("bplus_tree", "new_count", true, "all store 1"),
    ("bplus_tree_dram", "new_count", true, "all store 1"),
];

#[test]
fn the_built_in_programs_have_no_races_but_those_that_are_meant_and_read_nothing_unwritten() {
    let (mut wrong, mut seen) = (Vec::new(), [false; MEANT.len()]);
    for listing in Workload::builtin() {
        let workload = Workload::load(&listing.name).unwrap_or_else(|faults| panic!("{faults}"));
        let resolved = workload.resolve(&Choice::of_profile("ci")).unwrap_or_else(|faults| panic!("{faults}"));
        let run = resolved.run_under(&Limits::default(), Scrutiny::new(true)).unwrap_or_else(|error| panic!("{error}"));
        let scrutiny = run.scrutiny();
        wrong.extend(scrutiny.unwritten().iter().map(|found| found.message.clone()));
        for race in scrutiny.races().unwrap() {
            let is_meant = |(name, buffer, same_value, _): &(&str, &str, bool, &str)| {
                let here = *name == listing.name && race.word.starts_with(&format!("`{buffer}` "));
                here && (race.same_value || !same_value)
            };
            match MEANT.iter().position(is_meant) {
                Some(of) => seen[of] = true,
                None => wrong.push(format!("{}: {race}", listing.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, [true; MEANT.len()], "a race that is meant is there no more");
}

#[test]
fn the_command_line_and_a_sweep_tell_what_is_undetermined() {
    let folder = folder("undetermined/cli");
    let told = |output: &std::process::Output| {
        String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
    };
    // A race, that the result does not show.
    std::fs::write(folder.join("workload.toml"), manifest("u32", (2, 32), "", "st.global.u32 [%rd2], 7;")).unwrap();
    assert_eq!(durawarp_in(&folder, &["run", ".", "-q"]).status.code(), Some(0));
    let run = durawarp_in(&folder, &["run", ".", "--races", "--json", "out.json"]);
    assert_eq!(run.status.code(), Some(3), "{}", told(&run));
    assert!(told(&run).contains("error: race: kernel `k`, `o` + 0: store at"), "{}", told(&run));
    let outcome: Outcome = serde_json::from_slice(&std::fs::read(folder.join("out.json")).unwrap()).unwrap();
    assert_eq!(outcome.races.map(|races| races.len()), Some(1));
    let both = durawarp_in(&folder, &["run", ".", "--races", "--no-reference"]);
    assert_eq!(both.status.code(), Some(2), "{}", told(&both));
    let of_cpus = durawarp_in(&folder, &["run", "hash", "--races"]);
    assert!(told(&of_cpus).contains("races are looked for in programs of GPUs"), "{}", told(&of_cpus));
    std::fs::write(folder.join("workload.toml"), manifest("u32", (2, 32), "", "st.global.u32 [%rd3], 7;")).unwrap();
    let run = durawarp_in(&folder, &["run", ".", "--races"]);
    assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    assert!(told(&run).lines().any(|line| line.split_whitespace().eq(["races", "none", "found"])), "{}", told(&run));
    // A clock in a result.
    let body = "mov.u32 %r5, %clock; st.global.u32 [%rd3], %r5;";
    std::fs::write(folder.join("workload.toml"), manifest("u32", (1, 64), "", body)).unwrap();
    let run = durawarp_in(&folder, &["run", ".", "-q"]);
    assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    assert!(
        told(&run).contains("warning: check `functional`: 64 of 1088 elements follow from %clock"),
        "{}",
        told(&run)
    );
    // What nobody has written, on the terminal and in the table of a sweep.
    std::fs::write(folder.join("workload.toml"), manifest("u32", (1, 64), "", "st.global.u32 [%rd3], %r15;")).unwrap();
    let run = durawarp_in(&folder, &["run", "."]);
    assert_eq!(told(&run).matches("uses a register that nobody has written").count(), 1, "{}", told(&run));
    // A sum of floats in a sweep.
    std::fs::write(folder.join("workload.toml"), manifest("f32", (16, 256), "", FLOAT_SUM)).unwrap();
    let spec = "schema = 1\nname = \"s\"\nmetrics = [\"cycles\"]\n[base]\nworkload = \".\"\n[[axis]]\nkey = \"seed\"\nvalues = [1]\n";
    std::fs::write(folder.join("sweep.toml"), spec).unwrap();
    let sweep = durawarp_in(&folder, &["sweep", "run", "sweep.toml"]);
    assert_eq!(sweep.status.code(), Some(3), "{}", told(&sweep));
    assert!(told(&sweep).contains("floating-point additions by atomics may be the reason"), "{}", told(&sweep));
}
