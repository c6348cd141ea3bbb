//! Commands on programs of CPUs: files that a program writes, what is refused, what `explain` shows.

use std::path::Path;

use crate::cli_common::{durawarp, durawarp_in, ended, fails, folder, text};

#[test]
fn files_that_a_program_of_cpus_writes_are_in_its_result_and_below_a_folder() {
    let folder = folder("cli/written-files");
    let program = Path::new("workloads/riscv/written.elf").canonicalize().unwrap();
    let program = program.to_str().unwrap();
    let run = ["run", program, "--file-out", "out", "--json", "run.json", "--", "--threads", "3", "--records", "5"];
    let output = durawarp_in(&folder, &run);
    let told = ended(&output, 0, &["records.txt (75 B)"]);
    let written = std::fs::read(folder.join("out/records.txt")).unwrap();
    assert_eq!(&written[..15], b"000000 of 0000\n", "{told}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    let files = &json["process"]["files"];
    assert_eq!(
        (files.as_array().unwrap().len(), &files[0]["path"], &files[0]["bytes"]),
        (1, &"records.txt".into(), &75.into())
    );
    assert_eq!(files[0]["text"].as_str().map(str::as_bytes), Some(&written[..]));
    // An input is never overwritten: the program itself, under the name of its file.
    std::fs::create_dir_all(folder.join("in")).unwrap();
    std::fs::copy(program, folder.join("in/records.txt")).unwrap();
    let output = durawarp_in(&folder, &["run", "in/records.txt", "--file-out", "in", "--", "--records", "5"]);
    ended(&output, 2, &["in/records.txt", "it is an input of this command"]);
    // A call that is missing is named first.
    let output = durawarp_in(&folder, &["run", program, "-q", "--", "--missing", "1"]);
    assert_eq!(output.status.code(), Some(3));
    let told = text(&output.stderr);
    assert!(told.starts_with("error: the result is wrong: system call `epoll_create1` (20) is not served\n"), "{told}");
    fails(
        &["run", "vecadd", "--file-out", folder.join("out").to_str().unwrap()],
        2,
        &["a program of GPUs writes no files"],
    );
}

#[test]
fn what_there_is_of_kernels_only_is_refused_of_programs_of_cpus() {
    fails(&["stalls", "hash"], 2, &["stages of persists are those of a GPU's"]);
    fails(&["run", "hash", "--profile", "ci", "--launches"], 2, &["counters by launch are of kernels"]);
    fails(&["explain", "hash", "--scheme", "agpm"], 2, &["for `lightwsp-cpu` there are base, light-wsp, sync"]);
    fails(&["run", "hash", "--machine", "titan-x"], 2, &["machines with CPU cores: lightwsp-cpu, cxl-i-cpu"]);
    let broi = ["run", "hash", "--machine", "lightwsp-cpu", "--scheme", "broi"];
    fails(&broi, 2, &["controller.channels", "one controller orders all persists"]);
    fails(&["run", "gemm", "--machine", "broi-cpu"], 2, &["machines with a GPU: agpm-table4"]);
    let many = ["run", "hash", "--set", "params.THREADS=9", "--scheme", "ppa"];
    fails(&many, 2, &["9 threads are more than the 8 harts", "--set core.count=N"]);
    let crash = ["crash", "sps", "--profile", "ci", "--actual-only", "--scheme"];
    let output = durawarp(&[&crash[..], &["sync"]].concat());
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(told.contains("recovery by the program itself, with `--recover`"), "{told}");
    let told = text(&durawarp(&["run", "hash", "--profile", "ci"]).stdout);
    for word in ["IPC", "MPKI", "exit code", "standard output  hash: 50 operations"] {
        assert!(told.contains(word), "no `{word}` in:\n{told}");
    }
}

#[test]
fn a_program_of_cpus_is_explained_down_to_functions_and_instructions() {
    let told = folder("cli/explain_cpus").join("told.json");
    let output = durawarp(&["explain", "hash", "--scheme", "sync", "--json", told.to_str().unwrap()]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for part in ["hash (ci) on lightwsp-cpu under sync", "By core and hart", "work", "MPKI", "probes", "durable fences"]
    {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
    let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(told).unwrap()).unwrap();
    let places = &told["places"];
    let sum = |of: &serde_json::Value| of.as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    // Each core that ran has all its slots by hart, as its counters have them: 4 of 8 cores.
    let harts = places["harts"].as_array().unwrap();
    assert_eq!(harts.len(), 4, "one thread has a hart each");
    let of_harts: Vec<u64> = harts.iter().map(|hart| hart["used"].as_u64().unwrap() + sum(&hart["lost"])).collect();
    assert!(of_harts.iter().all(|&slots| slots * 8 == sum(&told["slots"])), "{of_harts:?} of {}", told["slots"]);
    // All slots at fences of durability are at a function, nearly all at that which has the transactions.
    let functions = places["functions"].as_array().unwrap();
    assert_eq!(functions[0]["function"], "work");
    let lost = |cause: &str| functions.iter().filter_map(|of| of["lost"][cause].as_u64()).sum::<u64>();
    for cause in ["memory", "persist", "atomic", "redirect"] {
        assert_eq!(Some(lost(cause)), told["slots"][cause].as_u64(), "{cause}");
    }
    assert!(told["levels"]["mean_fence_ns"].as_f64().unwrap() > 90.0, "a write to NVM takes longer");
    // One word is a workload, under `base`.
    let base = text(&durawarp(&["explain", "hash"]).stdout);
    assert!(base.contains("under base") && base.contains("0 durable fences, - each"), "{base}");
    fails(&["explain", "sync"], 2, &["`sync` is a scheme; which workload? `durawarp explain WORKLOAD --scheme sync`"]);
    fails(&["explain", "hash", "--svg", "x.svg"], 2, &["there is no drawing of a program of CPUs"]);
}

#[test]
fn regions_of_a_program_of_cpus_are_explained_with_who_waited_for_what() {
    let told = folder("cli/explain_regions_of_cpus").join("told.json");
    let machine = ["--machine", "lightwsp-cpu", "--json", told.to_str().unwrap()];
    let output = durawarp(&[&["explain", "radix", "--scheme", "light-wsp"][..], &machine].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    let words = ["Functions", "Recoverable regions", "checkpoints:", "harts waited for", "a core that is slow to end"];
    for words in words.into_iter().chain(["room in the front-end buffer", "flush-ACKs", "episodes of overflow"]) {
        assert!(text.contains(words), "no `{words}` in:\n{text}");
    }
    assert!(!text.contains("warp") && !text.contains("an atomic's turn"), "{text}");
    let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(told).unwrap()).unwrap();
    let sizes = &told["scheme"]["report"]["sizes"];
    let checkpoints = told["scheme"]["report"]["checkpoints"]["stores"].as_u64().unwrap();
    // Each region ends with a program counter at least.
    assert!(checkpoints >= sizes["regions"].as_u64().unwrap() && checkpoints < sizes["stores"].as_u64().unwrap());
    assert!(told["scheme"]["warps"]["admission_cycles"].as_u64() > Some(0), "{told}");
}

#[test]
fn regions_that_each_core_orders_are_explained_with_their_path_and_their_undo_log() {
    for (scheme, words, absent) in [
        ("capri", ["behind boundaries while something waited", "55296 B a core"], "undo log"),
        ("cwsp", ["stores written ahead", "512 B a core"], "behind boundaries"),
    ] {
        let told = folder("cli/explain_core_regions").join(format!("{scheme}.json"));
        let machine = ["--machine", "lightwsp-cpu", "--json", told.to_str().unwrap()];
        let output = durawarp(&[&["explain", "kvlog", "--scheme", scheme][..], &machine].concat());
        let text = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{text}");
        let all = ["Functions", "Recoverable regions, ordered by each core", "checkpoints:", "regions of other cores"];
        for words in all.into_iter().chain(words).chain(["bdry-ACKs", "a region has persisted"]) {
            assert!(text.contains(words), "no `{words}` in:\n{text}");
        }
        assert!(!text.contains(absent) && !text.contains("flush-ACKs") && !text.contains("warp"), "{text}");
        let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(told).unwrap()).unwrap();
        let of = &told["scheme"];
        let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
        // Every store and boundary takes the path once.
        let sizes = &of["regions"]["report"]["sizes"];
        assert_eq!(number(&of["paths"]["entries"]), number(&sizes["stores"]) + number(&sizes["regions"]));
        let used = number(&of["paths"]["used_share"]);
        assert!(used > 0.01 && used < 1.0, "{used}");
        // Oldest regions of the four cores that ran waited most of the time.
        let waits = &of["regions"]["controllers"][0];
        let all = ["boundary_cycles", "boundary_ack_cycles", "flush_cycles"].map(|wait| number(&waits[wait]));
        assert!(all.iter().sum::<f64>() > 0.0 && number(&waits["flush_ack_cycles"]) == 0.0, "{waits}");
        assert!(number(&of["tracker"]["mean_persisting_ns"]) > 40.0, "there and back: {of}");
    }
}

#[test]
fn persist_buffers_and_their_queues_are_explained_by_scheme() {
    let folder = folder("cli/explain_queues");
    let told = |scheme: &str| {
        let json = folder.join(format!("{scheme}.json"));
        let output = durawarp(&[
            "explain",
            "hash",
            "--scheme",
            scheme,
            "--machine",
            "broi-cpu",
            "--json",
            json.to_str().unwrap(),
        ]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let told: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
        (text(&output.stdout).to_string(), told["scheme"].clone())
    };
    let sum = |of: &serde_json::Value| of.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>();
    for scheme in ["epoch", "broi"] {
        let (shown, queues) = told(scheme);
        for part in ["bank parallelism", "requests, by banks busy", "entries, by how full their buffer was"] {
            assert!(shown.contains(part), "{scheme}: no `{part}` in:\n{shown}");
        }
        // Each request is handed over once, each set has a size, each entry found its buffer so full.
        let of = |name: &str| queues[name].as_u64().unwrap();
        assert_eq!(sum(&queues["banks"]), of("requests"), "{scheme}");
        assert_eq!(sum(&queues["set_sizes"]), of("sets"), "{scheme}");
        assert_eq!(sum(&queues["fill"]), of("entries") + of("fence_entries"), "{scheme}");
        assert_eq!(shown.contains("of all harts together"), scheme == "epoch", "{shown}");
    }
    let sync = text(&durawarp(&["explain", "hash", "--scheme", "sync", "--machine", "broi-cpu"]).stdout);
    assert!(!sync.contains("Persist buffers"), "{sync}");
}
