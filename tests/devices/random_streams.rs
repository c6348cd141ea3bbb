//! Controllers of every built-in device under random requests, with refresh and without: the checker finds
//! nothing in the commands that they give.
//!
//! Requests come as fast as they go, or with pauses, in which refreshes pass unseen. Then the times between
//! refreshes are not checked: those that an idle controller slept through are not in the list.

use durawarp::config::device::{BuiltinDevice, DeviceRequest, builtin, load};
use durawarp::diagnostic::Diagnostic;
use durawarp::kernel::memory::{DRAM_BASE, Medium};
use durawarp::machine::device::{Device, RefreshPolicy};
use durawarp::machine::media::{CommandRecord, MediaSpec};
use durawarp::machine::memory_controller::{ControllerSpec, MemoryScheduler, PagePolicy};
use durawarp::one_channel::{ChannelRequest, OneChannel, RequestStream};
use durawarp::spec::Nanos;
use proptest::prelude::*;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::SeedableRng as _;

use crate::checker::{Fault, Given, RefreshDue, check, path_of};
use crate::table::DeviceTable;

/// Rows of a bank that requests go to.
const ROWS: u32 = 4;

/// The records of a channel as the checker takes them: a tick is a cycle, and what goes to many banks is one
/// command.
fn given(table: &DeviceTable, records: &[CommandRecord]) -> Vec<Given> {
    let command = |record: &CommandRecord| {
        let (kind, mut path) = (&table.commands[usize::from(record.command)], path_of(table, usize::from(record.bank)));
        path.truncate(kind.depth);
        if kind.same_bank {
            let groups = table.counts.len() - 2;
            path[groups] = 0;
        }
        Given { at: record.at, command: usize::from(record.command), path, row: record.row }
    };
    let mut commands: Vec<Given> = records.iter().map(command).collect();
    commands.dedup_by(|later, earlier| {
        let of_many =
            table.commands[later.command].depth < table.counts.len() || table.commands[later.command].same_bank;
        of_many && (later.at, later.command, &later.path) == (earlier.at, earlier.command, &earlier.path)
    });
    commands
}

/// A request: bank, row, atom and pause before it are taken modulo what there is.
type Request = (u16, u32, u32, bool, u64);

#[derive(Debug, Clone)]
struct Case {
    device: usize,
    density: usize,
    ranks: u32,
    refresh: usize,
    staggered: bool,
    postpone: u32,
    pauses: bool,
    policies: Policies,
    requests: Vec<Request>,
}

/// What a controller closes rows by, which request it serves first, and how many send them.
#[derive(Debug, Clone, Copy)]
struct Policies {
    page: PagePolicy,
    timeout_cycles: u64,
    scheduler: MemoryScheduler,
    /// From one ranking to the next.
    interval_cycles: u32,
    requesters: usize,
}

const OPEN: Policies = Policies {
    page: PagePolicy::Open,
    timeout_cycles: 1,
    scheduler: MemoryScheduler::Frfcfs,
    interval_cycles: 1000,
    requesters: 1,
};

fn policies() -> impl Strategy<Value = Policies> {
    let pages = [
        PagePolicy::Open,
        PagePolicy::Closed,
        PagePolicy::OpenAdaptive,
        PagePolicy::ClosedAdaptive,
        PagePolicy::Timeout,
    ];
    let schedulers = [
        MemoryScheduler::Fcfs,
        MemoryScheduler::Frfcfs,
        MemoryScheduler::FrfcfsRowHit,
        MemoryScheduler::Bliss,
        MemoryScheduler::Atlas,
    ];
    let timeout = prop_oneof![0u64..100, 100u64..2000];
    let (page, scheduler) = (prop::sample::select(pages.to_vec()), prop::sample::select(schedulers.to_vec()));
    let all = (page, timeout, scheduler, 1u32..3000, 1usize..=3);
    all.prop_map(|(page, timeout_cycles, scheduler, interval_cycles, requesters)| Policies {
        page,
        timeout_cycles,
        scheduler,
        interval_cycles,
        requesters,
    })
}

