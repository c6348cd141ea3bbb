//! `config diff`, `config explain` and `sweep lint` as a user meets them.

use std::path::Path;

use crate::cli_common::{durawarp_in, ended, folder};
use durawarp::sweep::{self, Plan, SweepFile};
use serde_json::Value;

#[test]
fn a_file_that_says_the_same_in_other_words_is_equal() {
    let folder = folder("cli_config/equal");
    let text = "name = \"mine\"\ndescription = \"d\"\ninherits = \"agpm-table4\"\n[l2]\nslice_kb = \"128KiB\"\n\
        [nvm]\ncell_write_ns = \"0.48us\"\n";
    std::fs::write(folder.join("mine.toml"), text).unwrap();
    let same = durawarp_in(&folder, &["config", "diff", "agpm-table4", "mine.toml"]);
    ended(&same, 0, &["equal: all", "2 equal values name different sources"]);
    let set = ["config", "diff", "agpm-table4", "mine.toml", "--set", "l2.slice_kb=256"];
    let told =
        ended(&durawarp_in(&folder, &set), 1, &["agpm-table4 -> mine", "128: AGPM Table IV", "256: user: --set"]);
    assert!(told.contains("1 of ") && !told.contains("cell_write_ns"), "{told}");
    ended(&durawarp_in(&folder, &["config", "diff", "base", "strict"]), 1, &["different schemes: `base` -> `strict`"]);
    let keys = ["bucl.tucd", "-: there is no such key"];
    ended(&durawarp_in(&folder, &["config", "diff", "store+clwb", "bucl"]), 1, &keys);
}

#[test]
fn faults_of_a_comparison_are_exit_code_2_and_told_at_once() {
    let folder = folder("cli_config/faults");
    ended(
        &durawarp_in(&folder, &["config", "diff", "agpm", "titan-x"]),
        2,
        &["`agpm` is a scheme, `titan-x` is a machine"],
    );
    ended(&durawarp_in(&folder, &["config", "diff", "titan-y", "agpmm"]), 2, &["`titan-y`", "`agpmm`", "2 errors"]);
    let set = ["config", "diff", "titan-x", "titan-x", "--set", "l2.wais=3"];
    ended(&durawarp_in(&folder, &set), 2, &["did you mean `l2.ways`?"]);
}

#[test]
fn a_key_is_explained_and_an_unknown_one_told_with_the_nearest() {
    let folder = folder("cli_config/explain");
    let told = ended(&durawarp_in(&folder, &["config", "explain", "l2.slice_kb"]), 0, &["KiB", "from 1 to 65536"]);
    assert!(told.contains("agpm-table4 ") && told.contains(" 128: AGPM Table IV\n"), "{told}");
    std::fs::write(folder.join("mine.toml"), "name = \"mine\"\ninherits = \"titan-x\"\n[l2]\nslice_kb = 64\n").unwrap();
    let mine = durawarp_in(&folder, &["config", "explain", "l2.slice_kb", "mine.toml"]);
    let told = ended(&mine, 0, &["mine  64: machine file without a source [no source of its own]"]);
    assert!(!told.contains("agpm-table4"), "{told}");
    ended(&durawarp_in(&folder, &["config", "explain", "agpm"]), 0, &["agpm.threshold_logs", "scheme `agpm`"]);
    ended(&durawarp_in(&folder, &["config", "explain", "l2.slize_kb"]), 2, &["did you mean `l2.slice_kb`"]);
}

/// A standard that is not built in: the example of `docs/machines.md`.
const DDR3: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/devices/ddr3.toml");

