//! The sources as the tests read them: files, their module paths, their code without comments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One source file: its module path ("machine/sm/walk") and its lines without comments.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) code: Vec<String>,
}

impl Source {
    /// The module at the top of the crate that the file is of.
    pub(crate) fn room(&self) -> &str {
        self.path.split('/').next().unwrap_or("")
    }

    /// Module paths mentioned after `crate::`, `durawarp::` left out: "machine::msg", "stats", ...
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

/// Every file below `src/`, in the order of their names.
pub(crate) fn sources() -> Vec<Source> {
    fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("src is readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                out.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    walk(&root, &mut files);
    files.sort();
    assert!(files.len() > 20, "the sources were found");
    files
        .iter()
        .map(|file| {
            let relative = file.strip_prefix(&root).expect("below src").with_extension("");
            let text = std::fs::read_to_string(file).expect("a source file");
            Source {
                path: relative.to_string_lossy().replace('\\', "/"),
                code: text.lines().map(|l| without_comment(l).to_owned()).collect(),
            }
        })
        .collect()
}