/// Devices with rows; requests of a buffer need none.
fn devices() -> Vec<BuiltinDevice> {
    builtin().into_iter().filter(|device| device.name != "optane-100").collect()
}

fn cases() -> impl Strategy<Value = Case> {
    let request = (any::<u16>(), 0..ROWS, any::<u32>(), any::<bool>(), prop_oneof![9 => Just(0u64), 1 => 1u64..3000]);
    let requests = prop::collection::vec(request, 1..400);
    let variant = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u32..=2);
    let refresh = (any::<prop::sample::Index>(), any::<bool>(), prop_oneof![Just(0u32), 1u32..=8]);
    let all = (variant, refresh, any::<bool>(), policies(), requests);
    all.prop_map(|((device, density, ranks), refresh, pauses, policies, requests)| {
        let devices = devices();
        let device = device.index(devices.len());
        let density = density.index(devices[device].densities.len());
        let (refresh, staggered, postpone) = refresh;
        Case { device, density, ranks, refresh: refresh.index(3), staggered, postpone, pauses, policies, requests }
    })
}

/// What is asked of the loader and of the checker's own reader alike.
struct Subject {
    device: Device,
    table: DeviceTable,
    dram: MediaSpec,
}

/// Refreshes come so often that a short stream meets some.
fn subject(case: &Case) -> Subject {
    let listed = &devices()[case.device];
    let density = &listed.densities[case.density];
    let plain = DeviceTable::built_in(listed.name, ["", density], 1, &[]);
    let often = |name: &str, busy: &str| Some((name.to_owned(), 3 * plain.timing.get(busy)?));
    let others: Vec<(String, u64)> = often("REFI", "RFC").into_iter().collect();
    let timing: Vec<String> = others.iter().map(|(name, cycles)| format!("{name} = {cycles}")).collect();
    let others: Vec<(&str, u64)> = others.iter().map(|(name, cycles)| (name.as_str(), *cycles)).collect();
    let ranks = if plain.has_ranks { case.ranks } else { 1 };
    let place = |key: &str, message: &str| Diagnostic::nowhere(key, message);
    let timing = timing.join(", ");
    let asked = DeviceRequest { device: listed.name, bin: "", density, timing: &timing, ranks, place: &place };
    let device = load(&asked).unwrap_or_else(|faults| panic!("{faults}")).device;
    let policies: Vec<RefreshPolicy> = device.refreshes.iter().map(|own| own.policy).collect();
    let policy = policies.get(case.refresh).copied().unwrap_or(RefreshPolicy::None);
    Subject {
        table: DeviceTable::built_in(listed.name, ["", density], ranks as usize, &others),
        device,
        dram: MediaSpec {
            refresh: policy,
            refresh_stagger: case.staggered,
            refresh_postpone: case.postpone,
            ..MediaSpec::default()
        },
    }
}

fn word(policy: RefreshPolicy) -> &'static str {
    match policy {
        RefreshPolicy::None => "none",
        RefreshPolicy::AllBank => "all_bank",
        RefreshPolicy::PerBank => "per_bank",
        RefreshPolicy::SameBank => "same_bank",
    }
}

