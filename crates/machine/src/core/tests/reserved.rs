//! How long an `lr` keeps its line, to the cycle.

use super::*;

const FUNCT5_LR: u32 = 2;
const FUNCT5_SC: u32 = 3;

fn atomic(funct5: u32, rd: u32, rs2: u32, rs1: u32) -> u32 {
    funct5 << 27 | rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

/// A probe that takes the line of the data and arrives in a cycle.
fn probe(arrives: u64) -> VecDeque<(Time, CoreMsg)> {
    let clock = Timebase::of_khz(&[2_000_000]).unwrap().clock(2_000_000);
    let line = DRAM_BASE + DATA;
    let message = CoreMsg::Probe { line, invalidate: true, recall: false, room: Box::default() };
    VecDeque::from([(clock.cycles(arrives - REPLY), message)])
}

/// Changes a line, then `lr`, additions that follow from it, `sc`; a probe takes the line. When it comes home,
/// what `sc` says, and the cycle after all.
fn run(lr_hold_cycles: u32, additions: usize, arrives: u64) -> (u64, u64, u64) {
    let added = vec![addi(6, 6, 1); additions];
    let body = [sd(1, 10, 0), FENCE, atomic(FUNCT5_LR, 6, 0, 10)];
    let words = program(&[&body, &added, &[atomic(FUNCT5_SC, 7, 6, 10)], &exit()]);
    let registers = [(1, 5), (10, DATA)];
    let spec = CoreSpec { lr_hold_cycles, ..spec() };
    let world = World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec, &words, &registers, probe(arrives));
    let home: &FlatHome = world.component(1);
    let came = home.came.first().map_or(0, |&(at, _)| world.clock.cycle_at_or_after(at));
    (came, world.register(7), world.exit_cycle())
}

/// The cycle in which `lr` is performed, behind what comes in it: the store is performed as its line comes, and
/// the fence has retired in the next cycle.
const LR: u64 = REQUEST + SERVICE + REPLY + 1;
/// Cycles from `lr` to `sc` beside the additions: `core.amo_cycles`.
const AMO: u64 = 18;

#[test]
fn a_probe_waits_for_the_sc_and_goes_with_it() {
    let sc = LR + AMO + 5;
    for arrives in LR + 1..sc + 4 {
        let (came, failed, _) = run(80, 5, arrives);
        assert_eq!((came, failed), (arrives.max(sc) + REQUEST, 0), "a probe that arrives in cycle {arrives}");
    }
}

#[test]
fn a_hold_ends_in_its_last_cycle_and_the_sc_fails_at_once() {
    // 200 additions: no `sc` before the hold of 30 cycles behind `lr` is over.
    let end = LR + AMO + 30;
    let at = |arrives: u64| run(30, 200, arrives);
    assert_eq!(at(end - 10).0, end + REQUEST, "it waits for the end");
    assert_eq!(at(end - 1).0, end + REQUEST, "one cycle early");
    assert_eq!(at(end).0, end + REQUEST, "on time");
    assert_eq!(at(end + 1).0, end + 1 + REQUEST);
    let (_, failed, exit) = at(end);
    assert_eq!((failed, exit), (1, LR + AMO + 200 + AMO), "a failure asks for nothing");
}

#[test]
fn an_lr_of_a_line_that_others_wait_for_lets_them_have_it_first() {
    // The second `lr` follows the `sc` at once, in a cycle that may be executed in the same event.
    let added = [addi(6, 6, 1); 20];
    let twice = [atomic(FUNCT5_LR, 6, 0, 10), atomic(FUNCT5_SC, 7, 6, 10)];
    let body = program(&[&[sd(1, 10, 0), FENCE, twice[0]], &added, &[twice[1]], &twice, &exit()]);
    let sc = LR + 1 + 20;
    for batch_cycles in [1, 8, 14] {
        let (registers, spec) = ([(1, 5), (10, DATA)], CoreSpec { batch_cycles, amo_cycles: 1, ..spec() });
        let world = World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec, &body, &registers, probe(LR + 3));
        let home: &FlatHome = world.component(1);
        let came: Vec<u64> = home.came.iter().map(|&(at, _)| world.clock.cycle_at_or_after(at)).collect();
        assert_eq!((came, world.register(7)), (vec![sc + REQUEST], 0), "batches of {batch_cycles}");
        assert_eq!(home.gets.len(), 2, "the second `lr` asks for the line, batches of {batch_cycles}");
        assert!(world.exit_cycle() >= sc + REQUEST + SERVICE + REPLY, "{}", world.exit_cycle());
    }
}
