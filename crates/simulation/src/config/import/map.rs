//! Which keys of a machine the options of GPGPU-Sim set, and to what.
//!
//! Parts of a compound option that set no key are told. `options.tsv` names the keys of each option.

use super::mapping::{BANKS, Hashes, Letters, MAP, PARTITIONS, Sizes, mapped};
use super::options::Options;

/// Stages of GPGPU-Sim's pipeline that its table of latencies leaves out (measured on it for `titan-x`).
const STAGES: f64 = 5.0;

/// The most launches that a machine has in flight at once.
const MOST_LAUNCHES: f64 = 128.0;

/// Of a controller's constant delay, what is on the way back, in ns, as on `titan-x`.
const BACK_NS: f64 = 10.0;

/// What a sectored L2 asks of memory at once.
const SECTOR_BYTES: f64 = 32.0;

/// Entries that stand for a queue without an end: the most that a controller's read queue may have.
const UNLIMITED_ENTRIES: f64 = 256.0;

/// A key that an option sets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Set {
    pub(super) key: String,
    /// As TOML.
    pub(super) value: String,
    pub(super) source: String,
    /// The option, without its `-`.
    pub(super) option: String,
}

/// Keys in the order of tables.
struct Keys<'a> {
    options: &'a Options<'a>,
    set: Vec<Set>,
}

impl Keys<'_> {
    /// An option sets a key to a number; `note` ends the source.
    fn put(&mut self, key: &str, value: f64, option: &str, note: &str) {
        // Three decimals are what durations have; whole numbers are written as such.
        let rounded = (value * 1000.0).round() / 1000.0;
        self.word(key, rounded.to_string(), option, note);
    }

    fn word(&mut self, key: &str, value: String, option: &str, note: &str) {
        self.set.retain(|other| other.key != key);
        let source = format!("{}{note}", self.options.source(option));
        self.set.push(Set { key: key.to_owned(), value, source, option: option.to_owned() });
    }
}

