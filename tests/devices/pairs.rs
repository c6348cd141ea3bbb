//! Timing pairs of every built-in device, made from its table: after each command, each other command to a bank that
//! shares a level, and to one that does not, is ready when the table's constraints say, neither a cycle before nor after.
//! A table with one delay changed is found out.

use durawarp::config::device::{self, DeviceRequest};
use durawarp::diagnostic::Diagnostic;
use durawarp::engine::{Clock, Time, Timebase};
use durawarp::kernel::memory::Medium;
use durawarp::machine::device::{Command, Constraint, Device, Effect};
use durawarp::machine::media::{BusSpec, DeviceRow, Devices, Direction, Media, MediaSpec, NvmSpec};

/// Everything before this has no effect on what comes at it.
const LATER: Time = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    Read,
    Write,
    /// A read or a write whose row is closed behind it.
    ReadClose,
    WriteClose,
}

const KINDS: [Kind; 4] = [Kind::Open, Kind::Close, Kind::Read, Kind::Write];

/// What comes first: these, too.
const CLOSING: [Kind; 2] = [Kind::ReadClose, Kind::WriteClose];

/// Every bin of every built-in device, with its first density; and every density with its first bin.
fn devices() -> Vec<Device> {
    let mut all = Vec::new();
    for own in device::builtin() {
        let (bins, densities) = (&own.bins, &own.densities);
        let of_bins = bins.iter().map(|bin| (bin.as_str(), ""));
        for (bin, density) in of_bins.chain(densities.iter().map(|density| ("", density.as_str()))) {
            let place = |_: &str, why: &str| Diagnostic::nowhere(own.name, why.to_owned());
            let asked = |ranks| DeviceRequest { device: own.name, bin, density, timing: "", ranks, place: &place };
            // Two ranks where a device has them.
            let loaded = device::load(&asked(2)).or_else(|_| device::load(&asked(1)));
            all.push(loaded.unwrap_or_else(|faults| panic!("{faults}")).device);
        }
    }
    // Requests of a buffer need no row.
    all.retain(|device: &Device| device.buffer.is_none());
    all
}

/// A clock whose tick is a cycle.
fn media(device: &Device) -> Media {
    let dram = MediaSpec::default();
    let bus =
        BusSpec { bytes_per_cycle: 32, read_to_write_ns: Default::default(), write_to_read_ns: Default::default() };
    let devices = Devices { dram: Some(device), ..Devices::default() };
    let base = Timebase::of_khz(&[1_000_000]).expect("a timebase");
    Media::of(&devices, &dram, &NvmSpec::through(&dram, Default::default()), &bus, Clock::of_period(1), base)
}

fn place(bank: u16, row: u32) -> DeviceRow {
    DeviceRow { bank, row, medium: Medium::Dram }
}

/// The place of a bank on each level, the outermost first.
fn path(device: &Device, bank: u16) -> Vec<u32> {
    let mut within = u32::from(bank);
    let mut path: Vec<u32> = device
        .organisation
        .levels
        .iter()
        .rev()
        .map(|(_, count)| {
            let own = within % count;
            within /= count;
            own
        })
        .collect();
    path.reverse();
    path
}

fn is(command: &Command, kind: Kind, banks: usize) -> bool {
    let of_bank = usize::from(command.target) + 1 == banks;
    match kind {
        Kind::Open => command.effect == Effect::Open,
        Kind::Close => command.effect == Effect::Close && of_bank,
        Kind::Read => command.effect == Effect::Read && !command.closes,
        Kind::Write => command.effect == Effect::Write && !command.closes,
        Kind::ReadClose => command.effect == Effect::Read && command.closes,
        Kind::WriteClose => command.effect == Effect::Write && command.closes,
    }
}

/// The constraint is between these commands of these banks.
fn applies(device: &Device, own: &Constraint, (before, one): (Kind, u16), (after, other): (Kind, u16)) -> bool {
    let banks = device.organisation.levels.len();
    let (a, b) = (path(device, one), path(device, other));
    let shared = own.scope.map_or(0, |scope| usize::from(scope) + 1);
    let nodes = if own.other {
        a[..shared - 1] == b[..shared - 1] && a[shared - 1] != b[shared - 1]
    } else {
        a[..shared] == b[..shared]
    };
    let of = |at: u8, kind| is(&device.commands[usize::from(at)], kind, banks);
    own.window == 1 && nodes && of(own.before, before) && of(own.after, after)
}

/// When the table lets `after` come, `before` being issued at `LATER`: without a constraint, if `but` is one.
fn expected(device: &Device, before: (Kind, u16), after: (Kind, u16), but: Option<usize>) -> Time {
    let own = &device.organisation;
    let mut least = 0;
    for (at, rule) in device.constraints.iter().enumerate() {
        if Some(at) != but && applies(device, rule, before, after) {
            least = least.max(Time::from(rule.delay_cycles));
        }
    }
    // A row stays open until it can be used.
    if (before, after) == ((Kind::Open, after.1), (Kind::Close, before.1)) {
        let used = [Kind::Read, Kind::Write].map(|kind| expected(device, before, (kind, after.1), but));
        least = least.max(used[0].max(used[1]) - LATER);
    }
    let columns = |kind| !matches!(kind, Kind::Open | Kind::Close);
    let reads = |kind| matches!(kind, Kind::Read | Kind::ReadClose);
    let lane = own.bus_levels as usize;
    let one_bus = path(device, before.1)[..lane] == path(device, after.1)[..lane];
    // Bursts do not overlap on a data bus, whatever the constraints say.
    if columns(before.0) && columns(after.0) && one_bus {
        let to_data = |kind| if reads(kind) { own.read_cycles } else { own.write_cycles };
        let end = to_data(before.0) + own.burst_cycles;
        least = least.max(Time::from(end.saturating_sub(to_data(after.0))));
    }
    // A command has its slots to itself.
    if columns(before.0) == columns(after.0) || !own.two_command_buses {
        let banks = own.levels.len();
        let slots = device.commands.iter().find(|command| is(command, before.0, banks)).map_or(1, |own| own.cycles);
        least = least.max(Time::from(slots));
    }
    LATER + least
}

