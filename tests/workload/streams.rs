//! Streams and events of a manifest: what overlaps, what follows what, what the outcome tells of it, and faults.

use crate::workload_common::{folder, resolve};
use durawarp::outcome::validity::Kind;
use durawarp::outcome::{End, Outcome, Streams};
use durawarp::report::accelsim;
use durawarp::run::{Conduct, Experiment, run};

/// `spin` counts to `n` and stores the count; `follow` stores the sum of two words and 1.
const PTX: &str = "
.version 6.0
.target sm_60
.address_size 64
.visible .entry spin(.param .u64 to, .param .u32 n)
{
    .reg .pred %p; .reg .u32 %r<3>; .reg .u64 %d;
    ld.param.u64 %d, [to];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, 0;
AGAIN:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, %r0;
    @%p bra AGAIN;
    st.global.u32 [%d], %r1;
    ret;
}
.visible .entry follow(.param .u64 a, .param .u64 b, .param .u64 to)
{
    .reg .u32 %r<3>; .reg .u64 %d<3>;
    ld.param.u64 %d0, [a];
    ld.param.u64 %d1, [b];
    ld.param.u64 %d2, [to];
    ld.global.u32 %r0, [%d0];
    ld.global.u32 %r1, [%d1];
    add.u32 %r0, %r0, %r1;
    add.u32 %r0, %r0, 1;
    st.global.u32 [%d2], %r0;
    ret;
}
";

const HEAD: &str = r#"schema = 1
name = "streams"
description = "launches of several streams"
isa = { kind = "ptx", file = "kernel.ptx" }
[buffer.words]
type = "u32"
len = 256
role = "output"
"#;

/// A step that counts to `n` at word `to`, with these other keys.
fn spin(to: u32, n: u32, keys: &str) -> String {
    format!("[[step]]\nkernel = \"spin\"\ngrid = 1\nblock = 1\nargs = [\"&words + {to}\", {n}]\n{keys}\n")
}

/// A step that adds words `a` and `b` and 1, at word `to`.
fn follow([a, b, to]: [u32; 3], keys: &str) -> String {
    let args = format!("[\"&words + {a}\", \"&words + {b}\", \"&words + {to}\"]");
    format!("[[step]]\nkernel = \"follow\"\ngrid = 1\nblock = 1\nargs = {args}\n{keys}\n")
}

fn experiment(test: &str, steps: &str, scheme: &str, changes: &[&str]) -> Experiment {
    let manifest = format!("{HEAD}{steps}");
    let folder = folder(test, &[("workload.toml", &manifest), ("kernel.ptx", PTX)]);
    let recipe = Experiment::of(folder.display().to_string()).scheme(scheme).set("sm.count", 4).changes(changes);
    recipe.build().unwrap_or_else(|faults| panic!("{test}: {faults}"))
}

fn outcome(test: &str, steps: &str, scheme: &str, changes: &[&str]) -> Outcome {
    let outcome = experiment(test, steps, scheme, changes).run();
    assert_eq!(outcome.end, End::Finished, "{test}");
    assert!(outcome.verification.as_ref().is_some_and(|verification| verification.passed), "{test}");
    outcome
}

/// Start and end of each launch, in core cycles.
fn intervals(outcome: &Outcome) -> Vec<[u64; 2]> {
    let of = |launch: &durawarp::outcome::Launch| [launch.start.ticks, launch.start.ticks + launch.length.ticks];
    outcome.launches.iter().map(of).collect()
}

fn unmodelled(outcome: &Outcome) -> Vec<&str> {
    let of = outcome.validity.iter().filter(|caveat| caveat.kind == Kind::Unmodelled);
    of.map(|caveat| &*caveat.text).collect()
}

#[test]
fn launches_of_two_streams_overlap_and_an_event_joins_them() {
    let steps = spin(0, 3000, "stream = 1\nrecord = \"left\"")
        + &spin(64, 1000, "stream = 2")
        + &follow([0, 64, 128], "stream = 2\nwait = \"left\"")
        + &spin(192, 500, "stream = 1");
    let outcome = outcome("overlap", &steps, "base", &[]);
    let [a, b, both, d] = intervals(&outcome)[..] else { panic!("four launches") };
    assert_eq!((a[0], b[0]), (0, 0));
    assert!(b[1] < a[1], "{a:?} {b:?}");
    assert_eq!((both[0], d[0]), (a[1], a[1]), "one waits for the event, one for its stream");
    let streams: Vec<_> = outcome.launches.iter().map(|launch| launch.stream).collect();
    assert_eq!(streams, [Some(1), Some(2), Some(2), Some(1)]);
    assert_eq!(outcome.streams, Some(Streams { streams: 2, programmatic: 0, most_at_once: 2, one_by_one: None }));
    let [text] = unmodelled(&outcome)[..] else { panic!("{:?}", outcome.validity) };
    assert!(text.starts_with("up to 2 launches ran at once"), "{text}");
}

