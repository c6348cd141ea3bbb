//! No result before what it follows from: pairs of a dependent and an independent program.

use super::*;

/// A chain of additions whose result is there in cycle `CHAIN`; longer than a line takes to come.
const CHAIN: u64 = 60;
const FORWARD: u64 = 4;
const HIT: u64 = 4;

/// x5 is there in cycle [`CHAIN`], 0 more than x10.
fn chain() -> Vec<u32> {
    let mut words = vec![addi(5, 10, 0)];
    words.resize(CHAIN as usize, addi(5, 5, 0));
    words
}

/// The cycle in which a program whose x10 points to data has done everything.
fn end(words: &[&[u32]]) -> u64 {
    World::with_registers(spec(), &program(&[&words.concat(), &exit()]), &[(10, DATA)]).exit_cycle()
}

#[test]
fn a_load_has_the_bytes_of_a_store_when_they_exist() {
    let dependent = end(&[&chain(), &[sd(5, 10, 8), ld(6, 10, 8), addi(7, 6, 0)]]);
    assert_eq!(dependent, CHAIN + FORWARD + 1);
    // Bytes that were there long before cost a hit, and the chain hides it.
    assert_eq!(end(&[&[sd(10, 10, 8), ld(6, 10, 8), addi(7, 6, 0)], &chain()]), CHAIN);
    // A store across the load's bytes and bytes of the line.
    let in_part = [sd(5, 10, 4), ld(6, 10, 8), addi(7, 6, 0)];
    assert_eq!(end(&[&[ld(8, 10, 0)], &chain(), &in_part]), CHAIN + FORWARD + 1);
}

#[test]
fn a_load_that_joins_the_miss_of_another_has_its_own_address_first() {
    // The line comes in cycle 44; the second load has its address in cycle 60.
    let joined = [ld(8, 10, 0)].into_iter().chain(chain()).chain([ld(6, 5, 8), addi(7, 6, 0)]);
    let joined: Vec<u32> = joined.collect();
    assert_eq!(end(&[&joined]), CHAIN + HIT + 1);
    assert_eq!(end(&[&[ld(8, 10, 0), ld(6, 10, 8), addi(7, 6, 0)], &chain()]), CHAIN, "its address was there");
}

#[test]
fn a_load_that_was_blocked_comes_after_the_store_that_it_finds() {
    // x8 is the address of the second store, and comes with a line. The third load waits for it, and may find
    // the first store performed in a cycle that the core has executed ahead.
    for (turns, others) in (50..90).flat_map(|turns| (0..28).step_by(4).map(move |others| (turns, others))) {
        let others = vec![addi(20, 0, 1); others];
        let body = [ld(8, 10, 256), add(8, 8, 10), sd(20, 8, 512), ld(6, 10, 8)];
        // What follows from the load outlasts the second store.
        let after = [addi(6, 6, 0); 100];
        let before = vec![addi(5, 5, 0); turns];
        let words = program(&[&before, &[sd(5, 10, 8)], &others, &body, &after, &exit()]);
        let spec = CoreSpec { batch_cycles: 14, ..spec() };
        let end = World::with_registers(spec, &words, &[(10, DATA)]).exit_cycle();
        assert!(end >= turns as u64 + FORWARD + 100, "{turns} additions, {} others: {end}", others.len());
    }
}

#[test]
fn a_jump_is_done_when_its_target_is_known() {
    let jalr = |rd: u32, rs1: u32, imm: i32| (imm as u32) << 20 | rs1 << 15 | rd << 7 | 0x67;
    // x5 is x10 at the end of the chain: to the instruction behind the jump.
    let words = program(&[&chain(), &[jalr(1, 5, 0)], &exit()]);
    let target = CODE + 4 * (CHAIN + 1);
    let world = World::with_registers(spec(), &words, &[(10, target)]);
    assert_eq!(world.exit_cycle(), CHAIN + 1);
}
