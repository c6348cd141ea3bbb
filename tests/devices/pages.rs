//! When rows are closed, policy by policy: which commands a stream is, and what single reads take, as
//! arithmetic.

use durawarp::devices::built_in;
use durawarp::kernel::memory::{DRAM_BASE, Medium};
use durawarp::machine::media::{Media, MediaSpec, NvmSpec};
use durawarp::machine::memory_controller::PagePolicy;
use durawarp::one_channel::{ChannelRequest, ChannelRun, OneChannel, RequestStream};
use durawarp::spec::Nanos;

use crate::table::DeviceTable;

const PAGES: [PagePolicy; 5] =
    [PagePolicy::Open, PagePolicy::Closed, PagePolicy::OpenAdaptive, PagePolicy::ClosedAdaptive, PagePolicy::Timeout];

/// DDR4-2400R, a tick a cycle: CL, RCD and RP of 16, RAS 39, RTP 9, bursts of 4, CWL 12, WR 18.
pub(crate) fn ddr4() -> OneChannel {
    let device = built_in("ddr4", "2400R", "8Gb_x8", "").unwrap_or_else(|faults| panic!("{faults}"));
    OneChannel::of_device(&device, &MediaSpec::default(), 4)
}

/// The same times as keys of a machine.
fn plain() -> OneChannel {
    let cycles = |count: u64| Nanos { ps: 1000 * count };
    let dram = MediaSpec {
        banks: 4,
        row_bytes: 8192,
        t_rcd_ns: cycles(16),
        t_cl_ns: cycles(16),
        t_wl_ns: cycles(12),
        t_rp_ns: cycles(16),
        t_ras_ns: cycles(39),
        t_wr_ns: cycles(18),
        ..MediaSpec::default()
    };
    let OneChannel { spec, clock, base, .. } = ddr4();
    let bus = durawarp::machine::media::BusSpec {
        bytes_per_cycle: 16,
        read_to_write_ns: cycles(2),
        write_to_read_ns: cycles(3),
    };
    let nvm = NvmSpec::through(&MediaSpec::default(), cycles(1));
    let media = Media::new(&dram, &nvm, &bus, clock, base);
    OneChannel { spec, media, clock, base, request_bytes: 64, bytes: 4 * 4 * 8192 }
}

/// Requests to rows of bank 0: row, whether it writes, and the first cycle at which it may be sent.
fn run(mut channel: OneChannel, page: PagePolicy, requests: &[(u32, bool, u64)]) -> ChannelRun {
    channel.spec.page = page;
    channel.spec.page_timeout_ns = Nanos { ps: 100_000 };
    channel.media.keep_commands();
    let rows = channel.rows(Medium::Dram, 8192);
    let first = |row: u32| rows.iter().find(|(place, _)| *place == (0, row)).expect("a row of bank 0").1;
    let request = |&(row, write, from): &(u32, bool, u64)| ChannelRequest {
        address: DRAM_BASE + first(row) + from % 100 * 64,
        write,
        from,
    };
    let requests = requests.iter().map(request).collect();
    channel.run(&[RequestStream { requests, reads_in_flight: 64, writes_waiting: 64 }])
}

/// The commands of a run in the order of their times, and the times.
pub(crate) fn commands(run: &ChannelRun) -> (String, Vec<u64>) {
    let table = DeviceTable::built_in("ddr4", ["2400R", "8Gb_x8"], 1, &[]);
    let mut all = run.commands.clone();
    all.sort_by_key(|own| own.at);
    let names: Vec<&str> = all.iter().map(|own| table.commands[usize::from(own.command)].name.as_str()).collect();
    (names.join(" "), all.iter().map(|own| own.at).collect())
}

