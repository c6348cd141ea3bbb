//! The memory operands of a warp: addresses out, loaded bytes in, stored bytes out.
//!
//! The caller (functional driver or machine) moves the bytes; this file knows only how registers become
//! addresses and bytes. Fast paths: 4-byte scalars, and whole groups whose bytes lie side by side.

use super::super::cluster::owner_of;
use super::super::ir::{AddressIn, Elem, Inst, LANES, Mem, MemKind, NONE, Op, Slot, TexDims, element};
use super::super::launch::{Launch, Texture};
use super::super::semantics::atomic::{PhaseMisuse, swap_pair, try_atomic};
use super::super::semantics::get;
use super::{Warp, lanes_of};
use durawarp_checkpoint::value;

/// Where the bytes of each lane of an asynchronous copy go in shared memory, and how many of them are read;
/// the others are zeros.
#[derive(Debug, Clone)]
pub struct CopyTargets {
    /// Addresses in shared memory.
    pub to: [u64; 64],
    /// Bytes read.
    pub bytes: [u8; 64],
}

value!(record CopyTargets { to, bytes });

impl CopyTargets {
    /// The address of bytes that go nowhere: a trace names no place in shared memory.
    pub const NOWHERE: u64 = u64::MAX;

    /// The addresses of lanes whose bytes go anywhere.
    pub fn places(&self, lanes: u64) -> impl Iterator<Item = (usize, u64)> {
        lanes_of(lanes).map(|lane| (lane, self.to[lane])).filter(|&(_, to)| to != Self::NOWHERE)
    }

    /// The lanes that read anything.
    #[inline]
    pub fn reading(&self, lanes: u64) -> u64 {
        lanes_of(lanes).filter(|&lane| self.bytes[lane] > 0).fold(0, |reading, lane| reading | 1 << lane)
    }
}

impl Warp {
    /// The byte address that each of `lanes` accesses: as written for the instruction's space (texture:
    /// global addresses of the texels). Other entries of `out` are left alone.
    pub fn addresses(&self, inst: &Inst, launch: &Launch, lanes: u64, out: &mut [u64; 64]) {
        let address = match inst.op {
            Op::Mem(Mem { kind: MemKind::Texture(dims), .. }) => return self.texels(inst, launch, dims, lanes, out),
            Op::Mem(mem) => mem.address,
            _ if inst.src[0] == NONE => AddressIn::Trace,
            _ => AddressIn::Wide,
        };
        let offset = inst.imm;
        for (i, group) in self.groups.iter().enumerate() {
            let mask = (lanes >> (i * LANES)) as u32;
            if mask == 0 {
                continue;
            }
            match address {
                AddressIn::Wide => {
                    let a = get(&group.r64, &launch.consts64, inst.src[0]);
                    select(of_group(out, i), mask, |lane| a[lane].wrapping_add_signed(i64::from(offset)));
                }
                AddressIn::Narrow => {
                    let a = get(&group.r32, &launch.consts32, inst.src[0]);
                    select(of_group(out, i), mask, |lane| u64::from(a[lane].wrapping_add_signed(offset)));
                }
                AddressIn::Trace => return self.traced_addresses(lanes, out),
                AddressIn::TraceWithBarrier => return self.traced_data(lanes, out),
            }
        }
    }

    /// Where the bytes of a step go whose barrier its trace names, too.
    #[cold]
    fn traced_data(&self, lanes: u64, out: &mut [u64; 64]) {
        self.traced_addresses(lanes, out);
        lanes_of(lanes).for_each(|lane| out[lane] &= u64::from(u32::MAX));
    }

