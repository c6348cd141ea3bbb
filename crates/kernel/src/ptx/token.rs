//! PTX tokens (PTX ISA 8.x, chapter 4 "Syntax").
//!
//! Dotted words (`.global`, `.L1::evict_last`) are one token each; the parser tells a directive from a
//! modifier by place. The longest token that fits is taken. Comments, `.loc`, `.file` and `@@DWARF` lines
//! (debug information that ends with the line, not with a semicolon) are skipped. Written by hand: a
//! generated lexer of the same tokens took a fifth of the crate's compile time. Not modelled: preprocessor
//! lines, which no compiler emits.

/// A place in the text: byte range.
pub(super) type Bytes = std::ops::Range<usize>;

/// A token; text and numbers are read from the source when needed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Token<'a> {
    /// An opcode, register, label, variable or keyword.
    Word(&'a str),
    /// A directive, type or modifier, without its leading dot.
    Dot(&'a str),
    /// An integer: decimal, octal, hexadecimal or binary, with an optional `U`.
    Int(u64),
    /// `0fXXXXXXXX`: the bits of a single.
    Single(u32),
    /// `0dXXXXXXXXXXXXXXXX`: the bits of a double; a decimal float too.
    Double(u64),
    /// A string, with its quotation marks.
    Text(&'a str),
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `{`
    BraceOpen,
    /// `}`
    BraceClose,
    /// `[`
    BracketOpen,
    /// `]`
    BracketClose,
    /// `(`
    ParenOpen,
    /// `)`
    ParenClose,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `@`
    At,
    /// `!`
    Not,
    /// `|`
    Pipe,
    /// `=`
    Equals,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `/`
    Slash,
    /// `%` that begins no name
    Percent,
    /// `&`
    And,
    /// `&&`
    AndAnd,
    /// `||`
    PipePipe,
    /// `^`
    Caret,
    /// `?`
    Question,
    /// `==`
    EqualsEquals,
    /// `!=`
    NotEquals,
    /// `<=`
    LessEquals,
    /// `>=`
    GreaterEquals,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `*`
    Star,
    /// `~`
    Tilde,
}

/// Text that is no token: a strange character, a string without its end, a number that does not fit 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoToken;

/// The tokens of a text in order, each with its place.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = (Result<Token<'_>, NoToken>, Bytes)> {
    let mut lexer = Lexer { text, at: 0 };
    std::iter::from_fn(move || {
        lexer.skip();
        let start = lexer.at;
        (start < text.len()).then(|| (lexer.token(), start..lexer.at))
    })
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

fn starts_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$' | b'%')
}

fn continues_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// How many of the first bytes fit.
fn run(text: &str, fits: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|&byte| fits(byte)).count()
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Passes over blanks, comments and lines of debug information.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = run(rest, |byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0c));
            let length = match rest.as_bytes().get(blanks..).unwrap_or_default() {
                [b'/', b'*', ..] => match rest[blanks + 2..].find("*/") {
                    Some(length) => blanks + 2 + length + 2,
                    // A comment without its end: its first characters are strange ones.
                    None => return self.at += blanks,
                },
                [b'/', b'/', ..]
                | [b'@', b'@', b'D', b'W', b'A', b'R', b'F', ..]
                | [b'.', b'l', b'o', b'c', b' ' | b'\t', ..]
                | [b'.', b'f', b'i', b'l', b'e', b' ' | b'\t', ..] => {
                    blanks + run(&rest[blanks..], |byte| byte != b'\n')
                }
                _ => return self.at += blanks,
            };
            self.at += length;
        }
    }

    /// Takes `length` bytes.
    fn take(&mut self, length: usize) -> &'a str {
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    /// The token that begins here, which is before the end of the text.
    fn token(&mut self) -> Result<Token<'a>, NoToken> {
        let rest = self.rest();
        let first = rest.as_bytes()[0];
        // Operators of constant expressions that begin as another token does.
        let double = match (first, rest.as_bytes().get(1)) {
            (b'&', Some(b'&')) => Some(Token::AndAnd),
            (b'|', Some(b'|')) => Some(Token::PipePipe),
            (b'=', Some(b'=')) => Some(Token::EqualsEquals),
            (b'!', Some(b'=')) => Some(Token::NotEquals),
            (b'<', Some(b'=')) => Some(Token::LessEquals),
            (b'>', Some(b'=')) => Some(Token::GreaterEquals),
            (b'<', Some(b'<')) => Some(Token::ShiftLeft),
            (b'>', Some(b'>')) => Some(Token::ShiftRight),
            _ => None,
        };
        if let Some(token) = double {
            self.take(2);
            return Ok(token);
        }
        let mark = match first {
            b',' => Token::Comma,
            b';' => Token::Semicolon,
            b':' => Token::Colon,
            b'{' => Token::BraceOpen,
            b'}' => Token::BraceClose,
            b'[' => Token::BracketOpen,
            b']' => Token::BracketClose,
            b'(' => Token::ParenOpen,
            b')' => Token::ParenClose,
            b'<' => Token::Less,
            b'>' => Token::Greater,
            b'@' => Token::At,
            b'!' => Token::Not,
            b'|' => Token::Pipe,
            b'=' => Token::Equals,
            b'+' => Token::Plus,
            b'-' => Token::Minus,
            b'*' => Token::Star,
            b'~' => Token::Tilde,
            // `/*` without its end is no operator.
            b'/' if rest.as_bytes().get(1) != Some(&b'*') => Token::Slash,
            b'&' => Token::And,
            b'^' => Token::Caret,
            b'?' => Token::Question,
            b'%' if !rest.as_bytes().get(1).copied().is_some_and(continues_word) => Token::Percent,
            b'.' if rest.as_bytes().get(1).copied().is_some_and(continues_word) => return Ok(self.dotted()),
            b'"' => return self.string(),
            b'0'..=b'9' => return self.number(),
            byte if starts_word(byte) => {
                return Ok(Token::Word(self.take(1 + run(&rest[1..], continues_word))));
            }
            _ => {
                // A whole character: the next token must begin at a boundary of the text.
                self.take(rest.chars().next().map_or(1, char::len_utf8));
                return Err(NoToken);
            }
        };
        self.take(1);
        Ok(mark)
    }

    /// A dot and a name, with its `::` parts.
    fn dotted(&mut self) -> Token<'a> {
        let rest = self.rest();
        let mut length = 1 + run(&rest[1..], continues_word);
        while let Some(part) = rest[length..].strip_prefix("::") {
            match run(part, |byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                0 => break,
                more => length += 2 + more,
            }
        }
        Token::Dot(&self.take(length)[1..])
    }

    /// A string ends on its line; one without its end is taken up to there.
    fn string(&mut self) -> Result<Token<'a>, NoToken> {
        let rest = self.rest();
        let inside = run(&rest[1..], |byte| !matches!(byte, b'"' | b'\n'));
        let ended = rest.as_bytes().get(1 + inside) == Some(&b'"');
        let text = self.take(1 + inside + usize::from(ended));
        if ended { Ok(Token::Text(text)) } else { Err(NoToken) }
    }

    fn number(&mut self) -> Result<Token<'a>, NoToken> {
        let rest = self.rest();
        let digits = |from: usize, radix: u32| run(&rest[from..], |byte| char::from(byte).is_digit(radix));
        let bits = |length: usize| u64::from_str_radix(&rest[2..2 + length], 16).map_err(|_| NoToken);
        match rest.as_bytes()[..rest.len().min(2)] {
            [b'0', b'x' | b'X'] if digits(2, 16) > 0 => return self.integer(2, digits(2, 16), 16),
            [b'0', b'b' | b'B'] if digits(2, 2) > 0 => return self.integer(2, digits(2, 2), 2),
            [b'0', b'f' | b'F'] if digits(2, 16) >= 8 => {
                let single = Token::Single(bits(8)? as u32);
                self.take(10);
                return Ok(single);
            }
            [b'0', b'd' | b'D'] if digits(2, 16) >= 16 => {
                let double = Token::Double(bits(16)?);
                self.take(18);
                return Ok(double);
            }
            _ => {}
        }
        let whole = digits(0, 10);
        let mut length = whole;
        if rest[length..].starts_with('.') {
            length += 1 + digits(length + 1, 10);
        }
        length += exponent(&rest[length..]);
        if length > whole {
            return self.take(length).parse().map(|x: f64| Token::Double(x.to_bits())).map_err(|_| NoToken);
        }
        // A leading zero is octal, unless a digit is none.
        match digits(0, 8) == whole && whole > 1 && rest.starts_with('0') {
            true => self.integer(1, whole - 1, 8),
            false => self.integer(0, whole, 10),
        }
    }

    /// An integer of `digits` digits, which begin `prefix` bytes from here.
    fn integer(&mut self, prefix: usize, digits: usize, radix: u32) -> Result<Token<'a>, NoToken> {
        let unsigned = usize::from(self.rest().as_bytes().get(prefix + digits) == Some(&b'U'));
        let text = &self.take(prefix + digits + unsigned)[prefix..prefix + digits];
        u64::from_str_radix(text, radix).map(Token::Int).map_err(|_| NoToken)
    }
}

