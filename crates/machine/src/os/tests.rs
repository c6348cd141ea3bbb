//! The OS among scripted cores and a home that holds bytes. A tick is 1 ns; core to OS and back 10, OS to
//! home 5 and back 7, a call costs 50.

use std::any::Any;

use super::*;
use crate::address::Interleave;
use crate::coherence::{CPU_LINE_MASK, Grant, HomeMsg, Want};
use crate::ports::{Endpoint, Roster, To};
use durawarp_base::spec::Nanos;
use durawarp_engine::{ComponentId, Link, RunEnd, RunOptions, Simulation, Topology};
use durawarp_kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp_riscv::elf::{Executable, Function};
use durawarp_riscv::hart_state::HartState;
use durawarp_riscv::process::{Process, Start};
use durawarp_riscv::syscalls::number;

const CORES: u16 = 2;
const FUTEX: u64 = 0x2_0000;
const TIME: u64 = 0x3_0000;
const TIMEOUT: u64 = 110u64.wrapping_neg();

/// A core that says its lines at their times and writes down what it hears.
#[derive(Debug, Default)]
struct Script {
    to_os: Option<To<OsMsg>>,
    lines: VecDeque<(Time, OsMsg)>,
    heard: Vec<(Time, CoreMsg)>,
}

impl Script {
    fn speak(&mut self, cx: &mut Ctx<'_, Msg>) {
        while self.lines.front().is_some_and(|(at, _)| *at <= cx.now()) {
            let (_, message) = self.lines.pop_front().unwrap();
            self.to_os.unwrap().send(message, 0, cx);
        }
        if let Some((at, _)) = self.lines.front() {
            cx.wake_at(*at);
        }
    }
}

impl Component<Msg> for Script {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Core(message) = message else { panic!("{message:?}") };
        self.heard.push((cx.now(), message));
    }
    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.speak(cx);
    }
}

/// A home whose line at an address holds the words that were put there, each from an instant on.
#[derive(Debug, Default)]
struct Home {
    words: Vec<(Time, u64, u64)>,
    gets: Vec<(Time, u64)>,
}

impl Component<Msg> for Home {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let Msg::Home(HomeMsg::Get { line, from, tag, want: Want::Once, mut room }) = message else {
            panic!("{message:?}")
        };
        self.gets.push((cx.now(), line));
        room.bytes.fill(0);
        for &(_, address, word) in self.words.iter().filter(|(from, ..)| *from <= cx.now()) {
            for (at, byte) in (DRAM_BASE + address..).zip(word.to_le_bytes()) {
                if at & !63 == line {
                    room.bytes[(at % 64) as usize] = byte;
                }
            }
        }
        room.mask = CPU_LINE_MASK;
        let roster = Roster::of_cores(CORES, Interleave::new(1, 1, 256));
        let line = LineData { tag, grant: Grant::Once, data: room, dependencies: None };
        roster.ports(Endpoint::Home(0)).send_line(from, line, 0, cx);
    }
    fn wake(&mut self, _: &mut Ctx<'_, Msg>) {}
}

struct Ran {
    simulation: Simulation<Msg>,
    end: RunEnd,
}

impl Ran {
    fn of<T: 'static>(&self, id: u32) -> &T {
        (self.simulation.component(ComponentId(id)) as &dyn Any).downcast_ref().unwrap()
    }

    fn os(&self) -> &OperatingSystem {
        self.of(3)
    }

    fn home(&self) -> &Home {
        self.of(2)
    }

    /// What a core heard, in words.
    fn heard(&self, core: u32) -> Vec<String> {
        let word = |(at, message): &(Time, CoreMsg)| match message {
            CoreMsg::Return { hart, reply, .. } => {
                assert!(reply.wakes.is_empty());
                format!("{at}: hart {hart} {:?}", reply.then)
            }
            CoreMsg::Wake { hart, result, .. } => format!("{at}: wake {hart} with {}", *result as i64),
            CoreMsg::Begin(Begin { hart, state, .. }) => format!("{at}: begin {hart} at {:#x}", state.pc),
            CoreMsg::Stop => format!("{at}: stop"),
            CoreMsg::Leave { hart } => format!("{at}: hart {hart} gives up its thread"),
            other => panic!("{other:?}"),
        };
        self.of::<Script>(core).heard.iter().map(word).collect()
    }
}

fn call(hart: u32, number: u64, args: [u64; 6]) -> OsMsg {
    OsMsg::Call { call: Box::new(Call { hart, number, args, now_ns: 0 }), dependencies: None }
}

