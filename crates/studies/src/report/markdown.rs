//! Markdown documents (the GitHub dialect), written from data: headings, paragraphs, lists, tables, images,
//! code.
//!
//! Text is text: what would be a mark in Markdown or HTML is escaped, so that a kernel called `a_b_c*` stays
//! that. Marks come from methods and from [`Span`] only. Left out: nesting of lists, footnotes, HTML.

use std::fmt::Write as _;

use super::table::Table;

/// A part of a paragraph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    Text(String),
    /// Text that stands out.
    Strong(String),
    /// Something typed or printed.
    Code(String),
    /// A link: its text, where it leads.
    Link(String, String),
}

impl From<&str> for Span {
    fn from(text: &str) -> Span {
        Span::Text(text.to_owned())
    }
}

/// A document being written, from top to bottom.
///
/// # Example
/// ```
/// use durawarp_studies::report::{Column, Markdown, Table};
/// let mut table = Table::new([Column::text("kernel"), Column::number("cycles")]);
/// table.row(["a|b", "12"]);
/// let mut page = Markdown::new();
/// page.heading(1, "Results");
/// page.table(&table);
/// assert_eq!(page.finish(), "# Results\n\n| kernel | cycles |\n| --- | ---: |\n| a\\|b | 12 |\n");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markdown {
    blocks: Vec<String>,
}

impl Markdown {
    /// An empty document.
    pub fn new() -> Markdown {
        Markdown::default()
    }

    /// Adds a heading of a level from 1 to 6.
    pub fn heading(&mut self, level: usize, text: &str) {
        self.blocks.push(format!("{} {}", "#".repeat(level.clamp(1, 6)), escaped(text)));
    }

    /// Adds a paragraph of text alone.
    pub fn paragraph(&mut self, text: &str) {
        self.spans([Span::from(text)]);
    }

    /// Adds a paragraph with marks in it.
    pub fn spans(&mut self, spans: impl IntoIterator<Item = Span>) {
        let text: String = spans.into_iter().map(|span| written(&span)).collect();
        // Four spaces before it would make it code.
        self.blocks.push(text.trim().to_owned());
    }

    /// Adds a list of texts.
    pub fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        let items: Vec<String> = items.into_iter().map(|item| format!("* {}", escaped(item.as_ref().trim()))).collect();
        self.blocks.push(items.join("\n"));
    }

    /// Adds an image from a path relative to the document, with words for who cannot see it.
    pub fn image(&mut self, words: &str, path: &str) {
        self.blocks.push(format!("![{}]({})", escaped(words), destination(path)));
    }

    /// Adds code, in a language if that has a name. The fence is longer than any in the code.
    pub fn code(&mut self, language: &str, code: &str) {
        let fence = "`".repeat(longest_run(code).max(2) + 1);
        let language: String = language.chars().filter(|c| c.is_ascii_alphanumeric() || "+-_".contains(*c)).collect();
        self.blocks.push(format!("{fence}{language}\n{}\n{fence}", code.trim_end_matches('\n')));
    }

    /// Adds a table. Columns of numbers stand on the right.
    pub fn table(&mut self, table: &Table) {
        if let Some(caption) = &table.caption {
            self.paragraph(caption);
        }
        if table.columns.is_empty() {
            return;
        }
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let header = table.columns.iter().map(|column| escaped(&column.name)).collect();
        let rule = table.columns.iter().map(|column| if column.numeric { "---:" } else { "---" }.to_owned()).collect();
        let rows = table.even_rows().map(|row| line(row.into_iter().map(escaped).collect()));
        let lines: Vec<String> = [line(header), line(rule)].into_iter().chain(rows).collect();
        self.blocks.push(lines.join("\n"));
    }

    /// The document.
    pub fn finish(self) -> String {
        let blocks: Vec<String> = self.blocks.into_iter().filter(|block| !block.is_empty()).collect();
        if blocks.is_empty() { String::new() } else { blocks.join("\n\n") + "\n" }
    }
}

fn written(span: &Span) -> String {
    match span {
        Span::Text(text) => escaped(text),
        Span::Strong(text) => format!("**{}**", escaped(text.trim())),
        Span::Code(text) => code_span(text),
        Span::Link(text, path) => format!("[{}]({})", escaped(text), destination(path)),
    }
}

/// Code within a line: between more backticks than it has in a row itself.
fn code_span(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let ticks = "`".repeat(longest_run(&text) + 1);
    let edge = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{edge}{text}{edge}{ticks}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Where a link leads, with what would end it percent-encoded.
fn destination(path: &str) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if c.is_whitespace() || c.is_control() || "()<>\\\"".contains(c) {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Text without marks: in one line, and nothing in it means anything to Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, c) in text.char_indices() {
        match c {
            '\n' | '\r' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '#' => {
                out.push('\\');
                out.push(c);
            }
            // Marks only where a line begins.
            '+' | '-' | '=' if text[..i].trim().is_empty() => {
                out.push('\\');
                out.push(c);
            }
            // "1. " would begin a list.
            '.' | ')' if begins_list(&text[..i], &text[i + 1..]) => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

fn begins_list(before: &str, after: &str) -> bool {
    let before = before.trim_start();
    (1..10).contains(&before.len())
        && before.bytes().all(|byte| byte.is_ascii_digit())
        && (after.is_empty() || after.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Column;

    #[test]
    fn text_is_only_text() {
        let cases = [
            ("a_b*c", "a\\_b\\*c"),
            ("<b>&amp;", "\\<b\\>\\&amp;"),
            ("# no heading", "\\# no heading"),
            ("C #", "C \\#"),
            ("- no list", "\\- no list"),
            ("  - no list", "  \\- no list"),
            (" 2) no list", " 2\\) no list"),
            ("12. no list", "12\\. no list"),
            ("1.25 times", "1.25 times"),
            ("x = 1.25 - 2", "x = 1.25 - 2"),
            ("two\nlines", "two lines"),
            ("é. fine", "é. fine"),
        ];
        for (text, markdown) in cases {
            assert_eq!(escaped(text), markdown);
        }
    }

    #[test]
    fn tables_keep_their_columns() {
        let mut table = Table::new([Column::text("a|b"), Column::number("n")]).caption("Caption");
        table.row(["x | y\nz", "1", "one too many"]);
        table.row(["alone"]);
        let mut page = Markdown::new();
        page.table(&table);
        let text = page.finish();
        assert_eq!(text, "Caption\n\n| a\\|b | n |\n| --- | ---: |\n| x \\| y z | 1 |\n| alone |  |\n");
    }

    #[test]
    fn code_cannot_end_its_own_fence() {
        let mut page = Markdown::new();
        page.code("sh\n# injected", "echo '```'\n");
        page.spans(["see ".into(), Span::Code("a`b``".into()), Span::Link("a]".into(), "b c).svg".into())]);
        page.image("figure [1]", "figures/1.svg");
        let text = page.finish();
        let want = "````shinjected\necho '```'\n````\n\nsee ``` a`b`` ```[a\\]](b%20c%29.svg)\n\n\
                    ![figure \\[1\\]](figures/1.svg)\n";
        assert_eq!(text, want);
    }

    #[test]
    fn nothing_is_an_empty_document() {
        let mut page = Markdown::new();
        page.table(&Table::default());
        page.paragraph("");
        page.paragraph("    ");
        assert_eq!(page.finish(), "");
    }
}
