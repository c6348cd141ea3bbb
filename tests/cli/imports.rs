//! Configurations of GPGPU-Sim become machine files: what maps, what does not, and what is wrong.

use crate::cli_common::{durawarp, folder, text};

/// The options of SM6_TITANX that have a counterpart, and some that have none.
pub(crate) const TITAN_X: &str = r#"
-gpgpu_ptx_force_max_capability 61
-gpgpu_kernel_launch_latency 5000   # core cycles
-gpgpu_coalesce_arch 61
-gpgpu_n_clusters 28
-gpgpu_n_cores_per_cluster 1
-gpgpu_n_mem 12
-gpgpu_n_sub_partition_per_mchannel 2
-gpgpu_clock_domains 1417.0:1417.0:1417.0:2500.0
-gpgpu_shader_registers 65536
-gpgpu_shader_core_pipeline 2048:32
-gpgpu_shader_cta 32
-ptx_opcode_latency_int 4,13,4,5,145,32
-ptx_opcode_initiation_int 1,1,1,1,4,4
-ptx_opcode_latency_fp 4,13,4,4,39
-ptx_opcode_initiation_fp 1,2,1,1,4
-ptx_opcode_latency_dp 8,19,8,8,330
-ptx_opcode_initiation_dp 8,8,8,8,130
-ptx_opcode_latency_sfu 20
-ptx_opcode_initiation_sfu 4
-gpgpu_shmem_num_banks 32
-gpgpu_num_sched_per_core 4
-gpgpu_scheduler gto
-gpgpu_max_insn_issue_per_warp 2
-gpgpu_cache:dl1  S:4:128:96,L:L:s:N:L,A:256:8,16:0,32
-gpgpu_shmem_size 98304
-gpgpu_gmem_skip_L1D 1
-icnt_flit_size 40
-gpgpu_l1_latency 82
-gpgpu_smem_latency 24
-gpgpu_cache:dl2 S:64:128:16,L:B:m:L:P,A:256:64,16:0,32
-gpgpu_dram_partition_queues 32:32:32:32
-gpgpu_l2_rop_latency 120
-dram_latency 100
-gpgpu_frfcfs_dram_sched_queue_size 64
-gpgpu_n_mem_per_ctrlr 1
-gpgpu_dram_buswidth 4
-dram_data_command_freq_ratio 4
-gpgpu_dram_timing_opt "nbk=16:CCD=2:RRD=8:RCD=16:RAS=37:RP=16:RC=52:
                        CL=16:WL=6:CDLR=7:WR=16:nbkgrp=4:CCDL=4:RTPL=3"
-gpgpu_const_cache:l1 N:128:64:2,L:R:f:N:L,S:2:64,4
-visualizer_enabled 0
"#;

