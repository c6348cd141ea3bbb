//! Host steps outside simulated time: reductions into variables of the host program, and warm starts of the L2.

use crate::workload_common::{ADD_AND_TAKE, folder, load, resolve};
use durawarp::kernel::functional::Limits;
use durawarp::outcome::Outcome;
use durawarp::run::{Conduct, Experiment, run};
use durawarp::schemes::catalogue;

const BUFFERS: &str = r#"schema = 1
name = "reduce"
description = "steps"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 64
[buffer.a]
type = "u32"
len = "N"
init = { kind = "expr", expr = "abs(idx - 40) + 3" }
[buffer.b]
type = "f32"
len = 4
init = { kind = "expr", expr = "0.5 * idx - 1" }
[buffer.pairs]
len = 3
fields = [
    { name = "key", type = "u8" },
    { name = "value", type = "i16", init = { kind = "expr", expr = "idx * 7 - 9" } },
]
[buffer.left]
type = "u32"
len = 1
init = { kind = "const", value = 4 }
[buffer.out]
type = "i64"
len = 4
"#;

const ADD: &str = "[[step]]\nkernel = \"add\"\ngrid = 2\nblock = 32\nargs = [\"&a\", 1, \"N\"]\n";

/// Content of `out` after a functional run, or why there is none.
fn out(test: &str, steps: &str) -> Result<Vec<i64>, String> {
    let manifest = format!("{BUFFERS}{steps}");
    let resolved = resolve(&folder(test, &[("workload.toml", &manifest), ("kernel.ptx", ADD_AND_TAKE)]))?;
    let run = resolved.run_functional(&Limits::default()).map_err(|error| {
        let text = error.to_string();
        text.rsplit_once("workload.toml:").map_or(text.clone(), |(_, fault)| fault.to_owned())
    })?;
    let bytes = resolved.dump("out", run.memory(), run.bindings()).unwrap();
    Ok(bytes.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect())
}

fn reduce(buffer: &str, op: &str, into: &str, more: &str) -> String {
    format!("[[step]]\nreduce = \"{buffer}\"\nop = \"{op}\"\ninto = \"{into}\"\n{more}\n")
}

fn store(at: u32, value: &str) -> String {
    format!("[[step]]\nfill = \"out\"\nindex = {at}\ncount = 1\nvalue = \"{value}\"\n")
}

#[test]
fn a_reduction_leaves_one_number_of_the_elements_in_a_variable() {
    // |idx - 40| + 3: 43 at element 0, 3 at element 40, and 820 + 276 + 3 * 64 together.
    let steps = ["sum", "min", "max", "argmax"].into_iter().enumerate();
    let steps: String = steps.map(|(at, op)| reduce("a", op, op, "") + &store(at as u32, op)).collect();
    // Such names are functions, too: as names they are free.
    assert_eq!(out("reduce-all", &steps), Ok(vec![1288, 3, 43, 0]));
    let part = "index = \"@left[0] * 11\"\ncount = 20";
    let part = reduce("a", "argmax", "x", part) + &reduce("pairs", "sum", "y", "field = \"value\"");
    let floats = reduce("b", "sum", "z", "") + &reduce("b", "max", "z", "index = 1\ncount = 1");
    let stores = store(0, "x") + &store(1, "y") + &store(2, "int(z * 10)") + &store(3, "x - y");
    assert_eq!(out("reduce-parts", &(part + &floats + &stores)), Ok(vec![63, -6, -5, 69]));
}

#[test]
fn a_variable_is_0_at_first_and_ends_loops_as_elements_do() {
    let take = "[[loop.step]]\nkernel = \"take\"\ngrid = 1\nblock = 1\nargs = [\"&left\", \"&a\"]\n";
    let until = format!(
        "{}[[loop]]\nuntil = \"rest == 1\"\nvar = \"turn\"\n{take}\
         [[loop.step]]\nreduce = \"left\"\nop = \"sum\"\ninto = \"rest\"\n\
         [[loop.step]]\nfill = \"out\"\nindex = 1\nvalue = \"turn\"\ncount = 1\n{}",
        store(0, "rest + 5"),
        store(2, "rest")
    );
    assert_eq!(out("reduce-until", &until), Ok(vec![5, 2, 1, 0]));
    let before = "before = [{ reduce = \"left\", op = \"max\", into = \"most\" }]";
    let counted = format!("[[loop]]\ncount = 2\n{before}\n{take}{}", store(0, "most"));
    assert_eq!(out("reduce-before", &counted), Ok(vec![3, 0, 0, 0]));
}