/// Log updates of two kernels: `apart` logs a line of its own each time, `again` the same.
fn logging() -> String {
    let logs = |again: bool| -> String {
        let step = if again { 0 } else { 128 };
        (0..24).map(|n| format!("    pm.st.log.global.u32 [%d+{}], %r0;\n    pm.sfence;\n", step * n)).collect()
    };
    let kernel = |name: &str, again: bool| {
        format!(
            ".visible .entry {name}(.param .u64 to)\n{{\n    .reg .u32 %r<3>; .reg .u64 %d<3>;\n    ld.param.u64 %d, [to];\n\
             mov.u32 %r0, %ctaid.x;\n    mul.wide.u32 %d1, %r0, 3072;\n    add.u64 %d, %d, %d1;\n{}    ret;\n}}\n",
            logs(again)
        )
        .replace("%d<3>;", "%d, %d1;")
    };
    format!(".version 6.0\n.target sm_60\n.address_size 64\n{}{}", kernel("apart", false), kernel("again", true))
}

#[test]
fn kernels_in_flight_together_have_periods_and_reasons_of_their_own_under_agpm() {
    let ran = |streams: [u32; 2]| {
        let step = |kernel: &str, stream: u32, at: u32| {
            let args = format!("[\"&words + {at}\"]");
            format!("[[step]]\nkernel = \"{kernel}\"\ngrid = 32\nblock = 32\nargs = {args}\nstream = {stream}\n")
        };
        let buffer = "[buffer.words]\ntype = \"u32\"\nlen = 65536\nspace = \"pm\"\n";
        let head = HEAD.split("[buffer").next().unwrap();
        let steps = step("apart", streams[0], 0) + &step("again", streams[1], 32768);
        let manifest = format!("{head}{buffer}{steps}");
        let folder = folder("agpm-in-flight", &[("workload.toml", &manifest), ("kernel.ptx", &logging())]);
        let recipe = Experiment::of(folder.display().to_string()).scheme("agpm").set("sm.count", 4);
        let recipe = recipe.changes(["agpm.key=slot", "agpm.few_logs=1", "agpm.report_logs=8"]);
        let outcome = recipe.build().unwrap_or_else(|faults| panic!("{faults}")).run();
        assert_eq!(outcome.end, End::Finished);
        outcome
    };
    let (together, apart) = (ran([1, 2]), ran([1, 1]));
    assert_eq!(together.streams, Some(Streams { streams: 2, programmatic: 0, most_at_once: 2, one_by_one: None }));
    let ends = |outcome: &Outcome| intervals(outcome).iter().map(|launch| launch[1]).max().unwrap();
    assert!(ends(&together) * 10 < ends(&apart) * 7, "{:?} {:?}", intervals(&together), intervals(&apart));
    // By launch: log updates, and when the first period began and the last ended.
    let periods = |outcome: &Outcome, launch: u32| {
        let selection = outcome.selection().unwrap();
        let own: Vec<_> = selection.periods.iter().filter(|period| period.launch == launch).cloned().collect();
        let reasons: Vec<String> =
            own.iter().filter(|period| period.complete).map(|period| period.reason.clone()).collect();
        let logs: u64 = own.iter().map(|period| period.logs).sum();
        (logs, reasons, own[0].begin_ticks, own.last().unwrap().end_ticks)
    };
    let [a, b] = [0, 1].map(|launch| periods(&together, launch));
    assert!(a.2.max(b.2) < a.3.min(b.3), "at once: {a:?} {b:?}");
    for (launch, own) in [(0, &a), (1, &b)] {
        let alone = periods(&apart, launch);
        assert_eq!(own.0, alone.0, "launch {launch}: each counts what it logs itself");
        assert_eq!(own.1[0], alone.1[0], "launch {launch}: {own:?} {alone:?}");
    }
    assert_ne!(a.1[0], b.1[0], "what the other touches is no evidence: {a:?} {b:?}");
}