    fn texels(&self, inst: &Inst, launch: &Launch, dims: TexDims, lanes: u64, out: &mut [u64; 64]) {
        let texture = &launch.textures[inst.imm as usize];
        for lane in lanes_of(lanes) {
            let group = &self.groups[lane / LANES];
            let coordinate = |i: usize, float: bool, size: u32| {
                let bits = get(&group.r32, &launch.consts32, inst.src[i])[lane % LANES];
                let at = if float { f32::from_bits(bits).floor() as i64 } else { i64::from(bits as i32) };
                at.clamp(0, i64::from(size.max(1)) - 1) as u64
            };
            let (axes, float, layered) = (dims.axes(), dims.is_float(), dims.is_layered());
            let x = coordinate(0, float, texture.width);
            let y = if axes > 1 { coordinate(1, float, texture.height) } else { 0 };
            let z = if axes > 2 || layered { coordinate(2, float && !layered, texture.depth) } else { 0 };
            let row = z * u64::from(texture.height) + y;
            out[lane] = texture.address + row * u64::from(texture.pitch) + x * u64::from(texture.texel_bytes());
        }
    }

    /// Writes loaded data to the destination registers of `lanes`: lane `i`'s bytes start at
    /// `data[offset[i]]`.
    pub fn write_back(&mut self, inst: &Inst, launch: &Launch, lanes: u64, offset: &[u16; 64], data: &[u8]) {
        let Op::Mem(mem) = inst.op else { panic!("not a memory instruction: {:?}", inst.op) };
        if let MemKind::Texture(_) = mem.kind {
            return self.write_texels(inst, mem, &launch.textures[inst.imm as usize], lanes, offset, data);
        }
        let size = mem.elem.bytes() as usize;
        for (i, group) in self.groups.iter_mut().enumerate() {
            let mask = (lanes >> (i * LANES)) as u32;
            let offset: &[u16; LANES] = (&offset[i * LANES..(i + 1) * LANES]).try_into().expect("a group's lanes");
            if mask == 0 {
                continue;
            }
            for (e, &slot) in inst.dst.iter().enumerate().take(usize::from(mem.vec)) {
                if slot == NONE {
                    continue;
                }
                let slot = usize::from(slot);
                let bytes = &data[e * size..];
                if mem.wide {
                    scatter64(&mut group.r64[slot], mem.elem, mask, offset, bytes);
                } else {
                    scatter32(&mut group.r32[slot], mem.elem, mask, offset, bytes);
                }
            }
        }
    }

