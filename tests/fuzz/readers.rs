//! Every reader of files, with valid files of its kind.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use durawarp::config::device::{self, DeviceRequest};
use durawarp::config::{AnyMachine, Override, SchemeConfig, import::import, presets};
use durawarp::diagnostic::Diagnostic;
use durawarp::outcome::Outcome;
use durawarp::report::Differences;
use durawarp::run::checkpoint::Checkpoint;
use durawarp::sweep::{Store, SweepFile};
use durawarp::workload::{Choice, Workload};

/// Gives bytes to a reader.
pub(crate) type ReadFn = Box<dyn Fn(&[u8])>;

/// Something that reads files of one kind.
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    /// Its share of the inputs.
    pub(crate) weight: u64,
    pub(crate) samples: Vec<Vec<u8>>,
    pub(crate) read: ReadFn,
}

/// A folder of the files that readers read, one for all: an input replaces that before it.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn files(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| std::fs::read(name).unwrap_or_else(|error| panic!("{name}: {error}"))).collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// What a reader of texts makes of bytes that may be none: readers of files refuse these before.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A workload that was read, with its contents: of a size that a slip may have and a test can afford.
fn resolved(workload: &Workload) {
    let choice = Choice { most_bytes: Some(4 << 20), ..Choice::default() };
    if workload.is_of_a_cpu() {
        let _ = workload.program(&choice).map(|program| program.process().map(drop));
    } else {
        let _ = workload.resolve(&choice).map(|resolved| resolved.fingerprint(&mut |_, _| {}));
    }
}

/// Reads a file of this name, whose content is the input.
fn by_file(file: PathBuf, read: impl Fn(&str) + 'static) -> ReadFn {
    Box::new(move |bytes| {
        std::fs::write(&file, bytes).unwrap();
        read(file.to_str().unwrap());
    })
}

fn reader(name: &'static str, weight: u64, samples: Vec<Vec<u8>>, read: ReadFn) -> Reader {
    assert!(samples.iter().all(|sample| !sample.is_empty()), "{name}");
    Reader { name, weight, samples, read }
}

/// All of them.
pub(crate) fn all() -> Vec<Reader> {
    [kernels(), parameters(), traces(), data(), results()].into_iter().flatten().collect()
}

/// PTX, manifests with their expressions, executables.
fn kernels() -> Vec<Reader> {
    let kernel = |name: &str| format!("workloads/{name}/kernel.ptx");
    let ptx: Vec<String> =
        ["vecadd", "bfs", "conv2d", "histogram", "kv_store", "gemm_tensor", "bulk_stream", "tensor_transpose"]
            .map(kernel)
            .into();
    let manifest = |name: &str| {
        let text = std::fs::read_to_string(format!("workloads/{name}/workload.toml")).unwrap();
        // Files beside a manifest: it is read as a text of no folder.
        text.replace("\"kernel.ptx\"", &format!("\"workloads/{name}/kernel.ptx\"")).into_bytes()
    };
    let mut manifests: Vec<Vec<u8>> = ["vecadd", "bfs", "atax", "stencil", "kv_store"].map(manifest).into();
    manifests.extend(files(&["workloads/litmus/undo_log.toml", "workloads/hash/workload.toml"]));
    let expression = r#"schema = 1
name = "e"
description = "expressions"
[isa]
kind = "ptx"
file = "workloads/vecadd/kernel.ptx"
[params]
N = 64
[buffer.a]
type = "f32"
len = "max(1, min(N, 4096))"
init = { kind = "expr", expr = "EXPR" }
[buffer.b]
type = "f32"
len = "N"
[buffer.c]
type = "f32"
len = "N"
[[step]]
kernel = "vecadd"
block = 32
grid = "ceil_div(N, 32)"
args = ["&a", "&b", "&c", "N"]
"#;
    let expressions = [
        "sum(k, 0, idx % 7 + 1, k * k) - pow(2, idx % 5)",
        "idx > 3 && idx < N || !(idx == 2) ? float(idx) / 3.0 : exp(-1.5)",
        "int(floor(sqrt(float(idx)))) % 4 + log2(idx + 1) * ceil_div(idx, 3)",
        "abs(-idx) + min(idx, 4) - max(2, idx) + sum(i, 0, 3, sum(j, i, 4, i * j))",
    ];
    let elf = files(&["workloads/riscv/counter.elf", "workloads/riscv/written.elf", "workloads/hash/hash.elf"]);
    vec![
        reader(
            "ptx",
            10,
            files(&ptx.iter().map(String::as_str).collect::<Vec<_>>()),
            Box::new(|bytes| {
                let text = lossy(bytes);
                let _ = durawarp::kernel::ptx::parse("it.ptx", &text);
                let _ = durawarp::kernel::ptx::check("it.ptx", &text);
            }),
        ),
        reader(
            "manifest",
            10,
            manifests,
            Box::new(|bytes| {
                let _ = Workload::from_text(&lossy(bytes)).map(|workload| resolved(&workload));
            }),
        ),
        reader(
            "expression",
            10,
            texts(&expressions),
            Box::new(move |bytes| {
                let quoted = lossy(bytes).replace(['"', '\\', '\n', '\r'], " ");
                let _ = Workload::from_text(&expression.replace("EXPR", &quoted)).map(|workload| resolved(&workload));
            }),
        ),
        reader(
            "elf",
            8,
            elf,
            Box::new(|bytes| {
                let _ = durawarp::riscv::elf::load("it.elf", bytes, 1 << 20);
            }),
        ),
    ]
}

