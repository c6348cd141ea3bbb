//! Programs of formed kernels: on the timed machine, and going on from what power failures leave, again and again.

use std::sync::Arc;

use crate::workload_common::{ADD_AND_TAKE, folder, load};
use durawarp::config::{MachineConfig, Override};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::memory::{FlatMemory, Medium};
use durawarp::kernel::regions::RegionOptions;
use durawarp::outcome::End;
use durawarp::persist::vocab::{BoundaryAt, CommitRule, RegionRule};
use durawarp::persist::{HandlerPlace, HostHandler, Scheme, SmHandler};
use durawarp::run::{Conduct, Experiment, run};
use durawarp::schemes::baseline::BASE;
use durawarp::workload::{Choice, Demands, FormedProgram, FunctionalError, Resolved, Workload};
use proptest::prelude::*;

/// Kernels are formed; the hardware is that of `base`.
#[derive(Debug)]
struct FormedBase(RegionRule);

impl Scheme for FormedBase {
    fn name(&self) -> &'static str {
        "formed-base"
    }
    fn description(&self) -> &'static str {
        "formed kernels, without hardware for their regions"
    }
    fn sm_handler(&self, place: HandlerPlace) -> Option<Box<dyn SmHandler>> {
        BASE.sm_handler(place)
    }
    fn host_handler(&self) -> Box<dyn HostHandler> {
        BASE.host_handler()
    }
    fn regions(&self) -> Option<RegionRule> {
        Some(self.0)
    }
    fn logs(&self) -> bool {
        false
    }
}

const RULE: RegionRule = RegionRule {
    of_ctas: false,
    commit: CommitRule::Acked,
    threshold_stores: 32,
    unroll: true,
    speculative_unroll: true,
    unroll_factor: 4,
    prune: true,
    uniform_once: false,
    after_sync: true,
    boundary_at: BoundaryAt::Acquires,
    by_sm: false,
};

fn resolved(name: &str, persistent: bool) -> Resolved {
    let choice = Choice::of_profile("ci");
    let demands = Demands { persistent, ..Demands::default() };
    let found = Workload::load(name).and_then(|workload| workload.resolve_under(&choice, demands));
    found.unwrap_or_else(|faults| panic!("{faults}"))
}

fn experiment(workload: Resolved, rule: RegionRule) -> Experiment {
    let machine = MachineConfig::load("agpm-table4", &[Override::parse("sm.count=3").unwrap()]).unwrap();
    let scheme: Arc<dyn Scheme> = Arc::new(FormedBase(rule));
    Experiment::of_resolved(machine, workload, scheme.into()).unwrap_or_else(|faults| panic!("{faults}"))
}

/// The program's own memory is as it should be.
fn compare(memory: &FlatMemory, expected: &FlatMemory, what: &str) {
    for (start, bytes) in expected.ranges() {
        let ours = memory.read(start, bytes.len()).unwrap();
        if let Some(at) = (0..bytes.len()).find(|&i| ours[i] != bytes[i]) {
            panic!("{what}: differs {at} bytes into the range at {start:#x}");
        }
    }
}

#[test]
fn timed_runs_of_formed_kernels_pass_their_checks_and_do_not_depend_on_threads() {
    for name in ["atax", "gemm", "histogram", "gemm_tiled", "bfs", "nw"] {
        let experiment = experiment(resolved(name, true), RULE);
        experiment.check().unwrap();
        let one = run(&experiment, &Conduct::default());
        assert_eq!(one.outcome.end, End::Finished, "{name}");
        let verification = one.outcome.verification.as_ref().unwrap();
        assert!(verification.passed, "{name}: {:?}", verification.failures);
        let three = run(&experiment, &Conduct { threads: 3, oversubscribe: true, ..Conduct::default() });
        let digests = |outcome: &durawarp::outcome::Outcome| (outcome.digest.clone(), outcome.memory_digest.clone());
        assert_eq!(digests(&one.outcome), digests(&three.outcome), "{name}");
        // What the machine left says that everything is done: going on changes nothing, and nothing is done again.
        let formed = experiment.formed(None).unwrap().unwrap();
        let went_on = formed.advance(&one.memory, &Limits::default(), Some(u64::MAX)).unwrap();
        assert!(went_on.finished, "{name}");
        assert_eq!(went_on.memory.read(formed.area().0, 8), one.memory.read(formed.area().0, 8), "{name}: the record");
        compare(&went_on.memory, &experiment.workload.image().clone_from_now(&one.memory), name);
    }
}

trait Now {
    fn clone_from_now(&self, now: &FlatMemory) -> FlatMemory;
}

impl Now for FlatMemory {
    /// The same ranges, with what `now` has in them.
    fn clone_from_now(&self, now: &FlatMemory) -> FlatMemory {
        let mut memory = self.clone();
        for (start, bytes) in memory.ranges_mut() {
            bytes.copy_from_slice(now.read(start, bytes.len()).unwrap());
        }
        memory
    }
}