    fn write_texels(&mut self, inst: &Inst, mem: Mem, texture: &Texture, lanes: u64, offset: &[u16; 64], data: &[u8]) {
        let size = texture.elem.bytes() as usize;
        for lane in lanes_of(lanes) {
            let group = &mut self.groups[lane / LANES];
            for (channel, &slot) in inst.dst.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
                let bits = if channel < usize::from(texture.channels) {
                    let raw = element(texture.elem, &data[usize::from(offset[lane]) + channel * size..]) as u32;
                    if texture.normalized_read { normalized(texture.elem, raw) } else { raw }
                } else if channel == 3 {
                    // A missing alpha is one.
                    if mem.elem == Elem::F32 { 1f32.to_bits() } else { 1 }
                } else {
                    0
                };
                group.r32[usize::from(slot)][lane % LANES] = bits;
            }
        }
    }

    /// Where the bytes of a `cp.async` of `lanes` go in shared memory, and how many of them are read.
    pub fn copy_targets(&self, inst: &Inst, launch: &Launch, lanes: u64) -> CopyTargets {
        let Op::Mem(mem) = inst.op else { panic!("not a memory instruction: {:?}", inst.op) };
        let (mut to, mut bytes) = ([0; 64], [mem.bytes() as u8; 64]);
        if mem.address == AddressIn::Trace {
            return CopyTargets { to: [CopyTargets::NOWHERE; 64], bytes };
        }
        let own = (launch.cluster_ctas() > 1).then(|| launch.cluster_of(self.cta).1);
        for lane in lanes_of(lanes) {
            let (group, column) = (&self.groups[lane / LANES], lane % LANES);
            let narrow = |slot| get(&group.r32, &launch.consts32, slot)[column];
            let base = match mem.wide {
                true => get(&group.r64, &launch.consts64, inst.src[1])[column],
                false => u64::from(narrow(inst.src[1])),
            };
            to[lane] = base.wrapping_add_signed(i64::from(narrow(inst.src[3]) as i32));
            // An address of the own CTA's may name it.
            if let Some(own) = own
                && let (rank, byte) = owner_of(to[lane], own)
                && rank == own
            {
                to[lane] = byte;
            }
            if inst.src[2] != NONE {
                bytes[lane] = narrow(inst.src[2]).min(mem.bytes()) as u8;
            }
        }
        CopyTargets { to, bytes }
    }

    /// Reads the data operands of a store of `lanes`: lane `i`'s bytes go to `data[offset[i]..]`, in lane
    /// order, so of two lanes that store to one place the higher wins.
    pub fn gather(&self, inst: &Inst, launch: &Launch, lanes: u64, offset: &[u16; 64], data: &mut [u8]) {
        let Op::Mem(mem) = inst.op else { panic!("not a memory instruction: {:?}", inst.op) };
        let (size, vec) = (mem.elem.bytes() as usize, usize::from(mem.vec));
        if size == 4 && !mem.wide && vec == 1 {
            for (i, group) in self.groups.iter().enumerate() {
                let mask = lanes >> (i * LANES) & 0xffff_ffff;
                if mask != 0 {
                    let values = get(&group.r32, &launch.consts32, inst.dst[0]);
                    let offset: &[u16; LANES] = (&offset[i * LANES..][..LANES]).try_into().expect("a group's lanes");
                    // Only a whole group may go in one piece: bytes of lanes that do not store must stay as
                    // they are.
                    if mask == u64::from(u32::MAX) && side_by_side(offset, 4) {
                        let data = &mut data[usize::from(offset[0])..][..4 * LANES];
                        for (bytes, value) in data.chunks_exact_mut(4).zip(values) {
                            bytes.copy_from_slice(&value.to_le_bytes());
                        }
                        continue;
                    }
                    for lane in lanes_of(mask) {
                        let at = usize::from(offset[lane]);
                        data[at..at + 4].copy_from_slice(&values[lane].to_le_bytes());
                    }
                }
            }
            return;
        }
        for lane in lanes_of(lanes) {
            let group = &self.groups[lane / LANES];
            for (e, &slot) in inst.dst.iter().enumerate().take(vec) {
                let value = if mem.wide {
                    get(&group.r64, &launch.consts64, slot)[lane % LANES]
                } else {
                    u64::from(get(&group.r32, &launch.consts32, slot)[lane % LANES])
                };
                let at = usize::from(offset[lane]) + e * size;
                data[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            }
        }
    }

    /// Where an asynchronous store or reduction of a lane completes, in a CTA of the rank `own`: the rank of
    /// the CTA that has the barrier, and the barrier's address there.
    pub fn completes_at(&self, inst: &Inst, launch: &Launch, lane: u32, own: u32) -> (u32, u64) {
        let at = match inst.op {
            Op::Mem(Mem { address: AddressIn::TraceWithBarrier, .. }) => self.traced_address(lane) >> 32,
            _ => self.operand32(inst.src[3], launch, lane).into(),
        };
        owner_of(at, own)
    }

    /// One lane's value of a 64-bit operand.
    pub(crate) fn operand64(&self, slot: Slot, launch: &Launch, lane: u32) -> u64 {
        let (group, lane) = (&self.groups[lane as usize / LANES], lane as usize % LANES);
        get(&group.r64, &launch.consts64, slot)[lane]
    }

    /// One lane's value of a 32-bit operand.
    pub(crate) fn operand32(&self, slot: Slot, launch: &Launch, lane: u32) -> u32 {
        let (group, lane) = (&self.groups[lane as usize / LANES], lane as usize % LANES);
        get(&group.r32, &launch.consts32, slot)[lane]
    }

    /// The operands `a`, `b` of one lane of an atomic.
    pub fn atomic_operands(&self, inst: &Inst, launch: &Launch, lane: u32) -> (u64, u64) {
        let [a, b] = [inst.src[1], inst.src[2]].map(|slot| self.operand(inst, slot, launch, lane));
        (a, b)
    }

    /// The operands of each half of one lane's atomic of 16 bytes.
    pub fn pair_operands(&self, inst: &Inst, launch: &Launch, lane: u32) -> [(u64, u64); 2] {
        [0, 1].map(|half| {
            let [a, b] = [inst.src[1 + half], inst.dst[2 + half]].map(|slot| self.operand(inst, slot, launch, lane));
            (a, b)
        })
    }

    /// One lane's value of an atomic's operand; 0 where there is none.
    fn operand(&self, inst: &Inst, slot: Slot, launch: &Launch, lane: u32) -> u64 {
        let Op::Mem(mem) = inst.op else { panic!("not a memory instruction: {:?}", inst.op) };
        let (group, lane) = (&self.groups[lane as usize / LANES], lane as usize % LANES);
        match (slot, mem.wide) {
            (NONE, _) => 0,
            (_, true) => get(&group.r64, &launch.consts64, slot)[lane],
            (_, false) => u64::from(get(&group.r32, &launch.consts32, slot)[lane]),
        }
    }

    /// Performs one lane's atomic on the bytes that it accesses.
    ///
    /// # Errors
    /// What follows of the step of an `mbarrier` is undefined; memory keeps its old value then.
    pub fn perform_atomic(
        &mut self,
        inst: &Inst,
        mem: Mem,
        launch: &Launch,
        lane: u32,
        found: &mut [u8],
    ) -> Result<(), PhaseMisuse> {
        let old = if mem.is_pair() {
            swap_pair(mem.atom, found, self.pair_operands(inst, launch, lane))[0]
        } else {
            let (a, b) = self.atomic_operands(inst, launch, lane);
            let mut word = [0; 8];
            word[..found.len()].copy_from_slice(found);
            let old = u64::from_le_bytes(word);
            let new = try_atomic(mem.atom, mem.elem, old, a, b)?;
            found.copy_from_slice(&new.to_le_bytes()[..found.len()]);
            [old, 0]
        };
        if mem.kind == MemKind::Atomic {
            self.write_atomic(inst, lane, 0, old[0]);
            if mem.is_pair() {
                self.write_atomic(inst, lane, 1, old[1]);
            }
        }
        Ok(())
    }

    /// Writes one lane's old value of an atomic, of 16 bytes a half of it, to its destination register.
    pub fn write_atomic(&mut self, inst: &Inst, lane: u32, half: usize, old: u64) {
        let Op::Mem(mem) = inst.op else { panic!("not a memory instruction: {:?}", inst.op) };
        let (group, lane) = (&mut self.groups[lane as usize / LANES], lane as usize % LANES);
        match (inst.dst[half], mem.wide) {
            (NONE, _) => {}
            (slot, true) => group.r64[usize::from(slot)][lane] = old,
            (slot, false) => group.r32[usize::from(slot)][lane] = old as u32,
        }
    }
}

