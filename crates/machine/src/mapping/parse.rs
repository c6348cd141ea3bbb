//! The text of a mapping, read.
//!
//! ```text
//!   mapping := fields { ";" rule }      fields := piece+       piece := FIELD [ "[" [n] ":" [n] "]" ]
//!   rule    := piece+ "^=" piece+ | piece+ "=" "ipoly(" piece+ "," piece+ ")"
//!            | "slice = splitmix(chunk)" | "Ba = rotate(Ba, Ro)"
//! ```

use super::fields::{Field, Hash, Mapping, Piece};

/// A word, a number or a sign of a text, and where it stands.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    /// The number of its first character, from 1.
    place: usize,
}

/// What is wrong with a text at a place.
fn fault(token: Token<'_>, message: impl std::fmt::Display) -> String {
    match token.text {
        "" => format!("at its end: {message}"),
        text => format!("at character {} (`{text}`): {message}", token.place),
    }
}

/// The parts of a text.
struct Tokens<'a> {
    all: Vec<Token<'a>>,
    next: usize,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Result<Self, String> {
        let mut all = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let run = |same: fn(&char) -> bool| rest.chars().take_while(same).map(char::len_utf8).sum();
            let length = match first {
                c if c.is_ascii_alphabetic() => run(char::is_ascii_alphabetic),
                c if c.is_ascii_digit() => run(char::is_ascii_digit),
                '^' if rest.starts_with("^=") => 2,
                c => c.len_utf8(),
            };
            let token = Token { text: &rest[..length], place: text[..text.len() - rest.len()].chars().count() + 1 };
            if !first.is_ascii_alphanumeric() && !["^=", "=", "[", "]", ":", ";", "(", ")", ","].contains(&token.text) {
                return Err(fault(token, "this is no part of a mapping"));
            }
            all.push(token);
            rest = rest[length..].trim_start();
        }
        Ok(Tokens { all, next: 0 })
    }

    /// The next token; an empty one at the end.
    fn peek(&self) -> Token<'a> {
        self.all.get(self.next).copied().unwrap_or(Token { text: "", place: 0 })
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn takes(&mut self, text: &str) -> bool {
        let takes = self.peek().text == text;
        self.next += usize::from(takes);
        takes
    }

    fn expect(&mut self, text: &str) -> Result<(), String> {
        let token = self.peek();
        if self.takes(text) { Ok(()) } else { Err(fault(token, format!("`{text}` is expected here"))) }
    }

    /// The end of a cut, if it has one.
    fn bound(&mut self) -> Result<Option<u32>, String> {
        if !self.peek().text.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        let token = self.take();
        let bit = token.text.parse().ok().filter(|&bit| bit <= 64);
        bit.map(Some).ok_or_else(|| fault(token, "a field has at most 64 bits"))
    }

    /// Fields one after another, at least one, with the place of each.
    fn pieces(&mut self, rule: bool) -> Result<Vec<(Token<'a>, Piece)>, String> {
        let mut pieces = Vec::new();
        loop {
            let token = self.peek();
            if !token.text.starts_with(|c: char| c.is_ascii_alphabetic()) {
                let missing = fault(token, "a field is expected here");
                return if pieces.is_empty() { Err(missing) } else { Ok(pieces) };
            }
            self.take();
            // The slice and the rest are no fields of an address: rules may name them.
            let found = Field::WORDS.iter().find(|(word, _)| *word == token.text);
            let of_rules = |field| matches!(field, Field::Slice | Field::Rest);
            let Some(&(_, field)) = found.filter(|(_, field)| rule || !of_rules(*field)) else {
                let words = Field::WORDS.iter().filter(|(_, field)| rule || !of_rules(*field)).map(|(word, _)| *word);
                let words: Vec<&str> = words.collect();
                return Err(fault(token, format!("no field has this name: fields are {}", words.join(", "))));
            };
            // A cut that names no first bit begins at bit 0; one that names no end goes to the field's end.
            let mut piece = Piece { field, from: 0, to: None };
            if self.takes("[") {
                piece.from = self.bound()?.unwrap_or(0);
                self.expect(":")?;
                piece.to = self.bound()?;
                self.expect("]")?;
                if piece.to.is_some_and(|to| to <= piece.from) {
                    return Err(fault(token, "this cut has no bit"));
                }
            }
            pieces.push((token, piece));
        }
    }
}