#[test]
fn buffers_lie_in_persistent_memory_when_all_of_it_is() {
    let media = |persistent| {
        let resolved = resolved("gemm", persistent);
        resolved.addresses().ranges().iter().map(|range| Medium::of(range.start)).collect::<Vec<_>>()
    };
    assert!(media(true).iter().all(|&medium| medium == Medium::Nvm));
    assert!(media(false).contains(&Medium::Dram));
    let formed = resolved("gemm", false).formed(&RegionOptions::default(), &Limits::default()).unwrap();
    assert!(
        formed.obstacles().iter().any(|(what, why)| what == "A" && why.contains("DRAM")),
        "{:?}",
        formed.obstacles()
    );
}

#[test]
fn a_kernel_that_cannot_be_formed_is_told_before_and_by_the_run() {
    let tight: Arc<dyn Scheme> = Arc::new(FormedBase(RegionRule { threshold_stores: 1, ..RULE }));
    let mut experiment = experiment(resolved("vecadd", true), RULE);
    experiment.scheme = tight.into();
    let faults = experiment.check().unwrap_err().to_string();
    assert!(faults.contains("kernel `vecadd` cannot be formed") && faults.contains("at least 2"), "{faults}");
    let End::Failed { error } = run(&experiment, &Conduct::default()).outcome.end else { panic!("it ran") };
    assert!(error.contains("a threshold of 1 stores is too small"), "{error}");
}

/// A program, its memory after a run without failures, and how many persist steps that takes.
struct Program {
    limits: Limits<'static>,
    name: String,
    formed: FormedProgram,
    after: FlatMemory,
    steps: u64,
}

impl Program {
    fn of(name: &str, options: &RegionOptions) -> Program {
        Program::new(name, &resolved(name, true), options, Limits::default())
    }

    fn new(name: &str, resolved: &Resolved, options: &RegionOptions, limits: Limits<'static>) -> Program {
        let after = resolved.run_functional(&limits).unwrap().memory().clone();
        let formed = resolved.formed(options, &limits).unwrap_or_else(|faults| panic!("{faults}"));
        let whole = formed.advance(&formed.image(), &limits, Some(u64::MAX)).unwrap();
        assert!(whole.finished && whole.steps > 0);
        compare(&whole.memory, &after, name);
        Program { limits, name: name.to_owned(), formed, after, steps: whole.steps }
    }

    /// Fails after so many steps, and after so many more, and so on; then goes on to the end.
    fn survive(&self, cuts: &[u64]) -> Result<(), FunctionalError> {
        let mut durable = self.formed.image();
        for &cut in cuts {
            let came = self.formed.advance(&durable, &self.limits, Some(cut))?;
            assert!(came.finished || came.steps == cut, "{} after {} of {cut} steps", self.name, came.steps);
            durable = came.memory;
        }
        let resumed = self.formed.resume(&durable, &self.limits)?;
        assert!(resumed.finished);
        compare(&resumed.memory, &self.after, &format!("{} cut after {cuts:?} of {} steps", self.name, self.steps));
        Ok(())
    }
}

#[test]
fn every_workload_survives_failures_wherever_they_come() {
    let mut random = 1u64;
    let mut below = |most: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % most.max(1)
    };
    for listing in Workload::builtin() {
        let program = Program::of(&listing.name, &RegionOptions::default());
        let obstacles = program.formed.obstacles();
        println!("{}: {} steps, {obstacles:?}", listing.name, program.steps);
        if !obstacles.is_empty() {
            // Copies past the registers have no shadow.
            assert!(
                ["bulk_stream", "gemm_tensor", "tensor_transpose"].contains(&listing.name.as_str()),
                "{obstacles:?}"
            );
            continue;
        }
        let last = program.steps;
        let mut cuts: Vec<Vec<u64>> = vec![vec![0], vec![1], vec![last - 1], vec![last], vec![last / 2, 1, 1, 2]];
        for _ in 0..4 {
            let first = below(last);
            cuts.push(vec![first, below(last - first)]);
        }
        for cut in cuts {
            program.survive(&cut).unwrap_or_else(|fault| panic!("{} {cut:?}: {fault}", listing.name));
        }
    }
}

