//! What the warps of a GPU repeat: each is executed alone on what memory has, or its L1 where that has
//! another value; then warps that repeat the same are told together.

use std::collections::{BTreeMap, BTreeSet};

use crate::assemble::Assembly;
use crate::outcome::Repeating;
use durawarp_kernel::functional::alone::{Surroundings, WarpLoop, WarpRead, complete, repeats};
use durawarp_kernel::ir::{MemKind, Op, Space};
use durawarp_kernel::launch::Launch;
use durawarp_kernel::memory::FlatMemory;
use durawarp_machine::msg::SECTOR_BYTES;
use durawarp_machine::sm::{CachedLine, ResidentWarp, Residents, Stands};

const SECTOR: usize = SECTOR_BYTES as usize;

/// Who repeats what, and who waits beside them; none where a warp may get on. `memory` is as it was before
/// the first step. A warp that reads older bytes in its L1 than memory has is taken to repeat itself where
/// nothing has changed for `long`.
pub(in crate::run) fn of_warps(
    machine: &Assembly,
    mut memory: FlatMemory,
    long: bool,
) -> Option<(Vec<Repeating>, Vec<String>)> {
    machine.bring_up(&mut memory);
    let mut groups: BTreeMap<(u32, u32, Option<WarpRead>, Option<u32>), Alike> = BTreeMap::new();
    let mut at_barrier = Alike::default();
    let mut launch = None;
    for residents in machine.sms().filter_map(|sm| sm.residents()) {
        let stale = stale(&residents.lines, &memory);
        for warp in &residents.warps {
            match warp.stands {
                Stands::Ends => return None,
                Stands::Waits => at_barrier.add(warp, None),
                Stands::Runs => {
                    let found = repeated(warp, &residents, &mut memory, &stale)?;
                    // Another warp may yet evict the line that has the old bytes.
                    if !long && found.reads.iter().any(|read| read.stale) {
                        return None;
                    }
                    let read = found.reads.iter().find(|read| read.decides).or(found.reads.first()).copied();
                    // Of several words the least is told.
                    let key = read.map(|read| WarpRead { address: 0, value: 0, addresses: 0, ..read });
                    let range = (*found.pcs.first()?, *found.pcs.last()?);
                    groups.entry((range.0, range.1, key, found.held_at)).or_default().add(warp, Some((&found, read)));
                }
            }
        }
        launch = Some(residents.launch.clone());
    }
    let launch = launch.filter(|_| !groups.is_empty())?;
    let repeating =
        groups.into_iter().map(|((first, last, _, held_at), group)| told(&launch, [first, last], held_at, &group));
    let mut waits = Vec::new();
    if at_barrier.warps > 0 {
        waits.push(format!("{} wait at a barrier of their CTA for those that repeat", at_barrier.count()));
    }
    match machine.command_processor().unstarted_ctas() {
        0 => {}
        ctas => {
            waits.push(format!("{ctas} CTAs of the grid have not started: they wait for room that the CTAs above hold (a kernel with `grid.sync()` refuses such a grid)"))
        }
    }
    Some((repeating.collect(), waits))
}

/// Warps that repeat the same, or wait for the same.
#[derive(Debug, Default)]
struct Alike {
    warps: u64,
    ctas: BTreeSet<u64>,
    lanes: u64,
    held: u64,
    /// What they read: the read of the least address, and different addresses.
    read: Option<WarpRead>,
    addresses: BTreeSet<u64>,
}

impl Alike {
    fn add(&mut self, warp: &ResidentWarp<'_>, found: Option<(&WarpLoop, Option<WarpRead>)>) {
        self.warps += 1;
        self.ctas.insert(warp.cta);
        let Some((found, read)) = found else { return };
        self.lanes += u64::from(found.lanes.count_ones());
        self.held += u64::from(found.held.count_ones());
        if let Some(read) = read {
            self.addresses.insert(read.address);
            self.read = Some(self.read.map_or(read, |least| if read.address < least.address { read } else { least }));
        }
    }

    fn count(&self) -> String {
        let plural = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        format!("{} of {}", plural(self.warps, "warp"), plural(self.ctas.len() as u64, "CTA"))
    }
}

