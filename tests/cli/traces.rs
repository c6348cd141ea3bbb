//! Traces as a user meets them: what says that a result is timing without values, what is refused and why, what is wrong
//! with a file.

use std::path::{Path, PathBuf};

use crate::cli_common::{durawarp, durawarp_in, ended, folder, text};

const SMALL: &str = "tests/traces/small";

/// A folder with a copy of the small trace.
fn copy(name: &str) -> PathBuf {
    let folder = folder(name);
    for entry in std::fs::read_dir(SMALL).unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, folder.join(from.file_name().unwrap())).unwrap();
    }
    folder
}

/// Runs the trace in a folder, whose files are not what they should be: all that is told.
#[track_caller]
fn refused(folder: &Path) -> String {
    let output = durawarp_in(folder, &["run", "kernelslist.g", "--machine", "titan-x"]);
    ended(&output, 2, &[]);
    text(&output.stderr)
}

/// Changes the lines of a file of text.
fn change(file: &Path, change: impl FnOnce(&mut Vec<String>)) {
    let mut lines: Vec<String> = std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    std::fs::write(file, lines.join("\n") + "\n").unwrap();
}

fn json(file: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

#[test]
fn every_output_says_that_a_trace_has_no_values() {
    let folder = copy("cli_traces/outputs");
    let run = ["run", "kernelslist.g", "--machine", "titan-x", "--json", "out.json"];
    let shown = ended(&durawarp_in(&folder, &run), 0, &["trace: timing without values", "none: a trace has no values"]);
    assert!(shown.starts_with("outputs (trace) on titan-x"), "{shown}");
    let json = json(&folder.join("out.json"));
    assert_eq!(json["validity"][0]["kind"], "trace");
    assert_eq!(json["workload"]["trace"]["warp_instructions"], 64);
    assert_eq!(json["verification"], serde_json::Value::Null);
    // A sweep has it in its table.
    let sweep = "schema = 1\nname = \"it\"\n[base]\nmachine = \"titan-x\"\nworkloads = [\"kernelslist.g\", \"persistent.toml\"]\n";
    std::fs::write(folder.join("sweep.toml"), sweep).unwrap();
    ended(&durawarp_in(&folder, &["sweep", "run", "sweep.toml"]), 0, &["done 2 (0 cached)"]);
    let table = ended(&durawarp_in(&folder, &["sweep", "table", "sweep.toml"]), 0, &["warnings"]);
    assert!(table.lines().skip(1).all(|line| line.ends_with(" trace")), "{table}");
    assert!(table.contains("kernelslist.g") && table.contains("persistent.toml"), "{table}");
}

#[test]
fn a_trace_is_checked_for_equal_runs_and_has_no_result_that_could_be_wrong() {
    let folder = copy("cli_traces/check");
    let told = ended(&durawarp_in(&folder, &["check", "kernelslist.g", "--threads", "1,2"]), 0, &["all equal"]);
    assert!(told.matches("  equal   ").count() == 6 && !told.contains("FAILED"), "{told}");
}

#[test]
fn a_folder_or_labels_stand_for_the_list() {
    let folder = copy("cli_traces/folder");
    ended(&durawarp_in(&folder, &["run", ".", "--machine", "titan-x"]), 0, &["_Z5scalePf"]);
    let labelled = durawarp_in(&folder, &["run", "persistent.toml", "--machine", "titan-x", "--scheme", "store+clwb"]);
    ended(&labelled, 0, &["small-persistent (trace)", "5 stores, 5 write-backs, 2 fences"]);
}

#[test]
fn a_kernel_by_itself_runs_with_the_labels_beside_it() {
    let folder = copy("cli_traces/kernel");
    std::fs::copy("tests/traces/packed/kernel-2.tracez", folder.join("kernel-9.tracez")).unwrap();
    let run = ["run", "kernel-9.tracez", "--machine", "ampere-a100"];
    ended(&durawarp_in(&folder, &run), 0, &["kernel-kernel-9 (trace)", "_Z6packed2"]);
    std::fs::write(folder.join("kernel-9.toml"), "name = \"nine\"\n").unwrap();
    ended(&durawarp_in(&folder, &run), 0, &["nine (trace)"]);
    let whole = std::fs::read(folder.join("kernel-9.tracez")).unwrap();
    std::fs::write(folder.join("kernel-9.tracez"), &whole[..whole.len() - 9]).unwrap();
    ended(&durawarp_in(&folder, &run), 2, &["cannot read the file: its last 8 bytes say that", "--> kernel-9.tracez"]);
}

#[test]
fn what_needs_values_is_refused_with_the_reason() {
    let list = format!("{SMALL}/kernelslist.g");
    let labels = format!("{SMALL}/persistent.toml");
    let crash = durawarp(&["crash", &labels, "--machine", "titan-x", "--scheme", "store+clwb"]);
    ended(&crash, 2, &["a trace has no values", "cannot be recovered, nor judged"]);
    let regions = durawarp(&["run", &list, "--machine", "titan-x", "--scheme", "light-wsp"]);
    ended(&regions, 2, &["is a trace: schemes of recoverable regions form a program's code"]);
    let several = ["run", &list, "--profile", "ci", "--set", "params.N=3", "--input", "a=b"];
    let several = durawarp(&[&several[..], &["--machine", "titan-x"]].concat());
    ended(&several, 2, &["has no profile `ci`", "it has no parameters", "it has no buffers, and no values"]);
    let wide = durawarp(&["run", &list, "--machine", "scoped-table2"]);
    ended(&wide, 2, &["sm.warp_size", "the warps of a trace have 32 lanes"]);
}

#[test]
fn every_fault_of_a_trace_is_told_at_once_with_its_line() {
    let folder = copy("cli_traces/faults");
    change(&folder.join("kernel-1.traceg"), |lines| {
        let line = |lines: &Vec<String>, word: &str| lines.iter().position(|line| line.contains(word)).unwrap();
        lines.iter_mut().for_each(|line| *line = line.replace("IADD3", "IADDD3"));
        let at = line(lines, "STG.E");
        lines[at] = lines[at].replace("0x00007f2b00002000 4 0", "0x00007f2b00002001 4 0");
        let at = line(lines, "0000000d 1 R8");
        lines[at] = lines[at].replace(" 128 -64 0", " 128");
        let at = line(lines, "insts = 5");
        lines[at] = "insts = 6".to_owned();
    });
    change(&folder.join("kernel-3.traceg"), |lines| lines.retain(|line| !line.starts_with("-grid dim")));
    let told = refused(&folder);
    for expected in [
        "unknown opcode `IADDD3`",
        "did you mean `IADD3`?",
        "address 0x7f2b00002001 is no multiple of its 4 bytes",
        "the line ends where a delta of addresses is expected",
        "the warp has `insts = 6`, and 5 lines",
        "the header has no `-grid dim`",
        "kernel-1.traceg:",
        "kernel-3.traceg",
    ] {
        assert!(told.contains(expected), "no `{expected}` in:\n{told}");
    }
    assert_eq!(told.matches("unknown opcode").count(), 1, "an opcode is told of once:\n{told}");
}

#[test]
fn a_file_that_is_cut_short_or_missing_is_told() {
    let folder = copy("cli_traces/cut");
    let file = folder.join("kernel-1.traceg");
    let whole = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 300]).unwrap();
    let packed = std::fs::read(folder.join("kernel-2.traceg.xz")).unwrap();
    std::fs::write(folder.join("kernel-2.traceg.xz"), &packed[..packed.len() / 2]).unwrap();
    let told = refused(&folder);
    assert!(told.contains("within a CTA: `#END_TB` is missing"), "{told}");
    assert!(told.contains("cannot read the file: its compressed text is cut short"), "{told}");
    assert_eq!(told.matches("kernel-2.traceg.xz").count(), 1, "one fault, and none that follows from it:\n{told}");
    std::fs::remove_file(&file).unwrap();
    assert!(refused(&folder).contains("there is no file `kernel-1.traceg`"));
    std::fs::remove_file(folder.join("kernelslist.g")).unwrap();
    let none = durawarp_in(&folder, &["run", "kernelslist.g"]);
    ended(&none, 2, &["kernelslist.g"]);
    ended(
        &durawarp_in(&folder, &["run", "persistent.toml"]),
        2,
        &["persistent.toml:2:9", "there is no file `kernelslist.g`"],
    );
}

