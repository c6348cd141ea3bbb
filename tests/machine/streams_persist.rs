//! Launches that overlap under schemes: what a launch that ends makes durable, whom that holds up, and that it is the same at
//! any number of threads.

use crate::bench_machine::{Bench, Ran, machine, one_gigahertz};
use crate::streams::{assert_goes_on, assert_same_at_any_threads, assert_same_events, intervals, overlapped};
use durawarp::engine::Time;
use durawarp::kernel::memory::Medium;
use durawarp::persist::Scheme;
use durawarp::persist::journal::{Author, Fact, FactKind};
use durawarp::schemes::catalogue;

/// Counts to `n`, then stores 1 in a line of its own for each thread, and makes it durable where fences do.
const PERSIST: &str = "mov.u32 %r1, 0;
AGAIN:
add.u32 %r1, %r1, 1;
setp.lt.u32 %p1, %r1, %n;
@%p1 bra AGAIN;
mul.wide.u32 %d1, %id, 128;
add.s64 %d1, %d1, %out;
mov.u32 %r2, 1;
st.global.u32 [%d1], %r2;
pm.clwb.global [%d1];
pm.sfence;";

/// The same, and lets the next launch begin before.
fn lets_go() -> String {
    format!("griddepcontrol.launch_dependents;\n{PERSIST}")
}

/// A launch each of `PERSIST`, in the scheme: CTAs of 32 threads, how far it counts, stream.
fn persists(scheme: &'static str, launches: &[(u32, u32, u64)]) -> Bench {
    let mut bench = Bench::new(one_gigahertz("sm.count=4"));
    let out = bench.buffer(65536 * launches.len() as u64, Medium::Nvm);
    for (number, &(ctas, n, stream)) in (0..).zip(launches) {
        bench.launch(PERSIST, ctas, 32, (out + 65536 * number, 0, 0, n)).in_stream(stream, &[]);
    }
    bench.overlapped = (scheme, true);
    bench
}

/// What each launch had stored, and how much of that was not durable when it ended: lines.
fn undurable_at_end(ran: &Ran) -> Vec<(usize, usize)> {
    let journal = ran.assembly.journal();
    let facts = journal.facts();
    let of_launch = |launch: u32| {
        let end =
            facts.iter().position(|fact| (fact.kind, fact.author) == (FactKind::KernelEnded, Author::Launch(launch)));
        let end = end.expect("it ended");
        let stores = |kind: FactKind| move |at: &usize| facts[*at].kind == kind;
        let own = |at: &usize| facts[*at].author.cta().is_some_and(|(of, _)| of == launch);
        let stored: Vec<usize> = (0..end).filter(stores(FactKind::Stored)).filter(own).collect();
        let is_late = |store: &&usize| {
            let line = facts[**store].line;
            !(**store..end).filter(stores(FactKind::Accepted)).any(|at| facts[at].line == line)
        };
        (stored.len(), stored.iter().filter(is_late).count())
    };
    (0..intervals(ran).len() as u32).map(of_launch).collect()
}

/// Schemes of GPUs under which launches overlap.
fn overlapping() -> Vec<&'static str> {
    let of = |scheme: &std::sync::Arc<dyn Scheme>| {
        (scheme.machines().gpu && scheme.one_by_one().is_none()).then(|| scheme.name())
    };
    catalogue::all().iter().filter_map(of).collect()
}

#[test]
fn what_a_launch_stored_is_durable_when_it_ends_and_holds_up_its_own_stream_only() {
    let launches = [(8, 50, 1), (1, 9000, 2), (1, 10, 1)];
    let ran = overlapped(&persists("epoch-kernel", &launches));
    let [a, b, c] = intervals(&ran)[..] else { panic!("three launches") };
    let waits = ran.assembly.command_processor().boundaries();
    assert_eq!((waits.count(), a.0, b.0, c.0), (3, 0, 0, a.1));
    assert!(b.1 > c.1, "the second outlasts both of the first stream: {b:?} {c:?}");
    assert_eq!(undurable_at_end(&ran), [(8 * 32, 0), (32, 0), (32, 0)]);
    // Without write-backs the end comes sooner, and nothing is durable by then.
    let base = overlapped(&persists("base", &launches));
    let [d, e, _] = intervals(&base)[..] else { panic!("three launches") };
    assert!(a.1 > d.1 + 100, "{a:?} {d:?}");
    assert_eq!(undurable_at_end(&base)[0], (8 * 32, 8 * 32));
    // The write-backs of the first stream hardly disturb the second, whose own follows.
    assert!(b.1 > e.1 && b.1 < e.1 + 1000, "{b:?} {e:?}");
}

