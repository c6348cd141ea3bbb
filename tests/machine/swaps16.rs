//! Atomics of 16 bytes on the timed machine (PTX ISA 9.7.13.5, `atom.exch.b128`, `atom.cas.b128`), in kernels that NVRTC
//! made of `__align__(16)` structures: every swap is one for all threads, values and results are equal at any number of
//! threads, and a swap takes the time of one operation.

use super::clusters::{goes_on, ran, same_at_any_threads, small, workload};
use durawarp::outcome::{End, Outcome};
use durawarp::run::Recipe;
use tempfile::TempDir;

const KERNELS: &str = include_str!("../kernel/ptx/swaps16.nvrtc.ptx");
/// Threads of each kernel, in CTAs of 96.
const N: u64 = 480;

fn all() -> (TempDir, Recipe) {
    let buffer = |name: &str, len: u64, init: &str| format!("[buffer.{name}]\ntype = \"u64\"\nlen = {len}\n{init}");
    let buffers = [
        buffer("head", 2, ""),
        buffer("next", N, ""),
        // The pair of 0.
        buffer("place", 2, "init = { kind = \"expr\", expr = \"7 * idx\" }\n"),
        buffer("totals", 5, ""),
    ];
    let steps = format!(
        "[[step]]\nkernel = \"push_all\"\ngrid = {0}\nblock = 96\nargs = [\"&head\", \"&next\", \"{N}\"]\n\
         [[step]]\nkernel = \"pass_on\"\ngrid = {0}\nblock = 96\nargs = [\"&place\", \"&totals\"]\n\
         [[step]]\nkernel = \"look\"\ngrid = 1\nblock = 1\nargs = [\"&head\", \"&next\", \"{N}\", \"&place\", \"&totals\"]\n",
        N / 96
    );
    // The order of the list and of the exchanges is up to time: the totals are not.
    let (folder, recipe) = workload(KERNELS, &buffers.concat(), &steps, "\"totals\"");
    (folder, small(recipe))
}

fn finished(recipe: Recipe) -> Outcome {
    let outcome = ran(recipe);
    assert_eq!(outcome.end, End::Finished);
    let check = outcome.verification.as_ref().unwrap();
    assert!(check.passed, "{:?}", check.failures);
    outcome
}

#[test]
fn no_node_is_lost_and_no_pair_is_torn() {
    let (_folder, recipe) = all();
    let outcome = finished(recipe.clone());
    // Operations at the L2: the swaps of 16 bytes are one each, as additions are. Each push is at least one.
    let (swaps, additions) = (outcome.total("l2", "atomic_lanes"), N + N / 96);
    assert!(swaps >= 2 * N + additions, "{swaps} operations");
    // With lanes of 64 a warp has 128 halves on one line.
    finished(recipe.set("sm.warp_size", 64));
}

#[test]
fn swaps_are_the_same_at_every_number_of_threads() {
    let (_folder, recipe) = all();
    same_at_any_threads(&recipe, "480 threads");
}

#[test]
fn a_run_goes_on_from_a_checkpoint_between_swaps() {
    let (_folder, recipe) = all();
    let resumed = goes_on(recipe.set("dispatch.command_ns", 2000), (5..100).step_by(30));
    assert!(resumed > 2, "{resumed}");
}
