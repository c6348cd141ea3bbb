//! Constant expressions (PTX ISA 4.5, "Constants" and "Constant Expressions"): their value, at parse time.
//!
//! | operators, loosest first | operands | type of the result |
//! |---|---|---|
//! | `? :` | integers | that of the operand taken |
//! | `\|\|`, `&&` | integers | signed |
//! | `\|`, `^`, `&` | integers | unsigned if an operand is |
//! | `==`, `!=`, `<`, `<=`, `>`, `>=` | integers or floats | signed |
//! | `<<`, `>>` | integers; the amount modulo 64 | that of the left operand |
//! | `+`, `-`, `*`, `/` | integers or floats | unsigned if an operand is, or a double |
//! | `%` | integers, taken as unsigned | unsigned |
//! | `+`, `-`, `~`, `!`, `(.s64)`, `(.u64)` | one (`~`, `!`: an integer) | its own; `!`: signed |
//!
//! Integers have 64 bits and wrap around. A literal is unsigned if it ends in `U` or does not fit `.s64`.
//! Floats are doubles; a single in hexadecimal is one that stands alone. Where the ISA is silent, values are
//! those that `ptxas` 13.5 gives (`tests/kernel/syntax.rs`).

use super::ast::OperandKind;
use super::parser::{Parsed, Parser};
use super::token::{Bytes, Token};

/// A value of a constant expression.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ConstantValue {
    Int { bits: u64, unsigned: bool },
    Single(u32),
    Double(f64),
}

/// A binary operator that binds tighter than `? :`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    OrElse,
    AndAlso,
    Or,
    Xor,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The operators by how tightly they bind, loosest first.
const LEVELS: [&[(Token<'static>, Binary)]; 10] = [
    &[(Token::PipePipe, Binary::OrElse)],
    &[(Token::AndAnd, Binary::AndAlso)],
    &[(Token::Pipe, Binary::Or)],
    &[(Token::Caret, Binary::Xor)],
    &[(Token::And, Binary::And)],
    &[(Token::EqualsEquals, Binary::Equal), (Token::NotEquals, Binary::Unequal)],
    &[
        (Token::LessEquals, Binary::LessOrEqual),
        (Token::GreaterEquals, Binary::GreaterOrEqual),
        (Token::Less, Binary::Less),
        (Token::Greater, Binary::Greater),
    ],
    &[(Token::ShiftLeft, Binary::ShiftLeft), (Token::ShiftRight, Binary::ShiftRight)],
    &[(Token::Plus, Binary::Add), (Token::Minus, Binary::Subtract)],
    &[(Token::Star, Binary::Multiply), (Token::Slash, Binary::Divide), (Token::Percent, Binary::Remainder)],
];

/// The level of products, of which the terms of an offset are.
const PRODUCTS: usize = LEVELS.len() - 1;

impl ConstantValue {
    fn signed(value: bool) -> ConstantValue {
        ConstantValue::Int { bits: u64::from(value), unsigned: false }
    }

    fn is_true(self) -> Option<bool> {
        match self {
            ConstantValue::Int { bits, .. } => Some(bits != 0),
            ConstantValue::Single(_) | ConstantValue::Double(_) => None,
        }
    }

    /// As a double, if it is a float.
    fn float(self) -> Option<f64> {
        match self {
            ConstantValue::Int { .. } => None,
            ConstantValue::Single(bits) => Some(f64::from(f32::from_bits(bits))),
            ConstantValue::Double(value) => Some(value),
        }
    }
}

impl Binary {
    /// # Errors
    /// What is wrong with the operands.
    fn of(self, a: ConstantValue, b: ConstantValue) -> Result<ConstantValue, &'static str> {
        match (a, b) {
            (ConstantValue::Int { bits: x, unsigned: a }, ConstantValue::Int { bits: y, unsigned: b }) => {
                self.of_integers(x, y, [a, b])
            }
            _ => match (a.float(), b.float()) {
                (Some(a), Some(b)) => self.of_floats(a, b),
                _ => Err("an integer and a float do not go together"),
            },
        }
    }

    fn of_integers(self, x: u64, y: u64, unsigned: [bool; 2]) -> Result<ConstantValue, &'static str> {
        let either = unsigned[0] || unsigned[1];
        let (sx, sy) = (x as i64, y as i64);
        // `ptxas` takes amounts modulo 64, and the operands of `%` as unsigned, whatever they are.
        let amount = (y & 63) as u32;
        let order = if either { x.cmp(&y) } else { sx.cmp(&sy) };
        let int = |bits| Ok(ConstantValue::Int { bits, unsigned: either });
        let shifted = |bits| Ok(ConstantValue::Int { bits, unsigned: unsigned[0] });
        let truth = |value| Ok(ConstantValue::signed(value));
        match self {
            Binary::OrElse => truth(x != 0 || y != 0),
            Binary::AndAlso => truth(x != 0 && y != 0),
            Binary::Or => int(x | y),
            Binary::Xor => int(x ^ y),
            Binary::And => int(x & y),
            Binary::Equal => truth(x == y),
            Binary::Unequal => truth(x != y),
            Binary::Less => truth(order.is_lt()),
            Binary::LessOrEqual => truth(order.is_le()),
            Binary::Greater => truth(order.is_gt()),
            Binary::GreaterOrEqual => truth(order.is_ge()),
            Binary::ShiftLeft => shifted(x << amount),
            Binary::ShiftRight if unsigned[0] => shifted(x >> amount),
            Binary::ShiftRight => shifted((sx >> amount) as u64),
            Binary::Add => int(x.wrapping_add(y)),
            Binary::Subtract => int(x.wrapping_sub(y)),
            Binary::Multiply => int(x.wrapping_mul(y)),
            Binary::Divide | Binary::Remainder if y == 0 => Err("a division by zero"),
            Binary::Divide => int(if either { x / y } else { sx.wrapping_div(sy) as u64 }),
            Binary::Remainder => Ok(ConstantValue::Int { bits: x % y, unsigned: true }),
        }
    }

    fn of_floats(self, x: f64, y: f64) -> Result<ConstantValue, &'static str> {
        Ok(match self {
            Binary::Equal => ConstantValue::signed(x == y),
            Binary::Unequal => ConstantValue::signed(x != y),
            Binary::Less => ConstantValue::signed(x < y),
            Binary::LessOrEqual => ConstantValue::signed(x <= y),
            Binary::Greater => ConstantValue::signed(x > y),
            Binary::GreaterOrEqual => ConstantValue::signed(x >= y),
            Binary::Add => ConstantValue::Double(x + y),
            Binary::Subtract => ConstantValue::Double(x - y),
            Binary::Multiply => ConstantValue::Double(x * y),
            Binary::Divide => ConstantValue::Double(x / y),
            _ => return Err("this operator takes integers only"),
        })
    }
}