fn wait(hart: u32, expected: u64, timeout: u64) -> OsMsg {
    call(hart, number::FUTEX, [FUTEX, 0, expected, timeout, 0, 0])
}

fn wake(hart: u32, count: u64) -> OsMsg {
    call(hart, number::FUTEX, [FUTEX, 1, count, 0, 0, 0])
}

/// A thread on the next free hart; its number is cleared at [`FUTEX`] when it ends.
fn clone(hart: u32) -> OsMsg {
    const VM_THREAD_CHILD_CLEARTID: u64 = 0x100 | 0x1_0000 | 0x20_0000;
    call(hart, number::CLONE, [VM_THREAD_CHILD_CLEARTID, 0x8000, 0, 0, FUTEX, 0])
}

/// Two cores of two harts each, and what each core says when.
fn run(words: &[(Time, u64, u64)], script: [Vec<(Time, OsMsg)>; 2]) -> Ran {
    run_of(words, script, None)
}

/// The same; with a quantum threads share harts.
fn run_of(words: &[(Time, u64, u64)], script: [Vec<(Time, OsMsg)>; 2], quantum_ns: Option<u64>) -> Ran {
    let objects = vec![Function { address: FUTEX - 8, bytes: 16, name: "gate".to_owned() }];
    let image =
        Executable { entry: 0x10000, segments: vec![], functions: vec![], objects, headers: None, header_count: 0 };
    let process = Process::new(image, Start::default()).unwrap();
    let roster = Roster::of_cores(CORES, Interleave::new(1, 1, 256));
    let mut topology = Topology::new();
    for lines in script {
        let to_os = Some(roster.ports(Endpoint::Core(0)).to_os());
        let core = Script { to_os, lines: lines.into(), heard: vec![] };
        topology.add("core".to_owned(), Box::new(core));
    }
    topology.add("home".to_owned(), Box::new(Home { words: words.to_vec(), gets: vec![] }));
    let wiring = OsWiring {
        ports: roster.ports(Endpoint::Os),
        timebase: Timebase::of_khz(&[1_000_000]).unwrap(),
        memory: CpuMemory { windows: process.start.windows, main: DRAM_BASE, persistent: NVM_BASE },
        harts: 2,
        image: process.image.clone(),
    };
    let ns = |ns| Nanos::from_decimal(ns).unwrap();
    let spec = OsSpec { syscall_ns: ns(50.0), link_ns: ns(10.0), quantum_us: 1, switch_ns: ns(30.0) };
    let calls = Os::new(&process, 4, vec![]);
    let calls = quantum_ns.map_or(calls.clone(), |quantum_ns| calls.sharing(quantum_ns));
    let mut os = OperatingSystem::new(spec, wiring, calls);
    os.halt_at_end();
    os.follow_regions(true);
    let [os, home] = [topology.add("os".to_owned(), Box::new(os)), ComponentId(2)];
    let mut join = |a: (ComponentId, Endpoint), b: (ComponentId, Endpoint), latency| {
        topology.connect(a.0, roster.ports(a.1).to(b.1), b.0, Link { latency, phase: 0 });
    };
    for core in 0..CORES {
        let core = (ComponentId(core.into()), Endpoint::Core(core));
        join(core, (os, Endpoint::Os), 10);
        join((os, Endpoint::Os), core, 10);
        // Not used, but ports are dense.
        join(core, (home, Endpoint::Home(0)), 5);
        join((home, Endpoint::Home(0)), core, 7);
    }
    join((os, Endpoint::Os), (home, Endpoint::Home(0)), 5);
    join((home, Endpoint::Home(0)), (os, Endpoint::Os), 7);
    (0..CORES).for_each(|core| topology.wake_at(ComponentId(core.into()), 0));
    let mut simulation = Simulation::new(topology).unwrap();
    let mut end = simulation.run(&RunOptions::default());
    if let RunEnd::Halted { at, .. } = end {
        let os: &OperatingSystem = (simulation.component(ComponentId(3)) as &dyn Any).downcast_ref().unwrap();
        assert_eq!(Some(at), os.ended().map(|(at, _)| at));
        end = simulation.run(&RunOptions::default());
    }
    Ran { simulation, end }
}

/// The two calls that let `clone` put threads on harts 1 and 2, which end nothing.
fn threads() -> Vec<(Time, OsMsg)> {
    vec![(0, clone(0)), (0, clone(0))]
}

