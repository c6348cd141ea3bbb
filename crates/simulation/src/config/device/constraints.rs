//! Commands, least times between them, and refresh, from a device file.
//!
//! A constraint is a line of its scope's list: `"BEFORE,.. > AFTER,.. : DELAY"`, followed by `; window N`
//! when it counts from the N-th last, and by `; other` when the two share what lies above the scope's node,
//! but not the node. The delay is between the last slots of the two; [`Constraint::delay_cycles`] is between
//! the first ones.

use std::ops::Range;

use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, Place, TomlTable, Value};
use durawarp_base::spec::Picojoules;
use durawarp_machine::device::{Command, Constraint, Effect, Refresh, RefreshPolicy};

use super::organisation::{no_level, texts};
use super::timing::Timings;

/// Words of effects, as files have them, in the order of [`Effect`].
pub(super) const EFFECTS: [&str; 5] = ["open", "close", "read", "write", "refresh"];

/// Words of the policies of refresh, as files have them.
pub(super) const POLICIES: [&str; 3] = ["all_bank", "per_bank", "same_bank"];

/// The word of a policy, as files have it.
pub(super) fn word_of(policy: RefreshPolicy) -> &'static str {
    match policy {
        RefreshPolicy::None => "none",
        RefreshPolicy::AllBank => POLICIES[0],
        RefreshPolicy::PerBank => POLICIES[1],
        RefreshPolicy::SameBank => POLICIES[2],
    }
}

/// Most commands of a device or of a list, and most commands that a window has.
const MOST: usize = 64;

/// Most constraints between two commands.
const MOST_CONSTRAINTS: usize = 8192;

/// The commands of the table `[commands]`.
pub(super) fn commands(root: TomlTable<'_>, levels: &[(String, u32)], faults: &mut Diagnostics) -> Vec<Command> {
    let mut commands = Vec::new();
    let entries = root.table("commands").into_iter().flat_map(TomlTable::entries);
    for (name, place, item) in entries {
        let Some(table) = item.table() else { continue };
        let word = table.text("effect").map_or("", |(word, _)| word);
        let effects = [Effect::Open, Effect::Close, Effect::Read, Effect::Write, Effect::Refresh];
        let effect = EFFECTS.iter().position(|effect| *effect == word).map_or(Effect::Refresh, |nth| effects[nth]);
        let target = table.text("target").and_then(|(level, place)| {
            let found = levels.iter().position(|(name, _)| name == level);
            if found.is_none() {
                faults.push(no_level(level, &place, levels));
            }
            found.map(|nth| (nth, place))
        });
        // Rows are of banks, which are the last level.
        let is_of_bank = target.as_ref().is_none_or(|(nth, _)| nth + 1 == levels.len());
        if let (Effect::Open | Effect::Read | Effect::Write, false, Some((_, place))) = (effect, is_of_bank, &target) {
            faults.push(place.fault("what opens, reads or writes a row is for a bank"));
        }
        let flag = |key: &str| table.get(key).and_then(Item::boolean).unwrap_or(false);
        let (same_bank, closes) = (flag("same_bank"), flag("closes"));
        if closes && !matches!(effect, Effect::Read | Effect::Write) {
            faults.push(place.fault(format!("`{name}` is no column command, which alone closes its row behind it")));
        }
        let cycles = table.get("cycles").and_then(Item::number).map_or(1, Value::bits);
        if !(1..=8).contains(&cycles) {
            faults.push(place.fault(format!("`{name}` takes {cycles} slots of the command bus; 1 to 8 are expected")));
        }
        // A placeholder where the level is wrong, which has been told.
        let target = target.map_or(0, |(nth, _)| nth as u8);
        let cycles = cycles.clamp(1, 8) as u32;
        commands.push(Command { name: name.to_owned(), effect, target, same_bank, cycles, closes });
    }
    if commands.len() > MOST
        && let Some(table) = root.table("commands")
    {
        faults.push(table.place().fault(format!("a device has up to {MOST} commands")));
        commands.truncate(MOST);
    }
    commands
}

