//! A machine while it is simulated, as plain data: what it has counted, how full its queues are, and who
//! waits for what. Made between two events of the simulation, to be watched; nothing of it changes a result.
//!
//! Components of a kind are summed up. What waits is put together by its kind (warps of SMs) and by what it
//! waits for, numbers in both left out, and of each group the one that has waited longest is told in full.

use std::any::Any;
use std::collections::BTreeMap;

use serde::Serialize;

use super::end::Clocks;
use durawarp_engine::{ComponentId, Inspection, Time, Wait};
use durawarp_machine::core::Core;
use durawarp_machine::home::HomeSlice;
use durawarp_machine::l2::L2Slice;
use durawarp_machine::memory_controller::MemoryController;
use durawarp_machine::queue_level::QueueLevel;
use durawarp_machine::sm::Sm;

/// Groups of waits that are told, those with the most waits first.
const GROUPS: usize = 16;

/// A machine between two events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LiveState {
    /// How far it is (core cycles).
    pub core_cycles: u64,
    /// The same (ps).
    pub simulated_ps: u64,
    /// Events handled.
    pub events: u64,
    /// Threads at work.
    pub threads: usize,
    /// CTAs that have ended (CTAs).
    pub ctas_done: u64,
    /// What was counted since the run began.
    pub counts: LiveCounts,
    /// Queues by kind.
    pub queues: Vec<LiveQueue>,
    /// Who waits for what: the largest groups, the largest first.
    pub waits: Vec<LiveWait>,
    /// The simulation is over.
    pub over: bool,
}

/// What all components together have counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LiveCounts {
    /// Instructions; of GPUs warp instructions.
    pub instructions: u64,
    /// Loads that looked into a first-level cache: of SMs lines, of cores instructions.
    pub l1_loads: u64,
    /// Of these, that hit.
    pub l1_hits: u64,
    /// Reads that looked into the shared cache.
    pub l2_reads: u64,
    /// Of these, that hit.
    pub l2_hits: u64,
    /// Read from and written to DRAM (bytes).
    pub dram_bytes: u64,
    /// Read from and written to NVM (bytes).
    pub nvm_bytes: u64,
}

/// Queues of a kind, one a component.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LiveQueue {
    /// What they are.
    pub name: String,
    /// The component whose queue is the fullest.
    pub fullest: String,
    /// Entries of that in use.
    pub entries: u64,
    /// Entries that it has.
    pub capacity: u64,
    /// Entries of all in use.
    pub all_entries: u64,
    /// Entries that all have.
    pub all_capacity: u64,
}

/// Waits of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LiveWait {
    /// What waits: a kind of component and of what is in it.
    pub who: String,
    /// What for, with N for numbers.
    pub what: String,
    /// How many.
    pub count: u64,
    /// The one that has waited longest, in full where numbers were left out.
    pub longest: String,
    /// For how long (core cycles); 0 where that is not known.
    pub core_cycles: u64,
}

/// What was seen, in the units of users.
pub(super) fn state(seen: &Inspection<'_>, clocks: Clocks) -> LiveState {
    let now = seen.snapshot.time;
    let duration = clocks.duration(now);
    let mut found = Gathered::default();
    for &(name, component) in &seen.components {
        found.add(name, component);
    }
    LiveState {
        core_cycles: duration.core_cycles,
        simulated_ps: duration.ps,
        events: seen.snapshot.events,
        threads: seen.snapshot.workers,
        ctas_done: seen.snapshot.progress.steps_done,
        counts: found.counts,
        queues: found.queues,
        waits: waits(&seen.waits, &seen.components, |since| {
            if since == 0 { 0 } else { clocks.duration(now.saturating_sub(since)).core_cycles }
        }),
        over: seen.over,
    }
}

#[derive(Default)]
struct Gathered {
    counts: LiveCounts,
    queues: Vec<LiveQueue>,
}

impl Gathered {
    fn add(&mut self, name: &str, component: &dyn Any) {
        // A component is of one kind. What else a machine has (hub, switches, OS) counts nothing of this.
        let counts = &mut self.counts;
        if let Some(sm) = component.downcast_ref::<Sm>() {
            let counted = sm.counters();
            counts.instructions += counted.warp_instructions;
            counts.l1_loads += counted.l1_loads;
            counts.l1_hits += counted.l1_hits;
            self.add_queues(name, &sm.queues());
        } else if let Some(slice) = component.downcast_ref::<L2Slice>() {
            counts.l2_reads += slice.counters().reads;
            counts.l2_hits += slice.counters().read_hits;
            self.add_queues(name, &slice.queues());
        } else if let Some(core) = component.downcast_ref::<Core>() {
            let counted = core.counters();
            counts.instructions += counted.instructions;
            counts.l1_loads += counted.loads;
            counts.l1_hits += counted.loads.saturating_sub(counted.l1_load_misses);
            self.add_queues(name, &core.queues());
        } else if let Some(home) = component.downcast_ref::<HomeSlice>() {
            // Requests whose turn has come: those that wait for it are neither.
            counts.l2_reads += home.counters().get_hits + home.counters().fetches;
            counts.l2_hits += home.counters().get_hits;
            self.add_queues(name, &home.queues());
        } else if let Some(controller) = component.downcast_ref::<MemoryController>() {
            let counted = controller.counters();
            counts.dram_bytes += counted.dram_read_bytes + counted.dram_written_bytes;
            counts.nvm_bytes += counted.nvm_read_bytes + counted.nvm_written_bytes;
            self.add_queues(name, &controller.queues());
        }
    }

