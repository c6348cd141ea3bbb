//! A run under the names that GPGPU-Sim and Accel-Sim print, so that scripts which read theirs read ours.
//!
//! ```text
//!   a line with `[build ...]`
//!   of each launch: kernel_name, then its own values, then totals up to its end
//!   totals of the run
//!   GPGPU-Sim: *** exit detected ***          of a run that came to its end: scripts skip others
//! ```
//! Only what means the same is printed: a counter that is not here has no counterpart. `insn` are
//! instructions of threads, as there. DRAM commands there are of 32 B (the atom of GDDR5 and HBM): bytes are
//! divided by that, and NVM counts with DRAM. Loads that skip the L1D are no accesses of it. Atomics are
//! reads of the L2. Source: `gpgpu_sim::gpu_print_stat`, `print_simulation_time` and the regular
//! expressions of Accel-Sim's `util/job_launching/stats/example_stats.yml`, which a test of ours holds.

use std::fmt::Write as _;

use durawarp_base::stats::{CounterSums, Table};
use durawarp_simulation::outcome::{End, Launch, Outcome, ratio};

/// Bytes of a DRAM command.
const ATOM_BYTES: u64 = 32;

/// The run as GPGPU-Sim would print it; empty of a machine without a GPU.
pub fn accelsim(outcome: &Outcome) -> String {
    if outcome.is_of_a_cpu() {
        return String::new();
    }
    let mut out = format!("Counters of durawarp under the names of GPGPU-Sim [build {}]\n", outcome.version);
    let mut so_far = CounterSums::new();
    // In the order of their ends, as there, which is that of the list where none overlap.
    let mut launches: Vec<(usize, &Launch)> = (1..).zip(&outcome.launches).collect();
    launches.sort_by_key(|(_, launch)| launch.start.ticks + launch.length.ticks);
    for (number, (uid, launch)) in launches.into_iter().enumerate() {
        let _ = writeln!(out, "\nkernel_name = {}\nkernel_launch_uid = {uid}", launch.kernel);
        let _ = writeln!(out, "gpu_sim_cycle = {}", launch.length.core_cycles);
        // Without counters by launch there are those of the whole run alone.
        if !launch.counters.is_empty() {
            of_launch(&mut out, outcome, launch);
            launch.counters.iter().for_each(|(name, count)| *so_far.entry(name.clone()).or_default() += count);
            let cycles = launch.start.core_cycles + launch.length.core_cycles;
            let wall_s = outcome.host.launches_s.get(number).copied().unwrap_or(outcome.host.wall_s);
            totals(&mut out, outcome, &so_far, cycles, wall_s);
        }
    }
    let all = outcome.counters.iter().flat_map(Table::totals).collect();
    out.push('\n');
    totals(&mut out, outcome, &all, outcome.time.core_cycles, outcome.host.wall_s);
    match outcome.end {
        End::Cut { .. } => {
            out += "GPGPU-Sim: ** break due to reaching the maximum cycles (or instructions) **\n";
            out += "GPGPU-Sim: *** exit detected ***\n";
        }
        End::Finished => out += "GPGPU-Sim: *** exit detected ***\n",
        _ => {}
    }
    out
}

fn sum(counts: &CounterSums, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| counts.get(*name)).sum()
}

/// Values of one launch, which are not added up.
fn of_launch(out: &mut String, outcome: &Outcome, launch: &Launch) {
    let of = |names: &[&str]| sum(&launch.counters, names);
    let insn = of(&["sm.thread_instructions"]);
    let _ = writeln!(out, "gpu_sim_insn = {insn}");
    let _ = writeln!(out, "gpu_ipc = {:12.4}", ratio(insn, launch.length.core_cycles));
    // As there, an SM counts in cycles in which it has a warp.
    let slots = outcome.machine.warp_slots / (outcome.rows_of("sm") as u64).max(1);
    let occupancy = ratio(of(&["sm.slots_resident"]), of(&["sm.active_cycles"]) * slots);
    let _ = writeln!(out, "gpu_occupancy = {:.4}% ", occupancy * 100.0);
    let seconds = launch.length.ps.max(1) as f64 * 1e-12;
    let _ = writeln!(out, "L2_BW  = {:12.4} GB/Sec", of(&["l2.bytes_out"]) as f64 / seconds / 1e9);
}

