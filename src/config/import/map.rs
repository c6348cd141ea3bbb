//! Which keys of a machine the options of GPGPU-Sim set, and to what.

use super::options::Options;

/// Stages of GPGPU-Sim's pipeline that its table of latencies leaves out (measured on it for `titan-x`).
const STAGES: f64 = 5.0;

/// Of a controller's constant delay, what is on the way back, in ns, as on `titan-x`.
const BACK_NS: f64 = 10.0;

/// A key, its value as TOML, its source.
pub(super) type Set = (String, String, String);

/// Keys in the order of tables.
struct Keys {
    set: Vec<Set>,
}

impl Keys {
    fn put(&mut self, key: &str, value: f64, source: &str) {
        // Three decimals are what durations have; whole numbers are written as such.
        let rounded = (value * 1000.0).round() / 1000.0;
        self.word(key, rounded.to_string(), source);
    }

    fn word(&mut self, key: &str, value: String, source: &str) {
        self.set.retain(|(other, ..)| other != key);
        self.set.push((key.to_owned(), value, source.to_owned()));
    }
}

/// Every key that the options set, those of a table together.
pub(super) fn keys(options: &Options<'_>) -> Vec<Set> {
    let mut keys = Keys { set: Vec::new() };
    let clocks = clocks(options, &mut keys);
    sms(options, &mut keys);
    latencies(options, &mut keys);
    traced_latencies(options, &mut keys);
    caches(options, &mut keys);
    memory(options, clocks, &mut keys);
    let mut tables: Vec<String> = Vec::new();
    for (key, ..) in &keys.set {
        let table = key.split('.').next().unwrap_or("").to_owned();
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    let place = |key: &str| tables.iter().position(|table| key.starts_with(&format!("{table}.")));
    keys.set.sort_by_key(|(key, ..)| place(key));
    keys.set
}

/// MHz of cores, and of memory; 0 where they are not known.
fn clocks(options: &Options<'_>, keys: &mut Keys) -> [f64; 2] {
    let Some(mhz) = options.numbers("gpgpu_clock_domains", 4) else { return [0.0; 2] };
    for (name, mhz) in ["core_mhz", "crossbar_mhz", "l2_mhz", "memory_mhz"].into_iter().zip(&mhz) {
        keys.put(&format!("clock.{name}"), *mhz, "-gpgpu_clock_domains");
    }
    [mhz[0], mhz[3]]
}

fn sms(options: &Options<'_>, keys: &mut Keys) {
    if let Some(clusters) = options.number("gpgpu_n_clusters") {
        let each = options.number("gpgpu_n_cores_per_cluster").unwrap_or(1.0);
        keys.put("sm.count", clusters * each, "-gpgpu_n_clusters x -gpgpu_n_cores_per_cluster");
    }
    if let Some(threads) = options.numbers("gpgpu_shader_core_pipeline", 2).filter(|both| both[1] > 0.0) {
        let source = "-gpgpu_shader_core_pipeline";
        keys.put("sm.warp_size", threads[1], source);
        keys.put("sm.warps", threads[0] / threads[1], source);
        keys.put("sm.threads", threads[0], source);
    }
    for (option, key) in [
        ("gpgpu_shader_cta", "sm.ctas"),
        ("gpgpu_shader_registers", "sm.registers"),
        ("gpgpu_num_sched_per_core", "sm.schedulers"),
        ("gpgpu_max_insn_issue_per_warp", "sm.issue_width"),
        ("gpgpu_shmem_num_banks", "shared.banks"),
        ("icnt_flit_size", "crossbar.flit_bytes"),
    ] {
        if let Some(value) = options.number(option) {
            keys.put(key, value, &format!("-{option}"));
        }
    }
    // Only two policies have a counterpart; others stay among the options without one.
    match options.all().find(|given| given.name == "gpgpu_scheduler").map(|given| given.value) {
        Some(policy) if ["gto", "lrr"].contains(&policy.as_str()) => {
            options.word("gpgpu_scheduler");
            keys.word("sm.policy", format!("{policy:?}"), "-gpgpu_scheduler");
        }
        _ => {}
    }
    if let Some(bytes) = options.number("gpgpu_shmem_size") {
        keys.put("shared.kb", bytes / 1024.0, "-gpgpu_shmem_size");
    }
    if let Some(cycles) = options.number("gpgpu_smem_latency") {
        keys.put("shared.latency_cycles", cycles + STAGES, "-gpgpu_smem_latency, + 5 stages");
    }
}

/// Tables of PTX: "ADD,MAX,MUL,MAD,DIV,SHFL", without SHFL for floating point, and in older files for
/// integers.
fn latencies(options: &Options<'_>, keys: &mut Keys) {
    const INT: [(&str, usize); 5] = [("int", 0), ("min_max", 1), ("int_mul", 3), ("int_div", 4), ("shuffle", 5)];
    for (kind, least, classes) in [
        ("int", 5, &INT[..]),
        ("fp", 5, &[("fp32", 0), ("fp32_div", 4)]),
        ("dp", 5, &[("fp64", 0), ("fp64_div", 4)]),
        ("sfu", 1, &[("sfu", 0)]),
    ] {
        let (latency, interval) = (format!("ptx_opcode_latency_{kind}"), format!("ptx_opcode_initiation_{kind}"));
        let (cycles, each) = (options.numbers(&latency, least), options.numbers(&interval, least));
        for &(class, at) in classes {
            if let Some(cycles) = cycles.as_ref().and_then(|cycles| cycles.get(at)) {
                keys.put(&format!("latency.{class}_cycles"), cycles + STAGES, &format!("-{latency}, + 5 stages"));
            }
            if let Some(each) = each.as_ref().and_then(|each| each.get(at)) {
                keys.put(&format!("interval.{class}_cycles"), each.max(1.0), &format!("-{interval}"));
            }
        }
    }
}

/// Tables of SASS in `trace.config`: latency and initiation interval of a unit, for all that it executes.
fn traced_latencies(options: &Options<'_>, keys: &mut Keys) {
    for (unit, classes) in [("int", &["int", "int_mul"][..]), ("sp", &["fp32"]), ("dp", &["fp64"]), ("sfu", &["sfu"])] {
        let option = format!("trace_opcode_latency_initiation_{unit}");
        let Some(both) = options.numbers(&option, 2) else { continue };
        for class in classes {
            keys.put(&format!("latency.{class}_cycles"), both[0] + STAGES, &format!("-{option}, + 5 stages"));
            keys.put(&format!("interval.{class}_cycles"), both[1].max(1.0), &format!("-{option}"));
        }
    }
}

fn caches(options: &Options<'_>, keys: &mut Keys) {
    if let Some([sets, line, ways, mshrs, merges, queue]) = options.cache("gpgpu_cache:dl1") {
        let source = "-gpgpu_cache:dl1";
        keys.put("l1.kb", (sets * line * ways) as f64 / 1024.0, source);
        for (key, value) in
            [("ways", ways), ("mshr_entries", mshrs), ("mshr_merges", merges), ("miss_queue_entries", queue)]
        {
            keys.put(&format!("l1.{key}"), value as f64, source);
        }
    }
    if let Some(cycles) = options.number("gpgpu_l1_latency") {
        keys.put("l1.hit_cycles", cycles, "-gpgpu_l1_latency");
    }
    if let Some(skips) = options.number("gpgpu_gmem_skip_L1D") {
        keys.word("l1.global_loads", (skips == 0.0).to_string(), "-gpgpu_gmem_skip_L1D");
    }
    if let Some([sets, line, ways, mshrs, merges, _]) = options.cache("gpgpu_cache:dl2") {
        let source = "-gpgpu_cache:dl2";
        keys.put("l2.slice_kb", (sets * line * ways) as f64 / 1024.0, source);
        for (key, value) in [("line_bytes", line), ("ways", ways), ("mshr_entries", mshrs), ("mshr_merges", merges)] {
            keys.put(&format!("l2.{key}"), value as f64, source);
        }
    }
    if let Some(cycles) = options.number("gpgpu_l2_rop_latency") {
        keys.put("l2.pipeline_cycles", cycles, "-gpgpu_l2_rop_latency");
    }
}

fn memory(options: &Options<'_>, [core_mhz, memory_mhz]: [f64; 2], keys: &mut Keys) {
    if let Some(channels) = options.number("gpgpu_n_mem") {
        let each = options.number("gpgpu_n_sub_partition_per_mchannel").unwrap_or(1.0);
        keys.put("controller.channels", channels, "-gpgpu_n_mem");
        keys.put("l2.slices", channels * each, "-gpgpu_n_mem x -gpgpu_n_sub_partition_per_mchannel");
    }
    if let Some(mode) = options.number("network_mode") {
        // The built-in crossbar has buffers at its outputs; the other is a network of BookSim's, whose own
        // file is not read.
        let switch = if mode == 2.0 { "ports" } else { "input_queued" };
        keys.word("crossbar.switch", format!("\"{switch}\""), "-network_mode");
    }
    if let Some(queues) = options.numbers("gpgpu_dram_partition_queues", 4) {
        let source = "-gpgpu_dram_partition_queues";
        keys.put("crossbar.buffer_packets", queues[0], &format!("{source}: interconnect to L2"));
        keys.put("controller.ingress_writes", queues[1], &format!("{source}: L2 to DRAM"));
        keys.put("l2.reply_flits", 4.0 * queues[3], &format!("{source}: L2 to interconnect, of up to 4 flits"));
    }
    if let Some(entries) = options.number("gpgpu_frfcfs_dram_sched_queue_size").filter(|entries| *entries > 0.0) {
        let source = "-gpgpu_frfcfs_dram_sched_queue_size";
        keys.put("controller.read_queue_entries", entries, source);
        keys.put("controller.row_hit_cap", entries, &format!("{source}: no cap but the queue"));
    }
    // A burst moves the chips' bytes as often in a command cycle as data are clocked faster.
    if let Some(bytes) = options.number("gpgpu_dram_buswidth") {
        let chips = options.number("gpgpu_n_mem_per_ctrlr").unwrap_or(1.0);
        let ratio = options.number("dram_data_command_freq_ratio").unwrap_or(2.0);
        let source = "-gpgpu_dram_buswidth x -gpgpu_n_mem_per_ctrlr x -dram_data_command_freq_ratio";
        keys.put("bus.bytes_per_cycle", bytes * chips * ratio, source);
    }
    // Delays that GPGPU-Sim counts in cycles of the core are times here.
    if core_mhz > 0.0 {
        for (option, key, less) in [
            ("dram_latency", "controller.front_ns", BACK_NS),
            ("gpgpu_kernel_launch_latency", "dispatch.launch_ns", 0.0),
        ] {
            if let Some(cycles) = options.number(option) {
                let source =
                    format!("-{option}: {cycles} core cycles{}", if less > 0.0 { ", less back_ns" } else { "" });
                keys.put(key, (cycles * 1e3 / core_mhz - less).max(0.0), &source);
            }
        }
    }
    if memory_mhz > 0.0 {
        timing(options, memory_mhz, keys);
    }
}

/// Timings of DRAM, in cycles of its command clock.
fn timing(options: &Options<'_>, mhz: f64, keys: &mut Keys) {
    let option = "gpgpu_dram_timing_opt";
    for (name, value) in options.named(option) {
        let key = match name.as_str() {
            "nbk" => "dram.banks",
            "nbkgrp" => "dram.bank_groups",
            "CCD" => "dram.t_ccd_ns",
            "CCDL" => "dram.t_ccd_l_ns",
            "RRD" => "dram.t_rrd_ns",
            "RCD" => "dram.t_rcd_ns",
            "RAS" => "dram.t_ras_ns",
            "RP" => "dram.t_rp_ns",
            "CL" => "dram.t_cl_ns",
            "WL" => "dram.t_wl_ns",
            "WR" => "dram.t_wr_ns",
            "CDLR" => "bus.write_to_read_ns",
            // RC follows from RAS and RP here; RTPL has no counterpart.
            _ => continue,
        };
        let value = if key.ends_with("_ns") { value * 1e3 / mhz } else { value };
        keys.put(key, value, &format!("-{option}: {name}"));
        if name == "CL" {
            let source = format!("-{option}: RTW = CL + BL/ratio + 2 - WL: 2 cycles between data");
            keys.put("bus.read_to_write_ns", 2e3 / mhz, &source);
        }
    }
}