/// The entries of a group's lanes.
#[inline]
fn of_group(out: &mut [u64; 64], group: usize) -> &mut [u64; LANES] {
    (&mut out[group * LANES..(group + 1) * LANES]).try_into().expect("a group's lanes")
}

/// Sets the entries of a mask.
#[inline]
fn select(out: &mut [u64; LANES], mask: u32, f: impl Fn(usize) -> u64) {
    if mask == u32::MAX {
        for (lane, out) in out.iter_mut().enumerate() {
            *out = f(lane);
        }
    } else {
        for lane in lanes_of(u64::from(mask)) {
            out[lane] = f(lane);
        }
    }
}

/// Every lane's bytes follow those of the lane before, `step` bytes apart.
fn side_by_side(offset: &[u16; LANES], step: u32) -> bool {
    let first = u32::from(offset[0]);
    let mut same = true;
    for (lane, &at) in offset.iter().enumerate() {
        same &= u32::from(at) == first + step * lane as u32;
    }
    same
}

/// Lanes that are looked at together: their offsets fill one register of any host.
const CHUNK: usize = 8;

/// How the offsets of [`CHUNK`] lanes, 4 bytes each, lie together.
enum Lie {
    /// One after the other.
    SideBySide,
    /// All in one place.
    Together,
    /// Anything else.
    Apart,
}