/// The lists of the table `[constraints]`.
pub(super) fn constraints(
    root: TomlTable<'_>,
    levels: &[(String, u32)],
    commands: &[Command],
    timings: &mut Timings<'_>,
    faults: &mut Diagnostics,
) -> Vec<Constraint> {
    let mut all = Vec::new();
    for (name, place, item) in root.table("constraints").into_iter().flat_map(TomlTable::entries) {
        let scope = levels.iter().position(|(level, _)| level == name).map(|nth| nth as u8);
        if scope.is_none() && name != "channel" {
            faults.push(no_level(name, &place, levels));
        }
        for (text, place) in texts(Some(item)) {
            let mut line = ConstraintText { text, place, commands, faults };
            let Some(parsed) = line.parse() else { continue };
            if parsed.other && scope.is_none() {
                line.fault(0..text.len(), "`other` is of a level: there is no other channel");
            }
            // The media keep the times of a window for activations alone.
            let opens = |nth: &u8| commands[usize::from(*nth)].effect == Effect::Open;
            if parsed.window > 1 && !parsed.before.iter().chain(&parsed.after).all(opens) {
                line.fault(0..text.len(), "a window is of commands that open rows");
            }
            let place = line.place;
            // The file has the time between the last slots of the two commands.
            let Some(delay) = timings.evaluate(place.clone(), text, parsed.delay) else { continue };
            if all.len() + parsed.before.len() * parsed.after.len() > MOST_CONSTRAINTS {
                faults.push(place.fault(format!("a device has up to {MOST_CONSTRAINTS} constraints of two commands")));
                return all;
            }
            let line = place.fault("").span.line;
            for &before in &parsed.before {
                for &after in &parsed.after {
                    let slots = |nth: u8| i64::from(commands[usize::from(nth)].cycles);
                    let delay = (delay + slots(before) - slots(after)).clamp(0, i64::from(u32::MAX));
                    let (other, window) = (parsed.other, parsed.window);
                    let delay_cycles = delay as u32;
                    all.push(Constraint { before, after, scope, other, delay_cycles, window, line });
                }
            }
        }
    }
    all
}

/// A constraint as it is written.
struct ConstraintText<'l> {
    text: &'l str,
    place: Place,
    commands: &'l [Command],
    faults: &'l mut Diagnostics,
}

struct Parsed {
    before: Vec<u8>,
    after: Vec<u8>,
    /// Where in the text the delay is.
    delay: Range<usize>,
    other: bool,
    window: u8,
}

impl ConstraintText<'_> {
    fn fault(&mut self, at: Range<usize>, message: impl Into<String>) {
        self.faults.push(self.place.inside(self.text, at).fault(message));
    }

    fn parse(&mut self) -> Option<Parsed> {
        let text = self.text;
        let ends = text.find('>').zip(text.find(':')).filter(|(arrow, colon)| arrow < colon);
        let Some((arrow, colon)) = ends else {
            self.fault(0..text.len(), "a constraint is \"BEFORE,.. > AFTER,.. : DELAY\", then `; window N`, `; other`");
            return None;
        };
        let end = text.find(';').filter(|&end| end > colon).unwrap_or(text.len());
        let (before, after) = (self.named(0..arrow), self.named(arrow + 1..colon));
        let (mut other, mut window) = (false, 1);
        let mut start = end + 1;
        for word in text.get(start..).into_iter().flat_map(|words| words.split(';')) {
            let at = start..start + word.len();
            start = at.end + 1;
            match word.trim().split_once(' ').map_or((word.trim(), ""), |(word, n)| (word, n.trim())) {
                ("other", "") => other = true,
                ("window", number) if number.parse().is_ok_and(|n: u8| (2..=MOST as u8).contains(&n)) => {
                    window = number.parse().unwrap_or(window);
                }
                _ => self.fault(at, format!("expected `window N` from 2 to {MOST}, or `other`")),
            }
        }
        let delay = &text[colon + 1..end];
        let from = colon + 1 + delay.len() - delay.trim_start().len();
        let delay = from..from + delay.trim().len();
        Some(Parsed { before: before?, after: after?, delay, other, window })
    }

    /// The commands that are named between commas.
    fn named(&mut self, list: Range<usize>) -> Option<Vec<u8>> {
        let mut found = Vec::new();
        let mut start = list.start;
        let text = &self.text[list];
        let names = text.split(',');
        let expected = names.clone().count();
        if expected > MOST {
            self.fault(start..start + text.len(), format!("a list has up to {MOST} commands"));
            return None;
        }
        for part in names {
            let name = part.trim();
            let from = start + part.len() - part.trim_start().len();
            start += part.len() + 1;
            match self.commands.iter().position(|command| command.name == name) {
                Some(nth) => found.push(nth as u8),
                None => {
                    let place = self.place.inside(self.text, from..from + name.len());
                    let fault = place.fault(format!("unknown command `{name}`"));
                    let known = self.commands.iter().map(|command| command.name.as_str());
                    self.faults.push(fault.with_nearest(name, known));
                }
            }
        }
        (found.len() == expected).then_some(found)
    }
}