impl<'a> Parser<'a> {
    /// A constant expression starts here: no name is in it but `WARP_SZ`. A parenthesis is part of one if all
    /// that it holds is.
    pub(super) fn at_constant(&self) -> bool {
        match self.peek() {
            Some(Token::Int(_) | Token::Single(_) | Token::Double(_) | Token::Plus | Token::Tilde) => true,
            Some(Token::Word("WARP_SZ")) => true,
            Some(Token::Minus | Token::Not) => {
                !matches!(self.peek_second(), Some(Token::Word(name)) if name != "WARP_SZ")
            }
            Some(Token::ParenOpen) => self.constant_inside(),
            _ => false,
        }
    }

    /// From a `(` on to its `)` there is no name, and something.
    fn constant_inside(&self) -> bool {
        let mut depth = 0u32;
        let mut values = false;
        for (token, _) in &self.tokens[self.next..] {
            match token {
                Token::ParenOpen => depth += 1,
                Token::ParenClose if depth == 1 => return values,
                Token::ParenClose => depth -= 1,
                Token::Int(_) | Token::Single(_) | Token::Double(_) | Token::Word("WARP_SZ") => values = true,
                // The type of a cast.
                Token::Dot("s64" | "u64") if depth == 1 && !values => values = true,
                Token::Dot("s64" | "u64") | Token::Question | Token::Colon | Token::Tilde | Token::Not => {}
                token if LEVELS.iter().any(|level| level.iter().any(|(known, _)| known == token)) => {}
                _ => return false,
            }
        }
        false
    }

