//! Recovery kernels and conditions on crash images, and what is wrong with them: never a hang, always a place.

use crate::workload_common::{folder, load, resolve};
use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel};
use durawarp::oracle::verdict::{Failure, Property};
use durawarp::run::Experiment;

/// Doubles `data` in place and then sets `done`; recovery is a kernel of the test's, from line 28 on.
const MANIFEST: &str = r#"schema = 1
name = "sample"
description = "a value, a flag and what a test adds"

[isa]
kind = "ptx"
text = '''
.version 6.0
.target sm_60
.address_size 64
.visible .entry k(.param .u64 p_data, .param .u64 p_done)
{
    .reg .b32 %r<4>;
    .reg .b64 %data, %done;
    ld.param.u64 %data, [p_data];
    ld.param.u64 %done, [p_done];
    mov.u32 %r1, 8;
    st.global.u32 [%data], %r1;
    pm.clwb.global [%data];
    pm.sfence;
    st.global.u32 [%done], %r1;
    pm.clwb.global [%done];
    pm.sfence;
    ret;
}
.visible .entry recover(.param .u64 p_data, .param .u64 p_done)
{ .reg .pred %q<4>; .reg .b32 %r<8>; .reg .b64 %data, %done; ld.param.u64 %data, [p_data]; ld.param.u64 %done, [p_done];
RECOVERY
    ret;
}
'''

[buffer.data]
type = "u32"
len = 1
space = "pm"
init = { kind = "const", value = 4 }

[buffer.done]
type = "u32"
len = 1
space = "pm"

[buffer.given]
type = "u32"
len = 1
init = { kind = "const", value = 3 }

[[step]]
fill = "given"
value = 9

[[step]]
kernel = "k"
grid = 1
block = 1
args = ["&data", "&done"]
"#;

const RECOVER: &str = r#"
[[recovery]]
kernel = "recover"
grid = 1
block = 32
args = ["&data", "&done"]
"#;

/// The manifest with a body of the recovery kernel and more tables.
fn manifest(body: &str, more: &str) -> String {
    format!("{}{more}", MANIFEST.replace("RECOVERY", body))
}

fn judged(test: &str, text: &str, double: bool) -> Result<CrashReport, String> {
    let folder = folder(test, &[("workload.toml", text)]);
    let workload = load(&folder)?;
    let request = CrashRequest { double, ..CrashRequest::default() };
    let report = Experiment::of(workload).scheme("store+clwb").crash(&request);
    report.map_err(|faults| faults.to_string().replace(&folder.display().to_string(), "FOLDER"))
}

/// The first failure of a state that the run left.
fn first(test: &str, text: &str, double: bool) -> Failure {
    let report = judged(test, text, double).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.ended_well() && !report.holds(), "{:?}", report.outcome.verification);
    report.level(JudgedLevel::Actual).unwrap().verdict.failures[0].clone()
}

#[test]
fn recovery_that_never_ends_is_a_finding_with_its_kernel_and_line() {
    let check = |test: &str, body: &str, more: &str, words: &[&str]| {
        let failure = first(test, &manifest(body, &format!("{RECOVER}{more}")), false);
        assert_eq!(failure.property, Property::Recovery, "{failure:?}");
        for word in words {
            assert!(failure.what.contains(word), "no `{word}` in {}", failure.what);
        }
    };
    let limited = |text: &str| text.replacen("schema = 1", "schema = 1\nrecovery_limit = 500", 1);
    let endless = limited(&manifest("L: bra L;", RECOVER));
    let failure = first("endless", &endless, false);
    for word in ["recovery does not end", "kernel `recover`", "workload.toml:29:", "recovery_limit = 500"] {
        assert!(failure.what.contains(word), "no `{word}` in {}", failure.what);
    }
    check("stuck", "bar.sync 0, 64;", "", &["recovery fails", "kernel `recover`", "deadlock", "workload.toml:28:"]);
    check("outside", "st.global.u32 [%data+4], %r1;", "", &["workload.toml:28:", "kernel `recover`", "`data`"]);
    let swaps = "\n[[recovery]]\nwhile = \"1\"\nmax = 1_000_000_000_000\nstep = [{ swap = [\"data\", \"done\"] }]\n";
    check("swaps", "", swaps, &["does not come to an end"]);
}

#[test]
fn recovery_finds_what_survived_and_the_initial_contents_of_dram() {
    // The program changed `given` from 3 to 9 before anything else.
    let body = "ld.global.u32 %r1, [%done]; st.global.u32 [%data], %r1;";
    let text = manifest(body, &RECOVER.replace("\"&done\"", "\"&given\""));
    let condition = |holds: &str| format!("{text}\n[[crash]]\nname = \"c\"\nholds = \"{holds}\"\n");
    let report = judged("initial", &condition("data[0] == 3"), true).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.holds(), "{:?}", report.level(JudgedLevel::Actual).unwrap().verdict.failures);
    assert_eq!(report.recovery, "the program's own kernels");
    let failure = first("initial-wrong", &condition("data[0] == 9"), false);
    assert_eq!(failure.property, Property::Check("c".to_owned()));
    assert_eq!(failure.what, "condition `c` does not hold on the recovered image");
    let value = &failure.values[0];
    let element = value.element.as_ref().unwrap();
    let told = [element.name.as_str(), element.ty.as_deref().unwrap(), &element.found, &element.expected];
    assert_eq!(told, ["data[0]", "u32", "3", "9"]);
    assert_eq!(value.bytes.as_ref().unwrap().found, [3, 0, 0, 0]);
    // What survived is judged where the condition says so.
    let survived = condition("data[0] == 4 || data[0] == 8").replace("name = \"c\"", "name = \"c\"\non = \"survived\"");
    assert!(judged("survived", &survived, false).unwrap_or_else(|faults| panic!("{faults}")).holds());
}

