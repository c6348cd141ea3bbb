//! Localities of AGPM's Table II beside a count by hand: a model of one warp, in caches that are large enough,
//! from the addresses of the kernels. It shares nothing with the handlers that count.
//!
//! The rules, as the arithmetic of ATAX's rows gives them:
//!
//! * A half-warp's access is a transaction: 64 B of a store or a load of 16 words, 32 B of a broadcast.
//! * Every store is a log update; what it writes is known from then on, by the address of its transaction.
//! * An access counts at a level where its line is filled: as temporal where its address is known, as spatial
//!   where one of its line is. A load that waits for a fill does not count.
//! * A store goes past the L1 and evicts its line there. A load that misses the L1 fills the whole line.
//!
//! One warp makes it exact: no access meets another warp's fill.

use std::collections::BTreeSet;

use durawarp::outcome::Outcome;
use durawarp::papers::agpm::runs::{READINGS, counting};
use durawarp::papers::agpm::{self, kernels};
use durawarp::run::Experiment;

/// `t_all`, `t_log`, `s_all`, `s_log` at the L1, then at the L2.
type Counts = [[u64; 4]; 2];

/// A warp that does one thing after the other.
#[derive(Default)]
struct Model {
    known: BTreeSet<u64>,
    l1: BTreeSet<u64>,
    l2: BTreeSet<u64>,
    counts: Counts,
}

fn line(address: u64) -> u64 {
    address / 128
}

impl Model {
    fn count(&mut self, level: usize, address: u64, is_store: bool) {
        let is_known = self.known.contains(&address);
        let line_is = self.known.iter().any(|known| line(*known) == line(address));
        for (at, counts) in [is_known, is_known && is_store, line_is, line_is && is_store].into_iter().enumerate() {
            self.counts[level][at] += u64::from(counts);
        }
    }

    fn load_at(&mut self, transactions: [u64; 2]) {
        let mut fills = BTreeSet::new();
        for address in transactions {
            if self.l1.contains(&line(address)) {
                self.count(0, address, false);
            } else if fills.insert(line(address)) && self.l2.contains(&line(address)) {
                self.count(1, address, false);
            }
        }
        self.l1.extend(&fills);
        self.l2.extend(&fills);
    }

    /// 32 words in a row.
    fn load(&mut self, base: u64) {
        self.load_at([base, base + 64]);
    }

    /// One word in all lanes.
    fn broadcast(&mut self, address: u64) {
        self.load_at([address / 32 * 32; 2]);
    }

    fn store(&mut self, base: u64) {
        for address in [base, base + 64] {
            if self.l1.remove(&line(address)) {
                self.count(0, address, true);
            }
            if self.l2.contains(&line(address)) {
                self.count(1, address, true);
            }
        }
        self.l2.insert(line(base));
        self.known.extend([base, base + 64]);
    }

    /// An element a thread is saved.
    fn log(&mut self, home: u64) {
        self.load(home);
        self.store(home + LOG);
    }

    /// The counts of a kernel.
    fn kernel(&mut self, body: impl FnOnce(&mut Self)) -> Counts {
        self.counts = Counts::default();
        body(self);
        self.counts
    }
}

/// From a buffer to its log.
const LOG: u64 = 1 << 32;
/// Buffers of 32 words.
const TMP: u64 = 1 << 20;
/// Another.
const Y: u64 = 2 << 20;
/// Threads, and elements of a row.
const N: u64 = 32;

/// Every update of a loop is loaded, added to and stored.
fn sum(model: &mut Model, home: u64, mut each: impl FnMut(&mut Model, u64)) {
    model.log(home);
    model.load(home);
    for step in 0..N {
        each(model, step);
        model.load(home);
        model.store(home);
    }
}

