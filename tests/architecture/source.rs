//! The sources as the tests read them: files of all crates, their module paths, their code without comments.
//!
//! A module has one path, whichever crate it lies in: `machine/sm/walk` is `crates/machine/src/sm/walk.rs`, and
//! `config/machine` is `crates/simulation/src/config/machine.rs`, as the facade has them. In `code` a path into
//! another crate is written as one from the top of that tree (`crate::machine::sm`), so that a rule reads alike
//! within a crate and across.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Crates that have several modules of the tree; any other is a module of its own name.
pub(crate) const COMPOSED: [&str; 3] = ["base", "simulation", "studies"];

/// One source file: its module path, where it lies, and its lines without comments.
pub(crate) struct Source {
    pub(crate) path: String,
    /// From the root of the repository.
    pub(crate) file: String,
    pub(crate) code: Vec<String>,
}

impl Source {
    /// The module at the top of the tree that the file is of.
    pub(crate) fn room(&self) -> &str {
        self.path.split('/').next().unwrap_or("")
    }

    /// Module paths mentioned after `crate::`, of this crate or another, `durawarp::` left out: "machine::msg", "stats", ...
    pub(crate) fn mentions(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for line in &self.code {
            for (at, _) in line.match_indices("crate::") {
                let boundary =
                    line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '$');
                if boundary {
                    let rest = &line[at + "crate::".len()..];
                    assert!(!rest.starts_with(['{', '*']), "one `use` a module, so that modules can be told: {line}");
                    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len());
                    found.insert(rest[..end].trim_end_matches(':').to_owned());
                }
            }
        }
        found
    }

    /// The code without what only tests compile: a module of tests ends its file, or is a file of its own.
    pub(crate) fn without_tests(&self) -> String {
        let of_tests = |line: &str| line.starts_with("#[cfg(") && (line.contains("test") || line.contains("loom"));
        let (mut kept, mut lines) = (Vec::new(), self.code.iter().peekable());
        while let Some(line) = lines.next() {
            match lines.peek().filter(|next| of_tests(line.trim()) && next.trim().starts_with("mod ")) {
                Some(next) if next.trim_end().ends_with(';') => _ = lines.next(),
                Some(_) => break,
                None => kept.push(line.as_str()),
            }
        }
        kept.join("\n")
    }

    /// It is compiled for tests only.
    pub(crate) fn is_of_tests(&self) -> bool {
        self.path.split('/').any(|part| part == "tests")
    }
}

fn without_comment(line: &str) -> &str {
    match line.find("//") {
        Some(at) if line[..at].matches('"').count().is_multiple_of(2) => &line[..at],
        _ => line,
    }
}

/// A line of a crate as the tree has it.
fn in_the_tree(line: &str, of: Option<&str>) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some(at) = [rest.find("crate::"), rest.find("durawarp_")].into_iter().flatten().min() {
        let word = rest[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$');
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match rest.strip_prefix("durawarp_") {
            Some(after) if !word => {
                let end = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
                let composed = COMPOSED.contains(&&after[..end]);
                // `durawarp_base::spec` is `crate::spec`, `durawarp_machine::sm` is `crate::machine::sm`.
                out.push_str(if composed { "crate" } else { "crate::" });
                out.push_str(if composed { "" } else { &after[..end] });
                rest = &after[end..];
            }
            Some(after) => {
                out.push_str("durawarp_");
                rest = after;
            }
            None => {
                out.push_str("crate::");
                rest = &rest["crate::".len()..];
                if let Some(of) = of.filter(|_| !word) {
                    out.push_str(of);
                    out.push_str("::");
                }
            }
        }
    }
    out.push_str(rest);
    out
}

/// Every file of `src/` and of the crates, in the order of their module paths.
pub(crate) fn sources() -> Vec<Source> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("sources are readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = std::fs::read_dir(top.join("crates")).expect("crates/ is readable");
    let mut names: Vec<String> =
        crates.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let mut found = Vec::new();
    for (name, root) in names
        .iter()
        .map(|name| (Some(name.as_str()), top.join("crates").join(name).join("src")))
        .chain([(None, top.join("src"))])
    {
        // The crate that is one module of the tree.
        let module = name.filter(|name| !COMPOSED.contains(name));
        let mut files = Vec::new();
        walk(&root, &mut files);
        for file in files {
            let within = file.strip_prefix(&root).expect("below src").with_extension("");
            let within = within.to_string_lossy().replace('\\', "/");
            let path = match (name, module, within.as_str()) {
                (Some(name), _, "lib") => name.to_owned(),
                (_, Some(module), within) => format!("{module}/{within}"),
                (_, None, within) => within.to_owned(),
            };
            let text = std::fs::read_to_string(&file).expect("a source file");
            found.push(Source {
                path,
                file: file.strip_prefix(top).expect("in the repository").to_string_lossy().replace('\\', "/"),
                code: text.lines().map(|line| in_the_tree(without_comment(line), module)).collect(),
            });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(found.len() > 800, "the sources were found: {}", found.len());
    found
}

#[test]
fn a_path_into_another_crate_is_one_of_the_tree() {
    assert_eq!(in_the_tree("use durawarp_base::spec::Key;", Some("machine")), "use crate::spec::Key;");
    assert_eq!(in_the_tree("use durawarp_kernel::ir;", None), "use crate::kernel::ir;");
    assert_eq!(
        in_the_tree("pub(in crate::ptx) fn f(x: crate::ir::Op)", Some("kernel")),
        "pub(in crate::kernel::ptx) fn f(x: crate::kernel::ir::Op)"
    );
    assert_eq!(in_the_tree("$crate::stats::x, durawarp::run", Some("machine")), "$crate::stats::x, durawarp::run");
}