    /// A constant expression as an operand.
    pub(super) fn constant(&mut self) -> Parsed<OperandKind<'a>> {
        Ok(match self.conditional()? {
            ConstantValue::Int { bits, .. } => OperandKind::Int(bits),
            ConstantValue::Single(bits) => OperandKind::Single(bits),
            ConstantValue::Double(value) => OperandKind::Double(value.to_bits()),
        })
    }

    /// A constant expression that must be an integer: a size, a dimension.
    pub(super) fn constant_integer(&mut self, wanted: &str) -> Parsed<u64> {
        if !self.at_constant() {
            return Err(self.unexpected(wanted));
        }
        let at = self.here();
        match self.conditional()? {
            ConstantValue::Int { bits, .. } => Ok(bits),
            _ => Err(self.fault(at, format!("expected {wanted}, found a float"))),
        }
    }

    /// `+ 4`, `- 4`, `+-4`, `+ 4*2`, any number of them.
    pub(super) fn offset(&mut self) -> Parsed<i64> {
        let mut sum = 0i64;
        loop {
            let sign = match self.peek() {
                Some(Token::Plus) => 1,
                Some(Token::Minus) => -1,
                _ => return Ok(sum),
            };
            self.next += 1;
            let at = self.here();
            match self.binary(PRODUCTS)? {
                ConstantValue::Int { bits, .. } => sum = sum.wrapping_add((bits as i64).wrapping_mul(sign)),
                _ => return Err(self.fault(at, "expected an integer offset")),
            }
        }
    }

    fn conditional(&mut self) -> Parsed<ConstantValue> {
        self.nested(|p| {
            let at = p.here();
            let condition = p.binary(0)?;
            if !p.accept(Token::Question) {
                return Ok(condition);
            }
            let first = p.conditional()?;
            p.expect(Token::Colon, "`:`")?;
            let second = p.conditional()?;
            match (condition.is_true(), first.float(), second.float()) {
                (Some(holds), None, None) => Ok(if holds { first } else { second }),
                _ => Err(p.fault(at.start..p.last_end(), "`? :` takes integers only")),
            }
        })
    }

    fn binary(&mut self, level: usize) -> Parsed<ConstantValue> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let start = self.here().start;
        let mut value = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(token, _)| self.accept(*token)) {
            let right = self.binary(level + 1)?;
            value = operator.of(value, right).map_err(|what| self.fault(start..self.last_end(), what))?;
        }
        Ok(value)
    }

    fn unary(&mut self) -> Parsed<ConstantValue> {
        self.nested(|p| {
            let at = p.here();
            if p.accept(Token::Plus) {
                return p.unary();
            }
            if p.accept(Token::Minus) {
                // Integers keep their type: the negative of an unsigned one is unsigned.
                return Ok(match p.unary()? {
                    ConstantValue::Int { bits, unsigned } => ConstantValue::Int { bits: bits.wrapping_neg(), unsigned },
                    ConstantValue::Single(bits) => ConstantValue::Single(bits ^ 0x8000_0000),
                    ConstantValue::Double(value) => ConstantValue::Double(-value),
                });
            }
            if p.accept(Token::Tilde) {
                return match p.unary()? {
                    ConstantValue::Int { bits, unsigned } => Ok(ConstantValue::Int { bits: !bits, unsigned }),
                    _ => Err(p.fault(at, "`~` takes an integer")),
                };
            }
            if p.accept(Token::Not) {
                let value = p.unary()?;
                return match value.is_true() {
                    Some(holds) => Ok(ConstantValue::signed(!holds)),
                    None => Err(p.fault(at, "`!` takes an integer")),
                };
            }
            p.atom(at)
        })
    }

    /// A literal, a cast, or an expression in parentheses.
    fn atom(&mut self, at: Bytes) -> Parsed<ConstantValue> {
        if self.accept(Token::ParenOpen) {
            if let Some(Token::Dot(ty @ ("s64" | "u64"))) = self.peek() {
                self.next += 1;
                self.expect(Token::ParenClose, "`)`")?;
                return match self.unary()? {
                    ConstantValue::Int { bits, .. } => Ok(ConstantValue::Int { bits, unsigned: ty == "u64" }),
                    _ => Err(self.fault(at, "a cast takes an integer")),
                };
            }
            let value = self.conditional()?;
            self.expect(Token::ParenClose, "`)`")?;
            return Ok(value);
        }
        let value = match self.peek() {
            Some(Token::Int(bits)) => {
                let marked = self.text.get(at).is_some_and(|literal| literal.ends_with('U'));
                ConstantValue::Int { bits, unsigned: marked || bits > i64::MAX as u64 }
            }
            Some(Token::Word("WARP_SZ")) => ConstantValue::Int { bits: 32, unsigned: false },
            Some(Token::Single(bits)) => ConstantValue::Single(bits),
            Some(Token::Double(bits)) => ConstantValue::Double(f64::from_bits(bits)),
            _ => return Err(self.unexpected("an operand")),
        };
        self.next += 1;
        Ok(value)
    }
}