#[test]
fn recovery_with_loops_fills_and_copies_can_start_again() {
    let more = r#"
[[recovery]]
count = 2
var = "t"
step = [{ fill = "done", value = "t" }]

[[recovery]]
copy = "done"
to = "data"

[[crash]]
name = "both are 1"
holds = "data[0] == 1 && done[0] == 1"
"#;
    let report = judged("loops", &manifest("", more), true).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.holds(), "{:?}", report.level(JudgedLevel::Actual).unwrap().verdict.failures);
}

#[test]
fn recovery_that_cannot_be_cut_off_is_found_with_the_place() {
    let add = "ld.global.u32 %r1, [%data]; add.u32 %r1, %r1, 1; st.global.u32 [%data], %r1;";
    let text = manifest(add, &RECOVER.replace("block = 32", "block = 1"));
    let failure = first("again", &text, true);
    assert_eq!(failure.property, Property::Idempotent);
    assert_eq!(failure.what, "recovery cut off after 1 of 1 steps comes to another image");
    assert!(judged("again-not", &text, false).unwrap_or_else(|faults| panic!("{faults}")).holds());
    // The flag goes first: what comes after is never done again.
    let flag = "ld.global.u32 %r1, [%done]; setp.eq.u32 %q1, %r1, 0; @%q1 bra E; mov.u32 %r2, 0;
        st.global.u32 [%done], %r2; st.global.u32 [%data], %r2; E:";
    let failure = first("flag-first", &manifest(flag, &RECOVER.replace("block = 32", "block = 1")), true);
    assert_eq!(failure.what, "recovery cut off after 1 of 2 steps comes to another image");
}

#[test]
fn conditions_are_checked_with_their_places() {
    let check = |test: &str, condition: &str, expected: &str| {
        let text = manifest("", &format!("\n[[crash]]\nname = \"c\"\n{condition}\n"));
        let folder = folder(test, &[("workload.toml", &text)]);
        let found = resolve(&folder).map(|_| String::new()).unwrap_or_else(|faults| faults);
        assert_eq!(found, expected, "{test}");
    };
    check("c-unknown", "holds = \"dta[0] == 1\"", "61:10: there is no buffer `dta` (did you mean `data`?)");
    check(
        "c-dram",
        "holds = \"done[0] == given[0]\"",
        "61:21: `given` is not in persistent memory: DRAM is lost in a power failure \
         (conditions read buffers with `space = \"pm\"`)",
    );
    check("c-index", "holds = \"data[1] == 0\"", "61:10: `data[1]`: index 1 is outside the buffer's 1 elements");
    check(
        "c-word",
        "holds = \"1\"\non = \"recoverd\"",
        "62:6: `on` must be one of `recovered`, `survived`, found `recoverd` (did you mean `recovered`?)",
    );
    check(
        "c-domain",
        "holds = \"1\"\ndomains = [\"edr\"]",
        "62:12: an element of `domains` must be one of `media`, `adr`, `eadr`, found `edr` (did you mean `adr`?)",
    );
    check("c-none", "", "59:1: a condition lacks the key `holds`");
    let text = manifest("", "\n[[crash]]\nname = \"c\"\nholds = \"1\"\nschemes = [\"store-clwb\"]\n");
    let found = judged("c-scheme", &text, false).unwrap_err();
    assert_eq!(found, "FOLDER/workload.toml:62:12: there is no scheme `store-clwb` (did you mean `store+clwb`?)");
}

#[test]
fn ptx_in_a_manifest_has_the_manifests_lines() {
    let check = |test: &str, text: &str, expected: &str| {
        let folder = folder(test, &[("workload.toml", text)]);
        let found = resolve(&folder).map(|_| String::new()).unwrap_or_else(|faults| faults);
        assert!(found.starts_with(expected), "{test}: {found}");
    };
    let text = manifest("", "");
    check("t-line", &text.replace("pm.sfence;\n    ret", "pm.sfenc;\n    ret"), "23:7:");
    check("t-crlf", &text.replace("pm.sfence;\n    ret", "pm.sfenc;\n    ret").replace('\n', "\r\n"), "23:7:");
    check("t-both", &text.replace("kind = \"ptx\"", "kind = \"ptx\"\nfile = \"k.ptx\""), "8:8: `isa` has both");
    check("t-none", &text.replace("text = '''", "txt = '''"), "5:1: `isa` lacks the key `file` (or `text`");
    let escaped = text.replace("text = '''\n", "text = \"\"\"\\u0020").replace("'''", "\"\"\"");
    check("t-escape", &escaped, "7:8: PTX in a manifest has no escapes");
}

#[test]
fn a_violation_that_the_manifest_expects_must_be_found() {
    let condition = |holds: &str| {
        let more = format!(
            "\n[[crash]]\nname = \"c\"\nholds = \"{holds}\"\nviolated_by = [{{ schemes = [\"store+clwb\"] }}]\n"
        );
        judged("expected", &manifest("", &more), false).unwrap_or_else(|faults| panic!("{faults}"))
    };
    let found = condition("data[0] == 4");
    assert!(found.holds() && found.conditions[0].first.is_some(), "{:?}", found.conditions);
    let unseen = condition("data[0] > 0");
    assert!(!unseen.holds() && unseen.level(JudgedLevel::Actual).unwrap().verdict.holds(), "{:?}", unseen.conditions);
}
