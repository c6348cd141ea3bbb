//! Clusters that are taken from the grid before they begin, on the functional driver: every item of a grid is worked on
//! once, by a CTA that begins or by one that takes it. `tests/kernel/ptx/launch_control.ptx` is run on the timed machine
//! by `tests/machine/launch_control.rs`, too.

use durawarp::kernel::ptx;

use crate::clusters::{Arg, launch_of};

const KERNELS: &str = include_str!("ptx/launch_control.ptx");

/// The words of every item, and the totals: items, and CTAs that began.
fn launched(kernel: &str, grid: [u32; 3], cluster: [u32; 3]) -> Result<(Vec<u32>, [u32; 2]), String> {
    let (words, totals) = (vec![0; grid.iter().product::<u32>() as usize * 32], [0; 2]);
    let args = [Arg::Words(&words), Arg::Words(&totals)];
    let found = launch_of(KERNELS, kernel, [grid, cluster, [32, 1, 1]], 0, &args)?;
    Ok((found[0].clone(), [found[1][0], found[1][1]]))
}

/// Each item is worked on once; how many CTAs began.
fn each_once(kernel: &str, grid: [u32; 3], cluster: [u32; 3]) -> u32 {
    let (words, [items, began]) = launched(kernel, grid, cluster).unwrap_or_else(|fault| panic!("{fault}"));
    let ctas = grid.iter().product::<u32>();
    for (at, &word) in words.iter().enumerate() {
        assert_eq!(word, at as u32 / 32 + 1, "{kernel} of {grid:?}: word {at}");
    }
    assert_eq!(items, ctas, "{kernel} of {grid:?}");
    let one = cluster.iter().product::<u32>();
    assert!(began >= one && began.is_multiple_of(one), "{began} of {ctas} began");
    began
}

#[test]
fn every_cta_of_a_grid_begins_or_is_taken_once() {
    for grid in [[1, 1, 1], [7, 1, 1], [3, 4, 2], [1, 1, 40], [300, 1, 1]] {
        // The first runs until it comes to its end, and takes the others.
        assert_eq!(each_once("steals", grid, [1; 3]), 1, "{grid:?}");
    }
}

#[test]
fn a_cluster_is_taken_as_a_whole_and_its_ctas_find_their_own_in_the_answer() {
    // While a cluster waits at its barrier the next one begins, as far as there is room.
    for (grid, cluster) in [([2000, 1, 1], [2, 1, 1]), ([400, 4, 1], [2, 2, 1]), ([800, 2, 1], [8, 1, 1])] {
        let began = each_once("shares", grid, cluster);
        assert!(began < grid.iter().product(), "{began}");
    }
}

#[test]
fn an_answer_lies_in_the_own_shared_memory_aligned_and_has_a_barrier() {
    let fault = |old: &str, new: &str, grid: [u32; 3], cluster: [u32; 3]| {
        assert!(KERNELS.contains(old), "{old}");
        let text = KERNELS.replace(old, new);
        let kernel = if cluster == [1; 3] { "steals" } else { "shares" };
        let (words, totals) = (vec![0; grid.iter().product::<u32>() as usize * 32], [0; 2]);
        let args = [Arg::Words(&words), Arg::Words(&totals)];
        launch_of(&text, kernel, [grid, cluster, [32, 1, 1]], 0, &args).unwrap_err()
    };
    let one = ([4, 1, 1], [1; 3]);
    let misplaced =
        fault("complete_tx::bytes.b128 [%r2], [%r3]", "complete_tx::bytes.b128 [%r2+8], [%r3]", one.0, one.1);
    assert!(misplaced.contains("aligned") && misplaced.contains("16"), "{misplaced}");
    let absent = fault("@!%p1 mbarrier.init.shared.b64 [%r3], 1;", "", one.0, one.1);
    assert!(absent.contains("mbarrier"), "{absent}");
    let theirs =
        "mapa.shared::cluster.u32 %r25, %r3, 1;\n    cvt.u64.u32 %rd6, %r25;\n    cvta.shared.u64 %rd6, %rd6;\n";
    let old = "    clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytes.multicast::cluster::all.b128 [%rd4], [%rd5];";
    let other = fault(old, &format!("{theirs}{}", old.replace("[%rd5]", "[%rd6]")), [4, 1, 1], [2, 1, 1]);
    assert!(other.contains("names shared memory of another CTA"), "{other}");
}

#[test]
fn forms_that_the_isa_does_not_have_are_refused_by_what_is_missing() {
    let faults = |line: &str| {
        let text = format!(
            ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n.reg .b32 %r<4>;\n\
             .reg .b128 %q;\n.reg .b64 %d;\n.reg .pred %p;\n.shared .align 16 .b8 s[32];\n{line}\nret;\n}}\n"
        );
        ptx::parse("k.ptx", &text).map(|_| ()).unwrap_err().to_string()
    };
    for (line, told) in [
        ("clusterlaunchcontrol.pause;", "is `.try_cancel` or `.query_cancel`"),
        ("clusterlaunchcontrol.try_cancel.async.shared::cta.b128 [s], [s+16];", "`.mbarrier::complete_tx::bytes`"),
        ("clusterlaunchcontrol.query_cancel.pred.b128 %p, %q;", "needs one of `.is_canceled`"),
        ("clusterlaunchcontrol.query_cancel.is_canceled.b32.b128 %r0, %q;", "ends with `.pred.b128`"),
        ("clusterlaunchcontrol.query_cancel.get_first_ctaid.b32.b128 %r0, %q;", "ends with `.v4.b32.b128`"),
        ("clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p, %d;", "expected a register of type `.b128`"),
        (
            "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1}, %q;",
            "expected 4 element(s), found 2",
        ),
    ] {
        let found = faults(line);
        assert!(found.contains(told), "{line}\n{found}");
    }
}