#[test]
fn a_device_is_printed_whole_built_in_or_from_a_file() {
    let folder = folder("cli_config/device");
    let device = |args: &[&str]| durawarp_in(&folder, &[&["config", "device"], args].concat());
    let lines = ["ddr4 3200AA 16Gb_x8 (JESD79-4B)", "peak          25600 MB/s a channel", "  RFC      880    550.000"];
    ended(&device(&["ddr4", "--bin", "3200AA", "--density", "16Gb_x8"]), 0, &lines);
    let lines = ["2 rank x 4 bank_group", "rank: REFab > ACT: 433", "other rank: RD > RD: 6"];
    ended(&device(&["ddr4", "--ranks", "2", "--timing", "RFC = 433"]), 0, &lines);
    ended(&device(&["hbm2"]), 0, &["warning", "`FAW` of 15 cycles is of no effect: 4 `RRD_S` are 16"]);
    let lines = ["ddr3 1600K 4Gb_x8 (JESD79-3F)", "1250 ps, 800.0 MHz", "rank: ACT > ACT: 24, from the last but 3"];
    ended(&device(&[DDR3]), 0, &lines);
    ended(&device(&["ddr3"]), 2, &["there is no device `ddr3`", "did you mean `ddr4`?"]);
    let faults =
        ["device `ddr4` has no bin `3200`", "--bin", "no density `8GB_x8`", "did you mean `8Gb_x8`?", "2 errors"];
    ended(&device(&["ddr4", "--bin", "3200", "--density", "8GB_x8"]), 2, &faults);
    ended(&durawarp_in(&folder, &["config", "explain", "dram.device"]), 0, &["hbm2: JESD235D", "bins 2400R, 1600K"]);
}

#[test]
fn a_run_has_the_device_that_its_machine_names() {
    let folder = folder("cli_config/device_of_machine");
    let text = std::fs::read_to_string(DDR3).unwrap();
    std::fs::write(folder.join("ddr3.toml"), text).unwrap();
    let machine = "inherits = \"broi-cpu\"\n[dram]\ndevice = \"ddr3.toml\"\nrefresh = \"all_bank\"\n";
    std::fs::write(folder.join("mine.toml"), machine).unwrap();
    ended(&durawarp_in(&folder, &["config", "check", "mine.toml"]), 0, &["mine.toml: good"]);
    let slower = ["config", "check", "mine.toml", "--set", "clock.memory_mhz=1200"];
    ended(&durawarp_in(&folder, &slower), 2, &["1200 MHz is not the clock of device `ddr3`", "800 MHz, tCK 1.25 ns"]);
    // Reads take 1,000 cycles of 0.4 ns more, which are 566 of the core's: vecadd waits for one at least.
    let cycles = |timing: &str| {
        let set = ["dram.device=gddr5", "dram.bin=10Gbps", timing].map(|set| ["--set", set]).concat();
        let run = ["run", "vecadd", "--set", "params.N=64", "--machine", "titan-x", "--json", "it.json", "--quiet"];
        ended(&durawarp_in(&folder, &[&run[..], &set].concat()), 0, &[]);
        let outcome: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("it.json")).unwrap()).unwrap();
        outcome["time"]["core_cycles"].as_u64().unwrap()
    };
    assert!(cycles("dram.timing=CL = 1016") >= cycles("dram.timing=CL = 16") + 566);
}

const HEAD: &str = "schema = 1\nname = \"it\"\n[base]\nworkload = \"atax\"\nprofile = \"ci\"\n";

/// Line and text of each warning.
fn warnings(rest: &str) -> Vec<(u32, String)> {
    let file = SweepFile::read("it.toml", format!("{HEAD}{rest}"), Path::new("")).unwrap_or_else(|f| panic!("{f}"));
    let plan = Plan::new(file).unwrap_or_else(|faults| panic!("{faults}"));
    sweep::lint(&plan).unwrap().into_iter().map(|warning| (warning.span.line, warning.message)).collect()
}

#[test]
fn an_axis_that_changes_what_it_names_is_not_warned_of() {
    for axis in [
        "key = \"l2.slice_kb\"\nvalues = [64, 128, 256]\n",
        "key = \"params.NX\"\nvalues = [32, 64]\n",
        "key = \"scheme\"\nvalues = [\"base\", \"strict\"]\n",
        "key = \"seed\"\nvalues = [1, 2]\n",
        "key = \"nvm.cell_write_ns\"\nrange = { from = 100, to = 500, step = 100 }\n",
        "key = \"sm.count\"\nvalues = [2, 4]\n",
        "key = \"workload\"\nvalues = [\"atax\", \"mvt\"]\n",
    ] {
        assert_eq!(warnings(&format!("[[axis]]\n{axis}")), [], "{axis}");
    }
    assert_eq!(warnings(""), []);
}

