//! Comments as they are laid out: prose up to 110 columns, pictures, tables and examples up to 120 like code.

use std::path::Path;

use crate::source::sources;

/// Modules whose comments still have long lines. The list only shrinks: a module without one leaves it.
const LONG: &[&str] = &[];

/// The columns that a line of a comment may have; `fenced` is a line between two "```".
fn limit(comment: &str, fenced: bool) -> usize {
    let words = comment.split_whitespace().count();
    match fenced || comment.trim_start().starts_with('|') || words < 2 {
        true => 120,
        false => 110,
    }
}

/// Comments of `text` that are too long, by line number. A comment after code is the formatter's affair.
fn long_lines(text: &str) -> Vec<(usize, usize)> {
    let (mut fenced, mut found) = (false, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            fenced = false;
            continue;
        };
        let comment = comment.trim_start_matches(['!', '/']);
        fenced ^= comment.trim_start().starts_with("```");
        let columns = line.chars().count();
        if columns > limit(comment, fenced) {
            found.push((number + 1, columns));
        }
    }
    found
}

#[test]
fn prose_of_comments_has_at_most_110_columns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut faults, mut unfinished) = (Vec::new(), Vec::new());
    for source in sources() {
        let text = std::fs::read_to_string(root.join(format!("{}.rs", source.path))).expect("a source file");
        let long = long_lines(&text);
        if LONG.contains(&source.room()) && !long.is_empty() {
            unfinished.push(source.room().to_owned());
            continue;
        }
        faults.extend(long.iter().map(|(line, columns)| format!("src/{}.rs:{line}: {columns} columns", source.path)));
    }
    assert!(faults.is_empty(), "long lines of comments:\n{}", faults.join("\n"));
    let done: Vec<_> = LONG.iter().filter(|module| !unfinished.iter().any(|other| other == *module)).collect();
    assert!(done.is_empty(), "these modules have no long comments any more; take them off the list: {done:?}");
}

#[test]
fn a_long_line_is_found_in_prose_and_allowed_in_a_picture() {
    let (short, long) = (format!("//! {} a", "x".repeat(104)), format!("//! {} a", "x".repeat(105)));
    assert_eq!(short.len(), 110);
    assert_eq!(long_lines(&short), []);
    assert_eq!(long_lines(&long), [(1, 111)]);
    assert_eq!(long_lines(&format!("//! ```text\n{long}\n//! ```")), []);
    assert_eq!(long_lines(&format!("//! ```text\n//! ```\n{long}")), [(3, 111)]);
}
