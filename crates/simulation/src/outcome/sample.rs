//! An outcome by hand, for tests of what is derived from one: no two of its numbers are the same by accident.

use serde_json::json;

use super::*;

/// Counters of a kind: the name and a value for each component.
fn table<const N: usize>(kind: &str, counters: &[(&str, [u64; N])]) -> Table {
    Table {
        kind: kind.to_owned(),
        names: counters.iter().map(|(name, _)| (*name).to_owned()).collect(),
        docs: counters.iter().map(|_| String::new()).collect(),
        rows: (0..N).map(|component| counters.iter().map(|(_, values)| values[component]).collect()).collect(),
    }
}

/// Two SMs.
const SM: [(&str, [u64; 2]); 32] = [
    ("warp_instructions", [13_000, 12_000]),
    ("thread_instructions", [390_000, 387_000]),
    ("l1_loads", [3_000, 1_000]),
    ("l1_hits", [1_900, 1_000]),
    ("l1_stores", [1_100, 1_207]),
    ("l1_bypasses", [30, 12]),
    ("l1_cleanings", [310, 5]),
    ("l1_cleanings_early", [40, 8]),
    ("pm_stores", [400, 203]),
    ("pm_log_stores", [200, 40]),
    ("pm_log_stores_past", [50, 21]),
    ("pm_log_stores_dropped", [0, 0]),
    ("pm_write_backs", [300, 51]),
    ("pm_fences", [60, 34]),
    ("pm_barriers_wi", [20, 4]),
    ("pm_barriers_wi_stall", [1_000, 260]),
    ("pm_barriers_wg", [7, 9]),
    ("pm_barriers_wg_stall", [3_000, 920]),
    ("pm_barriers_kr", [0, 0]),
    ("pm_barriers_kr_stall", [0, 0]),
    ("persists", [300, 112]),
    ("bytes_out", [70_000, 1_234]),
    ("bytes_in", [90_000, 2_345]),
    ("slots_resident", [400_000, 100_000]),
    ("slots_issued", [16_000, 10_000]),
    ("slots_memory", [100_000, 49_000]),
    ("slots_execution", [40_000, 20_000]),
    ("slots_memory_full", [30_000, 5_000]),
    ("slots_unit_busy", [30_000, 1_000]),
    ("slots_not_selected", [40_000, 5_000]),
    ("slots_barrier", [13_000, 7_000]),
    ("slots_fence", [22_000, 20_000]),
];

/// What warps of the two SMs did in the rest of their slots.
const SM_REST: [(&str, [u64; 2]); 2] = [("slots_persist", [35_000, 18_000]), ("slots_draining", [24_000, 8_000])];

const L2: [(&str, [u64; 2]); 5] = [
    ("reads", [1_200, 800]),
    ("read_hits", [300, 190]),
    ("writes", [900, 700]),
    ("write_hits", [600, 408]),
    ("atomics", [70, 7]),
];

/// Three channels.
const CONTROLLERS: [(&str, [u64; 3]); 6] = [
    ("dram_read_bytes", [600_000, 400_000, 200_000]),
    ("dram_written_bytes", [100_000, 90_000, 38_571]),
    ("nvm_read_bytes", [100_000, 90_000, 110_000]),
    ("nvm_written_bytes", [7_143, 20_000, 30_000]),
    ("wpq_entry_ticks", [1_000_000, 240_000, 200_000]),
    ("refreshes", [5, 4, 3]),
];

/// A time at 1.4 GHz and five ticks a cycle.
pub fn cycles(core_cycles: u64) -> Duration {
    Duration { ticks: core_cycles * 5, ps: core_cycles * 5_000 / 7, core_cycles }
}

/// Times in ns; seven ticks are one.
fn spread(count: u64, sum_ns: u32, [p50_ns, p90_ns, p99_ns, max_ns]: [f64; 4]) -> Spread {
    let sum_ticks = u64::from(sum_ns) * 7;
    Spread { count, sum_ticks, sum_ns: sum_ns.into(), p50_ns, p90_ns, p99_ns, max_ns }
}

fn stage(name: &str, meaning: &str, spread: Spread) -> Stage {
    Stage { name: name.to_owned(), meaning: meaning.to_owned(), spread }
}

/// 400 persists, 90 fences, 12 boundaries.
fn persists() -> Persists {
    Persists {
        stages: vec![
            stage("lsu", "a place", spread(400, 30_200, [60.0, 80.0, 95.5, 120.0])),
            stage("media", "its cells", spread(400, 70_400, [150.0, 310.0, 420.5, 1_130.0])),
        ],
        total: spread(400, 100_600, [210.0, 390.0, 515.5, 1_234.0]),
        fences: spread(90, 27_000, [250.0, 600.0, 700.5, 800.0]),
        boundaries: spread(12, 6_012, [450.0, 870.0, 910.5, 950.0]),
        distributions: Distributions::default(),
    }
}

