//! Verification: each kind of check passes on the right result and catches a wrong one, to the element.

use std::collections::BTreeMap;

use crate::workload_common::{folder, load, resolve};
use durawarp::kernel::functional::Limits;
use durawarp::workload::{Choice, Evidence, FunctionalRun, Outcome, Resolved, Verification, Workload};

/// `double`: to[i] = 2 from[i], one thread an element.
const PTX: &str = "
.version 6.0
.target sm_60
.address_size 64
.visible .entry double(.param .u64 from, .param .u64 to)
{
    .reg .u32 %r; .reg .f32 %f; .reg .u64 %d<3>;
    ld.param.u64 %d0, [from];
    ld.param.u64 %d1, [to];
    mov.u32 %r, %tid.x;
    mul.wide.u32 %d2, %r, 4;
    add.u64 %d0, %d0, %d2;
    add.u64 %d1, %d1, %d2;
    ld.global.f32 %f, [%d0];
    add.f32 %f, %f, %f;
    st.global.f32 [%d1], %f;
    ret;
}
";

const MANIFEST: &str = r#"schema = 1
name = "double"
description = "d"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 32
[profile.half]
N = 16
[buffer.from]
type = "f32"
len = "N"
init = { kind = "iota" }
role = "input"
[buffer.to]
type = "f32"
len = "N"
role = "output"
[buffer.junk]
type = "u32"
len = 1
role = "scratch"
[[step]]
kernel = "double"
grid = 1
block = "N"
args = ["&from", "&to"]
"#;

fn made(test: &str, rest: &str) -> Resolved {
    let manifest = format!("{MANIFEST}{rest}");
    resolve(&folder(test, &[("workload.toml", &manifest), ("kernel.ptx", PTX)])).unwrap_or_else(|f| panic!("{f}"))
}

