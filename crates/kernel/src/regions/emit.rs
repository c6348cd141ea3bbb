//! Boundaries and checkpoint stores as instructions: a [`Kernel`] that any driver of this crate executes.
//!
//! ```text
//! prologue     mad.wide.u32 %a, %group, GROUP_BYTES, [checkpoint_area];  mad.wide.u32 %a, %lane_of_group, 8, %a
//!   barriers   mov.u64 %b, TAG
//!   shadows    mad.wide.u32 %h, %cta, SHARED_BYTES, SHADOWS      local memory:  of %group and %lane_of_group, as %a
//! checkpoint   st.global.u32|u64 [%a + 256 * slot], %r       a predicate:  selp.u32 %s, 1, 0, %p  and its store
//!   one word   st.global.u32|u64 [%w + offset], %r           all active lanes to one address: one access of 8 bytes
//! boundary     checkpoints of this place;  st.global.u64 [%a], TAG | PC_AFTER;  pm.region
//! bar.sync     bar.sync;  add.u64 %b, %b, 1;  st.global.u64 [%a + 256 * row], %b
//! st.shared    add.u64 %x, %h, address;  st.global [%x + offset], data;  st.shared ...
//! red.shared   add.u64 %x, %h, address;  red.global [%x + offset], data;  red.shared ...
//! atom.shared  add.u64 %x, %h, address;  red.shared ...;  atom.global %r, [%x + offset], data
//! ```
//! `%w` is what `%a` is before the lane is added. Registers of the kernel keep their slots; `%group`,
//! `%lane_of_group` (later `%s`), `%cta`, `%a`, `%w`, `%b`, `%h` and `%x` get new ones, as far as they are
//! needed. [`Formed::bind`](super::Formed::bind) fills in the constants in capitals for a launch.
//!
//! An atomic on shared memory whose result is used happens at the shadow, and a reduction brings shared
//! memory to the same: both see the same operations, which commute, and results are in the order of the
//! shadow's atomics, which is the order in which regions persist. Atomics that do not commute have no shadow
//! ([`Shadow`]).

use super::super::alu::{AluOp, IntOp};
use super::super::ir::{
    AddressIn, AtomOp, CONST, CacheOp, Class, ConstSource, Elem, Gathering, Guard, Hazards, Inst, Kernel, LANES, Mem,
    MemKind, NEVER, NONE, Op, Param, PmOp, Slot, SourcePos, Space, Special, StoreHint,
};
use super::code::{Code, Shadow, gathering};
use super::homes::Homes;
use super::layout::Layout;
use super::plan::CheckpointPlan;
use super::terms::{RegionError, Role};

/// Name of the parameter that takes the address of the checkpoint area.
const AREA: &str = "durawarp_checkpoint_area";

/// The first constants that are added: what [`Formed::bind`](super::Formed::bind) writes there for a launch.
pub(super) const CONSTS32: [&str; 2] = ["group bytes", "shared bytes"];
/// The same of 64 bits; program counters follow.
pub(super) const CONSTS64: [&str; 4] = ["area", "tag", "shared shadows", "local shadows"];

/// Registers that are added to a kernel's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Added {
    /// 32-bit slots: group, lane of the group and, for shadows of shared memory, CTA.
    slots32: u16,
    /// 64-bit slots: the checkpoint's addresses, counts, the shadows' addresses, that of a store.
    slots64: u16,
}

impl Added {
    pub(super) fn new(layout: &Layout) -> Added {
        let (shared, local) = (u16::from(layout.shared), u16::from(layout.local_bytes > 0));
        let counts: u16 = layout.counts.iter().map(|&counts| u16::from(counts)).sum();
        let words = u16::from(!layout.once.is_empty());
        Added { slots32: 2 + shared, slots64: 1 + words + counts + shared + local + (shared | local) }
    }

    /// Hardware registers that they take, but those that live in the prologue only.
    pub(super) fn hardware(self) -> u32 {
        1 + 2 * u32::from(self.slots64)
    }