#[test]
fn reductions_that_mean_nothing_are_faults() {
    let fault = |test: &str, steps: &str| out(test, steps).unwrap_err();
    let twice = reduce("a", "sum", "N", "") + &reduce("b", "sum", "x", "") + &reduce("b", "argmax", "x", "");
    assert_eq!(
        fault("reduce-names", &twice),
        "31:8: `N` already has a meaning here (choose another name for the variable)\n\
         41:8: `x` is an integer in one step and a float in another (two names keep them apart)"
    );
    assert_eq!(
        fault("reduce-words", &(reduce("pairs", "avg", "a b", "") + &reduce("pairs", "max", "y", "field = \"valeu\""))),
        "30:6: `op` must be one of `sum`, `min`, `max`, `argmax`, found `avg`\n\
         31:8: `a b` is not a name: a letter or `_`, then letters, digits and `_`\n\
         37:9: there is no field `valeu` (did you mean `value`?)"
    );
    assert_eq!(
        fault("reduce-field", &reduce("pairs", "max", "y", "")),
        "28:1: a buffer of structures is reduced field by field: the key `field` is missing (one of `key`, `value`)"
    );
    assert_eq!(
        fault("reduce-none", &reduce("a", "min", "y", "count = 0")),
        "28:1: there is no element of `a` to choose from"
    );
    let large = format!("[[step]]\nfill = \"out\"\nvalue = \"{}\"\n{}", i64::MAX, reduce("out", "sum", "y", ""));
    assert_eq!(fault("reduce-large", &large), "31:1: the result over `out` does not fit a signed 64-bit integer");
    assert_eq!(fault("reduce-unknown", &store(0, "total")), "32:10: `total` is not defined here (defined here: N)");
    assert_eq!(
        fault("warm-unknown", "[[step]]\nwarm = [\"a\", \"lefft\"]\n"),
        "29:14: there is no buffer `lefft` (did you mean `left`?)"
    );
}

/// A timed run of `BUFFERS` with these steps, which must pass.
fn timed(test: &str, steps: &str, scheme: &str, settings: &[&str]) -> Outcome {
    timed_on("agpm-table4", test, steps, scheme, settings, &Conduct::default())
}

fn timed_on(machine: &str, test: &str, steps: &str, scheme: &str, settings: &[&str], conduct: &Conduct<'_>) -> Outcome {
    let manifest = format!("{BUFFERS}{steps}");
    let folder = folder(test, &[("workload.toml", &manifest), ("kernel.ptx", ADD_AND_TAKE)]);
    let recipe = Experiment::of(load(&folder).unwrap()).machine(machine).scheme(scheme).set("sm.count", 2);
    let made = recipe.changes(settings).build();
    let outcome = run(&made.unwrap_or_else(|faults| panic!("{faults}")), conduct).outcome;
    let verification = outcome.verification.as_ref().unwrap_or_else(|| panic!("{test}: {:?}", outcome.end));
    assert!(verification.passed, "{test}: {:?}", verification.failures);
    outcome
}

/// What a run took, and what it did to the memory system.
fn cost(outcome: &Outcome) -> (u64, [u64; 4]) {
    let count = |kind, name| outcome.total(kind, name);
    let memory = count("memory_controller", "dram_reads") + count("memory_controller", "nvm_reads");
    (outcome.time.core_cycles, [count("l2", "reads"), count("l2", "fetches"), count("l2", "writebacks"), memory])
}

#[test]
fn a_reduction_sees_what_kernels_left_in_the_caches_and_costs_nothing_under_any_scheme() {
    // The sum decides what is stored at the end: the functional run stores the same.
    let sums = reduce("a", "sum", "total", "") + &reduce("a", "argmax", "at", "");
    let [with, without] = [("total + at", sums.as_str()), ("1416", "")].map(|(value, sums)| {
        let steps = format!("{ADD}{sums}{ADD}{}{sums}", store(0, value));
        catalogue::all()
            .into_iter()
            .map(move |scheme| (scheme.name(), timed("reduce-timed", &steps, scheme.name(), &[])))
    });
    for ((name, with), (_, without)) in with.zip(without) {
        match name {
            // What the host saw goes to its record, so that it can go on after a power failure.
            "light-wsp" => assert_eq!(cost(&with).1, cost(&without).1, "{name}"),
            _ => assert_eq!(cost(&with), cost(&without), "{name}"),
        }
    }
}