#[test]
fn a_call_costs_its_ways_and_its_time_and_calls_take_turns() {
    let script = vec![(100, call(0, number::GETTID, [0; 6])), (100, call(1, number::GETPID, [0; 6]))];
    let ran = run(&[], [script, vec![]]);
    assert_eq!(ran.heard(0), ["170: hart 0 Return(100)", "170: hart 1 Return(100)"]);
    let counted = ran.os().counters();
    assert_eq!((counted.calls, counted.read_lines, counted.turn_ns), (2, 0, 0));
    assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
}

#[test]
fn a_text_that_spans_two_lines_is_read_from_both_and_calls_behind_it_wait() {
    let text = u64::from_le_bytes(*b"durawarp");
    let write = call(0, number::WRITE, [1, FUTEX + 60, 8, 0, 0, 0]);
    let ran = run(&[(0, FUTEX + 60, text)], [vec![(100, write)], vec![(101, call(2, number::GETPID, [0; 6]))]]);
    assert_eq!(ran.home().gets, [(115, DRAM_BASE + FUTEX), (115, DRAM_BASE + FUTEX + 64)]);
    // 12 more, to the home and back.
    assert_eq!(
        (ran.heard(0), ran.heard(1)),
        (vec!["182: hart 0 Return(8)".into()], vec!["182: hart 2 Return(100)".into()])
    );
    assert_eq!(ran.os().output(), (&b"durawarp"[..], &b""[..]));
    let counted = ran.os().counters();
    assert_eq!((counted.read_lines, counted.turn_ns), (2, 11));
}

#[test]
fn many_lines_are_read_a_few_at_a_time_and_all_arrive() {
    let words: Vec<(Time, u64, u64)> = (0..1024).map(|i| (0, FUTEX + 8 * i, i)).collect();
    let ran = run(&words, [vec![(0, call(0, number::WRITE, [1, FUTEX, 8192, 0, 0, 0]))], vec![]]);
    let expected: Vec<u8> = (0..1024u64).flat_map(u64::to_le_bytes).collect();
    assert!(ran.os().output().0 == expected, "the bytes in their order");
    assert_eq!(ran.os().counters().read_lines, 128);
    let at = |i: usize| ran.home().gets[i].0;
    assert_eq!((at(15), at(16), at(127)), (15, 27, 15 + 7 * 12));
}

#[test]
fn no_wake_comes_between_the_reading_of_a_futex_and_its_wait() {
    // The word changes to 1 while it is on its way to the OS; the wake after that finds the waiter.
    for changes in [115, 116] {
        let mut script = threads();
        script.push((100, wait(0, 0, 0)));
        let ran = run(&[(changes, FUTEX, 1)], [script, vec![(101, wake(2, 9))]]);
        let waits = changes > 115;
        let (then, count) = if waits { ("Wait", 1) } else { ("Return(18446744073709551605)", 0) };
        assert_eq!(ran.heard(0)[2], format!("182: hart 0 {then}"));
        assert_eq!(ran.heard(1), [format!("182: hart 2 Return({count})")]);
        assert_eq!(ran.heard(0).get(3), waits.then(|| "182: wake 0 with 0".to_owned()).as_ref());
    }
}

#[test]
fn a_thread_that_ends_while_its_number_is_read_wakes_who_waits_for_it() {
    let ends = [(101, OsMsg::Ended { hart: 1, dependencies: None })];
    let mut script = threads();
    script.extend([(100, wait(0, 0, 0))].into_iter().chain(ends));
    let ran = run(&[], [script, vec![]]);
    assert_eq!(ran.heard(0)[2..], ["182: hart 0 Wait", "182: wake 0 with 0"]);
    assert_eq!((ran.os().counters().wakes, ran.os().counters().threads), (1, 2));
}

#[test]
fn a_timeout_ends_a_wait_at_its_instant_and_a_wake_before_that_comes_first() {
    for (wakes_at, heard) in
        [(223, "284: wake 0 with 0"), (224, "284: wake 0 with -110"), (900, "284: wake 0 with -110")]
    {
        let mut script = threads();
        script.push((100, wait(0, 0, TIME)));
        // The call is done at 100 + 10 + 2 * 12 and waits for 100 ns: until 234 at the OS.
        let ran = run(&[(0, TIME + 8, 100)], [script, vec![(wakes_at, wake(2, 1))]]);
        let arrives = if wakes_at < 224 { wakes_at + 70 } else { 234 + 60 };
        let expected = heard.replace("284", &arrives.to_string());
        assert_eq!(ran.heard(0)[2..], ["194: hart 0 Wait".to_owned(), expected], "{wakes_at}");
        assert_eq!(ran.heard(1).len(), 1);
        assert_eq!(ran.os().counters().timeouts, u64::from(wakes_at >= 224));
        assert_eq!(ran.os().counters().wait_ns, if wakes_at < 224 { 99 } else { 100 });
    }
    assert_eq!(TIMEOUT as i64, -110);
}