#[test]
fn launches_that_end_while_another_is_written_back_are_written_back_behind_it() {
    let one = |launches: &[(u32, u32, u64)]| intervals(&overlapped(&persists("epoch-kernel", launches)));
    let alone = one(&[(8, 50, 1)])[0].1;
    let ran = overlapped(&persists("epoch-kernel", &[(8, 50, 1), (8, 50, 2), (8, 50, 3)]));
    let ends: Vec<Time> = intervals(&ran).iter().map(|launch| launch.1).collect();
    assert!(ends.is_sorted() && ends[0] < ends[1] && ends[1] < ends[2], "{ends:?}");
    assert!(ends[0] >= alone, "{ends:?} {alone}");
    assert_eq!(ran.assembly.command_processor().boundaries().count(), 3);
    assert_eq!(undurable_at_end(&ran), [(8 * 32, 0); 3]);
}

#[test]
fn a_programmatic_launch_that_is_done_first_makes_its_own_durable_and_waits_for_what_it_depends_on() {
    let mut bench = persists("epoch-kernel", &[]);
    let out = bench.buffer(1 << 20, Medium::Nvm);
    bench.launch(&lets_go(), 4, 32, (out, 0, 0, 4000)).in_stream(1, &[]);
    bench.launch(PERSIST, 4, 32, (out + 65536, 0, 0, 10)).in_stream(1, &[]).programmatic();
    let follow = format!("griddepcontrol.wait;\n{PERSIST}");
    bench.launch(&follow, 1, 32, (out + 2 * 65536, 0, 0, 10)).in_stream(1, &[]).programmatic();
    let ran = overlapped(&bench);
    let [a, b, c] = intervals(&ran)[..] else { panic!("three launches") };
    assert!(b.0 < a.1 && b.1 > a.1 && c.1 > b.1, "{a:?} {b:?} {c:?}");
    assert_eq!(ran.assembly.command_processor().boundaries().count(), 3);
    assert_eq!(undurable_at_end(&ran), [(128, 0), (128, 0), (32, 0)]);
    // What waits stores when the launch before has ended, hence behind its write-back.
    let journal = ran.assembly.journal();
    let first = |kind: FactKind, launch: u32| {
        let of = |fact: &Fact| {
            let own = fact.author.cta().map_or(fact.author == Author::Launch(launch), |(of, _)| of == launch);
            fact.kind == kind && own
        };
        journal.facts().iter().position(of).expect("it is noted")
    };
    assert!(first(FactKind::Stored, 2) > first(FactKind::KernelEnded, 1));
    assert!(first(FactKind::Stored, 1) < first(FactKind::KernelEnded, 0), "it waits for nothing");
}

#[test]
fn launches_overlap_under_each_scheme_that_takes_several_and_values_stay() {
    let schemes = overlapping();
    for name in ["base", "strict", "epoch-kernel", "store+clwb", "themis", "nvw-fifo", "sbrp", "agpm", "epoch-tag"] {
        assert!(schemes.contains(&name), "{name} is not among {schemes:?}");
    }
    for scheme in schemes {
        let bench = persists(scheme, &[(6, 300, 1), (9, 100, 2), (2, 700, 3), (4, 20, 1)]);
        let ran = overlapped(&bench);
        assert_eq!(ran.assembly.command_processor().most_at_once(), 3, "{scheme}");
        assert!(ran.memory == bench.functional(), "{scheme}");
        if !matches!(scheme, "base" | "sbrp") {
            let late: usize = undurable_at_end(&ran).iter().map(|(_, late)| late).sum();
            assert_eq!(late, 0, "{scheme}: fences, or the ends of CTAs or kernels, make durable");
        }
    }
}

#[test]
fn any_number_of_threads_has_the_same_events_under_each_of_them_and_goes_on_from_a_checkpoint() {
    for scheme in overlapping().into_iter().filter(|scheme| *scheme != "base") {
        let mut bench = persists(scheme, &[(6, 60, 1), (9, 20, 2), (2, 140, 3), (4, 5, 1)]);
        assert_same_events(scheme, &bench);
        bench.overlapped.1 = false;
        let ends: Vec<Time> = intervals(&overlapped(&bench)).iter().map(|launch| launch.1).collect();
        // Before the first ends, while it is written back where it is, and behind that.
        assert_goes_on(&bench, [ends[0] / 2, ends[0] - 40, ends[0] + 20]);
    }
}

