//! The syntax tree of a PTX file; no name is resolved.
//!
//! Names and modifiers borrow from the source text. Every part has its place, so that later faults point at
//! it.

use super::token::Bytes;

/// A PTX file.
#[derive(Debug, Default)]
pub(super) struct File<'a> {
    /// It says for which version of the ISA it was written.
    pub(super) versioned: bool,
    /// That version, if it is newer than those known.
    pub(super) newer: Option<PtxWord<'a>>,
    pub(super) address_size: Option<u64>,
    /// `.target` says `texmode_independent`, as compilers of OpenCL do.
    pub(super) opencl: bool,
    pub(super) items: Vec<ModuleItem<'a>>,
}

impl<'a> File<'a> {
    /// Every `.entry` and `.func`, declarations included.
    pub(super) fn functions(&self) -> impl Iterator<Item = &Function<'a>> + Clone {
        self.items.iter().filter_map(|item| match item {
            ModuleItem::Function(function) => Some(function),
            ModuleItem::Var(_) | ModuleItem::Alias(..) => None,
        })
    }

    /// Variables at module scope.
    pub(super) fn variables(&self) -> impl Iterator<Item = &Var<'a>> + Clone {
        self.items.iter().filter_map(|item| match item {
            ModuleItem::Var(var) => Some(var),
            ModuleItem::Function(_) | ModuleItem::Alias(..) => None,
        })
    }

    /// Variables in global and constant memory that functions declare: one each, however often a function is
    /// called.
    pub(super) fn statics(&self) -> Vec<&Var<'a>> {
        fn collect<'s, 'a>(statements: &'s [Statement<'a>], out: &mut Vec<&'s Var<'a>>) {
            for statement in statements {
                match statement {
                    Statement::Block(inner) => collect(inner, out),
                    Statement::Var(var) if matches!(var.space, "global" | "const") => out.push(var),
                    _ => {}
                }
            }
        }
        let mut out = Vec::new();
        self.functions().for_each(|function| collect(function.body.as_deref().unwrap_or_default(), &mut out));
        out
    }
}

/// A top-level item.
#[derive(Debug)]
pub(super) enum ModuleItem<'a> {
    Var(Var<'a>),
    Function(Function<'a>),
    /// `.alias name, function;`
    Alias(PtxWord<'a>, PtxWord<'a>),
}

/// A piece of text with its place.
#[derive(Debug, Clone)]
pub(super) struct PtxWord<'a> {
    pub(super) text: &'a str,
    pub(super) at: Bytes,
}

/// A variable declaration outside the register space: `.shared .align 4 .b8 x[64] = {...}`.
#[derive(Debug, Clone)]
pub(super) struct Var<'a> {
    /// `shared`, `const`, `global`, `local`, `param`.
    pub(super) space: &'a str,
    pub(super) external: bool,
    pub(super) align: Option<u64>,
    /// 1, 2 or 4.
    pub(super) vector: u64,
    pub(super) ty: PtxWord<'a>,
    pub(super) name: PtxWord<'a>,
    /// Array dimensions; an empty one is 0.
    pub(super) dims: Vec<u64>,
    pub(super) init: Option<Init<'a>>,
}

/// An initialiser.
#[derive(Debug, Clone)]
pub(super) enum Init<'a> {
    Value(Operand<'a>),
    /// `0xFF00(sym + 4)`: one byte of an address.
    Masked(u64, Operand<'a>),
    /// `generic(sym)`
    Generic(Operand<'a>),
    List(Vec<Init<'a>>),
}

/// An `.entry` or `.func`.
#[derive(Debug)]
pub(super) struct Function<'a> {
    pub(super) entry: bool,
    pub(super) name: PtxWord<'a>,
    /// Return parameters of a `.func`.
    pub(super) returns: Vec<Formal<'a>>,
    pub(super) params: Vec<Formal<'a>>,
    /// Performance directives: name and numbers.
    pub(super) limits: Vec<(PtxWord<'a>, Vec<u64>)>,
    /// `None` for a declaration.
    pub(super) body: Option<Vec<Statement<'a>>>,
    /// First byte of the `)` after the parameters, if there is a list of them.
    pub(super) close: Option<usize>,
    /// From `{` through `}`; empty for a declaration.
    pub(super) braces: Bytes,
}

/// A formal parameter: in the parameter space, or (old style) a register.
#[derive(Debug, Clone)]
pub(super) struct Formal<'a> {
    pub(super) register: bool,
    pub(super) var: Var<'a>,
}

/// A statement of a body.
#[derive(Debug)]
pub(super) enum Statement<'a> {
    /// `.reg .v2 .b32 %r<5>, %x;`: elements of each (1 without a vector), type, and names with a count where
    /// they are ranges.
    Registers(u8, PtxWord<'a>, Vec<(PtxWord<'a>, Option<u64>)>),
    Var(Var<'a>),
    Label(PtxWord<'a>),
    Block(Vec<Statement<'a>>),
    /// `label: .callprototype (returns) _ (params);`
    Prototype {
        label: PtxWord<'a>,
        returns: Vec<Formal<'a>>,
        params: Vec<Formal<'a>>,
    },
    /// `label: .calltargets f, g;`
    Targets {
        label: PtxWord<'a>,
        targets: Vec<PtxWord<'a>>,
    },
    /// `label: .branchtargets a, b;`
    BranchTargets {
        label: PtxWord<'a>,
        targets: Vec<Operand<'a>>,
    },
    Instruction(Instruction<'a>),
}

/// `@p opcode.mod.mod operand, operand;`
#[derive(Debug)]
pub(super) struct Instruction<'a> {
    /// From its guard through its semicolon.
    pub(super) at: Bytes,
    /// Predicate register and whether it is negated.
    pub(super) guard: Option<(PtxWord<'a>, bool)>,
    pub(super) opcode: PtxWord<'a>,
    pub(super) mods: Vec<PtxWord<'a>>,
    pub(super) operands: Vec<Operand<'a>>,
}

/// An operand with its place.
#[derive(Debug, Clone)]
pub(super) struct Operand<'a> {
    pub(super) kind: OperandKind<'a>,
    pub(super) at: Bytes,
}

/// What an operand is.
#[derive(Debug, Clone)]
pub(super) enum OperandKind<'a> {
    /// A register, variable, label or function; with `.x` and `+ offset`.
    Name { name: &'a str, component: Option<&'a str>, offset: i64 },
    /// An integer, two's complement.
    Int(u64),
    /// The bits of a single.
    Single(u32),
    /// The bits of a double.
    Double(u64),
    /// `{a, b}`
    Vector(Vec<Operand<'a>>),
    /// `[a, b]`: the address first.
    Address(Vec<Operand<'a>>),
    /// `(a, b)`
    List(Vec<Operand<'a>>),
    /// `p|q`
    Pair(Box<Operand<'a>>, Box<Operand<'a>>),
    /// `!p`
    Not(Box<Operand<'a>>),
    /// `-r`, of a register
    Minus(Box<Operand<'a>>),
}