    fn add_queues(&mut self, component: &str, levels: &[QueueLevel]) {
        for level in levels {
            let at = self.queues.iter().position(|queue| queue.name == level.name).unwrap_or_else(|| {
                self.queues.push(LiveQueue { name: level.name.to_owned(), ..LiveQueue::default() });
                self.queues.len() - 1
            });
            let queue = &mut self.queues[at];
            queue.all_entries += level.entries;
            queue.all_capacity += level.capacity;
            // The first of equals stays.
            let fuller = level.entries * queue.capacity > queue.entries * level.capacity;
            if queue.capacity == 0 || fuller {
                (queue.entries, queue.capacity) = (level.entries, level.capacity);
                component.clone_into(&mut queue.fullest);
            }
        }
    }
}

/// Waits in groups. `cycles_since` says how long ago an instant was, 0 for one that is not known.
fn waits(
    all: &[(ComponentId, String, Wait)],
    components: &[(&str, &dyn Any)],
    cycles_since: impl Fn(Time) -> u64,
) -> Vec<LiveWait> {
    let mut groups: BTreeMap<(String, String), LiveWait> = BTreeMap::new();
    for (_, name, wait) in all {
        // Most components do not know whose turn it is: then the words alone say what for.
        let on = wait.on.and_then(|on| components.get(on.0 as usize)).map(|(on, _)| format!(", {on}"));
        let on = on.unwrap_or_default();
        let (who, what) = (
            format!("{} {}", kind_of_component(name), kind(&wait.who)),
            format!("{}{on}", without_numbers(&wait.what)),
        );
        let cycles = cycles_since(wait.since);
        let group = groups.entry((who, what)).or_default();
        group.count += 1;
        if group.count == 1 || cycles > group.core_cycles {
            group.core_cycles = cycles;
            let in_full =
                if without_numbers(&wait.what) == wait.what { String::new() } else { format!(": {}", wait.what) };
            group.longest = format!("{name}, {}{in_full}", wait.who);
        }
    }
    let named = groups.into_iter().map(|((who, what), group)| LiveWait { who, what, ..group });
    let mut named: Vec<LiveWait> = named.collect();
    // Stable: groups of one size stay in the order of their words, and the page does not jump.
    named.sort_by_key(|group| std::cmp::Reverse(group.count));
    named.truncate(GROUPS);
    named
}

/// A component's name without its number: "l2" of "l2.3".
fn kind_of_component(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('.')
}

/// The words before the first number, or those after it where there are none: "warp" of "warp 3 of CTA 17".
fn kind(text: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit();
    let end = text.find(is_number).unwrap_or(text.len());
    let trimmed = |part: &str| part.trim_matches([' ', ',', '.', ':']).to_owned();
    match trimmed(&text[..end]) {
        before if before.is_empty() => trimmed(text[end..].trim_start_matches(is_number)),
        before => before,
    }
}

/// The same words with N for those that begin with a digit.
fn without_numbers(text: &str) -> String {
    let word = |word: &str| {
        let number = word.starts_with(|c: char| c.is_ascii_digit());
        if !number {
            return word.to_owned();
        }
        let end = word.trim_end_matches([',', ':', '.', ';']).len();
        format!("N{}", &word[end..])
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(component: &str, who: &str, what: &str, since: Time) -> (ComponentId, String, Wait) {
        (ComponentId(0), component.to_owned(), Wait { who: who.to_owned(), what: what.to_owned(), on: None, since })
    }

    #[test]
    fn waits_are_put_together_by_kind_and_the_longest_is_told_in_full() {
        let all = [
            wait("sm0", "warp 3 of CTA 17 at gemm.ptx:41:2", "4 stores and 2 loads to be performed", 70),
            wait("sm1", "warp 5 of CTA 2 at gemm.ptx:40:2", "1 stores and 0 loads to be performed", 40),
            wait("l2.3", "8 requests", "the fill of line 0x80", 0),
        ];
        let told = waits(&all, &[], |since| if since == 0 { 0 } else { 100 - since });
        let group = |who: &str, what: &str, count, longest: &str, core_cycles| LiveWait {
            who: who.to_owned(),
            what: what.to_owned(),
            count,
            longest: longest.to_owned(),
            core_cycles,
        };
        let longest = "sm1, warp 5 of CTA 2 at gemm.ptx:40:2: 1 stores and 0 loads to be performed";
        assert_eq!(
            told,
            [
                group("sm warp", "N stores and N loads to be performed", 2, longest, 60),
                group("l2 requests", "the fill of line N", 1, "l2.3, 8 requests: the fill of line 0x80", 0),
            ]
        );
    }

    #[test]
    fn of_the_queues_of_a_kind_the_fullest_is_named_and_all_are_summed() {
        let mut found = Gathered::default();
        for (name, entries) in [("mc0", 3), ("mc1", 9), ("mc2", 9)] {
            found.add_queues(name, &[QueueLevel { name: "WPQ", entries, capacity: 32 }]);
        }
        let [queue] = &found.queues[..] else { panic!("{:?}", found.queues) };
        assert_eq!((queue.fullest.as_str(), queue.entries, queue.capacity), ("mc1", 9, 32));
        assert_eq!((queue.all_entries, queue.all_capacity), (21, 96));
    }
}