#[test]
fn a_sleep_ends_after_its_time_and_sleepers_do_not_disturb_each_other() {
    let sleep = |hart, at| call(hart, number::NANOSLEEP, [at, 0, 0, 0, 0, 0]);
    let script = vec![(0, clone(0)), (0, sleep(0, TIME)), (0, sleep(1, TIME + 64))];
    let ran = run(&[(0, TIME + 8, 500), (0, TIME + 72, 300)], [script, vec![]]);
    // Done at 22 and 34.
    assert_eq!(ran.heard(0)[1..], ["82: hart 0 Wait", "94: hart 1 Wait", "394: wake 1 with 0", "582: wake 0 with 0"]);
}

#[test]
fn a_deadline_is_kept_when_an_earlier_one_is_no_more() {
    // Hart 0 waits for 100 ns and is woken before; hart 1 sleeps for 500.
    let sleep = call(1, number::NANOSLEEP, [TIME + 64, 0, 0, 0, 0, 0]);
    let script = vec![(0, clone(0)), (0, clone(0)), (100, wait(0, 0, TIME)), (100, sleep)];
    let ran = run(&[(0, TIME + 8, 100), (0, TIME + 72, 500)], [script, vec![(150, wake(2, 1))]]);
    assert_eq!(ran.heard(0)[4..], ["220: wake 0 with 0", "706: wake 1 with 0"]);
}

#[test]
fn exit_stops_every_core_and_nothing_is_performed_after_it() {
    let mut script = threads();
    script.push((100, wait(0, 0, TIME)));
    let calls = vec![
        (200, call(2, number::EXIT_GROUP, [7, 0, 0, 0, 0, 0])),
        (201, call(2, number::GETPID, [0; 6])),
        (201, OsMsg::Ended { hart: 2, dependencies: None }),
    ];
    let ran = run(&[(0, TIME, 1000)], [script, calls]);
    assert_eq!(ran.os().ended(), Some((260, 7)));
    assert_eq!((ran.heard(0).last().unwrap().as_str(), ran.heard(1)), ("270: stop", vec!["270: stop".to_owned()]));
    // The wait that nobody ends is no deadlock.
    assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
}

#[test]
fn the_process_ends_with_its_last_thread_and_the_code_of_its_first() {
    let exit = |hart, code| call(hart, number::EXIT, [code, 0, 0, 0, 0, 0]);
    let script = vec![
        (0, clone(0)),
        (100, exit(0, 3)),
        (200, OsMsg::Ended { hart: 0, dependencies: None }),
        (300, exit(1, 4)),
        (400, OsMsg::Ended { hart: 1, dependencies: None }),
    ];
    let ran = run(&[], [script, vec![]]);
    assert_eq!(ran.os().ended(), Some((460, 3)));
    assert_eq!(ran.heard(0)[1..], ["170: hart 0 End", "370: hart 1 End", "470: stop"]);
}

#[test]
fn a_thread_begins_on_the_core_of_its_hart_and_none_begins_when_every_hart_has_one() {
    let state = Box::new(HartState { registers: [0; 64], pc: 0x10004, fcsr: 0 });
    let mut script: Vec<_> = (0..4).map(|at| (100 * at, clone(0))).collect();
    script.push((400, OsMsg::Begin(Begin { hart: 2, state, dependencies: None })));
    let ran = run(&[], [script, vec![]]);
    let heard = ran.heard(0);
    assert!(
        heard[1].contains("Spawn { hart: Some(2), stack: 32768, thread: None, result: 102, clear: Some(131072) }"),
        "{heard:?}"
    );
    assert_eq!((heard[3].as_str(), ran.heard(1)), ("370: hart 0 NoFreeHart", vec!["420: begin 2 at 0x10004".into()]));
}

/// Registers of a thread, of which a0 is 7.
fn state(pc: u64) -> Box<HartState> {
    let mut state = HartState { registers: [0; 64], pc, fcsr: 0 };
    state.registers[usize::from(A0)] = 7;
    Box::new(state)
}