/// Machines, schemes, overrides, configurations of GPGPU-Sim, sweep files.
fn parameters() -> Vec<Reader> {
    const DEVICES: &str = "crates/simulation/src/config/devices";
    let folder = folder("parameters");
    let head = "inherits = \"agpm-table4\"\nname = \"mine\"\n[sm]\ncount = { value = 10, source = \"me\" }\n";
    let machine = |name: &str| AnyMachine::load(name, &[]).unwrap().to_toml().into_bytes();
    let mut machines: Vec<Vec<u8>> = presets::names().take(3).map(machine).collect();
    machines.push(head.as_bytes().to_vec());
    let scheme = |name: &str| SchemeConfig::load(name, &[]).unwrap().to_toml().into_bytes();
    let schemes: Vec<Vec<u8>> = ["agpm", "base", "themis", "light-wsp"].map(scheme).into();
    let sets =
        texts(&["sm.count=20", "l2.slice_kb=1MiB", "dram.t_cl_ns=1.5us", "clock.core_mhz=1.8GHz", "sm.policy=gto"]);
    let gpgpusim = "-gpgpu_n_clusters 28\n-gpgpu_clock_domains 1417.0:1417.0:1417.0:2500.0\n-gpgpu_cache:dl1  \
        S:4:128:96,L:L:s:N:L,A:256:8,16:0,32\n-gpgpu_cache:dl2 S:64:128:16,L:B:m:L:P,A:256:64,16:0,32 # L2\n\
        -gpgpu_dram_timing_opt \"nbk=16:CCD=2:RRD=8:RCD=16:RAS=37:RP=16:RC=52:\n CL=16:WL=6\"\n-gpgpu_n_mem 12\n\
        -ptx_opcode_latency_int 4,13,4,5,145,32\n-gpgpu_shader_core_pipeline 2048:32\n";
    let sweeps = [
        std::fs::read_to_string("benches/sweeps/l2.toml").unwrap(),
        "schema = 1\nname = \"it\"\nmetrics = [\"cycles\"]\nbaseline = { scheme = \"base\" }\n[base]\nworkload = \"vecadd\"\n\
         set = { \"params.N\" = 64 }\n[[axis]]\nkey = \"l2.slice_kb\"\nrange = { from = 64, to = 256, times = 2 }\n\
         [[axis]]\nkeys = [\"scheme\", \"seed\"]\nvalues = [[\"base\", 1], [\"strict\", 2]]\n[[exclude]]\nseed = 1\n\
         [[figure]]\nkind = \"bars\"\nx = \"l2.slice_kb\"\ny = \"cycles\"\ngroup = \"scheme\"\n"
            .to_owned(),
    ];
    let sweeps = sweeps.map(String::into_bytes).into();
    vec![
        reader(
            "machine",
            8,
            machines,
            by_file(folder.join("machine.toml"), |file| {
                let _ = AnyMachine::load(file, &[]).map(|machine| machine.to_toml());
            }),
        ),
        reader(
            "device",
            4,
            files(
                &["ddr5", "hbm2", "pcm-lee2009"].map(|name| format!("{DEVICES}/{name}.toml")).each_ref().map(|f| &**f),
            ),
            by_file(folder.join("device.toml"), |file| {
                let place = |key: &str, why: &str| Diagnostic::nowhere(key, why);
                let asked = DeviceRequest { device: file, bin: "", density: "", timing: "", ranks: 2, place: &place };
                let _ = device::load(&asked).map(|loaded| device::table(&loaded.device));
            }),
        ),
        reader(
            "scheme",
            4,
            schemes,
            by_file(folder.join("scheme.toml"), |file| {
                let _ = SchemeConfig::load(file, &[]).map(|scheme| scheme.to_toml());
            }),
        ),
        reader(
            "set",
            4,
            sets,
            Box::new(|bytes| {
                if let Ok(over) = Override::parse(&lossy(bytes)) {
                    let _ = AnyMachine::load("agpm-table4", std::slice::from_ref(&over));
                }
            }),
        ),
        reader(
            "gpgpu-sim",
            8,
            texts(&[gpgpusim]),
            Box::new(|bytes| {
                let _ = import("it", &[("gpgpusim.config".to_owned(), lossy(bytes))]).map(|found| format!("{found:?}"));
            }),
        ),
        reader(
            "sweep",
            8,
            sweeps,
            Box::new(|bytes| {
                let _ = SweepFile::read("it.toml", lossy(bytes), Path::new("")).map(|file| format!("{file:?}"));
            }),
        ),
    ]
}

