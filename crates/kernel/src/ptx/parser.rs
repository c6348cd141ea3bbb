//! PTX text to syntax tree: recursive descent over the tokens.
//!
//! Instructions are read generically, `opcode{.mod}* operands;`, so an unknown opcode is no syntax error.
//! After an error the parser goes on after the next semicolon (or at the closing brace), so that one run
//! reports every fault. Over 500 lines: one method a production of the grammar, which call each other.

use super::ast::{
    File, Formal, Function, Init, Instruction, ModuleItem, Operand, OperandKind, PtxWord, Statement, Var,
};
use super::token::{Bytes, NoToken, Token, tokens};
use durawarp_base::diagnostic::Diagnostic;

/// The newest version that is known: that of CUDA 13.5. Later ones add instructions, which are refused by
/// name.
pub(super) const NEWEST: (u32, u32) = (9, 5);

/// A fault was recorded; nothing more to say.
pub(super) struct Reported;

pub(super) type Parsed<T> = Result<T, Reported>;

/// Faults of one file that are reported, at most; a binary file would have more.
const MAX_FAULTS: usize = 100;

/// The deepest nesting of braces, parentheses and initialisers.
const MAX_DEPTH: u32 = 64;

/// Reads a file; the tree holds everything that could be read.
pub(super) fn parse<'a>(file: &'a str, text: &'a str) -> (File<'a>, Vec<Diagnostic>) {
    let mut parser =
        Parser { file, text, tokens: Vec::new(), next: 0, depth: 0, faults: Vec::new(), strange_until: None };
    for (token, at) in tokens(text) {
        match token {
            Ok(token) => parser.tokens.push((token, at)),
            Err(NoToken) => {
                let found = &text[at.clone()];
                // A run of strange characters is one fault.
                if parser.strange_until == Some(at.start) {
                    parser.strange_until = Some(at.end);
                    continue;
                }
                parser.strange_until = Some(at.end);
                let message = if found.starts_with('"') {
                    "unterminated string".to_owned()
                } else if found.starts_with(|c: char| c.is_ascii_digit()) {
                    format!("`{found}` is not a number that fits 64 bits")
                } else {
                    format!("unexpected character `{}`", found.escape_default())
                };
                parser.fault(at, message);
            }
        }
    }
    let tree = parser.file();
    if !tree.versioned && !parser.tokens.is_empty() {
        parser.fault(parser.tokens[0].1.clone(), "a PTX file begins with `.version` and a number such as 8.0");
    }
    (tree, parser.faults)
}

pub(super) struct Parser<'a> {
    file: &'a str,
    pub(super) text: &'a str,
    pub(super) tokens: Vec<(Token<'a>, Bytes)>,
    pub(super) next: usize,
    depth: u32,
    faults: Vec<Diagnostic>,
    /// Where the last run of characters that are no token ended.
    strange_until: Option<usize>,
}

impl<'a> Parser<'a> {
    pub(super) fn fault(&mut self, at: Bytes, message: impl Into<String>) -> Reported {
        self.fault_near(at, message, "", &[])
    }

