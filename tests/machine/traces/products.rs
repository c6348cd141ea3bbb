//! Products of matrices in traces: the same times as those of `mma` in PTX, one cycle more or less is a fault.

use super::{one_warp, run};
use durawarp::Experiment;
use durawarp::outcome::{End, Outcome};
use durawarp::run::Recipe;
use tempfile::TempDir;

/// Instructions of the longer of two chains. What is before and after them is the same.
const MORE: usize = 64;

/// A trace of one warp that executes these lines, then exits.
fn traced(lines: &[String]) -> (TempDir, Recipe) {
    one_warp(80, 5, lines)
}

/// A kernel of one warp that executes these lines of PTX.
fn written(lines: &[String]) -> (TempDir, Recipe) {
    let folder = tempfile::tempdir().unwrap();
    let body = lines.concat();
    let ptx = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry chain(.param .u64 p)\n{{\n.reg .f32 %f<64>;\n\
         .reg .b32 %r<64>;\n.reg .f64 %d<8>;\n{body}ret;\n}}\n"
    );
    std::fs::write(folder.path().join("kernel.ptx"), ptx).unwrap();
    let manifest = "schema = 1\nname = \"chain\"\ndescription = \"products\"\n[isa]\nkind = \"ptx\"\n\
                    file = \"kernel.ptx\"\n[buffer.a]\ntype = \"f32\"\nlen = 4\n[[step]]\nkernel = \"chain\"\nblock = 32\n\
                    grid = 1\nargs = [\"&a\"]\n";
    std::fs::write(folder.path().join("workload.toml"), manifest).unwrap();
    let recipe = Experiment::of(folder.path().display().to_string());
    (folder, recipe)
}

fn outcome(recipe: Recipe, machine: &str, keys: &str) -> Outcome {
    let outcome = run(recipe.machine(machine).changes(keys.split_whitespace()).reference(false));
    assert_eq!(outcome.end, End::Finished);
    outcome
}

/// Cycles that [`MORE`] instructions add at the end of as many.
fn added(machine: &str, keys: &str, made: fn(&[String]) -> (TempDir, Recipe), line: impl Fn(usize) -> String) -> u64 {
    let of = |count: usize| {
        let lines: Vec<String> = (0..count).map(&line).collect();
        let (_folder, recipe) = made(&lines);
        outcome(recipe, machine, keys).time.core_cycles
    };
    of(2 * MORE) - of(MORE)
}

/// A product of PTX: its name, and how many registers d, a, b and c have.
fn mma(name: &str, sums: &str, [d, a, b]: [usize; 3]) -> String {
    let list = |prefix: &str, from: usize, count: usize| {
        let registers: Vec<String> = (from..from + count).map(|at| format!("%{prefix}{at}")).collect();
        format!("{{{}}}", registers.join(", "))
    };
    let sum = list(sums, 0, d);
    format!("mma.sync.aligned.{name} {sum}, {}, {}, {sum};\n", list("r", 8, a), list("r", 16, b))
}

#[test]
fn a_chain_of_products_takes_the_latency_of_its_shape_as_in_ptx() {
    // d = c = R4; R8 and R16 are the factors.
    for (opcode, ptx, latency) in [
        ("HMMA.16816.F32", mma("m16n8k16.row.col.f32.f16.f16.f32", "f", [4, 4, 2]), 25),
        ("HMMA.1688.F32", mma("m16n8k8.row.col.f32.f16.f16.f32", "f", [4, 2, 1]), 18),
        ("HMMA.16816.F32.BF16", mma("m16n8k16.row.col.f32.bf16.bf16.f32", "f", [4, 4, 2]), 25),
        ("HMMA.1688.F32.TF32", mma("m16n8k8.row.col.f32.tf32.tf32.f32", "f", [4, 4, 2]), 25),
        ("IMMA.16832.S8.S8", mma("m16n8k32.row.col.s32.s8.s8.s32", "r", [4, 4, 2]), 25),
        ("IMMA.16816.S8.S8", mma("m16n8k16.row.col.s32.s8.s8.s32", "r", [4, 2, 1]), 18),
    ] {
        let in_trace = added("ampere-a100", "", traced, |_| format!("1 R4 {opcode} 3 R8 R16 R4 0"));
        let in_ptx = added("ampere-a100", "", written, |_| ptx.clone());
        assert_eq!([in_trace, in_ptx], [MORE as u64 * latency; 2], "{opcode}");
    }
}

