//! The samples of `examples/cuda`, a feature of CUDA each: their committed PTX always, and what the compilers of this host
//! make of them by `workloads/compile.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workload_common::{folder, load};
use durawarp::kernel::functional::Limits;
use durawarp::workload::{Choice, Evidence, Outcome};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn samples() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(ROOT).join("examples/cuda")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    assert!(folders.len() >= 10, "{folders:?}");
    folders
}

/// Runs every profile, judges it, and asks that every output is compared with an expression.
fn passes(folder: &Path, by: &str) {
    let workload = load(folder).unwrap_or_else(|faults| panic!("{} by {by}: {faults}", folder.display()));
    for profile in workload.listing().profiles {
        let resolved = workload.resolve(&Choice::of_profile(&profile)).unwrap_or_else(|faults| panic!("{faults}"));
        let run = resolved.run_functional(&Limits::default());
        let run = run.unwrap_or_else(|error| panic!("{} by {by}: {error}", folder.display()));
        let verdict = resolved.verify(run.memory(), run.bindings(), Evidence::default());
        assert!(verdict.passed(), "{} {profile} by {by}: {verdict:#?}", folder.display());
        let compared = verdict.checks.iter().filter(|check| check.outcome == Outcome::Passed && check.compared > 0);
        let manifest = std::fs::read_to_string(folder.join("workload.toml")).unwrap();
        let outputs = manifest.matches("role = \"output\"").count();
        let inputs = usize::from(manifest.contains("role = \"input\""));
        assert_eq!(compared.count(), outputs + inputs, "{}: {verdict:#?}", folder.display());
    }
}

#[test]
fn committed_ptx_of_every_sample_gives_its_values_and_names_its_compiler() {
    for folder in samples() {
        passes(&folder, "what is committed");
        let ptx = std::fs::read_to_string(folder.join("kernel.ptx")).unwrap();
        let named = |line: &str| {
            line.starts_with("// Cuda compilation tools, release ") || line.starts_with("// Compiled by clang ")
        };
        assert!(ptx.lines().take(8).any(named), "{}: who compiled it?", folder.display());
    }
}

/// Runs `workloads/compile.sh`; what it said, and whether it succeeded.
fn compile(arguments: &[&str]) -> (String, Option<i32>) {
    let output = Command::new("sh").arg(Path::new(ROOT).join("workloads/compile.sh")).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

/// Copies the samples without their PTX, compiles them with one compiler, and runs them.
fn compiled_by(with: &str) {
    let target = folder(&format!("cuda-{with}"), &[]);
    let copies: Vec<PathBuf> = samples()
        .iter()
        .map(|sample| {
            let copy = target.join(sample.file_name().unwrap());
            std::fs::create_dir(&copy).unwrap();
            for file in ["kernel.cu", "workload.toml"] {
                std::fs::copy(sample.join(file), copy.join(file)).unwrap();
            }
            copy
        })
        .collect();
    let paths = copies.iter().map(|path| path.to_str().unwrap());
    let arguments: Vec<&str> = ["--with", with].into_iter().chain(paths).collect();
    let (said, code) = compile(&arguments);
    if code == Some(2) {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches(": by ").count(), copies.len(), "{said}");
    for copy in &copies {
        passes(copy, said.lines().last().unwrap());
    }
}

#[test]
fn nvcc_compiles_every_sample_where_it_is() {
    compiled_by("nvcc");
}

#[test]
fn nvrtc_compiles_every_sample_where_it_is() {
    compiled_by("nvrtc");
}

#[test]
fn clang_compiles_every_sample_where_it_is() {
    compiled_by("clang");
}

#[test]
fn source_that_is_not_compiled_is_told_with_the_command() {
    let kernel = "__global__ void k(int *x) { *x = 1 / *x; }\n";
    let manifest = |file: &str| {
        format!(
            "schema = 1\nname = \"k\"\ndescription = \"k\"\nisa = {{ kind = \"ptx\", file = \"{file}\" }}\nbuffer.x = {{ type = \"i32\", len = 1 }}\n\
             step = [{{ kernel = \"k\", block = 1, grid = 1, args = [\"&x\"] }}]\n"
        )
    };
    let folder = folder("cuda-source", &[("workload.toml", &manifest("k.ptx")), ("k.cu", kernel)]);
    let told = load(&folder).unwrap_err();
    assert_eq!(told.trim(), "4:30: cannot read `k.ptx`: no such file (`workloads/compile.sh FOLDER/k.cu` makes it)");
    std::fs::write(folder.join("workload.toml"), manifest("k.cu")).unwrap();
    let told = load(&folder).unwrap_err();
    let expected =
        "FOLDER/k.cu: this is CUDA source, and PTX is expected (`workloads/compile.sh FOLDER/k.cu` makes PTX of it)";
    assert_eq!(told.trim(), expected);
    let told = load(&folder.join("k.cu")).unwrap_err();
    assert!(told.contains("makes PTX of it, and a manifest names that") && told.contains("file = \"k.ptx\""), "{told}");
}

#[test]
fn parameters_of_kernels_of_cpp_are_told_by_names_that_a_person_reads() {
    let sample = Path::new(ROOT).join("examples/cuda/reduce");
    let [ptx, manifest] =
        ["kernel.ptx", "workload.toml"].map(|file| std::fs::read_to_string(sample.join(file)).unwrap());
    let told = |arguments: &str| {
        let manifest = manifest.replace("[\"&in\", \"&sum\", \"N\"]", arguments);
        load(&folder("cuda-parameters", &[("kernel.ptx", &ptx), ("workload.toml", &manifest)])).unwrap_err()
    };
    let few = told("[\"&in\", \"&sum\"]");
    let form = "its parameters are .u64 reduce_param_0, .u64 reduce_param_1, .u32 reduce_param_2";
    assert!(few.contains("kernel `reduce` takes 3 arguments, found 2") && few.contains(form), "{few}");
    let float = told("[\"&in\", \"&sum\", 0.5]");
    assert!(
        float.contains("expected an integer (u32) for parameter `reduce_param_2`, found the float `0.5`"),
        "{float}"
    );
    let address = told("[\"&in\", \"&sum\", \"&in\"]");
    assert!(address.contains("parameter `reduce_param_2` is `.u32` (4 bytes)"), "{address}");
}

#[test]
fn what_cannot_be_compiled_is_told_with_the_way_out() {
    let (said, code) = compile(&["nothing-here"]);
    assert!(code == Some(2) && said.contains("there is no nothing-here/kernel.cu"), "{said}");
    let (said, code) = compile(&["--with", "gcc", "examples/cuda/scan"]);
    assert!(code == Some(2) && said.contains("unknown compiler gcc: nvcc, nvrtc or clang"), "{said}");
    let (said, code) = compile(&["-O2"]);
    assert!(code == Some(2) && said.contains("flags of the compiler follow --"), "{said}");
    // A function that clang has no code for is refused by its name, never taken from the host.
    let wrong = folder("cuda-missing", &[("kernel.cu", "__global__ void k(float *x) { *x = erff(*x); }\n")]);
    let (said, code) = compile(&["--with", "clang", wrong.to_str().unwrap()]);
    match code {
        Some(2) => println!("skipped: {said}"),
        _ => assert!(code == Some(1) && said.contains("needs NVIDIA's math library"), "{said}"),
    }
}