fn run(resolved: &Resolved) -> FunctionalRun {
    resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn address(resolved: &Resolved, buffer: &str) -> u64 {
    resolved.addresses().ranges().iter().find(|range| range.name == buffer).unwrap().start
}

fn judge(resolved: &Resolved, run: &FunctionalRun, reference: Option<&FunctionalRun>) -> Verification {
    resolved.verify(run.memory(), run.bindings(), Evidence { functional: reference, ..Evidence::default() })
}

/// "NAME OUTCOME COMPARED MISMATCHES: first mismatch or message" of every check.
fn shown(verdict: &Verification) -> Vec<String> {
    let line = |check: &durawarp::workload::CheckResult| {
        let first = check.first.as_ref();
        let first = first.map(|m| format!(" {}[{}] is {}, not {}", m.buffer, m.index, m.got, m.expected));
        let message = check.message.as_ref().map(|message| format!(" {message}"));
        let tail = first.into_iter().chain(message).collect::<String>();
        format!("{} {:?} {} {}:{tail}", check.name, check.outcome, check.compared, check.mismatches)
    };
    verdict.checks.iter().map(line).collect()
}

#[test]
fn without_a_check_the_functional_run_is_compared() {
    let resolved = made("default", "");
    let reference = run(&resolved);
    let mut timed = run(&resolved);
    assert_eq!(
        shown(&judge(&resolved, &timed, Some(&reference))),
        ["inputs unchanged Passed 32 0:", "functional Passed 64 0:"]
    );
    // What is scratch may be anything; a bit of the result may not.
    timed.memory_mut().write_u32s(address(&resolved, "junk"), &[7]).unwrap();
    assert!(judge(&resolved, &timed, Some(&reference)).passed());
    let to = address(&resolved, "to");
    timed.memory_mut().write_u32s(to + 4 * 5, &[10.0_f32.to_bits() + 1]).unwrap();
    timed.memory_mut().write_f32s(to, &[-0.0]).unwrap();
    let verdict = judge(&resolved, &timed, Some(&reference));
    assert!(!verdict.passed());
    assert_eq!(shown(&verdict)[1], "functional Failed 64 2: to[0] is -0.0, not 0.0");
    assert_eq!(
        shown(&judge(&resolved, &timed, None))[1],
        "functional Skipped 0 0: there is no functional run to compare with"
    );
}

#[test]
fn a_reference_that_forgot_what_is_not_needed_judges_the_same() {
    let resolved = made("forget", "");
    let mut reference = run(&resolved);
    let mut timed = run(&resolved);
    resolved.forget_unneeded(&mut reference);
    let kept: Vec<u64> = reference.memory().ranges().map(|(start, _)| start).collect();
    assert_eq!(kept, [address(&resolved, "to")]);
    assert!(judge(&resolved, &timed, Some(&reference)).passed());
    timed.memory_mut().write_f32s(address(&resolved, "from") + 12, &[0.5]).unwrap();
    let verdict = judge(&resolved, &timed, Some(&reference));
    assert_eq!(
        shown(&verdict),
        ["inputs unchanged Failed 32 1: from[3] is 0.5, not 3.0", "functional Failed 64 1: from[3] is 0.5, not 3.0"]
    );
}

#[test]
fn an_expression_is_compared_within_its_tolerance() {
    let check = |test: &str, keys: &str| {
        let resolved = made(test, &format!("[[verify]]\nbuffer = \"to\"\n{keys}"));
        let mut run = run(&resolved);
        assert!(judge(&resolved, &run, None).passed());
        // 2 * 9 * (1 + 1e-4), and a wrong zero by 1e-3.
        run.memory_mut().write_f32s(address(&resolved, "to") + 36, &[18.0018]).unwrap();
        run.memory_mut().write_f32s(address(&resolved, "to"), &[1e-3]).unwrap();
        shown(&judge(&resolved, &run, None))[1].clone()
    };
    let expr = "ref = { kind = \"expr\", expr = \"2 * initial(from[idx])\" }\n";
    assert_eq!(check("expr", expr), "to Failed 32 2: to[0] is 0.001, not 0.0");
    assert_eq!(check("rtol", &format!("{expr}rtol = 2e-4\n")), "to Failed 32 1: to[0] is 0.001, not 0.0");
    assert_eq!(check("atol", &format!("{expr}atol = 0.0011\n")), "to Failed 32 1: to[9] is 18.0018, not 18.0");
    assert_eq!(check("both", &format!("{expr}atol = 0.0011\nrtol = 2e-4\n")), "to Passed 32 0:");
    // Elements 0, 15 and 31: only the first is wrong.
    assert_eq!(check("sample", &format!("{expr}sample = 3\n")), "to Failed 3 1: to[0] is 0.001, not 0.0");
}

#[test]
fn a_nan_is_right_only_where_a_nan_is_expected() {
    let resolved =
        made("nan", "[[verify]]\nbuffer = \"to\"\nref = { kind = \"expr\", expr = \"2.0 * idx\" }\natol = 1e9\n");
    let mut run = run(&resolved);
    run.memory_mut().write_f32s(address(&resolved, "to"), &[f32::NAN, f32::INFINITY]).unwrap();
    assert_eq!(shown(&judge(&resolved, &run, None))[1], "to Failed 32 2: to[0] is NaN, not 0.0");
}

#[test]
fn an_invariant_and_a_fault_in_a_check_are_told() {
    let resolved = made(
        "invariant",
        "[[verify]]\nname = \"total\"\nref = { kind = \"invariant\", expr = \"sum(k, 0, N, to[k]) == N * (N - 1)\" }\n\
         [[verify]]\nbuffer = \"to\"\nref = { kind = \"expr\", expr = \"2 * from[idx + 1]\" }\n",
    );
    let mut run = run(&resolved);
    let verdict = shown(&judge(&resolved, &run, None));
    assert_eq!(verdict[1], "total Passed 1 0:");
    assert!(verdict[2].starts_with("to Failed 31 31: to[0] is 0.0, not 2.0"), "{verdict:?}");
    assert!(
        verdict[2].ends_with("32:36: element 31: `from[idx + 1]`: index 32 is outside the buffer's 32 elements"),
        "{verdict:?}"
    );
    run.memory_mut().write_f32s(address(&resolved, "to"), &[1.0]).unwrap();
    assert_eq!(
        shown(&judge(&resolved, &run, None))[1],
        "total Failed 1 1: `sum(k, 0, N, to[k]) == N * (N - 1)` does not hold"
    );
}

#[test]
fn a_file_of_golden_values_is_compared() {
    let text = format!("{MANIFEST}[[verify]]\nbuffer = \"to\"\nref = {{ kind = \"file\", file = \"golden.bin\" }}\n");
    let folder = folder("golden-file", &[("workload.toml", &text), ("kernel.ptx", PTX)]);
    let golden = |count: usize, wrong: Option<usize>| {
        let value = |i: usize| if Some(i) == wrong { -1.0 } else { 2.0 * i as f32 };
        let bytes: Vec<u8> = (0..count).flat_map(|i| value(i).to_le_bytes()).collect();
        std::fs::write(folder.join("golden.bin"), bytes).unwrap();
    };
    golden(32, None);
    let resolved = resolve(&folder).unwrap();
    let run = run(&resolved);
    assert_eq!(shown(&judge(&resolved, &run, None))[1], "to Passed 32 0:");
    golden(32, Some(4));
    assert_eq!(shown(&judge(&resolved, &run, None))[1], "to Failed 32 1: to[4] is 8.0, not -1.0");
    golden(31, None);
    assert!(shown(&judge(&resolved, &run, None))[1].ends_with("31 elements are expected, buffer `to` has 32"));
}

#[test]
fn every_builtin_check_catches_a_wrong_element() {
    for listing in Workload::builtin() {
        let choice = Choice::of_profile("ci");
        let resolved = Workload::load(&listing.name).unwrap().resolve(&choice).unwrap();
        let reference = run(&resolved);
        for buffer in resolved.describe().buffers.iter().filter(|b| b.role == durawarp::workload::Role::Output) {
            let mut wrong = run(&resolved);
            // The first element is in every sample; its highest byte is its sign and most of its exponent.
            let top = buffer.address + buffer.bytes / buffer.elements - 1;
            let byte = wrong.memory().read_u8s(top, 1).unwrap()[0];
            wrong.memory_mut().write_u8s(top, &[byte ^ 0x41]).unwrap();
            let verdict = judge(&resolved, &wrong, Some(&reference));
            let caught = verdict.checks.iter().filter(|check| check.outcome == Outcome::Failed);
            let caught: Vec<&str> = caught.map(|check| check.name.as_str()).collect();
            let own = caught.iter().any(|name| *name != "functional");
            assert!(own && caught.contains(&"functional"), "{} {}: {caught:?}", listing.name, buffer.name);
        }
    }
}

#[test]
fn expected_figures_are_judged_for_their_profile() {
    let expectations = r#"
[expect]
launches = { value = "ceil_div(N, 32)", source = "one step" }
ctas = { value = 2, tol = 0.4, profile = "half" }
thread_instructons = { value = 1 }
"#;
    let manifest = format!("{MANIFEST}{expectations}");
    let folder = folder("expect", &[("workload.toml", &manifest), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap_or_else(|faults| panic!("{faults}"));
    let judged = |choice: &Choice, more: &[(&str, f64)]| {
        let resolved = workload.resolve(choice).unwrap_or_else(|faults| panic!("{faults}"));
        let run = run(&resolved);
        let mut metrics: BTreeMap<String, f64> = run.metrics();
        metrics.extend(more.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        let evidence = Evidence { functional: Some(&run), metrics: Some(&metrics), ..Evidence::default() };
        let verdict = resolved.verify(run.memory(), run.bindings(), evidence);
        let line = |e: &durawarp::workload::ExpectationResult| format!("{} {:?} {}", e.metric, e.outcome, e.expected);
        (verdict.expectations.iter().map(line).collect::<Vec<_>>(), verdict)
    };
    let half = Choice::of_profile("half");
    let typo = "thread_instructons Skipped 1";
    let (lines, verdict) = judged(&Choice::default(), &[]);
    assert_eq!(lines, ["launches Passed 1", typo]);
    let message = verdict.expectations[1].message.as_deref();
    assert_eq!(message, Some("this run gives no figure `thread_instructons` (did you mean `thread_instructions`?)"));
    assert!(verdict.passed());
    assert_eq!(judged(&half, &[]).0, ["launches Passed 1", "ctas Failed 2", typo]);
    assert_eq!(judged(&half, &[("ctas", 2.8)]).0[1], "ctas Passed 2");
    assert!(!judged(&half, &[("launches", 2.0)]).1.passed());
    // What holds for a profile does not hold for a changed one.
    let changed = Choice { params: vec![("N".to_owned(), "8".to_owned())], ..half };
    assert_eq!(judged(&changed, &[]).0, ["launches Passed 1", typo]);
    assert_eq!(workload.resolve(&changed).unwrap().metrics(), ["launches", "thread_instructons"]);
}

#[test]
fn a_dump_names_buffers_as_the_manifest_does() {
    let resolved = made("dump", "");
    let run = run(&resolved);
    let dump = |name: &str| resolved.dump(name, run.memory(), run.bindings());
    assert_eq!(dump("to").unwrap()[4..8], 2.0_f32.to_le_bytes());
    assert_eq!(
        dump("too").unwrap_err().to_string(),
        "--dump too: workload `double` has no buffer `too` (did you mean `to`?)"
    );
    assert_eq!(resolved.buffer_names().collect::<Vec<_>>(), ["from", "to", "junk"]);
}