/// Length of a decimal exponent at the start of a text; 0 where there is none.
fn exponent(text: &str) -> usize {
    let sign = match text.as_bytes() {
        [b'e' | b'E', b'+' | b'-', ..] => 2,
        [b'e' | b'E', ..] => 1,
        _ => return 0,
    };
    match run(&text[sign..], |byte| byte.is_ascii_digit()) {
        0 => 0,
        digits => sign + digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        super::tokens(text).map(|(token, _)| token.unwrap()).collect()
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
    fn the_longest_token_that_fits_is_taken() {
        let double = |x: f64| Token::Double(x.to_bits());
        assert_eq!(tokens("08 007 0 00"), [Token::Int(8), Token::Int(7), Token::Int(0), Token::Int(0)]);
        assert_eq!(tokens("1. 2e3 2.5E-1"), [double(1.0), double(2000.0), double(0.25)]);
        assert_eq!(tokens("2e+ 0xg"), [Token::Int(2), Token::Word("e"), Token::Plus, Token::Int(0), Token::Word("xg")]);
        assert_eq!(
            tokens("0b12 0f3F8000001"),
            [Token::Int(1), Token::Int(2), Token::Single(0x3f80_0000), Token::Int(1)]
        );
        assert_eq!(tokens("0f3F80000 7UU"), [Token::Int(0), Token::Word("f3F80000"), Token::Int(7), Token::Word("U")]);
    }

    #[test]
    fn what_is_no_token_has_its_place() {
        let places = |text: &'static str| -> Vec<&str> {
            super::tokens(text).filter(|(token, _)| token.is_err()).map(|(_, at)| &text[at]).collect()
        };
        assert_eq!(places("add §ü . # 1;"), ["§", "ü", ".", "#"]);
        assert_eq!(
            places("\"open\n\"shut\" 99999999999999999999 0xfffffffffffffffff"),
            ["\"open", "99999999999999999999", "0xfffffffffffffffff"]
        );
        assert_eq!(places("ret /* no end"), ["/"]);
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
