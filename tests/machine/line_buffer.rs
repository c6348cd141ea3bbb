//! NVM whose devices have a buffer of lines: what reads and writes wait for, what its cells are written, and which writes
//! survive a power failure. Clock 1 GHz, a tick is a nanosecond; the link to the controller and back takes 1 ns each.

use durawarp::engine::Time;
use durawarp::kernel::memory::{DRAM_BASE, NVM_BASE};
use durawarp::machine::device::{BufferPolicy, Command, Constraint, Device, DeviceBuffer, Effect, Organisation};
use durawarp::machine::media::{Devices, NvmSpec};
use durawarp::machine::msg::ControllerMsg;
use durawarp::persist::vocab::Domain;

use super::memory_controller::{FULL, Ran, Seen, data_times, dram, ns, read, read_of, run_on_devices, spec, write};
use super::row_buffer::{durable, wear};

const HIT: Time = 10;
const MISS: Time = 190;
/// A line takes the cells so long, of reads and of writes; and is in them after the latency of a write.
const READ_LINE: Time = 40;
const WRITE_LINE: Time = 100;
const CELL_WRITE: Time = 300;

/// Four lines of 256 B.
fn buffer() -> DeviceBuffer {
    DeviceBuffer {
        lines: 4,
        line_bytes: 256,
        durable: true,
        policy: BufferPolicy::Lru,
        hit_ps: 1000 * HIT,
        miss_ps: 1000 * MISS,
        cell_write_ps: 1000 * CELL_WRITE,
        read_bandwidth_mb_s: 6400,
        write_bandwidth_mb_s: 2560,
    }
}

/// A device whose bursts carry 32 B a cycle, its data a cycle behind their command.
fn device(buffer: DeviceBuffer) -> Device {
    let command = |name: &str, effect| Command {
        name: name.to_owned(),
        effect,
        target: 0,
        same_bank: false,
        cycles: 1,
        closes: false,
    };
    let apart =
        |of| Constraint { before: of, after: of, scope: None, other: false, delay_cycles: 1, window: 1, line: 1 };
    Device {
        name: "of lines".to_owned(),
        source: "a test".to_owned(),
        variant: [String::new(), String::new()],
        t_ck_ps: 1000,
        organisation: Organisation {
            levels: vec![("bank".to_owned(), 1)],
            bus_levels: 0,
            atom_bytes: 32,
            burst_cycles: 1,
            row_bytes: buffer.line_bytes,
            read_cycles: 1,
            write_cycles: 1,
            two_command_buses: false,
            persistent: true,
        },
        commands: vec![command("RD", Effect::Read), command("WR", Effect::Write)],
        constraints: vec![apart(0), apart(1)],
        refreshes: Vec::new(),
        buffer: Some(buffer),
        timing: Vec::new(),
    }
}

fn ran(buffer: DeviceBuffer, domain: Domain, script: Vec<(Time, ControllerMsg)>) -> Ran {
    let device = device(buffer);
    let devices = Devices { nvm: Some(&device), ..Devices::default() };
    run_on_devices(spec(), (&devices, &NvmSpec::through(&dram(), ns(480))), domain, None, script)
}

/// The address of a line of the buffer.
fn line(nth: u64) -> u64 {
    NVM_BASE + 256 * nth
}

/// From a request's data in the device to it at the slice: the command, 128 B, the link.
const DELIVERED: Time = 1 + 4 + 1;

#[test]
fn a_read_has_its_data_after_a_hit_or_a_miss() {
    let script = vec![(0, read(line(1), 1)), (1000, read(line(1) + 128, 2)), (2000, read(line(2), 3))];
    let ran = ran(buffer(), Domain::Adr, script);
    let expected = [(1, MISS), (2, 1000 + HIT), (3, 2000 + MISS)].map(|(tag, data)| (tag, 1 + data + DELIVERED));
    assert_eq!(data_times(&ran.seen), expected);
    assert_eq!(ran.wear.activates(), [0, 2], "lines read from cells");
}

#[test]
fn a_miss_keeps_neither_hits_nor_dram_from_the_bus() {
    let script = vec![
        (0, read(line(1), 1)),
        (1000, read(line(2), 2)),
        (1001, read(line(1), 3)),
        (1002, read(DRAM_BASE, 4)),
        (1003, read(line(3), 5)),
    ];
    let ran = ran(buffer(), Domain::Adr, script);
    let times = data_times(&ran.seen);
    let of = |tag: u16| times.iter().find(|(own, _)| *own == tag).unwrap().1;
    assert_eq!(of(3), 1002 + HIT + DELIVERED);
    assert_eq!(of(4), 1003 + 124 + 36 + 4 + 1);
    assert_eq!([of(2), of(5)], [1001 + MISS + DELIVERED, 1001 + READ_LINE + MISS + DELIVERED]);
}

#[test]
fn reads_of_a_line_that_is_on_its_way_wait_for_it_once() {
    let script = vec![(0, read(line(1), 1)), (0, read(line(1) + 128, 2))];
    let ran = ran(buffer(), Domain::Adr, script);
    assert_eq!(data_times(&ran.seen), [(1, 1 + MISS + DELIVERED), (2, 1 + MISS + DELIVERED + 4)]);
    assert_eq!(ran.wear.activates(), [0, 1]);
}

/// The time from the first to the last of so many replies, and how many.
fn span(times: &[Time]) -> Time {
    times.last().unwrap() - times[0]
}