impl Lie {
    #[inline]
    fn of(offset: &[u16; CHUNK]) -> Lie {
        let first = offset[0];
        let (mut from_first, mut from_line) = (0, 0);
        for (lane, &at) in offset.iter().enumerate() {
            from_first |= at ^ first;
            from_line |= at ^ first.wrapping_add(4 * lane as u16);
        }
        // Offsets that run over the end of 16 bits begin above the others.
        if from_line == 0 && first <= u16::MAX - 4 * CHUNK as u16 {
            Lie::SideBySide
        } else if from_first == 0 {
            Lie::Together
        } else {
            Lie::Apart
        }
    }
}

/// A call: inline it would have all that [`Warp::write_back`] keeps saved for each element.
#[inline(never)]
fn scatter32(register: &mut [u32; LANES], elem: Elem, mask: u32, offset: &[u16; LANES], data: &[u8]) {
    let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"));
    if elem.bytes() != 4 {
        for lane in lanes_of(u64::from(mask)) {
            register[lane] = element(elem, &data[usize::from(offset[lane])..]) as u32;
        }
    } else if mask == u32::MAX {
        // Tiles are narrower than a warp: a row of eight lanes is the same or consecutive words where the
        // whole warp is not.
        for (register, offset) in register.as_chunks_mut::<CHUNK>().0.iter_mut().zip(offset.as_chunks::<CHUNK>().0) {
            let at = usize::from(offset[0]);
            match Lie::of(offset) {
                Lie::SideBySide => {
                    let bytes: &[u8; 4 * CHUNK] = data[at..at + 4 * CHUNK].try_into().expect("a chunk's bytes");
                    for (value, bytes) in register.iter_mut().zip(bytes.as_chunks().0) {
                        *value = u32::from_le_bytes(*bytes);
                    }
                }
                Lie::Together => *register = [word(at); CHUNK],
                Lie::Apart => *register = offset.map(|at| word(usize::from(at))),
            }
        }
    } else {
        for lane in lanes_of(u64::from(mask)) {
            register[lane] = word(usize::from(offset[lane]));
        }
    }
}

fn scatter64(register: &mut [u64; LANES], elem: Elem, mask: u32, offset: &[u16; LANES], data: &[u8]) {
    if elem.bytes() == 8 && mask == u32::MAX && side_by_side(offset, 8) {
        let data = &data[usize::from(offset[0])..][..8 * LANES];
        for (value, bytes) in register.iter_mut().zip(data.chunks_exact(8)) {
            *value = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
    } else {
        for lane in lanes_of(u64::from(mask)) {
            register[lane] = element(elem, &data[usize::from(offset[lane])..]);
        }
    }
}

/// A normalised texel channel as a float: [0, 1] unsigned, [-1, 1] signed.
fn normalized(elem: Elem, raw: u32) -> u32 {
    let value = match elem {
        Elem::U8 => raw as f32 / 255.0,
        Elem::U16 => raw as f32 / 65535.0,
        Elem::S8 => (raw as i32 as f32 / 127.0).max(-1.0),
        Elem::S16 => (raw as i32 as f32 / 32767.0).max(-1.0),
        _ => return raw,
    };
    value.to_bits()
}
