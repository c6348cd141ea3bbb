//! Races between launches that may run at once: of streams, and programmatic ones before they wait (CUDA C++ Programming
//! Guide, "Streams", "Programmatic Dependent Launch and Synchronization").

use durawarp::kernel::functional::Limits;
use durawarp::kernel::functional::scrutiny::Scrutiny;
use durawarp::workload::{Choice, Workload};

/// Kernels of 64 threads, each with a word of `in` and of `out`.
fn kernel(name: &str, body: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 in, .param .u64 out) {{\n\
         .reg .b32 %r<9>; .reg .b64 %in, %out, %at, %rd<4>; .reg .pred %p<3>; .shared .align 16 .b8 s[272];\n\
         ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %at, %r1, 4;\n\
         add.u64 %in, %in, %at; add.u64 %out, %out, %at;\n{body}\nret;\n}}\n"
    )
}

const TAKE: &str = "ld.global.u32 %r2, [%in]; st.global.u32 [%out], %r2;";
/// A step of the host.
const HOST: &str = "fill = \"d\"\nvalue = \"1\"";
const WAIT: &str = "griddepcontrol.wait;";
const LET_GO: &str = "griddepcontrol.launch_dependents;";

fn kernels() -> String {
    let bulk = "setp.ne.u32 %p1, %r1, 0; @%p1 bra ALL; mbarrier.init.shared.b64 [s], 1; fence.proxy.async;\n\
                mbarrier.arrive.expect_tx.shared.b64 %rd1, [s], 256;\n\
                cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+16], [%in], 256, [s];\n\
                AGAIN: mbarrier.try_wait.shared.b64 %p2, [s], %rd1; @!%p2 bra AGAIN;\nALL: bar.sync 0;\n\
                mov.u32 %r3, s; mad.lo.u32 %r3, %r1, 4, %r3; ld.shared.u32 %r2, [%r3+16]; st.global.u32 [%out], %r2;";
    let one_waits = format!("setp.ne.u32 %p1, %r1, 0; @%p1 bra ALL; {WAIT}\nALL: bar.sync 0; {TAKE}");
    // The first word of `out` says that the others are there; its lane has nothing else.
    let raises = "setp.eq.u32 %p1, %r1, 0; @!%p1 st.global.u32 [%out], %r1; bar.sync 0;\n\
                  @%p1 st.release.gpu.global.u32 [%out], 1;";
    let looks = format!("ld.acquire.gpu.global.u32 %r3, [in]; {TAKE}").replace("[in]", "[%rd1]");
    let looks = format!("ld.param.u64 %rd1, [in]; setp.eq.u32 %p1, %r1, 0; @%p1 bra NONE; {looks}\nNONE:");
    [
        kernel("fill", &format!("{LET_GO} add.u32 %r2, %r1, 5; st.global.u32 [%out], %r2;")),
        kernel("take", TAKE),
        kernel("waits", &format!("{WAIT} {LET_GO} {TAKE}")),
        kernel("waits_late", &format!("{LET_GO} {TAKE} {WAIT}")),
        kernel("lets_go", &format!("{LET_GO} {WAIT} {TAKE}")),
        kernel("one_waits", &one_waits),
        kernel("bulk", bulk),
        kernel("bulk_waits", &format!("{WAIT} {bulk}")),
        kernel("raises", raises),
        kernel("looks", &looks),
    ]
    .concat()
}

/// The races of steps `kernel in out more`, by line.
fn races(steps: &[&str]) -> Vec<String> {
    let mut manifest = format!(
        "schema = 1\nname = \"beside\"\ndescription = \"launches at once\"\n[isa]\nkind = \"ptx\"\ntext = '''\n\
         .version 8.0\n.target sm_90\n.address_size 64\n{}'''\n",
        kernels()
    );
    for buffer in ["a", "b", "c", "d"] {
        manifest += &format!("[buffer.{buffer}]\ntype = \"u32\"\nlen = 64\n");
    }
    for step in steps {
        manifest += "[[step]]\n";
        match step.splitn(4, ' ').collect::<Vec<_>>()[..] {
            [kernel, from, to, more] if *step != HOST => {
                let more = more.replace("; ", "\n");
                manifest +=
                    &format!("kernel = \"{kernel}\"\ngrid = 1\nblock = 64\nargs = [\"&{from}\", \"&{to}\"]\n{more}\n");
            }
            _ => manifest += &format!("{step}\n"),
        }
    }
    let workload = Workload::from_text(&manifest).unwrap_or_else(|faults| panic!("{faults}\n{manifest}"));
    let resolved = workload.resolve(&Choice::default()).unwrap_or_else(|faults| panic!("{faults}"));
    let run = resolved.run_under(&Limits::default(), Scrutiny::new(true)).unwrap();
    run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect()
}

