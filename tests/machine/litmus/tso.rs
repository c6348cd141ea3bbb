//! Total store order by enumeration: every outcome that store buffers allow of a few threads of a few
//! operations.
//!
//! Source: Owens, Sarkar, Sewell, *A Better x86 Memory Model: x86-TSO*: a thread's stores enter its buffer in
//! order and leave it in order, at any time; a load takes the youngest store of its own buffer, else memory; a
//! fence waits for an empty buffer.

use std::collections::BTreeSet;

/// An operation of a thread. Locations begin at 0; a load's value is the next of its thread's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    Store(usize, u64),
    Load(usize),
    Fence,
}

/// The results of all threads, one after the other, then the final value of each location.
pub(crate) type Outcome = Vec<u64>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    at: Vec<usize>,
    buffers: Vec<Vec<(usize, u64)>>,
    memory: Vec<u64>,
    results: Vec<Vec<u64>>,
}

/// Every outcome that total store order allows.
pub(crate) fn allowed(threads: &[Vec<Act>], locations: usize) -> BTreeSet<Outcome> {
    let first = State {
        at: vec![0; threads.len()],
        buffers: vec![Vec::new(); threads.len()],
        memory: vec![0; locations],
        results: vec![Vec::new(); threads.len()],
    };
    let (mut seen, mut open, mut outcomes) = (BTreeSet::from([first.clone()]), vec![first], BTreeSet::new());
    while let Some(state) = open.pop() {
        let next = steps(&state, threads);
        if next.is_empty() {
            outcomes.insert(state.results.concat().into_iter().chain(state.memory).collect());
            continue;
        }
        open.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
    }
    outcomes
}

fn steps(state: &State, threads: &[Vec<Act>]) -> Vec<State> {
    let mut next = Vec::new();
    for (thread, acts) in threads.iter().enumerate() {
        if !state.buffers[thread].is_empty() {
            let mut drained = state.clone();
            let (location, value) = drained.buffers[thread].remove(0);
            drained.memory[location] = value;
            next.push(drained);
        }
        let Some(&act) = acts.get(state.at[thread]) else { continue };
        let mut done = state.clone();
        done.at[thread] += 1;
        match act {
            Act::Store(location, value) => done.buffers[thread].push((location, value)),
            Act::Load(location) => {
                let own = state.buffers[thread].iter().rev().find(|(stored, _)| *stored == location);
                done.results[thread].push(own.map_or(state.memory[location], |&(_, value)| value));
            }
            Act::Fence if state.buffers[thread].is_empty() => {}
            Act::Fence => continue,
        }
        next.push(done);
    }
    next
}

#[test]
fn store_buffering_is_allowed_and_a_fence_forbids_it() {
    let thread = |own, other, fence: bool| {
        let middle = fence.then_some(Act::Fence);
        [Act::Store(own, 1)].into_iter().chain(middle).chain([Act::Load(other)]).collect::<Vec<_>>()
    };
    let of = |fence| allowed(&[thread(0, 1, fence), thread(1, 0, fence)], 2);
    assert!(of(false).contains(&vec![0, 0, 1, 1]) && of(false).len() == 4);
    assert!(!of(true).contains(&vec![0, 0, 1, 1]) && of(true).len() == 3);
}
