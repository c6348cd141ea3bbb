//! Banks that requests do not share do not wait for each other: what one closes is nothing to the others.

use durawarp::engine::{Clock, Timebase};
use durawarp::kernel::memory::{Medium, NVM_BASE};
use durawarp::machine::media::{BusSpec, Media, MediaSpec, NvmSpec, RowWriteWhen, WriteMode};
use durawarp::machine::memory_controller::{ControllerSpec, PagePolicy};
use durawarp::one_channel::{ChannelRequest, OneChannel, RequestStream};
use durawarp::spec::Nanos;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};

fn ps(ps: u64) -> Nanos {
    Nanos { ps }
}

/// BROI's NVM: eight banks, whose rows are written to the cells when they close.
fn media() -> Media {
    let rows = MediaSpec {
        banks: 8,
        row_bytes: 2048,
        t_rcd_ns: ps(64_000),
        t_cl_ns: ps(36_000),
        t_wl_ns: ps(36_000),
        t_rp_ns: ps(0),
        t_ras_ns: ps(64_000),
        t_ccd_ns: ps(1250),
        bank_groups: 1,
        t_ccd_l_ns: ps(1250),
        t_rrd_ns: ps(6000),
        t_wr_ns: ps(0),
        ..MediaSpec::default()
    };
    let nvm = NvmSpec {
        write_mode: WriteMode::RowBuffer,
        row_write_when: RowWriteWhen::Close,
        row_write_ns: ps(200_000),
        write_hit_ns: ps(36_000),
        row_buffer_durable: true,
        ..NvmSpec::through(&rows, ps(200_000))
    };
    let bus = BusSpec { bytes_per_cycle: 16, read_to_write_ns: ps(2500), write_to_read_ns: ps(7500) };
    let (clock, base) = clock();
    Media::new(&rows, &nvm, &bus, clock, base)
}

/// Ticks of 250 ps, a cycle of five.
fn clock() -> (Clock, Timebase) {
    (Clock::of_period(5), Timebase::of_khz(&[800_000, 1_000_000]).expect("4 GHz"))
}

/// Random lines of which each lies in one of these banks of NVM, as a stream that may have `in_flight` on
/// their way.
fn stream(write: bool, count: usize, in_flight: usize, banks: std::ops::Range<u16>) -> RequestStream {
    let media = media();
    let (first, _) = media.nvm_banks();
    let mut random = Pcg64Mcg::seed_from_u64(u64::from(banks.start));
    let mut line = || loop {
        let line = random.next_u64() % (BYTES as u64 / 64) * 64;
        if banks.contains(&(media.place(Medium::Nvm, line).bank - first)) {
            return NVM_BASE + line;
        }
    };
    let requests = (0..count).map(|_| ChannelRequest { address: line(), write, from: 0 }).collect();
    RequestStream { requests, reads_in_flight: in_flight, writes_waiting: in_flight }
}

const BYTES: usize = 16 << 20;

fn cycles(streams: &[RequestStream]) -> u64 {
    let ns = |ns: u64| ps(ns * 1000);
    let spec = ControllerSpec {
        drain_min_writes: 1,
        row_hit_cap: 4,
        page: PagePolicy::Open,
        page_timeout_ns: ns(1),
        front_ns: ns(1),
        back_ns: ns(1),
        forward_ns: ns(1),
        ..OneChannel::queues_of_64()
    };
    let (clock, base) = clock();
    OneChannel { spec, media: media(), clock, base, request_bytes: 64, bytes: BYTES }.run(streams).cycles
}

#[test]
fn reads_and_writes_of_disjoint_banks_take_hardly_longer_than_the_longer_of_them() {
    // Few reads are on their way, as of a core: then each wait of a bank for another shows.
    let (reads, writes) = (stream(false, 3000, 4, 0..4), stream(true, 3000, 64, 4..8));
    let alone = [&reads, &writes].map(|stream| cycles(std::slice::from_ref(stream)));
    let both = cycles(&[reads, writes]);
    let longer = alone[0].max(alone[1]) as f64;
    assert!(both as f64 <= 1.05 * longer, "{both} cycles together, {alone:?} alone");
}
