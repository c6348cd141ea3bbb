//! Boundaries and checkpoint stores as instructions: a [`Kernel`] that any driver of this crate executes.
//!
//! ```text
//! prologue     mad.wide.u32 %a, %group, GROUP_BYTES, [checkpoint_area];  mad.wide.u32 %a, %lane_of_group, 8, %a
//! checkpoint   st.global.u32|u64 [%a + 256 * slot], %r       a predicate:  selp.u32 %s, 1, 0, %p  and its store
//! boundary     checkpoints of this place;  st.global.u32 [%a], PC_BEHIND;  pm.region
//! ```
//! Registers of the kernel keep their slots; `%group`, `%lane_of_group` (later `%s`) and `%a` get new ones.

use super::super::alu::AluOp;
use super::super::ir::{
    AtomOp, CONST, CacheOp, Class, ConstSource, Elem, Guard, Hazards, Inst, Kernel, Mem, MemKind, NEVER, NONE, Op,
    Param, PmOp, Slot, SourcePos, Space, Special, StoreHint,
};
use super::code::Code;
use super::plan::Plan;
use super::{Layout, RegionError, Role};

/// Name of the parameter that takes the address of the checkpoint area.
const AREA: &str = "durawarp_checkpoint_area";

/// Hardware registers that the address and the scratch register take.
pub(super) const MORE_REGISTERS: u32 = 3;

/// What was emitted.
#[derive(Debug)]
pub(super) struct Emitted {
    pub(super) kernel: Kernel,
    pub(super) roles: Vec<Role>,
    /// The first instruction of each region, and the place in the [`Code`] that it comes from.
    pub(super) entries: Vec<(u32, u32)>,
    /// Where the paths from each instruction meet again.
    pub(super) meets: Vec<u32>,
    /// Index in the 64-bit constant pool of the area's address.
    pub(super) area: usize,
}

struct Emitter<'a> {
    code: &'a Code,
    plan: &'a Plan,
    layout: &'a Layout,
    kernel: Kernel,
    roles: Vec<Role>,
    old: &'a Kernel,
    address: Slot,
    scratch: Slot,
    one: Slot,
    zero: Slot,
}

/// Emits a code with a plan of boundaries.
pub(super) fn emit(code: &Code, plan: &Plan, layout: &Layout, kernel: &Kernel) -> Result<Emitted, RegionError> {
    let n = code.len();
    let boundaries = plan.boundary.iter().filter(|&&b| b).count();
    let limit = usize::from(NONE) - 1;
    let slots = usize::from(kernel.no_register()) + 3;
    if kernel.consts32.len() + boundaries + 4 > limit || kernel.consts64.len() + 1 > limit || slots >= 0xffff {
        return Err(RegionError::TooLarge);
    }
    let [group, lane, address] = [kernel.slots32, kernel.slots32 + 1, kernel.slots64];
    let mut new = kernel.clone();
    new.slots32 += 2;
    new.slots64 += 1;
    new.specials.extend([(Special::Group, group), (Special::LaneOfGroup, lane)]);
    (new.code, new.class, new.hazards, new.pos) = Default::default();
    new.registers_per_thread = (kernel.registers_per_thread + MORE_REGISTERS).min(255);
    let offset = kernel.param_bytes.next_multiple_of(8);
    new.params.push(Param { name: AREA.to_owned(), offset, bytes: 8, align: 8, ptx_type: ".u64".to_owned() });
    new.param_bytes = offset + 8;
    let area = new.consts64.len();
    new.consts64.push(ConstSource::Param { offset, elem: Elem::U64 });
    let mut emitter = Emitter {
        code,
        plan,
        layout,
        kernel: new,
        roles: Vec::new(),
        old: kernel,
        address,
        scratch: lane,
        one: 0,
        zero: 0,
    };
    emitter.one = emitter.literal(1);
    emitter.zero = emitter.literal(0);
    let group_bytes = emitter.literal(layout.group_bytes());
    let word = emitter.literal(8);
    let pos = code.items[0].pos;
    let wide = |src: [Slot; 3]| {
        let src = [src[0], src[1], src[2], NONE];
        let op = Op::Alu(AluOp::MadWide32(false));
        Inst { op, guard: Guard::ALWAYS, dst: [address, NONE, NONE, NONE], src, imm: 0 }
    };
    let board = emitter.board_address();
    let reads = [vec![group], vec![lane, board]];
    let steps = [wide([group, group_bytes, CONST | area as u16]), wide([lane, word, address])];
    for (inst, reads) in steps.into_iter().zip(reads) {
        emitter.push(inst, Class::IntMul, &reads, &[board], pos, Role::Address);
    }
    // Where each place starts: at its boundary, if it has one.
    let mut starts = Vec::with_capacity(n + 1);
    let mut firsts = Vec::with_capacity(n);
    let mut entries = Vec::new();
    for pc in 0..n {
        starts.push(emitter.kernel.code.len() as u32);
        if plan.boundary[pc] {
            let entry = emitter.boundary(pc, entries.len() as i32);
            entries.push((entry, pc as u32));
        }
        firsts.push(emitter.kernel.code.len() as u32);
        emitter.item(pc);
    }
    starts.push(emitter.kernel.code.len() as u32);
    let at = |pc: u32| if pc == NEVER { NEVER } else { starts[pc as usize] };
    for inst in &mut emitter.kernel.code {
        if let Op::Branch { target, reconverge } = &mut inst.op {
            (*target, *reconverge) = (at(*target), at(*reconverge));
        }
    }
    let mut meets: Vec<u32> = (1..=emitter.kernel.code.len() as u32).collect();
    for pc in 0..n {
        // The last instruction of a place goes where the place goes; a place without any is passed through.
        if let Some(last) = starts[pc + 1].checked_sub(1).filter(|&last| last >= firsts[pc]) {
            meets[last as usize] = at(code.post_dominator(pc as u32));
        }
    }
    let Emitter { kernel, roles, .. } = emitter;
    Ok(Emitted { kernel, roles, entries, meets, area })
}

