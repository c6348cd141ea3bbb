//! What kept commands from earlier edges is counted by its cause, and refreshes are.

use durawarp::devices::streams::STREAMS;
use durawarp::devices::{built_in, drive, shape};
use durawarp::kernel::memory::DRAM_BASE;
use durawarp::machine::device::RefreshPolicy;
use durawarp::machine::media::MediaSpec;
use durawarp::machine::memory_controller::ControllerCounters;
use durawarp::one_channel::{ChannelRequest, OneChannel, RequestStream};

const REQUESTS: u32 = 2_000;

/// The counters of a stream of requests, and its cycles.
fn counted(device: &str, stream: &str, refresh: RefreshPolicy) -> (ControllerCounters, u64) {
    let device = built_in(device, "", "", "").unwrap_or_else(|faults| panic!("{faults}"));
    let stream = STREAMS.iter().find(|own| own.name == stream).expect("a stream of this name");
    let run = drive(&device, refresh, &stream.accesses(shape(&device), REQUESTS));
    (run.counters, run.cycles)
}

#[test]
fn rows_are_held_by_the_window_of_four_or_by_the_one_before() {
    // DDR4-2400: four activations in 26 cycles, and 4 cycles from one to the next.
    let (ddr4, _) = counted("ddr4", "every-bank", RefreshPolicy::None);
    assert!(ddr4.faw_held >= u64::from(REQUESTS) / 5, "{ddr4:?}");
    // HBM2: four in 15, of no effect beside 4 from one to the next.
    let (hbm2, _) = counted("hbm2", "every-bank", RefreshPolicy::None);
    assert!(hbm2.faw_held == 0 && hbm2.rrd_held >= u64::from(REQUESTS) / 2, "{hbm2:?}");
    // Hits open few rows.
    let (hits, _) = counted("ddr4", "one-row", RefreshPolicy::None);
    assert_eq!((hits.faw_held, hits.rrd_held, hits.activates), (0, 0, 1));
}

#[test]
fn reads_are_held_by_writes_of_their_rank_before_them() {
    let (mixed, _) = counted("ddr4", "group-mixed", RefreshPolicy::None);
    assert!((1..=mixed.turnarounds).contains(&mixed.wtr_held), "{mixed:?}");
    assert_eq!(counted("ddr4", "group-reads", RefreshPolicy::None).0.wtr_held, 0);
}

#[test]
fn refreshes_are_counted_and_the_time_that_requests_waited_for_their_turn() {
    let (none, _) = counted("ddr4", "random-reads", RefreshPolicy::None);
    assert_eq!((none.refreshes, none.refresh_blocked_ticks), (0, 0));
    // 7.8 us of 0.833 ns.
    let (own, cycles) = counted("ddr4", "random-reads", RefreshPolicy::AllBank);
    assert!(own.refreshes.abs_diff(cycles / 9363) <= 1 && own.refreshes > 0, "{own:?} in {cycles}");
    // Each waits until rows that were just opened may be closed: at most tRAS, tRTP or tWR and tRP.
    assert!((own.refreshes..100 * own.refreshes).contains(&own.refresh_blocked_ticks), "{own:?}");
}

#[test]
fn refreshes_that_an_idle_controller_slept_through_are_counted_and_hold_back_as_the_last_of_them_does() {
    let device = built_in("ddr4", "", "", "").unwrap_or_else(|faults| panic!("{faults}"));
    let dram = MediaSpec { refresh: RefreshPolicy::AllBank, ..MediaSpec::default() };
    // Refreshes fall due each 9,363 cycles and take 421.
    let due = 1000 * 9363;
    let read_at = |from: u64| {
        let read = |from| ChannelRequest { address: DRAM_BASE, write: false, from };
        let stream = RequestStream { requests: vec![read(0), read(from)], reads_in_flight: 1, writes_waiting: 1 };
        let ran = OneChannel::of_device(&device, &dram, 1).run(&[stream]);
        (ran.counters.refreshes, ran.cycles - from)
    };
    // A cycle to the controller and one back; the row that the first read opened was closed by refreshes.
    let idle = 1 + 16 + 16 + 4 + 1;
    assert_eq!(read_at(due - 40), (999, idle), "over before the next one");
    assert_eq!(read_at(due - 1 + 421), (1000, idle), "behind it");
    assert_eq!(read_at(due - 1 + 400), (1000, idle + 21), "21 cycles before its end");
}
