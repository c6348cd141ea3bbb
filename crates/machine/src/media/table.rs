//! Least times between the commands of a device, compiled: for each command that is issued which commands
//! wait for it, on which node and for how long; and, as state, when each node takes each command.
//!
//! ```text
//!   channel ─ rank, pseudo channel ─ ... ─ bank     of each and of each command: when it is ready
//! ```
//! A command is issued in one pass over its rules, each a maximum; whether one may come is a maximum over the
//! nodes of its bank. Source: Ramulator's constraint tables (scope, window, siblings). Invariants: nothing is
//! allocated after the table was made; a rule of a window keeps as many times as it is long.

use durawarp_checkpoint::state;
use durawarp_engine::{Clock, Time};

use crate::device::{Command, Device, Effect, RefreshPolicy};

/// Levels below a channel, and the channel itself.
const LEVELS: usize = 7;

/// A command as the table knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Opens a row of a bank.
    Open,
    /// Closes the row of a bank.
    Close,
    /// Column read.
    Read,
    /// Column write.
    Write,
    /// Closes all rows of what is refreshed together.
    CloseAll,
    /// Refreshes, as the policy has it.
    Refresh,
    /// Column read whose row is closed behind it.
    ReadClose,
    /// Column write whose row is closed behind it.
    WriteClose,
}

/// How many there are.
const ACTS: usize = 8;

/// From when a rule counts, for a request of several column commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// From the last of them.
    Last,
    /// From the first of them.
    First,
    /// From the first, the delay once for each.
    Each,
}

/// One least time, of the command whose list it is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    pub(super) after: Act,
    /// Whose node both share: 0 for the channel, then the device's levels.
    pub(super) level: u8,
    /// Nodes beside it are meant, of the same parent.
    pub(super) other: bool,
    pub(super) since: Since,
    pub(super) delay: Time,
}

/// A least time from an earlier activation below a node on: the `length`-th last.
#[derive(Debug, Clone, Copy)]
struct ActivationWindow {
    level: u8,
    length: u8,
    delay: Time,
    /// Where the times of the level's first node begin, and its head.
    ring: u32,
    head: u32,
}

impl ActivationWindow {
    /// Where in the rings a time of one of its nodes is.
    #[inline]
    fn place(&self, node: usize, nth: u8) -> usize {
        self.ring as usize + node * usize::from(self.length) + usize::from(nth)
    }
}

/// Commands and least times of a device.
#[derive(Debug, Clone)]
pub(super) struct CommandTimes {
    rules: [Vec<Rule>; ACTS],
    windows: Vec<ActivationWindow>,
    /// The nodes above each bank by level, and the bank's own.
    nodes: Vec<[u16; LEVELS]>,
    /// How many nodes each level has, and where they begin.
    levels: Vec<NodeLevel>,
    /// Levels between the channel and banks whose nodes hold a command back.
    held_at: [Vec<u8>; ACTS],
    /// The devices' commands by act, for those who read a list of them.
    commands: [Option<u8>; ACTS],
    /// When nodes take commands, those above banks.
    ready: Vec<[Time; ACTS]>,
    /// When each bank alone takes a command.
    banks: [Vec<Time>; ACTS],
    /// Times of windows: the next that a node forgets first.
    rings: Vec<Time>,
    /// Where the next time of a node's ring goes.
    heads: Vec<u8>,
}

state!(CommandTimes { saved: ready, banks, rings, heads; kept: rules, windows, nodes, levels, held_at, commands });

#[derive(Debug, Clone, Copy)]
struct NodeLevel {
    first: u16,
    /// Nodes of it in one node of the level above.
    count: u32,
}

/// Rules and windows before they have nodes.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: [Vec<Rule>; ACTS],
    windows: Vec<(u8, u8, Time)>,
    commands: [Option<u8>; ACTS],
}

impl Rules {
    /// Every command of `befores` holds back each of `afters` on a level.
    pub(super) fn all(&mut self, befores: &[Act], afters: &[Act], level: usize, since: Since, delay: Time) {
        for &before in befores {
            let rules = afters.iter().map(|&after| Rule { after, level: level as u8, other: false, since, delay });
            self.rules[before as usize].extend(rules);
        }
    }