#[test]
fn a_lane_that_has_exited_or_does_not_exit_is_told() {
    let folder = copy("cli_traces/exit");
    let file = folder.join("kernel-3.traceg");
    let whole = std::fs::read_to_string(&file).unwrap();
    let of = |from: &str, to: &str| {
        assert!(whole.contains(from));
        std::fs::write(&file, whole.replace(from, to)).unwrap();
        refused(&folder)
    };
    assert!(of("0028 ffffffff 0 EXIT", "0028 0fffffff 0 EXIT").contains("lanes f0000000 of the warp do not exit"));
    let twice = of("0010 ffffffff 1 R2 FMUL 1 R2 0", "0010 00000003 0 EXIT 0 0");
    assert!(twice.contains("lanes 00000003 have exited"), "{twice}");
    let block = of("-block dim = (32,1,1)", "-block dim = (16,1,1)");
    assert!(block.contains("lanes ffff0000 are not there"), "{block}");
    let warps = of("-block dim = (32,1,1)", "-block dim = (64,1,1)");
    assert!(warps.contains("has no instructions of warp 1"), "{warps}");
}

#[test]
fn lines_of_the_list_that_are_not_known_are_told_and_have_no_effect() {
    let folder = copy("cli_traces/list");
    let run = ["run", "kernelslist.g", "--machine", "titan-x", "--json", "out.json"];
    let digest = |told: &[&str]| {
        ended(&durawarp_in(&folder, &run), 0, told);
        json(&folder.join("out.json"))["digest"].clone()
    };
    let plain = digest(&[]);
    change(&folder.join("kernelslist.g"), |lines| {
        lines.insert(0, "cudaMalloc,0x00007f2b00000000,8192".to_owned());
        lines.push("cudaMalloc,0x00007f2b00002000,64".to_owned());
    });
    let told = "lines of the list that are neither a kernel nor a copy: 2 cudaMalloc";
    assert_eq!(digest(&[told]), plain);
    assert_eq!(json(&folder.join("out.json"))["workload"]["trace"]["ignored_lines"]["cudaMalloc"], 2);
}