/// The host reads what launches change, for its loop, for arguments and for sizes; it copies what is changed later, and
/// swaps names. Of every write that it does, something depends on a place that is changed afterwards.
const STEPS: &str = r#"
schema = 1
name = "host"
description = "a host program that looks at what its launches do"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 5
[buffer.a]
type = "u32"
len = "N"
init = { kind = "iota" }
[buffer.b]
type = "u32"
len = "N"
init = { kind = "const", value = 10 }
[buffer.left]
type = "u32"
len = 1
init = { kind = "const", value = 4 }
[buffer.sum]
type = "u32"
len = 1
[[loop]]
while = "@left[0] > 0"
var = "turn"
before = [{ fill = "b", value = "@left[0] + turn", count = 2 }]
[[loop.step]]
kernel = "take"
grid = 1
block = 1
args = ["&left", "&sum"]
[[loop.step]]
reduce = "b"
op = "sum"
into = "seen"
[[loop.step]]
warm = "b"
[[loop.step]]
copy = "a"
to = "b"
count = 3
[[loop.step]]
fill = "a"
value = "turn + 40"
index = 2
count = 1
[[loop.step]]
kernel = "add"
grid = "1 + @left[0]"
block = 4
args = ["&a", "@a[0] + 3 * @sum[0]", "N - turn % 2"]
[[loop.step]]
swap = ["a", "b"]
[[loop.step]]
fill = "a"
value = "(@b[0] + seen) % 100"
count = 1
"#;

#[test]
fn a_host_that_looks_at_the_device_survives_failures_after_every_step() {
    let folder = folder("regions-host", &[("kernel.ptx", ADD_AND_TAKE), ("workload.toml", STEPS)]);
    let demands = Demands { persistent: true, ..Demands::default() };
    let resolved = load(&folder).unwrap().resolve_under(&Choice::default(), demands);
    let resolved = resolved.unwrap_or_else(|faults| panic!("{faults}"));
    let program = Program::new("host", &resolved, &RegionOptions::default(), Limits::default());
    assert!(program.steps > 40, "{}", program.steps);
    for first in 0..=program.steps {
        for second in [0, 1, 2, 3, 7] {
            program.survive(&[first, second]).unwrap_or_else(|fault| panic!("{first} {second}: {fault}"));
        }
    }
    // On the timed machine, too.
    let experiment = experiment(resolved, RULE);
    let finished = run(&experiment, &Conduct::default());
    assert_eq!(finished.outcome.end, End::Finished);
    compare(&finished.memory, &program.after, "timed");
}

#[test]
fn what_no_run_of_the_program_leaves_is_told() {
    let program = Program::of("gemm_tiled", &RegionOptions::default());
    let limits = Limits::default();
    let (start, bytes) = program.formed.area();
    // A counter of the first launch, with its tag in the upper half.
    let middle = program.formed.advance(&program.formed.image(), &limits, Some(program.steps / 2)).unwrap().memory;
    let told = |change: &dyn Fn(&mut FlatMemory)| {
        let mut durable = middle.clone();
        change(&mut durable);
        program.formed.resume(&durable, &limits).unwrap_err().to_string()
    };
    let counters: Vec<u64> =
        (start..start + bytes).step_by(8).filter(|&at| middle.read_u64s(at, 1).unwrap()[0] >> 32 == 1).collect();
    let counter = told(&|memory| memory.write_u32s(counters[0], &[1]).unwrap());
    assert!(counter.contains("thread 0 of CTA 0 has the program counter 1, where no region starts"), "{counter}");
    let launch = told(&|memory| memory.write_u32s(counters[0] + 4, &[9]).unwrap());
    assert!(launch.contains("the program ends before a launch that has begun"), "{launch}");
    let record = told(&|memory| memory.write_u64s(start, &[3]).unwrap());
    assert!(record.contains("entry 3 is none of this program's"), "{record}");
}

#[test]
fn a_launch_that_cannot_be_resumed_is_told_with_the_reason() {
    let options = RegionOptions { scratch: false, ..RegionOptions::default() };
    let program = Program::of("gemm_tiled", &options);
    let why: Vec<&str> = program.formed.obstacles().into_iter().map(|(_, why)| why).collect();
    assert_eq!(why, ["shared memory is not saved", "barriers are not counted"]);
    let fault = program.survive(&[program.steps / 2]).unwrap_err().to_string();
    assert!(fault.contains("`gemm_tiled") && fault.contains("shared memory is not saved"), "{fault}");
    // Before it began and behind its end there is nothing to resume.
    program.survive(&[0]).and_then(|()| program.survive(&[program.steps])).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_failures_are_survived(
        name in prop::sample::select(&["gemm_tiled", "histogram", "pathfinder", "bfs", "nw", "bplus_tree"][..]),
        threshold in prop::sample::select(&[8, 32][..]),
        prune in any::<bool>(),
        uniform_once in any::<bool>(),
        warp_size in prop::sample::select(&[32, 64][..]),
        shares in prop::collection::vec(0.0..1.0f64, 1..4),
    ) {
        let options = RegionOptions {
            threshold_stores: threshold, prune, unroll: prune, uniform_once, ..RegionOptions::default()
        };
        let limits = Limits { warp_size, ..Limits::default() };
        let program = Program::new(name, &resolved(name, true), &options, limits);
        let cuts: Vec<u64> = shares.iter().map(|share| (share * share * program.steps as f64) as u64).collect();
        program.survive(&cuts).unwrap();
    }
}
