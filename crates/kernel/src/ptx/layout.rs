//! Module-scope variables: where they lie, and the bytes they start with (PTX ISA 5.4, "Variables").
//!
//! `.const` variables are laid out in one bank in declaration order; `.global` variables become
//! [`GlobalVar`]s that the caller places; `.shared` ones are laid out per kernel, when first used. Not
//! modelled: `.common` merging, several constant banks.

use hashbrown::HashMap;

use super::super::ir::{ConstVar, GRID_WORKSPACE, GlobalVar, Module, Relocation};
use super::super::memory::CONST_WINDOW;
use super::ast::{Init, Operand, OperandKind, Var};
use super::functions::Functions;
use super::size::{LayoutFault, size_of};
use super::types::Ty;

/// `%envreg`s of CUDA's drivers with the address of the workspace of `grid.sync()`: upper half, lower half.
pub(super) const GRID_WORKSPACE_REGISTERS: [&str; 2] = ["%envreg1", "%envreg2"];

/// What a module-scope name stands for.
#[derive(Debug, Clone)]
pub(super) enum Symbol<'a> {
    /// Index in [`Module::globals`].
    Global(u32),
    /// Byte offset in the constant bank.
    Const(u32),
    /// Laid out by each kernel that uses it.
    Shared(&'a Var<'a>),
    /// A texture reference.
    Texture,
    /// A surface reference.
    Surface,
    /// A sampler: declared, unusable.
    Opaque,
}

/// What a module's variables are, and what is wrong with them.
pub(super) struct LaidOut<'a> {
    /// Those at module scope, by name.
    pub(super) symbols: HashMap<&'a str, Symbol<'a>>,
    /// Those that functions declare, by the place of their declaration.
    pub(super) statics: HashMap<usize, Symbol<'a>>,
    pub(super) faults: Vec<LayoutFault>,
}

/// The names and the data of a module's variables, and of those `statics` that its functions declare.
pub(super) fn lay_out<'a>(
    vars: impl Iterator<Item = &'a Var<'a>> + Clone,
    statics: &[&'a Var<'a>],
    functions: &Functions<'_>,
    module: &mut Module,
) -> LaidOut<'a> {
    let (mut symbols, mut inner, mut faults) = (HashMap::new(), HashMap::new(), Vec::new());
    // All places first, since an initialiser may hold the address of a variable that is declared later.
    for var in vars.clone() {
        match place(var, module, &symbols) {
            Ok(symbol) => {
                symbols.insert(var.name.text, symbol);
            }
            Err(fault) => faults.push(fault),
        }
    }
    for &var in statics {
        // Its name is known in its function only.
        match place(var, module, &HashMap::new()) {
            Ok(symbol) => {
                inner.insert(var.name.at.start, symbol);
            }
            Err(fault) => faults.push(fault),
        }
    }
    for var in vars.chain(statics.iter().copied()) {
        let Some(init) = &var.init else { continue };
        let mut image = Image { bytes: Vec::new(), relocations: Vec::new(), symbols: &symbols, functions, module };
        let Some(ty) = Ty::parse(var.ty.text) else { continue };
        let target = inner.get(&var.name.at.start).or_else(|| symbols.get(var.name.text));
        match (image.fill(init, ty, 0), target) {
            (Err(fault), _) => faults.push(fault),
            (Ok(_), Some(&Symbol::Global(index))) => {
                let (bytes, relocations) = (image.bytes, image.relocations);
                let global = &mut module.globals[index as usize];
                if bytes.len() as u64 > global.bytes {
                    faults.push((var.name.at.clone(), format!("too many initialisers for `{}`", var.name.text)));
                } else {
                    (global.init, global.relocations) = (bytes, relocations);
                }
            }
            (Ok(_), Some(&Symbol::Const(offset))) => {
                let (bytes, relocations) = (image.bytes, image.relocations);
                // The bank goes on after the variable: what is too long would be another's bytes.
                let own = module.consts.iter().find(|own| own.offset == offset).map_or(0, |own| own.bytes);
                if bytes.len() > own as usize {
                    faults.push((var.name.at.clone(), format!("too many initialisers for `{}`", var.name.text)));
                    continue;
                }
                module.const_bank[offset as usize..offset as usize + bytes.len()].copy_from_slice(&bytes);
                // Relocations of an image count from the variable's first byte, those of the bank from its
                // own.
                let moved = relocations.into_iter().map(|r| Relocation { at: r.at + offset, ..r });
                module.const_relocations.extend(moved);
            }
            _ => faults.push((var.name.at.clone(), format!("`.{}` variables cannot be initialised", var.space))),
        }
    }
    LaidOut { symbols, statics: inner, faults }
}

/// The variable that `grid.sync()` counts in, among the globals of a module whose text asks for its address.
/// CUDA's drivers keep that in two registers, which are offsets of the grid, here zeros, where OpenCL's do.
pub(super) fn grid_workspace(text: &str, opencl: bool, module: &mut Module) -> Option<u32> {
    if opencl || !GRID_WORKSPACE_REGISTERS.iter().any(|register| text.contains(register)) {
        return None;
    }
    let name = GRID_WORKSPACE.to_owned();
    module.globals.push(GlobalVar { name, bytes: 8, align: 8, init: Vec::new(), relocations: Vec::new() });
    Some(module.globals.len() as u32 - 1)
}

