//! Holds a list of commands against a device's table: every violation is told, with the rule that it breaks.
//!
//! Source: the device's file, read by `table`, and what JEDEC's standards say of every device in common:
//!
//! | violation | of |
//! |---|---|
//! | too early | a least time of the table |
//! | slot taken | two commands in one slot of a command bus |
//! | row not open | a column command to a bank without a row, or with another one |
//! | row open | an activation of a bank with a row, or a refresh of it |
//! | refreshing | a command to what a refresh keeps busy |
//! | bursts overlap | data of two column commands on one data bus |
//! | refresh late | the time between two refreshes of a target, or before the first or after the last |
//!
//! Invariants: it shares no code with the simulator; it keeps for each rule and node as many times as the
//! rule looks back, so that a list of `n` takes `n` times the rules of a command times their windows. Not
//! checked: what a column command carries, power.

use std::collections::VecDeque;
use std::fmt;

use crate::table::{DeviceTable, Does};

/// A command as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Given {
    /// Cycle of its first slot.
    pub(crate) at: u64,
    /// Number of the command in the table.
    pub(crate) command: usize,
    /// Its place at each level, down to its target; the group of a same-bank command says nothing.
    pub(crate) path: Vec<usize>,
    /// Row of what is opened, read or written.
    pub(crate) row: u32,
}

/// How a list breaks the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    TooEarly { rule: String, by: u64 },
    SlotTaken,
    RowNotOpen,
    RowOpen,
    Refreshing { by: u64 },
    BurstsOverlap { by: u64 },
    RefreshLate { by: u64 },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    /// Which command of the list, in the order of time; their number where the list ends too soon.
    pub(crate) number: usize,
    pub(crate) fault: Fault,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "command {}: {:?}", self.number, self.fault)
    }
}

/// Which refreshes must be there.
#[derive(Debug, Clone)]
pub(crate) struct RefreshDue<'a> {
    /// Name of the policy.
    pub(crate) policy: &'a str,
    /// Refreshes that may be put off.
    pub(crate) postponed: u64,
    /// The cycle at which the list ends.
    pub(crate) end: u64,
}

/// Every violation of a list, by the order of the commands' times.
pub(crate) fn check(table: &DeviceTable, commands: &[Given], due: Option<&RefreshDue<'_>>) -> Vec<Violation> {
    let mut sorted: Vec<&Given> = commands.iter().collect();
    sorted.sort_by_key(|given| given.at);
    let mut checker = Checker::new(table);
    for (number, given) in sorted.iter().enumerate() {
        checker.number = number;
        checker.take(given);
    }
    if let Some(due) = due {
        checker.number = sorted.len();
        checker.refreshes(&sorted, due);
    }
    checker.found
}

struct Checker<'t> {
    table: &'t DeviceTable,
    number: usize,
    found: Vec<Violation>,
    /// Rules of each command, as the later one and as the earlier one.
    later: Vec<Vec<usize>>,
    earlier: Vec<Vec<usize>>,
    /// By rule and node: cycles behind the last slots of the last commands, as many as the window is long.
    seen: Vec<Vec<VecDeque<u64>>>,
    /// When the row bus and the column bus are free; the first alone where there is one.
    slot_free: [u64; 2],
    rows: Vec<Option<u32>>,
    /// By bank: the cycle behind the last slot of its next command, at the earliest.
    busy: Vec<u64>,
    /// By data bus: the last bursts, from and to.
    bursts: Vec<VecDeque<(u64, u64)>>,
}

/// Bursts that are kept of a data bus: none is so late that as many others begin before it.
const BURSTS: usize = 32;

impl<'t> Checker<'t> {
    fn new(table: &'t DeviceTable) -> Self {
        let nodes = |depth: usize| table.counts[..depth].iter().product::<usize>();
        let rules_of = |is: &dyn Fn(usize, usize) -> bool| -> Vec<Vec<usize>> {
            let of = |command| (0..table.least_times.len()).filter(|&rule| is(command, rule)).collect();
            (0..table.commands.len()).map(of).collect()
        };
        Checker {
            table,
            number: 0,
            found: Vec::new(),
            later: rules_of(&|command, rule| table.least_times[rule].after.contains(&command)),
            earlier: rules_of(&|command, rule| table.least_times[rule].before.contains(&command)),
            seen: table.least_times.iter().map(|rule| vec![VecDeque::new(); nodes(rule.depth)]).collect(),
            slot_free: [0; 2],
            rows: vec![None; table.banks()],
            busy: vec![0; table.banks()],
            bursts: vec![VecDeque::new(); nodes(table.bus_depth)],
        }
    }

    fn tell(&mut self, fault: Fault) {
        self.found.push(Violation { number: self.number, fault });
    }

    fn take(&mut self, given: &Given) {
        let kind = &self.table.commands[given.command];
        let banks = banks_of(self.table, given);
        self.least_times(given, &banks);
        let column = matches!(kind.does, Does::Reads | Does::Writes);
        let bus = usize::from(self.table.two_command_buses && column);
        if given.at < self.slot_free[bus] {
            self.tell(Fault::SlotTaken);
        }
        self.slot_free[bus] = given.at + kind.slots;
        let busy = banks.iter().map(|&bank| self.busy[bank]).max().expect("a target has a bank");
        let end = given.at + kind.slots;
        if end < busy {
            self.tell(Fault::Refreshing { by: busy - end });
        }
        if column {
            self.burst(given, banks[0]);
        }
        for bank in banks {
            let open = self.rows[bank];
            match kind.does {
                Does::Opens if open.is_some() => self.tell(Fault::RowOpen),
                Does::Refreshes if open.is_some() => self.tell(Fault::RowOpen),
                Does::Reads | Does::Writes if open != Some(given.row) => self.tell(Fault::RowNotOpen),
                _ => {}
            }
            match kind.does {
                Does::Opens => self.rows[bank] = Some(given.row),
                Does::Closes => self.rows[bank] = None,
                Does::Reads | Does::Writes if kind.closes => self.rows[bank] = None,
                Does::Reads | Does::Writes => {}
                Does::Refreshes => self.busy[bank] = end + kind.busy,
            }
        }
    }