#[track_caller]
fn none(steps: &[&str]) {
    assert_eq!(races(steps), [""; 0], "{steps:?}");
}

#[track_caller]
fn told(steps: &[&str], parts: &[&str]) {
    let found = races(steps);
    assert_eq!(found.len(), 1, "{steps:?}: {found:#?}");
    parts.iter().for_each(|part| assert!(found[0].contains(part), "{part}: {found:#?}"));
}

#[test]
fn launches_of_two_streams_race_unless_an_event_or_the_host_orders_them() {
    let at_once = "order: the launches may run at once";
    told(
        &["fill a b stream = 1", "take b c stream = 2"],
        &["kernel `take`, `b` + 0: store at", " of launch 0, `fill`, and load at", at_once, "; 64 times"],
    );
    // One writes what the other has read.
    told(
        &["take a b stream = 1", "fill c a stream = 2"],
        &["kernel `fill`, `a` + 0: load at", "`take`, and store", at_once],
    );
    none(&["fill a b stream = 1", "take c d stream = 2"]);
    none(&["take a b stream = 1", "take a c stream = 2"]);
    none(&["fill a b stream = 1", "take b c stream = 1", "take a d stream = 2"]);
    none(&["fill a b stream = 1; record = \"e\"", "take b c stream = 2; wait = \"e\""]);
    // What is over with what is waited for is over.
    let chain = ["fill a b stream = 1; record = \"e\"", "take a c stream = 2; wait = \"e\"; record = \"f\""];
    none(&[chain[0], chain[1], "take b d stream = 3; wait = \"f\""]);
    told(
        &[
            chain[0],
            chain[1],
            "take b d stream = 3; wait = \"none yet\"",
            "fill a a stream = 4; record = \"none yet\"; wait = \"f\"",
        ],
        &["kernel `take`, `b` + 0", at_once],
    );
    // A step of the host waits for all.
    none(&["fill a b stream = 1", HOST, "take b c stream = 2"]);
    none(&["fill a b stream = 1", HOST, "take b c stream = 2", "take c d stream = 2"]);
}

#[test]
fn a_programmatic_launch_races_with_those_before_it_until_it_waits() {
    let early = "without a `griddepcontrol.wait` before the second";
    let follows = "stream = 0; programmatic = true";
    let then = |kernel: &str| races(&["fill a b stream = 0", &format!("{kernel} b c {follows}")]);
    for kernel in ["take", "waits_late", "bulk"] {
        let found = then(kernel);
        assert!(found.len() == 1 && found[0].contains(early), "{kernel}: {found:#?}");
        assert!(found[0].contains(" of launch 0, `fill`, and "), "{kernel}: {found:#?}");
    }
    for kernel in ["waits", "lets_go", "one_waits", "bulk_waits"] {
        assert_eq!(then(kernel), [""; 0], "{kernel}");
    }
    // Without the attribute it comes after all of them.
    none(&["fill a b stream = 0", "take b c stream = 0"]);
    // It may begin beside the launch before the one before it, where that lets it go before it has waited itself.
    let third = |second: &str| {
        races(&["fill a b stream = 0", &format!("{second} a c {follows}"), &format!("take b d {follows}")])
    };
    assert_eq!(third("waits"), [""; 0]);
    assert!(third("lets_go")[0].contains(early));
    none(&["fill a b stream = 0", "take b c stream = 0", &format!("take b d {follows}")]);
    // A wait is for the own stream.
    told(
        &["fill a b stream = 1", &format!("fill a c {follows}"), &format!("waits b d {follows}")],
        &["`waits`, `b` + 0", "order: the launches may run at once"],
    );
}

#[test]
fn a_flag_orders_launches_that_run_at_once() {
    none(&["raises a b stream = 1", "looks b c stream = 2"]);
    // The flag of another buffer says nothing.
    let found = races(&["raises a b stream = 1", "take b c stream = 2"]);
    assert!(!found.is_empty());
}
