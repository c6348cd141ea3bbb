//! Memory devices by themselves: a controller and its devices, driven by streams, beside what two other
//! simulators take for the same streams, and beside arithmetic on the device's own timings.
//!
//! ```text
//! device file ─> one channel <─ stream ─> cycles ─┬─ reference.csv ─> within a bound of the two
//!                                                 └─ timings ───────> within 0.5 % of a limit
//! ```
//! | streams | bound |
//! |---|---|
//! | of reads, in an order | 1 % |
//! | of writes, or random | 3 % |
//! | of reads and writes | 12 %: the references differ as much, in how they drain writes |
//!
//! Source: Ramulator 2.1 and DRAMsim3, by their cycles alone (`reference`). Invariant: a result is a function
//! of the built-in devices. Not here: machines.

pub mod reference;
pub mod streams;

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_kernel::memory::{DRAM_BASE, Medium};
use durawarp_machine::device::{Device, Effect, RefreshPolicy};
use durawarp_machine::media::MediaSpec;
use durawarp_simulation::config::device::{self, DeviceRequest};
use durawarp_simulation::one_channel::{ChannelRequest, ChannelRun, OneChannel, RequestStream};

use crate::papers::{Cell, FigureTable};
use reference::Reference;
use streams::{ROWS, RankShape, STREAMS, Stream, StreamAccess, Traffic};

/// Requests of a stream.
const REQUESTS: u32 = 20_000;

/// What the references are of: name, bin, density, and timings where they have others than the standard.
const COMPARED: [[&str; 4]; 2] =
    [["ddr4", "2400R", "8Gb_x8", "RFC = 433, REFI = 9364"], ["hbm2", "2.0Gbps", "8Gb", ""]];

/// A built-in device, with these timings.
///
/// # Errors
/// Every fault of its file, or of what is asked.
pub fn built_in(name: &str, bin: &str, density: &str, timing: &str) -> Result<Device, Diagnostics> {
    let place = |key: &str, message: &str| Diagnostic::nowhere(key, message);
    device::load(&DeviceRequest { device: name, bin, density, timing, ranks: 1, place: &place })
        .map(|loaded| loaded.device)
}

/// What a rank, or a pseudo channel, of a device has.
pub fn shape(device: &Device) -> RankShape {
    let own = &device.organisation;
    let count = |name: &str| own.levels.iter().find(|(level, _)| level == name).map_or(1, |(_, count)| *count);
    RankShape { groups: count("bank_group"), banks: count("bank"), columns: own.row_bytes / own.atom_bytes }
}

/// How a stream of requests is answered by a device, of which 64 reads are on their way at most.
pub fn drive(device: &Device, refresh: RefreshPolicy, accesses: &[StreamAccess]) -> ChannelRun {
    let dram = MediaSpec { refresh, ..MediaSpec::default() };
    let (own, shape) = (&device.organisation, shape(device));
    let channel = OneChannel::of_device(device, &dram, ROWS);
    let rows = channel.rows(Medium::Dram, own.row_bytes);
    let mut first_byte = vec![0; rows.len()];
    let place = |bank: u32, row: u32| (bank * ROWS + row) as usize;
    rows.into_iter().for_each(|((bank, row), address)| first_byte[place(u32::from(bank), row)] = address);
    let request = |access: &StreamAccess| {
        let bank = access.group * shape.banks + access.bank;
        let row = DRAM_BASE + first_byte[place(bank, access.row)];
        ChannelRequest { address: row + u64::from(access.column * own.atom_bytes), write: access.write, from: 0 }
    };
    let requests = accesses.iter().map(request).collect();
    channel.run(&[RequestStream { requests, reads_in_flight: 64, writes_waiting: 4 }])
}

/// A stream on a device beside the references.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Name of the device.
    pub device: &'static str,
    /// The stream.
    pub stream: Stream,
    /// All-bank refresh is on.
    pub refreshed: bool,
    /// Cycles here.
    pub cycles: u64,
    /// Those of the references, as many as have some.
    pub references: Vec<f64>,
}

impl Comparison {
    /// How far ours may be from what lies between the references, as a share.
    pub fn bound(&self) -> f64 {
        match self.stream.traffic {
            Traffic::Mixed => 0.12,
            Traffic::Reads if !self.stream.is_random() => 0.01,
            _ => 0.03,
        }
    }

