//! From the text of an expression to its tree.
//!
//! The grammar, loosest first; binary operators of one line associate to the left, comparisons do not chain:
//!
//! ```text
//! cond ? a : b
//! ||
//! &&
//! == != < <= > >=
//! + -
//! * / %
//! - !            (prefix)
//! 42  0xff  1.5  2e-3  name  dotted.name  f(a, b)  buffer[index]  @buffer[index]  (a)
//! ```
//!
//! A `$` before a name is allowed and means nothing (`$N` is `N`). Every node keeps its byte range in the
//! text. Not covered: names and types (`compile`).

use std::ops::Range;

/// How deep an expression may nest: far more than a person writes, far less than a stack holds.
const MAX_DEPTH: u32 = 128;

/// How many tokens an expression may have; bounds the depth of a long chain of operators.
const MAX_TOKENS: usize = 1000;

/// What is wrong with an expression, at a byte range of its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SyntaxFault {
    /// Byte range in the expression's text.
    pub(crate) at: Range<usize>,
    /// What is wrong, without a full stop.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

impl SyntaxFault {
    pub(crate) fn new(at: Range<usize>, message: impl Into<String>) -> Self {
        SyntaxFault { at, message: message.into(), help: None }
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// A node and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tree {
    pub(crate) kind: NodeKind,
    pub(crate) at: Range<usize>,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NodeKind {
    Int(i64),
    Float(f64),
    Name(String),
    Neg(Box<Tree>),
    Not(Box<Tree>),
    Binary(Binary, Box<Tree>, Box<Tree>),
    Select(Box<Tree>, Box<Tree>, Box<Tree>),
    Call(String, Vec<Tree>),
    Read { name: String, name_at: Range<usize>, device: bool, index: Box<Tree> },
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Int(i64),
    Float(f64),
    Name(String),
    Symbol(&'static str),
    End,
}

impl Token {
    fn quoted(&self, text: &str, at: &Range<usize>) -> String {
        match self {
            Token::End => "the end of the expression".to_owned(),
            _ => format!("`{}`", &text[at.clone()]),
        }
    }
}

const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/", "%", "<", ">", "!", "?", ":", "(", ")", "[", "]", ",", "@",
    "=", "&",
];

fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, SyntaxFault> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let c = bytes[at];
        if c.is_ascii_whitespace() {
            at += 1;
        } else if c.is_ascii_digit() {
            let end = number_end(bytes, at);
            out.push((number(text, at..end)?, at..end));
            at = end;
        } else if c.is_ascii_alphabetic() || c == b'_' || c == b'$' {
            let end = name_end(bytes, at);
            let name = text[at..end].trim_start_matches('$');
            if name.is_empty() || name.ends_with('.') {
                return Err(SyntaxFault::new(at..end, format!("`{}` is not a name", &text[at..end])));
            }
            out.push((Token::Name(name.to_owned()), at..end));
            at = end;
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| text[at..].starts_with(**s)) {
            // `SYMBOLS` has longer ones before those that they begin with: the first one that fits is right.
            out.push((Token::Symbol(symbol), at..at + symbol.len()));
            at += symbol.len();
        } else {
            let c = text[at..].chars().next().unwrap_or(' ');
            return Err(SyntaxFault::new(at..at + c.len_utf8(), format!("`{c}` has no meaning in an expression")));
        }
    }
    out.push((Token::End, text.len()..text.len()));
    Ok(out)
}

fn name_end(bytes: &[u8], start: usize) -> usize {
    let part = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_' || *c == b'.';
    start + 1 + bytes[start + 1..].iter().take_while(|c| part(c)).count()
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let hex = bytes[start..].starts_with(b"0x") || bytes[start..].starts_with(b"0X");
    while at < bytes.len() {
        let c = bytes[at];
        let exponent_sign = (c == b'+' || c == b'-') && !hex && matches!(bytes[at - 1], b'e' | b'E');
        if !(c.is_ascii_alphanumeric() || c == b'_' || c == b'.' || exponent_sign) {
            break;
        }
        at += 1;
    }
    at
}

fn number(text: &str, at: Range<usize>) -> Result<Token, SyntaxFault> {
    let written = &text[at.clone()];
    let digits: String = written.chars().filter(|c| *c != '_').collect();
    let bad = |what: &str| Err(SyntaxFault::new(at.clone(), format!("`{written}` {what}")));
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return match i64::from_str_radix(hex, 16) {
            Ok(value) => Ok(Token::Int(value)),
            Err(_) => bad("is not a hexadecimal integer below 2^63"),
        };
    }
    if digits.bytes().all(|c| c.is_ascii_digit()) {
        return match digits.parse() {
            Ok(value) => Ok(Token::Int(value)),
            Err(_) => bad("is larger than the largest integer, 2^63 - 1"),
        };
    }
    match digits.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Token::Float(value)),
        Ok(_) => bad("is larger than the largest float"),
        Err(_) => bad("is not a number"),
    }
}