    /// The rules of a device from a file, for a policy of refreshes; what its data bus orders is left to the
    /// bus.
    pub(super) fn of(device: &Device, refresh: RefreshPolicy, clock: Clock) -> Rules {
        let banks = device.organisation.levels.len();
        let used = device.refreshes.iter().find(|own| own.policy == refresh).map(|own| own.command);
        let act = |at: u8| act_of(&device.commands[usize::from(at)], banks, used == Some(at));
        let mut rules = Rules::default();
        (0..device.commands.len() as u8).for_each(|at| {
            if let Some(act) = act(at) {
                rules.commands[act as usize] = Some(at);
            }
        });
        for own in &device.constraints {
            let (Some(before), Some(after)) = (act(own.before), act(own.after)) else { continue };
            let level = own.scope.map_or(0, |scope| scope + 1);
            let delay = clock.cycles(u64::from(own.delay_cycles));
            if own.window > 1 {
                assert!(before == Act::Open && after == Act::Open, "windows are of activations");
                rules.windows.push((level, own.window, delay));
            } else if own.other || !same_way(before, after) || own.delay_cycles > slot_cycles(device, after) {
                let rule = Rule { after, level, other: own.other, since: Since::Last, delay };
                rules.rules[before as usize].push(rule);
            }
        }
        // A row stays open until it can be used: else two that are wanted in turn would close each other's
        // for ever, where cells are restored by writes and tRAS is 0.
        let uses = rules.rules[Act::Open as usize].iter().filter(|own| matches!(own.after, Act::Read | Act::Write));
        let kept: Vec<Rule> = uses.map(|own| Rule { after: Act::Close, ..*own }).collect();
        rules.rules[Act::Open as usize].extend(kept);
        rules
    }
}

/// Cycles that one column command keeps from others of its direction on its data bus: the burst, or more
/// where all banks of the bus are spaced by more.
pub(super) fn slot_cycles(device: &Device, act: Act) -> u32 {
    // Ranks share a bus, and are spaced among each other by rules of their own.
    let of_bus = device.organisation.bus_levels.max(1);
    let gaps = gaps(device, act).filter(|(level, _)| u32::from(*level) <= of_bus);
    gaps.map(|(_, cycles)| cycles).fold(device.organisation.burst_cycles, u32::max)
}

/// Cycles from one column command of a bank to its next of the direction, least.
pub(super) fn spacing_cycles(device: &Device, act: Act) -> u32 {
    gaps(device, act).map(|(_, cycles)| cycles).fold(device.organisation.burst_cycles, u32::max)
}

/// Levels at which column commands of a direction are spaced, and by how much.
fn gaps(device: &Device, act: Act) -> impl Iterator<Item = (u8, u32)> {
    let banks = device.organisation.levels.len();
    let of = move |at: u8| act_of(&device.commands[usize::from(at)], banks, false);
    let own = device.constraints.iter().filter(move |own| of(own.before) == Some(act) && of(own.after) == Some(act));
    own.filter(|own| !own.other).map(|own| (own.scope.map_or(0, |scope| scope + 1), own.delay_cycles))
}

/// Both are column commands of one direction.
pub(super) fn same_way(before: Act, after: Act) -> bool {
    let reads = |act| matches!(act, Act::Read | Act::ReadClose);
    let writes = |act| matches!(act, Act::Write | Act::WriteClose);
    reads(before) && reads(after) || writes(before) && writes(after)
}

/// What a device's command is to the table; none for refreshes by another policy.
fn act_of(command: &Command, banks: usize, refreshes: bool) -> Option<Act> {
    let of_bank = usize::from(command.target) + 1 == banks;
    match (command.effect, command.closes) {
        (Effect::Open, _) => Some(Act::Open),
        (Effect::Close, _) if of_bank => Some(Act::Close),
        (Effect::Close, _) => Some(Act::CloseAll),
        (Effect::Read, false) => Some(Act::Read),
        (Effect::Read, true) => Some(Act::ReadClose),
        (Effect::Write, false) => Some(Act::Write),
        (Effect::Write, true) => Some(Act::WriteClose),
        (Effect::Refresh, _) => refreshes.then_some(Act::Refresh),
    }
}