impl Emitter<'_> {
    fn literal(&mut self, value: u32) -> Slot {
        self.kernel.consts32.push(ConstSource::Literal(u64::from(value)));
        CONST | (self.kernel.consts32.len() - 1) as u16
    }

    /// The new scoreboard index of an old one.
    fn board(&self, old: u16) -> u16 {
        renumbered(self.old, old)
    }

    fn board_address(&self) -> u16 {
        self.kernel.slots32 + self.address
    }

    fn push(&mut self, inst: Inst, class: Class, reads: &[u16], writes: &[u16], pos: SourcePos, role: Role) {
        let none = self.kernel.no_register();
        let mut hazards =
            Hazards { check: [none; 9], reads: reads.len() as u8, set: [none; 4], sets: writes.len() as u8 };
        hazards.check[..reads.len()].copy_from_slice(reads);
        let only = writes.iter().filter(|w| !reads.contains(w));
        for (check, &write) in hazards.check[reads.len()..].iter_mut().zip(only) {
            *check = write;
        }
        hazards.set[..writes.len()].copy_from_slice(writes);
        self.kernel.code.push(inst);
        self.kernel.class.push(class);
        self.kernel.hazards.push(hazards);
        self.kernel.pos.push(pos);
        self.roles.push(role);
    }

    /// Emits an item as it is, and the checkpoint stores behind it.
    fn item(&mut self, pc: usize) {
        let item = &self.code.items[pc];
        if item.gap {
            return;
        }
        let reads: Vec<u16> = item.hazards.read().iter().map(|&r| self.board(r)).collect();
        let writes: Vec<u16> = item.hazards.written().iter().map(|&r| self.board(r)).collect();
        self.push(item.inst, item.class, &reads, &writes, item.pos, Role::Program);
        // A guard that the instruction itself has changed tells nothing any more.
        let n = self.old.slots32 + self.old.slots64;
        let kept = item.inst.guard.parts().is_none_or(|(slot, _)| !item.hazards.written().contains(&(n + slot)));
        let guard = if kept { item.inst.guard } else { Guard::ALWAYS };
        for &r in &self.plan.behind[pc] {
            self.save(r, guard, item.pos);
        }
    }

    /// Stores a register (old scoreboard index) to its place in the checkpoint.
    fn save(&mut self, register: u16, guard: Guard, pos: SourcePos) {
        let (n32, n64) = (self.old.slots32, self.old.slots64);
        let imm = self.layout.offset_of(self.board(register)).expect("a register that is stored has a slot") as i32;
        let (data, wide, board) = if register < n32 {
            (register, false, register)
        } else if register < n32 + n64 {
            (register - n32, true, self.board(register))
        } else {
            let src = [self.one, self.zero, register - n32 - n64, NONE];
            let inst = Inst { op: Op::Alu(AluOp::Selp32), guard, dst: [self.scratch, NONE, NONE, NONE], src, imm: 0 };
            let mut reads = vec![self.board(register)];
            self.guarded(guard, &mut reads);
            self.push(inst, Class::Int, &reads, &[self.scratch], pos, Role::Select);
            (self.scratch, false, self.scratch)
        };
        self.store(data, wide, Some(board), imm, guard, pos, Role::Checkpoint);
    }

    fn guarded(&self, guard: Guard, reads: &mut Vec<u16>) {
        if let Some((slot, _)) = guard.parts() {
            let board = self.kernel.slots32 + self.kernel.slots64 + slot;
            if !reads.contains(&board) {
                reads.push(board);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn store(
        &mut self,
        data: Slot,
        wide: bool,
        board: Option<u16>,
        imm: i32,
        guard: Guard,
        pos: SourcePos,
        role: Role,
    ) {
        let mem = Mem {
            kind: MemKind::Store,
            space: Space::Global,
            elem: if wide { Elem::U64 } else { Elem::U32 },
            vec: 1,
            cache: CacheOp::All,
            hint: StoreHint::Plain,
            atom: AtomOp::None,
            wide,
            address64: true,
        };
        let dst = [data, NONE, NONE, NONE];
        let inst = Inst { op: Op::Mem(mem), guard, dst, src: [self.address, NONE, NONE, NONE], imm };
        let mut reads: Vec<u16> = std::iter::once(self.board_address()).chain(board).collect();
        self.guarded(guard, &mut reads);
        self.push(inst, Class::Mem, &reads, &[], pos, role);
    }

    /// Emits the boundary before a place and says where its region starts.
    fn boundary(&mut self, pc: usize, number: i32) -> u32 {
        let pos = self.code.items[pc].pos;
        for &r in &self.plan.at[pc] {
            self.save(r, Guard::ALWAYS, pos);
        }
        let entry = self.kernel.code.len() as u32 + 2;
        let value = self.literal(entry);
        self.store(value, false, None, 0, Guard::ALWAYS, pos, Role::Counter);
        let marker =
            Inst { op: Op::Pm(PmOp::Region), guard: Guard::ALWAYS, dst: [NONE; 4], src: [NONE; 4], imm: number };
        self.push(marker, Class::Control, &[], &[], pos, Role::Marker);
        entry
    }
}

/// The scoreboard index in the formed kernel of one in the kernel that it was formed from.
pub(super) fn renumbered(kernel: &Kernel, register: u16) -> u16 {
    let (n32, n64) = (kernel.slots32, kernel.slots64);
    match register {
        r if r < n32 => r,
        r if r < n32 + n64 => r + 2,
        r => r + 3,
    }
}