/// Traces: lists, labels, kernels, compressed kernels.
fn traces() -> Vec<Reader> {
    let (small, packed) = (Path::new("tests/traces/small"), Path::new("tests/traces/packed"));
    let copy = |name: &str, of: &Path| {
        let folder = folder(name);
        for entry in std::fs::read_dir(of).unwrap() {
            let from = entry.unwrap().path();
            std::fs::copy(&from, folder.join(from.file_name().unwrap())).unwrap();
        }
        folder
    };
    let load = |path: &str| {
        let _ = Workload::load(path).map(|workload| resolved(&workload));
    };
    let one = |name: &'static str, weight: u64, changed: &'static str, begin: &'static str| {
        let folder = copy(name, small);
        let begin = folder.join(begin);
        let read = by_file(folder.join(changed), move |_| load(begin.to_str().unwrap()));
        reader(name, weight, files(&[small.join(changed).to_str().unwrap()]), read)
    };
    let tracez = copy("trace-packed", packed).join("kernel-1.tracez");
    let all = [1, 2, 3].map(|number| packed.join(format!("kernel-{number}.tracez")).to_str().unwrap().to_owned());
    // Copies, barriers and clusters, as text.
    let mut of_hopper = Vec::new();
    let compressed = std::fs::File::open(packed.join("kernel-3.traceg.xz")).unwrap();
    lzma_rust2::XzReader::new(compressed, true).read_to_end(&mut of_hopper).unwrap();
    let hopper = folder("trace-hopper").join("kernel-3.traceg");
    vec![
        reader("trace-packed", 6, files(&all.each_ref().map(String::as_str)), by_file(tracez, load)),
        reader("trace-hopper", 6, vec![of_hopper], by_file(hopper, load)),
        one("trace", 12, "kernel-1.traceg", "kernelslist.g"),
        one("trace-xz", 3, "kernel-2.traceg.xz", "kernelslist.g"),
        one("trace-list", 3, "kernelslist.g", "kernelslist.g"),
        one("trace-labels", 3, "persistent.toml", "persistent.toml"),
    ]
}