impl CommandTimes {
    /// Each level has `counts` nodes in one of the level above. The outermost level comes first, banks last.
    pub(super) fn new(counts: &[u32], rules: Rules) -> CommandTimes {
        assert!(counts.len() < LEVELS, "{} levels, {LEVELS} with the channel at most", counts.len());
        let levels = levels_of(counts);
        let of_bank = |bank: u32| {
            let (mut own, mut within) = ([0; LEVELS], bank);
            for (at, level) in levels.iter().enumerate().rev() {
                own[at] = level.first + within as u16;
                within /= level.count;
            }
            own
        };
        let nodes = (0..counts.iter().product()).map(of_bank).collect();
        CommandTimes::over(levels, nodes, rules)
    }

    /// Of so many banks, each in the group that is its number modulo the groups.
    pub(super) fn grouped(banks: u32, groups: u32, rules: Rules) -> CommandTimes {
        let of_bank = |bank: u32| {
            let mut own = [0; LEVELS];
            (own[1], own[2]) = ((1 + bank % groups) as u16, (1 + groups + bank) as u16);
            own
        };
        let level = |first: u32, count| NodeLevel { first: first as u16, count };
        let levels = vec![level(0, 1), level(1, groups), level(1 + groups, banks.div_ceil(groups))];
        CommandTimes::over(levels, (0..banks).map(of_bank).collect(), rules)
    }

    fn over(levels: Vec<NodeLevel>, nodes: Vec<[u16; LEVELS]>, rules: Rules) -> CommandTimes {
        // Each node of a window's level has a ring of its own, in one list.
        let (mut ring, mut head) = (0, 0);
        let windows = rules.windows.iter().map(|&(level, length, delay)| {
            let window = ActivationWindow { level, length, delay, ring, head };
            let nodes: u32 = levels[..=usize::from(level)].iter().map(|level| level.count).product();
            (ring, head) = (ring + nodes * u32::from(length), head + nodes);
            window
        });
        let windows: Vec<ActivationWindow> = windows.collect();
        let mut held_at: [Vec<u8>; ACTS] = Default::default();
        // What the channel holds back is asked for once, and what a bank does apart.
        let of_banks = levels.len() as u8 - 1;
        for rule in rules.rules.iter().flatten().filter(|rule| rule.level > 0 && rule.level < of_banks) {
            let at = &mut held_at[rule.after as usize];
            if !at.contains(&rule.level) {
                at.push(rule.level);
            }
        }
        CommandTimes {
            rules: rules.rules,
            windows,
            held_at,
            commands: rules.commands,
            ready: vec![[0; ACTS]; usize::from(levels.last().map_or(1, |level| level.first))],
            banks: std::array::from_fn(|_| vec![0; nodes.len()]),
            rings: vec![0; ring as usize],
            heads: vec![0; head as usize],
            nodes,
            levels,
        }
    }

    /// Banks of the device.
    pub(super) fn banks(&self) -> usize {
        self.nodes.len()
    }

    /// The index of a node of a level among those of the level.
    pub(super) fn index_at(&self, bank: usize, level: usize) -> usize {
        usize::from(self.nodes[bank][level] - self.levels[level].first)
    }

    /// The device's command, if it has one.
    pub(super) fn command(&self, act: Act) -> Option<u8> {
        self.commands[act as usize]
    }

    /// When the channel as a whole takes a command.
    #[inline]
    pub(super) fn of_channel(&self, act: Act) -> Time {
        self.ready[0][act as usize]
    }

    /// When a bank and what is above it, but not the channel, take a command.
    #[inline]
    pub(super) fn of_bank(&self, bank: usize, act: Act) -> Time {
        let mut least = self.banks[act as usize][bank];
        for &level in &self.held_at[act as usize] {
            least = least.max(self.ready[usize::from(self.nodes[bank][usize::from(level)])][act as usize]);
        }
        least
    }

    /// When each bank alone takes a command.
    #[inline]
    pub(super) fn of_banks(&self, act: Act) -> &[Time] {
        &self.banks[act as usize]
    }

    /// Levels between the channel and banks that hold a command back.
    #[inline]
    pub(super) fn held_at(&self, act: Act) -> &[u8] {
        &self.held_at[act as usize]
    }

    /// When a bank alone takes a command.
    #[inline]
    pub(super) fn of_bank_alone(&self, bank: usize, act: Act) -> Time {
        self.banks[act as usize][bank]
    }