    /// The scoreboard index in the formed kernel of one in the kernel that it was formed from.
    pub(super) fn renumbered(self, kernel: &Kernel, register: u16) -> u16 {
        let (n32, n64) = (kernel.slots32, kernel.slots64);
        match register {
            r if r < n32 => r,
            r if r < n32 + n64 => r + self.slots32,
            r => r + self.slots32 + self.slots64,
        }
    }
}

/// What was emitted.
#[derive(Debug)]
pub(super) struct Emitted {
    pub(super) kernel: Kernel,
    pub(super) roles: Vec<Role>,
    /// The first instruction of each region, and the place in the [`Code`] that it comes from.
    pub(super) entries: Vec<(u32, u32)>,
    /// Where the paths from each instruction meet again.
    pub(super) meets: Vec<u32>,
    /// The 64-bit slots of counts of barriers, of the CTA and of the grid.
    pub(super) counts: [Option<Slot>; 2],
    /// The 64-bit slot with the address of a group, if some registers have one word.
    pub(super) words: Option<Slot>,
}

struct Emitter<'a> {
    code: &'a Code,
    plan: &'a CheckpointPlan,
    homes: &'a Homes,
    layout: &'a Layout,
    shadows: &'a [Option<Shadow>],
    kernel: Kernel,
    roles: Vec<Role>,
    old: &'a Kernel,
    added: Added,
    address: Slot,
    /// The address of a group's first lane, if some registers have one word.
    words: Option<Slot>,
    scratch: Slot,
    counts: [Option<Slot>; 2],
    /// Shadows of shared and of local memory, and the place of a store in one of them.
    bases: [Slot; 2],
    place: Slot,
    one: Slot,
    zero: Slot,
    one64: Slot,
}

