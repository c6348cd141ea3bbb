//! Programs of CPUs that are simulated in part: regions of interest are what the whole run has there, samples
//! come close to the whole and say how close, and what cannot be simulated without the rest is refused.

use durawarp::Experiment;
use durawarp::outcome::{End, Outcome, SampledProcess, SimulatedRegion};
use durawarp::riscv::elf::Function;
use durawarp::run::{AnyExperiment, Conduct, CpuExperiment, Extent, Recipe, RegionOfInterest, run_cpu};

use crate::common::{CODE, program};
use crate::encoding::branch::BNE;
use crate::encoding::{addi, b_type, i_type, jal, li, opcode};

fn recipe(name: &str, profile: &str) -> Recipe {
    let path = format!("{}/workloads/{name}", env!("CARGO_MANIFEST_DIR"));
    Experiment::of(path).machine("lightwsp-cpu").profile(profile).set("params.THREADS", 1)
}

fn outcome(recipe: Recipe) -> Outcome {
    on_threads(recipe, 1)
}

fn on_threads(recipe: Recipe, threads: usize) -> Outcome {
    let experiment = recipe.build_any().unwrap_or_else(|faults| panic!("{faults}"));
    let found = experiment.run(&Conduct { threads, oversubscribe: true, ..Conduct::default() }).outcome;
    assert_eq!(found.end, End::Finished);
    assert!(found.verification.as_ref().unwrap().passed, "{:?}", found.verification);
    found
}

fn region(outcome: &Outcome) -> &SimulatedRegion {
    outcome.region.as_ref().unwrap()
}

fn sampled(outcome: &Outcome) -> &SampledProcess {
    outcome.sampling.as_ref().unwrap().process.as_ref().unwrap()
}

#[test]
fn a_region_that_is_everything_is_the_whole_run() {
    for (name, scheme) in [("stencil_cpu", "base"), ("hash", "base"), ("hash", "sync"), ("sps", "sync")] {
        let recipe = || recipe(name, "ci").scheme(scheme);
        let (whole, all) = (outcome(recipe()), outcome(recipe().set("roi", "instructions=0..")));
        assert_eq!((all.time, &all.memory_digest), (whole.time, &whole.memory_digest), "{name}");
        assert_eq!(
            (&all.counters, &all.energy, &all.devices),
            (&whole.counters, &whole.energy, &whole.devices),
            "{name}"
        );
        assert_eq!(all.process, whole.process, "{name}");
        let kinds = |outcome: &Outcome| outcome.validity.iter().map(|caveat| caveat.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&all), kinds(&whole), "no caveat: nothing is left out");
    }
}

#[test]
fn regions_that_follow_each_other_add_up_to_the_whole() {
    for (name, scheme) in [("stencil_cpu", "base"), ("hash", "sync"), ("treap", "base")] {
        let of = |roi: &str| outcome(recipe(name, "default").scheme(scheme).set("roi", roi));
        let until = |to: u64| of(&format!("instructions=0..{to}")).time.core_cycles;
        let (before, after) = (until(600_000), until(900_000));
        let between = of("instructions=600_000..900_000");
        let (expected, found) = (after - before, between.time.core_cycles);
        // What was seen is 0.3 % and less: a machine that begins there is warm.
        assert!(found.abs_diff(expected) * 100 < expected, "{name}: {found} for {expected}");
        let region = region(&between);
        assert_eq!(
            (region.from_instruction, region.to_instruction, region.warm_up_instructions),
            (600_000, 900_000, 50_000)
        );
        assert!(region.instructions.abs_diff(300_000) < 300, "{region:?}");
        assert!(between.validity[0].text.contains("instructions 600000 to 900000 of"), "{:?}", between.validity[0]);
    }
}

#[test]
fn parts_are_the_same_at_any_number_of_threads() {
    for set in [("roi", "instructions=130_000..160_000"), ("roi", "function=work"), ("sample", "2")] {
        let of = |threads| {
            on_threads(recipe("sps", "default").scheme("sync").set("params.OPS", 300).set(set.0, set.1), threads)
        };
        let one = of(1);
        for threads in [2, 8] {
            let other = of(threads);
            assert_eq!((&one.digest, one.time, &one.counters), (&other.digest, other.time, &other.counters), "{set:?}");
            assert_eq!((&one.sampling, &one.region), (&other.sampling, &other.region), "{set:?}");
        }
    }
}

#[test]
fn samples_come_close_to_the_whole_and_their_interval_holds_it() {
    for (name, scheme) in [("stencil_cpu", "base"), ("sps", "sync")] {
        let recipe = || recipe(name, "default").scheme(scheme);
        let (whole, sample) = (outcome(recipe()), outcome(recipe().sample(2)));
        assert_eq!(sample.memory_digest, whole.memory_digest, "{name}");
        let (found, truth) = (sample.time.core_cycles, whole.time.core_cycles);
        assert!(found.abs_diff(truth) * 100 < 4 * truth, "{name}: {found} for {truth}");
        let sampling = sample.sampling.as_ref().unwrap();
        assert!((sampling.low.core_cycles..=sampling.high.core_cycles).contains(&truth), "{name}: {sampling:?}");
        let of = sampled(&sample);
        assert!(of.instructions_in_detail * 10 < of.instructions * 6 && of.phases.len() > 1, "{of:?}");
        assert!(of.phases.iter().all(|phase| phase.intervals_in_detail >= phase.intervals.min(3)), "{of:?}");
        let [counted, all] = [&sample, &whole].map(|outcome| outcome.total("core", "instructions"));
        assert!(counted.abs_diff(all) * 200 < all, "{name}: {counted} of {all} instructions");
        assert_eq!(sample.validity[0].kind, durawarp::outcome::validity::Kind::Sampled);
    }
}