    /// When a bank alone takes a write straight to its cells: it must not be opening or closing a row.
    #[inline]
    pub(super) fn of_cells(&self, bank: usize) -> Time {
        let of = |act| self.of_bank_alone(bank, act);
        of(Act::Write).max(of(Act::Close)).max(of(Act::Open))
    }

    /// When a bank can be opened: the times of `of_bank`, the channel's and the windows'.
    #[inline]
    pub(super) fn opens_at(&self, bank: usize) -> Time {
        self.opens_but_for_windows(bank).max(self.windows_at(bank))
    }

    /// The same without the windows.
    #[inline]
    pub(super) fn opens_but_for_windows(&self, bank: usize) -> Time {
        self.of_bank(bank, Act::Open).max(self.of_channel(Act::Open))
    }

    /// When windows let a bank be opened.
    #[inline]
    pub(super) fn windows_at(&self, bank: usize) -> Time {
        self.windows.iter().fold(0, |least, window| {
            let node = self.index_at(bank, usize::from(window.level));
            let oldest = self.rings[window.place(node, self.heads[window.head as usize + node])];
            least.max(if oldest > 0 { oldest - 1 + window.delay } else { 0 })
        })
    }

    /// A bank takes no command before `at`.
    pub(super) fn hold_bank(&mut self, bank: usize, acts: &[Act], at: Time) {
        for &act in acts {
            let ready = &mut self.banks[act as usize][bank];
            *ready = at.max(*ready);
        }
    }

    /// A command goes to a bank, or as several of a request: the first at `first`, the last at `last`.
    #[inline]
    pub(super) fn issue(&mut self, act: Act, bank: usize, first: Time, last: Time, commands: u32) {
        let of_banks = self.levels.len() - 1;
        for rule in &self.rules[act as usize] {
            let at = match rule.since {
                Since::Last => last + rule.delay,
                Since::First => first + rule.delay,
                Since::Each => first + rule.delay * Time::from(commands),
            };
            let level = usize::from(rule.level);
            if rule.other {
                for node in self.siblings(bank, level) {
                    let ready = &mut self.ready[node][rule.after as usize];
                    *ready = at.max(*ready);
                }
                continue;
            }
            let ready = match level {
                0 => &mut self.ready[0][rule.after as usize],
                level if level == of_banks => &mut self.banks[rule.after as usize][bank],
                level => &mut self.ready[usize::from(self.nodes[bank][level])][rule.after as usize],
            };
            *ready = at.max(*ready);
        }
        if act == Act::Open {
            self.count_in_windows(bank, first);
        }
    }

    /// Nodes of a level beside that of a bank, which have the same parent.
    fn siblings(&self, bank: usize, level: usize) -> impl Iterator<Item = usize> + use<> {
        let own = usize::from(self.nodes[bank][level]);
        let NodeLevel { first, count } = self.levels[level];
        let within = (own - usize::from(first)) / count as usize * count as usize + usize::from(first);
        (within..within + count as usize).filter(move |&node| node != own)
    }

    /// Windows know of an activation. A time is kept as one more, so that none is 0.
    fn count_in_windows(&mut self, bank: usize, at: Time) {
        for at_window in 0..self.windows.len() {
            let window = self.windows[at_window];
            let node = self.index_at(bank, usize::from(window.level));
            let head = &mut self.heads[window.head as usize + node];
            self.rings[window.place(node, *head)] = at + 1;
            *head = (*head + 1) % window.length;
        }
    }
}

/// Levels, the channel first, of so many nodes in one of the level above.
fn levels_of(counts: &[u32]) -> Vec<NodeLevel> {
    let mut levels = vec![NodeLevel { first: 0, count: 1 }];
    let (mut nodes, mut first) = (1, 1);
    for &count in counts {
        levels.push(NodeLevel { first: first as u16, count });
        nodes *= count;
        first += nodes;
    }
    levels
}

/// Slots of its command bus that a command takes.
pub(super) fn slots(device: &Device, act: Act) -> u32 {
    let banks = device.organisation.levels.len();
    let own = device.commands.iter().find(|command| act_of(command, banks, false) == Some(act));
    own.map_or(1, |command| command.cycles)
}