/// What the simulator counts of a paper's kernel, in its first reading.
fn simulated(name: &str, sizes: &[(&str, u64)]) -> Counts {
    let kernel = kernels::find(name).unwrap();
    let run = counting(kernel, &READINGS[0]);
    let mut recipe = Experiment::of(kernel.workload).scheme("agpm").profile("ci").reference(false);
    recipe = recipe.instrument(run.instrument.or(agpm::PAPER.instrument)).changes(run.set.iter().map(String::as_str));
    for (size, value) in sizes {
        recipe = recipe.param(size, value);
    }
    let outcome: Outcome = recipe.run().unwrap_or_else(|faults| panic!("{faults}"));
    let selection = outcome.selection().unwrap();
    let mut counts = Counts::default();
    for period in selection.periods.iter().filter(|period| kernel.kernels.contains(&period.kernel.as_str())) {
        for (level, at) in counts.iter_mut().zip([period.l1, period.l2]) {
            for (sum, count) in level.iter_mut().zip([at.t_all, at.t_log, at.s_all, at.s_log]) {
                *sum += count;
            }
        }
    }
    counts
}

#[test]
fn atax_counts_as_by_hand_and_its_second_kernel_knows_what_the_first_has_logged() {
    let mut model = Model::default();
    let first = model.kernel(|model| sum(model, TMP, |_, _| {}));
    let second = model.kernel(|model| sum(model, Y, |model, step| model.broadcast(TMP + 4 * step)));
    let sizes = [("NX", N), ("NY", N)];
    assert_eq!(simulated("ATAX1", &sizes), first);
    assert_eq!(simulated("ATAX2", &sizes), second);
    // A line's first half-warp hits and evicts it; both hit in the L2. The first store is no re-hit.
    assert_eq!((first[0], first[1][1]), ([N - 1; 4], 2 * (N - 1)));
    // Of the loads of `tmp` the upper halves of transactions are spatial alone.
    assert!(second[0][2] > second[0][0] && second[0][1] == first[0][1], "{second:?}");
}

#[test]
fn mvt_and_gesummv_count_as_by_hand() {
    let mvt = Model::default().kernel(|model| sum(model, TMP, |_, _| {}));
    assert_eq!(simulated("MVT1", &[("N", N), ("KERNELS", 1)]), mvt);
    // Two sums a thread, whose compiled kernel loads both each time, and at its end stores one more.
    let gesummv = Model::default().kernel(|model| {
        [TMP, Y].into_iter().for_each(|home| model.log(home));
        for _ in 0..N {
            for home in [TMP, Y] {
                model.load(home);
                model.store(home);
            }
        }
        model.load(TMP);
        model.store(Y);
    });
    assert_eq!(simulated("GESUMMV", &[("N", N)]), gesummv);
}

/// In rows of whole lines, as in the paper's sizes: else neighbours share one.
#[test]
fn kernels_that_store_each_element_once_have_no_locality() {
    let stencil = [("NX", 64), ("LAUNCHES", 1)];
    for (name, sizes) in
        [("StreamTriad", &[("REPEAT", 1)][..]), ("2DCONV", &[("NI", 48), ("NJ", 64)]), ("Stencil1", &stencil)]
    {
        assert_eq!(simulated(name, sizes), Counts::default(), "{name}");
    }
    // A second launch stores them again.
    let [l1, l2] = simulated("StreamTriad", &[("REPEAT", 2)]);
    assert!(l1[1] > 0 && l2[1] > 0);
}

#[test]
fn without_the_load_that_the_assembly_forces_nothing_hits_in_the_l1() {
    let kept = Experiment::of("atax").scheme("agpm").profile("ci").reference(false);
    let run = counting(kernels::find("ATAX1").unwrap(), &READINGS[1]);
    let outcome = kept.instrument(run.instrument).changes(run.set.iter().map(String::as_str)).run().unwrap();
    let periods = outcome.selection().unwrap().periods.clone();
    assert!(periods.iter().all(|period| period.l1.t_log == 0), "{periods:?}");
    assert!(periods.iter().any(|period| period.l2.t_log > 0));
}