#[test]
fn an_axis_that_changes_more_than_it_names_is_warned_of_at_its_key() {
    let cases = [
        ("key = \"machine\"\nvalues = [\"agpm-table4\", \"titan-x\"]\n", "parameters change: `bus.bytes_per_cycle`"),
        ("key = \"profile\"\nvalues = [\"ci\", \"default\"]\n", "2 parameters change: `params.NX` and `params.NY`"),
        ("key = \"scheme\"\nvalues = [\"base\", \"agpm\"]\n", "under `agpm` its kernels keep undo logs"),
        ("key = \"l2.slices\"\nvalues = [16, 32]\n", "capacity of the L2 (KiB)"),
        ("key = \"clock.memory_mhz\"\nvalues = [1200, 600]\n", "peak memory bandwidth (MB/s)"),
        ("key = \"l2.ways\"\nvalues = [8, 16]\n", "sets of an L2 slice"),
        ("key = \"seed\"\nvalues = [4]\n", "`seed` has one value"),
        ("key = \"flag_barrier\"\nvalues = [\"paper\", \"safe\"]\n", "changes nothing that a run depends on in 1 of 1"),
    ];
    for (axis, expected) in cases {
        let found = warnings(&format!("[[axis]]\n{axis}"));
        let [(7, message)] = &found[..] else { panic!("{axis}: {found:?}") };
        assert!(message.contains(expected), "no\n  {expected}\nin\n  {message}");
    }
    let zip = "[[axis]]\nkeys = [\"nvm.banks\", \"l2.slice_kb\", \"seed\"]\nvalues = [[16, 64, 1], [8, 128, 1]]\n";
    let found: Vec<String> = warnings(zip).into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        found,
        [
            "`seed` is 1 in every row: it does not vary",
            "`nvm.banks` and `l2.slice_kb` change together: a difference is of none of them alone"
        ]
    );
}

#[test]
fn points_that_a_parameter_does_not_apply_to_or_without_a_baseline_are_counted() {
    let rest = "[[axis]]\nkey = \"scheme\"\nvalues = [\"bucl\", \"agpm\"]\n\
        [[axis]]\nkey = \"agpm.threshold_logs\"\nvalues = [1000, 5000]\n\
        [[axis]]\nkey = \"seed\"\nvalues = [1, 2]\n[[exclude]]\nscheme = \"bucl\"\nseed = 1\n[baseline]\nscheme = \"bucl\"\n";
    let found: Vec<String> = warnings(rest).into_iter().map(|(_, message)| message).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("`agpm.threshold_logs` does not apply to 1 of 5 points, which are of scheme `bucl`"));
    assert!(found[1].starts_with("2 of 5 points have no point of the baseline to be related to"), "{found:?}");
}

#[test]
fn regions_that_may_be_larger_than_their_queue_are_warned_of_before_a_run() {
    let of = |rest: &str| warnings(&format!("scheme = \"light-wsp\"\n{rest}"));
    // 32 stores of 8 bytes by 32 lanes, in entries of 128 bytes, are 64 entries.
    assert_eq!(of("[[axis]]\nkey = \"light_wsp.wpq_entries\"\nvalues = [64, 128]\n"), []);
    let found = of("[[axis]]\nkey = \"light_wsp.wpq_entries\"\nvalues = [63, 64]\n");
    let [(8, message)] = &found[..] else { panic!("{found:?}") };
    let size =
        "a region may store 32 words of 8 bytes a lane, 64 entries where its accesses coalesce, and a queue has 63";
    assert!(
        message.starts_with("under `atax light-wsp light_wsp.wpq_entries=63`") && message.contains(size),
        "{message}"
    );
    let larger = of(
        "set = { \"light_wsp.wpq_entries\" = 64 }\n[[axis]]\nkey = \"light_wsp.threshold_stores\"\nvalues = [32, 33]\n",
    );
    assert!(larger.len() == 1 && larger[0].1.contains("33 words of 8 bytes a lane, 66 entries"), "{larger:?}");
    // A CTA of eight warps has regions of 512 entries.
    let owners = of(
        "set = { \"light_wsp.wpq_entries\" = 511 }\n[[axis]]\nkey = \"light_wsp.owner\"\nvalues = [\"warp\", \"cta\"]\n",
    );
    assert!(owners.len() == 1 && owners[0].1.starts_with("under `atax light-wsp light_wsp.owner=cta`"), "{owners:?}");
}

