//! Persistent-memory opcodes: our extension of PTX, written from CUDA C by inline assembly.
//!
//! `pm.clwb`, `pm.clwb.log`, `pm.clflushopt` with `{.global} [a]`; `pm.sfence`, `pm.ofence`, `pm.dfence`;
//! `pm.barrier.{wi,wg,kr}`; `pm.st.{nt,log}{.global}{.v2,.v4}.type [a], r`;
//! `pm.ld.log{.global}{.v2,.v4}.type r, [a]`; `pm.txbegin id`, `pm.txend id`; `pm.region`;
//! `pm.acq.{cta,gpu,sys}`, `pm.rel.{cta,gpu,sys}`. `clwb`, `clflushopt`, `sfence`, `ofence` and `dfence` are
//! accepted without the prefix. Addresses without `.global` are generic, as inline assembly gives them.

use super::super::super::ir::{Class, Op, PmOp, Scope, Space, StoreHint};
use super::super::ast::{Instruction, OperandKind};
use super::super::lower::{Lower, Lowered};
use super::words::{Family, Mods};

/// What lowers which opcodes.
pub(super) const FAMILY: &[Family] =
    &[(&["pm", "clwb", "clflushopt", "sfence", "ofence", "dfence"], |l, i, m| l.persist(i, m))];

const OPERATIONS: [&str; 14] = [
    "clwb",
    "clflushopt",
    "sfence",
    "ofence",
    "dfence",
    "barrier",
    "st",
    "ld",
    "txbegin",
    "txend",
    "region",
    "acq",
    "rel",
    "log",
];

impl<'a> Lower<'_, 'a> {
    pub(super) fn persist(&mut self, i: &'a Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered {
        let name = if i.opcode.text == "pm" {
            // With the prefix, the operation is a modifier, and found wherever it stands among them.
            match m.find(|text| OPERATIONS.contains(&text).then_some(text)) {
                Some(name) => name,
                None => {
                    let found = i.mods.first().map_or("", |w| w.text);
                    let at = i.mods.first().map_or(i.opcode.at.clone(), |w| w.at.clone());
                    return Err(self.fault_near(at, format!("unknown operation `pm.{found}`"), found, &OPERATIONS));
                }
            }
        } else {
            i.opcode.text
        };
        match name {
            "clwb" | "clflushopt" => {
                // A flush of a log update is no operation of ours: its `.log` stays a fault.
                let log = name == "clwb" && m.take("log");
                // `.global` is accepted and changes nothing, as a global address is its own generic address.
                m.take("global");
                let op = match (name, log) {
                    ("clwb", false) => PmOp::Clwb,
                    ("clwb", true) => PmOp::ClwbLog,
                    _ => PmOp::ClflushOpt,
                };
                let [a] = self.operands(i)?;
                let address = self.address(a, Space::Generic)?;
                if !address.wide {
                    return Err(self.fault(a.at.clone(), "persistent memory needs a 64-bit address"));
                }
                self.emit(Op::Pm(op), Class::Mem, &[], &[address.base], address.offset);
                Ok(())
            }
            // What these order depends on the machine and its scheme, so they stay operations of their own.
            "sfence" => self.without_operands(i, PmOp::Sfence),
            "ofence" => self.without_operands(i, PmOp::Ofence),
            "dfence" => self.without_operands(i, PmOp::Dfence),
            "region" => self.without_operands(i, PmOp::Region),
            "barrier" => {
                let op = m.one_of(&[("wi", PmOp::BarrierWi), ("wg", PmOp::BarrierWg), ("kr", PmOp::BarrierKr)]);
                match op {
                    Some(op) => self.without_operands(i, op),
                    None => Err(self.fault(i.opcode.at.clone(), "`pm.barrier` needs `.wi`, `.wg` or `.kr`")),
                }
            }
            "acq" | "rel" => {
                let scope = m.one_of(&[("cta", Scope::Cta), ("gpu", Scope::Gpu), ("sys", Scope::Sys)]);
                let Some(scope) = scope else {
                    return Err(self.fault(i.opcode.at.clone(), format!("`pm.{name}` needs a scope such as `.gpu`")));
                };
                self.without_operands(i, if name == "acq" { PmOp::Acquire(scope) } else { PmOp::Release(scope) })
            }
            "txbegin" | "txend" => {
                let [id] = self.operands(i)?;
                // The id goes into the instruction, where no register can.
                let OperandKind::Int(value) = id.kind else {
                    return Err(self.fault(id.at.clone(), "a transaction's id must be a constant"));
                };
                let op = if name == "txbegin" { PmOp::TxBegin } else { PmOp::TxEnd };
                self.emit(Op::Pm(op), Class::Control, &[], &[], value as i32);
                Ok(())
            }
            "st" => match m.one_of(&[("nt", StoreHint::NonTemporal), ("log", StoreHint::Log)]) {
                Some(hint) => self.hinted_store(i, m, hint),
                None => Err(self.fault(i.opcode.at.clone(), "`pm.st` needs `.nt` or `.log`")),
            },
            "ld" if m.take("log") => self.hinted_load(i, m, StoreHint::Log),
            "ld" => Err(self.fault(i.opcode.at.clone(), "`pm.ld` needs `.log`")),
            _ => Err(self.fault(i.opcode.at.clone(), format!("unknown operation `pm.{name}`"))),
        }
    }

    fn without_operands(&mut self, i: &'a Instruction<'a>, op: PmOp) -> Lowered {
        let [] = self.operands(i)?;
        self.emit(Op::Pm(op), Class::Control, &[], &[], 0);
        Ok(())
    }
}