fn imported(test: &str, config: &str, traced: Option<&str>) -> (Option<i32>, String, String) {
    let folder = folder(test);
    let mut files = vec![folder.join("gpgpusim.config")];
    std::fs::write(&files[0], config).unwrap();
    if let Some(traced) = traced {
        files.push(folder.join("trace.config"));
        std::fs::write(&files[1], traced).unwrap();
    }
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let output = durawarp(&[&["config", "import"], &files[..]].concat());
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_configuration_of_titan_x_gives_our_preset_but_for_what_is_rounded() {
    let (code, toml, told) = imported("cli/import", TITAN_X, None);
    assert_eq!(code, Some(0), "{told}");
    let file = folder("cli/imported").join("mine.toml");
    std::fs::write(&file, &toml).unwrap();
    let output = durawarp(&["config", "diff", "titan-x", file.to_str().unwrap()]);
    let diff = text(&output.stdout);
    // 100 and 5,000 cycles of 1,417 MHz: the preset has these cut off, not rounded. CTAs share registers and shared memory by
    // GPGPU-Sim's rule here, by NVIDIA's there. The devices are a table there, with the same timings.
    assert!(diff.starts_with("8 of "), "{diff}\n{}\n{toml}", text(&output.stderr));
    let device = ["dram.device", "dram.bin", "dram.density"];
    for rule in ["sm.register_unit", "sm.register_partitions", "shared.unit_bytes"].into_iter().chain(device) {
        assert!(diff.contains(rule), "{diff}");
    }
    assert!(diff.contains("controller.front_ns") && diff.contains("60.571 -> 60.572"), "{diff}");
    assert!(diff.contains("dispatch.launch_ns") && diff.contains("3528.581 -> 3528.582"), "{diff}");
    for line in ["#   -gpgpu_const_cache:l1 N:128:64:2,L:R:f:N:L,S:2:64,4", "#   -visualizer_enabled 0: output"] {
        assert!(toml.contains(line), "no `{line}` in\n{toml}");
    }
    assert!(told.contains(" 2 are of no machine, 1 have no counterpart"), "{told}");
}

#[test]
fn a_misspelt_option_is_told_beside_the_file() {
    let (code, _, told) = imported("cli/import_slip", "-gpgpu_n_clusters 20\n-gpgpu_l2_rop_latncy 200\n-zzz 1\n", None);
    assert_eq!(code, Some(0), "{told}");
    let line = "warning: -gpgpu_l2_rop_latncy: no option that is known of GPGPU-Sim; the nearest is -gpgpu_l2_rop_latency; \
                1 more at the file's end\n";
    assert!(told.ends_with(line), "{told}");
    let (_, _, told) = imported("cli/import_no_slip", "-gpgpu_n_clusters 20\n-gpgpu_tma_tx_quota 48\n", None);
    assert!(!told.contains("warning"), "{told}");
}

/// The options of SM7_QV100 that have a counterpart.
const QV100: &str = r#"
-gpgpu_coalesce_arch 70
-gpgpu_adaptive_cache_config 1
-gpgpu_shmem_option 0,8,16,32,64,96
-gpgpu_unified_l1d_size 128
-gpgpu_kernel_launch_latency 5000
-gpgpu_n_clusters 80
-gpgpu_n_cores_per_cluster 1
-gpgpu_n_mem 32
-gpgpu_n_sub_partition_per_mchannel 2
-gpgpu_clock_domains 1132.0:1132.0:1132.0:850.0
-gpgpu_shader_registers 65536
-gpgpu_shader_core_pipeline 2048:32
-gpgpu_shader_cta 32
-ptx_opcode_latency_int 4,13,4,5,145,21
-ptx_opcode_initiation_int 2,2,2,2,8,4
-ptx_opcode_latency_fp 4,13,4,5,39
-ptx_opcode_initiation_fp 2,2,2,2,4
-ptx_opcode_latency_dp 8,19,8,8,330
-ptx_opcode_initiation_dp 4,4,4,4,130
-ptx_opcode_latency_sfu 100
-ptx_opcode_initiation_sfu 8
-gpgpu_shmem_num_banks 32
-gpgpu_num_sched_per_core 4
-gpgpu_scheduler lrr
-gpgpu_max_insn_issue_per_warp 1
-gpgpu_cache:dl1  S:4:128:64,L:T:m:L:L,A:512:8,16:0,32
-gpgpu_l1_latency 20
-gpgpu_gmem_skip_L1D 0
-gpgpu_shmem_size 98304
-gpgpu_smem_latency 20
-gpgpu_cache:dl2 S:32:128:24,L:B:m:L:P,A:192:4,32:0,32
-gpgpu_dram_partition_queues 64:64:64:64
-network_mode 2
-icnt_flit_size 40
-gpgpu_l2_rop_latency 160
-dram_latency 100
-gpgpu_frfcfs_dram_sched_queue_size 64
-gpgpu_n_mem_per_ctrlr 1
-gpgpu_dram_buswidth 16
-dram_data_command_freq_ratio 2
-gpgpu_dram_timing_opt "nbk=16:CCD=1:RRD=3:RCD=12:RAS=28:RP=12:RC=40:
                        CL=12:WL=2:CDLR=3:WR=10:nbkgrp=4:CCDL=2:RTPL=3"
"#;

#[test]
fn the_configuration_of_a_v100_gives_our_preset_but_for_latencies_that_were_measured() {
    let (code, toml, told) = imported("cli/import_v100", QV100, None);
    assert_eq!(code, Some(0), "{told}");
    let file = folder("cli/imported_v100").join("mine.toml");
    std::fs::write(&file, &toml).unwrap();
    let diff = text(&durawarp(&["config", "diff", "volta-v100", file.to_str().unwrap()]).stdout);
    let differ: Vec<&str> = diff.lines().filter(|line| line.contains(" -> ") && line.starts_with("  ")).collect();
    let keys: Vec<&str> = differ.iter().filter_map(|line| line.split_whitespace().next()).collect();
    let is_of_devices = |key: &str| key.starts_with("dram.");
    let not_of_latencies: Vec<&&str> =
        keys.iter().filter(|key| !key.starts_with("latency.") && !is_of_devices(key)).collect();
    // The preset is on HBM2 as its standard has it; this on 16 plain banks of GPGPU-Sim's timings.
    for (key, value) in [
        ("device", "\"plain\""),
        ("banks", "16"),
        ("bank_groups", "4"),
        ("t_ccd_ns", "1.176"),
        ("t_ccd_l_ns", "2.353"),
        ("t_rrd_ns", "3.529"),
        ("t_rcd_ns", "14.118"),
        ("t_ras_ns", "32.941"),
        ("t_rp_ns", "14.118"),
        ("t_cl_ns", "14.118"),
        ("t_wl_ns", "2.353"),
        ("t_wr_ns", "11.765"),
        ("refresh", "\"none\""),
    ] {
        let of_dram = toml.split("[dram]").nth(1).unwrap_or_default();
        assert!(of_dram.contains(&format!("\n{key} = {{ value = {value},")), "{key}: {of_dram}");
    }
    // The configuration does not describe tensor cores. What the file's table does not name issues as an integer operation
    // there. CTAs share registers and shared memory by GPGPU-Sim's rule here, by NVIDIA's there.
    let unnamed = ["compare", "const", "control", "convert", "logic", "vote"].map(|of| format!("interval.{of}_cycles"));
    let others = ["l1.hit_cycles", "l2.pipeline_cycles", "shared.latency_cycles", "shared.unit_bytes"];
    let registers = ["sm.register_partitions", "sm.register_unit"];
    let tensor = ["half", "half_interval", "matrix", "matrix_interval"].map(|of| format!("tensor.{of}_cycles"));
    // The text above has no number of kernels at once. GPGPU-Sim refreshes nothing.
    let named = ["dispatch.concurrent_launches", "energy.dram_refresh_pj"]
        .into_iter()
        .chain(unnamed.iter().map(String::as_str));
    let named = named.chain(others).chain(registers);
    let expected: Vec<&str> = named.chain(tensor.iter().map(String::as_str)).collect();
    assert_eq!(not_of_latencies, expected.iter().collect::<Vec<_>>(), "{diff}");
}

#[test]
fn partitions_of_flashgpu_sim_are_ours_but_where_a_switch_is_between() {
    let options = "-gpgpu_l2_partition_count 2\n-gpgpu_l2_partition_extra_latency 151\n";
    let (code, toml, told) = imported("cli/import_partitions", &format!("{QV100}{options}"), None);
    assert_eq!(code, Some(0), "{told}");
    for line in ["partitions = { value = 2, ", "far_cycles = { value = 76, "] {
        assert!(toml.contains(&format!("\n{line}")), "{line}: {toml}");
    }
    let switched = QV100.replace("-network_mode 2", "-network_mode 1");
    let (code, toml, told) = imported("cli/import_partitions", &format!("{switched}{options}"), None);
    assert_eq!(code, Some(0), "{told}");
    assert!(!toml.contains("far_cycles"), "{toml}");
    let expected = "-gpgpu_l2_partition_count: a switch (-network_mode) is here as far from all slices";
    assert!(toml.contains(expected) || told.contains(expected), "{told}{toml}");
}

/// What tested configurations of GPGPU-Sim say of addresses: channels, letters above and below the chips', indices of
/// partitions and of banks; and the mapping.
const ADDRESSES: [(&str, u32, &str, u32, u32, &str); 7] = [
    ("SM2_GTX480", 6, "0000RRRR.RRRRRRRR.BBBCCCCB.CCSSSSSS", 0, 0, "Ro Ba[1:] Co Ba[:1] Ch"),
    ("SM3_KEPLER_TITAN, SM75_RTX2060", 12, "0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS", 0, 0, "Ro Ba[1:] Co Ch Ba[:1]"),
    ("SM6_TITANX", 12, "0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS", 4, 0, "Ro Ba[1:] Co Ba[:1] Ch; slice = splitmix(chunk)"),
    ("SM75_RTX2060_S", 16, "0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS", 0, 0, "Ro Ba[1:] Co Ch Ba[:1]"),
    (
        "SM7_QV100, SM7_GV100",
        32,
        "0000RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS",
        2,
        0,
        "Ro Ba[1:] Co Ba[:1] Ch; Ch slice = ipoly(Ch slice, Ro Ba[1:] Co)",
    ),
    (
        "SM7_TITANV",
        24,
        "0000RRRR.RRRRRRRR.RBBBCCCB.CCCSSSSS",
        2,
        1,
        "Ro Ba[1:] Co Ba[:1] Ch; slice = splitmix(chunk); Ba ^= Ro",
    ),
    (
        "SM86_RTX3070",
        16,
        "0000RRRR.RRRRRRRR.RBBBCCCC.BCCSSSSS",
        2,
        0,
        "Ro Ba[1:] Co Ch Ba[:1]; Ch slice = ipoly(Ch slice, Ro Ba[1:] Co[1:])",
    ),
];

#[test]
fn mappings_of_tested_configurations_become_mappings_of_machines() {
    for (nth, (of, channels, letters, partitions, banks, expected)) in ADDRESSES.into_iter().enumerate() {
        let config = QV100.replace("-gpgpu_n_mem 32", &format!("-gpgpu_n_mem {channels}"));
        let map = format!("dramid@8;00000000.00000000.00000000.00000000.{letters}");
        let options = format!(
            "{config}-gpgpu_mem_address_mask 1\n-gpgpu_mem_addr_mapping {map}\n\
             -gpgpu_memory_partition_indexing {partitions}\n-dram_bnk_indexing_policy {banks}\n"
        );
        // The machine is checked, so that the mapping is one of its sizes.
        let (_, toml) = checked(&format!("import_addresses_{nth}"), &options);
        assert!(toml.contains(&format!("\nmapping = {{ value = \"{expected}\"")), "{of}: {toml}");
        assert!(toml.contains("-gpgpu_mem_address_mask 1: of no effect in these files"), "{of}: {toml}");
        assert_eq!(
            toml.contains("-gpgpu_memory_partition_indexing: here by splitmix64"),
            expected.contains("splitmix")
        );
    }
    let (code, _, told) =
        imported("cli/import_letters", "-gpgpu_n_mem 8\n-gpgpu_mem_addr_mapping dramid@8;RBC\n", None);
    assert!(code == Some(2) && told.contains("gpgpusim.config:2:25") && told.contains("3 bits, not 64"), "{told}");
}

#[test]
fn older_files_have_no_latency_of_shuffles() {
    let older = QV100.replace("5,145,21", "5,145").replace("2,8,4", "2,8");
    let (code, toml, told) = imported("cli/import_older", &older, None);
    assert_eq!(code, Some(0), "{told}");
    assert!(toml.contains("int_div_cycles = { value = 150,") && !toml.contains("shuffle_cycles"), "{toml}");
}

#[test]
fn a_trace_configuration_counts_more_for_what_it_says() {
    let (code, toml, _) = imported("cli/import_traced", TITAN_X, Some("-trace_opcode_latency_initiation_sp 3,2\n"));
    assert_eq!(code, Some(0));
    assert!(toml.contains("fp32_cycles = { value = 8, source = \"-trace_opcode_latency_initiation_sp, + 5 stages\" }"));
    assert!(toml.contains("fp32_cycles = { value = 2, source = \"-trace_opcode_latency_initiation_sp\" }"), "{toml}");
}

#[test]
fn tensor_cores_of_traces_have_the_one_time_that_their_file_gives() {
    let (code, toml, _) = imported("cli/import_tensor", TITAN_X, Some("-trace_opcode_latency_initiation_tensor 8,4\n"));
    assert_eq!(code, Some(0), "{toml}");
    for line in [
        "matrix_cycles = { value = 13, source = \"-trace_opcode_latency_initiation_tensor, + 5 stages\" }",
        "half_interval_cycles = { value = 4, source = \"-trace_opcode_latency_initiation_tensor\" }",
    ] {
        assert!(toml.contains(line), "{toml}");
    }
    let (_, toml, _) = imported("cli/import_no_tensor", TITAN_X, Some("-trace_opcode_latency_initiation_sp 3,2\n"));
    assert!(!toml.contains("matrix_cycles"), "as titan-x: none\n{toml}");
}

#[test]
fn every_value_that_is_none_is_told_with_its_place() {
    let wrong = "-gpgpu_n_clusters many\n-gpgpu_clock_domains 1417:1417\n-gpgpu_cache:dl2 S:64\n";
    let (code, _, told) = imported("cli/import_wrong", wrong, None);
    assert_eq!(code, Some(2));
    for words in
        ["gpgpusim.config:1:19", "got `many`", "gpgpusim.config:2:22", "4 numbers", "gpgpusim.config:3:18", "3 errors"]
    {
        assert!(told.contains(words), "no `{words}` in {told}");
    }
    let (code, _, told) = imported("cli/import_other", "[sm]\ncount = 3\n", None);
    assert!(code == Some(2) && told.contains("has no option of a machine"), "{told}");
}

/// A file that leaves out nearly everything.
const SHORT: &str = "
-gpgpu_n_clusters 80
-gpgpu_n_cores_per_cluster 1
-gpgpu_clock_domains 1200:1200:1200:850
-gpgpu_shader_core_pipeline 2048:32
-gpgpu_cache:dl1 S:4:128:64,L:T:m:L:L,A:512:8,16:0,32
-gpgpu_cache:dl2 S:32:128:24,L:B:m:L:P,A:192:4,32:0,32
-gpgpu_n_mem 24
-gpgpu_n_sub_partition_per_mchannel 2
";

/// Imports text and checks the machine; the file, and its text.
fn checked(test: &str, config: &str) -> (std::path::PathBuf, String) {
    let (code, toml, told) = imported(&format!("cli/{test}"), config, None);
    assert_eq!(code, Some(0), "{told}");
    let file = folder(&format!("cli/{test}_made")).join("mine.toml");
    std::fs::write(&file, &toml).unwrap();
    let output = durawarp(&["config", "check", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}{}\n{toml}", text(&output.stdout), text(&output.stderr));
    (file, toml)
}

#[test]
fn what_a_file_leaves_out_has_the_default_of_gpgpu_sim() {
    let (file, toml) = checked("import_short", SHORT);
    for line in [
        "launch_ns = { value = 0, source = \"-gpgpu_kernel_launch_latency, by default 0: 0 core cycles\" }",
        "global_loads = { value = true, source = \"-gpgpu_gmem_skip_L1D, by default 0\" }",
        "schedulers = { value = 1, source = \"-gpgpu_num_sched_per_core, by default 1\" }",
        "kb = { value = 16, source = \"-gpgpu_shmem_size, by default 16384\" }",
        "registers = { value = 8192, source = \"-gpgpu_shader_registers, by default 8192\" }",
        "local_writes = { value = \"as_global\", source = \"-gpgpu_cache:dl1\" }",
        "t_rcd_ns = { value = 14.118, source = \"-gpgpu_dram_timing_opt, by default 4:2:8:12:21:13:34:9:4:5:13:1:0:0: RCD\" }",
        "#   -gpgpu_cache:dl2_texture_only: only textures use the L2 there; here all accesses do",
        "#   -gpgpu_cache:dl1: index L: here an XOR of all bits of the line's number",
    ] {
        assert!(toml.contains(line), "no `{line}` in\n{toml}");
    }
    let output = durawarp(&["run", "vecadd", "--profile", "ci", "--machine", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn an_adaptive_l1_stays_one_and_its_steps_are_those_of_the_file() {
    let (_, toml) = checked("import_adaptive", QV100);
    for line in [
        "kb = { value = 0, source = \"-gpgpu_adaptive_cache_config\" }",
        "unified_kb = { value = 128, source = \"-gpgpu_unified_l1d_size\" }",
        "ways = { value = 256, source = \"-gpgpu_unified_l1d_size, in the sets of -gpgpu_cache:dl1\" }",
        "steps_kb = { value = \"0,8,16,32,64,96\", source = \"-gpgpu_shmem_option\" }",
    ] {
        assert!(toml.contains(line), "no `{line}` in\n{toml}");
    }
}

#[test]
fn files_of_other_ages_and_makers_are_read() {
    // Warps of 64; caches without a kind; 512 ways; a scheduler of GPGPU-Sim's own; a misspelt option.
    let (_, toml) =
        checked("import_gcn", "-gpgpu_n_clusters 20\n-gpgpu_shader_core_pipeline 2048:64\n-smem_latency 24\n");
    for line in
        ["warp_size = { value = 64,", "count = { value = 60,", "#   -smem_latency 24: no option", "-gpgpu_smem_latency"]
    {
        assert!(toml.contains(line), "no `{line}` in\n{toml}");
    }
    let (_, toml) = checked(
        "import_old",
        "-gpgpu_cache:dl1 32:128:4,L:L:m:N:H,A:32:8,8\n-gpgpu_cache:dl2 64:128:8,L:B:m:W:L,A:32:4,4:0,32\n",
    );
    for line in [
        "kind N: a miss fetches a whole line",
        "write_miss = { value = \"naive\"",
        "local_writes = { value = \"write_back\"",
    ] {
        assert!(toml.contains(line), "no `{line}` in\n{toml}");
    }
    let (_, toml) = checked(
        "import_ways",
        "-gpgpu_cache:dl1 S:1:128:512,L:L:s:N:L,A:256:8,16:0,32\n-gpgpu_scheduler warp_limiting:2:16\n",
    );
    for line in [
        "ways = { value = 512,",
        "allocation s: here on a miss",
        "policy = { value = \"gto\"",
        "warp_limiting:2:16: here gto",
    ] {
        assert!(toml.contains(line), "no `{line}` in\n{toml}");
    }
}

#[test]
fn a_value_that_no_machine_takes_is_refused_at_its_option() {
    let wrong =
        "-gpgpu_n_clusters 80\n-gpgpu_shader_core_pipeline 4096:16\n-gpgpu_cache:dl1 S:3:128:64,L:T:m:L:L,A:512:8,16\n";
    let (code, _, told) = imported("cli/import_refused", wrong, None);
    assert_eq!(code, Some(2), "{told}");
    for words in ["gpgpusim.config:2:29", "-gpgpu_shader_core_pipeline sets sm.warp_size", "sm.warps", "got 256"] {
        assert!(told.contains(words), "no `{words}` in {told}");
    }
    let (code, _, told) = imported("cli/import_uneven", &wrong.replace("4096:16", "2048:32"), None);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("gpgpusim.config:3:18") && told.contains("is not a power of two of sets"), "{told}");
}