fn place<'a>(
    var: &'a Var<'a>,
    module: &mut Module,
    known: &HashMap<&str, Symbol<'_>>,
) -> Result<Symbol<'a>, LayoutFault> {
    match var.ty.text {
        "texref" => return Ok(Symbol::Texture),
        "surfref" => return Ok(Symbol::Surface),
        "samplerref" => return Ok(Symbol::Opaque),
        _ => {}
    }
    if let (Some(Symbol::Global(index)), "global") = (known.get(var.name.text), var.space) {
        // Declared before, defined now (or the reverse).
        return Ok(Symbol::Global(*index));
    }
    let (bytes, align) = size_of(var)?;
    match var.space {
        "global" => {
            let name = var.name.text.to_owned();
            module.globals.push(GlobalVar { name, bytes, align, init: Vec::new(), relocations: Vec::new() });
            Ok(Symbol::Global(module.globals.len() as u32 - 1))
        }
        "const" => {
            let offset = module.const_bank.len().next_multiple_of(align as usize);
            if offset as u64 + bytes > 64 << 10 {
                return Err((var.name.at.clone(), "constant memory exceeds 64 KiB".to_owned()));
            }
            module.const_bank.resize(offset + bytes as usize, 0);
            let offset = offset as u32;
            module.consts.push(ConstVar { name: var.name.text.to_owned(), offset, bytes: bytes as u32 });
            Ok(Symbol::Const(offset))
        }
        "shared" => Ok(Symbol::Shared(var)),
        space => Err((var.name.at.clone(), format!("`.{space}` variables are not allowed at module scope"))),
    }
}

/// The bytes of an initialiser in the making.
struct Image<'m, 'a> {
    bytes: Vec<u8>,
    relocations: Vec<Relocation>,
    symbols: &'m HashMap<&'a str, Symbol<'a>>,
    functions: &'m Functions<'a>,
    module: &'m Module,
}

impl Image<'_, '_> {
    /// Writes an initialiser from byte `at` on and returns the end.
    fn fill(&mut self, init: &Init<'_>, ty: Ty, mut at: usize) -> Result<usize, LayoutFault> {
        match init {
            Init::List(list) => {
                for init in list {
                    at = self.fill(init, ty, at)?;
                }
                Ok(at)
            }
            Init::Value(operand) => self.value(operand, ty, at, false),
            Init::Generic(operand) => self.value(operand, ty, at, true),
            Init::Masked(mask, operand) => {
                // `{0xFF(sym), 0xFF00(sym), ...}`: the bytes of one address in a row; the first brings all of
                // it.
                if *mask == 0xff {
                    self.value(operand, Ty::B64, at, true)?;
                }
                self.grow(at + 1);
                Ok(at + 1)
            }
        }
    }

    fn grow(&mut self, end: usize) {
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
    }

    fn value(&mut self, operand: &Operand<'_>, ty: Ty, at: usize, generic: bool) -> Result<usize, LayoutFault> {
        let size = ty.bytes() as usize;
        let bits = match operand.kind {
            // PTX ISA 5.4.4 excludes them.
            _ if ty.half().is_some() => {
                return Err((operand.at.clone(), format!("{ty} variables take no initialiser")));
            }
            OperandKind::Int(v) if ty.is_float() => {
                return Err((operand.at.clone(), format!("`{v}` is not a float literal")));
            }
            OperandKind::Int(v) => v,
            OperandKind::Single(bits) if ty.bits == 64 => f64::from(f32::from_bits(bits)).to_bits(),
            OperandKind::Single(bits) => u64::from(bits),
            OperandKind::Double(bits) if ty.bits == 32 => u64::from((f64::from_bits(bits) as f32).to_bits()),
            OperandKind::Double(bits) => bits,
            // Addresses of globals are known at launch only and become relocations; those of constants and of
            // functions are known now.
            OperandKind::Name { name, component: None, offset } => match self.symbols.get(name) {
                Some(&Symbol::Global(index)) if size == 8 => {
                    self.relocations.push(Relocation { at: at as u32, index, addend: offset });
                    0
                }
                Some(&Symbol::Const(base)) => {
                    let window = if generic { CONST_WINDOW } else { 0 };
                    (window + u64::from(base)).wrapping_add_signed(offset)
                }
                Some(_) => {
                    return Err((
                        operand.at.clone(),
                        format!("the address of `{name}` cannot initialise a {ty} variable"),
                    ));
                }
                None => match self.functions.address(name).or_else(|| self.functions.kernel_address(name)) {
                    Some(address) if size == 8 && offset == 0 => address,
                    Some(_) => {
                        let fault = format!("the address of function `{name}` is a value of 8 bytes without an offset");
                        return Err((operand.at.clone(), fault));
                    }
                    None => {
                        let fault = format!("unknown variable `{name}` ({} are known)", self.module.globals.len());
                        return Err((operand.at.clone(), fault));
                    }
                },
            },
            _ => return Err((operand.at.clone(), "not a constant".to_owned())),
        };
        self.grow(at + size);
        self.bytes[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        Ok(at + size)
    }
}
