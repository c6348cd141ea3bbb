//! What is wrong with an `[instrument]`: each fault with its place, what was expected, and advice. And random kernels,
//! whose transactions must hold every element that they change.

use crate::workload_common::{folder, load, shown};
use durawarp::kernel::functional::Limits;
use durawarp::persist::undo::COMPLETE;
use durawarp::workload::{Choice, Demands, Mode, Overrides, Workload};
use proptest::prelude::*;

const PTX: &str = "\
.version 7.0
.target sm_60
.address_size 64
.visible .entry set(.param .u64 y, .param .u64 x, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [y];
mov.u32 %r1, %tid.x;
mad.wide.u32 %rd2, %r1, 4, %rd1;
st.global.u32 [%rd2], %r1;
ret;
}
.visible .entry other(.param .u64 y)
{
ret;
}
";

/// One thing is changed in it at a time: keep the numbers of the lines.
const SOUND: &str = r#"schema = 1
name = "set"
description = "y = tid"
isa = { kind = "ptx", file = "kernel.ptx" }
params = { N = 64 }
[buffer.x]
type = "u32"
len = "N"
[buffer.y]
type = "u32"
len = "N"
space = "pm"
[buffer.old]
type = "u32"
len = "N"
space = "pm"
role = "undo_log"
of = "y"
[buffer.flags]
type = "u32"
len = 2
space = "pm"
role = "tx_flag"
[[step]]
kernel = "set"
grid = 1
block = 64
args = ["&y", "&x", "N"]
[instrument]
mode = "cta_undo"
[[instrument.outputs]]
buffer = "y"
index = "tid.x"
"#;

fn faults_of(test: &str, ptx: &str, manifest: &str, choice: &Choice) -> String {
    let folder = folder(test, &[("workload.toml", manifest), ("kernel.ptx", ptx)]);
    let found = load(&folder)
        .and_then(|workload| workload.resolve_under(choice, LOGS).map_err(|faults| shown(&folder, &faults)));
    found.map(|_| String::new()).unwrap_or_else(|faults| faults)
}

/// As for a scheme that keeps undo logs.
const LOGS: Demands = Demands { undo_logs: true, persistent: false };

/// Each change is (old, new), once in the text; the expected faults come in the order of their places.
#[track_caller]
fn check(changes: &[(&str, &str)], expected: &[&str]) {
    check_choice(changes, &Choice::default(), expected);
}

#[track_caller]
fn check_choice(changes: &[(&str, &str)], choice: &Choice, expected: &[&str]) {
    let mut text = SOUND.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    let test = format!("instrument-faults-{}", std::panic::Location::caller().line());
    assert_eq!(faults_of(&test, PTX, &text, choice), expected.join("\n"));
}

#[test]
fn a_store_to_a_surface_cannot_be_logged() {
    let ptx = PTX
        .replace(".visible .entry set", ".global .surfref s;\n.visible .entry set")
        .replace("st.global.u32 [%rd2], %r1;\n", "st.global.u32 [%rd2], %r1;\nsust.b.1d.b32.zero [s, {%r1}], %r1;\n");
    let bound = "space = \"pm\"\nsurface = { width = \"N\", name = \"s\" }\n[buffer.old]";
    let manifest = SOUND.replacen("space = \"pm\"\n[buffer.old]", bound, 1);
    assert_eq!(
        faults_of("instrument-surface", &ptx, &manifest, &Choice::default()),
        "FOLDER/kernel.ptx:12:1: a store to a surface: undo logging follows pointers, and knows no surfaces \
         (`mode = \"manual\"` needs none)"
    );
}

#[test]
fn the_sample_is_sound() {
    check(&[], &[]);
}

#[test]
fn unknown_words_and_names() {
    check(
        &[("\"cta_undo\"", "\"loop_undo\"")],
        &[
            "30:8: `mode` must be one of `none`, `cta_undo`, `kernel_undo`, `idempotent_cta`, `manual`, found `loop_undo`",
        ],
    );
    check(
        &[("buffer = \"y\"", "buffer = \"yy\"")],
        &["32:10: there is no buffer `yy` (declared: `x`, `y`, `old`, `flags`)"],
    );
    check(
        &[("index = \"tid.x\"", "kernel = \"sett\"\nindex = \"tid.x\"")],
        &["33:10: there is no kernel `sett` (did you mean `set`?)"],
    );
    check(
        &[("index = \"tid.x\"", "index = \"tid.w\"")],
        &["33:10: `tid.w` is not defined here (did you mean `tid.x`?)"],
    );
    check(
        &[("index = \"tid.x\"", "index = \"tid.x + r\"")],
        &["33:18: `r` is not defined here (defined here: N, tid.x, tid.y, tid.z, ctaid.x, ctaid.y, ctaid.z, ntid.x, \
           ntid.y, ntid.z, nctaid.x, nctaid.y, nctaid.z)"],
    );
}