    /// Records a fault with the nearest of `valid` as advice.
    fn fault_near(&mut self, at: Bytes, message: impl Into<String>, found: &str, valid: &[&'static str]) -> Reported {
        if self.faults.len() < MAX_FAULTS {
            let fault = Diagnostic::at(self.file, self.text, at, message);
            self.faults.push(fault.with_nearest(found, valid.iter().copied()));
        }
        Reported
    }

    pub(super) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).map(|t| t.0)
    }

    pub(super) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next + 1).map(|t| t.0)
    }

    /// The place of the next token, or the end of the text.
    pub(super) fn here(&self) -> Bytes {
        self.tokens.get(self.next).map_or(self.text.len()..self.text.len(), |t| t.1.clone())
    }

    /// The end of the token before.
    pub(super) fn last_end(&self) -> usize {
        self.next.checked_sub(1).map_or(0, |i| self.tokens[i].1.end)
    }

    pub(super) fn accept(&mut self, token: Token<'_>) -> bool {
        let found = self.peek() == Some(token);
        self.next += usize::from(found);
        found
    }

    pub(super) fn unexpected(&mut self, wanted: &str) -> Reported {
        let at = self.here();
        let message = match self.text.get(at.clone()) {
            Some("") | None => format!("expected {wanted}, found the end of the file"),
            Some(found) => format!("expected {wanted}, found `{}`", found.lines().next().unwrap_or("")),
        };
        self.fault(at, message)
    }

    pub(super) fn expect(&mut self, token: Token<'_>, wanted: &str) -> Parsed<()> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    fn word(&mut self, wanted: &str) -> Parsed<PtxWord<'a>> {
        match self.peek() {
            Some(Token::Word(text)) => {
                let at = self.here();
                self.next += 1;
                Ok(PtxWord { text, at })
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn dot(&mut self) -> Option<PtxWord<'a>> {
        let Some(Token::Dot(text)) = self.peek() else {
            return None;
        };
        let at = self.here();
        self.next += 1;
        Some(PtxWord { text, at })
    }

    fn accept_dot(&mut self, text: &str) -> bool {
        self.accept(Token::Dot(text))
    }

    fn number(&mut self, wanted: &str) -> Parsed<u64> {
        match self.peek() {
            Some(Token::Int(value)) => {
                self.next += 1;
                Ok(value)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    /// Goes on after the next semicolon; stops before a closing brace of the current block.
    fn recover(&mut self) {
        let mut depth = 0;
        while let Some(token) = self.peek() {
            match token {
                Token::Semicolon if depth == 0 => {
                    self.next += 1;
                    return;
                }
                Token::BraceOpen => depth += 1,
                Token::BraceClose if depth == 0 => return,
                Token::BraceClose => {
                    depth -= 1;
                    if depth == 0 {
                        self.next += 1;
                        return;
                    }
                }
                _ => {}
            }
            self.next += 1;
        }
    }

    pub(super) fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault(self.here(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn file(&mut self) -> File<'a> {
        let mut file = File::default();
        while self.peek().is_some() && self.faults.len() < MAX_FAULTS {
            let before = self.next;
            match self.item(&mut file) {
                Ok(()) => {}
                Err(Reported) => {
                    self.recover();
                    self.accept(Token::BraceClose);
                }
            }
            // Whatever happened, move on.
            if self.next == before {
                self.next += 1;
            }
        }
        file
    }

    fn item(&mut self, file: &mut File<'a>) -> Parsed<()> {
        let mut external = false;
        // Linkage and attributes come before the directive that they belong to, so only that one ends the
        // item.
        loop {
            let Some(word) = self.dot() else {
                if self.accept(Token::Semicolon) {
                    return Ok(());
                }
                return Err(self.unexpected("a directive"));
            };
            match word.text {
                "version" => {
                    file.versioned = true;
                    file.newer = self.version();
                    return Ok(());
                }
                "target" => {
                    // No architecture is kept: nothing depends on it. The mode of textures does: it says that
                    // the text comes from OpenCL.
                    while let Some(token @ (Token::Word(_) | Token::Comma)) = self.peek() {
                        file.opencl |= token == Token::Word("texmode_independent");
                        self.next += 1;
                    }
                    return Ok(());
                }
                "address_size" => {
                    let at = self.here();
                    let bits = self.number("32 or 64")?;
                    file.address_size = Some(bits);
                    if bits != 64 {
                        return Err(self.fault(at, format!("`.address_size {bits}` is not supported, only 64")));
                    }
                    return Ok(());
                }
                "visible" | "weak" | "common" => {}
                "extern" => external = true,
                "entry" | "func" => {
                    let function = self.function(word.text == "entry")?;
                    file.items.push(ModuleItem::Function(function));
                    return Ok(());
                }
                "global" | "const" | "shared" | "local" => {
                    for var in self.variables(word.text, external)? {
                        file.items.push(ModuleItem::Var(var));
                    }
                    return Ok(());
                }
                "section" => {
                    // Debug information: nothing in it is needed, so it is skipped to its brace.
                    self.dot();
                    if let Some(Token::Word(_)) = self.peek() {
                        self.next += 1;
                    }
                    self.expect(Token::BraceOpen, "`{`")?;
                    while !matches!(self.peek(), None | Some(Token::BraceClose)) {
                        self.next += 1;
                    }
                    self.accept(Token::BraceClose);
                    return Ok(());
                }
                "alias" => {
                    let name = self.word("a function name")?;
                    self.expect(Token::Comma, "`,`")?;
                    let of = self.word("a function name")?;
                    self.expect(Token::Semicolon, "`;`")?;
                    file.items.push(ModuleItem::Alias(name, of));
                    return Ok(());
                }
                "pragma" => {
                    // Skipped to the semicolon, as after an error.
                    self.recover();
                    return Ok(());
                }
                "attribute" => self.skip_parens()?,
                _ => {
                    let known = ["visible", "entry", "func", "global", "const", "shared", "extern", "weak", "version"];
                    let message = format!("unknown directive `.{}`", word.text);
                    return Err(self.fault_near(word.at, message, word.text, &known));
                }
            }
        }
    }

    /// The number of `.version`; the word of it if it is newer than those known. What follows can be read all
    /// the same.
    fn version(&mut self) -> Option<PtxWord<'a>> {
        let at = self.here();
        self.next += 1;
        let text = self.text.get(at.clone()).unwrap_or("");
        let parts = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match parts {
            // PTX 0 does not exist.
            Some((1.., _)) if !text.starts_with('0') => {
                parts.filter(|version: &(u32, u32)| *version > NEWEST).map(|_| PtxWord { text, at })
            }
            _ => {
                let found = text.lines().next().unwrap_or("");
                self.fault(at, format!("`{found}` is no version of PTX: expected a number such as 8.0"));
                None
            }
        }
    }

    fn skip_parens(&mut self) -> Parsed<()> {
        self.expect(Token::ParenOpen, "`(`")?;
        while !matches!(self.peek(), None | Some(Token::ParenClose)) {
            self.next += 1;
        }
        self.expect(Token::ParenClose, "`)`")
    }

    fn function(&mut self, entry: bool) -> Parsed<Function<'a>> {
        while self.accept_dot("attribute") {
            self.skip_parens()?;
        }
        let returns = if self.peek() == Some(Token::ParenOpen) { self.formals()? } else { Vec::new() };
        let name = self.word("a function name")?;
        let (mut params, mut close) = (Vec::new(), None);
        if self.peek() == Some(Token::ParenOpen) {
            params = self.formals()?;
            // The end of the parameters, not that of the results: a pass adds parameters there.
            close = Some(self.last_end() - 1);
        }
        let mut limits = Vec::new();
        loop {
            // A declaration may end after any directive, a definition goes on with its body.
            if self.accept(Token::Semicolon) {
                return Ok(Function { entry, name, returns, params, limits, body: None, close, braces: 0..0 });
            }
            let Some(word) = self.dot() else { break };
            match word.text {
                "pragma" => {
                    self.next += 1;
                    self.expect(Token::Semicolon, "`;`")?;
                }
                "noreturn" | "blocksareclusters" => {}
                "explicitcluster" => limits.push((word, Vec::new())),
                _ => {
                    let mut numbers = vec![self.number("a number")?];
                    while self.accept(Token::Comma) {
                        numbers.push(self.number("a number")?);
                    }
                    limits.push((word, numbers));
                }
            }
        }
        let start = self.here().start;
        self.expect(Token::BraceOpen, "`{`")?;
        let body = self.statements()?;
        let braces = start..self.last_end();
        Ok(Function { entry, name, returns, params, limits, body: Some(body), close, braces })
    }

    fn formals(&mut self) -> Parsed<Vec<Formal<'a>>> {
        self.expect(Token::ParenOpen, "`(`")?;
        let mut formals = Vec::new();
        while !self.accept(Token::ParenClose) {
            if !formals.is_empty() {
                self.expect(Token::Comma, "`,` or `)`")?;
            }
            let Some(space) = self.dot() else {
                return Err(self.unexpected("`.param` or `.reg`"));
            };
            if space.text != "param" && space.text != "reg" {
                return Err(self.fault(space.at, format!("expected `.param` or `.reg`, found `.{}`", space.text)));
            }
            let register = space.text == "reg";
            let var = self.declaration("param", false)?;
            formals.push(Formal { register, var });
        }
        Ok(formals)
    }

    /// `.align 4 .b8 x[4] = {...}, y;` after the space.
    fn variables(&mut self, space: &'a str, external: bool) -> Parsed<Vec<Var<'a>>> {
        let first = self.declaration(space, external)?;
        let mut all = vec![first];
        while self.accept(Token::Comma) {
            let name = self.word("a variable name")?;
            let dims = self.dims()?;
            let init = self.initialiser()?;
            all.push(Var { name, dims, init, ..all[0].clone() });
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(all)
    }

    /// A declaration without its semicolon, after the space.
    fn declaration(&mut self, space: &'a str, external: bool) -> Parsed<Var<'a>> {
        let (mut align, mut vector, mut ty) = (None, 1, None);
        while let Some(word) = self.dot() {
            match word.text {
                "align" => align = Some(self.constant_integer("an alignment")?),
                "v2" => vector = 2,
                "v4" => vector = 4,
                "attribute" => self.skip_parens()?,
                // `.ptr .global .align 4`: what a pointer parameter points to, of no consequence here.
                "ptr" => {
                    while let Some(Token::Dot(hint)) = self.peek() {
                        self.next += 1;
                        if hint == "align" {
                            self.number("an alignment")?;
                        }
                    }
                }
                _ => ty = Some(word),
            }
        }
        let Some(ty) = ty else {
            return Err(self.unexpected("a type such as `.b8`"));
        };
        let name = self.word("a variable name")?;
        let dims = self.dims()?;
        let init = self.initialiser()?;
        Ok(Var { space, external, align, vector, ty, name, dims, init })
    }

    fn dims(&mut self) -> Parsed<Vec<u64>> {
        let mut dims = Vec::new();
        while self.accept(Token::BracketOpen) {
            dims.push(match self.peek() {
                Some(Token::BracketClose) => 0,
                _ => self.constant_integer("a number of elements")?,
            });
            self.expect(Token::BracketClose, "`]`")?;
        }
        Ok(dims)
    }

    fn initialiser(&mut self) -> Parsed<Option<Init<'a>>> {
        if self.accept(Token::Equals) { self.init().map(Some) } else { Ok(None) }
    }

    fn init(&mut self) -> Parsed<Init<'a>> {
        if self.accept(Token::BraceOpen) {
            let mut list = Vec::new();
            while !self.accept(Token::BraceClose) {
                if !list.is_empty() {
                    self.expect(Token::Comma, "`,` or `}`")?;
                    if self.accept(Token::BraceClose) {
                        break;
                    }
                }
                list.push(self.nested(Self::init)?);
            }
            return Ok(Init::List(list));
        }
        // Two tokens are needed to tell: a mask alone is a number, and `generic` alone may be a name.
        if let (Some(Token::Int(mask)), Some(Token::ParenOpen)) = (self.peek(), self.peek_second()) {
            self.next += 2;
            let value = self.operand()?;
            self.expect(Token::ParenClose, "`)`")?;
            return Ok(Init::Masked(mask, value));
        }
        if let (Some(Token::Word("generic")), Some(Token::ParenOpen)) = (self.peek(), self.peek_second()) {
            self.next += 2;
            let mut value = self.operand()?;
            self.expect(Token::ParenClose, "`)`")?;
            let more = self.offset()?;
            if let OperandKind::Name { offset, .. } = &mut value.kind {
                *offset = offset.wrapping_add(more);
            }
            return Ok(Init::Generic(value));
        }
        self.operand().map(Init::Value)
    }

    /// Statements up to the closing brace, which is consumed.
    fn statements(&mut self) -> Parsed<Vec<Statement<'a>>> {
        let mut all = Vec::new();
        loop {
            if self.accept(Token::BraceClose) {
                return Ok(all);
            }
            if self.peek().is_none() {
                return Err(self.unexpected("`}`"));
            }
            let before = self.next;
            if let Err(Reported) = self.statement(&mut all) {
                self.recover();
                if self.next == before {
                    self.next += 1;
                }
            }
        }
    }

    fn statement(&mut self, all: &mut Vec<Statement<'a>>) -> Parsed<()> {
        match (self.peek(), self.peek_second()) {
            (Some(Token::Semicolon), _) => self.next += 1,
            (Some(Token::BraceOpen), _) => {
                self.next += 1;
                all.push(Statement::Block(self.nested(Self::statements)?));
            }
            (Some(Token::Word(_)), Some(Token::Colon)) => {
                let label = self.word("a label")?;
                self.next += 1;
                all.push(match self.peek() {
                    Some(Token::Dot("callprototype")) => self.prototype(label)?,
                    Some(Token::Dot("calltargets")) => self.targets(label)?,
                    Some(Token::Dot("branchtargets")) => self.branch_targets(label)?,
                    _ => Statement::Label(label),
                });
            }
            (Some(Token::Dot(_)), _) => self.declaration_statement(all)?,
            _ => all.push(Statement::Instruction(self.instruction()?)),
        }
        Ok(())
    }

    fn declaration_statement(&mut self, all: &mut Vec<Statement<'a>>) -> Parsed<()> {
        let Some(word) = self.dot() else {
            return Err(self.unexpected("a directive"));
        };
        match word.text {
            "reg" => {
                let vector = match self.peek() {
                    Some(Token::Dot("v2")) => 2,
                    Some(Token::Dot("v4")) => 4,
                    _ => 1,
                };
                self.next += usize::from(vector > 1);
                let Some(ty) = self.dot() else {
                    return Err(self.unexpected("a register type"));
                };
                let mut names = Vec::new();
                loop {
                    let name = self.word("a register name")?;
                    // `%r<10>` stays a name with a count: the lowering looks numbers up in it and forms no
                    // names.
                    let count = if self.accept(Token::Less) {
                        let n = self.number("a register count")?;
                        self.expect(Token::Greater, "`>`")?;
                        Some(n)
                    } else {
                        None
                    };
                    names.push((name, count));
                    if !self.accept(Token::Comma) {
                        break;
                    }
                }
                self.expect(Token::Semicolon, "`;`")?;
                all.push(Statement::Registers(vector, ty, names));
            }
            "param" | "local" | "shared" | "global" | "const" => {
                all.extend(self.variables(word.text, false)?.into_iter().map(Statement::Var));
            }
            "extern" => {
                let Some(space) = self.dot() else {
                    return Err(self.unexpected("a state space"));
                };
                all.extend(self.variables(space.text, true)?.into_iter().map(Statement::Var));
            }
            "pragma" => self.recover(),
            "calltargets" | "callprototype" | "branchtargets" => {
                // With a label these are read together with it, so one that comes here has none.
                return Err(self.fault(word.at, format!("`.{}` needs a label before it", word.text)));
            }
            _ => {
                let message = format!("directive `.{}` is not supported here", word.text);
                let known = ["reg", "param", "local", "shared", "pragma"];
                return Err(self.fault_near(word.at, message, word.text, &known));
            }
        }
        Ok(())
    }

    /// `.callprototype (ret) _ (params) .noreturn;`
    fn prototype(&mut self, label: PtxWord<'a>) -> Parsed<Statement<'a>> {
        self.next += 1;
        let returns = if self.peek() == Some(Token::ParenOpen) { self.formals()? } else { Vec::new() };
        self.word("`_` or a name")?;
        let params = if self.peek() == Some(Token::ParenOpen) { self.formals()? } else { Vec::new() };
        while let Some(word) = self.dot() {
            match word.text {
                "noreturn" => {}
                "abi_preserve" | "abi_preserve_control" => {
                    self.number("a number of registers")?;
                }
                other => return Err(self.fault(word.at, format!("directive `.{other}` is not supported here"))),
            }
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(Statement::Prototype { label, returns, params })
    }

    /// `.calltargets f, g;`
    fn targets(&mut self, label: PtxWord<'a>) -> Parsed<Statement<'a>> {
        self.next += 1;
        let mut targets = vec![self.word("a function name")?];
        while self.accept(Token::Comma) {
            targets.push(self.word("a function name")?);
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(Statement::Targets { label, targets })
    }

    /// `.branchtargets a, b;`
    fn branch_targets(&mut self, label: PtxWord<'a>) -> Parsed<Statement<'a>> {
        self.next += 1;
        let mut targets = vec![self.operand()?];
        while self.accept(Token::Comma) {
            targets.push(self.operand()?);
        }
        self.expect(Token::Semicolon, "`;`")?;
        Ok(Statement::BranchTargets { label, targets })
    }

    fn instruction(&mut self) -> Parsed<Instruction<'a>> {
        let start = self.here().start;
        let guard = if self.accept(Token::At) {
            let negated = self.accept(Token::Not);
            Some((self.word("a predicate register")?, negated))
        } else {
            None
        };
        let opcode = self.word("an instruction")?;
        let mut mods = Vec::new();
        while let Some(word) = self.dot() {
            mods.push(word);
        }
        let mut operands = Vec::new();
        while !self.accept(Token::Semicolon) {
            if !operands.is_empty() {
                self.expect(Token::Comma, "`,` or `;`")?;
            }
            operands.push(self.operand()?);
        }
        Ok(Instruction { at: start..self.last_end(), guard, opcode, mods, operands })
    }

    fn operand(&mut self) -> Parsed<Operand<'a>> {
        self.nested(|p| {
            let start = p.here().start;
            let first = p.primary()?;
            if p.accept(Token::Pipe) {
                let second = p.primary()?;
                let at = start..p.last_end();
                return Ok(Operand { kind: OperandKind::Pair(Box::new(first), Box::new(second)), at });
            }
            Ok(first)
        })
    }

    fn primary(&mut self) -> Parsed<Operand<'a>> {
        let start = self.here().start;
        let kind = match self.peek() {
            _ if self.at_constant() => self.constant()?,
            Some(Token::Not) => {
                self.next += 1;
                OperandKind::Not(Box::new(self.nested(Self::primary)?))
            }
            Some(Token::Minus) if matches!(self.peek_second(), Some(Token::Word(_))) => {
                self.next += 1;
                OperandKind::Minus(Box::new(self.nested(Self::primary)?))
            }
            Some(Token::BraceOpen) => OperandKind::Vector(self.list(Token::BraceClose, "`,` or `}`")?),
            Some(Token::BracketOpen) => OperandKind::Address(self.list(Token::BracketClose, "`,` or `]`")?),
            Some(Token::ParenOpen) => OperandKind::List(self.list(Token::ParenClose, "`,` or `)`")?),
            Some(Token::Word(name)) => {
                self.next += 1;
                let component = self.dot().map(|w| w.text);
                let offset = self.offset()?;
                OperandKind::Name { name, component, offset }
            }
            _ => return Err(self.unexpected("an operand")),
        };
        Ok(Operand { kind, at: start..self.last_end() })
    }

    fn list(&mut self, close: Token<'_>, wanted: &str) -> Parsed<Vec<Operand<'a>>> {
        self.next += 1;
        let mut list = Vec::new();
        while !self.accept(close) {
            if !list.is_empty() {
                self.expect(Token::Comma, wanted)?;
            }
            list.push(self.operand()?);
        }
        Ok(list)
    }
}
