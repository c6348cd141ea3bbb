//! A thread that is taken off its hart and goes on: at any instant nothing of it is lost, and nothing done
//! twice.

use super::*;

/// `lr.d rd, (rs1)` and `sc.d rd, rs2, (rs1)`.
fn lr(rd: u32, rs1: u32) -> u32 {
    0x2 << 27 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

fn sc(rd: u32, rs2: u32, rs1: u32) -> u32 {
    0x3 << 27 | rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

/// Ten rounds of loads, stores, atomics, a conditional store, a fence, a branch and a call: what is stored
/// at x8 and around it follows from each of them.
fn rounds() -> Vec<u32> {
    let mut words = vec![addi(5, 0, 10), addi(6, 0, 1)];
    let top = words.len() as i32;
    words.extend([
        ld(7, 8, 0),
        add(7, 7, 5),
        sd(7, 8, 0),
        amoadd(9, 6, 12),
        add(13, 13, 9),
        lr(14, 15),
        addi(14, 14, 1),
        sc(16, 14, 15),
        bne(16, 0, -12),
        sd(13, 8, 128),
        FENCE,
        addi(17, 0, 172),
        ECALL,
        add(18, 18, 10),
        addi(5, 5, -1),
    ]);
    words.push(bne(5, 0, (top - words.len() as i32) * 4));
    words.extend([sd(18, 8, 136), ld(20, 8, 0), ld(21, 12, 0), ld(22, 15, 0)]);
    words.extend(exit());
    words
}

const PLACES: [(usize, u64); 3] = [(8, DATA), (12, DATA + 512), (15, DATA + 1024)];

fn leaving(at: &[Time]) -> World {
    let sends = at.iter().map(|&at| (at, CoreMsg::Leave { hart: 0 })).collect();
    World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec(), &rounds(), &PLACES, sends)
}

/// What the program has computed, and its calls.
fn result(world: &World) -> ([u64; 6], usize) {
    let registers = [13, 18, 20, 21, 22, 5].map(|register| world.register(register));
    (registers, world.component::<CallNotes>(2).calls.len())
}

#[test]
fn a_thread_that_leaves_its_hart_at_any_instant_goes_on_as_if_it_had_not() {
    let straight = result(&leaving(&[]));
    assert_eq!(straight, ([45, 70, 55, 10, 10, 0], 11));
    let end = leaving(&[]).simulation.reached();
    let mut left = 0;
    for at in 0..end {
        let world = leaving(&[at, at + 900, at + 1711]);
        assert_eq!(result(&world), straight, "left at {at}");
        left += world.component::<CallNotes>(2).left.len() as u64;
    }
    // Most instants are within the run, thrice.
    assert!(left > end, "{left} of {end}");
}

#[test]
fn a_thread_that_waits_in_a_call_leaves_at_once_and_has_its_result_from_elsewhere() {
    let mut words = vec![addi(17, 0, 101), ECALL, addi(11, 10, 1)];
    words.extend(exit());
    let sends = VecDeque::from([(5000, CoreMsg::Leave { hart: 0 })]);
    let world = World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec(), &words, &[], sends);
    let CallNotes { left, .. } = world.component(2);
    // It stands behind the call.
    assert_eq!((left.len(), left[0].1.pc, left[0].1.registers[17]), (1, CODE + 8, 101));
    assert_eq!(world.register(11), 8);
}

#[test]
fn a_hart_without_a_thread_ignores_that_it_should_give_one_up_and_a_stopped_one_that_it_begins() {
    let state = HartState { registers: [0; 64], pc: CODE, fcsr: 0 };
    let begin = CoreMsg::Begin(Begin { hart: 0, state: Box::new(state), dependencies: None });
    let sends = [(5000, CoreMsg::Stop), (6000, CoreMsg::Leave { hart: 0 }), (7000, begin)].into();
    let world = World::under(Box::new(CorePolicy::default()), DRAM_BASE, spec(), &exit(), &[], sends);
    let CallNotes { calls, left } = world.component(2);
    let instructions = World::run(spec(), &exit()).core().counters().instructions;
    assert_eq!((calls.len(), left.len(), world.core().counters().instructions), (1, 0, instructions));
}
