//! The instructions of a CTA, from the text of its file to what its warps execute.
//!
//! ```text
//!   #BEGIN_TB
//!   thread block = x,y,z
//!   cluster id = x,y,z         and two more of clusters, from version 6 on: `cluster cta`, `cluster rank`
//!   warp = W
//!   insts = K
//!   K lines
//!   #END_TB
//! ```
//! The same walk surveys a file before a run, where it takes new instructions in and notes what is touched,
//! and follows it during the run, where it maps addresses ([`AddressPlaces`]). So both see the same
//! instructions.
//!
//! Copies past the registers (`LDGSTS`) belong to groups, which `LDGDEPBAR` ends and `DEPBAR` waits for. A
//! group is taken for complete with its last copy: loads of a warp come back nearly in order. What goes on
//! beside warps otherwise is in [`super::cta_beside`].
//!
//! Invariants: every warp of the CTA is in its text and ends with the exit of all its lanes; a lane that has
//! exited executes nothing. A warp without an exit executes one that the walk adds: a warp must end. Lines
//! around a loop that polled (`REPLAY_START`, `REPLAY_END`) are no instructions; an exit that ends a warp
//! within such a loop is that of all its lanes.
//! Source: Accel-Sim's trace parser.

use std::io;

use smallvec::SmallVec;

use super::asynchronous::is_unknown;
use super::beside::{BesideWalk, ClusterPlace, EndedGroups, GroupOf, named};
use super::code::{TraceCode, TraceVariant};
use super::faults::{TraceFaults, shown};
use super::header::TraceHeader;
use super::instruction::{TraceLine, read_line};
use super::labels::{Labels, StoresAre};
use super::lines::TraceLines;
use super::opcode_table::OpcodeTable;
use super::opcodes::{Operation, names};
use super::words::{LineFault, RegisterValues};
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::host::GlobalRange;
use durawarp_kernel::ir::Space;
use durawarp_kernel::memory::{LOCAL_WINDOW, SHARED_WINDOW};
use durawarp_kernel::traced::WarpTrace;

/// Bytes of the windows of shared and of local memory in generic addresses.
const GENERIC_WINDOW_BYTES: u64 = 16 << 20;

/// Most bytes of a CTA's text: some 5 million instructions of its warps. Chosen: all of them are in memory
/// while the CTA runs, and a compressed file of 50 KB may hold as much.
const CTA_BYTES: usize = 512 << 20;

/// The lines of a CTA, without those that begin and end it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CtaText {
    text: Vec<u8>,
    /// The number of each line, and where it ends.
    lines: Vec<(u32, usize)>,
}

impl CtaText {
    /// The next CTA of a file; none at its end, or at a fault. `seen` gets every line.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn next(
        lines: &mut TraceLines,
        faults: &mut TraceFaults,
        seen: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Option<CtaText>> {
        Self::next_within(CTA_BYTES, lines, faults, seen)
    }

    /// The same with a bound on its bytes.
    fn next_within(
        most_bytes: usize,
        lines: &mut TraceLines,
        faults: &mut TraceFaults,
        seen: &mut dyn FnMut(&[u8]),
    ) -> io::Result<Option<CtaText>> {
        let Some((number, line)) = lines.next()? else { return Ok(None) };
        seen(line);
        if line != b"#BEGIN_TB" {
            let expected = "expected `#BEGIN_TB`: CTA by CTA, as the post-processor writes it";
            faults.at(number, line, 0..line.len(), expected);
            return Ok(None);
        }
        let mut cta = CtaText::default();
        // To its end: the instructions are looked at by the walk, one CTA at a time.
        while let Some((number, line)) = lines.next()? {
            seen(line);
            match line {
                b"#END_TB" => return Ok(Some(cta)),
                b"#BEGIN_TB" => {
                    faults.at(number, line, 0..9, "a CTA begins before `#END_TB` of the last");
                    return Ok(None);
                }
                line if cta.text.len() + line.len() > most_bytes => {
                    let message = format!("the CTA that this line belongs to has over {most_bytes} bytes of text");
                    faults.at(number, line, 0..line.len(), &message);
                    return Ok(None);
                }
                line => cta.push(number, line),
            }
        }
        faults.nowhere(&format!("the file ends at line {} within a CTA: `#END_TB` is missing", lines.number()));
        Ok(None)
    }

