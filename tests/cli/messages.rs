//! What is told of wrong inputs and of what a command did, where it was misleading once.

use crate::cli_common::{command, durawarp, durawarp_in, ended, folder, text};

#[test]
fn what_was_typed_is_what_a_fault_is_told_under() {
    let fails = |words: &[&str], told: &[&str]| drop(ended(&durawarp(words), 2, told));
    fails(&["run", "atax", "--set", "params.ZZ=5"], &["has no parameter `ZZ`", "--set params.ZZ=5"]);
    fails(&["bisect", "gemm", "--other", "foo=1"], &["unknown key `foo`", "--other foo=1"]);
    fails(&["bisect", "gemm", "--set", "foo=1", "--other", "l2.ways=8"], &["--set foo=1"]);
    fails(&["run", "atax", "--max-cycles", "0"], &["invalid value '0' for '--max-cycles"]);
    fails(&["run", "atax", "--set", "clock.core_mhz=1400GHz"], &["a frequency in MHz up to 100000"]);
    fails(&["crash", "hashmap_remote", "--only", "A:0"], &["has no persistent memory, and so no states"]);
    let unit = ["config", "show", "agpm-table4", "--set", "l2.slice_kb=256kB"];
    ended(&durawarp(&unit), 0, &["slice_kb = { value = 256,"]);
}

#[test]
#[cfg(unix)]
fn words_that_are_no_utf8_are_told_as_far_as_they_can_be_read() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder("cli/no_utf8");
    let of = |words: &[&[u8]]| {
        let words = words.iter().map(|word| OsStr::from_bytes(word));
        command(&folder, &[]).args(words).output().unwrap()
    };
    for words in [&[&b"\xff"[..]][..], &[b"sweep", b"r\xff"], &[b"run", b"vecadd", b"--bogus\xff"]] {
        ended(&of(words), 2, &["error: "]);
    }
    // Where a path is one, the command that judges a state again is shown all the same.
    let subject: [&[u8]; 6] = [b"crash", b"litmus/undo_log", b"--scheme", b"base", b"--json", b"\xff.json"];
    ended(&of(&subject), 0, &["durawarp crash litmus/undo_log --scheme base --only B:6:1"]);
    assert!(folder.join(OsStr::from_bytes(b"\xff.json")).exists());
}

#[test]
fn a_file_that_is_no_machine_is_told_for_what_it_is_not() {
    let folder = folder("cli/no_machine");
    std::fs::write(folder.join("garbage.bin"), [0xff, 0xfe, 0x00]).unwrap();
    let run = |option: &str| durawarp_in(&folder, &["run", "atax", option, "garbage.bin"]);
    ended(&run("--machine"), 2, &["cannot read machine file `garbage.bin`: not UTF-8 text"]);
    ended(&run("--scheme"), 2, &["cannot read scheme file `garbage.bin`: not UTF-8 text"]);
    ended(&durawarp_in(&folder, &["config", "check", "garbage.bin"]), 2, &["not UTF-8 text"]);
}

#[test]
fn ptx_without_a_kernel_is_told_and_no_ptx_is_no_success() {
    let folder = folder("cli/no_kernel");
    // What `nvcc` makes of a source file without kernels; PTX of wheels has one such file in 25.
    let header = ".version 8.0\n.target sm_80\n.address_size 64\n";
    for (name, content, code) in [("empty.ptx", "", 2), ("comment.ptx", "// none\n", 2), ("header.ptx", header, 0)] {
        std::fs::write(folder.join(name), content).unwrap();
        ended(&durawarp_in(&folder, &["ptx", "check", name]), code, &["there is no kernel in the file", name]);
    }
}

#[test]
fn a_run_says_where_its_timeline_is() {
    let folder = folder("cli/told_timeline");
    let run = ["run", "vecadd", "--profile", "ci", "--timeline", "t.json.gz"];
    let output = durawarp_in(&folder, &run);
    ended(&output, 0, &["note: the timeline is in `t.json.gz`: open it with https://ui.perfetto.dev"]);
    let quiet = durawarp_in(&folder, &[&run[..], &["-q"]].concat());
    assert_eq!(text(&quiet.stderr), "");
}

#[test]
fn an_event_is_told_by_fields_with_masks_in_hexadecimal() {
    let told = ended(&durawarp(&["bisect", "gemm", "--other", "scheme=strict"]), 1, &["mask 0x"]);
    assert!(!told.contains(" { ") && !told.contains("mask: "), "{told}");
    assert!(told.contains("kind ") && told.contains("sectors 0x"), "{told}");
}

#[test]
fn a_figure_that_is_arithmetic_takes_its_schemes_parameters() {
    let figure = ["reproduce", "broi", "--figure", "fig3", "--no-store", "--set"];
    let of = |set: &str| ended(&durawarp(&[&figure[..], &[set]].concat()), 0, &[]);
    assert_ne!(of("broi.sigma_thousandths=0"), of("broi.sigma_thousandths=500"));
    ended(&durawarp(&[&figure[..], &["agpm.key=slot"]].concat()), 2, &["`agpm`, which is none of the schemes "]);
}
