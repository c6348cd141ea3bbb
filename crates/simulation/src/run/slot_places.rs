//! What cores noted of their dispatch slots, with the names of functions: the most are kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::assemble::Assembly;
use crate::outcome::{FunctionSlots, HartSlots, PlaceSlots, SlotPlaces};
use durawarp_machine::core::LostSlots;
use durawarp_riscv::elf::Executable;

/// Functions, and pairs of instruction and cause, that are kept.
const MOST: usize = 64;

/// Slots of a machine whose cores have so many harts. Cores and harts are numbered over all servers.
pub(super) fn of(machine: &Assembly, harts: u32, image: &Executable) -> SlotPlaces {
    let mut by_hart = Vec::new();
    let mut by_place: BTreeMap<(u64, &'static str), u64> = BTreeMap::new();
    for (core, kept) in (0..).zip(machine.cores().map(|core| core.places())) {
        let Some(kept) = kept.filter(|kept| kept.used().any(|slots| slots > 0)) else { continue };
        let hart = |(index, used): (u32, u64)| HartSlots {
            hart: core * harts + index,
            core,
            used,
            spinning_cycles: kept.spun_cycles(index as usize),
            ..HartSlots::default()
        };
        // Places name harts of their core.
        let first = by_hart.len();
        by_hart.extend((0..).zip(kept.used()).map(hart));
        for LostSlots { hart, cause, pc, slots } in kept.lost() {
            if let Some(hart) = by_hart.get_mut(first + usize::from(hart)) {
                *hart.lost.entry(cause.to_owned()).or_default() += slots;
            }
            if cause != "idle" {
                *by_place.entry((pc, cause)).or_default() += slots;
            }
        }
    }
    let mut functions: BTreeMap<String, FunctionSlots> = BTreeMap::new();
    let mut places = Vec::new();
    // Names are looked up once a place: functions are sums over their instructions.
    for ((pc, cause), slots) in by_place {
        let symbol = image.symbol(pc);
        let place = image.code_name(pc);
        let function = symbol.map_or_else(|| place.clone(), |(name, _)| name);
        let entry = functions.entry(function.clone()).or_default();
        entry.function = function;
        *entry.lost.entry(cause.to_owned()).or_default() += slots;
        places.push(PlaceSlots { pc, place, cause: cause.to_owned(), slots });
    }
    let mut functions: Vec<FunctionSlots> = functions.into_values().collect();
    // A stable sort: what ties stays in the order of names and addresses.
    functions.sort_by_key(|function| Reverse(function.total()));
    places.sort_by_key(|place| Reverse(place.slots));
    let left_out = [functions.len(), places.len()].map(|all| all.saturating_sub(MOST) as u64);
    functions.truncate(MOST);
    places.truncate(MOST);
    SlotPlaces { harts: by_hart, functions, places, left_out: left_out.into() }
}