/// Emits a code with a plan of boundaries.
pub(super) fn emit(
    code: &Code,
    (plan, homes): (&CheckpointPlan, &Homes),
    layout: &Layout,
    shadows: &[Option<Shadow>],
    kernel: &Kernel,
) -> Result<Emitted, RegionError> {
    let n = code.len();
    let boundaries = plan.boundary.iter().filter(|&&b| b).count();
    let limit = usize::from(NONE) - 1;
    let added = Added::new(layout);
    let slots = usize::from(kernel.no_register()) + usize::from(added.slots32 + added.slots64);
    let consts64 = kernel.consts64.len() + CONSTS64.len() + boundaries + 1;
    // Indices of slots and constants are narrow, and `NONE` is one of their values. Tested here, so that no
    // cast below can go wrong.
    if kernel.consts32.len() + 8 > limit || consts64 > limit || slots >= 0xffff {
        return Err(RegionError::TooLarge);
    }
    let [group, lane, cta] = [0, 1, 2].map(|i| kernel.slots32 + i);
    let mut next64 = kernel.slots64;
    let mut slot64 = |wanted: bool| {
        next64 += u16::from(wanted);
        wanted.then(|| next64 - 1)
    };
    // What is not wanted takes no slot. The number taken here is the one that `Added` counted, on which the
    // new numbers of predicates depend.
    let (shared, local) = (layout.shared, layout.local_bytes > 0);
    let address = slot64(true).unwrap_or_default();
    let words = slot64(!layout.once.is_empty());
    let counts = layout.counts.map(&mut slot64);
    let bases = [shared, local].map(|wanted| slot64(wanted).unwrap_or(NONE));
    let place = slot64(shared || local).unwrap_or(NONE);
    let mut new = kernel.clone();
    new.slots32 += added.slots32;
    new.slots64 += added.slots64;
    new.specials.extend([(Special::Group, group), (Special::LaneOfGroup, lane)]);
    new.specials.extend(shared.then_some((Special::Cta, cta)));
    // Only the code starts anew. Slots and constants of the kernel keep their indices, as all new ones come
    // after them; so does the area's address after the other parameters.
    (new.code, new.class, new.hazards, new.pos) = Default::default();
    new.registers_per_thread = (kernel.registers_per_thread + added.hardware()).min(255);
    let offset = kernel.param_bytes.next_multiple_of(8);
    new.params.push(Param { name: AREA.to_owned(), offset, bytes: 8, align: 8, ptx_type: ".u64".to_owned() });
    new.param_bytes = offset + 8;
    let first64 = new.consts64.len() as u16;
    new.consts64.push(ConstSource::Param { offset, elem: Elem::U64 });
    new.consts64.resize(new.consts64.len() + CONSTS64.len() - 1, ConstSource::Literal(0));
    let first32 = new.consts32.len() as u16;
    new.consts32.resize(new.consts32.len() + CONSTS32.len(), ConstSource::Literal(0));
    let mut emitter = Emitter {
        code,
        plan,
        homes,
        layout,
        shadows,
        kernel: new,
        roles: Vec::new(),
        old: kernel,
        added,
        address,
        words,
        scratch: lane,
        counts,
        bases,
        place,
        one: 0,
        zero: 0,
        one64: 0,
    };
    emitter.one = emitter.literal(1);
    emitter.zero = emitter.literal(0);
    // Program counters come right after what bind fills in.
    let counters = first64 + CONSTS64.len() as u16;
    emitter.kernel.consts64.resize(usize::from(counters) + boundaries, ConstSource::Literal(0));
    emitter.kernel.consts64.push(ConstSource::Literal(1));
    emitter.one64 = CONST | (emitter.kernel.consts64.len() - 1) as u16;
    let constant = |number: u16| CONST | (first64 + number);
    let word = emitter.literal(8);
    emitter.along_lanes([words.unwrap_or(address), address], [group, lane], [CONST | first32, word], constant(0));
    for slot in counts.into_iter().flatten() {
        let inst = alu(AluOp::Mov64, Guard::ALWAYS, slot, [constant(1), NONE, NONE]);
        emitter.prologue(inst, Class::Logic, &[], slot);
    }
    if shared {
        let inst = alu(AluOp::MadWide32(false), Guard::ALWAYS, bases[0], [cta, CONST | (first32 + 1), constant(2)]);
        emitter.prologue(inst, Class::IntMul, &[cta], bases[0]);
    }
    if local {
        let bytes = [LANES as u32, 1].map(|lanes| emitter.literal(lanes * layout.local_stride()));
        emitter.along_lanes([bases[1]; 2], [group, lane], bytes, constant(3));
    }
    // Where each place starts: at its boundary, if it has one.
    let mut starts = Vec::with_capacity(n + 1);
    let mut firsts = Vec::with_capacity(n);
    let mut entries = Vec::new();
    for pc in 0..n {
        starts.push(emitter.kernel.code.len() as u32);
        if plan.boundary[pc] {
            let number = entries.len() as u16;
            let entry = emitter.boundary(pc, number, CONST | (counters + number));
            emitter.kernel.consts64[usize::from(counters + number)] = ConstSource::Literal(u64::from(entry));
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
    Ok(Emitted { kernel, roles, entries, meets, counts, words })
}

fn alu(op: AluOp, guard: Guard, dst: Slot, src: [Slot; 3]) -> Inst {
    Inst { op: Op::Alu(op), guard, dst: [dst, NONE, NONE, NONE], src: [src[0], src[1], src[2], NONE], imm: 0 }
}

impl Emitter<'_> {
    fn literal(&mut self, value: u32) -> Slot {
        self.kernel.consts32.push(ConstSource::Literal(u64::from(value)));
        CONST | (self.kernel.consts32.len() - 1) as u16
    }

    /// The new scoreboard index of an old one.
    fn board(&self, old: u16) -> u16 {
        self.added.renumbered(self.old, old)
    }

    /// The new scoreboard index of a 64-bit slot; none of a constant.
    fn board64(&self, slot: Slot) -> Option<u16> {
        (slot & CONST == 0).then(|| self.kernel.slots32 + slot)
    }

    fn prologue(&mut self, inst: Inst, class: Class, reads: &[u16], writes: Slot) {
        let (pos, board) = (self.code.items[0].pos, self.kernel.slots32 + writes);
        self.push(inst, class, reads, &[board], pos, Role::Address);
    }

    /// `first = base + group * bytes of a group`, `to = first + lane * bytes of a lane`.
    fn along_lanes(&mut self, [first, to]: [Slot; 2], [group, lane]: [Slot; 2], bytes: [Slot; 2], base: Slot) {
        let mad = |to, src| alu(AluOp::MadWide32(false), Guard::ALWAYS, to, src);
        self.prologue(mad(first, [group, bytes[0], base]), Class::IntMul, &[group], first);
        let board = self.kernel.slots32 + first;
        self.prologue(mad(to, [lane, bytes[1], first]), Class::IntMul, &[lane, board], to);
    }

    fn push(&mut self, inst: Inst, class: Class, reads: &[u16], writes: &[u16], pos: SourcePos, role: Role) {
        let hazards = Hazards::of(self.kernel.no_register(), reads, writes);
        self.kernel.code.push(inst);
        self.kernel.class.push(class);
        self.kernel.hazards.push(hazards);
        self.kernel.pos.push(pos);
        self.roles.push(role);
    }

    /// Emits an item and what saves it, and the checkpoint stores after it.
    fn item(&mut self, pc: usize) {
        let item = &self.code.items[pc];
        if item.gap {
            return;
        }
        let reads: Vec<u16> = item.hazards.read().iter().map(|&r| self.board(r)).collect();
        let writes: Vec<u16> = item.hazards.written().iter().map(|&r| self.board(r)).collect();
        match self.shadows[pc] {
            Some(shadow) => self.shadowed(pc, shadow, &reads, &writes),
            None => self.push(item.inst, item.class, &reads, &writes, item.pos, Role::Program),
        }
        if let Some(kind) = gathering(&item.inst) {
            self.count(kind, item.inst.guard, item.pos);
        }
        // A guard that the instruction itself has changed tells nothing any more.
        let changes = |slot: u16| item.hazards.written().contains(&self.old.predicate_register(slot));
        let kept = item.inst.guard.parts().is_none_or(|(slot, _)| !changes(slot));
        let guard = if kept { item.inst.guard } else { Guard::ALWAYS };
        for &r in &self.plan.behind[pc] {
            self.save(r, self.homes.behind[pc].contains(u32::from(r)), guard, item.pos);
        }
    }

    /// Emits a write to shared or local memory, and the same to its shadow.
    fn shadowed(&mut self, pc: usize, shadow: Shadow, reads: &[u16], writes: &[u16]) {
        let item = &self.code.items[pc];
        let (inst, class, pos) = (item.inst, item.class, item.pos);
        let Op::Mem(mem) = inst.op else { unreachable!("what has a shadow writes memory") };
        let base = self.bases[usize::from(mem.space == Space::Local)];
        let from = inst.src[0];
        // The place in the shadow is worked out before either write: the instruction may overwrite the
        // register that holds its address.
        let (sum, from_board) = if mem.address == AddressIn::Wide {
            (alu(AluOp::Int64(IntOp::Add), Guard::ALWAYS, self.place, [from, base, NONE]), self.board64(from))
        } else {
            let src = [from, self.one, base];
            (alu(AluOp::MadWide32(false), Guard::ALWAYS, self.place, src), (from & CONST == 0).then_some(from))
        };
        let of_sum: Vec<u16> = from_board.into_iter().chain(self.board64(base)).collect();
        let place = self.kernel.slots32 + self.place;
        self.push(
            sum,
            if mem.address == AddressIn::Wide { Class::Int } else { Class::IntMul },
            &of_sum,
            &[place],
            pos,
            Role::Shadow,
        );
        let there = |kind| {
            let mem =
                Mem { kind, space: Space::Global, address: AddressIn::Wide, cache: CacheOp::All, whole: 0, ..mem };
            let src = [self.place, inst.src[1], inst.src[2], inst.src[3]];
            Inst { op: Op::Mem(mem), src, ..inst }
        };
        let mut place_read = reads.to_vec();
        place_read.push(place);
        match shadow {
            Shadow::Store => {
                self.push(there(MemKind::Store), class, &place_read, &[], pos, Role::Shadow);
                self.push(inst, class, reads, writes, pos, Role::Program);
            }
            Shadow::Reduction | Shadow::Result => {
                let nothing = [NONE; 4];
                let here = Op::Mem(Mem { kind: MemKind::Reduction, ..mem });
                let here = Inst { op: here, dst: nothing, ..inst };
                let (atomic, written) = match shadow {
                    Shadow::Result => (there(MemKind::Atomic), writes),
                    _ => (Inst { dst: nothing, ..there(MemKind::Reduction) }, &[][..]),
                };
                // The reduction first: the atomic may overwrite operands of both with its result.
                self.push(here, class, reads, &[], pos, Role::Shadow);
                self.push(atomic, class, &place_read, written, pos, Role::Program);
            }
        }
    }

    /// Counts a barrier that the warp has passed.
    fn count(&mut self, kind: Gathering, guard: Guard, pos: SourcePos) {
        let Some(slot) = self.counts[usize::from(kind == Gathering::Grid)] else { return };
        let board = self.kernel.slots32 + slot;
        let mut reads = vec![board];
        self.guarded(guard, &mut reads);
        let add = alu(AluOp::Int64(IntOp::Add), guard, slot, [slot, self.one64, NONE]);
        self.push(add, Class::Int, &reads, &[board], pos, Role::Count);
        let imm = self.layout.count_of(kind).expect("what is counted has a row") as i32;
        self.store([slot, self.address], true, Some(board), imm, guard, pos, Role::Count);
    }

    /// Stores a register (old scoreboard index) to its place in the checkpoint: that of each lane, or the
    /// `one` of all.
    fn save(&mut self, register: u16, one: bool, guard: Guard, pos: SourcePos) {
        let (n32, n64) = (self.old.slots32, self.old.slots64);
        let board = self.board(register);
        let (place, base) = match self.words.filter(|_| one) {
            Some(words) => (self.layout.word_of(board), words),
            None => (self.layout.offset_of(board), self.address),
        };
        let imm = place.expect("a register that is stored has a place") as i32;
        let (data, wide, board) = if register < n32 {
            (register, false, register)
        } else if register < n32 + n64 {
            (register - n32, true, self.board(register))
        } else {
            let src = [self.one, self.zero, register - n32 - n64, NONE];
            let inst = Inst { op: Op::Alu(AluOp::Selp32), guard, dst: [self.scratch, NONE, NONE, NONE], src, imm: 0 };
            let mut reads = vec![self.board(register)];
            self.guarded(guard, &mut reads);
            self.push(inst, Class::Logic, &reads, &[self.scratch], pos, Role::Select);
            (self.scratch, false, self.scratch)
        };
        self.store([data, base], wide, Some(board), imm, guard, pos, Role::Checkpoint);
    }

    fn guarded(&self, guard: Guard, reads: &mut Vec<u16>) {
        if let Some((slot, _)) = guard.parts() {
            let board = self.kernel.predicate_register(slot);
            if !reads.contains(&board) {
                reads.push(board);
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn store(
        &mut self,
        [data, base]: [Slot; 2],
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
            address: AddressIn::Wide,
            whole: 0,
        };
        // Each register has a place of its own, so that one element is stored.
        let dst = [data, NONE, NONE, NONE];
        let inst = Inst { op: Op::Mem(mem), guard, dst, src: [base, NONE, NONE, NONE], imm };
        let mut reads: Vec<u16> = std::iter::once(self.kernel.slots32 + base).chain(board).collect();
        self.guarded(guard, &mut reads);
        self.push(inst, Class::Mem, &reads, &[], pos, role);
    }

    /// Emits the boundary before a place and says where its region starts.
    fn boundary(&mut self, pc: usize, number: u16, counter: Slot) -> u32 {
        let pos = self.code.items[pc].pos;
        for &r in &self.plan.at[pc] {
            self.save(r, self.homes.at[pc].contains(u32::from(r)), Guard::ALWAYS, pos);
        }
        let entry = self.kernel.code.len() as u32 + 2;
        self.store([counter, self.address], true, None, 0, Guard::ALWAYS, pos, Role::Counter);
        let imm = i32::from(number);
        let marker = Inst { op: Op::Pm(PmOp::Region), guard: Guard::ALWAYS, dst: [NONE; 4], src: [NONE; 4], imm };
        self.push(marker, Class::Control, &[], &[], pos, Role::Marker);
        entry
    }
}
