//! Every command that a page shows is run as it stands there, at a small size, in the order of the page and in one folder,
//! so that a command finds what those before it wrote. It ends with the exit code that the page means.

#![expect(clippy::disallowed_methods, reason = "how long each command takes is told")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::cli_common::{command, folder, text};
use crate::docs::{PAGES, Page, page, placeholder};
use crate::imports::TITAN_X;

/// Commands that end with another exit code than 0: how they begin, the code, and why.
const ENDS: [(&str, i32, &str); 10] = [
    ("crash atax --scheme store+clwb --flag-barrier paper", 3, "the paper's program lacks a barrier"),
    ("crash histogram --scheme light-wsp --set light_wsp.id_draw=paper", 3, "the published draw of numbers"),
    (
        "crash litmus/message_cta_barrier --machine scoped-table2 --scheme nvw-fifo --by",
        3,
        "its barrier orders one CTA by definition",
    ),
    ("crash litmus/cpu/migrated_line", 3, "`snoop = feb` reads an old value, as published"),
    ("crash litmus/cpu/seen_flag", 3, "the paper's boundaries leave loads that acquire out"),
    ("config diff", 1, "they differ"),
    ("diff one.json other.json", 1, "they differ"),
    ("bisect gemm --save", 0, "nothing is compared"),
    ("bisect gemm --against", 0, "the same run"),
    ("bisect", 1, "the runs part"),
];

/// What makes a long command short: how it begins, and options that are added, or put in place of its own.
const SMALLER: [(&str, &str); 28] = [
    ("reproduce agpm", "--profile ci --figure fig7,overheads --kernels ATAX1 --no-readings"),
    ("reproduce scoped", "--figure area --no-readings"),
    ("reproduce lightwsp --", "--figure cost --no-readings"),
    ("reproduce lightwsp-cpu", "--figure g4 --no-readings"),
    ("reproduce broi", "--figure fig3 --no-readings"),
    ("sensitivity titan-x", "--workloads vecadd --keys l2.ways"),
    ("bench", "--workloads vecadd --repeats 1"),
    ("scaling", "--max-cycles 2000"),
    // One state is no number of points.
    ("crash hash --profile ci --machine broi-cluster --scheme broi --only", "--resume 1"),
    ("crash hash", "--points 1 --actual-only --resume 1"),
    ("crash replicate", "--points 1 --actual-only --resume 1"),
    ("crash rbtree", "--points 1 --actual-only --resume 1"),
    ("crash persist_order", "--points 1 --actual-only --resume 1"),
    ("crash treap", "--points 1 --actual-only --resume 1"),
    ("crash reserve", "--points 1 --actual-only --resume 1"),
    ("crash kv_store", "--points 4 --actual-only"),
    ("crash gemm", "--points 1 --actual-only --resume 1"),
    ("crash histogram --scheme light-wsp", "--points 4 --resume 1"),
    (
        "run hash --profile ci --machine broi-cluster --scheme broi --set nodes",
        "--set nodes.servers=2 --set nodes.clients=2",
    ),
    ("check hash", "--set nodes.servers=2 --set nodes.clients=2 --threads 1"),
    ("check path/to/mine", "--threads 1"),
    ("run replicate --profile ci --set params.PEERS=2", "--set params.TRANSACTIONS=1"),
    ("check", "--threads 2"),
    ("run treap --profile ci --scheme light-wsp --timeline", "--max-cycles 4000"),
    ("run kvlog", "--max-cycles 4000"),
    ("run hash --profile ci --scheme sync --timeline", "--max-cycles 4000"),
    ("compare gemm", "--schemes base,strict"),
    // A host without Slurm has no sbatch.
    ("sweep run l2.toml --slurm", "--dry-run"),
];

/// Commands in blocks that are not this program's, and why they are not run here.
const OTHERS: [(&str, &str); 7] = [
    ("cargo ", "builds and tests: this test is one of them"),
    (".ci/run", "runs this test"),
    ("grep ", "compares with a file of the reader's"),
    ("riscv64-linux-gnu-gcc ", "a cross compiler, which few hosts have"),
    ("python3 -m venv ", "the package has tests of its own"),
    ("venv/bin/pip ", "needs a network"),
    ("workloads/compile.sh ", "a compiler of CUDA: a test of its own asks for one"),
];