/// Whether a controller does with the requests of a case what its device's table allows; else how many
/// violations there are, and the commands before the first.
fn violations(subject: &Subject, policies: Policies, case_requests: &[Request], pauses: bool) -> Result<(), String> {
    let Subject { device, table, dram } = subject;
    let mut channel = OneChannel::of_device(device, dram, ROWS);
    channel.media.keep_commands();
    channel.spec = ControllerSpec {
        page: policies.page,
        page_timeout_ns: Nanos { ps: 1000 * policies.timeout_cycles },
        scheduler: policies.scheduler,
        blacklist_clear_cycles: policies.interval_cycles,
        service_quantum_cycles: policies.interval_cycles,
        starvation_cycles: policies.interval_cycles,
        ..channel.spec
    };
    let rows = channel.rows(Medium::Dram, device.organisation.row_bytes);
    let atoms = device.organisation.row_bytes / device.organisation.atom_bytes;
    let mut from = 0;
    let requests = case_requests.iter().map(|&(bank, row, atom, write, pause)| {
        let place = (bank % table.banks() as u16, row);
        let (_, first) = rows.iter().find(|(own, _)| *own == place).expect("a row of the device");
        from += if pauses { pause } else { 0 };
        let offset = u64::from(atom % atoms * device.organisation.atom_bytes);
        ChannelRequest { address: DRAM_BASE + first + offset, write, from }
    });
    // Requesters in turn.
    let requesters = policies.requesters;
    let stream = RequestStream { requests: Vec::new(), reads_in_flight: 32 / requesters, writes_waiting: 4 };
    let mut streams = vec![stream; requesters];
    requests.enumerate().for_each(|(nth, request)| streams[nth % requesters].requests.push(request));
    let run = channel.run(&streams);
    let mut commands = given(table, &run.commands);
    assert!(commands.iter().any(|command| command.row > 0 || command.at > 0), "commands are kept");
    let policy = word(dram.refresh);
    let due = RefreshDue { policy, postponed: u64::from(dram.refresh_postpone), end: run.cycles };
    let due = (dram.refresh != RefreshPolicy::None && !pauses).then_some(&due);
    let mut found = check(table, &commands, due);
    if dram.refresh != RefreshPolicy::None {
        // Refreshes, and what closes rows for them, take no slot of the command bus in the model (`refresh`).
        found.retain(|violation| violation.fault != Fault::SlotTaken);
    }
    let Some(first) = found.first() else { return Ok(()) };
    commands.sort_by_key(|command| command.at);
    let line = |own: &Given| format!("\n  {} {} {:?} {}", table.commands[own.command].name, own.at, own.path, own.row);
    let around = first.number.saturating_sub(12)..(first.number + 1).min(commands.len());
    let around: String = commands[around].iter().map(line).collect();
    let number = found.len();
    Err(format!(
        "{}, {}: {number} violations, the last command here is the first: {first}{around}",
        device.name, policy
    ))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn no_command_breaks_the_table_of_its_device(case in cases()) {
        prop_assert_eq!(violations(&subject(&case), case.policies, &case.requests, case.pauses), Ok(()));
    }
}

#[test]
fn a_least_time_that_the_model_takes_for_a_cycle_less_is_found() {
    let ddr4 = ["RCD", "RP", "RAS", "WR", "RTP", "CCD_L", "WTR_S", "WTR_L", "RRD_S", "RRD_L", "FAW"].as_slice();
    let hbm2 = ["RCDRD", "RCDWR", "RP", "RAS", "WR", "RTP", "CCD_L", "WTR_S", "WTR_L", "RRD_S"].as_slice();
    let mut random = Pcg64::seed_from_u64(1);
    let mut below = |bound: u64| random.next_u64() % bound;
    let request = |_| (below(32) as u16, below(u64::from(ROWS)) as u32, below(128) as u32, below(2) == 1, 0);
    let requests: Vec<Request> = (0..4000).map(request).collect();
    for (name, timings) in [("ddr4", ddr4), ("hbm2", hbm2)] {
        let held = |timing: &str| {
            let place = |key: &str, message: &str| Diagnostic::nowhere(key, message);
            let asked = DeviceRequest { device: name, bin: "", density: "", timing, ranks: 1, place: &place };
            let device = load(&asked).unwrap_or_else(|faults| panic!("{faults}")).device;
            let table = DeviceTable::built_in(name, ["", ""], 1, &[]);
            violations(&Subject { device, table, dram: MediaSpec::default() }, OPEN, &requests, false)
        };
        assert_eq!(held(""), Ok(()), "{name}");
        let own = DeviceTable::built_in(name, ["", ""], 1, &[]).timing;
        for timing in timings {
            let found = held(&format!("{timing} = {}", own[*timing] - 1));
            assert!(found.is_err(), "{name}: {timing} of a cycle less breaks nothing");
        }
    }
}