#[test]
fn what_must_be_in_persistent_memory() {
    check(
        &[("len = \"N\"\nspace = \"pm\"\n[buffer.old]", "len = \"N\"\n\n[buffer.old]")],
        &["32:10: `y` is not in persistent memory: nothing is left to undo (`space = \"pm\"`)"],
    );
    check(
        &[("space = \"pm\"\nrole = \"undo_log\"", "\nrole = \"undo_log\"")],
        &["13:9: an undo log must be in persistent memory (`space = \"pm\"`)"],
    );
    check(
        &[("space = \"pm\"\nrole = \"tx_flag\"", "\nrole = \"tx_flag\"")],
        &["19:9: a transaction's flag must be in persistent memory (`space = \"pm\"`)"],
    );
}

#[test]
fn logs_and_flags_that_do_not_fit() {
    check(
        &[("[buffer.old]\ntype = \"u32\"\nlen = \"N\"", "[buffer.old]\ntype = \"u32\"\nlen = \"N - 1\"")],
        &[
            "15:7: log `old` has 252 bytes, `y` has 256 (a log mirrors its buffer: `len(\"y\")` elements of the same type)",
        ],
    );
    check(
        &[("grid = 1", "grid = 3"), ("index = \"tid.x\"", "index = \"tid.x\"\nguard = \"ctaid.x == 0\"")],
        &["21:7: `flags` has 2 flags, there are 3 transactions (one a CTA and launch (`kernel_undo`: one a launch))"],
    );
    check(
        &[("[buffer.flags]\ntype = \"u32\"", "[buffer.flags]\ntype = \"f32\"")],
        &["19:9: flags are 32-bit integers (`type = \"u32\"`)"],
    );
    check(
        &[(
            "[buffer.x]\ntype = \"u32\"\nlen = \"N\"",
            "[buffer.x]\ntype = \"u32\"\nlen = \"N\"\nspace = \"pm\"\nrole = \"undo_log\"\nof = \"y\"",
        )],
        &["16:9: `y` has a second undo log"],
    );
    check(
        &[
            ("[buffer.x]\ntype = \"u32\"\nlen = \"N\"", "[buffer.x]\ntype = \"u32\"\nlen = \"N\"\nspace = \"pm\""),
            ("of = \"y\"", "\n"),
            (
                "index = \"tid.x\"",
                "index = \"tid.x\"\nlog = \"old\"\n[[instrument.outputs]]\nbuffer = \"x\"\nindex = \"tid.x\"\nlog = \"old\"",
            ),
        ],
        &["37:1: `old` already is the log of `y` (each output has a log of its own)"],
    );
    check(&[("index = \"tid.x\"", "index = \"tid.x\"\nlog = \"x\"")], &["34:7: `x` has not the role `undo_log`"]);
}

#[test]
fn elements_that_a_log_cannot_hold() {
    check(
        &[("index = \"tid.x\"", "index = \"tid.x + 1\"")],
        &[
            "33:9: thread (63, 0, 0) of CTA (0, 0, 0) updates element 64, outside the 64 elements of `y` (`guard` says which \
           threads update one)",
        ],
    );
    check(
        &[("grid = 1", "grid = 2")],
        &["33:9: CTAs 0 and 1 both update element 0 of `y`: rolling one back would undo the other's work \
           (`mode = \"kernel_undo\"` logs whole buffers)"],
    );
    check(
        &[("index = \"tid.x\"", "dynamic = true")],
        &[
            "31:1: CTAs cannot be transactions over `y`, whose elements are known only at run time: another CTA may update the \
           same element, and rolling one back would undo the other's work (`mode = \"kernel_undo\"` logs all of it)",
        ],
    );
    check(
        &[("index = \"tid.x\"", "index = \"tid.x\"\ndynamic = true")],
        &[
            "31:1: an output has either an `index` or `dynamic = true`",
            "31:1: CTAs cannot be transactions over `y`, whose elements are known only at run time: another CTA may update \
             the same element, and rolling one back would undo the other's work (`mode = \"kernel_undo\"` logs all of it)",
        ],
    );
    check(
        &[("index = \"tid.x\"", "")],
        &["31:1: `mode = \"cta_undo\"` needs the `index` that a thread updates (or `dynamic = true` with `mode = \
           \"kernel_undo\"`)"],
    );
    check(
        &[("index = \"tid.x\"", "index = \"log2(tid.x + 1)\"")],
        &[
            "33:10: `log2(tid.x + 1)` depends on the thread and is not integer arithmetic (threads can compute + - * / % \
           comparisons && || ! ?: abs, ceil_div, max and min of integers)",
        ],
    );
}