    /// How far ours is beyond all references, as a share of the nearest: 0 between them.
    pub fn deviation(&self) -> f64 {
        let of = |reference: &f64| self.cycles as f64 / reference - 1.0;
        let all: Vec<f64> = self.references.iter().map(of).collect();
        let (least, most) = all.iter().fold((f64::MAX, f64::MIN), |(least, most), of| (of.min(least), of.max(most)));
        if least > 0.0 { least } else { most.min(0.0) }
    }

    /// It is within its bound.
    pub fn is_within(&self) -> bool {
        self.deviation().abs() <= self.bound()
    }
}

/// A stream whose cycles follow from the device's timings.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Name of the device.
    pub device: String,
    /// What bounds the stream.
    pub name: &'static str,
    /// By which timings.
    pub by: &'static str,
    /// Cycles a request here.
    pub cycles: f64,
    /// And by arithmetic.
    pub expected: f64,
}

/// How far a limit may be missed, as a share.
const LIMIT_BOUND: f64 = 0.005;

impl Limit {
    /// It is within its bound.
    pub fn is_within(&self) -> bool {
        (self.cycles / self.expected - 1.0).abs() <= LIMIT_BOUND
    }
}

/// A timing of a device, where it has it.
fn timing(device: &Device, name: &str) -> Option<f64> {
    device.timing.iter().find(|(own, _)| own == name).map(|(_, cycles)| *cycles as f64)
}

/// The limits of a device, as far as it has the timings.
pub fn limits_of(device: &Device) -> Vec<Limit> {
    let t = |name: &str| timing(device, name);
    let (shape, none) = (shape(device), RefreshPolicy::None);
    let accesses = |name: &str, count: u32| {
        let stream = STREAMS.iter().find(|stream| stream.name == name).expect("a stream");
        stream.accesses(shape, count)
    };
    let each =
        |accesses: &[StreamAccess], refresh| drive(device, refresh, accesses).cycles as f64 / accesses.len() as f64;
    let slots = |of: Effect| device.commands.iter().find(|own| own.effect == of).map_or(1, |own| own.cycles);
    let mut limits = Vec::new();
    let mut add = |name, by, cycles: f64, expected: f64| {
        limits.push(Limit { device: device.name.clone(), name, by, cycles, expected });
    };
    let open = t("RCD").or(t("RCDRD"));
    let peak = t("CCD_S").map(|gap| gap.max(f64::from(device.organisation.burst_cycles)));
    // Of rows that stay open.
    let stays = |count: u32| {
        let all = accesses("group-reads", count).into_iter();
        all.map(|access| StreamAccess { row: 0, ..access }).collect::<Vec<StreamAccess>>()
    };
    if let Some(peak) = peak {
        add("peak", "max(BL, CCD_S)", each(&stays(REQUESTS), none), peak);
    }
    if let (Some(peak), [Some(to_close), Some(closing), Some(refresh), Some(opening), Some(every)]) =
        (peak, [t("RTP"), t("RPab").or(t("RP")), t("RFC"), open, t("REFI")])
    {
        // From the last read before a refresh to the first one after it. So many requests, that one refresh
        // more or less is little.
        let share = 1.0 - (to_close + closing + refresh + opening - peak) / every;
        let cycles = each(&stays(5 * REQUESTS), RefreshPolicy::AllBank);
        add("peak, refreshed", "peak / (1 - (RTP + RP + RFC + RCD - peak) / REFI)", cycles, peak / share);
    }
    // Then neither gaps between two of them, nor banks, nor the one bus of commands are busy all the time.
    let all_slots = f64::from([Effect::Open, Effect::Read, Effect::Close].map(slots).iter().sum::<u32>());
    let one_bus = !device.organisation.two_command_buses;
    if let [Some(four), Some(gap), Some(row)] = ["FAW", "RRD_S", "RC"].map(t)
        && four / 4.0 > gap.max(row / f64::from(shape.groups * shape.banks))
        && !(one_bus && four / 4.0 <= all_slots)
    {
        add("activations", "FAW / 4", each(&accesses("every-bank", REQUESTS), none), four / 4.0);
    }
    if let [Some(row), Some(to_close), Some(closing), Some(opening)] = [t("RC"), t("RTP"), t("RP"), open] {
        let expected = row.max(opening + to_close + closing);
        add("one bank", "max(RC, RCD + RTP + RP)", each(&accesses("one-bank", REQUESTS), none), expected);
    }
    if let Some(gap) = t("CCD_L") {
        add("row hits", "CCD_L", each(&accesses("one-row", REQUESTS), none), gap);
    }
    if let Some(opening) = open {
        let idle = drive(device, none, &accesses("one-row", 1));
        let own = &device.organisation;
        // RCD is from the last slot of the activation to the last one of the read.
        let rest = f64::from(slots(Effect::Open) + own.read_cycles + own.burst_cycles) - f64::from(slots(Effect::Read));
        add("idle read", "RCD + CL + BL", idle.read_cycles, opening + rest);
    }
    limits
}