    /// Appends a line, without its end.
    pub(crate) fn push(&mut self, number: u32, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.lines.push((number, self.text.len()));
    }

    /// Bytes that it may still take.
    pub(crate) fn bytes_left(&self) -> usize {
        CTA_BYTES.saturating_sub(self.text.len())
    }

    /// Its lines with their numbers.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut from = 0;
        self.lines.iter().map(move |&(number, end)| {
            let line = &self.text[from..end];
            from = end;
            (number, line)
        })
    }
}

/// What becomes of addresses.
pub(crate) trait AddressPlaces {
    /// Global addresses of lanes that access `bytes` each.
    ///
    /// # Errors
    /// One that has no place.
    fn global(&mut self, addresses: &mut [u64], bytes: u32) -> Result<(), String>;
    /// The pieces, one behind the other, in which a range of global memory lies.
    ///
    /// # Errors
    /// One of its addresses has no place.
    fn stretch(&mut self, range: GlobalRange, piece: &mut dyn FnMut(GlobalRange)) -> Result<(), String>;
    /// Offsets in the CTA's shared memory.
    fn shared(&mut self, addresses: &mut [u64], bytes: u32);
    /// Addresses of the thread's local memory, which become offsets.
    fn local(&mut self, addresses: &mut [u64], bytes: u32);
}

/// The code of the kernel: in the making, or as it was surveyed.
#[derive(Debug)]
pub(crate) enum CodeAccess<'a> {
    Growing(&'a mut TraceCode),
    Fixed(&'a TraceCode),
}

impl CodeAccess<'_> {
    fn code(&self) -> &TraceCode {
        match self {
            CodeAccess::Growing(code) => code,
            CodeAccess::Fixed(code) => code,
        }
    }

    pub(super) fn template(&mut self, line: &TraceLine<'_>, number: u32, table: &OpcodeTable) -> Option<u32> {
        match (self.code().find(line), self) {
            (Some(known), _) => Some(known),
            (None, CodeAccess::Growing(code)) => code.add(line, number, table),
            (None, CodeAccess::Fixed(_)) => None,
        }
    }

    /// Bytes that a lane of a template accesses.
    pub(super) fn bytes(&self, template: u32) -> u32 {
        self.code().template(template).bytes
    }

    pub(super) fn variant(&mut self, template: u32, variant: TraceVariant) -> Option<u32> {
        match self {
            CodeAccess::Growing(code) => Some(code.add_variant(template, variant)),
            CodeAccess::Fixed(code) => code.find_variant(template, variant),
        }
    }
}

/// A warp under way.
#[derive(Debug, Default)]
pub(super) struct WarpWalk {
    number: u32,
    line: u32,
    declared: Option<u64>,
    seen: u64,
    /// Lanes that there are, and of these those that have exited.
    lanes: u32,
    exited: u32,
    pub(super) trace: WarpTrace,
    /// The last copy of the group that has not ended: its step and template.
    copy: Option<(usize, u32)>,
    /// Groups that have ended.
    pub(super) groups: EndedGroups,
    /// It is in a loop that polled.
    polls: bool,
}

/// Warps that an exit ends which the walk adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AddedExits {
    /// Without instructions.
    pub(crate) empty: u64,
    /// With instructions, of which none is an exit.
    pub(crate) unended: u64,
}

/// The walk through the CTAs of a kernel.
#[derive(Debug)]
pub(crate) struct CtaWalk<'a, P> {
    pub(crate) header: &'a TraceHeader,
    pub(crate) labels: &'a Labels,
    pub(crate) code: CodeAccess<'a>,
    pub(crate) places: P,
    pub(crate) faults: &'a mut TraceFaults,
    pub(crate) beside: BesideWalk,
    pub(crate) added: AddedExits,
}

/// The exit of a warp that has none, as a line would say it.
fn added_exit(lanes: u32) -> TraceLine<'static> {
    let (dst, src) = (SmallVec::new(), SmallVec::new());
    TraceLine {
        mask: lanes,
        text: b"0 EXIT 0 0",
        opcode: "EXIT",
        dst,
        src,
        width: 0,
        ends_group: false,
        imm: 0,
        imm2: None,
        copy: None,
        results: 0,
        values: RegisterValues::default(),
    }
}

