//! From the tree of an expression to typed nodes: every name is resolved to a slot and every operator to its
//! type.
//!
//! Types are static: an integer (`i64`) or a float (`f64`). An operator with operands of both kinds works on
//! floats. Comparisons and logic give the integers 0 and 1; conditions are integers. So a value needs no tag
//! when it is evaluated, and a wrong type is found when the manifest is read, whatever the profile.

use std::ops::Range;

use super::syntax::{Binary, NodeKind, SyntaxFault, Tree};
use super::{Code, Compare, Function, Node, Scope, Type, Which};
use durawarp_base::diagnostic::nearest;

/// Functions and how they are called, for messages and for the check of `workloads/manifest.md`.
pub(crate) const FUNCTIONS: [(&str, &str); 17] = [
    ("abs", "abs(x)"),
    ("ceil", "ceil(x)"),
    ("ceil_div", "ceil_div(a, b)"),
    ("cos", "cos(x)"),
    ("exp", "exp(x)"),
    ("float", "float(x)"),
    ("floor", "floor(x)"),
    ("initial", "initial(x)"),
    ("int", "int(x)"),
    ("len", "len(buffer)"),
    ("log2", "log2(x)"),
    ("max", "max(a, b, ...)"),
    ("min", "min(a, b, ...)"),
    ("pow", "pow(a, b)"),
    ("sin", "sin(x)"),
    ("sqrt", "sqrt(x)"),
    ("sum", "sum(var, low, high, body)"),
];

/// Compiles `tree`; returns the code, whose root is the last node, and its type.
pub(crate) fn compile(tree: &Tree, scope: &Scope) -> Result<Code, SyntaxFault> {
    let mut compiler = Compiler {
        scope,
        nodes: Vec::new(),
        places: Vec::new(),
        locals: Vec::new(),
        slots: scope.slots,
        initial: false,
        reads_device: false,
    };
    let (_, ty) = compiler.node(tree)?;
    Ok(Code {
        nodes: compiler.nodes,
        places: compiler.places,
        ty,
        scope_slots: scope.slots,
        slots: compiler.slots,
        reads_device: compiler.reads_device,
    })
}

struct Compiler<'s> {
    scope: &'s Scope,
    nodes: Vec<Node>,
    places: Vec<Range<u32>>,
    /// Variables of the sums around the current node, and their slots.
    locals: Vec<(String, u16)>,
    slots: u16,
    /// Inside `initial(...)`.
    initial: bool,
    reads_device: bool,
}

type Typed = (u32, Type);