fn without_places(pieces: &[(Token<'_>, Piece)]) -> Vec<Piece> {
    pieces.iter().map(|(_, piece)| *piece).collect()
}

/// The mapping that a text says.
pub(super) fn parse(text: &str) -> Result<Mapping, String> {
    let mut tokens = Tokens::of(text)?;
    let fields = tokens.pieces(false)?;
    check_fields(&fields)?;
    let mut mapping =
        Mapping { fields: without_places(&fields), hashes: Vec::new(), turns_slices: false, turns_banks: false };
    while tokens.takes(";") {
        rule(&mut tokens, &mut mapping)?;
    }
    let rest = tokens.peek();
    if rest.text.is_empty() { Ok(mapping) } else { Err(fault(rest, "a rule begins with `;`")) }
}

/// Every bit of a field is there once; rows come first, and channels are in one piece.
fn check_fields(fields: &[(Token<'_>, Piece)]) -> Result<(), String> {
    let (first, top) = fields[0];
    if top.field != Field::Row || top.to.is_some() {
        return Err(fault(first, "rows come first, and without an end: `Ro` or `Ro[n:]`"));
    }
    for field in [Field::Bank, Field::Column, Field::Channel] {
        if fields.iter().all(|(_, piece)| piece.field != field) {
            return Err(format!("`{}` is missing", field.word()));
        }
    }
    for &(token, piece) in fields {
        let of_field = || fields.iter().map(|(_, other)| *other).filter(|other| other.field == piece.field);
        if piece.field == Field::Channel && !piece.is_whole() {
            return Err(fault(token, "`Ch` cannot be cut"));
        }
        let begins = |other: &Piece| other.from <= piece.from && other.to.is_none_or(|to| to > piece.from);
        if of_field().filter(begins).count() > 1 {
            return Err(fault(token, format!("bit {} of `{}` is here twice", piece.from, token.text)));
        }
        // What is below a piece is another one's.
        if piece.from > 0 && of_field().all(|other| other.to != Some(piece.from)) {
            return Err(fault(token, format!("bit {} of `{}` is missing", piece.from - 1, token.text)));
        }
    }
    Ok(())
}

/// One rule, behind its `;`.
fn rule(tokens: &mut Tokens<'_>, mapping: &mut Mapping) -> Result<(), String> {
    let start = tokens.peek();
    let left = tokens.pieces(true)?;
    if tokens.takes("^=") {
        let source = tokens.pieces(true)?;
        return hash(mapping, &left, &source, false);
    }
    // The rest are functions, of the left side itself or of fixed arguments.
    tokens.expect("=")?;
    let function = tokens.take();
    let is_only = |field| left.len() == 1 && left[0].1 == Piece { field, from: 0, to: None };
    match function.text {
        "ipoly" => {
            tokens.expect("(")?;
            let own = tokens.pieces(true)?;
            tokens.expect(",")?;
            let source = tokens.pieces(true)?;
            tokens.expect(")")?;
            if without_places(&own) != without_places(&left) {
                return Err(fault(own[0].0, "`ipoly` has its left side first: `Ch = ipoly(Ch, Ro)`"));
            }
            hash(mapping, &left, &source, true)
        }
        // The turns are over whole numbers, so that they take any count; fields lie as they always did there.
        "splitmix" if is_only(Field::Slice) => {
            ["(", "chunk", ")"].into_iter().try_for_each(|text| tokens.expect(text))?;
            if mapping.fields.last().is_none_or(|piece| piece.field != Field::Channel) {
                return Err(fault(start, "slices are turned where `Ch` comes last"));
            }
            mapping.turns_slices = true;
            check_turned(mapping, start)
        }
        "rotate" if is_only(Field::Bank) => {
            ["(", "Ba", ",", "Ro", ")"].into_iter().try_for_each(|text| tokens.expect(text))?;
            let order: Vec<Piece> =
                mapping.fields.iter().copied().filter(|piece| piece.field != Field::Channel).collect();
            let plain = [Field::Row, Field::Bank, Field::Column].map(|field| Piece { field, from: 0, to: None });
            if order != plain {
                return Err(fault(start, "banks are turned where the fields but `Ch` are `Ro Ba Co`"));
            }
            mapping.turns_banks = true;
            check_turned(mapping, start)
        }
        _ => {
            let rules = "`F ^= G`, `F = ipoly(F, G)`, `slice = splitmix(chunk)` and `Ba = rotate(Ba, Ro)`";
            Err(fault(function, format!("there is no such rule: rules are {rules}")))
        }
    }
}

/// A hash joins the mapping.
fn hash(
    mapping: &mut Mapping,
    left: &[(Token<'_>, Piece)],
    source: &[(Token<'_>, Piece)],
    by_polynomial: bool,
) -> Result<(), String> {
    if let Some((token, _)) = left.iter().find(|(_, piece)| piece.field == Field::Rest) {
        return Err(fault(*token, "`rest` is no field of its own, so that it cannot be hashed"));
    }
    if let Some((token, _)) = source.iter().find(|(_, piece)| piece.field == Field::Channel) {
        return Err(fault(*token, "a hash cannot have bits of `Ch`: a channel's devices do not know them"));
    }
    let (left, source) = (without_places(left), without_places(source));
    mapping.hashes.push(Hash { left, source, by_polynomial });
    check_turned(mapping, Token { text: "", place: 0 })
}

/// What is turned is not hashed too.
fn check_turned(mapping: &Mapping, token: Token<'_>) -> Result<(), String> {
    let hashed =
        |fields: &[Field]| mapping.hashes.iter().flat_map(|hash| &hash.left).any(|p| fields.contains(&p.field));
    if mapping.turns_slices && hashed(&[Field::Channel, Field::Slice]) {
        return Err(fault(token, "slices are turned by splitmix64 or hashed, not both"));
    }
    if mapping.turns_banks && hashed(&[Field::Row, Field::Bank, Field::Column]) {
        return Err(fault(token, "banks are turned by their row or hashed, not both"));
    }
    Ok(())
}