#[test]
fn a_warp_without_instructions_ends_with_an_exit_that_is_told() {
    let folder = copy("cli_traces/empty_warp");
    std::fs::write(folder.join("kernelslist.g"), "kernel-3.traceg\n").unwrap();
    let run = ["run", "kernelslist.g", "--machine", "titan-x", "--json", "out.json"];
    let counted = |told: &[&str]| {
        ended(&durawarp_in(&folder, &run), 0, told);
        let json = json(&folder.join("out.json"));
        ["warp_instructions", "empty_warps"].map(|name| json["workload"]["trace"][name].as_u64().unwrap())
    };
    let [instructions, none] = counted(&[]);
    assert_eq!(none, 0);
    let ctas = std::fs::read_to_string(folder.join("kernel-3.traceg")).unwrap().matches("#END_TB").count() as u64;
    change(&folder.join("kernel-3.traceg"), |lines| {
        lines.iter_mut().for_each(|line| *line = line.replace("dim = (32,1,1)", "dim = (64,1,1)"));
        *lines = lines
            .iter()
            .flat_map(|line| match line.as_str() {
                "#END_TB" => vec!["warp = 1".to_owned(), "insts = 0".to_owned(), line.clone()],
                _ => vec![line.clone()],
            })
            .collect();
    });
    let told = format!("{ctas} warps have no instruction in the trace");
    assert_eq!(counted(&[&told]), [instructions + ctas, ctas]);
    // A warp of which not even that is said is still missing.
    change(&folder.join("kernel-3.traceg"), |lines| lines.retain(|line| line != "warp = 1" && line != "insts = 0"));
    assert!(refused(&folder).contains("has no instructions of warp 1"));
}