impl Compiler<'_> {
    fn push(&mut self, node: Node, at: &Range<usize>) -> u32 {
        self.nodes.push(node);
        self.places.push(at.start as u32..at.end as u32);
        self.nodes.len() as u32 - 1
    }

    fn node(&mut self, tree: &Tree) -> Result<Typed, SyntaxFault> {
        let at = &tree.at;
        match &tree.kind {
            NodeKind::Int(value) => Ok((self.push(Node::Int(*value), at), Type::Int)),
            NodeKind::Float(value) => Ok((self.push(Node::Float(*value), at), Type::Float)),
            NodeKind::Name(name) => self.name(name, at),
            NodeKind::Neg(operand) => {
                let (a, ty) = self.node(operand)?;
                let node = if ty == Type::Int { Node::NegInt(a) } else { Node::NegFloat(a) };
                Ok((self.push(node, at), ty))
            }
            NodeKind::Not(operand) => {
                let a = self.condition(operand)?;
                Ok((self.push(Node::Not(a), at), Type::Int))
            }
            NodeKind::Binary(op, left, right) => self.binary(*op, left, right, at),
            NodeKind::Select(condition, yes, no) => {
                let c = self.condition(condition)?;
                let yes = self.node(yes)?;
                let no = self.node(no)?;
                let (a, b, ty) = self.unify(yes, no);
                Ok((self.push(Node::Select(c, a, b), at), ty))
            }
            NodeKind::Call(name, arguments) => self.call(name, arguments, at),
            NodeKind::Read { name, name_at, device, index } => self.read(name, name_at, *device, index, at),
        }
    }

    fn name(&mut self, name: &str, at: &Range<usize>) -> Result<Typed, SyntaxFault> {
        if let Some((_, slot)) = self.locals.iter().rev().find(|(local, _)| local == name) {
            return Ok((self.push(Node::Var(*slot), at), Type::Int));
        }
        if let Some(variable) = self.scope.variable(name) {
            return Ok((self.push(Node::Var(variable.slot), at), variable.ty));
        }
        let fault = SyntaxFault::new(at.clone(), format!("`{name}` is not defined here"));
        if self.scope.buffer(name).is_some() {
            let mark = if self.scope.device_reads { "@" } else { "" };
            return Err(fault.with_help(format!("`{name}` is a buffer: read an element with `{mark}{name}[index]`")));
        }
        if FUNCTIONS.iter().any(|(function, _)| *function == name) {
            return Err(fault.with_help(format!("`{name}` is a function: call it with `{name}(...)`")));
        }
        Err(self.with_names(fault, name))
    }

    fn with_names(&self, fault: SyntaxFault, name: &str) -> SyntaxFault {
        let locals = self.locals.iter().map(|(name, _)| name.as_str());
        let mut names: Vec<&str> = Vec::new();
        for name in locals.chain(self.scope.variable_names()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match nearest(name, names.iter().copied()) {
            Some(near) => fault.with_help(format!("did you mean `{near}`?")),
            None if names.is_empty() => fault.with_help("no names are defined here"),
            None => fault.with_help(format!("defined here: {}", names.join(", "))),
        }
    }

    fn condition(&mut self, tree: &Tree) -> Result<u32, SyntaxFault> {
        match self.node(tree)? {
            (a, Type::Int) => Ok(a),
            (_, Type::Float) => {
                let fault = SyntaxFault::new(tree.at.clone(), "a condition must be an integer, this is a float");
                Err(fault.with_help("compare it: `x != 0.0`"))
            }
        }
    }

    fn integer(&mut self, tree: &Tree, what: &str) -> Result<u32, SyntaxFault> {
        match self.node(tree)? {
            (a, Type::Int) => Ok(a),
            (_, Type::Float) => {
                let fault = SyntaxFault::new(tree.at.clone(), format!("{what} must be an integer, this is a float"));
                Err(fault.with_help("`int(x)` rounds toward zero"))
            }
        }
    }

    fn float(&mut self, (a, ty): Typed) -> u32 {
        match ty {
            Type::Float => a,
            Type::Int => {
                let at = self.places[a as usize].clone();
                self.push(Node::ToFloat(a), &(at.start as usize..at.end as usize))
            }
        }
    }

    /// Both operands in one type: floats if either is.
    fn unify(&mut self, a: Typed, b: Typed) -> (u32, u32, Type) {
        if a.1 == Type::Int && b.1 == Type::Int {
            return (a.0, b.0, Type::Int);
        }
        (self.float(a), self.float(b), Type::Float)
    }

    fn binary(&mut self, op: Binary, left: &Tree, right: &Tree, at: &Range<usize>) -> Result<Typed, SyntaxFault> {
        // Logic takes conditions, not numbers of one type: its operands are not unified.
        if matches!(op, Binary::And | Binary::Or) {
            let a = self.condition(left)?;
            let b = self.condition(right)?;
            let node = if op == Binary::And { Node::And(a, b) } else { Node::Or(a, b) };
            return Ok((self.push(node, at), Type::Int));
        }
        let left = self.node(left)?;
        let right = self.node(right)?;
        let (a, b, ty) = self.unify(left, right);
        let int = ty == Type::Int;
        let compare = match op {
            Binary::Eq => Some(Compare::Eq),
            Binary::Ne => Some(Compare::Ne),
            Binary::Lt => Some(Compare::Lt),
            Binary::Le => Some(Compare::Le),
            Binary::Gt => Some(Compare::Gt),
            Binary::Ge => Some(Compare::Ge),
            _ => None,
        };
        if let Some(compare) = compare {
            let node = if int { Node::CompareInt(compare, a, b) } else { Node::CompareFloat(compare, a, b) };
            return Ok((self.push(node, at), Type::Int));
        }
        let node = match (op, int) {
            (Binary::Add, true) => Node::AddInt(a, b),
            (Binary::Sub, true) => Node::SubInt(a, b),
            (Binary::Mul, true) => Node::MulInt(a, b),
            (Binary::Div, true) => Node::DivInt(a, b),
            (Binary::Rem, true) => Node::RemInt(a, b),
            (Binary::Add, false) => Node::AddFloat(a, b),
            (Binary::Sub, false) => Node::SubFloat(a, b),
            (Binary::Mul, false) => Node::MulFloat(a, b),
            (Binary::Div, false) => Node::DivFloat(a, b),
            _ => Node::RemFloat(a, b),
        };
        Ok((self.push(node, at), ty))
    }

    fn call(&mut self, name: &str, arguments: &[Tree], at: &Range<usize>) -> Result<Typed, SyntaxFault> {
        let Some((_, form)) = FUNCTIONS.iter().find(|(function, _)| *function == name) else {
            let fault = SyntaxFault::new(at.start..at.start + name.len(), format!("no function is called `{name}`"));
            return Err(match nearest(name, FUNCTIONS.iter().map(|f| f.0)) {
                Some(near) => fault.with_help(format!("did you mean `{near}`?")),
                None => fault.with_help(format!("functions: {}", FUNCTIONS.map(|f| f.0).join(", "))),
            });
        };
        // The count comes first, so that the arms below can index `arguments`.
        let (least, most) = match name {
            "min" | "max" => (2, usize::MAX),
            "ceil_div" | "pow" => (2, 2),
            "sum" => (4, 4),
            _ => (1, 1),
        };
        if arguments.len() < least || arguments.len() > most {
            let found = arguments.len();
            let plural = if found == 1 { "" } else { "s" };
            let message = format!("`{name}` is called as `{form}`, found {found} argument{plural}");
            return Err(SyntaxFault::new(at.clone(), message));
        }
        match name {
            "min" | "max" => self.least_or_most(name == "min", arguments, at),
            "ceil_div" => {
                let a = self.integer(&arguments[0], "an operand of `ceil_div`")?;
                let b = self.integer(&arguments[1], "an operand of `ceil_div`")?;
                Ok((self.push(Node::CeilDiv(a, b), at), Type::Int))
            }
            "pow" => {
                let a = self.node(&arguments[0])?;
                let b = self.node(&arguments[1])?;
                let (a, b, ty) = self.unify(a, b);
                let node = if ty == Type::Int { Node::PowInt(a, b) } else { Node::PowFloat(a, b) };
                Ok((self.push(node, at), ty))
            }
            "sum" => self.sum(arguments, at),
            "len" => self.len(&arguments[0], at),
            "initial" => {
                if !self.scope.element_reads {
                    return Err(SyntaxFault::new(at.clone(), "`initial` is defined only in `[verify]`"));
                }
                // `initial` may stand inside of another one: the outer state comes back.
                let outer = std::mem::replace(&mut self.initial, true);
                let inner = self.node(&arguments[0]);
                self.initial = outer;
                inner
            }
            _ => {
                let argument = self.node(&arguments[0])?;
                Ok(self.unary(name, argument, at))
            }
        }
    }

    fn unary(&mut self, name: &str, (a, ty): Typed, at: &Range<usize>) -> Typed {
        let int = ty == Type::Int;
        let (node, ty) = match name {
            "abs" if int => (Node::AbsInt(a), Type::Int),
            "log2" if int => (Node::Log2Int(a), Type::Int),
            "float" if int => (Node::ToFloat(a), Type::Float),
            "int" if !int => (Node::ToInt(a), Type::Int),
            // Nothing to do: already of that kind, or already whole.
            "int" | "float" => return (a, ty),
            "floor" | "ceil" if int => return (a, ty),
            _ => {
                let function = match name {
                    "abs" => Function::Abs,
                    "ceil" => Function::Ceil,
                    "cos" => Function::Cos,
                    "exp" => Function::Exp,
                    "floor" => Function::Floor,
                    "log2" => Function::Log2,
                    "sin" => Function::Sin,
                    _ => Function::Sqrt,
                };
                let a = self.float((a, ty));
                (Node::Function(function, a), Type::Float)
            }
        };
        (self.push(node, at), ty)
    }

    fn least_or_most(&mut self, least: bool, arguments: &[Tree], at: &Range<usize>) -> Result<Typed, SyntaxFault> {
        let mut sofar = self.node(&arguments[0])?;
        for argument in &arguments[1..] {
            let next = self.node(argument)?;
            let (a, b, ty) = self.unify(sofar, next);
            let node = match (ty, least) {
                (Type::Int, true) => Node::MinInt(a, b),
                (Type::Int, false) => Node::MaxInt(a, b),
                (Type::Float, true) => Node::MinFloat(a, b),
                (Type::Float, false) => Node::MaxFloat(a, b),
            };
            sofar = (self.push(node, at), ty);
        }
        Ok(sofar)
    }

    fn sum(&mut self, arguments: &[Tree], at: &Range<usize>) -> Result<Typed, SyntaxFault> {
        let [variable, low, high, body] = arguments else { unreachable!("the count was checked") };
        let NodeKind::Name(name) = &variable.kind else {
            let fault = SyntaxFault::new(variable.at.clone(), "the first argument of `sum` must be a new name");
            return Err(fault.with_help("`sum(k, 0, N, a[k])`"));
        };
        if self.scope.variable(name).is_some() || self.locals.iter().any(|(local, _)| local == name) {
            let fault = SyntaxFault::new(variable.at.clone(), format!("`{name}` already has a meaning here"));
            return Err(fault.with_help("choose another name for the variable of `sum`"));
        }
        let low = self.integer(low, "a bound of `sum`")?;
        let high = self.integer(high, "a bound of `sum`")?;
        let slot = self.slots;
        self.slots += 1;
        self.locals.push((name.clone(), slot));
        let body = self.node(body);
        self.locals.pop();
        let (body, ty) = body?;
        Ok((self.push(Node::Sum { slot, float: ty == Type::Float, low, high, body }, at), ty))
    }

    fn len(&mut self, argument: &Tree, at: &Range<usize>) -> Result<Typed, SyntaxFault> {
        let NodeKind::Name(name) = &argument.kind else {
            return Err(SyntaxFault::new(argument.at.clone(), "`len` takes the name of a buffer"));
        };
        match self.scope.variable(&format!("len({name})")) {
            Some(variable) => Ok((self.push(Node::Var(variable.slot), at), Type::Int)),
            None if self.scope.buffer(name).is_some() => {
                Err(SyntaxFault::new(at.clone(), "the length of a buffer is not known here"))
            }
            None => Err(self.unknown_buffer(name, &argument.at)),
        }
    }

    fn unknown_buffer(&self, name: &str, at: &Range<usize>) -> SyntaxFault {
        let fault = SyntaxFault::new(at.clone(), format!("there is no buffer `{name}`"));
        let names: Vec<&str> = self.scope.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        match nearest(name, names.iter().copied()) {
            Some(near) => fault.with_help(format!("did you mean `{near}`?")),
            None if names.is_empty() => fault.with_help("no buffer is declared"),
            None => fault.with_help(format!("buffers: {}", names.join(", "))),
        }
    }

    fn read(
        &mut self,
        name: &str,
        name_at: &Range<usize>,
        device: bool,
        index: &Tree,
        at: &Range<usize>,
    ) -> Result<Typed, SyntaxFault> {
        let Some(buffer) = self.scope.buffer(name).cloned() else {
            return Err(self.unknown_buffer(name, name_at));
        };
        // The two memories differ, so that the text must say which it means: `@` is the device while the host
        // program runs.
        match (device, self.scope.device_reads, self.scope.element_reads) {
            (true, true, _) | (false, _, true) => {}
            (true, false, true) => {
                let fault = SyntaxFault::new(at.clone(), "`@` reads the device while the host program runs");
                return Err(fault.with_help(format!("here, write `{name}[...]`")));
            }
            (false, true, false) => {
                let fault = SyntaxFault::new(at.clone(), format!("`{name}` must be read from the device"));
                return Err(fault.with_help(format!("write `@{name}[...]`")));
            }
            _ => return Err(SyntaxFault::new(at.clone(), "no buffer can be read here")),
        }
        let Some(ty) = buffer.ty else {
            let fault = SyntaxFault::new(name_at.clone(), format!("the elements of `{name}` are structures"));
            return Err(fault.with_help(format!("name a field: `{name}.field[index]`")));
        };
        let index = self.integer(index, "an index")?;
        self.reads_device |= device;
        let which = if self.initial { Which::Initial } else { Which::Current };
        let node = Node::Load { which, buffer: buffer.buffer, field: buffer.field, index };
        Ok((self.push(node, at), ty))
    }
}