/// The tables `[[refresh]]`.
pub(super) fn refreshes(
    root: TomlTable<'_>,
    commands: &[Command],
    timings: &mut Timings<'_>,
    faults: &mut Diagnostics,
) -> Vec<Refresh> {
    let mut refreshes: Vec<Refresh> = Vec::new();
    for table in root.tables("refresh") {
        let word = table.text("policy").map_or("", |(word, _)| word);
        let policies = [RefreshPolicy::AllBank, RefreshPolicy::PerBank, RefreshPolicy::SameBank];
        let policy = policies.into_iter().find(|policy| word_of(*policy) == word).unwrap_or(RefreshPolicy::AllBank);
        // Read before the command, so that the faults of both are told.
        let every = table.get("every").and_then(|item| timings.evaluate_item(item));
        let Some((name, place)) = table.text("command") else { continue };
        let refreshing = |command: &Command| command.effect == Effect::Refresh;
        let Some(nth) = commands.iter().position(|command| command.name == name && refreshing(command)) else {
            let fault = place.fault(format!("`{name}` is no command that refreshes"));
            let known = commands.iter().filter(|command| refreshing(command)).map(|command| command.name.as_str());
            faults.push(fault.with_nearest(name, known));
            continue;
        };
        if refreshes.iter().any(|known| known.policy == policy) {
            faults.push(table.place().fault("there is a refresh of this policy already"));
        }
        if every == Some(0) {
            faults.push(table.place().fault("a refresh every 0 cycles leaves no time for anything else"));
        }
        let every_cycles = every.map_or(1, |every| every.clamp(1, i64::from(u32::MAX)) as u32);
        let energy = energy_of_refresh(table, timings, faults);
        refreshes.push(Refresh { policy, command: nth as u8, every_cycles, energy });
    }
    share_energy(&mut refreshes);
    refreshes
}

/// A bound on what no device draws.
const MOST_REFRESH_MW: f64 = 100_000.0;

/// Power times duration, where the file says them.
fn energy_of_refresh(table: TomlTable<'_>, timings: &mut Timings<'_>, faults: &mut Diagnostics) -> Option<Picojoules> {
    let (power, lasts) = (table.get("power_mw"), table.get("lasts"));
    if power.is_some() != lasts.is_some() {
        let fault = table.place().fault("the energy of a refresh needs both `power_mw` and `lasts`");
        faults.push(fault.with_help("lasts = \"RFC\": how long the power is drawn"));
    }
    let cycles = timings.evaluate_item(lasts?)?;
    let power_mw = power?.number()?.as_f64();
    if !(0.0..=MOST_REFRESH_MW).contains(&power_mw) || cycles < 0 {
        faults.push(power?.place().fault(format!("a refresh draws 0 to {MOST_REFRESH_MW} mW for 0 cycles or more")));
        return None;
    }
    // mW times ps are fJ.
    Some(Picojoules { fj: (power_mw * (cycles as u64 * timings.t_ck_ps) as f64).round() as u64 })
}

/// A refresh of fewer banks restores as many rows in a given time: where the file says the energy of one
/// policy, that of another follows from how often each is issued.
fn share_energy(refreshes: &mut [Refresh]) {
    let Some(said) = refreshes.iter().find(|own| own.energy.is_some()).cloned() else { return };
    let fj = said.energy.map_or(0, |energy| energy.fj);
    for own in refreshes.iter_mut().filter(|own| own.energy.is_none()) {
        let share = u128::from(fj) * u128::from(own.every_cycles) / u128::from(said.every_cycles);
        own.energy = Some(Picojoules { fj: share as u64 });
    }
}
