//! A run under the names that GPGPU-Sim and Accel-Sim print, so that scripts which read theirs read ours.
//!
//! Only what means the same is printed: a counter that is not here has no counterpart. `insn` are
//! instructions of threads, as there. DRAM commands there are of 32 B (the atom of GDDR5 and HBM): bytes are
//! divided by that, and NVM counts with DRAM. Loads that skip the L1D are no accesses of it. Source:
//! `gpgpu_sim::gpu_print_stat` and the regular expressions of Accel-Sim's `stats/example_stats.yml`.

use std::fmt::Write as _;

use crate::outcome::{Outcome, ratio};

/// Bytes of a DRAM command.
const ATOM_BYTES: u64 = 32;

/// Lines `NAME = VALUE`: of each launch, then of the run; empty of a machine without a GPU.
pub fn accelsim(outcome: &Outcome) -> String {
    let mut out = String::new();
    if outcome.is_of_a_cpu() {
        return out;
    }
    for (number, launch) in outcome.launches.iter().enumerate() {
        let _ = writeln!(out, "kernel_name = {}\nkernel_launch_uid = {}", launch.kernel, number + 1);
        let _ = writeln!(out, "gpu_sim_cycle = {}", launch.length.core_cycles);
    }
    // Launches are told one by one, counters of the whole run only: they are not kept by launch.
    let total = |kind: &str, names: &[&str]| names.iter().map(|name| outcome.total(kind, name)).sum::<u64>();
    let (cycles, insn) = (outcome.time.core_cycles, total("sm", &["thread_instructions"]));
    let _ = writeln!(out, "gpu_tot_sim_cycle = {cycles}\ngpu_tot_sim_insn = {insn}");
    let _ = writeln!(out, "gpu_tot_ipc = {:12.4}", ratio(insn, cycles));
    let _ = writeln!(out, "gpu_tot_issued_cta = {}", total("sm", &["ctas"]));
    // There, stores are accesses of the L1D as well.
    let (loads, stores) = (total("sm", &["l1_loads"]), total("sm", &["l1_stores"]));
    let misses = loads - total("sm", &["l1_hits"]);
    let _ = writeln!(out, "L1D_total_cache_accesses = {}\nL1D_total_cache_load_misses = {misses}", loads + stores);
    let l2 = |names: &[&str]| total("l2", names);
    let (accesses, hits) = (l2(&["reads", "writes", "atomics"]), l2(&["read_hits", "write_hits"]));
    let _ = writeln!(out, "L2_total_cache_accesses = {accesses}");
    let _ = writeln!(out, "L2_total_cache_misses = {}", l2(&["reads", "writes"]) - hits);
    let moved = |names: &[&str]| total("memory_controller", names) / ATOM_BYTES;
    let _ = writeln!(out, "total dram reads = {}", moved(&["dram_read_bytes", "nvm_read_bytes"]));
    let _ = writeln!(out, "total dram writes = {}", moved(&["dram_written_bytes", "nvm_written_bytes"]));
    let seconds = outcome.host.wall_s.ceil().max(1.0) as u64;
    let _ = writeln!(out, "gpgpu_simulation_time = {seconds} sec");
    let _ = writeln!(out, "gpgpu_simulation_rate = {} (inst/sec)", insn / seconds);
    let _ = writeln!(out, "gpgpu_simulation_rate = {} (cycle/sec)", cycles / seconds);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::sample::sample;

    #[test]
    fn counters_have_the_names_and_units_of_gpgpu_sim() {
        let mut outcome = sample();
        let sms = outcome.counters.iter_mut().find(|table| table.kind == "sm").unwrap();
        sms.names.push("ctas".to_owned());
        sms.rows.iter_mut().zip(1..).for_each(|(row, ctas)| row.push(ctas));
        let text = accelsim(&outcome);
        let value = |name: &str| {
            let line = text.lines().rev().find_map(|line| line.strip_prefix(&format!("{name} =")));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().to_owned()
        };
        for (name, expected) in [
            ("gpu_tot_sim_cycle", "10000"),
            ("gpu_tot_sim_insn", "777000"),
            ("gpu_tot_ipc", "77.7000"),
            ("L1D_total_cache_accesses", "6307"),
            ("L1D_total_cache_load_misses", "1100"),
            ("L2_total_cache_accesses", "3677"),
            // 24.5 % of 2,000 reads and 63 % of 1,600 writes hit.
            ("L2_total_cache_misses", "2102"),
            // 1,200,000 B of DRAM and 300,000 B of NVM.
            ("total dram reads", "46875"),
            ("total dram writes", "8928"),
            ("kernel_name", "nw"),
            ("kernel_launch_uid", "2"),
            ("gpu_sim_cycle", "8200"),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
    }
}