/// Parses a whole expression.
pub(crate) fn parse(text: &str) -> Result<Tree, SyntaxFault> {
    let mut parser = Parser { text, tokens: tokens(text)?, at: 0, depth: 0 };
    if parser.tokens.len() == 1 {
        return Err(SyntaxFault::new(0..text.len(), "the expression is empty"));
    }
    if parser.tokens.len() > MAX_TOKENS {
        let message = format!("the expression has {} tokens, more than {MAX_TOKENS}", parser.tokens.len());
        return Err(SyntaxFault::new(0..text.len(), message));
    }
    let tree = parser.select()?;
    match parser.peek() {
        Token::End => Ok(tree),
        _ => Err(parser.expected("an operator")),
    }
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: u32,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn place(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    fn next(&mut self) -> (Token, Range<usize>) {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        if found {
            self.next();
        }
        found
    }

    fn require(&mut self, symbol: &str) -> Result<Range<usize>, SyntaxFault> {
        let place = self.place();
        if self.eat(symbol) { Ok(place) } else { Err(self.expected(&format!("`{symbol}`"))) }
    }

    fn expected(&self, what: &str) -> SyntaxFault {
        let at = self.place();
        let found = self.peek().quoted(self.text, &at);
        let fault = SyntaxFault::new(at, format!("expected {what}, found {found}"));
        match self.peek() {
            Token::Symbol("=") => fault.with_help("equality is `==`"),
            Token::Symbol("&") => fault.with_help("`and` is `&&`; `&buffer` is allowed only as an argument"),
            _ => fault,
        }
    }

    fn deeper(&mut self) -> Result<(), SyntaxFault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(SyntaxFault::new(self.place(), "the expression nests too deeply"));
        }
        Ok(())
    }

    fn select(&mut self) -> Result<Tree, SyntaxFault> {
        self.deeper()?;
        let condition = self.binary(0)?;
        let tree = if self.eat("?") {
            let yes = self.select()?;
            self.require(":")?;
            let no = self.select()?;
            let at = condition.at.start..no.at.end;
            Tree { kind: NodeKind::Select(Box::new(condition), Box::new(yes), Box::new(no)), at }
        } else {
            condition
        };
        self.depth -= 1;
        Ok(tree)
    }

    /// Operators of `level` and tighter; level 2, the comparisons, takes at most one.
    fn binary(&mut self, level: usize) -> Result<Tree, SyntaxFault> {
        const LEVELS: [&[(&str, Binary)]; 5] = [
            &[("||", Binary::Or)],
            &[("&&", Binary::And)],
            &[
                ("==", Binary::Eq),
                ("!=", Binary::Ne),
                ("<=", Binary::Le),
                (">=", Binary::Ge),
                ("<", Binary::Lt),
                (">", Binary::Gt),
            ],
            &[("+", Binary::Add), ("-", Binary::Sub)],
            &[("*", Binary::Mul), ("/", Binary::Div), ("%", Binary::Rem)],
        ];
        let Some(operators) = LEVELS.get(level) else {
            return self.prefix();
        };
        // Tighter operators are taken first; the loop then makes the tree lean to the left.
        let mut left = self.binary(level + 1)?;
        let mut taken = 0;
        loop {
            let found = match self.peek() {
                Token::Symbol(s) => operators.iter().find(|(symbol, _)| symbol == s).map(|(_, op)| *op),
                _ => None,
            };
            let Some(op) = found else { return Ok(left) };
            if level == 2 && taken == 1 {
                let fault = SyntaxFault::new(self.place(), "comparisons do not chain");
                return Err(fault.with_help("write `a < b && b < c`"));
            }
            self.next();
            taken += 1;
            let right = self.binary(level + 1)?;
            let at = left.at.start..right.at.end;
            left = Tree { kind: NodeKind::Binary(op, Box::new(left), Box::new(right)), at };
        }
    }

    fn prefix(&mut self) -> Result<Tree, SyntaxFault> {
        let start = self.place().start;
        let negate = self.eat("-");
        if !negate && !self.eat("!") {
            return self.primary();
        }
        self.deeper()?;
        let operand = self.prefix()?;
        self.depth -= 1;
        let at = start..operand.at.end;
        let operand = Box::new(operand);
        Ok(Tree { kind: if negate { NodeKind::Neg(operand) } else { NodeKind::Not(operand) }, at })
    }

    fn primary(&mut self) -> Result<Tree, SyntaxFault> {
        let place = self.place();
        if self.eat("@") {
            let name_at = self.place();
            let (Token::Name(name), _) = self.next() else {
                return Err(SyntaxFault::new(place, "expected a buffer's name after `@`").with_help("`@buffer[0]`"));
            };
            return self.read(name, name_at, place.start, true);
        }
        // Parentheses make no node. The place takes them in, so that a fault shows them.
        if self.eat("(") {
            let inner = self.select()?;
            let end = self.require(")")?.end;
            return Ok(Tree { at: place.start..end, ..inner });
        }
        match self.peek().clone() {
            Token::Int(value) => {
                self.next();
                Ok(Tree { kind: NodeKind::Int(value), at: place })
            }
            Token::Float(value) => {
                self.next();
                Ok(Tree { kind: NodeKind::Float(value), at: place })
            }
            Token::Name(name) => {
                self.next();
                match self.peek() {
                    Token::Symbol("(") => self.call(name, place.start),
                    Token::Symbol("[") => self.read(name, place.clone(), place.start, false),
                    _ => Ok(Tree { kind: NodeKind::Name(name), at: place }),
                }
            }
            _ => Err(self.expected("a value")),
        }
    }

    fn call(&mut self, name: String, start: usize) -> Result<Tree, SyntaxFault> {
        self.require("(")?;
        let mut arguments = Vec::new();
        if !matches!(self.peek(), Token::Symbol(")")) {
            loop {
                arguments.push(self.select()?);
                if !self.eat(",") {
                    break;
                }
            }
        }
        let end = self.require(")")?.end;
        Ok(Tree { kind: NodeKind::Call(name, arguments), at: start..end })
    }

    fn read(&mut self, name: String, name_at: Range<usize>, start: usize, device: bool) -> Result<Tree, SyntaxFault> {
        self.require("[")?;
        let index = Box::new(self.select()?);
        let end = self.require("]")?.end;
        Ok(Tree { kind: NodeKind::Read { name, name_at, device, index }, at: start..end })
    }
}
