//! Rates of a whole machine over time, from what its components counted in windows of equal length: tracks of
//! a timeline.
//!
//! The last window may be shorter than the others. What is counted after the end of the run is left out. A
//! rate over nothing (hits where nothing was looked up) is 0.

use crate::assemble::Assembly;
use crate::engine::Time;
use crate::timeline::{Content, Growth, Process, Track};

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

/// The tracks of a machine with a GPU that kept timelines, until `now`. A core cycle has `cycle_ticks` ticks.
pub(super) fn of_gpu(machine: &Assembly, now: Time, cycle_ticks: u64, tick_khz: u64) -> (Process, u64) {
    let sms: Vec<Growth> = machine.sms().filter_map(|sm| sm.growth(now)).collect();
    let slices: Vec<Growth> = machine.slices().filter_map(|slice| slice.growth(now)).collect();
    let controllers: Vec<Growth> = machine.controllers().filter_map(|controller| controller.growth(now)).collect();
    let finest = sms.iter().chain(&slices).chain(&controllers).map(Growth::window).max().unwrap_or(1);
    let window = if now / finest >= WINDOWS { 2 * finest } else { finest };
    let [sms, slices, controllers] = [sms, slices, controllers].map(|all| Grown { window, all, now });
    // All but the last window are whole.
    let ticks = |at: usize| now.saturating_sub(at as u64 * window).min(window) as f64;
    let cycles = |at: usize| ticks(at) / cycle_ticks as f64;
    let seconds = |at: usize| ticks(at) / (tick_khz as f64 * 1e3);
    const CLASS: &str = "rates";
    let share = |name: &str, part: &[u64], whole: &[u64]| {
        track((name, CLASS), window, part, 100.0, |at| whole.get(at).copied().unwrap_or_default() as f64)
    };
    let moved = |name: &str, counter| track((name, CLASS), window, &controllers.total(counter), 1e-9, seconds);
    let tracks = vec![
        track(("IPC (warp instructions/cycle)", CLASS), window, &sms.total(0), 1.0, cycles),
        track(("resident warps", CLASS), window, &sms.total(3), 1.0, cycles),
        track(("warps waiting for memory", CLASS), window, &sms.total(4), 1.0, cycles),
        share("L1 load hits (%)", &sms.total(2), &sms.total(1)),
        share("L2 read hits (%)", &slices.total(1), &slices.total(0)),
        moved("DRAM (GB/s)", 0),
        moved("NVM (GB/s)", 1),
    ];
    let noted = tracks.iter().map(|track| track.content.len()).sum();
    (Process { name: "machine".to_owned(), tracks }, noted)
}

/// How many warps of one SM waited for memory over time, and how many there were.
pub(super) fn of_sm(growth: &Growth, now: Time, cycle_ticks: u64) -> Vec<Track> {
    let window = growth.window();
    let grown = Grown { window, all: vec![growth.clone()], now };
    let cycles = |at: usize| now.saturating_sub(at as u64 * window).min(window) as f64 / cycle_ticks as f64;
    let of = |name, counter| track((name, "rates of SMs"), window, &grown.total(counter), 1.0, cycles);
    vec![of("resident warps", 3), of("warps waiting for memory", 4)]
}
