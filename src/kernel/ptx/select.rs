//! Instruction selection: opcode, modifiers and types become one operation of the IR each.
//!
//! Source: PTX ISA 8.x, section 9.7. Each family of opcodes has a file. A family takes the modifiers it understands from
//! a [`Mods`] list; whatever is left over is reported by name, so an unknown modifier never passes silently.

mod compare;
mod control;
mod convert;
mod float;
mod half;
mod int;
mod lanes;
mod memory;
mod persist;
mod surface;
mod video;

use super::super::alu::{AluOp, Round};
use super::super::ir::{Class, Op};
use super::ast::{Instruction, Operand, PtxWord};
use super::draft::Arg;
use super::lower::{Lower, Lowered};
use super::parser::Reported;
use super::types::Ty;

/// Opcodes that lower to something.
#[rustfmt::skip]
pub(super) const OPCODES: [&str; 114] = [
    "abs", "activemask", "add", "addc", "and", "applypriority", "atom", "bar", "barrier", "bfe", "bfi", "bfind",
    "bmsk", "bra", "brev", "brkpt", "call", "clflushopt", "clwb", "clz", "cnot", "copysign", "cos", "cvt", "cvta",
    "dfence", "discard", "div", "dp2a", "dp4a", "ex2", "exit", "fence", "fma", "fns", "isspacep", "ld", "ldu", "lg2",
    "lop3", "mad", "mad24", "madc", "match", "max", "membar", "min", "mov", "mul", "mul24", "nanosleep", "neg", "not",
    "ofence", "or", "pm", "pmevent", "popc", "prefetch", "prefetchu", "prmt", "rcp", "red", "redux", "rem", "ret",
    "rsqrt", "sad", "selp", "set", "setp", "sfence", "shf", "shfl", "shl", "shr", "sin", "slct", "sqrt", "st", "sub",
    "subc", "suld", "suq", "sust", "tanh", "testp", "tex", "trap", "vabsdiff", "vabsdiff2", "vabsdiff4", "vadd", "vadd2", "vadd4", "vavrg2",
    "vavrg4", "vmad", "vmax", "vmax2", "vmax4", "vmin", "vmin2", "vmin4", "vote", "vset", "vset2", "vset4", "vshl",
    "vshr", "vsub", "vsub2", "vsub4", "xor",
];

/// Modifiers and types worth suggesting.
#[rustfmt::skip]
pub(super) const MODIFIERS: [&str; 76] = [
    "acq_rel", "acquire", "add", "all", "and", "any", "approx", "ballot", "bfly", "cas", "cc", "clamp", "const",
    "cta", "down", "eq", "exch", "ftz", "full", "ge", "global", "gpu", "gt", "hi", "idx", "le", "lo", "local", "lt",
    "ne", "or", "param", "relaxed", "release", "rm", "rmi", "rn", "rni", "rp", "rpi", "rz", "rzi", "sat", "shared",
    "sync", "sys", "uni", "up", "v2", "v4", "volatile", "wide", "wrap", "xor", "pred", "b8", "b16", "b32", "b64",
    "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "noftz",
    "relu", "NaN",
];

/// Opcodes of the ISA that are deliberately not supported, and why.
const UNSUPPORTED: [(&str, &str); 25] = [
    ("mma", "matrix instructions"),
    ("wmma", "matrix instructions"),
    ("wgmma", "matrix instructions"),
    ("ldmatrix", "matrix instructions"),
    ("stmatrix", "matrix instructions"),
    ("movmatrix", "matrix instructions"),
    ("tcgen05", "matrix instructions"),
    ("cp", "asynchronous copies"),
    ("mbarrier", "asynchronous copies"),
    ("multimem", "multicast memory"),
    ("getctarank", "thread block clusters"),
    ("mapa", "thread block clusters"),
    ("sured", "reductions on surfaces"),
    ("txq", "texture queries"),
    ("tld4", "texture gathers"),
    ("istypep", "opaque handles"),
    ("brx", "indirect branches"),
    ("alloca", "stack allocation"),
    ("stacksave", "stack allocation"),
    ("stackrestore", "stack allocation"),
    ("createpolicy", "cache policies"),
    ("szext", "sign and zero extension of bit fields"),
    ("elect", "leader election"),
    ("setmaxnreg", "register reallocation"),
    ("griddepcontrol", "dependent launches"),
];

