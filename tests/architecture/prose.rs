//! Comments: a long function says why, prose has lines of up to 110 columns, pictures and tables up to 120.

use std::path::Path;

use crate::source::{Source, sources};

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

/// Modules with long functions that say too little. The list only shrinks.
const SILENT: &[&str] = &["riscv"];

/// Functions of over 25 lines of code with fewer comments than one in 20 lines, by line number and name.
fn silent_functions(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests =
        |at: &usize| lines[*at] == "#[cfg(test)]" && lines.get(at + 1).is_some_and(|l| l.starts_with("mod "));
    let end = (0..lines.len()).find(is_tests).unwrap_or(lines.len());
    let is_comment = |line: &&str| line.trim_start().starts_with("//");
    let mut found = Vec::new();
    for (at, line) in lines[..end].iter().enumerate() {
        let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with("//")).collect();
        let Some(name) = words.iter().position(|word| *word == "fn").and_then(|fun| words.get(fun + 1)) else {
            continue;
        };
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some(length) = lines[at + 1..end].iter().position(|line| *line == format!("{indent}}}")) else { continue };
        let body = &lines[at + 1..at + 1 + length];
        let code = body.iter().filter(|line| !line.trim().is_empty() && !is_comment(line)).count();
        // A comment of several lines is one.
        let begins = |nth: &usize| is_comment(&body[*nth]) && (*nth == 0 || !is_comment(&body[nth - 1]));
        if code > 25 && (0..body.len()).filter(begins).count() < code / 20 {
            let name = name.split(['(', '<']).next().unwrap_or_default();
            found.push((at + 1, name.to_owned()));
        }
    }
    found
}

/// Faults of source files, each found in the text of one, by its module.
fn in_sources(find: impl Fn(&str) -> Vec<String>) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources().into_iter().filter(|source| !source.is_of_tests());
    let of_file = |source: Source| {
        let text = std::fs::read_to_string(root.join(&source.file)).expect("a source file");
        let (module, file) = (source.room().to_owned(), source.file);
        find(&text).into_iter().map(move |fault| (module.clone(), format!("{file}:{fault}"))).collect::<Vec<_>>()
    };
    files.flat_map(of_file).collect()
}

#[test]
fn prose_of_comments_has_at_most_110_columns() {
    let faults = in_sources(|text| {
        long_lines(text).iter().map(|(line, columns)| format!("{line}: {columns} columns")).collect()
    });
    let faults: Vec<String> = faults.into_iter().map(|(_, fault)| fault).collect();
    assert!(faults.is_empty(), "long lines of comments:\n{}", faults.join("\n"));
}

#[test]
fn a_long_function_says_why_once_in_twenty_lines() {
    let faults =
        in_sources(|text| silent_functions(text).iter().map(|(line, name)| format!("{line}: {name}")).collect());
    let fresh: Vec<_> = faults.iter().filter(|(module, _)| !SILENT.contains(&module.as_str())).collect();
    assert!(fresh.is_empty(), "long functions without a comment in 20 lines: {fresh:#?}");
    let done: Vec<_> = SILENT.iter().filter(|silent| !faults.iter().any(|(module, _)| module == *silent)).collect();
    assert!(done.is_empty(), "these modules say enough; take them off the list: {done:?}");
}

#[test]
fn a_silent_function_is_found_and_one_that_says_why_is_not() {
    let function = |comment: &str| format!("fn long() {{\n{comment}{}}}\n", "    call();\n".repeat(26));
    assert_eq!(silent_functions(&function("")), [(1, "long".to_owned())]);
    assert_eq!(silent_functions(&function("    // First, since the rest depends on it.\n")), []);
    assert_eq!(silent_functions("fn short() {\n    call();\n}\n"), []);
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