    /// Asks every rule for the command, then adds it to what rules have seen.
    fn least_times(&mut self, given: &Given, banks: &[usize]) {
        let table = self.table;
        let end = given.at + table.commands[given.command].slots;
        for &rule in &self.later[given.command].clone() {
            let least = &table.least_times[rule];
            let own = nodes_of(table, banks, least.depth);
            let nodes = if least.other { siblings(table, &own, least.depth) } else { own };
            let last = |node: usize| self.seen[rule][node].iter().rev().nth(least.window - 1);
            let earliest = nodes.into_iter().filter_map(last).map(|before| before + least.delay).max().unwrap_or(0);
            if end < earliest {
                self.tell(Fault::TooEarly { rule: least.text.clone(), by: earliest - end });
            }
        }
        for &rule in &self.earlier[given.command].clone() {
            let least = &table.least_times[rule];
            for node in nodes_of(table, banks, least.depth) {
                let seen = &mut self.seen[rule][node];
                seen.push_back(end);
                if seen.len() > least.window {
                    seen.pop_front();
                }
            }
        }
    }

    fn burst(&mut self, given: &Given, bank: usize) {
        let table = self.table;
        let reads = table.commands[given.command].does == Does::Reads;
        let from = given.at + if reads { table.read } else { table.write };
        let to = from + table.burst;
        let bursts = &mut self.bursts[node_of(table, bank, table.bus_depth)];
        let shared = |&(other_from, other_to): &(u64, u64)| other_to.min(to).saturating_sub(other_from.max(from));
        let by = bursts.iter().map(shared).max().unwrap_or(0);
        bursts.push_back((from, to));
        if bursts.len() > BURSTS {
            bursts.pop_front();
        }
        if by > 0 {
            self.tell(Fault::BurstsOverlap { by });
        }
    }

    /// Each bank is refreshed often enough.
    fn refreshes(&mut self, sorted: &[&Given], due: &RefreshDue<'_>) {
        let table = self.table;
        let own = table.refreshed.iter().find(|own| own.policy == due.policy).expect("the policy");
        let kind = &table.commands[own.command];
        // A round is over when each target of a rank had its turn: a rank is the first level.
        let of_rank: usize = table.counts[1..].iter().product();
        let at_once: usize = match kind.same_bank {
            true => table.counts[1..table.counts.len() - 1].iter().product(),
            false => table.counts[kind.depth..].iter().product(),
        };
        let round = own.every * (of_rank / at_once).max(1) as u64;
        // A refresh that is due waits for what is under way: a row just opened is written and closed.
        let most = |name: &str| table.timing.get(name).copied().unwrap_or(0);
        let closing = most("RC") + table.write + table.burst + most("WR") + most("RP");
        let least = round + own.every * due.postponed + 2 * closing;
        let mut last = vec![0; table.banks()];
        let mut late = Vec::new();
        for (number, given) in sorted.iter().enumerate().filter(|(_, given)| given.command == own.command) {
            for bank in banks_of(table, given) {
                late.push((number, (given.at - last[bank]).saturating_sub(least)));
                last[bank] = given.at;
            }
        }
        late.extend(last.iter().map(|last| (sorted.len(), due.end.saturating_sub(*last).saturating_sub(least))));
        late.retain(|(_, by)| *by > 0);
        // One for all banks of a command.
        late.dedup();
        self.found.extend(late.into_iter().map(|(number, by)| Violation { number, fault: Fault::RefreshLate { by } }));
    }
}

/// Banks that a command is for.
fn banks_of(table: &DeviceTable, given: &Given) -> Vec<usize> {
    let kind = &table.commands[given.command];
    assert_eq!(given.path.len(), kind.depth, "the path of {}: {given:?}", kind.name);
    let shared = if kind.same_bank { table.counts.len() - 2 } else { kind.depth };
    let target = given.path[..shared].iter().zip(&table.counts).fold(0, |node, (own, count)| node * count + own);
    let below: usize = table.counts[shared..].iter().product();
    let all = target * below..(target + 1) * below;
    match (kind.same_bank, given.path.last(), table.counts.last()) {
        (true, Some(own), Some(count)) => all.filter(|bank| bank % count == *own).collect(),
        _ => all.collect(),
    }
}

/// A bank's place at each level.
pub(crate) fn path_of(table: &DeviceTable, bank: usize) -> Vec<usize> {
    (1..=table.counts.len()).map(|depth| node_of(table, bank, depth) % table.counts[depth - 1]).collect()
}

/// The node of a bank at a depth, among all of that depth.
fn node_of(table: &DeviceTable, bank: usize, depth: usize) -> usize {
    bank / table.counts[depth..].iter().product::<usize>()
}

/// The nodes of banks at a depth, each once.
fn nodes_of(table: &DeviceTable, banks: &[usize], depth: usize) -> Vec<usize> {
    let mut nodes: Vec<usize> = banks.iter().map(|&bank| node_of(table, bank, depth)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Nodes beside these, of the same parents.
fn siblings(table: &DeviceTable, nodes: &[usize], depth: usize) -> Vec<usize> {
    let count = table.counts[depth - 1];
    let all = nodes.iter().flat_map(|node| node / count * count..(node / count + 1) * count);
    all.filter(|node| !nodes.contains(node)).collect()
}