/// Sectors of which an L1 has other bytes than memory, by address.
fn stale(lines: &[CachedLine<'_>], memory: &FlatMemory) -> BTreeMap<u64, [u8; SECTOR]> {
    let mut stale = BTreeMap::new();
    for (line, valid, bytes) in lines {
        for (sector, bytes) in bytes.as_chunks::<SECTOR>().0.iter().enumerate().filter(|(at, _)| valid >> at & 1 == 1) {
            let address = line + (sector * SECTOR) as u64;
            if memory.slice(address, SECTOR).is_some_and(|there| there != bytes) {
                stale.insert(address, *bytes);
            }
        }
    }
    stale
}

/// What a warp repeats; none where it may get on.
fn repeated(
    warp: &ResidentWarp<'_>,
    residents: &Residents<'_>,
    memory: &mut FlatMemory,
    stale: &BTreeMap<u64, [u8; SECTOR]>,
) -> Option<WarpLoop> {
    if warp.loads.iter().any(|load| load.copies) {
        return None;
    }
    let mut shared = warp.shared.to_vec();
    let launch: &Launch = residents.launch;
    let caches_loads = residents.caches_loads;
    let mut around = Surroundings { launch, memory, shared: &mut shared, stale, caches_loads };
    let mut alone = warp.warp.clone().into_owned();
    let pending: Vec<(u32, u64)> = warp.loads.iter().map(|load| (load.pc, load.lanes)).collect();
    if !complete(&mut alone, &pending, &mut around) {
        return None;
    }
    // A store that is under way and none of the loop may change something yet.
    repeats(alone, &mut around).filter(|found| found.stores || !warp.stores)
}

fn told(launch: &Launch, [first, last]: [u32; 2], held_at: Option<u32>, group: &Alike) -> Repeating {
    let kernel = &launch.kernel;
    // The file is told once.
    let at = |pc: u32| {
        let pos = kernel.pos.get(pc as usize).copied().unwrap_or_default();
        format!("{}:{}", pos.line, pos.column)
    };
    let mut notes = Vec::new();
    if group.addresses.len() > 1 {
        notes.push(format!("they read {} different words, of which this is the first", group.addresses.len()));
    }
    if group.read.is_some_and(|read| read.stale) {
        notes.push("memory has another value than the L1, which they never look past".to_owned());
    }
    if let (Some(held_at), 1..) = (held_at, group.held) {
        let held = if group.held == 1 { "1 lane waits".to_owned() } else { format!("{} lanes wait", group.held) };
        notes.push(format!(
            "{held} at {} until the {} that repeat join: a warp executes one side of a branch to its end (a SIMT \
             stack). With independent thread scheduling (Volta and later) the others would go on",
            at(held_at),
            group.lanes
        ));
    }
    let read = group.read;
    let kind = |read: WarpRead| match kernel.code[read.pc as usize].op {
        Op::Mem(mem) if mem.kind == MemKind::Atomic => "an atomic",
        _ => "a load",
    };
    // Of several words the least stands for all.
    Repeating {
        who: format!("{} of kernel `{}`", group.count(), kernel.name),
        count: group.warps,
        place: match first == last {
            true => format!("{}:{}", kernel.file, at(first)),
            false => format!("{}:{} to {}", kernel.file, at(first), at(last)),
        },
        pcs: [first.into(), last.into()],
        instruction: read.map(|read| format!("{} at {}", kind(read), at(read.pc))).unwrap_or_default(),
        address: read.map(|read| read.address),
        object: read.map(|read| object(launch, read)).unwrap_or_default(),
        value: read.map(|read| read.value),
        failed_conditionals: 0,
        notes,
    }
}

/// The buffer that a word lies in, or its space, and where in it.
fn object(launch: &Launch, read: WarpRead) -> String {
    let (address, bytes) = (read.address, u64::from(read.bytes));
    match read.space {
        Space::Shared => format!("shared memory, byte {address}"),
        Space::Const => format!("constant memory, byte {address}"),
        _ => match launch.addresses.containing(address, address + bytes - 1) {
            Some(range) => {
                let (part, byte) = range.part(address);
                format!("byte {byte} of `{part}`")
            }
            None => format!("{address:#x}"),
        },
    }
}
