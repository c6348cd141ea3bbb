//! Rates of a whole machine over time, from what its components counted in windows of equal length: tracks of
//! a timeline.
//!
//! The last window may be shorter than the others. What is counted after the end of the run is left out. A
//! rate over nothing (hits where nothing was looked up) is 0.

use crate::assemble::Assembly;
use durawarp_base::timeline::{Content, Growth, Process, Track};
use durawarp_engine::Time;

/// Windows that a track has, at most.
const WINDOWS: u64 = 512;

/// Growth of all components of a kind.
struct Grown {
    /// Ticks of a window.
    window: u64,
    all: Vec<Growth>,
    now: Time,
}

impl Grown {
    /// Core cycles of a window: all but the last are whole.
    fn cycles(&self, cycle_ticks: u64, at: usize) -> f64 {
        self.now.saturating_sub(at as u64 * self.window).min(self.window) as f64 / cycle_ticks as f64
    }

    /// A counter's growth in each window up to `now`, all components together.
    fn total(&self, counter: usize) -> Vec<u64> {
        let mut sums = Vec::new();
        for growth in &self.all {
            for (at, grew) in growth.of(counter, self.window).into_iter().enumerate() {
                if sums.len() <= at {
                    sums.resize(at + 1, 0);
                }
                sums[at] += grew;
            }
        }
        sums.truncate(self.now.div_ceil(self.window) as usize);
        sums
    }
}