#[test]
fn cells_are_read_by_the_line_whatever_of_it_is_asked_for() {
    let all: Vec<_> = (0..64).flat_map(|nth| [(0, read(line(nth), 0)), (0, read(line(nth) + 128, 0))]).collect();
    let of =
        |script| data_times(&ran(buffer(), Domain::Adr, script).seen).iter().map(|seen| seen.1).collect::<Vec<_>>();
    // The last half of a line is behind the first one on the bus.
    assert_eq!(span(&of(all)), 63 * READ_LINE + 4);
    // 64 B of each line: a quarter of the bytes in the same time.
    let parts = (0..64).map(|nth| (0, read_of(line(nth * 7 % 64), 0, 0b0011))).collect();
    assert_eq!(span(&of(parts)), 63 * READ_LINE);
}

#[test]
fn a_random_write_of_a_part_costs_the_cells_a_line_and_sequential_ones_one_for_all_parts() {
    let few = |nth: u64| 0xffff_ffff_ffff_ffff << (64 * (nth % 2));
    let parts = |lines: u64| (0..64).map(move |nth| (line(nth % lines) + nth / 2 % 2 * 128, few(nth)));
    let script = |of: Vec<(u64, u128)>| of.into_iter().map(|(at, mask)| (0, write(at, 7, mask))).collect();
    // All parts of 16 lines, one line after the other, and a part of each of 64.
    let sequential = (0..64).map(|nth| (line(nth / 4) + nth / 2 % 2 * 128, few(nth))).collect();
    let sequential = ran(buffer(), Domain::Adr, script(sequential));
    let random = ran(buffer(), Domain::Adr, script(parts(64).collect()));
    assert_eq!([&sequential, &random].map(|ran| ran.wear.cell_bytes()), [16 * 256, 64 * 256]);
    assert_eq!([&sequential, &random].map(|ran| ran.counters.nvm_accepted_bytes), [64 * 64; 2]);
    let accepted = |ran: &Ran| -> Vec<Time> {
        ran.seen.iter().filter_map(|seen| if let Seen::Accepted { at } = seen { Some(*at) } else { None }).collect()
    };
    // The queue has 8 entries: what is accepted late waits for the cells.
    let late = |ran: &Ran, from: usize| span(&accepted(ran)[from..]);
    assert_eq!(late(&random, 20), 43 * WRITE_LINE);
    assert!(late(&sequential, 31).abs_diff(8 * WRITE_LINE) < WRITE_LINE, "{}", late(&sequential, 31));
}

#[test]
fn writes_to_lines_that_are_there_wait_for_no_cells() {
    let script = (0..40).map(|nth| (nth * 10, write(line(nth % 4), 7, FULL))).collect();
    let ran = ran(buffer(), Domain::Adr, script);
    let last = ran.seen.iter().map(|seen| if let Seen::Accepted { at } = seen { *at } else { 0 }).max();
    assert_eq!((last, ran.wear.cell_bytes()), (Some(392), 4 * 256), "each was accepted when it came");
    assert_eq!(wear(&ran), (vec![4], 4 * 256, (0..4).map(|nth| (line(nth), 1)).collect()));
}

/// Of one write to a line that is not there: from the edge at 1 on the line is read.
const FETCHED: Time = 1 + MISS;

#[test]
fn a_buffer_that_is_lost_is_written_to_cells_before_its_writes_are_durable() {
    let lost = || DeviceBuffer { durable: false, ..buffer() };
    let one = || vec![(0, write(line(1), 7, FULL))];
    let lost_write = ran(lost(), Domain::Media, one());
    let written = FETCHED + CELL_WRITE;
    assert_eq!(
        (lost_write.at_media.as_slice(), durable(&lost_write)),
        (&[(written, line(1))][..], vec![(written + 1, written)])
    );
    // Of one that survives, its bytes in the buffer are enough.
    let kept = ran(buffer(), Domain::Media, one());
    let there = 1 + DELIVERED - 1;
    assert_eq!((kept.at_media.as_slice(), durable(&kept)), (&[(there, line(1))][..], vec![(there + 1, there)]));
    // Under ADR acceptance is enough, whatever the buffer does.
    for buffer in [lost(), buffer()] {
        let adr = ran(buffer, Domain::Adr, one());
        assert_eq!((adr.seen, adr.at_media), (vec![Seen::Accepted { at: 2 }], Vec::new()));
    }
}

#[test]
fn a_line_goes_to_cells_as_one_with_all_that_was_written_to_it() {
    let lost = DeviceBuffer { durable: false, ..buffer() };
    let script = vec![(0, write(line(1), 7, FULL)), (0, write(line(1) + 128, 8, FULL)), (0, write(line(2), 9, FULL))];
    let ran = ran(lost, Domain::Media, script);
    let first = FETCHED + CELL_WRITE;
    // The second line is read behind the first, which the cells take while they read.
    let second = FETCHED + WRITE_LINE + CELL_WRITE;
    assert_eq!(ran.at_media, [(first, line(1)), (first, line(1) + 128), (second, line(2))]);
    assert_eq!(ran.wear.cell_bytes(), 2 * 256);
}

#[test]
fn a_line_that_makes_room_is_in_cells_then() {
    let lost = DeviceBuffer { durable: false, lines: 1, ..buffer() };
    // The second line needs the room before the controller could write the first: its bytes are not there yet.
    let script = vec![(0, write(line(1), 7, FULL)), (0, write(line(2), 8, FULL))];
    let ran = ran(lost, Domain::Media, script);
    let first = FETCHED + CELL_WRITE;
    assert_eq!(ran.at_media, [(first, line(1)), (first + WRITE_LINE, line(2))]);
    assert_eq!(durable(&ran), [(first + 1, first), (first + WRITE_LINE + 1, first + WRITE_LINE)]);
}