impl<P: AddressPlaces> CtaWalk<'_, P> {
    /// The index of a CTA in its grid, and what its warps execute. What comes back counts only if no fault
    /// was pushed.
    pub(crate) fn walk(&mut self, cta: &CtaText) -> ([u32; 3], Vec<WarpTrace>) {
        let count = self.header.threads().div_ceil(32);
        let mut warps: Vec<Option<WarpTrace>> = vec![None; count as usize];
        let (mut index, mut current, mut addresses) = (None, None, Vec::new());
        // Lines of a warp that is told of are passed over.
        let (mut last, mut passed_over) = (0, false);
        self.beside.place = ClusterPlace::default();
        for (number, line) in cta.lines() {
            last = number;
            if let Some(text) = line.strip_prefix(b"thread block = ") {
                index = self.index(number, line, text);
            } else if let Some(text) = line.strip_prefix(b"warp = ") {
                self.close(current.take(), &mut warps);
                current = self.number(number, line, text).and_then(|warp| self.open(number, line, warp, &warps));
                passed_over = current.is_none();
            } else if let (Some(text), Some(warp)) = (line.strip_prefix(b"insts = "), &mut current) {
                let declared = self.number(number, line, text);
                let warp: &mut WarpWalk = warp;
                warp.declared = declared;
            } else if let Some(text) = line.strip_prefix(b"cluster ") {
                // From version 6 on; before, no CTA has a place in one.
                if !self.beside.place.read(text) {
                    let expected = "expected `cluster id = X,Y,Z`, `cluster cta = X,Y,Z` or `cluster rank = N`";
                    self.wrong(number, line, expected);
                }
            } else if let Some(warp) = &mut current {
                warp.seen += 1;
                if let Err(fault) = self.instruction(warp, number, line, &mut addresses) {
                    self.faults.at(number, line, fault.at, &fault.message);
                }
            } else if !passed_over {
                self.wrong(number, line, "expected `thread block = X,Y,Z` or `warp = W`");
            }
        }
        self.close(current.take(), &mut warps);
        if index.is_none() && self.faults.is_empty() {
            self.wrong(last, b"", "the CTA that ends here has no `thread block = X,Y,Z`");
        }
        let missing: Vec<String> =
            warps.iter().enumerate().filter(|(_, warp)| warp.is_none()).map(|(n, _)| n.to_string()).collect();
        if !missing.is_empty() && self.faults.is_empty() {
            let message = format!("the CTA that ends here has no instructions of warp {}", missing.join(", "));
            self.wrong(last, b"", &message);
        }
        (index.unwrap_or_default(), warps.into_iter().flatten().collect())
    }

    fn wrong(&mut self, number: u32, line: &[u8], message: &str) {
        self.faults.at(number, line, 0..line.len(), message);
    }

    fn number<T: std::str::FromStr>(&mut self, number: u32, line: &[u8], text: &[u8]) -> Option<T> {
        let read = std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
        if read.is_none() {
            self.wrong(number, line, "expected a number");
        }
        read
    }

    fn index(&mut self, number: u32, line: &[u8], text: &[u8]) -> Option<[u32; 3]> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let parts: Vec<u32> = text.split(',').map_while(|part| part.trim().parse().ok()).collect();
        let within = |index: &[u32; 3]| index.iter().zip(self.header.grid).all(|(&at, size)| at < size);
        let index = <[u32; 3]>::try_from(parts).ok().filter(within);
        if index.is_none() {
            let [x, y, z] = self.header.grid;
            self.wrong(number, line, &format!("expected `thread block = X,Y,Z` within the grid ({x},{y},{z})"));
        }
        index
    }

    fn open(&mut self, number: u32, line: &[u8], warp: u32, warps: &[Option<WarpTrace>]) -> Option<WarpWalk> {
        match warps.get(warp as usize) {
            Some(None) => {
                Some(WarpWalk { number: warp, line: number, lanes: self.header.lanes(warp), ..WarpWalk::default() })
            }
            Some(Some(_)) => {
                self.wrong(number, line, "the CTA has this warp twice");
                None
            }
            None => {
                let message =
                    format!("a block of {} threads has warps 0 to {}", self.header.threads(), warps.len() - 1);
                self.wrong(number, line, &message);
                None
            }
        }
    }

    fn close(&mut self, warp: Option<WarpWalk>, warps: &mut [Option<WarpTrace>]) {
        let Some(mut warp) = warp else { return };
        let line = format!("warp = {}", warp.number);
        if (warp.declared, warp.seen) == (Some(0), 0) {
            self.exit(&mut warp);
            self.added.empty += 1;
        } else if warp.exited == 0 && warp.declared == Some(warp.seen) && self.faults.is_empty() {
            // Who makes traces without a card leaves exits out, and Accel-Sim 2.0 ends such a warp.
            self.exit(&mut warp);
            self.added.unended += 1;
        }
        if warp.declared != Some(warp.seen) {
            let declared = warp.declared.map_or_else(|| "no `insts`".to_owned(), |n| format!("`insts = {n}`"));
            let message = format!("the warp has {declared}, and {} lines", warp.seen);
            self.wrong(warp.line, line.as_bytes(), &message);
        } else if warp.exited != warp.lanes && self.faults.is_empty() {
            let message = format!("lanes {:08x} of the warp do not exit", warp.lanes & !warp.exited);
            self.wrong(warp.line, line.as_bytes(), &message);
        }
        warps[warp.number as usize] = Some(warp.trace);
    }

    /// Ends a warp that has no exit.
    fn exit(&mut self, warp: &mut WarpWalk) {
        let template = self.code.template(&added_exit(warp.lanes), warp.line, &OpcodeTable::default());
        match template.and_then(|at| self.code.variant(at, TraceVariant::Plain)) {
            Some(step) => warp.trace.step(step, warp.lanes),
            None => self.wrong(warp.line, b"", "the file is not what it was before the run"),
        }
        warp.exited = warp.lanes;
    }

    fn instruction(
        &mut self,
        warp: &mut WarpWalk,
        number: u32,
        line: &[u8],
        addresses: &mut Vec<u64>,
    ) -> Result<(), LineFault> {
        let mut read = read_line(line, self.header.format, addresses)?;
        match read.opcode {
            "REPLAY_START" | "REPLAY_END" => {
                warp.polls = read.opcode == "REPLAY_START";
                return Ok(());
            }
            // The loop that it was in was recorded once, of the lanes that left it first.
            "EXIT" if warp.polls && warp.declared == Some(warp.seen) => read.mask = warp.lanes & !warp.exited,
            _ => {}
        }
        // Lanes first: what a wrong mask would do to the warp is told of, and not done.
        let whole = |message: String| LineFault { at: 0..line.len(), message };
        if read.mask & !warp.lanes != 0 || read.mask & warp.exited != 0 {
            let which = if read.mask & warp.exited != 0 { "have exited" } else { "are not there" };
            return Err(whole(format!("lanes {:08x} {which}", read.mask & (warp.exited | !warp.lanes))));
        }
        let changed = || whole("the file is not what it was before the run".to_owned());
        let Some(at) = self.code.template(&read, number, &self.labels.opcodes) else {
            if let CodeAccess::Fixed(_) = self.code {
                return Err(changed());
            }
            let name = read.opcode.split('.').next().unwrap_or_default().to_owned();
            let fault = |file: &str| {
                let start = line.windows(name.len().max(1)).position(|part| part == name.as_bytes()).unwrap_or(0);
                let (text, place) = shown(line, start..start + name.len());
                let fault = Diagnostic::at(file, &text, place, format!("unknown opcode `{name}`"));
                let table = || Some("`--opcodes FILE` says which known opcode it is timed as".to_owned());
                fault.with_nearest_or(&name, names(), table)
            };
            self.faults.of_word(&name, fault, number);
            return Ok(());
        };
        let template = self.code.code().template(at);
        let (operation, bytes, scope) = (template.operation, template.bytes, template.scope());
        if matches!(operation, Operation::Unserved(_)) && is_unknown(&template.opcode) {
            self.beside.bytes.forget();
        }
        if read.mask == 0 {
            // It issues, and does nothing.
            let off = self.code.variant(at, TraceVariant::Off).ok_or_else(changed)?;
            warp.trace.step(off, warp.lanes & !warp.exited);
            return Ok(());
        }
        if let Operation::Beside(step) = operation {
            return self
                .beside(warp, (at, step), &read, addresses)
                .map_err(|why| whole(why.unwrap_or_else(|| changed().message)));
        }
        // Where the access goes, and what its store is to a scheme, decide the variant.
        let space = match operation {
            Operation::Load(space) | Operation::Store(space) | Operation::Atomic(space) => Some(space),
            Operation::AsyncCopy => Some(Space::Global),
            Operation::Reduction => Some(Space::Generic),
            _ => None,
        };
        let stores = match (space, operation) {
            (Some(space), Operation::Store(_)) => self.stores_are(space, addresses),
            _ => StoresAre::Plain,
        };
        // A wait for groups is one for copies of both kinds.
        let [awaited, awaited_next] = match operation {
            Operation::AsyncWait => self.awaited(warp, usize::try_from(read.imm).unwrap_or(0)),
            _ => [TraceVariant::Plain; 2],
        };
        let variant = match operation {
            Operation::AsyncWait => awaited,
            Operation::Barrier if self.header.format.version >= 6 => named(&read),
            // All lanes take part in a wait, and its immediate is the number of groups that it leaves.
            Operation::GroupStep if awaits_groups(read.opcode) && read.mask == u32::MAX => {
                TraceVariant::GroupWait(u8::try_from(read.imm).unwrap_or(0))
            }
            _ if matches!(stores, StoresAre::NonTemporal | StoresAre::Log) => TraceVariant::Store(stores),
            _ => TraceVariant::Plain,
        };
        let step = self.code.variant(at, variant).ok_or_else(changed)?;
        warp.trace.step(step, read.mask);
        if let Some(space) = space {
            if addresses.is_empty() {
                return Err(whole(format!("`{}` accesses memory, and the line has no addresses", read.opcode)));
            }
            if let Some(address) = addresses.iter().find(|address| !address.is_multiple_of(u64::from(bytes))) {
                return Err(whole(format!("address {address:#x} is no multiple of its {bytes} bytes")));
            }
            self.place(space, addresses, bytes).map_err(whole)?;
            warp.trace.access(addresses);
        }
        // What follows an instruction, or is noted of it.
        match operation {
            Operation::Store(_) if stores == StoresAre::WriteBack => {
                let write_back = self.code.variant(at, TraceVariant::WriteBack).ok_or_else(changed)?;
                warp.trace.step(write_back, read.mask);
                warp.trace.access(addresses);
            }
            Operation::Fence if self.labels.behind_fence(scope).is_some() => {
                let fence = self.code.variant(at, TraceVariant::Persist).ok_or_else(changed)?;
                warp.trace.step(fence, read.mask);
            }
            Operation::AsyncWait if awaited_next != TraceVariant::Plain => {
                let wait = self.code.variant(at, awaited_next).ok_or_else(changed)?;
                warp.trace.step(wait, read.mask);
            }
            Operation::AsyncCopy => warp.copy = Some((warp.trace.steps() - 1, at)),
            Operation::AsyncGroup if self.code.code().arrives() => warp.groups.push(GroupOf::Copies),
            Operation::AsyncGroup => {
                if let Some((step, template)) = warp.copy {
                    let copy = TraceVariant::Copy(warp.groups.next_place());
                    let copy = self.code.variant(template, copy).ok_or_else(changed)?;
                    warp.trace.replace(step, copy);
                }
                warp.groups.push(if warp.copy.take().is_some() { GroupOf::Copies } else { GroupOf::Nothing });
            }
            Operation::Exit => warp.exited |= read.mask,
            _ => {}
        }
        Ok(())
    }

    /// What a wait waits for which leaves `pending` groups: one thing, or copies past the registers and then
    /// stores of the copy engine.
    fn awaited(&self, warp: &WarpWalk, pending: usize) -> [TraceVariant; 2] {
        let of_copies = match (self.code.code().arrives(), warp.groups.awaited_places(pending)) {
            (true, _) => warp.groups.kept(GroupOf::Copies, pending).map(TraceVariant::GroupsWait),
            (false, 0) => None,
            (false, places) => Some(TraceVariant::Wait(places)),
        };
        let of_stores = warp.groups.kept(GroupOf::Stores, pending).map(TraceVariant::CopyWait);
        let second = of_copies.and(of_stores).unwrap_or(TraceVariant::Plain);
        [of_copies.or(of_stores).unwrap_or(TraceVariant::Plain), second]
    }

    /// What the stores of an instruction are: the first lane says it.
    fn stores_are(&self, space: Space, addresses: &[u64]) -> StoresAre {
        let global = matches!(space, Space::Global | Space::Generic);
        let range = addresses.first().filter(|_| global).and_then(|&address| self.labels.range_of(address));
        range.map_or(StoresAre::Plain, |range| range.stores)
    }

    /// Gives addresses their places in a space.
    fn place(&mut self, space: Space, addresses: &mut [u64], bytes: u32) -> Result<(), String> {
        let (shared, local) = (self.header.shared_base, self.header.local_base);
        let in_window = |base: Option<u64>, length: u64, address: u64| {
            base.and_then(|base| address.checked_sub(base)).filter(|&offset| offset < length)
        };
        // Generic addresses of the windows stand for offsets, lane by lane.
        match space {
            Space::Shared => {
                for address in &mut *addresses {
                    *address = in_window(shared, GENERIC_WINDOW_BYTES, *address).unwrap_or(*address);
                }
                self.places.shared(addresses, bytes);
            }
            Space::Local => {
                for address in &mut *addresses {
                    *address = in_window(local, GENERIC_WINDOW_BYTES, *address).unwrap_or(*address);
                }
                self.places.local(addresses, bytes);
            }
            Space::Generic if shared.is_some() || local.is_some() => {
                for address in addresses {
                    let one = std::slice::from_mut(address);
                    if let Some(offset) = in_window(shared, GENERIC_WINDOW_BYTES, one[0]) {
                        one[0] = offset;
                        self.places.shared(one, bytes);
                        one[0] += SHARED_WINDOW;
                    } else if let Some(offset) = in_window(local, GENERIC_WINDOW_BYTES, one[0]) {
                        one[0] = offset;
                        self.places.local(one, bytes);
                        one[0] += LOCAL_WINDOW;
                    } else {
                        self.places.global(one, bytes)?;
                    }
                }
            }
            Space::Global | Space::Generic | Space::Const => self.places.global(addresses, bytes)?,
        }
        Ok(())
    }
}