/// Values that add up from launch to launch.
fn totals(out: &mut String, outcome: &Outcome, counts: &CounterSums, cycles: u64, wall_s: f64) {
    let of = |names: &[&str]| sum(counts, names);
    let insn = of(&["sm.thread_instructions"]);
    let _ = writeln!(out, "gpu_tot_sim_cycle = {cycles}\ngpu_tot_sim_insn = {insn}");
    let _ = writeln!(out, "gpu_tot_ipc = {:12.4}", ratio(insn, cycles));
    let _ = writeln!(out, "gpu_tot_issued_cta = {}", of(&["sm.ctas"]));
    let _ = writeln!(out, "gpgpu_n_tot_w_icount = {}", of(&["sm.warp_instructions"]));
    // There, stores are accesses of the L1D as well.
    let (loads, hits, merges) = (of(&["sm.l1_loads"]), of(&["sm.l1_hits"]), of(&["sm.l1_merges"]));
    let stores = of(&["sm.l1_stores"]);
    let _ = writeln!(out, "L1D_total_cache_accesses = {}", loads + stores);
    let _ = writeln!(out, "L1D_total_cache_load_misses = {}", loads - hits);
    let mut breakdown = |cache: &str, kind: &str, outcome: &str, count: u64| {
        let _ = writeln!(out, "\t{cache}_cache_stats_breakdown[{kind}][{outcome}] = {count}");
    };
    breakdown("Total_core", "GLOBAL_ACC_R", "HIT", hits);
    breakdown("Total_core", "GLOBAL_ACC_R", "MSHR_HIT", merges);
    breakdown("Total_core", "GLOBAL_ACC_R", "TOTAL_ACCESS", loads);
    breakdown("Total_core", "GLOBAL_ACC_W", "HIT", of(&["sm.l1_store_evictions", "sm.l1_stores_combined"]));
    breakdown("Total_core", "GLOBAL_ACC_W", "TOTAL_ACCESS", stores);
    breakdown("L2", "GLOBAL_ACC_R", "HIT", of(&["l2.read_hits", "l2.atomic_hits"]));
    breakdown("L2", "GLOBAL_ACC_R", "TOTAL_ACCESS", of(&["l2.reads", "l2.atomics"]));
    breakdown("L2", "GLOBAL_ACC_W", "HIT", of(&["l2.write_hits"]));
    breakdown("L2", "GLOBAL_ACC_W", "TOTAL_ACCESS", of(&["l2.writes"]));
    let _ = writeln!(out, "L2_total_cache_accesses = {}", of(&["l2.reads", "l2.writes", "l2.atomics"]));
    let misses = of(&["l2.reads", "l2.writes"]) - of(&["l2.read_hits", "l2.write_hits"]);
    let _ = writeln!(out, "L2_total_cache_misses = {misses}");
    let moved = |way: &str| {
        let bytes = ["dram", "nvm"].map(|medium| of(&[&format!("memory_controller.{medium}_{way}_bytes")]));
        bytes.iter().sum::<u64>() / ATOM_BYTES
    };
    let _ = writeln!(out, "total dram reads = {}\ntotal dram writes = {}", moved("read"), moved("written"));
    speed(out, outcome, (insn, cycles), wall_s);
}