#[test]
fn a_machine_with_other_times_has_them_in_traces_to_the_cycle() {
    let keys =
        "tensor.matrix_cycles=40 tensor.matrix_interval_cycles=9 tensor.half_cycles=23 tensor.half_interval_cycles=5";
    for (opcode, latency, interval) in
        [("HMMA.16816.F32", 40, 9), ("IMMA.16832.S8.S8", 40, 9), ("HMMA.1688.F32", 23, 5), ("DMMA.884", 23, 5)]
    {
        let chain = added("titan-x", keys, traced, |_| format!("1 R4 {opcode} 3 R8 R16 R4 0"));
        // Sixteen sums take turns: none is read before its latency is over.
        let apart = |at: usize| 32 + 4 * (at % 16);
        let stream =
            added("titan-x", keys, traced, |at| format!("1 R{} {opcode} 3 R8 R16 R{} 0", apart(at), apart(at)));
        assert_eq!([chain, stream], [latency, interval].map(|cycles| MORE as u64 * cycles), "{opcode}");
    }
}

#[test]
fn a_product_waits_for_every_register_of_its_operands() {
    // R11 is the last of a, R17 of b, R7 of the sums. A square root takes as long as it takes.
    let wait = |register: u32, opcode: &str| {
        added("ampere-a100", "", traced, |at| match at % 2 {
            0 => format!("1 R{register} MUFU.RSQ 1 R4 0"),
            _ => format!("1 R4 {opcode} 3 R8 R16 R4 0"),
        })
    };
    let free = wait(12, "HMMA.16816.F32");
    for register in [11, 17, 7] {
        assert!(wait(register, "HMMA.16816.F32") > free, "R{register}");
    }
    // Half the work has two registers of a, and one of b.
    let free = wait(12, "HMMA.1688.F32");
    assert_eq!([wait(10, "HMMA.1688.F32"), wait(17, "HMMA.1688.F32")], [free; 2]);
}

#[test]
fn products_of_traces_are_counted_and_a_shape_without_a_time_is_told() {
    let lines = ["HMMA.16816.F32", "HMMA.1688.F32", "IMMA.8816.S8.S8", "TEX.LL"];
    let (_folder, recipe) = traced(&lines.map(|opcode| format!("1 R4 {opcode} 2 R8 R16 0")));
    let outcome = outcome(recipe, "ampere-a100", "");
    let counted = ["matrix_instructions", "matrix_half_instructions"].map(|name| outcome.total("tensor", name));
    assert_eq!(counted, [1, 2]);
    let stood_in = serde_json::json!({ "IMMA.8816 as HMMA.1688": 1, "TEX as MOV": 1 });
    assert_eq!(outcome.workload["trace"]["stood_in"], stood_in);
    let caveats: Vec<&str> = outcome.validity.iter().map(|caveat| caveat.text.as_str()).collect();
    let told = "what is a MOV or a NOP accesses no memory: 1 IMMA.8816 as HMMA.1688, 1 TEX as MOV";
    assert!(caveats.iter().any(|text| text.ends_with(told)), "{caveats:?}");
}

#[test]
fn a_machine_without_tensor_cores_refuses_products_of_traces_unless_a_table_says_what_they_are() {
    let (folder, recipe) = traced(&["1 R4 HMMA.16816.F32 3 R8 R16 R4 0".to_owned()]);
    let fault = recipe.clone().machine("titan-x").run().map(drop).unwrap_err().to_string();
    for part in ["kernel-1.traceg:11:1: kernel `chain` multiplies matrices", "machines that have: volta-v100"] {
        assert!(fault.contains(part), "{part}: {fault}");
    }
    let table = folder.path().join("table.toml");
    std::fs::write(&table, "HMMA = \"FFMA\"\n").unwrap();
    let outcome = outcome(recipe.set("opcodes", table.display()), "titan-x", "");
    assert_eq!(outcome.total("sm", "fp32_instructions"), 1);
    assert_eq!(outcome.workload["trace"]["renamed"], serde_json::json!({ "HMMA as FFMA": 1 }));
}