#[test]
fn launches_that_do_not_match() {
    check(
        &[("index = \"tid.x\"", "index = \"tid.x\"\nkernel = \"other\"")],
        &["31:1: no launch of kernel `other` is given `y` (given to `set`)"],
    );
    check(
        &[("[instrument]", "[[step]]\nkernel = \"other\"\ngrid = 1\nblock = 64\nargs = [\"&y\"]\n[instrument]")],
        &["36:1: several kernels are given `y`: say which `kernel` updates it (given to `other`, `set`)"],
    );
    check(
        &[("[[step]]", "[[loop]]\nuntil = \"@x[0] == 0\"\n[[loop.step]]")],
        &[
            "24:1: undo logging needs to know every launch before the run, this depends on the device (a loop with a `count` \
           has as many flags as it launches CTAs)",
        ],
    );
    check(
        &[("grid = 1", "grid = \"@x[0]\"")],
        &[
            "30:8: undo logging needs to know every launch before the run, this depends on the device (a loop with a `count` \
           has as many flags as it launches CTAs)",
        ],
    );
    check(
        &[("args = [\"&y\", \"&x\", \"N\"]", "args = [\"&x\", \"&y\", \"N\"]")],
        &["FOLDER/kernel.ptx:5:1: kernel `set` never stores to `y` (an output is a buffer that the kernel updates)"],
    );
}

#[test]
fn modes_that_lack_something() {
    check(
        &[("\"cta_undo\"", "\"manual\""), ("role = \"tx_flag\"", ""), ("of = \"y\"", "")],
        &[
            "30:8: `mode = \"manual\"` needs a declared buffer of flags (a buffer with `role = \"tx_flag\"`)",
            "31:1: `mode = \"manual\"` needs a declared log of `y` (a buffer with `role = \"undo_log\"` and `of = \"y\"`)",
        ],
    );
    let mode =
        |mode| Choice { instrument: Overrides { mode: Some(mode), ..Overrides::default() }, ..Choice::default() };
    check_choice(
        &[("\"cta_undo\"", "\"kernel_undo\""), ("index = \"tid.x\"", "dynamic = true")],
        &mode(Mode::KernelUndo),
        &[],
    );
    check_choice(
        &[("\"cta_undo\"", "\"kernel_undo\""), ("index = \"tid.x\"", "")],
        &mode(Mode::CtaUndo),
        &["31:1: `mode = \"cta_undo\"` needs the `index` that a thread updates (or `dynamic = true` with `mode = \
           \"kernel_undo\"`)"],
    );
    let plain = SOUND.split("[instrument]").next().unwrap();
    let fault = faults_of("instrument-faults-none", PTX, plain, &mode(Mode::CtaUndo));
    assert_eq!(fault, "workload `set` has no `[instrument]` to change");
}

#[test]
fn ptx_that_cannot_be_followed_is_named_by_its_line() {
    let fault = |old: &str, new: &str| {
        let ptx = PTX.replace(old, new);
        assert_ne!(ptx, PTX);
        faults_of("instrument-faults-ptx", &ptx, SOUND, &Choice::default())
    };
    assert_eq!(
        fault("st.global.u32 [%rd2], %r1;", "ld.global.u64 %rd3, [%rd2]; st.global.u32 [%rd3], 1;"),
        "FOLDER/kernel.ptx:10:29: it cannot be told which buffer this stores to: the address is loaded from memory (undo \
         logging follows pointers from kernel parameters; `mode = \"manual\"` needs none)"
    );
    assert_eq!(
        fault("ret;", "pm.sfence;\nret;"),
        "FOLDER/kernel.ptx:11:1: the kernel has persistent-memory instructions of its own (`mode = \"manual\"` declares the \
         log of a kernel that keeps one by itself)"
    );
}