#[test]
fn where_little_would_be_skipped_a_sampled_program_is_exact() {
    let (whole, sample) = (outcome(recipe("treap", "ci")), outcome(recipe("treap", "ci").sample(4)));
    assert_eq!((sample.time, &sample.counters), (whole.time, &whole.counters));
    assert!(sample.sampling.as_ref().unwrap().is_whole() && sample.validity[0].text.contains("times are exact"));
}

/// A program of these words in place of a built-in one, to be simulated in part.
fn words(words: &[u32], region: &str) -> Outcome {
    let Ok(AnyExperiment::Cpu(mut experiment)) = recipe("hash", "ci").build_any() else { panic!("of CPUs") };
    let process = program(words);
    experiment.program.image = (*process.image).clone();
    let function = |name: &str, at: u64| Function { address: CODE + at, bytes: 0, name: name.to_owned() };
    experiment.program.image.functions =
        vec![function("main", 0), function("recursive", 4 * 8), function("never", 4 * 30)];
    experiment.program.start = process.start.clone();
    experiment.program.checks.clear();
    let region: RegionOfInterest = region.parse().unwrap();
    let experiment = CpuExperiment { extent: Extent::Region(region), ..*experiment };
    run_cpu(&experiment, &Conduct::default()).outcome
}

const A0: u32 = 10;
const A7: u32 = 17;
const RA: u32 = 1;
const T0: u32 = 5;

/// A hint, which may be a marker.
fn hint(number: i32) -> u32 {
    i_type(opcode::IMMEDIATE, 2, 0, 0, number)
}

/// A region by markers, with another begin in it; then `recursive(2)`, which calls itself once.
fn marked() -> Vec<u32> {
    vec![
        hint(2),               // 0: ends nothing
        hint(1),               // 1: begins
        hint(1),               // 2: begins nothing more
        hint(3),               // 3: no marker
        hint(2),               // 4: ends
        li(A0, 2),             // 5
        jal(RA, 8),            // 6: calls recursive
        jal(0, 4 * 11),        // 7: to the exit
        addi(2, 2, -16),       // 8: recursive
        0x0011_3023,           // 9: sd ra, 0(sp)
        addi(A0, A0, -1),      // 10
        b_type(BNE, A0, 0, 8), // 11: over the jump
        jal(0, 8),             // 12
        jal(RA, 4 * -5),       // 13: recursive
        0x0001_3083,           // 14: ld ra, 0(sp)
        addi(2, 2, 16),        // 15
        0x0000_8067,           // 16: ret
        addi(T0, T0, 1),       // 17
        li(A0, 0),             // 18
        li(A7, 93),            // 19
        0x0000_0073,           // 20: exit
    ]
}

#[test]
fn markers_and_functions_bound_a_region() {
    let bounds = |roi: &str| {
        let outcome = words(&marked(), roi);
        assert_eq!(outcome.end, End::Finished);
        let region = region(&outcome);
        (region.from_instruction, region.to_instruction)
    };
    assert_eq!(bounds("markers"), (2, 4));
    // Both calls: 5 instructions to the inner one, the 8 of that, 3 to return.
    assert_eq!(bounds("function=recursive"), (7, 7 + 5 + 8 + 3));
    assert_eq!(bounds("instructions=3..5"), (3, 5));
    assert_eq!(bounds("instructions=3.."), (3, 27));
}

#[test]
fn a_region_that_never_comes_is_told() {
    let error = |of: &[u32], roi: &str| match words(of, roi).end {
        End::Failed { error } => error,
        end => panic!("{end:?}"),
    };
    assert!(error(&marked(), "function=never").contains("never calls `never`"));
    assert!(error(&marked(), "instructions=5000..").contains("ends after 27 instructions, before the region begins"));
    assert!(error(&marked()[5..], "markers").contains("never executes the marker that begins a region"));
}

#[test]
fn what_cannot_be_simulated_without_the_rest_is_refused() {
    let told = |recipe: Recipe| recipe.build_any().unwrap_err().to_string();
    let threads = recipe("hash", "ci").set("params.THREADS", 4);
    for part in [("sample", "4"), ("roi", "markers")] {
        assert!(told(threads.clone().set(part.0, part.1)).contains("has 4 threads"));
        for scheme in ["light-wsp", "ppa", "capri", "cwsp"] {
            let text = told(recipe("hash", "ci").scheme(scheme).set(part.0, part.1));
            assert!(text.contains("all memory is persistent"), "{scheme}: {text}");
        }
        let text = told(recipe("hash", "ci").max_cycles(5).set(part.0, part.1));
        assert!(text.contains("ends with it, and not after cycles"), "{text}");
    }
    let text = told(recipe("hash", "ci").set("roi", "function=wrok"));
    assert!(text.contains("has no function `wrok`") && text.contains("did you mean `work`?"), "{text}");
    assert!(told(recipe("hash", "ci").set("roi", "here")).contains("expected markers, instructions=FROM..TO"));
    let both = told(recipe("hash", "ci").sample(4).set("roi", "markers"));
    assert!(both.contains("take out `roi` or `sample`"), "{both}");
    let kernels = told(Experiment::of("vecadd").set("roi", "markers"));
    assert!(kernels.contains("regions of interest are of programs of CPUs"), "{kernels}");
}
