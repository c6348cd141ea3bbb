//! Products of four warps in traces: the same times as those of `wgmma` in PTX (`tests/machine/warp_groups.rs`), groups
//! as the tracer marks them, waits by their immediates.

use super::{one_warp, run};
use durawarp::outcome::{End, Outcome};
use durawarp::run::Recipe;
use tempfile::TempDir;

/// A trace of version 6 of one warp that executes these lines, then exits.
fn traced(lines: &[String]) -> (TempDir, Recipe) {
    one_warp(90, 6, lines)
}

fn outcome(lines: &[String]) -> Outcome {
    let (_folder, recipe) = traced(lines);
    let outcome = run(recipe.machine("hopper-h100").reference(false));
    assert_eq!(outcome.end, End::Finished);
    outcome
}

fn cycles(lines: &[String]) -> u64 {
    outcome(lines).time.core_cycles
}

/// A product to R24 with both factors in shared memory, which ends a group or does not.
fn product(opcode: &str, ends_group: bool) -> String {
    format!("1 R24 {opcode} 3 UR4 R24 UP0 {} 0 0", u32::from(ends_group))
}

fn wait(kept: u32) -> String {
    format!("0 WARPGROUP.DEPBAR.LE 0 0 {kept}")
}

#[test]
fn a_chain_of_products_has_the_rate_of_its_shape_as_in_ptx() {
    for (opcode, work) in [
        ("HGMMA.64x64x16.F32", 32),
        ("HGMMA.64x256x16.F32.BF16", 128),
        ("HGMMA.64x128x8.F32.TF32", 64),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", 32),
        ("IGMMA.64x64x32.S8.S8", 32),
        ("BGMMA.64x64x256.AND.POPC", 32),
        ("HGMMA.SP.64x64x32.F32", 32),
        // By its issue.
        ("HGMMA.64x8x16.F32", 17),
    ] {
        let chain = |count: usize| {
            let mut lines = vec![product(opcode, false); count];
            lines.extend([product(opcode, true), wait(0)]);
            cycles(&lines)
        };
        assert_eq!(chain(48) - chain(16), 32 * work, "{opcode}");
    }
}

#[test]
fn a_wait_leaves_as_many_groups_as_its_immediate_says() {
    let [first, second] = ["HGMMA.64x64x16.F32", "HGMMA.64x128x16.F32"].map(|opcode| product(opcode, true));
    let of = |kept| cycles(&["0 WARPGROUP.ARRIVE 0 0 0".to_owned(), first.clone(), second.clone(), wait(kept)]);
    let [all, one, none] = [0, 1, 2].map(of);
    assert_eq!(all - one, 64, "the second product's work");
    // Without a wait the warp goes on 17 and 34 cycles after their issue, and an issue of two cycles later.
    assert_eq!(one - none, 32 + 66 - 17 - 34 - 2);
    // A product that ends no group is not awaited.
    let open = cycles(&["0 WARPGROUP.ARRIVE 0 0 0".to_owned(), product("HGMMA.64x256x16.F32", false), wait(0)]);
    let ended = cycles(&["0 WARPGROUP.ARRIVE 0 0 0".to_owned(), product("HGMMA.64x256x16.F32", true), wait(0)]);
    assert!(ended > open + 100, "{ended} and {open}");
}

#[test]
fn a_first_factor_in_registers_is_waited_for_and_shortens_the_tail() {
    let of = |factor: &str, written: u32| {
        cycles(&[
            format!("1 R{written} MUFU.RSQ 1 R4 0 0 0"),
            format!("1 R24 HGMMA.64x64x16.F32 3 {factor} R24 UP0 1 0 0"),
            wait(0),
        ])
    };
    let (shared, registers) = (of("UR4", 12), of("R8", 12));
    assert_eq!(shared - registers, 2);
    // R11 is the last of the factor.
    assert!(of("R8", 11) > registers);
    assert_eq!(of("UR4", 11), shared);
}

#[test]
fn products_are_counted_and_those_without_a_shape_are_told() {
    let outcome = outcome(&[product("HGMMA.64x128x16.F32", true), product("HGMMA.F32", true), wait(0)]);
    assert_eq!(outcome.total("tensor", "group_products"), 1);
    assert_eq!(outcome.workload["trace"]["stood_in"], serde_json::json!({ "HGMMA as NOP": 1 }));
}

#[test]
fn a_machine_without_such_products_refuses_them_unless_a_table_says_what_they_are() {
    let (folder, recipe) = traced(&[product("HGMMA.64x128x16.F32", true)]);
    let fault = recipe.clone().machine("ampere-a100").run().map(drop).unwrap_err().to_string();
    assert!(fault.contains("has not; machines that have") && fault.contains("hopper-h100, hopper-h200"), "{fault}");
    assert!(fault.contains("`HGMMA = \"NOP\"` in a file of `--opcodes`"), "{fault}");
    let table = folder.path().join("table.toml");
    std::fs::write(&table, "HGMMA = \"NOP\"\n").unwrap();
    let outcome = run(recipe.machine("ampere-a100").set("opcodes", table.display()).reference(false));
    assert_eq!(outcome.end, End::Finished);
}