#[test]
fn words_of_the_command_line() {
    assert_eq!("idempotent_cta".parse::<Mode>(), Ok(Mode::IdempotentCta));
    let fault = "cta".parse::<Mode>().unwrap_err();
    assert!(
        fault.starts_with("expected one of `none`, `cta_undo`, `kernel_undo`, `idempotent_cta`, `manual`, found `cta`")
    );
    assert_eq!(durawarp::workload::FlagBarrier::default(), "safe".parse().unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    /// y[(f tid + shift) % n, again with r] changes, computed by the kernel's own 32-bit arithmetic: the manifest's
    /// expression, compiled to 64-bit PTX for the prologue and evaluated for the layout, must name the same elements.
    #[test]
    fn random_kernels_change_what_their_transactions_hold(
        factor in 1u32..8, shift in 0u32..100, block in 1u32..130, ctas in 1u32..4, repeat in 1u32..4, over in 1u32..50,
        conditional in any::<bool>(),
    ) {
        // The elements of a CTA follow each other; `span` of them, so CTAs are apart.
        let span = factor * block + over;
        let guarded = if conditional { "setp.lt.u32 %p1, %r1, 7;\n@%p1 ret;\n" } else { "" };
        let ptx = format!(
            ".version 7.0\n.target sm_60\n.address_size 64\n.visible .entry k(.param .u64 y)\n{{\n\
             .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<4>;\n\
             ld.param.u64 %rd1, [y];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n{guarded}\
             mov.u32 %r3, 0;\nL:\nmad.lo.u32 %r4, %r1, {factor}, {shift};\nadd.u32 %r4, %r4, %r3;\n\
             rem.u32 %r4, %r4, {span};\nmad.lo.u32 %r4, %r2, {span}, %r4;\nmad.wide.u32 %rd2, %r4, 4, %rd1;\n\
             st.global.u32 [%rd2], %r4;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, {repeat};\n@%p2 bra L;\nret;\n}}\n"
        );
        let guard = if conditional { "guard = \"!(tid.x < 7)\"\n" } else { "" };
        let manifest = format!(
            "schema = 1\nname = \"k\"\ndescription = \"random\"\nisa = {{ kind = \"ptx\", file = \"kernel.ptx\" }}\n\
             params = {{ F = {factor}, SPAN = {span} }}\n\
             [buffer.y]\ntype = \"u32\"\nlen = \"SPAN * {ctas}\"\nspace = \"pm\"\ninit = {{ kind = \"iota\", start = 500 }}\n\
             [[step]]\nkernel = \"k\"\ngrid = {ctas}\nblock = {block}\nargs = [\"&y\"]\n\
             [instrument]\nmode = \"cta_undo\"\n[[instrument.outputs]]\nbuffer = \"y\"\nrepeat = {repeat}\n{guard}\
             index = \"ctaid.x * SPAN + (tid.x * F + {shift} + r) % SPAN\"\n"
        );
        let folder = folder("instrument-random", &[("workload.toml", &manifest), ("kernel.ptx", &ptx)]);
        let workload = Workload::load(&folder.display().to_string()).unwrap_or_else(|faults| panic!("{faults}"));
        let with = workload.resolve_under(&Choice::default(), LOGS).unwrap_or_else(|faults| panic!("{faults}"));
        let undo = with.undo().unwrap().unwrap();
        prop_assert_eq!(undo.transactions.len(), ctas as usize);
        // Fails if an element changes that is in no slot.
        let expected = with.expected(&Limits::default()).unwrap_or_else(|error| panic!("{error}"));
        let run = with.run_functional(&Limits::default()).unwrap();
        for (transaction, (old, _)) in undo.transactions.iter().zip(&expected) {
            prop_assert_eq!(run.memory().read_u32s(transaction.flag, 1).unwrap(), [COMPLETE]);
            for (slot, old) in transaction.slots.iter().zip(old.chunks(4)) {
                prop_assert_eq!(run.memory().read(slot.log, 4).unwrap(), old);
            }
        }
        let plain = workload.resolve(&Choice::default()).unwrap().run_functional(&Limits::default()).unwrap();
        let y = durawarp::kernel::memory::NVM_BASE;
        let all = (span * ctas) as usize;
        prop_assert_eq!(run.memory().read_u32s(y, all).unwrap(), plain.memory().read_u32s(y, all).unwrap());
    }
}