/// `WARPGROUP.DEPBAR`
fn awaits_groups(opcode: &str) -> bool {
    opcode.split('.').any(|token| token == "DEPBAR")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::code::COPIES;
    use super::super::layout::TraceLayout;
    use super::super::source::CtaFile;
    use super::super::survey::KernelSurvey;
    use super::*;
    use durawarp_kernel::traced::CtaSource as _;

    /// Walks `groups` groups of one copy each, then a wait for each of `pending`, which leaves that number of
    /// groups pending. What each copy sets on the scoreboard, and what each wait reads.
    fn copies(groups: usize, pending: &[usize]) -> (Vec<u16>, Vec<Vec<u16>>) {
        let copy =
            "0000 ffffffff 0 LDGSTS.E.128 2 R0 R2 16 1 0x00007f2b00001000 16 0\n0010 ffffffff 0 LDGDEPBAR 0 0 0\n";
        let waits: String = pending.iter().map(|left| format!("0020 ffffffff 0 DEPBAR.LE 0 0 {left}\n")).collect();
        let insts = 2 * groups + pending.len() + 1;
        let text = format!(
            "-kernel name = k\n-grid dim = (1,1,1)\n-block dim = (32,1,1)\n-binary version = 80\n\
             -accelsim tracer version = 5\n#\n#BEGIN_TB\nthread block = 0,0,0\nwarp = 0\ninsts = {insts}\n{}{waits}\
             0030 ffffffff 0 EXIT 0 0 0\n#END_TB\n",
            copy.repeat(groups)
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel-1.traceg");
        std::fs::write(&path, text).unwrap();
        let labels = Arc::new(Labels::default());
        let survey = Arc::new(KernelSurvey::of(&path, &labels).unwrap_or_else(|faults| panic!("{faults}")));
        let layout = Arc::new(TraceLayout::new(&survey.touched, &labels, false).unwrap());
        let warp = CtaFile::new(survey.clone(), labels, layout).warps(0).unwrap().remove(0);
        let hazards: Vec<_> = warp.instructions().map(|at| survey.kernel.hazards[at as usize].clone()).collect();
        let sets = hazards[..2 * groups].iter().step_by(2).map(|copy| copy.set[0]).collect();
        let waits = &hazards[2 * groups..insts - 1];
        (sets, waits.iter().map(|wait| wait.check[..usize::from(wait.reads)].to_vec()).collect())
    }

    #[test]
    fn a_wait_leaves_as_many_groups_pending_as_it_says() {
        let (sets, waits) = copies(3, &[3, 2, 1, 0, 7]);
        assert_eq!(waits, [&[][..], &sets[..1], &sets[..2], &sets[..], &[]]);
        assert!(sets.windows(2).all(|two| two[0] != two[1]), "each group has a place of its own");
    }

    #[test]
    fn a_wait_reaches_back_as_many_groups_as_have_places() {
        let places = COPIES as usize;
        let (sets, waits) = copies(places + 2, &[0, 1]);
        let sorted = |mut list: Vec<u16>| {
            list.sort_unstable();
            list
        };
        assert_eq!(sorted(waits[0].clone()), sorted(sets[2..].to_vec()), "the first two are taken for complete");
        assert_eq!(sorted(waits[1].clone()), sorted(sets[2..places + 1].to_vec()));
    }

    #[test]
    fn a_cta_is_held_up_to_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("k.traceg");
        std::fs::write(&path, "#BEGIN_TB\n0123456789\n0123456789\n#END_TB\n").unwrap();
        let read = |most: usize| {
            let mut faults = TraceFaults::new("k.traceg");
            let mut lines = TraceLines::open(&path).unwrap();
            let cta = CtaText::next_within(most, &mut lines, &mut faults, &mut |_| {}).unwrap();
            (cta.map(|cta| cta.lines().count()), faults.first().map(ToString::to_string))
        };
        assert_eq!(read(20), (Some(2), None));
        let told = "k.traceg:3:1: the CTA that this line belongs to has over 19 bytes of text";
        assert_eq!(read(19), (None, Some(told.to_owned())));
    }

    #[test]
    fn a_line_that_is_no_text_is_a_fault_at_its_place() {
        let header = TraceHeader { grid: [1; 3], block: [32, 1, 1], ..TraceHeader::default() };
        let told = |line: &[u8]| {
            let mut faults = TraceFaults::new("k.traceg");
            let cta = CtaText { text: [&b"warp = 0"[..], line].concat(), lines: vec![(4, 8), (5, 8 + line.len())] };
            let (mut code, labels) = (TraceCode::default(), Labels::default());
            let code = CodeAccess::Growing(&mut code);
            let mut walk = CtaWalk {
                header: &header,
                labels: &labels,
                code,
                places: NoPlaces,
                faults: &mut faults,
                beside: BesideWalk::default(),
                added: AddedExits::default(),
            };
            walk.walk(&cta);
            faults.into_faults().iter().map(ToString::to_string).find(|fault| fault.contains(":5:"))
        };
        let number = "expected a number of source registers, 8 at most; got";
        assert_eq!(
            told(b"0 0 0 0 00c0 ffffffff 0 BAR.SYNC \xff\xff 0 0"),
            Some(format!("k.traceg:5:34: {number} `\u{fffd}\u{fffd}`"))
        );
        for line in [&b"\xff\xc3 \xff"[..], b"0 0 0 0 0 ffffffff 0 \xe2\x82 0 0", b"0 0 0 0 0 ffffffff 0 .X 0 0"] {
            assert!(told(line).is_some(), "{}", String::from_utf8_lossy(line));
        }
    }

    struct NoPlaces;

    impl AddressPlaces for NoPlaces {
        fn global(&mut self, _: &mut [u64], _: u32) -> Result<(), String> {
            Ok(())
        }

        fn stretch(&mut self, _: GlobalRange, _: &mut dyn FnMut(GlobalRange)) -> Result<(), String> {
            Ok(())
        }

        fn shared(&mut self, _: &mut [u64], _: u32) {}

        fn local(&mut self, _: &mut [u64], _: u32) {}
    }
}