#[test]
fn one_stream_is_as_none_and_has_nothing_to_tell() {
    let steps = |keys: &str| spin(0, 700, keys) + &spin(64, 300, keys) + &follow([0, 64, 128], keys);
    let [plain, one] = ["", "stream = 7"].map(|keys| outcome("one", &steps(keys), "base", &[]));
    assert_eq!(one.digest, plain.digest);
    assert_eq!((one.streams.as_ref(), one.launches[0].stream, unmodelled(&one).len()), (None, None, 0));
}

#[test]
fn under_some_schemes_and_on_a_machine_that_takes_one_at_a_time_launches_follow_one_another() {
    let steps = spin(0, 3000, "stream = 1") + &spin(64, 1000, "stream = 2");
    let serial = outcome("serial", &(spin(0, 3000, "") + &spin(64, 1000, "")), "base", &[]);
    for (scheme, changes, why) in [
        ("light-wsp", &[][..], "scheme light-wsp forms regions that recovery resumes launch by launch"),
        ("base", &["dispatch.concurrent_launches=1"], "dispatch.concurrent_launches is 1"),
    ] {
        let outcome = outcome("serial", &steps, scheme, changes);
        let [a, b] = intervals(&outcome)[..] else { panic!("two launches") };
        assert_eq!(a[1], b[0], "{scheme}");
        let text = format!("launches of 2 streams ran one after another, though they may have overlapped: {why}");
        assert!(unmodelled(&outcome).contains(&&*text), "{scheme}: {:?}", unmodelled(&outcome));
        if scheme == "base" {
            assert_eq!(intervals(&outcome), intervals(&serial));
        }
    }
}

#[test]
fn launches_overlap_under_other_schemes_and_in_a_crash_test_as_they_do_without() {
    let steps = spin(0, 3000, "stream = 1") + &spin(64, 1000, "stream = 2");
    for scheme in ["base", "strict", "nt-store", "nvw-fifo", "agpm", "epoch-tag"] {
        let plain = outcome("beside", &steps, scheme, &[]);
        assert_eq!(plain.streams.as_ref().map(|streams| streams.most_at_once), Some(2), "{scheme}");
        let journal = Conduct { journal: true, ..Conduct::default() };
        let judged = run(&experiment("beside", &steps, scheme, &[]), &journal).outcome;
        assert_eq!((intervals(&judged), judged.digest), (intervals(&plain), plain.digest), "{scheme}");
    }
}

#[test]
fn events_of_loops_are_those_of_the_iteration_and_a_read_of_the_device_waits_for_all() {
    // Each iteration adds 1 to word 0 by way of another stream; the last step reads it.
    let body = |kernel: &str| kernel.replace("[[step]]", "[[loop.step]]");
    let steps = String::from("[[loop]]\ncount = 3\n")
        + &body(&follow([0, 128, 64], "stream = 1\nwait = \"back\"\nrecord = \"there\""))
        + &body(&follow([64, 128, 0], "stream = 2\nwait = [\"there\"]\nrecord = \"back\""))
        + &spin(192, 900, "stream = 3")
        + "[[step]]\nkernel = \"spin\"\ngrid = \"@words[0] - 5\"\nblock = 1\nargs = [\"&words + 193\", 2]\nstream = 4\n";
    let outcome = outcome("loops", &steps, "base", &[]);
    let of = intervals(&outcome);
    assert_eq!(outcome.launches[7].grid, [1, 1, 1], "word 0 was 6");
    assert!((1..6).all(|launch| of[launch][0] == of[launch - 1][1]), "{of:?}");
    assert_eq!(of[6][0], 0, "the third stream waits for none");
    assert!(of[7][0] > of[..7].iter().map(|[_, end]| *end).max().unwrap(), "{of:?}");
}

#[test]
fn counters_of_launches_that_overlap_add_up_and_are_printed_in_the_order_of_ends() {
    let steps = spin(0, 3000, "stream = 1") + &spin(64, 1000, "stream = 2");
    let conduct = Conduct { launches: true, timeline: Some(1 << 20), ..Conduct::default() };
    let finished = run(&experiment("counted", &steps, "base", &[]), &conduct);
    let outcome = finished.outcome;
    let of = |launch: usize| outcome.launches[launch].counters["sm.warp_instructions"];
    assert_eq!(of(0) + of(1), outcome.total("sm", "warp_instructions"));
    assert!(of(1) > 4000 && of(0) > 4000, "until the short one ended both ran");
    assert_eq!(outcome.host.launches_s.len(), 2);
    let printed = accelsim(&outcome);
    let uids: Vec<&str> = printed.lines().filter(|line| line.starts_with("kernel_launch_uid")).collect();
    assert_eq!(uids, ["kernel_launch_uid = 2", "kernel_launch_uid = 1"]);
    // Two rows of a timeline hold what overlaps.
    let timeline = finished.timeline.unwrap();
    let rows = timeline.processes[0].tracks.iter().map(|track| (&*track.name, track.content.len()));
    assert_eq!(rows.collect::<Vec<_>>(), [("kernels 0", 1), ("kernels 1", 1)]);
}