#[test]
fn each_policy_closes_rows_behind_the_accesses_that_it_says() {
    // Three at once, of which the last is to another row; much later one more to that, and one to a third.
    for write in [false, true] {
        let stream = [(0, write, 0), (0, write, 1), (1, write, 2), (1, write, 1000), (2, write, 2000)];
        let [column, closing] = if write { ["WR", "WRA"] } else { ["RD", "RDA"] };
        for (page, expected) in [
            (PagePolicy::Open, "ACT C C PRE ACT C C PRE ACT C"),
            (PagePolicy::Closed, "ACT A ACT A ACT A ACT A ACT A"),
            (PagePolicy::ClosedAdaptive, "ACT C A ACT A ACT A ACT A"),
            // Nothing waits behind the third, and so it stays open for the fourth.
            (PagePolicy::OpenAdaptive, "ACT C A ACT C C PRE ACT C"),
            (PagePolicy::Timeout, "ACT C C PRE ACT C PRE ACT C PRE ACT C"),
        ] {
            let words = expected.split(' ').map(|word| match word {
                "C" => column,
                "A" => closing,
                other => other,
            });
            let (found, times) = commands(&run(ddr4(), page, &stream));
            assert_eq!(found, words.collect::<Vec<_>>().join(" "), "{page:?}");
            if page == PagePolicy::Timeout {
                // The first precharge is for the request that waits; the others are lazy, and on time.
                assert_eq!([times[6] - times[5], times[9] - times[8]], [100; 2], "{times:?}");
            }
        }
    }
}

/// Cycles of 40 single reads together, the first of which finds no row open.
fn forty_reads(channel: OneChannel, page: PagePolicy, rows: impl Fn(u32) -> u32) -> f64 {
    let requests: Vec<(u32, bool, u64)> = (0..40).map(|nth| (rows(nth), false, 400 * u64::from(nth))).collect();
    (run(channel, page, &requests).read_cycles * 40.0).round()
}

#[test]
fn single_reads_take_what_their_row_has_before_it() {
    let (closed, hit, conflict) = (16.0 + 16.0 + 4.0, 16.0 + 4.0, 16.0 + 16.0 + 16.0 + 4.0);
    for page in PAGES {
        let stays_open = matches!(page, PagePolicy::Open | PagePolicy::OpenAdaptive);
        for channel in [ddr4, plain] {
            let first_and = |others: f64| if stays_open { closed + others } else { 40.0 * closed };
            // Another row each time: what closes rows early saves tRP.
            let found = forty_reads(channel(), page, |nth| nth % 3);
            assert_eq!(found, first_and(39.0 * conflict), "{page:?}, other rows");
            // The same row: what leaves it open saves tRCD.
            let found = forty_reads(channel(), page, |_| 1);
            assert_eq!(found, first_and(39.0 * hit), "{page:?}, one row");
            // Three of a row: nothing waits when one is served, and the adaptive one leaves it open.
            let found = forty_reads(channel(), page, |nth| nth / 3 % 3);
            assert_eq!(found, first_and(13.0 * conflict + 26.0 * hit), "{page:?}, three of each row");
        }
    }
}

#[test]
fn a_row_is_not_closed_by_time_while_it_is_used_or_before_it_is_time() {
    // 99 cycles after the column command of the one before it, one finds the row open; 150 later, closed.
    let reads = |gap: u64| (0..10).map(|nth| (0, false, nth * gap)).collect::<Vec<_>>();
    let times_of_rows = |gap| run(ddr4(), PagePolicy::Timeout, &reads(gap)).counters.activates;
    assert_eq!([times_of_rows(50), times_of_rows(99), times_of_rows(150)], [1, 1, 10]);
}

#[test]
fn back_to_back_reads_of_a_row_are_faster_where_it_stays_open() {
    let reads: Vec<(u32, bool, u64)> = (0..64).map(|nth| (0, false, nth)).collect();
    let cycles = |page| run(ddr4(), page, &reads).cycles;
    let (open, closed) = (cycles(PagePolicy::Open), cycles(PagePolicy::Closed));
    // One group: CCD_L, 6, apart; or closed each time, tRC, 55, apart.
    assert_eq!(closed - open, 63 * (55 - 6), "{open} and {closed}");
    assert_eq!([PagePolicy::OpenAdaptive, PagePolicy::ClosedAdaptive].map(cycles), [open; 2]);
}