/// `amounts[i] * factor / over(i)`, in thousandths, from the beginning of each window on.
fn track(
    (name, class): (&str, &'static str),
    window: u64,
    amounts: &[u64],
    factor: f64,
    over: impl Fn(usize) -> f64,
) -> Track {
    let rate = |(at, &amount): (usize, &u64)| {
        let over = over(at);
        let rate = if over == 0.0 { 0.0 } else { amount as f64 * factor / over };
        (at as u64 * window, (rate * 1000.0).round() as u64)
    };
    let values = amounts.iter().enumerate().map(rate).collect();
    Track { name: name.to_owned(), class, content: Content::Thousandths(values) }
}

/// Growth of the components of a machine, in windows that all have.
struct MachineGrowth {
    /// SMs or cores, slices of the shared cache, controllers.
    kinds: [Grown; 3],
    cycle_ticks: u64,
    tick_khz: u64,
}

const CLASS: &str = "rates";

impl MachineGrowth {
    fn new(kinds: [Vec<Growth>; 3], now: Time, cycle_ticks: u64, tick_khz: u64) -> MachineGrowth {
        let finest = kinds.iter().flatten().map(Growth::window).max().unwrap_or(1);
        let window = if now / finest >= WINDOWS { 2 * finest } else { finest };
        MachineGrowth { kinds: kinds.map(|all| Grown { window, all, now }), cycle_ticks, tick_khz }
    }

    /// The window, which all kinds have.
    fn window(&self) -> Time {
        self.kinds[0].window
    }

    /// Core cycles of a window.
    fn cycles(&self, at: usize) -> f64 {
        self.kinds[0].cycles(self.cycle_ticks, at)
    }

    fn share(&self, name: &str, part: &[u64], whole: &[u64]) -> Track {
        let whole = |at: usize| whole.get(at).copied().unwrap_or_default() as f64;
        track((name, CLASS), self.window(), part, 100.0, whole)
    }

    /// What SMs or cores counted, in each core cycle.
    fn each_cycle(&self, name: &str, counter: usize) -> Track {
        track((name, CLASS), self.window(), &self.kinds[0].total(counter), 1.0, |at| self.cycles(at))
    }

    /// What controllers moved.
    fn moved(&self, name: &str, counter: usize) -> Track {
        let seconds = |at: usize| self.cycles(at) * self.cycle_ticks as f64 / (self.tick_khz as f64 * 1e3);
        track((name, CLASS), self.window(), &self.kinds[2].total(counter), 1e-9, seconds)
    }
}

/// A process of these tracks, and how many values they have.
fn process(tracks: Vec<Track>) -> (Process, u64) {
    let noted = tracks.iter().map(|track| track.content.len()).sum();
    (Process { name: "machine".to_owned(), tracks }, noted)
}

/// The tracks of a machine with a GPU that kept timelines, until `now`. A core cycle has `cycle_ticks` ticks.
pub(super) fn of_gpu(machine: &Assembly, now: Time, cycle_ticks: u64, tick_khz: u64) -> (Process, u64) {
    let kinds = [
        machine.sms().filter_map(|sm| sm.growth(now)).collect(),
        machine.slices().filter_map(|slice| slice.growth(now)).collect(),
        machine.controllers().filter_map(|controller| controller.growth(now)).collect(),
    ];
    let all = MachineGrowth::new(kinds, now, cycle_ticks, tick_khz);
    let [sms, slices, _] = &all.kinds;
    process(vec![
        all.each_cycle("IPC (warp instructions/cycle)", 0),
        all.each_cycle("resident warps", 3),
        all.each_cycle("warps waiting for memory", 4),
        all.share("L1 load hits (%)", &sms.total(2), &sms.total(1)),
        all.share("L2 read hits (%)", &slices.total(1), &slices.total(0)),
        all.moved("DRAM (GB/s)", 0),
        all.moved("NVM (GB/s)", 1),
    ])
}

/// The tracks of a machine of cores that kept timelines, until `now`: of all servers together. Each core
/// dispatches up to `width` instructions a cycle.
pub(super) fn of_cores(machine: &Assembly, width: u32, now: Time, cycle_ticks: u64, tick_khz: u64) -> (Process, u64) {
    let kinds = [
        machine.cores().filter_map(|core| core.growth(now)).collect(),
        machine.homes().filter_map(|home| home.growth(now)).collect(),
        machine.controllers().filter_map(|controller| controller.growth(now)).collect(),
    ];
    let all = MachineGrowth::new(kinds, now, cycle_ticks, tick_khz);
    let [cores, homes, _] = &all.kinds;
    let slots_a_cycle = f64::from(width) * cores.all.len() as f64;
    let slots = |name: &str, counter: usize| {
        track((name, CLASS), all.window(), &cores.total(counter), 100.0, |at| all.cycles(at) * slots_a_cycle)
    };
    let (loads, misses) = (cores.total(1), cores.total(2));
    // A miss is counted when it is found, which may be a window later than its load.
    let of = |counts: &[u64], at: usize| counts.get(at).copied().unwrap_or_default();
    let hits: Vec<u64> = (0..loads.len()).map(|at| loads[at].saturating_sub(of(&misses, at))).collect();
    let (found, fetched) = (homes.total(0), homes.total(1));
    let reads: Vec<u64> = (0..found.len().max(fetched.len())).map(|at| of(&found, at) + of(&fetched, at)).collect();
    process(vec![
        all.each_cycle("IPC (instructions/cycle)", 0),
        slots("dispatch slots used (%)", 3),
        slots("dispatch slots lost to memory (%)", 4),
        slots("dispatch slots lost to durable fences (%)", 5),
        all.share("L1D load hits (%)", &hits, &loads),
        all.share("shared cache hits (%)", &found, &reads),
        all.moved("DRAM (GB/s)", 0),
        all.moved("NVM (GB/s)", 1),
    ])
}

/// How many warps of one SM waited for memory over time, and how many there were.
pub(super) fn of_sm(growth: &Growth, now: Time, cycle_ticks: u64) -> Vec<Track> {
    let window = growth.window();
    let grown = Grown { window, all: vec![growth.clone()], now };
    let cycles = |at: usize| grown.cycles(cycle_ticks, at);
    let of = |name, counter| track((name, "rates of SMs"), window, &grown.total(counter), 1.0, cycles);
    vec![of("resident warps", 3), of("warps waiting for memory", 4)]
}

/// Instructions a cycle of one core over time; nothing of a core without any.
pub(super) fn of_core(growth: &Growth, now: Time, cycle_ticks: u64) -> Option<Track> {
    let window = growth.window();
    let grown = Grown { window, all: vec![growth.clone()], now };
    let cycles = |at: usize| grown.cycles(cycle_ticks, at);
    let instructions = grown.total(0);
    let ran = instructions.iter().any(|&of| of > 0);
    ran.then(|| track(("IPC (instructions/cycle)", "rates of cores"), window, &instructions, 1.0, cycles))
}