/// The modifiers of an instruction, each to be taken once.
pub(super) struct Mods<'i, 'a> {
    list: &'i [PtxWord<'a>],
    taken: u64,
}

impl<'i, 'a> Mods<'i, 'a> {
    fn find<T>(&mut self, f: impl Fn(&'a str) -> Option<T>) -> Option<T> {
        for (i, word) in self.list.iter().enumerate().take(64) {
            if self.taken >> i & 1 == 0
                && let Some(found) = f(word.text)
            {
                self.taken |= 1 << i;
                return Some(found);
            }
        }
        None
    }

    /// Takes this modifier, if it is there.
    fn take(&mut self, name: &str) -> bool {
        self.find(|text| (text == name).then_some(())).is_some()
    }

    /// Takes the first of these that is there.
    fn one_of<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        self.find(|text| table.iter().find(|(name, _)| *name == text).map(|(_, value)| *value))
    }

    /// Takes the next type.
    fn ty(&mut self) -> Option<Ty> {
        self.find(Ty::parse)
    }

    /// Takes every modifier that `f` accepts.
    fn skip(&mut self, f: impl Fn(&str) -> bool) {
        while self.find(|text| f(text).then_some(())).is_some() {}
    }

    /// `.rn`, `.rz`, `.rm`, `.rp`
    fn rounding(&mut self) -> Option<Round> {
        self.one_of(&[("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)])
    }

    fn left_over(&self) -> Option<&'i PtxWord<'a>> {
        self.list.iter().enumerate().find(|(i, _)| *i >= 64 || self.taken >> i & 1 == 0).map(|(_, word)| word)
    }
}

impl<'a> Lower<'_, 'a> {
    /// Lowers one instruction.
    pub(super) fn select(&mut self, i: &'a Instruction<'a>) -> Lowered {
        let mut mods = Mods { list: &i.mods, taken: 0 };
        let m = &mut mods;
        match i.opcode.text {
            opcode if half::calculates(opcode) && half::of(i).is_some() => self.half(i, m)?,
            opcode
                if half::refuses(opcode)
                    && let Some(ty) = half::of(i) =>
            {
                return self.bad_type(i, ty);
            }
            "add" | "sub" => self.add(i, m)?,
            "addc" | "subc" => self.add_carry(i, m)?,
            "mul" => self.mul(i, m)?,
            "mad" => self.mad(i, m)?,
            "madc" => self.mad_carry(i, m)?,
            "mul24" | "mad24" => self.mul24(i, m)?,
            "sad" | "div" | "rem" | "min" | "max" | "abs" | "neg" => self.arithmetic(i, m)?,
            "popc" | "clz" | "bfind" | "brev" => self.count(i, m)?,
            "bfe" | "bfi" => self.bit_field(i, m)?,
            "prmt" => self.permute(i, m)?,
            "fns" => self.find_nth_set(i, m)?,
            "bmsk" => self.bit_mask(i, m)?,
            "dp4a" | "dp2a" => self.dot_product(i, m)?,
            "and" | "or" | "xor" | "not" | "cnot" | "shl" | "shr" => self.logic(i, m)?,
            "lop3" => self.lop3(i, m)?,
            "shf" => self.funnel(i, m)?,
            "fma" => self.fma(i, m)?,
            "rcp" | "sqrt" => self.root(i, m)?,
            "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh" => self.approximation(i, m)?,
            "copysign" => self.copysign(i, m)?,
            "testp" => self.testp(i, m)?,
            "setp" => self.setp(i, m)?,
            "set" => self.set(i, m)?,
            "selp" => self.selp(i, m)?,
            "slct" => self.slct(i, m)?,
            "mov" => self.mov(i, m)?,
            "cvt" => self.cvt(i, m)?,
            "cvta" => self.cvta(i, m)?,
            "isspacep" => self.isspacep(i, m)?,
            "ld" | "ldu" => self.load(i, m)?,
            "st" => self.store(i, m)?,
            "atom" | "red" => self.atomic(i, m)?,
            "tex" => self.texture(i, m)?,
            "suld" | "sust" => self.surface(i, m)?,
            "suq" => self.surface_query(i, m)?,
            "prefetch" | "prefetchu" | "discard" | "applypriority" => self.prefetch(m),
            "bra" => self.bra(i, m)?,
            "ret" | "exit" | "trap" | "brkpt" | "nanosleep" | "pmevent" => self.ending(i, m)?,
            "call" => self.call(i, m)?,
            "bar" | "barrier" => self.barrier(i, m)?,
            "membar" | "fence" => self.fence(m)?,
            "shfl" => self.shuffle(i, m)?,
            "vote" => self.vote(i, m)?,
            "vmad" => self.video_mad(i, m)?,
            opcode if let Some((op, simd)) = video::operation(opcode) => match simd {
                None => self.video(i, m, op)?,
                Some(elements) => self.video_simd(i, m, op, elements)?,
            },
            "match" => self.matching(i, m)?,
            "redux" => self.redux(i, m)?,
            "activemask" => self.activemask(i, m)?,
            "pm" | "clwb" | "clflushopt" | "sfence" | "ofence" | "dfence" => self.persist(i, m)?,
            other => return Err(self.unknown(other, i)),
        }
        match mods.left_over() {
            None => Ok(()),
            Some(word) => {
                let message = format!("modifier `.{}` of `{}` is not supported", word.text, i.opcode.text);
                Err(self.fault_near(word.at.clone(), message, word.text, &MODIFIERS))
            }
        }
    }

    fn unknown(&mut self, opcode: &str, i: &Instruction<'a>) -> Reported {
        if let Some((_, what)) = UNSUPPORTED.iter().find(|(name, _)| *name == opcode) {
            return self.fault(i.opcode.at.clone(), format!("`{opcode}` is not supported ({what})"));
        }
        self.fault_near(i.opcode.at.clone(), format!("unknown instruction `{opcode}`"), opcode, &OPCODES)
    }

    /// Exactly `N` operands.
    fn operands<const N: usize>(&mut self, i: &'a Instruction<'a>) -> Lowered<&'a [Operand<'a>; N]> {
        match i.operands.as_slice().try_into() {
            Ok(operands) => Ok(operands),
            Err(_) => {
                let found = i.operands.len();
                let message = format!("`{}` takes {N} operands here, found {found}", i.opcode.text);
                Err(self.fault(i.opcode.at.clone(), message))
            }
        }
    }

    /// The next type, which must be there.
    fn ty(&mut self, i: &Instruction<'a>, m: &mut Mods<'_, 'a>) -> Lowered<Ty> {
        match m.ty() {
            Some(ty) => Ok(ty),
            None => {
                let Some(word) = m.left_over() else {
                    return Err(self.fault(i.opcode.at.clone(), format!("`{}` needs a type", i.opcode.text)));
                };
                let message = format!("type or modifier `.{}` of `{}` is not supported", word.text, i.opcode.text);
                Err(self.fault_near(word.at.clone(), message, word.text, &MODIFIERS))
            }
        }
    }

    fn bad_type<T>(&mut self, i: &Instruction<'a>, ty: Ty) -> Lowered<T> {
        Err(self.fault(i.opcode.at.clone(), format!("`{}` on type {ty} is not supported", i.opcode.text)))
    }

    /// d = op(a, ...), every operand of type `ty`.
    fn uniform(&mut self, i: &'a Instruction<'a>, op: AluOp, class: Class, ty: Ty, sources: usize) -> Lowered {
        if i.operands.len() != sources + 1 {
            let message = format!("`{}` takes {} operands, found {}", i.opcode.text, sources + 1, i.operands.len());
            return Err(self.fault(i.opcode.at.clone(), message));
        }
        let mut src = [Arg::None; 4];
        for (src, operand) in src.iter_mut().zip(&i.operands[1..]) {
            *src = self.src(operand, ty)?;
        }
        let d = self.dst(&i.operands[0], ty.bank())?;
        self.emit(Op::Alu(op), class, &[d], &src, 0);
        Ok(())
    }
}
