//! What delegated ordering (`epoch`, `broi`) did in a run of a program of CPUs: parallelism of banks, sets,
//! dependencies between harts, and how full the persist buffers were.
//!
//! A bank is busy while a request of it is in the write queue or at the device. A request is stalled if it
//! was ready, or handed over, while its bank was busy with another. A set is what lies between two ordering
//! fences of a hart; a hart's last one, which no fence ends, is no set here. Nothing knows how long a full
//! buffer lasted: the slots lost while the store queue was full are the most that it can have cost.

use serde::Serialize;
use serde_json::{Value, json};

use crate::report::console::{align_right, lines, plain_table};
use crate::report::cores;
use crate::report::numbers::{count, percent};
use durawarp_simulation::outcome::{Outcome, ratio};

/// A distribution: what its counters begin with, and bucket by bucket the rest of a name and a heading.
type Buckets = (&'static str, [(&'static str, &'static str); 5]);

const BANKS: Buckets =
    ("persist_banks_", [("1", "1 bank"), ("2", "2"), ("to_4", "3 to 4"), ("to_8", "5 to 8"), ("more", "more")]);
const SETS: Buckets =
    ("persist_sets_", [("1", "1 request"), ("2", "2"), ("to_4", "3 to 4"), ("to_8", "5 to 8"), ("more", "more")]);
const FILL: Buckets = (
    "persist_fill_",
    [
        ("to_1_quarter", "to 1/4"),
        ("to_2_quarters", "to 1/2"),
        ("to_3_quarters", "to 3/4"),
        ("below_full", "below full"),
        ("full", "full"),
    ],
);

/// What the persist buffers and the controller's queues came to.
#[derive(Debug, Serialize)]
struct Queues {
    requests: u64,
    mean_banks: f64,
    banks: [u64; 5],
    bank_stalled_share: f64,
    sets: u64,
    requests_a_set: f64,
    set_sizes: [u64; 5],
    /// Under `epoch`.
    epochs: u64,
    global_barriers: u64,
    entries: u64,
    fence_entries: u64,
    coalesced_stores: u64,
    dependent_entries: u64,
    fill: [u64; 5],
    full_waits: u64,
    /// Of all dispatch slots, those lost while the store queue was full.
    store_queue_share: f64,
}

impl Queues {
    fn of(o: &Outcome) -> Queues {
        let of = |name: &str| o.scheme_counters.get(name).copied().unwrap_or(0);
        let buckets = |(begins, rest): Buckets| rest.map(|(rest, _)| of(&format!("{begins}{rest}")));
        let slots = cores::slots(o);
        Queues {
            requests: of("persist_requests"),
            mean_banks: ratio(of("persist_banks_summed"), of("persist_issues")),
            banks: buckets(BANKS),
            bank_stalled_share: ratio(of("persist_bank_stalled"), of("persist_requests")),
            sets: of("persist_sets"),
            requests_a_set: ratio(of("persist_set_requests"), of("persist_sets")),
            set_sizes: buckets(SETS),
            epochs: of("persist_epochs"),
            global_barriers: of("persist_global_barriers"),
            entries: of("persist_entries"),
            fence_entries: of("persist_fence_entries"),
            coalesced_stores: of("persist_coalesced_stores"),
            dependent_entries: of("persist_dependent_entries"),
            fill: buckets(FILL),
            full_waits: of("persist_full_waits"),
            store_queue_share: ratio(slots.get("store").copied().unwrap_or(0), slots.values().sum()),
        }
    }

    fn text(&self) -> String {
        let mut table = plain_table();
        let mut row = |name: &str, text: String| {
            table.add_row([name, &text]);
        };
        // At the controller.
        row("requests", count(self.requests));
        row("bank parallelism", format!("{:.2} banks busy on average when a request is handed over", self.mean_banks));
        row("stalled", format!("{} of requests, by a bank busy with another", percent(self.bank_stalled_share)));
        row("sets", format!("{}, {:.2} requests each", count(self.sets), self.requests_a_set));
        if self.epochs > 0 {
            row("epochs", format!("{} of all harts together", count(self.epochs)));
        }
        if self.global_barriers > 0 {
            row("global barriers", count(self.global_barriers));
        }
        // At the cores.
        let (stores, fences) = (count(self.entries), count(self.fence_entries));
        row(
            "buffer entries",
            format!("{stores} of stores, {fences} of fences; {} stores joined one", count(self.coalesced_stores)),
        );
        row(
            "dependent",
            format!(
                "{} entries came behind stores of other harts that were not durable: {} of all",
                count(self.dependent_entries),
                percent(ratio(self.dependent_entries, self.entries + self.fence_entries))
            ),
        );
        row(
            "full buffers",
            format!(
                "met {} times by a store or fence; {} of slots lost behind a full store queue, at most by them",
                count(self.full_waits),
                percent(self.store_queue_share)
            ),
        );
        // Shapes behind the means.
        let mut out = lines(&table, 1);
        out += &shape("requests, by banks busy", BANKS, self.banks);
        out += &shape("sets, by requests", SETS, self.set_sizes);
        out += &shape("entries, by how full their buffer was with them", FILL, self.fill);
        out
    }
}

/// A distribution as a line of shares under its headings.
fn shape(what: &str, (_, rest): Buckets, counts: [u64; 5]) -> String {
    let all: u64 = counts.iter().sum();
    let mut table = plain_table();
    table.set_header(rest.map(|(_, heading)| heading));
    table.add_row(counts.map(|of| if of == 0 { "-".to_owned() } else { percent(ratio(of, all)) }));
    align_right(&mut table, 0..5);
    format!("\n {what}\n{}", lines(&table, 1))
}

/// The part of the explanation that is of these schemes; none of others.
pub(super) fn explain(o: &Outcome) -> Option<(String, Value)> {
    o.scheme_counters.get("persist_requests")?;
    let queues = Queues::of(o);
    Some((format!("\nPersist buffers and queues\n{}", queues.text()), json!(queues)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_simulation::outcome::sample;

    #[test]
    fn means_shares_and_distributions_are_those_of_the_counters() {
        let mut outcome = sample::cores(&[("used_slots", 750), ("store_slots", 250)]);
        assert!(explain(&outcome).is_none(), "no scheme with persist buffers ran");
        let counters = [
            ("persist_requests", 200),
            ("persist_issues", 200),
            ("persist_banks_summed", 450),
            ("persist_banks_2", 150),
            ("persist_banks_to_4", 50),
            ("persist_bank_stalled", 72),
            ("persist_sets", 80),
            ("persist_set_requests", 180),
            ("persist_sets_1", 20),
            ("persist_sets_to_4", 60),
            ("persist_entries", 190),
            ("persist_fence_entries", 10),
            ("persist_dependent_entries", 5),
            ("persist_fill_full", 50),
            ("persist_fill_to_1_quarter", 150),
            ("persist_full_waits", 7),
        ];
        outcome.scheme_counters = counters.map(|(name, value)| (name.to_owned(), value)).into();
        let (text, data) = explain(&outcome).unwrap();
        for part in [
            "2.25 banks busy on average",
            "36.0 % of requests",
            "80, 2.25 requests each",
            "5 entries came behind stores of other harts that were not durable: 2.5 % of all",
            "met 7 times by a store or fence; 25.0 % of slots",
            "75.0 %",
        ] {
            assert!(text.contains(part), "`{part}` is not in\n{text}");
        }
        assert!(!text.contains("epochs"), "there is no epoch of all harts under broi:\n{text}");
        assert_eq!(data["banks"], json!([0, 150, 50, 0, 0]));
        assert_eq!(data["fill"], json!([150, 0, 0, 0, 50]));
    }
}