/// Everything that was compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Validation {
    /// Streams beside the references.
    pub comparisons: Vec<Comparison>,
    /// Streams beside arithmetic.
    pub limits: Vec<Limit>,
}

impl Validation {
    /// Runs every stream, without refresh and with it.
    ///
    /// # Errors
    /// A built-in device does not load.
    pub fn run() -> Result<Validation, Diagnostics> {
        let mut comparisons = Vec::new();
        for [name, bin, density, own] in COMPARED {
            let device = built_in(name, bin, density, own)?;
            for refreshed in [false, true] {
                let policy = if refreshed { RefreshPolicy::AllBank } else { RefreshPolicy::None };
                for stream in STREAMS {
                    let references = Reference::all().filter(|own| (own.device, own.stream) == (name, stream.name));
                    comparisons.push(Comparison {
                        device: name,
                        stream,
                        refreshed,
                        cycles: drive(&device, policy, &stream.accesses(shape(&device), REQUESTS)).cycles,
                        references: references.map(|own| own.cycles(refreshed)).collect(),
                    });
                }
            }
        }
        let mut limits = Vec::new();
        for own in device::builtin() {
            limits.extend(limits_of(&built_in(own.name, "", "", "")?));
        }
        Ok(Validation { comparisons, limits })
    }

    /// Figures out of their bounds.
    pub fn beyond(&self) -> usize {
        let comparisons = self.comparisons.iter().filter(|own| !own.is_within()).count();
        comparisons + self.limits.iter().filter(|own| !own.is_within()).count()
    }

    /// Both tables.
    pub fn tables(&self) -> [FigureTable; 2] {
        let names: Vec<&str> = ["device", "stream", "refresh", "ours"].into();
        let simulators = ["Ramulator 2.1", "DRAMsim3"];
        let columns: Vec<&str> =
            names.into_iter().chain(simulators).chain(["beyond both", "bound", "within"]).collect();
        let title = format!("cycles for {REQUESTS} requests, beside two simulators");
        let mut beside = FigureTable::new("devices", &title, &columns);
        // A reference that has no cycles of a stream leaves a gap.
        let verdict = |within: bool| Cell::from(if within { "yes" } else { "NO" });
        for own in &self.comparisons {
            let reference = |nth: usize| own.references.get(nth).map_or(Cell::None, |cycles| Cell::Number(*cycles, 0));
            beside.push(vec![
                Cell::from(own.device),
                Cell::from(own.stream.title),
                Cell::from(if own.refreshed { "all_bank" } else { "none" }),
                Cell::Count(own.cycles),
                reference(0),
                reference(1),
                Cell::Share(own.deviation()),
                Cell::Share(own.bound()),
                verdict(own.is_within()),
            ]);
        }
        // A limit is of cycles a request, so that devices can be compared.
        let columns = ["device", "limit", "is", "ours", "expected", "deviation", "bound", "within"];
        let mut limits = FigureTable::new("limits", "cycles a request, beside arithmetic", &columns);
        for own in &self.limits {
            limits.push(vec![
                Cell::from(own.device.as_str()),
                Cell::from(own.name),
                Cell::from(own.by),
                Cell::Number(own.cycles, 2),
                Cell::Number(own.expected, 2),
                Cell::Share(own.cycles / own.expected - 1.0),
                Cell::Share(LIMIT_BOUND),
                verdict(own.is_within()),
            ]);
        }
        [beside, limits]
    }
}