/// Graphs and arrays of workloads.
fn data() -> Vec<Reader> {
    let graph = folder("graph");
    let manifest = std::fs::read_to_string("workloads/bfs/workload.toml").unwrap();
    let own = "kind = \"uniform\"\nnodes = \"NODES\"\nedges = \"NODES * DEGREE\"";
    assert!(manifest.contains(own));
    std::fs::write(graph.join("workload.toml"), manifest.replace(own, "kind = \"file\"\nfile = \"it.gr\"")).unwrap();
    std::fs::copy("workloads/bfs/kernel.ptx", graph.join("kernel.ptx")).unwrap();
    let graphs = [
        "c shortest paths\np sp 3 4\na 1 2 5\na 2 3 7\na 3 1 1\na 1 3 9\n",
        "%%MatrixMarket matrix coordinate integer general\n% it\n3 3 4\n1 2 5\n2 3 7\n3 1 1\n1 3 9\n",
        "3\n0 2\n2 1\n3 1\n\n0\n\n4\n1 5\n2 9\n2 7\n0 1\n",
    ];
    let array = folder("array");
    let vecadd = std::fs::read_to_string("workloads/vecadd/workload.toml").unwrap();
    let own = "init = { kind = \"uniform\", lo = 0.0, hi = 1.0 }";
    assert!(vecadd.contains(own));
    let vecadd = vecadd.replacen(own, "init = { kind = \"file\", file = \"it.npy\" }", 1).replace("1_048_576", "4");
    std::fs::write(array.join("workload.toml"), vecadd).unwrap();
    std::fs::copy("workloads/vecadd/kernel.ptx", array.join("kernel.ptx")).unwrap();
    let mut npy = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    npy.extend(format!("{:<69}\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }").bytes());
    npy.extend([0; 16]);
    let load = |folder: PathBuf| move |_: &str| drop(Workload::load(folder.to_str().unwrap()).map(|w| resolved(&w)));
    vec![
        reader("graph", 6, texts(&graphs), by_file(graph.join("it.gr"), load(graph))),
        reader("array", 4, vec![npy, vec![0; 16]], by_file(array.join("it.npy"), load(array))),
    ]
}

/// What the program itself writes and reads again: results, checkpoints, stores of sweeps.
fn results() -> Vec<Reader> {
    let folder = folder("results");
    let program = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_durawarp")).current_dir(&folder).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let small = ["vecadd", "--profile", "ci", "--set", "params.N=64", "--set", "sm.count=1", "-q"];
    program(&[&["run"], &small[..], &["--json", "one.json"]].concat());
    program(&[&["run"], &small[..], &["--checkpoint-at", "100", "at.ckpt"]].concat());
    let sweep =
        "schema = 1\nname = \"it\"\n[base]\nworkload = \"vecadd\"\nprofile = \"ci\"\nset = { \"params.N\" = 64 }\n";
    std::fs::write(folder.join("it.toml"), sweep).unwrap();
    program(&["sweep", "run", "it.toml", "--results", "store", "--quiet"]);
    let one = std::fs::read(folder.join("one.json")).unwrap();
    let whole: Outcome = serde_json::from_slice(&one).unwrap();
    let checkpoint = std::fs::read(folder.join("at.ckpt")).unwrap();
    let store = folder.join("store");
    let lines = std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path());
    let lines = lines.into_iter().find(|path| path.extension().is_some_and(|end| end == "jsonl")).unwrap();
    let records = std::fs::read(&lines).unwrap();
    vec![
        reader(
            "result",
            8,
            vec![one],
            Box::new(move |bytes| {
                if let Ok(read) = serde_json::from_slice::<Outcome>(bytes) {
                    let _ = Differences::of(&whole, &read).text();
                    let _ = Differences::of(&read, &whole).text();
                }
            }),
        ),
        reader(
            "checkpoint",
            3,
            vec![checkpoint],
            Box::new(|bytes| {
                let _ = Checkpoint::read(bytes);
                // The same with a checksum that is right: what another build may have written.
                if let Some(body) = bytes.len().checked_sub(32) {
                    let sealed = [&bytes[..body], blake3::hash(&bytes[..body]).as_bytes()].concat();
                    let _ = Checkpoint::read(&sealed).map(|(recipe, _)| recipe.build_any().map(drop));
                }
            }),
        ),
        reader(
            "store",
            3,
            vec![records],
            by_file(lines, move |_| {
                if let Ok(store) = Store::open_existing(&store) {
                    store.results().for_each(|entry| drop(store.outcome(entry)));
                }
            }),
        ),
    ]
}