#[test]
fn more_threads_than_harts_take_the_harts_of_those_that_wait_and_of_those_whose_quantum_is_over() {
    let mut script: Vec<_> = (0..3).map(|_| (0, clone(0))).collect();
    script.extend([
        (100, clone(0)),
        (200, OsMsg::Born { thread: 104, state: state(0x10040) }),
        (300, wait(0, 0, 0)),
        (400, OsMsg::Left { hart: 0, waits: true, state: state(0x10008) }),
        (1200, OsMsg::Left { hart: 1, waits: false, state: state(0x10080) }),
    ]);
    // The first thread is woken when it has no hart: by hart 2.
    let ran = run_of(&[], [script, vec![(600, wake(2, 1))]], Some(1000));
    let heard = ran.heard(0);
    assert!(heard[3].starts_with("170: hart 0 Spawn { hart: None") && heard[3].contains("result: 104"), "{heard:?}");
    assert_eq!(
        heard[4..],
        [
            // It waits once the word is read, 12 after the call has come.
            "382: hart 0 Wait",
            "382: hart 0 gives up its thread",
            // Its registers have come at 410; 50 and 30 for the switch, 10 of its way.
            "500: begin 0 at 0x10040",
            // The other threads have had their harts since 10: until 1010.
            "1070: hart 1 gives up its thread",
            "1300: begin 1 at 0x10008",
        ]
    );
    // The thread that was taken off hart 1 waits for another one whose time is over.
    assert_eq!(ran.heard(1), ["670: hart 2 Return(1)", "1270: hart 2 gives up its thread"]);
    let CoreMsg::Begin(Begin { state, .. }) = &ran.of::<Script>(0).heard[8].1 else { panic!("{heard:?}") };
    // The wait's result, in place of what was there.
    assert_eq!(state.registers[usize::from(A0)], 0);
    let OsCounters { switches, preemptions, wakes, wait_ns, .. } = ran.os().counters();
    assert_eq!((switches, preemptions, wakes), (2, 2, 1));
    assert_eq!(wait_ns, 1210 - 322);
}

#[test]
fn a_thread_that_ends_leaves_its_hart_to_one_that_has_none() {
    let mut script: Vec<_> = (0..3).map(|_| (0, clone(0))).collect();
    script.extend([
        (100, clone(0)),
        (200, OsMsg::Born { thread: 104, state: state(0x10040) }),
        (300, OsMsg::Ended { hart: 1, dependencies: None }),
    ]);
    let ran = run_of(&[], [script, vec![]], Some(1_000_000));
    assert_eq!(ran.heard(0).last().unwrap(), "400: begin 1 at 0x10040");
    assert_eq!((ran.os().counters().switches, ran.os().counters().preemptions), (1, 0));
}

#[test]
fn a_deadlock_names_the_harts_their_threads_and_their_futex() {
    let ran = run(&[], [vec![(100, wait(0, 0, 0))], vec![]]);
    let RunEnd::Deadlock { waits, .. } = ran.end else { panic!("{:?}", ran.end) };
    let (_, name, wait) = &waits[0];
    assert_eq!((name.as_str(), wait.who.as_str()), ("os", "hart 0 (thread 100)"));
    assert_eq!(wait.what, "a wake of futex `gate+0x8` (0x20000)");
    assert_eq!(wait.since, 122);
}

#[test]
fn a_step_is_numbered_and_follows_from_what_earlier_calls_come_after() {
    use durawarp_persist::dependency::{Dependencies, Dependency};
    let on = |hart, id| Some(Box::new(Dependencies::from_iter([Dependency { hart, id }])));
    let getpid = |hart, dependencies| {
        let OsMsg::Call { call, .. } = call(hart, number::GETPID, [0; 6]) else { unreachable!("it is one") };
        OsMsg::Call { call, dependencies }
    };
    let first = vec![(0, getpid(0, on(9, 3))), (500, getpid(0, on(9, 5)))];
    let ran = run(&[], [first, vec![(100, getpid(2, None)), (600, getpid(2, on(8, 1)))]]);
    let steps = |core| -> Vec<(u64, Vec<(u16, u64)>)> {
        let steps = ran.of::<Script>(core).heard.iter().filter_map(|(_, message)| match message {
            CoreMsg::Return { step, .. } => Some(step),
            _ => None,
        });
        let after = |step: &SystemStep| step.after.iter().flat_map(|on| on.iter().map(|of| (of.hart, of.id))).collect();
        steps.map(|step| (step.number, after(step))).collect()
    };
    assert_eq!(steps(0), [(1, vec![(9, 3)]), (3, vec![(9, 5)])]);
    assert_eq!(steps(1), [(2, vec![(9, 3)]), (4, vec![(9, 5), (8, 1)])]);
    assert_eq!(ran.os().log().map(OsLog::steps), Some(4));
}
