//! Which crate may use which, and how large the seam between machine and scheme is: the sources say what
//! ARCHITECTURE.md says.
//!
//! The compiler holds what the manifests say. This holds that nobody adds a line to one in passing, nor a method to a
//! trait of the seam.

use std::collections::BTreeMap;
use std::path::Path;

use crate::source::sources;

/// Crates of the workspace that a manifest names as dependencies, those of tests aside.
fn dependencies(manifest: &str) -> Vec<String> {
    let (_, table) = manifest.split_once("\n[dependencies]\n").expect("[dependencies]");
    let lines = table.lines().take_while(|line| !line.starts_with('['));
    let ours = lines.filter_map(|line| line.strip_prefix("durawarp-"));
    ours.map(|rest| rest.split(['.', ' ', '=']).next().unwrap_or_default().to_owned()).collect()
}

/// The map.
fn map() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).expect("the map")
}

/// The rows of the table in a section of a page, as cells. A row of a table opens with a span of code.
fn rows<'a>(page: &'a str, section: &str) -> Vec<Vec<&'a str>> {
    let (_, text) = page.split_once(&format!("\n## {section}\n")).expect("ARCHITECTURE.md has the section");
    let text = text.split_once("\n## ").map_or(text, |(text, _)| text);
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// Crates with those that they may use, by the map.
fn written(page: &str) -> BTreeMap<String, Vec<String>> {
    let rows = rows(page, "Crates").into_iter();
    rows.map(|cells| {
        let names = cells[cells.len() - 1].split([',', ' ']).filter(|name| name.starts_with('`'));
        let mut uses: Vec<String> = names.map(|name| name.trim_matches('`').to_owned()).collect();
        uses.sort();
        (cells[0].trim_matches('`').to_owned(), uses)
    })
    .collect()
}

/// Each crate, and those of ours that its manifest names.
fn manifests() -> BTreeMap<String, Vec<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(crates).expect("crates/ is readable").map(Result::unwrap) {
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).expect("a manifest");
        let mut uses = dependencies(&manifest);
        uses.sort();
        found.insert(entry.file_name().to_string_lossy().into_owned(), uses);
    }
    assert!(found.len() > 10, "the crates were found");
    found
}

#[test]
fn a_crate_uses_what_the_map_says_and_no_other() {
    let found = manifests();
    assert_eq!(written(&map()), found, "left: ARCHITECTURE.md, right: the manifests");
    let said = format!("There are {} crates.", found.len());
    assert!(map().contains(&said), "ARCHITECTURE.md does not say: {said}");
}

/// The share of lines that are compiled again when this crate changes: its own, and those of all above it.
fn rebuilt(changed: &str, manifests: &BTreeMap<String, Vec<String>>) -> f64 {
    let mut above = vec![changed];
    loop {
        let more = manifests.iter().filter(|(name, uses)| {
            !above.contains(&name.as_str()) && uses.iter().any(|used| above.contains(&used.as_str()))
        });
        let more: Vec<&str> = more.map(|(name, _)| name.as_str()).collect();
        if more.is_empty() {
            break;
        }
        above.extend(more);
    }
    let (mut again, mut all) = (0, 0);
    for source in sources() {
        // The package at the top uses every crate.
        let of = source.file.strip_prefix("crates/").and_then(|rest| rest.split('/').next());
        all += source.code.len();
        again += if of.is_none_or(|of| above.contains(&of)) { source.code.len() } else { 0 };
    }
    again as f64 / all as f64
}

#[test]
fn an_edit_of_a_figure_or_a_paper_rebuilds_at_most_a_fifth_of_the_lines() {
    let manifests = manifests();
    for changed in ["plot", "studies"] {
        let share = rebuilt(changed, &manifests);
        assert!(share > 0.02 && share <= 0.2, "{changed}: {share:.3}");
    }
    assert!(rebuilt("kernel", &manifests) > 0.5, "a crate that most use");
}

/// Public traits of a file with the number of their methods, in order.
fn traits(text: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("pub trait ") {
            found.push((head.split([':', '<', ' ']).next().unwrap_or_default().to_owned(), 0));
            inside = true;
        } else if line == "}" {
            inside = false;
        } else if let Some((_, methods)) = found.last_mut().filter(|_| inside && line.starts_with("    fn ")) {
            *methods += 1;
        }
    }
    found
}

#[test]
fn the_seam_has_the_methods_that_the_map_counts() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/persist/src/handler.rs");
    let found = traits(&std::fs::read_to_string(file).expect("the seam"));
    assert!(found.len() > 3, "the traits were found");
    let map = map();
    let said = rows(&map, "The seam between machine and scheme").into_iter();
    let said: Vec<(String, usize)> =
        said.map(|cells| (cells[0].trim_matches('`').to_owned(), cells[1].parse().expect("a number"))).collect();
    assert_eq!(said, found, "left: ARCHITECTURE.md, right: crates/persist/src/handler.rs");
}

#[test]
fn methods_of_traits_are_counted_and_no_others() {
    let text = "pub trait A: Send {\n    /// fn\n    fn a(&self);\n\n    fn b(&self) {\n        fn c() {}\n    }\n}\n\
                impl A for B {\n    fn a(&self) {}\n}\npub trait C<T> {}\n";
    assert_eq!(traits(text), [("A".to_owned(), 2), ("C".to_owned(), 0)]);
}