#[test]
fn warnings_are_no_fault_unless_asked_for_and_a_dry_run_counts_them() {
    let folder = folder("cli_config/lint");
    let axis = "[[axis]]\nkey = \"machine\"\nvalues = [\"agpm-table4\", \"titan-x\"]\n";
    std::fs::write(folder.join("two.toml"), format!("{HEAD}{axis}")).unwrap();
    std::fs::write(folder.join("one.toml"), HEAD).unwrap();
    let words = ["2 points, 1 axes, 1 warnings", "two.toml:7:7", "`durawarp config diff` shows them"];
    ended(&durawarp_in(&folder, &["sweep", "lint", "two.toml"]), 0, &words);
    ended(&durawarp_in(&folder, &["sweep", "lint", "two.toml", "--strict"]), 1, &words);
    ended(&durawarp_in(&folder, &["sweep", "lint", "one.toml", "--strict"]), 0, &["1 points, 0 axes, 0 warnings"]);
    ended(&durawarp_in(&folder, &["sweep", "lint", "none.toml"]), 2, &["cannot read the sweep file"]);
    let dry = ["sweep", "run", "two.toml", "--dry-run"];
    ended(&durawarp_in(&folder, &dry), 0, &["1 warnings: durawarp sweep lint two.toml"]);
    let told = ended(&durawarp_in(&folder, &["sweep", "run", "one.toml", "--dry-run"]), 0, &[]);
    assert!(!told.contains("warnings"), "{told}");
}

#[test]
fn sensitivity_shows_what_a_number_does_and_every_fault_of_what_is_typed() {
    let folder = folder("cli/sensitivity");
    let keys = "l2.pipeline_cycles,sm.warp_size";
    let arguments = ["sensitivity", "--workloads", "vecadd", "--keys", keys, "--csv", "all.csv"];
    let words = ["agpm-table4, scheme base, profile ci", "l2.pipeline_cycles", "not run:", "sm.warp_size: 16"];
    ended(&durawarp_in(&folder, &arguments), 0, &words);
    // A header, both factors of one number, one factor of the other.
    assert_eq!(std::fs::read_to_string(folder.join("all.csv")).unwrap().lines().count(), 4);
    let wrong = ["sensitivity", "titan-y", "--workloads", "vecad", "--keys", "l2.way"];
    ended(&durawarp_in(&folder, &wrong), 2, &["titan-x", "vecadd"]);
    ended(&durawarp_in(&folder, &["sensitivity", "--keys", "l2.way"]), 2, &["no parameter `l2.way`", "l2.ways"]);
}

/// A file whose rows and names do not go together is no result, and is told of as one.
#[test]
fn a_result_whose_tables_are_broken_is_refused() {
    let folder = folder("config/broken_results");
    let run = ["run", "vecadd", "--profile", "ci", "--set", "params.N=64", "-q", "--json", "a.json"];
    ended(&durawarp_in(&folder, &run), 0, &[]);
    let text = std::fs::read_to_string(folder.join("a.json")).unwrap();
    let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
    result["counters"][0]["names"].as_array_mut().unwrap().push("more".into());
    std::fs::write(folder.join("b.json"), result.to_string()).unwrap();
    ended(&durawarp_in(&folder, &["diff", "a.json", "b.json"]), 2, &["this is no result of a run: row 0 of table"]);
}