#[test]
fn reading_an_element_costs_a_line_read_through_the_l2() {
    let steps = |value: &str| format!("{ADD}{}", store(0, value));
    // Element 0 of `a` is 44 after the launch, `left` is 4.
    let read = timed("read-timed", &steps("@a[0] + @left[0] - 4"), "base", &[]);
    let none = timed("read-timed", &steps("44"), "base", &[]);
    assert!(read.time.core_cycles > none.time.core_cycles + 100, "{} cycles", read.time.core_cycles);
    assert_eq!(read.total("l2", "reads"), none.total("l2", "reads") + 2);
}

/// `a` is 64 elements, two lines of 128 bytes; `big` is 4 MB, twice the L2.
const BIG: &str = "[buffer.big]\ntype = \"u32\"\nlen = 1_048_576\n";

#[test]
fn a_warm_start_makes_the_first_accesses_hits_and_is_no_access_itself() {
    let warm = "[[step]]\nwarm = \"a\"\n";
    let [cold, warm] = ["", warm].map(|warm| timed("warm", &format!("{warm}{ADD}"), "base", &[]));
    let hits =
        |outcome: &Outcome| ["reads", "read_hits", "fetches", "warmed_lines"].map(|name| outcome.total("l2", name));
    assert_eq!((hits(&cold), hits(&warm)), ([2, 0, 2, 0], [2, 2, 0, 2]));
    assert_eq!([&cold, &warm].map(|outcome| outcome.total("memory_controller", "dram_reads")), [2, 0]);
    let [cold, warm] = [cold, warm].map(|outcome| outcome.time.core_cycles);
    assert!(warm + 100 < cold, "{warm} of {cold} cycles");
}

#[test]
fn of_more_lines_than_the_l2_holds_the_last_stay_and_dirty_ones_are_kept() {
    // 16 slices of 1,024 lines. The kernel has made the two lines of `a` dirty: they stay, and what they hold counts.
    let warm = "[[step]]\nwarm = [\"b\", \"big\"]\n";
    let last = "[[step]]\nkernel = \"add\"\ngrid = 1\nblock = 32\nargs = [\"&big + 1_048_544\", 1, 32]\n";
    let first = "[[step]]\nkernel = \"add\"\ngrid = 1\nblock = 32\nargs = [\"&big\", 1, 32]\n";
    let fetches = |steps: &str| timed("warm-big", &format!("{BIG}{steps}"), "base", &[]).total("l2", "fetches");
    let of_a = fetches(ADD);
    assert_eq!(fetches(&format!("{ADD}{warm}{ADD}{last}")), of_a, "`a` and the end of `big` are there");
    assert_eq!(fetches(&format!("{ADD}{warm}{first}")), of_a + 1, "the start of `big` is not");
}

#[test]
fn a_warm_start_changes_no_result_under_any_scheme() {
    for scheme in catalogue::all() {
        let steps = format!("{ADD}[[step]]\nwarm = [\"a\", \"b\"]\n{ADD}{}", reduce("a", "sum", "x", ""));
        timed("warm-schemes", &(steps + &store(0, "x")), scheme.name(), &[]);
    }
}

#[test]
fn looks_do_not_depend_on_threads_and_see_what_combining_l1s_had() {
    // `scoped-table2` has lines of 64 bytes, and L1s that keep stores. `big` takes the places of `kept`, whose lines are
    // clean where the kernel's end writes them back.
    let kept = "[buffer.kept]\ntype = \"u32\"\nlen = \"N\"\nspace = \"pm\"\n";
    let add_to_kept = ADD.replace("&a", "&kept");
    let steps = format!(
        "{kept}{ADD}{add_to_kept}[[step]]\nwarm = [\"big\", \"a\"]\n{}{ADD}{add_to_kept}{}{}",
        reduce("a", "sum", "x", ""),
        store(0, "x"),
        reduce("a", "max", "y", "")
    );
    let steps = format!("{BIG}{steps}");
    for scheme in ["base", "epoch-kernel", "nvw-fifo", "epoch-tag", "sbrp"] {
        let [one, three] = [1, 3].map(|threads| {
            let conduct = Conduct { threads, oversubscribe: true, ..Conduct::default() };
            timed_on("scoped-table2", "looks", &steps, scheme, &[], &conduct)
        });
        assert_eq!((one.digest, one.time), (three.digest, three.time), "{scheme}");
    }
}
