//! Operands of instructions: registers, literals, special registers, addresses of variables.
//!
//! Source: PTX ISA chapters 6 "Instruction Operands" and 10 "Special Registers".

use std::borrow::Cow;

use super::super::alu::{AluOp, Combine, Compare, CompareKind, IntCmp, IntOp};
use super::super::ir::{Class as Timing, ConstSource, MachineRead, Op, Space, Special};
use super::super::memory::{CONST_WINDOW, LOCAL_WINDOW, SHARED_WINDOW};
use super::ast::{Operand, OperandKind};
use super::draft::{Arg, Const, Place, VReg};
use super::layout::{GRID_WORKSPACE_REGISTERS, Symbol};
use super::lower::{Lower, Lowered, Name};
use super::types::{Bank, Class, Ty};

/// Where a special register's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpecialSource {
    /// Written when the warp starts.
    Warp(Special),
    /// The same in every warp.
    Launch(ConstSource),
    /// Known to the machine alone.
    Machine(MachineRead),
}

/// The special register of this name.
pub(super) fn special(name: &str, component: Option<&str>) -> Option<SpecialSource> {
    use ConstSource::TotalShared;
    use ConstSource::{
        BlockDim, ClusterCtas, ClusterDim, ClusterGrid, DynamicShared, ExplicitCluster, GridDim, Literal,
    };
    use SpecialSource::{Launch, Machine, Warp};
    let axis = match component {
        Some("x" | "r") => Some(0),
        Some("y" | "g") => Some(1),
        Some("z" | "b") => Some(2),
        Some("w" | "a") => Some(3),
        Some(_) => return None,
        None => None,
    };
    Some(match (name, axis) {
        // No launch has a fourth dimension, so these are constants.
        ("%tid" | "%ctaid" | "%cluster_ctaid" | "%clusterid", Some(3)) => Launch(Literal(0)),
        ("%ntid" | "%nctaid" | "%cluster_nctaid" | "%nclusterid", Some(3)) => Launch(Literal(1)),
        ("%tid", Some(axis)) => Warp(Special::Tid(axis)),
        ("%ctaid", Some(axis)) => Warp(Special::Ctaid(axis)),
        ("%ntid", Some(axis)) => Launch(BlockDim(axis)),
        ("%nctaid", Some(axis)) => Launch(GridDim(axis)),
        ("%cluster_ctaid", Some(axis)) => Warp(Special::ClusterCtaid(axis)),
        ("%cluster_nctaid", Some(axis)) => Launch(ClusterDim(axis)),
        ("%clusterid", Some(axis)) => Warp(Special::ClusterId(axis)),
        ("%nclusterid", Some(axis)) => Launch(ClusterGrid(axis)),
        (_, Some(_)) => return None,
        // Those without a component.
        ("%laneid", None) => Warp(Special::LaneId),
        ("%lanemask_eq", None) => Warp(Special::LaneMask(0)),
        ("%lanemask_lt", None) => Warp(Special::LaneMask(1)),
        ("%lanemask_le", None) => Warp(Special::LaneMask(2)),
        ("%lanemask_gt", None) => Warp(Special::LaneMask(3)),
        ("%lanemask_ge", None) => Warp(Special::LaneMask(4)),
        ("%clock", None) => Machine(MachineRead::Clock),
        ("%clock_hi", None) => Machine(MachineRead::ClockHigh),
        ("%clock64", None) => Machine(MachineRead::Clock64),
        ("%globaltimer", None) => Machine(MachineRead::GlobalTimer),
        ("%smid", None) => Machine(MachineRead::SmId),
        ("%nsmid", None) => Machine(MachineRead::NSmId),
        ("%warpid", None) => Machine(MachineRead::WarpId),
        ("%nwarpid", None) => Machine(MachineRead::NWarpId),
        ("%gridid", None) => Launch(Literal(0)),
        // Of clusters; a CTA is one by itself where there are none.
        ("%cluster_ctarank", None) => Warp(Special::ClusterRank),
        ("%cluster_nctarank", None) => Launch(ClusterCtas),
        ("%is_explicit_cluster", None) => Launch(ExplicitCluster),
        ("%total_smem_size", None) => Launch(TotalShared),
        ("%dynamic_smem_size", None) => Launch(DynamicShared),
        _ if name.starts_with("%envreg") => Launch(Literal(0)),
        _ => return None,
    })
}