#[test]
fn chosen_kernels_come_to_what_a_list_of_them_comes_to() {
    let folder = copy("cli_traces/kernels");
    let whole = std::fs::read_to_string(folder.join("kernelslist.g")).unwrap();
    let digest = |options: &[&str], told: &[&str]| {
        let run = [&["run", "kernelslist.g", "--machine", "titan-x", "--json", "out.json"][..], options].concat();
        ended(&durawarp_in(&folder, &run), 0, told);
        json(&folder.join("out.json"))["digest"].clone()
    };
    let chosen = digest(&["--kernels", "3"], &["kernels 3 were chosen; 2 others of the list were skipped"]);
    let described = json(&folder.join("out.json"))["workload"]["trace"].clone();
    assert_eq!((&described["kernels"], &described["skipped"]), (&1.into(), &2.into()));
    // The name chooses as the number does; labels choose as the option does.
    let by_name = digest(&["--kernels", "2-3"], &["kernels 2-3 were chosen; 1 others"]);
    assert_eq!(digest(&["--kernels", "@^_Z5scale"], &[]), by_name);
    assert_ne!(by_name, chosen);
    std::fs::write(folder.join("kernelslist.toml"), "kernels = \"3\"\n").unwrap();
    assert_eq!(digest(&[], &["kernels 3 were chosen"]), chosen);
    std::fs::remove_file(folder.join("kernelslist.toml")).unwrap();
    let all = digest(&[], &[]);
    assert_eq!(digest(&["--kernels", "1-3"], &[]), all);
    assert_ne!(all, chosen);
    std::fs::write(
        folder.join("kernelslist.g"),
        whole.replace("kernel-1.traceg\n", "").replace("kernel-2.traceg.xz\n", ""),
    )
    .unwrap();
    assert_eq!(digest(&[], &[]), chosen);
    // What names no kernel is a mistake, even beside what does.
    let refused = |kernels: &str, told: &[&str]| {
        ended(&durawarp_in(&folder, &["run", "kernelslist.g", "--kernels", kernels]), 2, told);
    };
    refused("3,7-9,@nosuch", &["`7-9` names no kernel of the trace", "`@nosuch` names no kernel"]);
    refused("3-1", &["expected kernels as 3, 5-8 or @REGEX"]);
    ended(&durawarp(&["run", "vecadd", "--kernels", "1"]), 2, &["workload `vecadd` is no trace"]);
}

#[test]
fn a_table_of_the_users_says_what_an_unknown_opcode_is_timed_as() {
    let folder = copy("cli_traces/opcodes");
    let run = |options: &[&str]| {
        let run = ["run", "kernelslist.g", "--machine", "titan-x", "--json", "out.json"];
        durawarp_in(&folder, &[&run[..], options].concat())
    };
    ended(&run(&[]), 0, &[]);
    let plain = json(&folder.join("out.json"))["digest"].clone();
    change(&folder.join("kernel-1.traceg"), |lines| {
        lines.iter_mut().for_each(|line| {
            *line = line.replace("IADD3", "ZQXW").replace("-binary version = 80", "-binary version = 99");
        });
    });
    let none = run(&[]);
    ended(&none, 2, &["`-binary version`: expected one of"]);
    // The table is for architectures whose own opcodes are not known, too.
    std::fs::write(folder.join("table.toml"), "FMUL = \"FMUL\"\n").unwrap();
    ended(
        &run(&["--opcodes", "table.toml"]),
        2,
        &["unknown opcode `ZQXW`", "`--opcodes FILE` says which known opcode"],
    );
    std::fs::write(folder.join("table.toml"), "ZQXW = \"IADD3\"\n").unwrap();
    ended(&run(&["--opcodes", "table.toml"]), 0, &["by the table of opcodes timed as others: 2 ZQXW as IADD3"]);
    let out = json(&folder.join("out.json"));
    assert_eq!((&out["digest"], &out["workload"]["trace"]["renamed"]["ZQXW as IADD3"]), (&plain, &2.into()));
    // Labels have the same rows.
    std::fs::write(folder.join("labels.toml"), "trace = \"kernelslist.g\"\n[opcodes]\nZQXW = \"MUFU\"\n").unwrap();
    let labels = ["run", "labels.toml", "--machine", "titan-x"];
    ended(&durawarp_in(&folder, &labels), 0, &["2 ZQXW as MUFU"]);
    let over = [&labels[..], &["--opcodes", "table.toml"]].concat();
    ended(&durawarp_in(&folder, &over), 0, &["2 ZQXW as IADD3"]);
}