/// Log updates of a line each, and of one line: each launch has periods of its own under AGPM.
fn logs(launches: &[(u32, u64, u64)]) -> Bench {
    let mut bench = Bench::new(one_gigahertz("sm.count=4"));
    let out = bench.buffer(1 << 18, Medium::Nvm);
    for (number, &(ctas, stride, stream)) in (0..).zip(launches) {
        let logs: String = (0..24).map(|n| format!("pm.st.log.global.u32 [%d1+{}], %r1;\n", stride * n)).collect();
        let body = format!("mov.u32 %r1, 5;\nmul.wide.u32 %d1, %id, 4;\nadd.s64 %d1, %d1, %out;\n{logs}pm.sfence;");
        bench.launch(&body, ctas, 32, (out + 65536 * number, 0, 0, 0)).in_stream(stream, &[]);
    }
    bench.overlapped = ("agpm", false);
    bench
}

#[test]
fn launches_with_log_updates_are_the_same_at_any_number_of_threads_under_agpm_and_go_on_from_checkpoints() {
    let bench = logs(&[(12, 4096, 1), (9, 0, 2), (4, 128, 1)]);
    let ran = overlapped(&bench);
    assert_eq!(ran.assembly.command_processor().most_at_once(), 2);
    let [a, b, c] = intervals(&ran)[..] else { panic!("three launches") };
    assert_eq!((a.0, b.0, c.0), (0, 0, a.1));
    assert_same_events("agpm", &bench);
    assert_goes_on(&bench, [a.1 / 3, a.1 - 20, a.1 + 20, c.1 - 10]);
}

/// `persists`, where L1s combine stores, on an L2 that has room for few lines: tags order what leaves it.
fn tagged(launches: &[(u32, u32, u64)], l2: &str) -> Bench {
    let mut bench = persists("epoch-tag", launches);
    bench.spec = machine("scoped-table2", &format!("sm.count=4 {l2}"));
    bench
}

#[test]
fn launches_whose_lines_tags_order_overlap_and_are_the_same_at_any_number_of_threads() {
    let launches = [(6, 60, 1), (9, 20, 2), (2, 400, 3), (4, 5, 1)];
    for l2 in ["l2.slices=1 l2.slice_kb=2 l2.ways=4", "l2.slices=2 l2.slice_kb=1 l2.ways=2", ""] {
        let mut bench = tagged(&launches, l2);
        let ran = overlapped(&bench);
        assert_eq!(ran.assembly.command_processor().most_at_once(), 3, "{l2}");
        assert!(ran.memory == bench.functional(), "{l2}");
        let ends: Vec<Time> = intervals(&ran).iter().map(|launch| launch.1).collect();
        let sum: Time = intervals(&ran).iter().map(|launch| launch.1 - launch.0).sum();
        assert!(ends.iter().max().unwrap() * 10 < sum * 8, "{l2}: {:?}", intervals(&ran));
        bench.overlapped.1 = false;
        assert_same_at_any_threads(&bench, &overlapped(&bench));
        assert_goes_on(&bench, [ends[0] / 2, ends[0] - 40, ends[0] + 20]);
    }
}

#[test]
fn lines_become_durable_in_the_order_of_launches_that_are_over_and_in_none_of_those_in_flight() {
    // The third launch follows the first in its stream, the second runs beside both and is long.
    let bench = tagged(&[(8, 10, 1), (8, 60, 2), (8, 10, 1)], "l2.slices=2 l2.slice_kb=1 l2.ways=2");
    let ran = overlapped(&bench);
    let journal = ran.assembly.journal();
    let line_of = |launch: u64| move |line: u64| line / 65536 == launch;
    let is_store = |fact: &&Fact| matches!(fact.kind, FactKind::Stored | FactKind::StoredNonTemporal);
    let base = journal.facts().iter().filter(is_store).map(|fact| fact.line).min().unwrap();
    let accepted = |launch: u64| {
        let facts = journal.facts().iter().enumerate();
        let own = facts.filter(|(_, fact)| fact.kind == FactKind::Accepted && line_of(launch)(fact.line - base));
        own.map(|(at, _)| at).collect::<Vec<_>>()
    };
    let [first, second, third] = [0, 1, 2].map(accepted);
    assert!(!first.is_empty() && !second.is_empty() && !third.is_empty());
    assert!(first.last() < third.first(), "the first launch was over when the third began");
    assert!(third.first() < second.last() || second.first() < first.last(), "the second is in order with neither");
}