/// The host's time, and what it gives: whole seconds, one at least.
fn speed(out: &mut String, outcome: &Outcome, (insn, cycles): (u64, u64), wall_s: f64) {
    let seconds = wall_s.ceil().max(1.0) as u64;
    let [days, hours, minutes] = [seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60];
    let parts = format!("{days} days, {hours} hrs, {minutes} min, {} sec", seconds % 60);
    let _ = writeln!(out, "gpgpu_simulation_time = {parts} ({seconds} sec)");
    let _ = writeln!(out, "gpgpu_simulation_rate = {} (inst/sec)", insn / seconds);
    let _ = writeln!(out, "gpgpu_simulation_rate = {} (cycle/sec)", cycles / seconds);
    let per_second = (cycles / seconds).max(1);
    let _ = writeln!(out, "gpgpu_silicon_slowdown = {}x", outcome.machine.core_khz * 1_000 / per_second);
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_simulation::outcome::sample::sample;

    /// The sample with what its tables lack, and with counters of its two launches: a third and two thirds.
    fn by_launch() -> Outcome {
        let mut outcome = sample();
        let sms = outcome.counters.iter_mut().find(|table| table.kind == "sm").unwrap();
        for (name, values) in [("ctas", [3, 6]), ("l1_merges", [30, 60]), ("active_cycles", [9_000, 6_000])] {
            sms.names.push(name.to_owned());
            sms.rows.iter_mut().zip(values).for_each(|(row, value)| row.push(value));
        }
        let totals: Vec<(String, u64)> = outcome.counters.iter().flat_map(Table::totals).collect();
        outcome.launches[0].counters = totals.iter().map(|(name, count)| (name.clone(), count / 3)).collect();
        outcome.launches[1].counters = totals.iter().map(|(name, count)| (name.clone(), count / 3)).collect();
        outcome.host.launches_s = vec![61.2, 90.0];
        outcome.host.wall_s = 3_725.1;
        outcome
    }

    /// The values of a name, in the order in which they are printed.
    fn values<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.filter(|(own, _)| own.trim() == name).map(|(_, value)| value.trim()).collect()
    }

    #[test]
    fn counters_have_the_names_and_units_of_gpgpu_sim() {
        let text = accelsim(&by_launch());
        for (name, expected) in [
            ("kernel_name", &["fill", "nw"][..]),
            ("kernel_launch_uid", &["1", "2"]),
            ("gpu_sim_cycle", &["1500", "8200"]),
            // Cycles to the end of each launch; instructions of threads by thirds.
            ("gpu_tot_sim_cycle", &["1600", "9900", "10000"]),
            ("gpu_tot_sim_insn", &["259000", "518000", "777000"]),
            ("gpu_sim_insn", &["259000", "259000"]),
            ("gpu_ipc", &["172.6667", "31.5854"]),
            ("gpu_tot_ipc", &["161.8750", "52.3232", "77.7000"]),
            // A third of 500,000 warp cycles, in a third of 15,000 active cycles of SMs with 64 slots.
            ("gpu_occupancy", &["52.0831%", "52.0831%"]),
            ("gpu_tot_issued_cta", &["3", "6", "9"]),
            ("gpgpu_n_tot_w_icount", &["8333", "16666", "25000"]),
            ("L1D_total_cache_accesses", &["2102", "4204", "6307"]),
            ("L1D_total_cache_load_misses", &["367", "734", "1100"]),
            ("Total_core_cache_stats_breakdown[GLOBAL_ACC_R][HIT]", &["966", "1932", "2900"]),
            ("Total_core_cache_stats_breakdown[GLOBAL_ACC_R][MSHR_HIT]", &["30", "60", "90"]),
            ("Total_core_cache_stats_breakdown[GLOBAL_ACC_R][TOTAL_ACCESS]", &["1333", "2666", "4000"]),
            ("Total_core_cache_stats_breakdown[GLOBAL_ACC_W][TOTAL_ACCESS]", &["769", "1538", "2307"]),
            // 2,000 reads and 77 atomics, 490 hits; 1,600 writes, 1,008 hits.
            ("L2_cache_stats_breakdown[GLOBAL_ACC_R][TOTAL_ACCESS]", &["691", "1382", "2077"]),
            ("L2_cache_stats_breakdown[GLOBAL_ACC_R][HIT]", &["163", "326", "490"]),
            ("L2_cache_stats_breakdown[GLOBAL_ACC_W][TOTAL_ACCESS]", &["533", "1066", "1600"]),
            ("L2_cache_stats_breakdown[GLOBAL_ACC_W][HIT]", &["336", "672", "1008"]),
            ("L2_total_cache_accesses", &["1224", "2448", "3677"]),
            ("L2_total_cache_misses", &["700", "1400", "2102"]),
            // 1,200,000 B of DRAM and 300,000 B of NVM.
            ("total dram reads", &["15625", "31250", "46875"]),
            ("total dram writes", &["2976", "5952", "8928"]),
            (
                "gpgpu_simulation_time",
                &[
                    "0 days, 0 hrs, 1 min, 2 sec (62 sec)",
                    "0 days, 0 hrs, 1 min, 30 sec (90 sec)",
                    "0 days, 1 hrs, 2 min, 6 sec (3726 sec)",
                ],
            ),
            ("gpgpu_silicon_slowdown", &["56000000x", "12727272x", "700000000x"]),
        ] {
            assert_eq!(values(&text, name), expected, "{name}");
        }
        let rates = values(&text, "gpgpu_simulation_rate");
        assert_eq!(rates[..2], ["4177 (inst/sec)", "25 (cycle/sec)"]);
        assert!(text.ends_with("GPGPU-Sim: *** exit detected ***\n"), "{text}");
    }

    #[test]
    fn bandwidth_of_the_l2_is_what_it_sent_over_the_launch() {
        let mut outcome = by_launch();
        // 8,200 cycles at 1.4 GHz are 5,857,142 ps.
        outcome.launches[1].counters.insert("l2.bytes_out".to_owned(), 5_857_142);
        assert_eq!(values(&accelsim(&outcome), "L2_BW"), ["0.0000 GB/Sec", "1000.0000 GB/Sec"]);
    }

    #[test]
    fn only_a_run_that_came_to_its_end_has_the_line_that_scripts_look_for() {
        let exits = |end: End| accelsim(&Outcome { end, ..sample() }).contains("\nGPGPU-Sim: *** exit detected ***\n");
        assert!(exits(End::Finished) && exits(End::Cut { waits: Vec::new() }));
        assert!(!exits(End::Stopped) && !exits(End::Failed { error: String::new() }));
        let cut = accelsim(&Outcome { end: End::Cut { waits: Vec::new() }, ..sample() });
        assert!(cut.contains("\nGPGPU-Sim: ** break due to reaching the maximum cycles (or instructions) **\n"));
    }

    #[test]
    fn without_counters_by_launch_there_are_totals_of_the_run_alone() {
        let text = accelsim(&sample());
        assert_eq!(values(&text, "gpu_tot_sim_insn"), ["777000"]);
        assert_eq!(values(&text, "kernel_name"), ["fill", "nw"]);
    }
}
