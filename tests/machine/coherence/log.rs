//! What cores saw, put in one order afterwards, and held against one memory.
//!
//! Loads return the last store of their line in the order of times: a core that stores has the only copy, so that no
//! other core loads or stores the line at that instant.

use std::collections::BTreeMap;

use durawarp::engine::Time;

use super::l1::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A line came; its value, if its words agree.
    Granted(Option<u64>),
    Loaded(Option<u64>),
    Stored(u64),
    /// The copy's state from now on.
    State(Option<State>),
    /// The OS asks for a line's bytes, and has them.
    Looking,
    Looked(Option<u64>),
    /// A probe came.
    Obeyed,
    /// A clean began, by its tag.
    Cleaning(u16),
    Cleaned(u16),
}

/// What a core noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) at: Time,
    pub(crate) line: u64,
    pub(crate) what: What,
}

/// A value of a line that became durable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Durable {
    pub(crate) at: Time,
    pub(crate) line: u64,
    pub(crate) value: Option<u64>,
}

/// Everything that cores noted, by time, then core.
fn merged(logs: &[Vec<Noted>]) -> Vec<(usize, Noted)> {
    let all = logs.iter().enumerate().flat_map(|(core, log)| log.iter().map(move |noted| (core, *noted)));
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(core, noted)| (noted.at, *core));
    all
}

/// The last value of every line that was stored to.
pub(crate) fn last_values(logs: &[Vec<Noted>]) -> BTreeMap<u64, u64> {
    let stored = |(_, noted): (usize, Noted)| match noted.what {
        What::Stored(value) => Some((noted.line, value)),
        _ => None,
    };
    merged(logs).into_iter().filter_map(stored).collect()
}

/// Every load, and every line that comes, has the last value; there is one owner, or sharers.
pub(crate) fn check_coherence(logs: &[Vec<Noted>]) -> Result<(), String> {
    let mut values: BTreeMap<u64, u64> = BTreeMap::new();
    let mut copies: BTreeMap<u64, BTreeMap<usize, State>> = BTreeMap::new();
    // What a line has had since a look was asked for.
    let mut looked: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (core, Noted { at, line, what }) in merged(logs) {
        match what {
            What::Granted(value) | What::Loaded(value) => {
                let last = values.get(&line).copied().unwrap_or(0);
                if value != Some(last) {
                    return Err(format!("{at}: core {core} sees {value:x?} in line {line:#x}, which has {last:x}"));
                }
            }
            What::Stored(value) => {
                values.insert(line, value);
                looked.iter_mut().filter(|(of, _)| **of == line).for_each(|(_, seen)| seen.push(value));
            }
            What::Looking => {
                looked.insert(line, vec![values.get(&line).copied().unwrap_or(0)]);
            }
            What::Looked(value) => {
                let between = looked.remove(&line).expect("a look");
                if value.is_none_or(|value| !between.contains(&value)) {
                    return Err(format!("{at}: a look finds {value:x?} in line {line:#x}, which had {between:x?}"));
                }
            }
            What::State(state) => {
                let of_line = copies.entry(line).or_default();
                of_line.remove(&core);
                of_line.extend(state.map(|state| (core, state)));
                if of_line.len() > 1 && of_line.values().any(|&state| state != State::Shared) {
                    return Err(format!("{at}: line {line:#x} has copies {of_line:?}"));
                }
            }
            What::Obeyed | What::Cleaning(_) | What::Cleaned(_) => {}
        }
    }
    Ok(())
}

/// Cleans of lines of `persistent` memory that were acknowledged before what they cover was durable. Returns how many
/// were looked at.
pub(crate) fn check_cleans(
    logs: &[Vec<Noted>],
    durable: &[Durable],
    persistent: impl Fn(u64) -> bool,
) -> Result<u64, String> {
    // Versions of each line, in order; 0 is what was there at first.
    let mut versions: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    let mut newest: BTreeMap<u64, usize> = BTreeMap::new();
    let mut begun: BTreeMap<(usize, u16), usize> = BTreeMap::new();
    let mut cleaned = Vec::new();
    for (core, Noted { at, line, what }) in merged(logs) {
        match what {
            What::Stored(value) => {
                let version = newest.entry(line).or_insert(0);
                *version += 1;
                versions.insert((line, value), *version);
            }
            What::Cleaning(tag) => {
                begun.insert((core, tag), newest.get(&line).copied().unwrap_or(0));
            }
            What::Cleaned(tag) if persistent(line) => cleaned.push((at, core, line, begun[&(core, tag)])),
            _ => {}
        }
    }
    let mut safe: BTreeMap<u64, usize> = BTreeMap::new();
    let mut facts = durable.iter().peekable();
    for &(at, core, line, version) in &cleaned {
        while let Some(fact) = facts.next_if(|fact| fact.at <= at) {
            let value = fact.value.ok_or_else(|| format!("{}: a torn line {:#x}", fact.at, fact.line))?;
            let version = if value == 0 { 0 } else { versions[&(fact.line, value)] };
            let before = safe.entry(fact.line).or_insert(0);
            if version < *before {
                return Err(format!("{}: line {:#x} goes back to version {version}", fact.at, fact.line));
            }
            *before = version;
        }
        let durable = safe.get(&line).copied().unwrap_or(0);
        if durable < version {
            return Err(format!(
                "{at}: core {core} hears that version {version} of {line:#x} is durable: {durable} is"
            ));
        }
    }
    Ok(cleaned.len() as u64)
}
