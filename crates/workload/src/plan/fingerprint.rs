//! Everything that decides a resolved workload's run and verdict, as bytes to hash.
//!
//! Invariant: two resolved workloads that feed the same bytes have the same outcomes on every machine.
//! Contents of buffers are fed as they lie in memory, so files and graphs that they came from need not be;
//! files that checks compare with are.

use super::RunPlan;
use crate::manifest::checks::CheckKind;

/// Feeds the workload, part by part, each with its name.
pub(crate) fn feed(plan: &RunPlan, take: &mut dyn FnMut(&str, &[u8])) {
    let manifest = plan.folder.read(plan.folder.manifest());
    take("manifest", &manifest.unwrap_or_default());
    for (file, text) in &plan.programs.texts {
        take("file", file.as_bytes());
        take("ptx", text.as_bytes());
    }
    take("profile", plan.profile.as_bytes());
    take("altered", &[u8::from(plan.altered)]);
    take("seed", &plan.seed.to_le_bytes());
    plan.frame.iter().for_each(|value| take("value", &value.to_le_bytes()));
    take("instrument", serde_json::to_string(&plan.settings).unwrap_or_default().as_bytes());
    for (form, buffer) in plan.manifest.buffers.iter().zip(&plan.buffers) {
        take("buffer", form.name.as_bytes());
        take("address", &buffer.address.to_le_bytes());
        take("bytes", &buffer.bytes.to_le_bytes());
        if let Some(content) = buffer.kept() {
            take("content", content);
        }
    }
    for address in plan.globals.iter().flatten() {
        take("variable", &address.to_le_bytes());
    }
    for bank in plan.const_banks.iter().flatten() {
        take("constants", bank);
    }
    // Of checks only the files: all else that they compare with follows from the parts above.
    for check in &plan.manifest.checks {
        if let CheckKind::File { file, .. } = &check.kind {
            take("expected", &plan.folder.read(file).unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Choice, Demands, Workload};

    const MANIFEST: &str = r#"schema = 1
name = "copy"
description = "d"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 32
BY = 1
[profile.same]
BY = 1
[buffer.to]
type = "u32"
len = "N"
role = "output"
[[step]]
kernel = "k"
grid = 1
block = "N"
args = ["&to"]
[[verify]]
buffer = "to"
ref = { kind = "file", file = "golden.bin" }
"#;

    const PTX: &str = ".version 6.0\n.target sm_60\n.address_size 64\n.const .u32 five = 5;\n.global .u32 all;\n\
        .visible .entry k(.param .u64 to) { ret; }\n";

    type Parts = Vec<(String, Vec<u8>)>;

    fn parts(folder: &Path, choice: &Choice) -> Parts {
        let workload = Workload::load(&folder.display().to_string()).unwrap();
        let mut parts = Parts::new();
        feed(&workload.resolve_under(choice, Demands::default()).unwrap().plan, &mut |name, bytes| {
            parts.push((name.to_owned(), bytes.to_vec()));
        });
        parts
    }

    /// Names of the parts that are not the same.
    fn differing(one: &Parts, other: &Parts) -> Vec<String> {
        assert_eq!(one.len(), other.len());
        one.iter().zip(other).filter(|(a, b)| a != b).map(|(a, _)| a.0.clone()).collect()
    }

    #[test]
    fn whatever_a_run_follows_from_is_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
        let input = |first: u8| {
            write("input.bin", &[[first; 4]; 32].concat());
            Choice { inputs: vec![("to".to_owned(), folder.path().join("input.bin"))], ..Choice::default() }
        };
        write("workload.toml", MANIFEST.as_bytes());
        write("kernel.ptx", PTX.as_bytes());
        write("golden.bin", &[0; 128]);
        let of = |choice: Choice| parts(folder.path(), &choice);
        let by = |by: &str| of(Choice { params: vec![("BY".to_owned(), by.to_owned())], ..Choice::default() });
        let plain = of(Choice::default());
        for name in ["manifest", "file", "ptx", "value", "instrument", "buffer", "bytes", "variable"] {
            assert!(plain.iter().any(|part| part.0 == name), "{name}");
        }
        assert_eq!(differing(&plain, &of(Choice { seed: 7, ..Choice::default() })), ["seed"]);
        let same = Choice::of_profile("same");
        assert_eq!(differing(&plain, &of(same)), ["profile"]);
        assert_eq!(differing(&plain, &by("1")), ["altered"]);
        assert_eq!(differing(&by("2"), &by("3")), ["value"]);
        assert_eq!(differing(&of(input(1)), &of(input(2))), ["content"]);
        let persistent = of(Choice { persistent: true, ..Choice::default() });
        assert!(differing(&plain, &persistent).contains(&"address".to_owned()));
        write("golden.bin", &[1; 128]);
        assert_eq!(differing(&plain, &of(Choice::default())), ["expected"]);
        write("golden.bin", &[0; 128]);
        write("kernel.ptx", PTX.replace("five = 5", "five = 6").as_bytes());
        assert_eq!(differing(&plain, &of(Choice::default())), ["ptx"]);
        write("kernel.ptx", PTX.as_bytes());
        write("workload.toml", MANIFEST.replace("\"d\"", "\"other\"").as_bytes());
        assert_eq!(differing(&plain, &of(Choice::default())), ["manifest"]);
    }
}
