//! Requests of several column commands: each is spaced as its bank group needs, and others fill the gaps, so that every
//! data bus of a channel is busy.

use durawarp::devices::built_in;
use durawarp::kernel::memory::DRAM_BASE;
use durawarp::machine::media::MediaSpec;
use durawarp::one_channel::{ChannelRequest, OneChannel, RequestStream};

/// The share of its peak that a channel reaches with reads of lines, one behind the other.
fn share(device: &str, request_bytes: u32) -> f64 {
    let device = built_in(device, "", "", "").unwrap_or_else(|faults| panic!("{faults}"));
    let channel = OneChannel { request_bytes, ..OneChannel::of_device(&device, &MediaSpec::default(), 8) };
    let count = channel.bytes as u64 / u64::from(request_bytes);
    let requests = (0..count).map(|nth| ChannelRequest {
        address: DRAM_BASE + nth * u64::from(request_bytes),
        write: false,
        from: 0,
    });
    let stream = RequestStream { requests: requests.collect(), reads_in_flight: 64, writes_waiting: 64 };
    let ran = channel.run(&[stream]);
    (count * u64::from(request_bytes)) as f64 / ran.cycles as f64 / device.organisation.bytes_per_cycle()
}

#[test]
fn lines_of_128_bytes_fill_the_data_buses_as_atoms_do() {
    // Where a row is of one group, its lines are CCD_L apart: of DDR4 four cycles of six.
    for (device, bytes, least) in [
        ("ddr4", 64, 0.85),
        ("ddr4", 128, 0.75),
        ("hbm2", 64, 0.95),
        ("hbm2", 128, 0.95),
        ("gddr6", 128, 0.95),
        ("gddr7", 128, 0.95),
        ("hbm3", 128, 0.9),
    ] {
        let share = share(device, bytes);
        assert!(share > least && share <= 1.0, "{device} {bytes} B: {share:.3}");
    }
}