/// An address operand, taken apart.
pub(super) struct Address {
    pub(super) base: Arg,
    pub(super) offset: i32,
    /// The base is a 64-bit slot.
    pub(super) wide: bool,
}

impl<'a> Lower<'_, 'a> {
    /// A destination register of a bank; `_` is a register that is never read.
    pub(super) fn dst(&mut self, operand: &Operand<'a>, bank: Bank) -> Lowered<Arg> {
        if let Some(register) = self.vector_element(operand)? {
            return self.in_bank(register, operand, bank);
        }
        match operand.kind {
            OperandKind::Name { name: "_", component: None, offset: 0 } => Ok(Arg::Reg(self.body.register(bank))),
            OperandKind::Name { name, component: None, offset: 0 } => {
                self.register(name, operand.at.clone(), bank).map(Arg::Reg)
            }
            _ => Err(self.fault(operand.at.clone(), "expected a destination register")),
        }
    }

    /// A destination register of any bank but predicates, and whether it is 64-bit. `bank` is that of `_`.
    pub(super) fn dst_any(&mut self, operand: &Operand<'a>, bank: Bank) -> Lowered<(Arg, bool)> {
        if let Some(register) = self.vector_element(operand)? {
            return Ok((Arg::Reg(register), self.body.banks[register as usize] == Bank::R64));
        }
        match operand.kind {
            OperandKind::Name { name: "_", .. } => Ok((Arg::Reg(self.body.register(bank)), bank == Bank::R64)),
            OperandKind::Name { name, component: None, offset: 0 } => self.data_register(name, operand),
            _ => Err(self.fault(operand.at.clone(), "expected a destination register")),
        }
    }

    fn data_register(&mut self, name: &str, operand: &Operand<'a>) -> Lowered<(Arg, bool)> {
        let register = self.any_register(name, operand.at.clone())?;
        match self.body.banks[register as usize] {
            Bank::Pred => Err(self.fault(operand.at.clone(), format!("`{name}` is a predicate register"))),
            bank => Ok((Arg::Reg(register), bank == Bank::R64)),
        }
    }

    /// The register of one element of a vector, `v.x`; `None` of any other operand.
    fn vector_element(&mut self, operand: &Operand<'a>) -> Lowered<Option<VReg>> {
        let OperandKind::Name { name, component: Some(component), offset: 0 } = operand.kind else { return Ok(None) };
        let Some(Name::Vector(first, elements)) = self.name(name)? else { return Ok(None) };
        let number = ["x", "y", "z", "w"].iter().position(|known| *known == component);
        let number = number.or_else(|| ["r", "g", "b", "a"].iter().position(|known| *known == component));
        match number.filter(|number| *number < usize::from(elements)) {
            Some(number) => Ok(Some(first + number as VReg)),
            None => {
                Err(self.fault(operand.at.clone(), format!("`{name}` has {elements} elements and no `.{component}`")))
            }
        }
    }

    /// The elements of a vector operand: those in braces, those of a vector of registers, or the operand
    /// itself.
    pub(super) fn elements<'o>(&mut self, operand: &'o Operand<'a>) -> Lowered<Cow<'o, [Operand<'a>]>> {
        if let OperandKind::Vector(parts) = &operand.kind {
            return Ok(Cow::Borrowed(parts));
        }
        if let OperandKind::Name { name, component: None, offset: 0 } = operand.kind
            && let Some(Name::Vector(_, elements)) = self.name(name)?
        {
            let element = |component| {
                let kind = OperandKind::Name { name, component: Some(component), offset: 0 };
                Operand { kind, at: operand.at.clone() }
            };
            return Ok(["x", "y", "z", "w"][..usize::from(elements)].iter().map(|c| element(*c)).collect());
        }
        Ok(Cow::Borrowed(std::slice::from_ref(operand)))
    }

    /// Finds that a register is in a bank.
    fn in_bank(&mut self, register: VReg, operand: &Operand<'a>, bank: Bank) -> Lowered<Arg> {
        if self.body.banks[register as usize] == bank {
            return Ok(Arg::Reg(register));
        }
        let said = &self.env.text[operand.at.clone()];
        Err(self.fault(operand.at.clone(), format!("`{said}` is a register of another width than this operand")))
    }

    /// A source of a type.
    pub(super) fn src(&mut self, operand: &Operand<'a>, ty: Ty) -> Lowered<Arg> {
        let bank = ty.bank();
        if let Some(register) = self.vector_element(operand)? {
            return self.in_bank(register, operand, bank);
        }
        match operand.kind {
            OperandKind::Name { name, component: None, offset: 0 } if self.is_register(name)? => {
                self.register(name, operand.at.clone(), bank).map(Arg::Reg)
            }
            OperandKind::Name { name, component, .. } if name.starts_with('%') => match special(name, component) {
                Some(SpecialSource::Warp(special)) if bank == Bank::R32 => Ok(self.body.special(special)),
                // The one special register that is a predicate.
                Some(SpecialSource::Launch(source @ ConstSource::ExplicitCluster)) if bank == Bank::Pred => {
                    let source = self.body.constant(Bank::R32, Const::Source(source));
                    let (zero, explicit) = (self.body.literal(Bank::R32, 0), self.body.register(Bank::Pred));
                    let differ = Compare { kind: CompareKind::Int32(IntCmp::Ne), combine: Combine::None };
                    let op = Op::Alu(AluOp::Setp(differ));
                    self.emit(op, Timing::Compare, &[Arg::Reg(explicit)], &[source, zero], 0);
                    Ok(Arg::Reg(explicit))
                }
                Some(SpecialSource::Launch(source)) => {
                    let source = self.of_launch(name, source);
                    Ok(self.body.constant(bank, Const::Source(source)))
                }
                Some(SpecialSource::Machine(_)) => {
                    Err(self.fault(operand.at.clone(), format!("`{name}` can only be read by `mov`")))
                }
                Some(SpecialSource::Warp(_)) => {
                    Err(self.fault(operand.at.clone(), format!("`{name}` is 32 bits wide, {ty} is not")))
                }
                None => self.unknown_register(name, component, operand),
            },
            OperandKind::Name { name, component: None, offset } => {
                let address = self.address_of(name, offset, operand, bank)?;
                if self.env.names_ranks { self.with_rank(name, address, bank) } else { Ok(address) }
            }
            _ => self.literal(operand, ty),
        }
    }

    /// A source whose register may be wider than its type (`st`, `cvt`), and whether it is 64-bit.
    pub(super) fn src_any(&mut self, operand: &Operand<'a>, ty: Ty) -> Lowered<(Arg, bool)> {
        if let Some(register) = self.vector_element(operand)? {
            return Ok((Arg::Reg(register), self.body.banks[register as usize] == Bank::R64));
        }
        if let OperandKind::Name { name, component: None, offset: 0 } = operand.kind
            && self.is_register(name)?
        {
            return self.data_register(name, operand);
        }
        Ok((self.src(operand, ty)?, ty.bank() == Bank::R64))
    }

    /// A predicate source, `p` or `!p`, and whether it is negated.
    pub(super) fn src_pred(&mut self, operand: &Operand<'a>) -> Lowered<(Arg, i32)> {
        match &operand.kind {
            OperandKind::Not(inner) => Ok((self.src(inner, Ty::PRED)?, 1)),
            _ => Ok((self.src(operand, Ty::PRED)?, 0)),
        }
    }

    /// What a launch gives a special register: in CUDA's text, two of the driver's have the address of the
    /// workspace of `grid.sync()`, the upper half first.
    fn of_launch(&self, name: &str, source: ConstSource) -> ConstSource {
        let half = GRID_WORKSPACE_REGISTERS.iter().position(|register| *register == name);
        match half.zip(self.env.grid_workspace) {
            Some((half, index)) => ConstSource::GridWorkspace { index, high: half == 0 },
            None => source,
        }
    }

    fn is_register(&mut self, name: &str) -> Lowered<bool> {
        Ok(matches!(self.name(name)?, Some(Name::Register(_))))
    }

    fn unknown_register<T>(&mut self, name: &str, component: Option<&str>, operand: &Operand<'a>) -> Lowered<T> {
        if component.is_none() && self.register_advice(name).is_some() {
            return Err(self.undeclared(name, operand.at.clone()));
        }
        // Those that are read most, to be suggested; which ones there are is decided in `special`.
        const KNOWN: [&str; 22] = [
            "%tid.x",
            "%tid.y",
            "%tid.z",
            "%ntid.x",
            "%ntid.y",
            "%ntid.z",
            "%ctaid.x",
            "%ctaid.y",
            "%ctaid.z",
            "%nctaid.x",
            "%nctaid.y",
            "%nctaid.z",
            "%laneid",
            "%warpid",
            "%smid",
            "%nsmid",
            "%clock",
            "%clock64",
            "%globaltimer",
            "%lanemask_lt",
            "%gridid",
            "%dynamic_smem_size",
        ];
        let said = component.map_or(name.to_owned(), |c| format!("{name}.{c}"));
        let message = format!("`{said}` is neither a declared register nor a supported special register");
        Err(self.fault_near(operand.at.clone(), message, &said, &KNOWN))
    }

    fn literal(&mut self, operand: &Operand<'a>, ty: Ty) -> Lowered<Arg> {
        let bits = match (&operand.kind, ty.class, ty.bits) {
            (OperandKind::Int(v), Class::Pred, _) => u64::from(*v != 0),
            (OperandKind::Int(v), Class::Unsigned | Class::Signed | Class::Untyped, _) => *v,
            (OperandKind::Single(bits), Class::Float | Class::Untyped, 32) => u64::from(*bits),
            (OperandKind::Single(bits), Class::Float, 64) => f64::from(f32::from_bits(*bits)).to_bits(),
            (OperandKind::Double(bits), Class::Float | Class::Untyped, 64) => *bits,
            (OperandKind::Double(bits), Class::Float, 32) => u64::from((f64::from_bits(*bits) as f32).to_bits()),
            (OperandKind::Int(_) | OperandKind::Single(_) | OperandKind::Double(_), ..) => {
                let found = self.env.text[operand.at.clone()].to_owned();
                return Err(self.fault(operand.at.clone(), format!("`{found}` is not a literal of type {ty}")));
            }
            _ => return Err(self.fault(operand.at.clone(), format!("expected an operand of type {ty}"))),
        };
        Ok(self.body.literal(ty.bank(), bits))
    }

    /// The address of a variable as a value that names the own CTA, where it lies in shared memory.
    #[cold]
    fn with_rank(&mut self, name: &str, address: Arg, bank: Bank) -> Lowered<Arg> {
        if !matches!(self.name(name)?, Some(Name::Shared(_) | Name::DynamicShared)) {
            return Ok(address);
        }
        let named = Arg::Reg(self.body.register(bank));
        let rank = self.body.special(Special::ClusterRank);
        // It stays as it is where the launch has no clusters.
        let other = self.body.constant(Bank::R32, Const::Source(ConstSource::OtherRank));
        let op = Op::Alu(AluOp::MapShared(bank == Bank::R64));
        self.emit(op, Timing::Logic, &[named], &[address, rank, other], 0);
        Ok(named)
    }

    /// The address of a variable as a value: within its own state space (global addresses are flat).
    fn address_of(&mut self, name: &str, offset: i64, operand: &Operand<'a>, bank: Bank) -> Lowered<Arg> {
        if bank == Bank::Pred {
            return Err(self.fault(operand.at.clone(), format!("`{name}` is not a predicate")));
        }
        let literal = |base: u64| Const::Source(ConstSource::Literal(base.wrapping_add_signed(offset)));
        // Names of the body come before those of the module, which they hide.
        let c = match self.name(name)? {
            Some(Name::Shared(at)) => literal(u64::from(at)),
            Some(Name::DynamicShared) => Const::DynamicShared(offset),
            Some(Name::Local(place)) => return self.local_address(place, offset, operand, bank),
            Some(Name::EntryParam(at)) => {
                self.body.uses_param_bank = true;
                literal(u64::from(self.env.param_bank + at))
            }
            Some(Name::Block(block)) => {
                // A block whose address is taken cannot live in registers.
                let place = self.body.block_in_memory(block);
                return self.local_address(place, offset, operand, bank);
            }
            Some(Name::Const(at)) => literal(u64::from(at)),
            Some(Name::Global(index)) if bank == Bank::R64 => Const::Source(ConstSource::Global { index, offset }),
            Some(Name::Global(_)) => {
                return Err(self.fault(operand.at.clone(), format!("the address of `{name}` needs 64 bits")));
            }
            Some(Name::Vector(..)) => return self.any_register(name, operand.at.clone()).map(Arg::Reg),
            Some(Name::Register(_)) => {
                return Err(self.fault(operand.at.clone(), "a register plus an offset is not a value"));
            }
            None => match self.env.symbols.get(name) {
                Some(&Symbol::Global(index)) if bank == Bank::R64 => {
                    Const::Source(ConstSource::Global { index, offset })
                }
                Some(Symbol::Global(_)) => {
                    return Err(self.fault(operand.at.clone(), format!("the address of `{name}` needs 64 bits")));
                }
                Some(&Symbol::Const(at)) => literal(u64::from(at)),
                Some(_) => return Err(self.fault(operand.at.clone(), format!("`{name}` has no address"))),
                None => {
                    // Addresses of functions are compared by indirect calls, so an address with an offset
                    // would match none.
                    if let Some(address) = self.env.functions.address(name) {
                        if bank == Bank::R64 && offset == 0 {
                            return Ok(self.body.literal(bank, address));
                        }
                        let message = format!("the address of function `{name}` is a 64-bit value without an offset");
                        return Err(self.fault(operand.at.clone(), message));
                    }
                    if self.env.kernels.contains(&name) {
                        let message =
                            format!("the address of kernel `{name}` is not supported (kernels launch no kernels)");
                        return Err(self.fault(operand.at.clone(), message));
                    }
                    return Err(self.fault(operand.at.clone(), format!("`{name}` is not declared")));
                }
            },
        };
        if let Const::Source(ConstSource::Literal(value)) = c {
            return Ok(self.body.literal(bank, value));
        }
        Ok(self.body.constant(bank, c))
    }

    /// An address in local memory. One in a frame is computed.
    fn local_address(&mut self, place: Place, offset: i64, operand: &Operand<'a>, bank: Bank) -> Lowered<Arg> {
        match place {
            Place::Fixed(at) => Ok(self.body.literal(bank, u64::from(at).wrapping_add_signed(offset))),
            Place::Frame(at) if bank == Bank::R64 => {
                let pointer = Arg::Reg(self.body.stack().pointer);
                let by = self.body.literal(bank, u64::from(at).wrapping_add_signed(offset));
                let address = Arg::Reg(self.body.register(bank));
                self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Timing::Int, &[address], &[pointer, by], 0);
                Ok(address)
            }
            Place::Frame(_) => {
                let message = "the address of a local variable of a recursive function needs 64 bits";
                Err(self.fault(operand.at.clone(), message))
            }
        }
    }

    /// `[base + offset]` of an access to `space`.
    pub(super) fn address(&mut self, operand: &Operand<'a>, space: Space) -> Lowered<Address> {
        let OperandKind::Address(parts) = &operand.kind else {
            return Err(self.fault(operand.at.clone(), "expected an address in brackets"));
        };
        let [base] = parts.as_slice() else {
            return Err(self.fault(operand.at.clone(), "expected one address"));
        };
        self.address_at(base, space)
    }

    /// `base + offset` between brackets.
    pub(super) fn address_at(&mut self, base: &Operand<'a>, space: Space) -> Lowered<Address> {
        match base.kind {
            OperandKind::Name { name, component: None, offset } => {
                if let Some(Name::Register(register)) = self.name(name)? {
                    let wide = match self.body.banks[register as usize] {
                        Bank::R32 => false,
                        Bank::R64 => true,
                        Bank::Pred => return Err(self.fault(base.at.clone(), "a predicate is not an address")),
                    };
                    let Ok(offset) = i32::try_from(offset) else {
                        return Err(self.fault(base.at.clone(), format!("offset {offset} does not fit 32 bits")));
                    };
                    return Ok(Address { base: Arg::Reg(register), offset, wide });
                }
                // A variable in a subroutine's frame has another address in each activation: the stack
                // pointer is its base, and its place in the frame goes into the offset.
                let in_frame = match self.name(name)? {
                    Some(Name::Local(Place::Frame(at))) if space == Space::Local => Some(at),
                    _ => None,
                };
                if let Some(at) = in_frame {
                    let Ok(offset) = i32::try_from(i64::from(at).saturating_add(offset)) else {
                        return Err(self.fault(base.at.clone(), format!("offset {offset} does not fit 32 bits")));
                    };
                    return Ok(Address { base: Arg::Reg(self.body.stack().pointer), offset, wide: true });
                }
                let c = self.address_of(name, offset, base, Bank::R64)?;
                // A variable named in a generic access stands for its generic address.
                let window = match (space, self.name(name)?) {
                    (Space::Generic, Some(Name::Shared(_) | Name::DynamicShared)) => SHARED_WINDOW,
                    (Space::Generic, Some(Name::Local(_) | Name::Block(_))) => LOCAL_WINDOW,
                    (Space::Generic, Some(Name::EntryParam(_) | Name::Const(_))) => CONST_WINDOW,
                    (Space::Generic, None) if matches!(self.env.symbols.get(name), Some(Symbol::Const(_))) => {
                        CONST_WINDOW
                    }
                    _ => 0,
                };
                let c = if window == 0 { c } else { self.shifted(c, window) };
                Ok(Address { base: c, offset: 0, wide: true })
            }
            OperandKind::Int(address) => {
                Ok(Address { base: self.body.literal(Bank::R64, address), offset: 0, wide: true })
            }
            _ => Err(self.fault(base.at.clone(), "expected a register, a variable or an integer as the address")),
        }
    }

    /// A 64-bit address moved into an address window.
    fn shifted(&mut self, c: Arg, window: u64) -> Arg {
        let Arg::Const(slot) = c else {
            let (by, moved) = (self.body.literal(Bank::R64, window), Arg::Reg(self.body.register(Bank::R64)));
            self.emit(Op::Alu(AluOp::Int64(IntOp::Add)), Timing::Int, &[moved], &[c, by], 0);
            return moved;
        };
        let entry = self.body.pool64.entries[usize::from(slot & !super::super::ir::CONST)];
        let moved = match entry {
            Const::Source(ConstSource::Literal(v)) => Const::Source(ConstSource::Literal(v.wrapping_add(window))),
            Const::DynamicShared(offset) => Const::DynamicSharedGeneric(offset),
            other => other,
        };
        self.body.constant(Bank::R64, moved)
    }
}
