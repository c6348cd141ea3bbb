//! A message in words: its kind, then each field by name.
//!
//! ```text
//!   Request(Request { line: 4096, kind: Write, payload: Line(Line { bytes: [...], mask: 255, log: false }) })
//!   Request: line 0x1000, kind Write, payload Line (mask 0xff, log no)
//! ```
//! Messages are of many types, each of which derives `Debug`: what that prints is read as a tree, and the
//! tree is told. Invariant: whatever is printed is told, at worst as it is. Left out: lists of more than a
//! few entries, which are bytes of lines and lanes of warps; fields that are empty.

/// Entries of a list that are shown.
const LIST_SHOWN: usize = 8;

/// Fields whose values are addresses or one bit an entry.
const HEXADECIMAL: [&str; 5] = ["line", "mask", "address", "sectors", "pc"];

/// A value as `Debug` prints it.
#[derive(Debug, PartialEq)]
enum Printed<'a> {
    /// A number, a word, a text in quotes.
    Plain(&'a str),
    /// `Name(...)`, `Name { ... }`, `(...)`, `{ ... }`: fields with their names, if they have some.
    Record(&'a str, Vec<Field<'a>>),
    /// `[...]`.
    List(Vec<Printed<'a>>),
}

/// The text of a message, as `Debug` prints it, in words.
pub(super) fn in_words(debug: &str) -> String {
    let mut rest = debug;
    // What is left over was not printed by a derived `Debug`.
    let value = read(&mut rest).filter(|_| rest.trim().is_empty());
    value.and_then(|value| told(None, &value)).unwrap_or_else(|| debug.to_owned())
}

/// Reads the value that `rest` begins with; `None` where a bracket is missing.
fn read<'a>(rest: &mut &'a str) -> Option<Printed<'a>> {
    let text = rest.trim_start();
    if text.starts_with('"') {
        let mut escaped = false;
        let closes = |&(at, c): &(usize, char)| {
            let closes = at > 0 && c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        };
        let end = text.char_indices().find(closes).map_or(text.len(), |(at, _)| at + 1);
        *rest = &text[end..];
        return Some(Printed::Plain(&text[..end]));
    }
    let end = text.find(['(', '{', '[', ',', ')', '}', ']']).unwrap_or(text.len());
    let (name, after) = (text[..end].trim_end(), &text[end..]);
    *rest = after;
    Some(match after.chars().next() {
        Some('[') if name.is_empty() => Printed::List(fields(rest, ']')?.into_iter().map(|(_, value)| value).collect()),
        Some('(') => Printed::Record(name, fields(rest, ')')?),
        Some('{') => Printed::Record(name, fields(rest, '}')?),
        _ => Printed::Plain(name),
    })
}

/// A value, with its name if it has one.
type Field<'a> = (Option<&'a str>, Printed<'a>);

/// Reads what is between a bracket, which `rest` begins with, and `close`.
fn fields<'a>(rest: &mut &'a str, close: char) -> Option<Vec<Field<'a>>> {
    let mut all = Vec::new();
    let mut text = &rest[1..];
    loop {
        text = text.trim_start_matches([',', ' ', '\n']);
        if let Some(after) = text.strip_prefix(close) {
            *rest = after;
            return Some(all);
        }
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
        let value = text[end..].strip_prefix(": ").filter(|_| end > 0);
        let name = value.map(|value| {
            let name = &text[..end];
            text = value;
            name
        });
        let before = text.len();
        all.push((name, read(&mut text)?));
        // A bracket of another kind, or the end: nothing more can be read.
        if text.len() == before {
            return None;
        }
    }
}

/// A value in words, of a field of this name; `None` where there is nothing to tell.
fn told(field: Option<&str>, value: &Printed<'_>) -> Option<String> {
    match value {
        Printed::Plain("None") => None,
        Printed::Plain("true") => Some("yes".to_owned()),
        Printed::Plain("false") => Some("no".to_owned()),
        Printed::Plain(text) => {
            let hexadecimal = field.is_some_and(|field| HEXADECIMAL.contains(&field));
            let number = text.parse::<u128>().ok().filter(|_| hexadecimal);
            Some(number.map_or_else(|| (*text).to_owned(), |number| format!("{number:#x}")))
        }
        Printed::List(all) if all.len() > LIST_SHOWN => None,
        Printed::List(all) => {
            let all: Vec<String> = all.iter().filter_map(|value| told(field, value)).collect();
            (!all.is_empty()).then(|| format!("[{}]", all.join(" ")))
        }
        // What is there in an `Option`, and a variant whose one field has its name, say the same twice.
        Printed::Record("Some" | "", all) if all.len() == 1 => told(field, &all[0].1),
        Printed::Record(name, all) => match all.as_slice() {
            [(None, inner @ Printed::Record(of, _))] if of.contains(name) || name.contains(of) => told(field, inner),
            [(None, inner)] => Some(told(field, inner).map_or_else(|| (*name).to_owned(), |of| format!("{name} {of}"))),
            _ => {
                let told = |(field, value): &Field<'_>| {
                    let told = told(*field, value)?;
                    Some(field.map_or_else(|| told.clone(), |field| format!("{field} {told}")))
                };
                let all = all.iter().filter_map(told).collect::<Vec<_>>().join(", ");
                Some(match field {
                    None => format!("{name}: {all}"),
                    Some(_) => format!("{name} ({all})").trim_start().to_owned(),
                })
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_machine::msg::{Credit, Line, Msg, Payload, Reply, RequestKind, SmMsg};

    #[test]
    fn fields_are_told_by_name_and_masks_in_hexadecimal() {
        let line = Line { mask: u128::MAX, ..Line::default() };
        let reply = Reply { tag: 3, kind: RequestKind::Write, sectors: 15, payload: Payload::Line(Box::new(line)) };
        let text = in_words(&format!("{:?}", Msg::Sm(SmMsg::Reply(reply))));
        let mask = "f".repeat(32);
        assert_eq!(
            text,
            format!("Reply: tag 3, kind Write, sectors 0xf, payload Line (mask 0x{mask}, log no, launch 0)")
        );
        let cta = Msg::Sm(SmMsg::Cta { cta: 7, place: 0, l1_ways: None, cluster: None });
        assert_eq!(in_words(&format!("{cta:?}")), "Cta: cta 7, place 0");
        let credit = Msg::Sm(SmMsg::Credit(Credit { slice: 2, packets: 1 }));
        assert_eq!(in_words(&format!("{credit:?}")), "Credit: slice 2, packets 1");
    }

    #[test]
    fn options_lists_texts_and_names_of_two_levels_are_told_once() {
        for (debug, words) in [
            ("Drain", "Drain"),
            (
                "Cpu(Get { line: 64, from: Core(1), room: Line { bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0], mask: 0 } })",
                "Cpu Get: line 0x40, from Core 1, room Line (mask 0x0)",
            ),
            ("Data { dependencies: None, at: Some(5), lanes: [1, 2] }", "Data: at 5, lanes [1 2]"),
            (r#"Told { text: "a, \"b\" }", to: 1 }"#, r#"Told: text "a, \"b\" }", to 1"#),
        ] {
            assert_eq!(in_words(debug), words);
        }
    }

    #[test]
    fn what_is_no_derived_text_stays_as_it_is() {
        for text in ["", "a ] b", "Half { open: 1", "12:30 ) x"] {
            assert_eq!(in_words(text), text);
        }
    }
}