#[test]
fn a_cut_run_tells_of_launches_that_have_begun() {
    let steps = spin(0, 3000, "stream = 1") + &spin(64, 100, "stream = 1") + &spin(128, 90, "stream = 2");
    let mut experiment = experiment("cut", &steps, "base", &[]);
    experiment.max_cycles = Some(9_000);
    let outcome = experiment.run();
    assert!(matches!(outcome.end, End::Cut { .. }), "{:?}", outcome.end);
    let [a, b, c] = intervals(&outcome)[..] else { panic!("three launches, of which the second waits") };
    assert_eq!((b[0], b[1]), (outcome.time.ticks, outcome.time.ticks), "it has not begun");
    assert!(a[1] == outcome.time.ticks && c[1] < a[1]);
    let shorter = Experiment {
        max_cycles: Some(9_000),
        ..self::experiment("cut", &steps.replace("stream = 2", "stream = 1"), "base", &[])
    };
    assert_eq!(shorter.run().launches.len(), 1);
}

#[test]
fn a_programmatic_launch_hides_behind_the_one_before_it_or_says_why_not() {
    let kernels =
        PTX.replace("ret;", "griddepcontrol.wait;\n    ret;").replacen("{", "{\n griddepcontrol.launch_dependents;", 1);
    let steps = |keys: &str| spin(0, 3000, "") + &spin(64, 1000, keys) + &spin(128, 10, "");
    let ran = |keys: &str, scheme: &str| {
        let manifest = format!("{HEAD}{}", steps(keys));
        let folder = folder("programmatic", &[("workload.toml", &manifest), ("kernel.ptx", &kernels)]);
        let recipe = Experiment::of(folder.display().to_string()).scheme(scheme).set("sm.count", 4);
        let outcome = recipe.build().unwrap_or_else(|faults| panic!("{faults}")).run();
        assert!(outcome.verification.as_ref().is_some_and(|verification| verification.passed));
        outcome
    };
    let (plain, overlapped, one_by_one) =
        (ran("", "base"), ran("programmatic = true", "base"), ran("programmatic = true", "light-wsp"));
    let [a, b, c] = intervals(&plain)[..] else { panic!("three launches") };
    let [d, e, f] = intervals(&overlapped)[..] else { panic!("three launches") };
    assert_eq!((a[1], b[1], d), (b[0], c[0], a));
    assert!(e[0] < d[1] && e[1] < b[1], "{d:?} {e:?}");
    assert_eq!(f[0], e[1], "the third is none");
    assert_eq!(overlapped.streams, Some(Streams { streams: 1, programmatic: 1, most_at_once: 2, one_by_one: None }));
    assert_eq!(overlapped.launches[1].stream, None);
    assert_eq!((plain.streams.as_ref(), plain.warnings.len()), (None, 0));
    let text = "a programmatic launch and the one before it ran one after another, though they may have overlapped: \
                scheme light-wsp forms regions that recovery resumes launch by launch";
    assert_eq!(unmodelled(&one_by_one), [text]);
    assert_eq!(intervals(&one_by_one).len(), 3);
}

#[test]
fn faults_of_streams_and_events_have_places_and_names() {
    let fault = |keys: &str| {
        let steps = spin(0, 1, "record = \"left\"") + &spin(64, 1, keys);
        let manifest = format!("{HEAD}{steps}");
        resolve(&folder("faults-of-streams", &[("workload.toml", &manifest), ("kernel.ptx", PTX)])).err()
    };
    assert_eq!(fault("stream = 2\nwait = [\"left\"]"), None);
    let text = "21:8: there is no event `lefd` (did you mean `left`?)";
    assert_eq!(fault("stream = 2\nwait = \"lefd\"").as_deref(), Some(text));
    let text = "20:10: `stream` must be an integer from 0, found the integer -1";
    assert_eq!(fault("stream = -1").as_deref(), Some(text));
    assert!(fault("programmatic = 1").unwrap().contains("`programmatic` must be"));
    assert!(fault("record = 5").unwrap().contains("`record` must be"));
}