/// Every key that the options set, those of a table together.
pub(super) fn keys(options: &Options<'_>) -> Vec<Set> {
    let mut keys = Keys { options, set: Vec::new() };
    let clocks = clocks(options, &mut keys);
    sms(options, &mut keys);
    policies(options, &mut keys);
    occupancy(&mut keys);
    latencies(options, &mut keys);
    traced_latencies(options, &mut keys);
    l1(options, &mut keys);
    l2(options, &mut keys);
    memory(options, clocks, &mut keys);
    let mut tables: Vec<String> = Vec::new();
    for Set { key, .. } in &keys.set {
        let table = key.split('.').next().unwrap_or("").to_owned();
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    let place = |key: &str| tables.iter().position(|table| key.starts_with(&format!("{table}.")));
    keys.set.sort_by_key(|set| place(&set.key));
    keys.set
}

/// MHz of cores, and of memory; 0 where they are not known.
fn clocks(options: &Options<'_>, keys: &mut Keys<'_>) -> [f64; 2] {
    let option = "gpgpu_clock_domains";
    let Some(mhz) = options.numbers(option, 4) else { return [0.0; 2] };
    for (name, mhz) in ["core_mhz", "crossbar_mhz", "l2_mhz", "memory_mhz"].into_iter().zip(&mhz) {
        keys.put(&format!("clock.{name}"), *mhz, option, "");
    }
    [mhz[0], mhz[3]]
}

fn sms(options: &Options<'_>, keys: &mut Keys<'_>) {
    // SMs have no clusters here, which would share a port of the interconnect.
    let (clusters, each) = ("gpgpu_n_clusters", "gpgpu_n_cores_per_cluster");
    if let (Some(count), Some(cores)) = (options.number(clusters), options.number(each)) {
        keys.put("sm.count", count * cores, clusters, &format!(" x {}", options.source(each)));
    }
    let pipeline = "gpgpu_shader_core_pipeline";
    match options.numbers(pipeline, 2) {
        Some(both) if both[1] > 0.0 => {
            keys.put("sm.warp_size", both[1], pipeline, "");
            keys.put("sm.warps", (both[0] / both[1]).floor(), pipeline, "");
            keys.put("sm.threads", both[0], pipeline, "");
            keys.put("sm.register_unit", 4.0 * both[1], pipeline, ": GPGPU-Sim counts registers of a thread in fours");
        }
        Some(_) => options.blame(pipeline, format!("-{pipeline} has warps of no threads")),
        None => {}
    }
    for (option, key) in [
        ("gpgpu_shader_cta", "sm.ctas"),
        ("gpgpu_shader_registers", "sm.registers"),
        ("gpgpu_num_sched_per_core", "sm.schedulers"),
        ("gpgpu_max_insn_issue_per_warp", "sm.issue_width"),
        ("gpgpu_shmem_num_banks", "shared.banks"),
        ("icnt_flit_size", "crossbar.flit_bytes"),
        ("gpgpu_tma_max_inflight", "shared.bulk_lines"),
        ("gpgpu_mbarrier_arrive_latency", "shared.bulk_arrive_cycles"),
        ("ptx_opcode_initiation_tma", "shared.bulk_issue_cycles"),
    ] {
        if let Some(value) = options.number(option) {
            keys.put(key, value, option, "");
        }
    }
    if let Some(bytes) = options.number("gpgpu_shmem_size") {
        keys.put("shared.kb", bytes / 1024.0, "gpgpu_shmem_size", "");
    }
    if let Some(cycles) = options.number("gpgpu_smem_latency") {
        keys.put("shared.latency_cycles", cycles + STAGES, "gpgpu_smem_latency", ", + 5 stages");
    }
}

/// How a scheduler picks warps, and how lanes are merged into accesses.
fn policies(options: &Options<'_>, keys: &mut Keys<'_>) {
    let scheduler = "gpgpu_scheduler";
    if let Some(policy) = options.word(scheduler) {
        // A policy that is not here is told, and is what GPGPU-Sim takes by default.
        let known = ["gto", "lrr"].contains(&policy);
        if !known {
            options.tell(scheduler, &format!("{policy}: here gto"));
        }
        let policy = if known { policy } else { "gto" };
        keys.word("sm.policy", format!("{policy:?}"), scheduler, if known { "" } else { ": not known here" });
    }
    let coalescer = "gpgpu_coalesce_arch";
    if let Some(arch) = options.number(coalescer) {
        // From Maxwell on an access is a sector; from Fermi on a line; before, half-warps access segments.
        let rule = match arch {
            ..20.0 => "half_warp_legacy",
            ..40.0 => "warp_sectored",
            _ => "warp_by_sector",
        };
        keys.word("sm.coalescer", format!("{rule:?}"), coalescer, "");
    }
}

/// GPGPU-Sim knows neither parts of the register file nor units of shared memory
/// (`shader_core_config::max_cta`).
fn occupancy(keys: &mut Keys<'_>) {
    let option = "gpgpu_shader_registers";
    keys.put("sm.register_partitions", 1.0, option, ": GPGPU-Sim has one part");
    let option = "gpgpu_shmem_size";
    keys.put("shared.unit_bytes", 1.0, option, ": GPGPU-Sim counts bytes");
    keys.put("shared.reserved_bytes", 0.0, option, ": GPGPU-Sim reserves none");
}

/// Tables of PTX: "ADD,MAX,MUL,MAD,DIV,SHFL", without SHFL for floating point, and in older files for
/// integers.
fn latencies(options: &Options<'_>, keys: &mut Keys<'_>) {
    const INT: [(&str, usize); 5] = [("int", 0), ("min_max", 1), ("int_mul", 3), ("int_div", 4), ("shuffle", 5)];
    for (kind, least, classes, rest) in [
        ("int", 5, &INT[..], "MUL has the number of MAD"),
        ("fp", 5, &[("fp32", 0), ("fp32_div", 4)], "MUL and MAD have the number of ADD, MAX that of integers"),
        ("dp", 5, &[("fp64", 0), ("fp64_div", 4)], "MAX, MUL and MAD have the number of ADD"),
        ("sfu", 1, &[("sfu", 0)], ""),
    ] {
        let (latency, interval) = (format!("ptx_opcode_latency_{kind}"), format!("ptx_opcode_initiation_{kind}"));
        let (cycles, each) = (options.numbers(&latency, least), options.numbers(&interval, least));
        for &(class, at) in classes {
            if let Some(cycles) = cycles.as_ref().and_then(|cycles| cycles.get(at)) {
                keys.put(&format!("latency.{class}_cycles"), cycles + STAGES, &latency, ", + 5 stages");
            }
            if let Some(each) = each.as_ref().and_then(|each| each.get(at)) {
                keys.put(&format!("interval.{class}_cycles"), each.max(1.0), &interval, "");
            }
        }
        for option in [&latency, &interval].into_iter().filter(|_| !rest.is_empty()) {
            options.tell(option, rest);
        }
    }
}

/// Tables of SASS in `trace.config`: latency and initiation interval of a unit, for all that it executes.
fn traced_latencies(options: &Options<'_>, keys: &mut Keys<'_>) {
    // Without an option of traces the files are of a run of PTX, which does not read these.
    if !options.gives_any("trace_opcode_") {
        return;
    }
    let of = |unit: &str| {
        let option = format!("trace_opcode_latency_initiation_{unit}");
        options.numbers(&option, 2).map(|both| (option, both[0] + STAGES, both[1].max(1.0)))
    };
    for (unit, classes) in [("int", &["int", "int_mul"][..]), ("sp", &["fp32"]), ("dp", &["fp64"]), ("sfu", &["sfu"])] {
        let Some((option, cycles, interval)) = of(unit) else { continue };
        for class in classes {
            keys.put(&format!("latency.{class}_cycles"), cycles, &option, ", + 5 stages");
            keys.put(&format!("interval.{class}_cycles"), interval, &option, "");
        }
    }
    // One number for products of every shape.
    let has = options.gives_any("trace_opcode_latency_initiation_tensor")
        || options.number("gpgpu_tensor_core_avail").unwrap_or(0.0) != 0.0;
    let Some((option, cycles, interval)) = of("tensor").filter(|_| has) else { return };
    for shape in ["matrix", "half"] {
        keys.put(&format!("tensor.{shape}_cycles"), cycles, &option, ", + 5 stages");
        keys.put(&format!("tensor.{shape}_interval_cycles"), interval, &option, "");
    }
}

fn l1(options: &Options<'_>, keys: &mut Keys<'_>) {
    let option = "gpgpu_cache:dl1";
    let cache = options.cache(option);
    let skips = options.number("gpgpu_gmem_skip_L1D").unwrap_or(0.0) != 0.0;
    if let Some(cache) = &cache {
        let counts = [
            ("ways", cache.ways),
            ("mshr_entries", cache.mshr_entries),
            ("mshr_merges", cache.mshr_merges),
            ("miss_queue_entries", cache.queue_entries),
        ];
        for (key, value) in counts {
            keys.put(&format!("l1.{key}"), value as f64, option, "");
        }
        keys.put("l1.kb", cache.kb(), option, "");
        keys.put("l1.unified_kb", 0.0, "gpgpu_adaptive_cache_config", "");
        keys.word("shared.steps_kb", "\"0\"".to_owned(), "gpgpu_adaptive_cache_config", "");
        keys.word("l1.replacement", format!("{:?}", cache.policy()), option, "");
        // Stores of global memory evict their line, whatever writes do there.
        keys.word("l1.writes", "\"evict\"".to_owned(), option, "");
        let local = if matches!(cache.writes, 'L' | 'B') { "write_back" } else { "as_global" };
        keys.word("l1.local_writes", format!("{local:?}"), option, "");
        if matches!(cache.writes, 'B' | 'T' | 'R') {
            options.tell(option, &format!("writes {}: here a store of global memory evicts its line", cache.writes));
        }
        if cache.write_allocation != 'N' {
            options.tell(option, &format!("write allocation {}: here a store takes no line", cache.write_allocation));
        }
        if let Some(bytes) = cache.port_bytes {
            options.tell(option, &format!("port of {bytes} B: here an access takes a cycle"));
        }
        cache.otherwise().iter().for_each(|what| options.tell(option, what));
        // What is adaptive there overwrites the sizes above.
        adaptive(options, cache.sets * cache.line_bytes, keys);
        keys.word("l1.global_loads", (!skips).to_string(), "gpgpu_gmem_skip_L1D", "");
        // There values are not in caches; here a load behind a fence would find an old one.
        keys.word("l1.fence_invalidates", (!skips).to_string(), "gpgpu_gmem_skip_L1D", "");
    } else if options.word(option) == Some("none") {
        options.tell(option, "none: local memory keeps the L1D of titan-x");
        keys.word("l1.global_loads", "false".to_owned(), option, "");
    }
    if let Some(cycles) = options.number("gpgpu_l1_latency") {
        let note = if cycles < 2.0 { ": 2 is the least here" } else { "" };
        keys.put("l1.hit_cycles", cycles.max(2.0), "gpgpu_l1_latency", note);
    }
}

/// An L1D that has what a launch leaves of the array: with all of it, as many ways as fill its sets, of
/// `bytes_of_way` each.
fn adaptive(options: &Options<'_>, bytes_of_way: u64, keys: &mut Keys<'_>) {
    let option = "gpgpu_adaptive_cache_config";
    if options.number(option).unwrap_or(0.0) == 0.0 {
        return;
    }
    let (unified, steps) = ("gpgpu_unified_l1d_size", "gpgpu_shmem_option");
    let (Some(kb), Some(list)) = (options.number(unified), options.word(steps)) else { return };
    // Older files have an adaptive L1D and do not say of what size.
    if kb == 0.0 {
        options.tell(option, "without -gpgpu_unified_l1d_size the L1D stays what -gpgpu_cache:dl1 says");
        return;
    }
    options
        .tell(option, "the L1D has what all CTAs leave that fit; GPGPU-Sim counts no more than the grid has for an SM");
    keys.put("l1.kb", 0.0, option, "");
    keys.put("l1.unified_kb", kb, unified, "");
    keys.put("l1.ways", (kb * 1024.0 / bytes_of_way as f64).round(), unified, ", in the sets of -gpgpu_cache:dl1");
    keys.word("shared.steps_kb", format!("{:?}", list.replace(' ', "")), steps, "");
}

fn l2(options: &Options<'_>, keys: &mut Keys<'_>) {
    let option = "gpgpu_cache:dl2";
    if let Some(cache) = options.cache(option) {
        keys.put("l2.slice_kb", cache.kb(), option, "");
        // Without a port of its own a line moves in a cycle, as in GPGPU-Sim.
        let port = cache.port_bytes.unwrap_or(cache.line_bytes);
        for (key, value) in [
            ("line_bytes", cache.line_bytes),
            ("ways", cache.ways),
            ("mshr_entries", cache.mshr_entries),
            ("mshr_merges", cache.mshr_merges),
            ("port_bytes", port),
        ] {
            keys.put(&format!("l2.{key}"), value as f64, option, "");
        }
        let unit = if cache.kind == 'S' { "sector" } else { "line" };
        keys.word("l2.mshr_unit", format!("{unit:?}"), option, "");
        keys.word("l2.replacement", format!("{:?}", cache.policy()), option, "");
        let miss = match cache.write_allocation {
            'F' => "fetch",
            'W' => "naive",
            _ => "validate",
        };
        keys.word("l2.write_miss", format!("{miss:?}"), option, "");
        if cache.write_allocation == 'N' {
            options.tell(option, "write allocation N: here a store takes a line");
        }
        if cache.writes != 'B' {
            options.tell(option, &format!("writes {}: here the L2 writes back (B)", cache.writes));
        }
        options.tell(option, &format!("miss queue of {}: here the controller's queues bound it", cache.queue_entries));
        cache.otherwise().iter().for_each(|what| options.tell(option, what));
    }
    if let Some(cycles) = options.number("gpgpu_l2_rop_latency") {
        keys.put("l2.pipeline_cycles", cycles, "gpgpu_l2_rop_latency", "");
    }
}

/// FlashGPU-Sim's partitions. There the way to a slice alone is longer; here half of that is on the way back.
fn partitions(options: &Options<'_>, apart: bool, keys: &mut Keys<'_>) {
    let (count, more) = ("gpgpu_l2_partition_count", "gpgpu_l2_partition_extra_latency");
    let (Some(partitions), Some(cycles)) = (options.number(count), options.number(more)) else { return };
    if !apart && partitions > 1.0 {
        options.tell(count, "a switch (-network_mode) is here as far from all slices");
        return;
    }
    keys.put("crossbar.partitions", partitions.max(1.0), count, "");
    keys.put("crossbar.far_cycles", (cycles / 2.0).ceil(), more, ", half on either way");
}

fn memory(options: &Options<'_>, [core_mhz, memory_mhz]: [f64; 2], keys: &mut Keys<'_>) {
    let (modules, parts) = ("gpgpu_n_mem", "gpgpu_n_sub_partition_per_mchannel");
    if let (Some(channels), Some(each)) = (options.number(modules), options.number(parts)) {
        keys.put("controller.channels", channels, modules, "");
        keys.put("l2.slices", channels * each, modules, &format!(" x {}", options.source(parts)));
    }
    if let Some(mode) = options.number("network_mode") {
        // The built-in crossbar has buffers at its outputs; the other is a network of BookSim's, whose own
        // file is not read.
        let switch = if mode == 2.0 { "ports" } else { "input_queued" };
        keys.word("crossbar.switch", format!("\"{switch}\""), "network_mode", "");
        partitions(options, mode == 2.0, keys);
    }
    let queues = "gpgpu_dram_partition_queues";
    if let Some(entries) = options.numbers(queues, 4) {
        keys.put("crossbar.buffer_packets", entries[0], queues, ": interconnect to L2");
        keys.put("controller.ingress_writes", entries[1], queues, ": L2 to DRAM");
        keys.put("l2.reply_flits", 4.0 * entries[3], queues, ": L2 to interconnect, of up to 4 flits");
        options.tell(queues, "DRAM to L2: replies of DRAM go straight to the slice");
    }
    let queue = "gpgpu_frfcfs_dram_sched_queue_size";
    if let Some(entries) = options.number(queue) {
        let note = if entries == 0.0 { ": without an end there" } else { "" };
        let entries = if entries == 0.0 { UNLIMITED_ENTRIES } else { entries };
        keys.put("controller.read_queue_entries", entries, queue, note);
        keys.put("controller.row_hit_cap", entries, queue, ": no cap but the queue");
    }
    let scheduler = "gpgpu_dram_scheduler";
    if let Some(which) = options.number(scheduler) {
        // GPGPU-Sim's FIFO gives each bank its requests in order; the banks go on by themselves.
        let (policy, note) = if which == 0.0 { ("fcfs", ": in order over all banks here") } else { ("frfcfs", "") };
        keys.word("controller.scheduler", format!("{policy:?}"), scheduler, note);
    }
    // A burst moves the chips' bytes as often in a command cycle as data are clocked faster.
    let [width, chips, ratio] = ["gpgpu_dram_buswidth", "gpgpu_n_mem_per_ctrlr", "dram_data_command_freq_ratio"];
    if let [Some(bytes), Some(count), Some(times)] = [width, chips, ratio].map(|option| options.number(option)) {
        let note = format!(" x {} x {}", options.source(chips), options.source(ratio));
        keys.put("bus.bytes_per_cycle", bytes * count * times, width, &note);
    }
    simple_memory(options, keys);
    let launches = "gpgpu_max_concurrent_kernel";
    if let Some(most) = options.number(launches) {
        let note = if most > MOST_LAUNCHES { ": 128 is the most here" } else { "" };
        keys.put("dispatch.concurrent_launches", most.clamp(1.0, MOST_LAUNCHES), launches, note);
    }
    // Delays that GPGPU-Sim counts in cycles of the core are times here.
    if core_mhz > 0.0 {
        for (option, key, less) in [
            ("dram_latency", "controller.front_ns", BACK_NS),
            ("gpgpu_kernel_launch_latency", "dispatch.launch_ns", 0.0),
        ] {
            if let Some(cycles) = options.number(option) {
                let note = format!(": {cycles} core cycles{}", if less > 0.0 { ", less back_ns" } else { "" });
                keys.put(key, (cycles * 1e3 / core_mhz - less).max(0.0), option, &note);
            }
        }
    }
    if memory_mhz > 0.0 {
        timing(options, memory_mhz, keys);
    }
    addresses(options, keys);
}

/// Memory without banks, as Accel-Sim and its forks have it: a channel serves requests of the L2 at a rate,
/// whatever its pins are. Here it has its banks all the same, and a bus that moves as much.
fn simple_memory(options: &Options<'_>, keys: &mut Keys<'_>) {
    let model = "gpgpu_simple_dram_model";
    let [times, num, den] = [
        "gpgpu_simple_dram_clock_multiplier",
        "gpgpu_simple_dram_service_rate_num",
        "gpgpu_simple_dram_service_rate_den",
    ];
    // All are asked for, so that each counts as one that is understood.
    let [is_simple, many, requests, cycles] = [model, times, num, den].map(|option| options.number(option));
    if is_simple.unwrap_or(0.0) == 0.0 {
        return;
    }
    let cache = options.cache("gpgpu_cache:dl2");
    let bytes = cache.map_or(SECTOR_BYTES, |l2| if l2.kind == 'S' { SECTOR_BYTES } else { l2.line_bytes as f64 });
    let (rate, note) = match (many, requests, cycles) {
        (_, Some(requests), Some(cycles)) if cycles > 0.0 => {
            (requests / cycles, format!(" x {} / {}", options.source(num), options.source(den)))
        }
        (Some(many), ..) => (many, format!(" x {}", options.source(times))),
        _ => (1.0, String::new()),
    };
    let note = format!(": requests of {bytes} B{note}");
    keys.put("bus.bytes_per_cycle", (bytes * rate).round().max(1.0), model, &note);
}

/// Where addresses lie: by letters, else by a number's masks; then hashes.
fn addresses(options: &Options<'_>, keys: &mut Keys<'_>) {
    let mask = "gpgpu_mem_address_mask";
    let whole = |option: &str| options.number(option).map(|value| value as u32);
    let [by_partition, by_bank] = [PARTITIONS, BANKS].map(whole);
    let (option, letters) = match options.word(MAP) {
        Some(text) => match Letters::parse(text) {
            Ok(letters) => (MAP, Some(letters)),
            Err(why) => return options.blame(MAP, format!("-{MAP}: {why}")),
        },
        None => (mask, whole(mask).and_then(Letters::of_mask)),
    };
    let Some(letters) = letters else { return options.tell(mask, "no mask has this number: here `ours`") };
    // Sizes are those that other options have set; without one of them there is a fault already.
    let number = |key: &str| keys.set.iter().find(|set| set.key == key)?.value.parse::<u64>().ok();
    let [channels, slices, banks, line] =
        ["controller.channels", "l2.slices", "dram.banks", "l2.line_bytes"].map(|key| number(key).unwrap_or(0));
    if [channels, slices, banks, line].contains(&0) {
        return;
    }
    let sizes =
        Sizes { channels: channels as u32, slices: (slices / channels) as u32, banks: banks as u32, line_bytes: line };
    let hashes = Hashes { partitions: by_partition.unwrap_or(0), banks: by_bank.unwrap_or(0) };
    match mapped(&letters, hashes, sizes) {
        Ok(found) => {
            let note = format!(", {}, {}", options.source(PARTITIONS), options.source(BANKS));
            keys.word("controller.mapping", format!("{:?}", found.text), option, &note);
            keys.put("l2.interleave_bytes", found.chunk_bytes as f64, option, ": columns below all else");
            keys.put("dram.row_bytes", found.row_bytes as f64, option, ": columns");
            for (of, what) in found.otherwise {
                options.tell(if of == MAP { option } else { of }, what);
            }
        }
        Err(why) => options.tell(option, &format!("{why}; here `ours`")),
    }
}

/// Timings of DRAM, in cycles of its command clock: by name, or all of them in this order.
fn timing(options: &Options<'_>, mhz: f64, keys: &mut Keys<'_>) {
    const ORDER: [&str; 14] =
        ["nbk", "CCD", "RRD", "RCD", "RAS", "RP", "RC", "CL", "WL", "CDLR", "WR", "nbkgrp", "CCDL", "RTPL"];
    let option = "gpgpu_dram_timing_opt";
    let named = options.named(option, &ORDER);
    let of = |name: &str| named.iter().find(|(word, _)| word == name).map(|(_, value)| *value);
    // Without groups of banks there is one, and no longer time within it.
    let (groups, apart) = (of("nbkgrp").unwrap_or(1.0), of("CCD").unwrap_or(0.0));
    let within = of("CCDL").unwrap_or(0.0).max(apart);
    if let Some(banks) = of("nbk") {
        keys.put("dram.banks", banks, option, ": nbk");
    }
    keys.put("dram.bank_groups", groups, option, ": nbkgrp");
    // These timings are all that the devices have there: no table, no refresh.
    for (key, word) in [("dram.device", "plain"), ("dram.bin", ""), ("dram.density", ""), ("dram.refresh", "none")] {
        keys.word(key, format!("{word:?}"), option, ": timings of its own");
    }
    keys.word("dram.refresh_stagger", "false".to_owned(), option, ": timings of its own");
    for (name, key) in [
        ("CCD", "dram.t_ccd_ns"),
        ("RRD", "dram.t_rrd_ns"),
        ("RCD", "dram.t_rcd_ns"),
        ("RAS", "dram.t_ras_ns"),
        ("RP", "dram.t_rp_ns"),
        ("CL", "dram.t_cl_ns"),
        ("WL", "dram.t_wl_ns"),
        ("WR", "dram.t_wr_ns"),
        ("CDLR", "bus.write_to_read_ns"),
    ] {
        if let Some(cycles) = of(name) {
            keys.put(key, cycles * 1e3 / mhz, option, &format!(": {name}"));
        }
    }
    // The longer of both, also where a file names only one.
    if !named.is_empty() {
        keys.put("dram.t_ccd_l_ns", within * 1e3 / mhz, option, ": CCDL");
    }
    if of("CL").is_some() {
        let note = ": RTW = CL + BL/ratio + 2 - WL: 2 cycles between data";
        keys.put("bus.read_to_write_ns", 2e3 / mhz, option, note);
    }
    // The rest follows from others here, or is of no device that GPGPU-Sim has.
    for (name, _) in &named {
        match name.as_str() {
            "RC" => options.tell(option, "RC: here RAS and RP"),
            "RTPL" => options.tell(option, "RTPL: here CL and the transfer"),
            other if !ORDER.contains(&other) => options.tell(option, &format!("{other}: not known")),
            _ => {}
        }
    }
}