/// The pages whose commands a reader may type.
fn pages() -> impl Iterator<Item = &'static Page> {
    let of_readers = |page: &&Page| {
        let path = page.path.strip_prefix(".").unwrap_or(&page.path);
        path.starts_with("docs")
            || path.starts_with("workloads")
            || path.ends_with("README.md")
            || path.ends_with("CONTRIBUTING.md")
    };
    PAGES.iter().filter(of_readers)
}

/// A folder with what the commands of a page take for there: a workload, a trace, machines, files of others.
fn place(page: &Page) -> PathBuf {
    let name = page.path.display().to_string().replace(['/', '.'], "_");
    let here = folder(&format!("walkthrough/{name}"));
    let of_cpus = page.path.ends_with("cpus.md");
    let copy = |from: &Path, to: &str| {
        std::fs::create_dir_all(here.join(to)).unwrap();
        for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_file() {
                std::fs::copy(&entry, here.join(to).join(entry.file_name().unwrap())).unwrap();
            }
        }
    };
    copy(Path::new(if of_cpus { "workloads/reserve" } else { "workloads/atax" }), "path/to/mine");
    copy(Path::new("tests/traces/small"), "path/to/traces");
    copy(Path::new("tests/traces/packed"), "path/to/packed");
    let machine = self::page("docs/machines.md").blocks("toml").swap_remove(0).1;
    let write = |file: &str, text: &str| {
        let file = here.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    write("my.toml", &machine);
    write("mine.toml", &machine);
    write("gpgpusim.config", TITAN_X);
    write("trace.config", "-trace_opcode_latency_initiation_int 4,1\n");
    let mut opcodes = self::page("docs/traces.md").blocks("toml").into_iter().map(|(_, block)| block);
    write("table.toml", &opcodes.find(|block| block.starts_with("UBLKPF")).unwrap());
    let sweep = std::fs::read_to_string("benches/sweeps/l2.toml").unwrap();
    let workloads = sweep.lines().find(|line| line.starts_with("workloads = ")).unwrap();
    write("l2.toml", &sweep.replace(workloads, "workloads = [\"vecadd\"]"));
    std::fs::copy("tests/data/devices/ddr3.toml", here.join("my-device.toml")).unwrap();
    std::fs::copy("workloads/vecadd/kernel.ptx", here.join("kernel.ptx")).unwrap();
    let pages = ["workloads/README.md", "workloads/manifest.md"];
    for (_, block) in pages.into_iter().flat_map(|page| self::page(page).blocks("toml")) {
        for (word, file) in [("\"saxpy\"", "saxpy/workload.toml"), ("\"transfer\"", "transfer.toml")] {
            if block.contains(&format!("name = {word}")) {
                write(file, &block);
            }
        }
    }
    std::fs::copy("tests/workload/readme/saxpy.ptx", here.join("saxpy/kernel.ptx")).unwrap();
    here
}

/// A command of a page: what is run, and the file that its standard output goes to.
struct Shown {
    place: String,
    words: Vec<String>,
    into: Option<String>,
}

/// A word in capitals that stands for the reader's own: FILE, KEY=VALUE, NAME. States of crash tests are in capitals, too:
/// A:0.
fn is_the_readers(word: &str) -> bool {
    let value = word.rsplit('=').next().unwrap_or(word);
    let in_capitals = value.contains(char::is_alphabetic) && !value.contains(char::is_lowercase);
    in_capitals && placeholder(value) && !value.contains(':') || word.contains(['[', '|']) || word == "..."
}