/// When the media let it come; none where it cannot be asked.
fn found(device: &Device, (before, one): (Kind, u16), (after, other): (Kind, u16)) -> Option<Time> {
    let mut m = media(device);
    let open = |m: &mut Media, bank, at| assert!(m.row_command(place(bank, 0), at).opens);
    // What each of them needs, long before.
    if before != Kind::Open {
        open(&mut m, one, 0);
    }
    if after != Kind::Open && other != one {
        open(&mut m, other, LATER / 2);
    }
    match before {
        Kind::Open => open(&mut m, one, LATER),
        Kind::Close => {
            let closed = m.row_command(place(one, 1), LATER);
            assert!(closed.closed.is_some() && !closed.opens);
        }
        Kind::Read | Kind::Write | Kind::ReadClose | Kind::WriteClose => {
            let reads = matches!(before, Kind::Read | Kind::ReadClose);
            let access = if reads { Direction::Read } else { Direction::Write };
            let transfer = m.column(place(one, 0), access, device.organisation.atom_bytes, LATER);
            if CLOSING.contains(&before) {
                m.close_behind(place(one, 0), access, &transfer);
            }
        }
    }
    let is_open = m.open_row_of(other).is_some();
    let access = match after {
        Kind::Open | Kind::Close if (after == Kind::Close) == is_open => {
            return Some(m.row_ready(place(other, 1)).max(m.row_slot_ready(Medium::Dram, LATER)));
        }
        Kind::Read if is_open => Direction::Read,
        Kind::Write if is_open => Direction::Write,
        _ => return None,
    };
    Some(m.channel_ready(Medium::Dram, access, LATER).max(m.bank_ready(place(other, 0), access, LATER)))
}

/// Pairs of commands and banks: the same bank, and one that differs from it on each level alone.
fn pairs(device: &Device) -> Vec<((Kind, u16), (Kind, u16))> {
    let mut banks = vec![0u16];
    let mut below = 1u32;
    for (_, count) in device.organisation.levels.iter().rev() {
        if *count > 1 {
            banks.push(below as u16);
        }
        below *= count;
    }
    let kinds = || KINDS.into_iter().chain(CLOSING).flat_map(|before| KINDS.map(|after| (before, after)));
    banks.iter().flat_map(|&other| kinds().map(move |(before, after)| ((before, 0), (after, other)))).collect()
}

#[test]
fn every_command_of_every_device_waits_as_long_as_the_table_says() {
    for device in devices() {
        let mut asked = 0;
        for (before, after) in pairs(&device) {
            let Some(found) = found(&device, before, after) else { continue };
            asked += 1;
            let expected = expected(&device, before, after, None);
            // Before the command nothing is asked for.
            assert_eq!(found.max(LATER), expected, "{} {:?}: {before:?}, then {after:?}", device.name, device.variant);
        }
        assert!(asked >= 36, "{}: {asked} pairs", device.name);
    }
}

#[test]
fn a_table_with_one_delay_changed_is_found_out() {
    for original in devices() {
        for at in 0..original.constraints.len() {
            let mut changed = original.clone();
            changed.constraints[at].delay_cycles += 1;
            // One that others always outlast has no effect of its own.
            let binds = |&(before, after): &((Kind, u16), (Kind, u16))| {
                let all = expected(&original, before, after, None);
                found(&original, before, after).is_some() && expected(&original, before, after, Some(at)) < all
            };
            let differs = |&(before, after): &((Kind, u16), (Kind, u16))| {
                found(&changed, before, after)
                    .is_some_and(|found| found.max(LATER) != expected(&original, before, after, None))
            };
            let pairs = pairs(&original);
            if pairs.iter().any(binds) {
                let own = &original.constraints[at];
                assert!(pairs.iter().any(differs), "{}, line {}: {own:?} has no test", original.name, own.line);
            }
        }
    }
}

#[test]
fn the_fifth_activation_waits_for_the_window_of_four() {
    for device in devices() {
        let banks = device.organisation.levels.len();
        let window = device
            .constraints
            .iter()
            .find(|own| own.window > 1 && is(&device.commands[usize::from(own.before)], Kind::Open, banks));
        let Some(window) = window else { continue };
        // Banks below the node that the window is of; neighbours are of one group where there are groups.
        let below = window.scope.map_or(0, |scope| usize::from(scope) + 1);
        let count: u32 = device.organisation.levels[below..].iter().map(|(_, count)| count).product();
        if count <= u32::from(window.window) {
            continue;
        }
        let mut m = media(&device);
        let mut times = Vec::new();
        for bank in 0..=u16::from(window.window) {
            let at = m.row_ready(place(bank, 0)).max(m.row_slot_ready(Medium::Dram, LATER)).max(LATER);
            m.row_command(place(bank, 0), at);
            times.push(at);
        }
        let last = times.len() - 1;
        let of_window = times[last - usize::from(window.window)] + Time::from(window.delay_cycles);
        let of_last = expected(&device, (Kind::Open, last as u16 - 1), (Kind::Open, last as u16), None) - LATER;
        assert_eq!(
            times[last],
            of_window.max(times[last - 1] + of_last),
            "{} {:?}: {times:?}",
            device.name,
            device.variant
        );
    }
}