fn launch(kernel: &str, [grid, block]: [[u32; 3]; 2], [ctas_per_sm, start, length]: [u32; 3]) -> Launch {
    Launch {
        kernel: kernel.to_owned(),
        stream: None,
        grid,
        block,
        ctas_per_sm,
        limited_by: "registers".to_owned(),
        l1_kb: None,
        shared_kb: None,
        start: cycles(start.into()),
        length: cycles(length.into()),
        counters: BTreeMap::new(),
    }
}

/// A run of 10,000 cycles at 1.4 GHz.
pub fn sample() -> Outcome {
    let entries = Parameter { value: json!(64), source: "a data sheet".to_owned() };
    let banks = Parameter { value: json!(16), source: "chosen".to_owned() };
    Outcome {
        schema: SCHEMA,
        version: "1.2.3".to_owned(),
        machine: Machine {
            name: "small".to_owned(),
            description: "by hand".to_owned(),
            parameters: BTreeMap::from([
                ("controller.write_queue_entries".to_owned(), entries),
                ("nvm.banks".to_owned(), banks),
            ]),
            peak_memory_bytes_per_s: 400_000_000_000,
            peak_issue_per_cycle: 12,
            warp_slots: 128,
            // Five ticks a core cycle: a time in ticks that is taken for one in cycles shows.
            core_khz: 1_400_000,
            tick_khz: 7_000_000,
        },
        scheme: "base".to_owned(),
        scheme_variant: None,
        scheme_logs: true,
        scheme_parameters: BTreeMap::new(),
        // Parameters are numbers or texts in manifests: one of each.
        workload: json!({ "workload": "nw", "profile": "ci", "params": { "N": 64, "MODE": "fast" } }),
        end: End::Finished,
        time: cycles(10_000),
        process: None,
        launches: vec![
            launch("fill", [[6, 1, 1], [32, 4, 1]], [2, 100, 1_500]),
            launch("nw", [[5, 3, 1], [8, 4, 2]], [4, 1_700, 8_200]),
        ],
        kernels: Vec::new(),
        counters: vec![
            table("sm", &[&SM[..], &SM_REST].concat()),
            table("l2", &L2),
            table("memory_controller", &CONTROLLERS),
        ],
        races: None,
        sampling: None,
        region: None,
        streams: None,
        from_checkpoint: None,
        devices: None,
        energy: None,
        wear: None,
        persists: Some(persists()),
        backlog: None,
        scheme_report: None,
        scheme_counters: BTreeMap::new(),
        warnings: Vec::new(),
        validity: Vec::new(),
        verification: Some(Verification { passed: true, checks: json!({}), failures: Vec::new() }),
        // The digests differ from each other, so that a report that mixes them up fails its test.
        digest: "d1".to_owned(),
        memory_digest: "d2".to_owned(),
        engine: Engine { events: 84_000, messages: 51_000, rounds: 700, lookahead_ticks: 35, parallelism_bound: 5.3 },
        host: Host {
            threads: 4,
            threads_asked: 8,
            wall_s: 0.5,
            blocked_share: 0.137,
            functional_s: 0.04,
            launches_s: Vec::new(),
        },
    }
}

/// A sample of which a quarter was simulated, without a spread.
pub fn sampled() -> Sampling {
    Sampling {
        windows: 4,
        low: cycles(10_000),
        high: cycles(10_000),
        kernels: Vec::new(),
        ctas: 100,
        ctas_in_detail: 25,
        warp_instructions: 25_000,
        warp_instructions_in_detail: 7_000,
        stretches: 6,
        process: None,
    }
}

/// An outcome of a machine of one core with these counters, whose process wrote a word.
pub fn cores(counters: &[(&str, u64)]) -> Outcome {
    let core = Table {
        kind: "core".to_owned(),
        names: counters.iter().map(|(name, _)| (*name).to_owned()).collect(),
        docs: counters.iter().map(|(name, _)| format!("What {name} are (slots)")).collect(),
        rows: vec![counters.iter().map(|(_, value)| *value).collect()],
    };
    let process = ProcessOutcome { exit_code: Some(3), stdout: "hello\n".to_owned(), ..ProcessOutcome::default() };
    let (launches, persists) = (Vec::new(), None);
    let counters = vec![core, table("memory_controller", &CONTROLLERS)];
    Outcome { counters, process: Some(process), launches, persists, ..sample() }
}

/// The same outcome, as if `scheme` had run it in `core_cycles` cycles.
pub fn under(scheme: &str, core_cycles: u64) -> Outcome {
    Outcome { scheme: scheme.to_owned(), time: cycles(core_cycles), ..sample() }
}

/// Sets a counter of the first component; those of the others become 0.
pub fn set(outcome: &mut Outcome, kind: &str, name: &str, value: u64) {
    let table = outcome.counters.iter_mut().find(|table| table.kind == kind).unwrap();
    let column = table.names.iter().position(|own| own == name).unwrap();
    table.rows.iter_mut().enumerate().for_each(|(row, values)| values[column] = if row == 0 { value } else { 0 });
}