/// A command as it is run; `None` of one that is named with no arguments, or with such that are the reader's own.
fn shown(place: String, line: &str) -> Option<Shown> {
    let own = |word: &&str| !["#", "|", "&&", ">"].contains(word);
    // A port that is free, and a folder that is here.
    let line = line.replace("~/mine/", "./").replace("127.0.0.1:8080", "127.0.0.1:0");
    let mut words: Vec<String> = line.split_whitespace().take_while(own).map(str::to_owned).collect();
    let is_group = ["sweep", "config", "ptx"].contains(&words[0].as_str());
    // `run --from`, a group's command without its file: named, not typed.
    let is_named = match words.as_slice() {
        [one] => one != "doctor",
        [_, second] => is_group && second != "check" || second.starts_with("--"),
        _ => false,
    };
    if is_named || words.iter().any(|word| is_the_readers(word)) {
        return None;
    }
    // Files of the project stand where it lies.
    for word in &mut words {
        if ["workloads/", "benches/", "examples/"].iter().any(|folder| word.starts_with(folder)) {
            *word = Path::new(env!("CARGO_MANIFEST_DIR")).join(&*word).display().to_string();
        }
    }
    let whole = words.join(" ");
    let of_own = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let of_program = words.split_off(of_own);
    let has_its_size = ["--profile", "--from", "kernelslist", ".tracez"].iter().any(|own| whole.contains(own));
    if words[0] == "run" && !has_its_size {
        words.extend(["--profile", "ci"].map(str::to_owned));
    }
    if let Some((_, options)) = SMALLER.iter().find(|(begin, _)| whole.starts_with(begin)) {
        let mut options = options.split(' ').map(str::to_owned).peekable();
        while let Some(option) = options.next() {
            let value = options.next_if(|next| !next.starts_with("--"));
            match words.iter().position(|word| *word == option && option != "--set") {
                Some(at) => words.splice(at + 1..at + 2, value).for_each(drop),
                None => words.extend([option].into_iter().chain(value)),
            }
        }
    }
    words.extend(of_program);
    let into = line.split_once(" > ").map(|(_, rest)| rest.split_whitespace().next().unwrap().to_owned());
    Some(Shown { place, words, into })
}

/// Runs the commands of a page; what does not end as the page means.
fn walk(page: &Page, done: &Mutex<BTreeSet<String>>) -> Vec<String> {
    let here = place(page);
    let mut wrong = Vec::new();
    for (place, line) in page.command_lines() {
        let Some(Shown { place, words, into }) = shown(place, &line) else { continue };
        let whole = words.join(" ");
        // Pages show some commands again: one that has nothing to do with files is run once.
        let alone = into.is_none() && !words.iter().any(|word| word.contains('.') || word.starts_with("path/"));
        if alone && !done.lock().unwrap().insert(whole.clone()) {
            continue;
        }
        let begun = Instant::now();
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = command(&here, &arguments).output().expect("the binary starts");
        println!("{:6.2} s  {place}: {whole}", begun.elapsed().as_secs_f64());
        let expected = ENDS.iter().find(|(begin, ..)| line.starts_with(begin)).map_or(0, |(_, code, _)| *code);
        if output.status.code() != Some(expected) {
            let told = text(if output.stderr.is_empty() { &output.stdout } else { &output.stderr });
            wrong.push(format!("{place}: {whole}: {}, expected {expected}:\n{told}", output.status));
        }
        if let Some(into) = into {
            std::fs::write(here.join(into), output.stdout).unwrap();
        }
    }
    wrong
}

#[test]
fn every_command_of_every_page_does_what_the_page_says() {
    let pages: Vec<&Page> = pages().collect();
    let (next, done, wrong) = (AtomicUsize::new(0), Mutex::default(), Mutex::new(Vec::new()));
    let work = || {
        while let Some(page) = pages.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = walk(page, &done);
            wrong.lock().unwrap().extend(found);
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(pages.len());
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let wrong: Vec<String> = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} commands:\n{}", wrong.len(), wrong.join("\n"));
    assert!(done.into_inner().unwrap().len() > 60, "pages show more commands than that");
}

#[test]
fn every_other_command_of_a_page_is_known_here() {
    for page in pages() {
        for (first, block) in page.blocks("sh") {
            for (index, line) in block.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
                let line = line.trim_start();
                let known = line.starts_with("durawarp ") || OTHERS.iter().any(|(begin, _)| line.starts_with(begin));
                assert!(known, "{}:{}: {line}", page.path.display(), first + index);
            }
        }
    }
}
