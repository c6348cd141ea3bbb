//! Undo logging added to plain kernels: the same results, complete flags, old values in the logs, and the text itself.
//!
//! Every built-in workload with an `[instrument]` runs here, and small ones that a test writes itself.

use std::collections::BTreeSet;

use crate::workload_common::{folder, load};
use durawarp::assemble::{Persistency, assemble_with};
use durawarp::config::{MachineConfig, presets};
use durawarp::engine::{RunEnd, RunOptions};
use durawarp::kernel::functional::Limits;
use durawarp::persist::undo::{COMPLETE, UndoLog};
use durawarp::schemes::catalogue;
use durawarp::workload::{
    Choice, Demands, Evidence, FlagBarrier, FunctionalRun, Mode, Outcome, Overrides, Resolved, Workload,
};

fn resolved(workload: &Workload, choice: &Choice) -> Resolved {
    workload.resolve(choice).unwrap_or_else(|faults| panic!("{faults}"))
}

/// As for a scheme that keeps undo logs.
fn logged(workload: &Workload, choice: &Choice) -> Resolved {
    let demands = Demands { undo_logs: true, ..Demands::default() };
    workload.resolve_under(choice, demands).unwrap_or_else(|faults| panic!("{faults}"))
}

fn run(resolved: &Resolved) -> FunctionalRun {
    resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn undo(resolved: &Resolved) -> std::sync::Arc<UndoLog> {
    resolved.undo().unwrap_or_else(|fault| panic!("{fault}")).expect("it keeps logs")
}

/// The instrumented run ends as the plain one, with complete flags and the old values in the logs.
fn check_sound(workload: &Workload, choice: &Choice) {
    let name = workload.name();
    let plain = resolved(workload, choice);
    let with = logged(workload, choice);
    let (reference, found) = (run(&plain), run(&with));
    let verdict =
        with.verify(found.memory(), found.bindings(), Evidence { functional: Some(&reference), ..Evidence::default() });
    assert!(verdict.passed(), "{name}: {verdict:#?}");
    assert!(verdict.checks.iter().all(|check| check.outcome == Outcome::Passed));
    assert!(plain.undo().unwrap().is_none(), "{name}: a plain run has no transactions");
    let same = |one: &Resolved| one.describe().buffers.into_iter().map(|b| (b.name, b.address)).collect::<Vec<_>>();
    assert_eq!(same(&plain), same(&with), "{name}: addresses");

    let undo = undo(&with);
    assert!(!undo.transactions.is_empty(), "{name}");
    assert!(undo.transactions.is_sorted_by_key(|transaction| (transaction.launch, transaction.cta)));
    let flags: BTreeSet<u64> = undo.transactions.iter().map(|transaction| transaction.flag).collect();
    assert_eq!(flags.len(), undo.transactions.len(), "{name}: a flag a transaction");
    let expected = with.expected(&Limits::default()).unwrap();
    for (transaction, (old, new)) in undo.transactions.iter().zip(&expected) {
        assert_eq!(found.memory().read_u32s(transaction.flag, 1).unwrap(), [COMPLETE], "{name}: {transaction:?}");
        let mut at = 0;
        for slot in &transaction.slots {
            let bytes = slot.bytes as usize;
            // A log serves every launch: what an earlier one kept there may be overwritten. So may what
            // another CTA did, where the manifest has slots shared.
            let shared = undo.transactions.iter().any(|other| {
                let may_overwrite = other.launch > transaction.launch
                    || other.launch == transaction.launch && other.cta != transaction.cta;
                may_overwrite && other.slots.iter().any(|later| later.log == slot.log)
            });
            if !shared {
                assert_eq!(found.memory().read(slot.log, bytes).unwrap(), &old[at..at + bytes], "{name}: {slot:?}");
                assert_eq!(found.memory().read(slot.home, bytes).unwrap(), &new[at..at + bytes], "{name}: {slot:?}");
            }
            at += bytes;
        }
        assert_eq!((old.len(), new.len()), (at, at));
    }
}

fn ci() -> Choice {
    Choice::of_profile("ci")
}

#[test]
fn every_instrumented_workload_ends_as_the_plain_one_with_its_flags_and_logs_complete() {
    let mut modes = BTreeSet::new();
    for listing in Workload::builtin() {
        let workload = Workload::load(&listing.name).unwrap();
        if workload.instrument() != Mode::None {
            check_sound(&workload, &ci());
            modes.insert((workload.instrument().name(), listing.name));
        }
    }
    assert!(modes.len() >= 7, "{modes:?}");
}

#[test]
fn every_choice_of_instrumentation_gives_the_same_results() {
    for name in ["vecadd", "gemm_tiled", "histogram"] {
        let workload = Workload::load(name).unwrap();
        for mode in [Mode::CtaUndo, Mode::KernelUndo, Mode::IdempotentCta] {
            // Which elements a CTA of the histogram updates, nobody knows.
            if (name, mode) == ("histogram", Mode::CtaUndo) {
                continue;
            }
            for (barrier, loop_log) in
                [(FlagBarrier::Paper, true), (FlagBarrier::Safe, true), (FlagBarrier::Paper, false)]
            {
                let instrument = Overrides {
                    mode: Some(mode),
                    flag_barrier: Some(barrier),
                    loop_log: Some(loop_log),
                    reload: Some(loop_log),
                };
                check_sound(&workload, &Choice { instrument, ..ci() });
            }
        }
    }
}

/// Doubles its element and adds 1; threads past the end return early.
const PTX: &str = "\
.version 7.0
.target sm_60
.address_size 64
.visible .entry bump(.param .u64 y, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.u32 %r5, %r2, %r3, %r4;
setp.ge.u32 %p1, %r5, %r1;
@%p1 ret;
ld.param.u64 %rd1, [y];
mad.wide.u32 %rd2, %r5, 4, %rd1;
ld.global.u32 %r6, [%rd2];
mad.lo.u32 %r7, %r6, 2, 1;
st.global.u32 [%rd2], %r7; // the update
ret;
}
";

const MANIFEST: &str = r#"schema = 1
name = "bump"
description = "y = 2 y + 1"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 100
[buffer.y]
type = "u32"
len = "N"
space = "pm"
init = { kind = "iota" }
role = "output"
[[step]]
kernel = "bump"
grid = 2
block = 64
args = ["&y", "N"]
[instrument]
mode = "cta_undo"
outputs = [{ buffer = "y", index = "ctaid.x * ntid.x + tid.x", guard = "ctaid.x * ntid.x + tid.x < N" }]
"#;

fn workload(test: &str, ptx: &str, manifest: &str) -> Workload {
    let folder = folder(test, &[("workload.toml", manifest), ("kernel.ptx", ptx)]);
    load(&folder).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The instrumented text of the first PTX file.
fn text(resolved: &Resolved) -> String {
    resolved.texts().next().unwrap().1.to_owned()
}

#[test]
fn the_text_of_a_small_kernel() {
    let workload = workload("instrument-golden", PTX, MANIFEST);
    let expected = "\
.version 7.0
.target sm_60
.address_size 64
.visible .entry bump(.param .u64 y, .param .u32 n, .param .u64 undo_home0, .param .u64 undo_shift0, .param .u64 undo_flag)
{ .reg .b64 %undo_l<9>; .reg .pred %undo_p<3>; .reg .b32 %undo_w<20>; \
mov.u32 %undo_w0, %tid.x; cvt.u64.u32 %undo_l0, %undo_w0; \
mov.u32 %undo_w1, %ctaid.x; cvt.u64.u32 %undo_l1, %undo_w1; \
mov.u32 %undo_w2, %ntid.x; cvt.u64.u32 %undo_l2, %undo_w2; \
mul.lo.s64 %undo_l3, %undo_l1, %undo_l2; add.s64 %undo_l4, %undo_l3, %undo_l0; \
setp.lt.s64 %undo_p0, %undo_l4, 100; \
ld.param.u64 %undo_l5, [undo_home0]; ld.param.u64 %undo_l6, [undo_shift0]; \
mad.lo.s64 %undo_l5, %undo_l4, 4, %undo_l5; add.s64 %undo_l6, %undo_l5, %undo_l6; \
@%undo_p0 pm.ld.log.global.u32 %undo_w3, [%undo_l5]; @%undo_p0 pm.st.log.global.u32 [%undo_l6], %undo_w3; \
@%undo_p0 pm.clwb.log [%undo_l6]; pm.sfence; \
mov.u32 %undo_w4, %tid.x; mov.u32 %undo_w5, %tid.y; mov.u32 %undo_w6, %tid.z; \
or.b32 %undo_w4, %undo_w4, %undo_w5; or.b32 %undo_w4, %undo_w4, %undo_w6; setp.eq.u32 %undo_p1, %undo_w4, 0; \
bar.sync 0; \
mov.u32 %undo_w7, %ctaid.z; mov.u32 %undo_w8, %nctaid.y; mov.u32 %undo_w9, %ctaid.y; \
mov.u32 %undo_w10, %nctaid.x; mov.u32 %undo_w11, %ctaid.x; \
mad.lo.u32 %undo_w7, %undo_w7, %undo_w8, %undo_w9; mad.lo.u32 %undo_w7, %undo_w7, %undo_w10, %undo_w11; \
ld.param.u64 %undo_l7, [undo_flag]; mad.wide.u32 %undo_l7, %undo_w7, 4, %undo_l7; \
@%undo_p1 st.global.u32 [%undo_l7], 1; @%undo_p1 pm.clwb [%undo_l7]; @%undo_p1 pm.sfence; bar.sync 0;
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %tid.x;
mad.lo.u32 %r5, %r2, %r3, %r4;
setp.ge.u32 %p1, %r5, %r1;
@%p1 bra undo_L0;
ld.param.u64 %rd1, [y];
mad.wide.u32 %rd2, %r5, 4, %rd1;
ld.global.u32 %r6, [%rd2];
mad.lo.u32 %r7, %r6, 2, 1;
st.global.u32 [%rd2], %r7; pm.clwb [%rd2]; pm.sfence; // the update
bra undo_L0;
undo_L0: bar.sync 0; \
mov.u32 %undo_w12, %tid.x; mov.u32 %undo_w13, %tid.y; mov.u32 %undo_w14, %tid.z; \
or.b32 %undo_w12, %undo_w12, %undo_w13; or.b32 %undo_w12, %undo_w12, %undo_w14; setp.eq.u32 %undo_p2, %undo_w12, 0; \
mov.u32 %undo_w15, %ctaid.z; mov.u32 %undo_w16, %nctaid.y; mov.u32 %undo_w17, %ctaid.y; \
mov.u32 %undo_w18, %nctaid.x; mov.u32 %undo_w19, %ctaid.x; \
mad.lo.u32 %undo_w15, %undo_w15, %undo_w16, %undo_w17; mad.lo.u32 %undo_w15, %undo_w15, %undo_w18, %undo_w19; \
ld.param.u64 %undo_l8, [undo_flag]; mad.wide.u32 %undo_l8, %undo_w15, 4, %undo_l8; \
@%undo_p2 st.global.u32 [%undo_l8], 2; @%undo_p2 pm.clwb [%undo_l8]; @%undo_p2 pm.sfence; ret; }
";
    assert_eq!(text(&logged(&workload, &Choice::default())), expected);
    assert_eq!(text(&resolved(&workload, &Choice::default())), PTX, "without logs the text is the user's");
    check_sound(&workload, &Choice::default());
}

#[test]
fn the_published_order_has_one_barrier_less() {
    let workload = workload("instrument-paper", PTX, MANIFEST);
    let barriers = |flag_barrier| {
        let instrument = Overrides { flag_barrier: Some(flag_barrier), ..Overrides::default() };
        text(&logged(&workload, &Choice { instrument, ..Choice::default() })).matches("bar.sync").count()
    };
    assert_eq!((barriers(FlagBarrier::Safe), barriers(FlagBarrier::Paper)), (3, 2));
    let idempotent = Overrides { mode: Some(Mode::IdempotentCta), ..Overrides::default() };
    let text = text(&logged(&workload, &Choice { instrument: idempotent, ..Choice::default() }));
    assert_eq!((text.matches("bar.sync").count(), text.matches("log").count()), (2, 0), "{text}");
}

#[test]
fn a_loop_log_logs_each_update_before_it_is_stored_and_spares_the_old_values() {
    let workload = workload("instrument-loop", PTX, &MANIFEST.replace("mode =", "loop_log = true\nmode ="));
    let text = text(&logged(&workload, &Choice::default()));
    let line = text.lines().nth(17).unwrap();
    let expected = "ld.param.u64 %undo_l8, [undo_loop0]; add.s64 %undo_l8, %undo_l8, %rd2; \
        pm.st.log.global.u32 [%undo_l8], %r7; pm.clwb.log [%undo_l8]; \
        st.global.u32 [%rd2], %r7; pm.clwb [%rd2]; pm.sfence; // the update";
    assert_eq!(line, expected);
    check_sound(&workload, &Choice::default());
}

#[test]
fn sums_that_are_loaded_again_come_to_the_same() {
    for name in ["atax", "gemm", "mm3"] {
        let workload = Workload::load(name).unwrap();
        let instrument = Overrides { reload: Some(true), ..Overrides::default() };
        let again = Choice { instrument, ..ci() };
        check_sound(&workload, &again);
        let loads = |choice: &Choice| text(&logged(&workload, choice)).matches("ld.global.f32").count();
        // Four sums of a loop that was unrolled and one of its rest, at least.
        assert!(loads(&again) >= loads(&ci()) + 5, "{name}");
    }
}

#[test]
fn elements_are_logged_where_the_manifest_says_and_so_are_their_updates() {
    let with = |log_index: &str| {
        let manifest = MANIFEST.replace("mode =", "loop_log = true\nmode =");
        workload(
            "instrument-log-index",
            PTX,
            &manifest.replace("index =", &format!("log_index = \"{log_index}\", index =")),
        )
    };
    // The log backwards: each element has a slot of its own, elsewhere.
    let turned = with("len(y) - 1 - idx");
    check_sound(&turned, &Choice::default());
    let turned = logged(&turned, &Choice::default());
    let slots = |resolved: &Resolved| -> Vec<_> {
        undo(resolved).transactions.iter().flat_map(|one| one.slots.clone()).collect()
    };
    let (plain, backwards) = (slots(&logged(&with("idx"), &Choice::default())), slots(&turned));
    let sums: BTreeSet<u64> = backwards.iter().zip(&plain).map(|(one, other)| one.log + other.log).collect();
    assert_eq!((backwards.len(), sums.len()), (100, 1), "first and last change places");
    assert!(backwards.iter().zip(&plain).all(|(one, other)| one.home == other.home && one.bytes == other.bytes));
    // And so is the log of every update.
    let buffers = turned.describe().buffers;
    let address = |name: &str| buffers.iter().find(|buffer| buffer.name == name).unwrap().address;
    let run = run(&turned);
    let read = |name: &str| run.memory().read_u32s(address(name), 100).unwrap();
    let mut updates = read("y.loop");
    updates.reverse();
    assert_eq!(updates, read("y"));
    let demands = Demands { undo_logs: true, ..Demands::default() };
    let fault = with("idx + 1").resolve_under(&Choice::default(), demands).unwrap_err().to_string();
    assert!(fault.contains("element 99 of `y` is logged in element 100 of its log, which has 100"), "{fault}");
}

#[test]
fn slots_that_all_ctas_share_hold_one_ctas_old_values() {
    let workload = Workload::load("sad_shared_log").unwrap();
    let undo = undo(&logged(&workload, &ci()));
    let logs = |cta: usize| -> Vec<u64> { undo.transactions[cta].slots.iter().map(|slot| slot.log).collect() };
    assert_eq!((logs(0).len(), logs(0) == logs(1)), (274, true));
    check_sound(&workload, &ci());
}

#[test]
fn generated_names_keep_clear_of_the_kernels_own() {
    let ptx = PTX.replace("%r7", "%undo_l7").replace(".reg .b32 %r<8>", ".reg .b32 %r<7>; .reg .b32 %undo_l<8>");
    let workload = workload("instrument-names", &ptx, MANIFEST);
    assert!(text(&logged(&workload, &Choice::default())).contains("%undo1_l0"));
    check_sound(&workload, &Choice::default());
}

#[test]
fn a_fault_in_the_body_has_the_line_of_the_plain_text() {
    // The pointer runs past the buffer at the update, and at nothing that is generated.
    let ptx = PTX.replace("st.global.u32 [%rd2], %r7;", "st.global.u32 [%rd2+4096], %r7;");
    let workload = workload("instrument-fault", &ptx, MANIFEST);
    let line = |resolved: Resolved| {
        let error = resolved.run_functional(&Limits::default()).unwrap_err().to_string();
        let at = error.find("kernel.ptx:").unwrap_or_else(|| panic!("{error}"));
        error[at..].split(':').take(3).collect::<Vec<_>>().join(":")
    };
    let choice = Choice::default();
    assert_eq!(line(logged(&workload, &choice)), line(resolved(&workload, &choice)));
    assert_eq!(line(logged(&workload, &choice)).split(':').nth(1), Some("18"));
}

#[test]
fn whole_warps_that_return_before_a_barrier_do_not_complete_the_transaction() {
    // Warp 0 of each CTA, with the thread that sets the flag, leaves at once; others meet at a barrier of their own
    // before they store. At one more barrier at the end of the kernel, warp 0 would meet them there.
    let ptx = PTX
        .replace(
            "@%p1 ret;",
            "and.b32 %r6, %r4, 32; setp.eq.or.u32 %p1, %r6, 0, %p1;\n@%p1 exit;\nbar.sync 0;\nbar.sync 0;",
        )
        .replace("{\n.reg", "{\n// no change of the lines\n.reg");
    let manifest = MANIFEST.replace("< N\"", "< N && tid.x / 32 % 2 == 1\"").replace("block = 64", "block = 128");
    let workload = workload("instrument-barrier", &ptx, &manifest);
    let with = logged(&workload, &Choice::default());
    assert!(text(&with).contains("atom.shared.add.u32"), "the last thread completes it:\n{}", text(&with));
    check_sound(&workload, &Choice::default());
}

#[test]
fn several_launches_have_flags_of_their_own_and_share_the_log() {
    let looped = MANIFEST.replace("[[step]]", "[[loop]]\ncount = 3\n[[loop.step]]");
    let workload = workload("instrument-launches", PTX, &looped);
    let with = logged(&workload, &Choice::default());
    let undo = undo(&with);
    let launches: Vec<_> =
        undo.transactions.iter().map(|t| (t.launch, t.cta, t.flag - undo.transactions[0].flag)).collect();
    let expected =
        [(0, Some(0), 0), (0, Some(1), 4), (1, Some(0), 8), (1, Some(1), 12), (2, Some(0), 16), (2, Some(1), 20)];
    assert_eq!(launches, expected);
    assert_eq!(undo.transactions[0].slots, undo.transactions[4].slots);
    assert_eq!(undo.transactions[1].slots.len(), 36, "threads past the end have no element");
    let values = |bytes: &[u8]| bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>();
    let expected = with.expected(&Limits::default()).unwrap();
    assert_eq!(values(&expected[2].0)[..3], [1, 3, 5], "launch 1 finds what launch 0 left");
    assert_eq!(values(&expected[2].1)[..3], [3, 7, 11]);
    check_sound(&workload, &Choice::default());
}

#[test]
fn a_kernels_own_transaction_counts_the_launches_that_log() {
    let workload = Workload::load("histogram").unwrap();
    let with = logged(&workload, &ci());
    let undo = undo(&with);
    let transactions: Vec<_> = undo.transactions.iter().map(|t| (t.launch, t.cta)).collect();
    assert_eq!(transactions, [(1, None), (3, None)]);
    let names: Vec<_> = run(&with).launches().iter().map(|launch| launch.kernel.clone()).collect();
    assert_eq!(names, ["undo_log_copy_u32", "histogram_global", "undo_log_copy_u32", "histogram_shared"]);
}

#[test]
fn ping_pong_buffers_are_logged_where_they_are() {
    let manifest = MANIFEST
        .replace("[[step]]", "[buffer.z]\ntype = \"u32\"\nlen = \"N\"\nspace = \"pm\"\n[[step]]")
        .replace("[instrument]", "[[step]]\nswap = [\"y\", \"z\"]\n[[step]]\nkernel = \"bump\"\ngrid = 2\nblock = 64\nargs = [\"&y\", \"N\"]\n[instrument]");
    let workload = workload("instrument-swap", PTX, &manifest);
    let undo = undo(&logged(&workload, &Choice::default()));
    let described = logged(&workload, &Choice::default()).describe();
    let at = |name: &str| described.buffers.iter().find(|b| b.name == name).unwrap().address;
    assert_eq!((undo.transactions[0].slots[0].home, undo.transactions[2].slots[0].home), (at("y"), at("z")));
    assert_eq!((undo.transactions[0].slots[0].log, undo.transactions[2].slots[0].log), (at("y.log"), at("y.log")));
}

#[test]
fn a_kernel_launched_on_two_buffers_is_instrumented_for_each() {
    let manifest = MANIFEST
        .replace("[[step]]", "[buffer.z]\ntype = \"u32\"\nlen = \"N\"\n[[step]]\nkernel = \"bump\"\ngrid = 2\nblock = 64\nargs = [\"&z\", \"N\"]\n[[step]]");
    let workload = workload("instrument-forms", PTX, &manifest);
    check_sound(&workload, &Choice::default());
    let undo = undo(&logged(&workload, &Choice::default()));
    assert!(undo.transactions.iter().all(|transaction| transaction.launch == 1), "z is in DRAM: no transaction");
}

#[test]
fn declared_logs_and_flags_are_used() {
    let declared = "[buffer.old]\ntype = \"u32\"\nlen = \"N\"\nspace = \"pm\"\nrole = \"undo_log\"\nof = \"y\"\n\
        [buffer.flags]\ntype = \"u32\"\nlen = \"grid.x\"\nspace = \"pm\"\nrole = \"tx_flag\"\n[[step]]";
    let workload = workload("instrument-declared", PTX, &MANIFEST.replace("[[step]]", declared));
    check_sound(&workload, &Choice::default());
    let with = logged(&workload, &Choice::default());
    let names: Vec<_> = with.describe().buffers.into_iter().map(|b| b.name).collect();
    assert_eq!(names, ["y", "old", "flags"], "nothing is allocated beside them");
}

#[test]
fn structures_and_bytes_are_logged_whole() {
    // An element of 12 bytes: only its middle word changes.
    let ptx = PTX.replace("%r5, 4, %rd1", "%r5, 12, %rd1").replace("[%rd2]", "[%rd2+4]");
    let fields = "fields = [{ name = \"a\", type = \"u32\", init = { kind = \"iota\" } }, { name = \"b\", type = \"u32\", init = \
        { kind = \"iota\", start = 7 } }, { name = \"c\", type = \"u8\", init = { kind = \"const\", value = 9 } }]";
    let manifest = MANIFEST.replace("type = \"u32\"", fields).replace("init = { kind = \"iota\" }\nrole", "role");
    check_sound(&workload("instrument-structures", &ptx, &manifest), &Choice::default());
    // A byte an element.
    let ptx = PTX.replace("%r5, 4, %rd1", "%r5, 1, %rd1").replace("global.u32 ", "global.u8 ");
    let manifest = MANIFEST.replace("type = \"u32\"", "type = \"u8\"");
    let workload = workload("instrument-bytes", &ptx, &manifest);
    check_sound(&workload, &Choice::default());
    let kernel = Overrides { mode: Some(Mode::KernelUndo), ..Overrides::default() };
    check_sound(&workload, &Choice { instrument: kernel, ..Choice::default() });
}

#[test]
fn a_hand_written_log_is_declared_and_its_text_left_alone() {
    let manual = MANIFEST.replace("cta_undo", "manual").replace(
        "[[step]]",
        "[buffer.old]\ntype = \"u32\"\nlen = \"N\"\nspace = \"pm\"\nrole = \"undo_log\"\nof = \"y\"\n\
            [buffer.flags]\ntype = \"u32\"\nlen = 2\nspace = \"pm\"\nrole = \"tx_flag\"\n[[step]]",
    );
    // Not a sound protocol: only that the kernel keeps its own instructions.
    let ptx = PTX.replace("ret;\n}", "pm.sfence;\nret;\n}");
    let workload = workload("instrument-manual", &ptx, &manual);
    let with = logged(&workload, &Choice::default());
    assert_eq!(text(&with), ptx);
    let undo = undo(&with);
    assert_eq!(undo.transactions.iter().map(|t| t.slots.len()).collect::<Vec<_>>(), [64, 36]);
    assert!(undo.transactions[0].slots[0].log > undo.transactions[0].slots[0].home);
}

#[test]
fn the_example_of_the_page_runs() {
    const PAGE: &str = include_str!("../../workloads/manifest.md");
    let block = PAGE.split("```").find(|block| block.starts_with("toml\n[instrument]")).expect("the page has it");
    let block = block.trim_start_matches("toml\n");
    let manifest = format!("{}{block}", MANIFEST.split("[instrument]").next().unwrap());
    check_sound(&workload("instrument-readme", PTX, &manifest), &Choice::default());
}

#[test]
fn an_update_that_no_thread_logs_is_found() {
    let wrong =
        MANIFEST.replace("index = \"ctaid.x * ntid.x + tid.x\"", "index = \"N - 1 - (ctaid.x * ntid.x + tid.x)\"");
    let fewer = wrong.replace("+ tid.x < N\"", "+ tid.x < N - 1\"");
    let workload = workload("instrument-unlogged", PTX, &fewer);
    let error = logged(&workload, &Choice::default()).expected(&Limits::default()).unwrap_err().to_string();
    assert!(error.contains("launch 0 updates element 0 of `y`, which no thread logs"), "{error}");
}

#[test]
fn threads_compute_the_same_elements_as_the_layout() {
    // Stores back what it loads, so that any log is sound; the log must hold the old value of exactly the elements that
    // the expression names when the manifest is evaluated.
    let ptx = PTX.replace("mad.lo.u32 %r7, %r6, 2, 1;", "mov.u32 %r7, %r6;");
    let (mine, all) = ("(ctaid.x * ntid.x + tid.x)", "true");
    let cases: Vec<(String, &str)> = [
        ("T", all),
        ("127 - T", "T > 27"),
        ("(T * 7) % 128", all),
        ("T / 2 * 2 + T % 2", all),
        ("ceil_div(T - 40, 3) + 20", "T % 3 == 0 && T > 2"),
        ("ceil_div(40 - T, -3) + 40", "T % 3 == 1 && T < 99"),
        ("abs(T - 64) * 2 + (T > 64 ? 1 : 0)", "T > 0 && T < 100"),
        ("max(T, 3) + min(0, T)", "T > 2"),
        ("T", "!(T < 9) || T == 4"),
        ("T", "T != 5 && T <= 90 && T >= 7 && T - 8"),
        ("T < 0 ? 5000 : T", "N > 7 && T < N"),
        ("-(-T) + 0 * len(y)", "N > 7 || T / 0 == 1"),
        ("ctaid.x + nctaid.x * tid.x + 0 * (tid.y + tid.z + ctaid.y + ctaid.z + ntid.y + ntid.z + nctaid.y + nctaid.z)", all),
    ]
    .map(|(index, guard)| (index.replace('T', mine), guard))
    .to_vec();
    for (index, guard) in cases {
        let guard = guard.replace("true", "1").replace('T', mine);
        let manifest = MANIFEST
            .replace("len = \"N\"", "len = 128")
            .replace("{ kind = \"iota\" }", "{ kind = \"iota\", start = 500 }")
            .replace("index = \"ctaid.x * ntid.x + tid.x\"", &format!("index = \"{index}\""))
            .replace("guard = \"ctaid.x * ntid.x + tid.x < N\"", &format!("guard = \"{guard}\""));
        let with = logged(&workload("instrument-expressions", &ptx, &manifest), &Choice::default());
        let undo = undo(&with);
        let named: BTreeSet<u64> = undo.transactions.iter().flat_map(|t| &t.slots).map(|slot| slot.home).collect();
        assert!(named.len() > 10, "{index}, {guard}: {}", named.len());
        let described = with.describe();
        let at = |name: &str| described.buffers.iter().find(|b| b.name == name).unwrap().address;
        let log = run(&with).memory().read_u32s(at("y.log"), 128).unwrap();
        let logged: BTreeSet<u64> = (0..128).filter(|i| log[*i as usize] != 0).map(|i| at("y") + 4 * i).collect();
        assert_eq!(logged, named, "{index}, {guard}");
        assert!(logged.iter().all(|home| log[((home - at("y")) / 4) as usize] == 500 + ((home - at("y")) / 4) as u32));
    }
}

#[test]
fn a_timed_machine_leaves_the_same_data_logs_and_flags() {
    let machine = MachineConfig::load(presets::DEFAULT_MACHINE, &[]).unwrap();
    let keeps_logs: Vec<_> = catalogue::all().into_iter().filter(|scheme| scheme.logs()).collect();
    assert!(keeps_logs.len() >= 2);
    for scheme in keeps_logs {
        let persistency = Persistency { scheme: scheme.clone(), journal: false, ..Persistency::default() };
        for (name, loop_log) in [("atax", false), ("vecadd", true), ("gemm_tiled", false), ("histogram", true)] {
            let instrument = Overrides { loop_log: Some(loop_log), ..Overrides::default() };
            let with = logged(&Workload::load(name).unwrap(), &Choice { instrument, ..ci() });
            let mut memory = with.image();
            let mut assembly = assemble_with(&machine.spec, memory.clone(), 256, Box::new(with.host()), &persistency);
            let end = assembly.simulation.run(&RunOptions::default());
            assert!(matches!(end, RunEnd::Finished { .. }), "{} {name}: {end:?}", scheme.name());
            assembly.collect(&mut memory);
            let (reference, described) = (run(&with), with.describe());
            for ((start, timed), (_, functional)) in memory.ranges().zip(reference.memory().ranges()) {
                let buffer = &described.buffers.iter().find(|b| b.address == start).unwrap().name;
                // What the histogram's loop log holds last, the order of atomics decides.
                let ordered = (name, buffer.ends_with(".loop")) != ("histogram", true);
                assert!(timed == functional || !ordered, "{} {name}: {buffer}", scheme.name());
            }
        }
    }
}
