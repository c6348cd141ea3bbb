//! PTX tokens (PTX ISA 8.x, chapter 4 "Syntax").
//!
//! Dotted words (`.global`, `.L1::evict_last`) are one token each; the parser tells a directive from a modifier by
//! place. Comments, `.loc`, `.file` and `@@DWARF` lines (debug information that ends with the line, not with a
//! semicolon) are skipped. Not modelled: preprocessor lines, which no compiler emits.

use logos::Logos;

/// A place in the text: byte range.
pub(super) type Bytes = std::ops::Range<usize>;

/// A token; text and numbers are read from the source when needed.
#[derive(Logos, Debug, Clone, Copy, PartialEq)]
#[logos(skip r"[ \t\r\n\f]+")]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
#[logos(skip(r"(//|\.loc[ \t]|\.file[ \t]|@@DWARF)[^\n]*", allow_greedy = true))]
pub(super) enum Token<'a> {
    /// An opcode, register, label, variable or keyword.
    #[regex(r"[a-zA-Z_$%][a-zA-Z0-9_$]*", |lex| lex.slice())]
    Word(&'a str),
    /// A directive, type or modifier, without its leading dot.
    #[regex(r"\.[a-zA-Z0-9_$]+(::[a-zA-Z0-9_]+)*", |lex| &lex.slice()[1..])]
    Dot(&'a str),
    /// An integer: decimal, octal, hexadecimal or binary, with an optional `U`.
    #[regex(r"0[xX][0-9a-fA-F]+U?", |lex| integer(&lex.slice()[2..], 16), priority = 5)]
    #[regex(r"0[bB][01]+U?", |lex| integer(&lex.slice()[2..], 2), priority = 5)]
    #[regex(r"0[0-7]+U?", |lex| integer(&lex.slice()[1..], 8), priority = 5)]
    #[regex(r"[0-9]+U?", |lex| integer(lex.slice(), 10), priority = 4)]
    Int(u64),
    /// `0fXXXXXXXX`: the bits of a single.
    #[regex(r"0[fF][0-9a-fA-F]{8}", |lex| u32::from_str_radix(&lex.slice()[2..], 16).ok(), priority = 6)]
    Single(u32),
    /// `0dXXXXXXXXXXXXXXXX`: the bits of a double; a decimal float too.
    #[regex(r"0[dD][0-9a-fA-F]{16}", |lex| u64::from_str_radix(&lex.slice()[2..], 16).ok(), priority = 6)]
    #[regex(r"[0-9]+\.[0-9]*([eE][+-]?[0-9]+)?", |lex| lex.slice().parse().ok().map(f64::to_bits))]
    #[regex(r"[0-9]+[eE][+-]?[0-9]+", |lex| lex.slice().parse().ok().map(f64::to_bits), priority = 5)]
    Double(u64),
    /// A string.
    #[regex(r#""[^"\n]*""#, |lex| lex.slice())]
    Text(&'a str),
    /// `,`
    #[token(",")]
    Comma,
    /// `;`
    #[token(";")]
    Semicolon,
    /// `:`
    #[token(":")]
    Colon,
    /// `{`
    #[token("{")]
    BraceOpen,
    /// `}`
    #[token("}")]
    BraceClose,
    /// `[`
    #[token("[")]
    BracketOpen,
    /// `]`
    #[token("]")]
    BracketClose,
    /// `(`
    #[token("(")]
    ParenOpen,
    /// `)`
    #[token(")")]
    ParenClose,
    /// `<`
    #[token("<")]
    Less,
    /// `>`
    #[token(">")]
    Greater,
    /// `@`
    #[token("@")]
    At,
    /// `!`
    #[token("!")]
    Not,
    /// `|`
    #[token("|")]
    Pipe,
    /// `=`
    #[token("=")]
    Equals,
    /// `+`
    #[token("+")]
    Plus,
    /// `-`
    #[token("-")]
    Minus,
    /// `*`
    #[token("*")]
    Star,
    /// `~`
    #[token("~")]
    Tilde,
}

fn integer(digits: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(digits.trim_end_matches('U'), radix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        Token::lexer(text).map(|t| t.unwrap()).collect()
    }

    #[test]
    fn literals_of_every_radix() {
        let expected = [Token::Int(8), Token::Int(255), Token::Int(5), Token::Int(0), Token::Int(4_294_967_295)];
        assert_eq!(tokens("010 0xfF 0b101 0 4294967295U"), expected);
        assert_eq!(
            tokens("0f3F800000 0d3FF0000000000000 1.5"),
            [Token::Single(0x3f80_0000), Token::Double(0x3ff0_0000_0000_0000), Token::Double(1.5f64.to_bits()),]
        );
    }

    #[test]
    fn dotted_words_and_names() {
        let expected = [
            Token::Word("ld"),
            Token::Dot("global"),
            Token::Dot("L1::no_allocate"),
            Token::Dot("v4"),
            Token::Dot("f32"),
        ];
        assert_eq!(tokens("ld.global.L1::no_allocate.v4.f32"), expected);
        assert_eq!(
            tokens("%tid.x $L__BB0_2:"),
            [Token::Word("%tid"), Token::Dot("x"), Token::Word("$L__BB0_2"), Token::Colon,]
        );
    }

    #[test]
    fn debug_lines_and_comments_vanish() {
        let text = "// a\n.loc 1 5 3\n/* b\n ** c */ ret;\n.file 1 \"x.cu\"\n@@DWARF .byte 1\n";
        assert_eq!(tokens(text), [Token::Word("ret"), Token::Semicolon]);
    }
}
