//! An argument of a program as its manifest writes it.
//!
//! | written | is |
//! |---|---|
//! | `"STEPS * 2"` | an expression of parameters: its value |
//! | `"--steps"`, `"-n"` | a word: an option |
//! | `"'STEPS'"` | a word: the text in single quotes |
//! | `"recover"` | a word, as it is no expression and names no parameter |
//! | `"-n{STEPS}"`, `"input-{STEPS}.txt"` | a word with values in it |

use super::manifest::Argument;
use crate::expr::{Expr, Scope};
use durawarp_base::diagnostic::{Diagnostic, nearest};
use durawarp_base::document::{Item, Place};

/// Reads an argument.
///
/// # Errors
/// An expression that is none, a parameter that is misspelt, a brace without its other one. A number is
/// always one, and so is every other value that is no text: the check of the keys reported those.
pub(super) fn read(item: Item<'_>, scope: &Scope) -> Result<Argument, Diagnostic> {
    let place = item.place();
    let Some(word) = item.text() else {
        let Some(value) = item.number() else { return Ok(Argument::Word(String::new())) };
        return Ok(Argument::Value(Expr::constant(value, &place)));
    };
    if let Some(word) = word.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Ok(Argument::Word(word.to_owned()));
    }
    if word.contains(['{', '}']) {
        return joined(word, &place, scope).map_err(|fault| or_quoted(fault, word));
    }
    if is_option(word) {
        return Ok(Argument::Word(word.to_owned()));
    }
    Expr::compile(word, &place, scope).map(Argument::Value).or_else(|fault| {
        let names = || scope.variables.iter().map(|variable| variable.name.as_str());
        let mut parts = word.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|part| !part.is_empty());
        let names_none = parts.all(|part| nearest(part, names()).is_none());
        if names_none { Ok(Argument::Word(word.to_owned())) } else { Err(or_quoted(fault, word)) }
    })
}

/// A word with expressions in braces.
fn joined(word: &str, place: &Place, scope: &Scope) -> Result<Argument, Diagnostic> {
    let (mut parts, mut at) = (Vec::new(), 0);
    while let Some(open) = word[at..].find(['{', '}']).map(|open| at + open) {
        let close = word[open..].find('}').map(|close| open + close);
        let Some(close) = close.filter(|close| *close > open) else {
            return Err(place.inside(word, open..open + 1).fault("a brace without its other one"));
        };
        let inner = open + 1..close;
        let expr = Expr::compile(&word[inner.clone()], &place.inside(word, inner), scope)?;
        parts.extend([Argument::Word(word[at..open].to_owned()), Argument::Value(expr)]);
        at = close + 1;
    }
    parts.push(Argument::Word(word[at..].to_owned()));
    Ok(Argument::Joined(parts))
}

/// The fault of a text that may be meant as it is.
fn or_quoted(fault: Diagnostic, word: &str) -> Diagnostic {
    let help = format!("a word that is meant as it is stands in single quotes: \"'{word}'\"");
    if fault.help.is_some() { fault } else { fault.with_help(help) }
}

/// An argument that is no expression: `--ops`, `-n`.
fn is_option(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next() == Some('-') && characters.next().is_some_and(|c| c == '-' || c.is_ascii_alphabetic())
}
