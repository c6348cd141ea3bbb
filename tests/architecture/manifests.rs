//! Which crate may use which: the manifests say what ARCHITECTURE.md says.
//!
//! The compiler holds what the manifests say. This holds that nobody adds a line to one in passing.

use std::collections::BTreeMap;
use std::path::Path;

/// Crates of the workspace that a manifest names as dependencies, those of tests aside.
fn dependencies(manifest: &str) -> Vec<String> {
    let (_, table) = manifest.split_once("\n[dependencies]\n").expect("[dependencies]");
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let ours = lines.filter_map(|line| line.strip_prefix("durawarp-"));
    ours.map(|rest| rest.split(['.', ' ', '=']).next().unwrap_or_default().to_owned()).collect()
}

/// Rows `| crate | ... | may use |` of the table under "## Crates".
fn written(page: &str) -> BTreeMap<String, Vec<String>> {
    let (_, section) = page.split_once("## Crates").expect("ARCHITECTURE.md has a section `Crates`");
    let section = section.split_once("\n## ").map_or(section, |(section, _)| section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let names = cells[cells.len() - 1].split([',', ' ']).filter(|name| name.starts_with('`'));
        let mut uses: Vec<String> = names.map(|name| name.trim_matches('`').to_owned()).collect();
        uses.sort();
        (cells[0].trim_matches('`').to_owned(), uses)
    })
    .collect()
}

#[test]
fn a_crate_uses_what_the_map_says_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("crates")).expect("crates/ is readable").map(Result::unwrap) {
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
        let mut uses = dependencies(&manifest);
        uses.sort();
        found.insert(entry.file_name().to_string_lossy().into_owned(), uses);
    }
    assert!(found.len() > 10, "the crates were found");
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map");
    assert_eq!(written(&map), found, "left: ARCHITECTURE.md, right: the manifests");
}
