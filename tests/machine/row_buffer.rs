//! Writes in the row buffers of NVM, where the media alone survive a power failure: when the cells have them, who is told,
//! and what the journal says. Clock 1 GHz, a tick is a nanosecond; the link to the controller and back takes 1 ns each.

use durawarp::engine::Time;
use durawarp::kernel::memory::NVM_BASE;
use durawarp::machine::media::{NvmSpec, RowWriteWhen, WriteMode};
use durawarp::machine::msg::ControllerMsg;
use durawarp::persist::vocab::Domain;

use super::memory_controller::{FULL, Ran, Seen, bank0, dram, ns, run_on, spec, write};

/// Rows whose cells take 320 ns.
fn nvm(row_write_when: RowWriteWhen) -> NvmSpec {
    let write_mode = WriteMode::RowBuffer;
    NvmSpec { write_mode, row_write_ns: ns(320), row_write_when, ..NvmSpec::through(&dram(), ns(0)) }
}

fn ran(nvm: &NvmSpec, domain: Domain, script: Vec<(Time, ControllerMsg)>) -> Ran {
    run_on(spec(), nvm, domain, None, script)
}

/// When writes were told durable, and when their cells were written.
pub(super) fn durable(ran: &Ran) -> Vec<(Time, Time)> {
    let of = |seen: &Seen| if let Seen::Durable { at, done } = seen { Some((*at, *done)) } else { None };
    ran.seen.iter().filter_map(of).collect()
}

/// From the controller's edge at 1 on: a row is opened, and a line written to it.
const TRANSFERRED: Time = 1 + 124 + 36 + 4;

#[test]
fn a_row_that_nobody_needs_any_more_is_written_before_its_write_is_durable() {
    let one = || vec![(0, write(NVM_BASE, 7, FULL))];
    // Write recovery first, then the cells.
    let written = TRANSFERRED + 6 + 320;
    let closed = ran(&nvm(RowWriteWhen::Close), Domain::Media, one());
    assert_eq!(closed.at_media, [(written, NVM_BASE)]);
    assert_eq!(durable(&closed), [(written + 1, written)]);
    // Behind the write the cells are written at once.
    let written = TRANSFERRED + 320;
    let idle = ran(&nvm(RowWriteWhen::Idle), Domain::Media, one());
    assert_eq!((durable(&idle).len(), idle.at_media), (1, vec![(written, NVM_BASE)]));
}

#[test]
fn writes_to_one_row_are_durable_together_when_it_is_written() {
    for when in [RowWriteWhen::Close, RowWriteWhen::Idle] {
        let lines = [NVM_BASE, NVM_BASE + 128, NVM_BASE + 256];
        let script = Vec::from(lines.map(|line| (0, write(line, 7, FULL))));
        let ran = ran(&nvm(when), Domain::Media, script);
        let times: Vec<Time> = ran.at_media.iter().map(|&(time, _)| time).collect();
        assert!(times.len() == 3 && times.iter().all(|&time| time == times[0]), "{when:?}: {:?}", ran.at_media);
        assert_eq!(ran.counters.activates, 1, "{when:?}");
    }
}

#[test]
fn a_row_is_written_when_its_bank_needs_another_one() {
    // The second row is asked for while the first is being written to, so that nobody writes that one in between.
    let script = vec![(0, write(NVM_BASE, 7, FULL)), (0, write(NVM_BASE + bank0(1), 8, FULL))];
    let ran = ran(&nvm(RowWriteWhen::Close), Domain::Media, script);
    let first = TRANSFERRED + 6 + 320;
    let second = first + 124 + 36 + 4 + 6 + 320;
    assert_eq!(ran.at_media, [(first, NVM_BASE), (second, NVM_BASE + bank0(1))]);
}

#[test]
fn a_durable_row_buffer_is_enough_and_under_adr_acceptance_is() {
    let nvm = NvmSpec { row_buffer_durable: true, ..nvm(RowWriteWhen::Close) };
    let one = || vec![(0, write(NVM_BASE, 7, FULL))];
    let ran_durable = ran(&nvm, Domain::Media, one());
    assert_eq!(ran_durable.at_media, [(TRANSFERRED + 6, NVM_BASE)], "with the write recovery");
    let adr = ran(&nvm, Domain::Adr, one());
    assert_eq!((adr.seen, adr.at_media), (vec![Seen::Accepted { at: 2 }], Vec::new()));
}

/// Writes of the banks of NVM, bytes whose cells were written, and writes by line.
pub(super) fn wear(ran: &Ran) -> (Vec<u64>, u64, Vec<(u64, u64)>) {
    let lines = ran.wear.lines().expect("they are counted").collect();
    (ran.wear.bank_writes().to_vec(), ran.wear.cell_bytes(), lines)
}

#[test]
fn a_line_that_is_written_again_while_its_row_holds_it_wears_its_cells_once() {
    let again = |at| vec![(0, write(NVM_BASE, 7, FULL)), (at, write(NVM_BASE, 8, FULL))];
    // Under ADR nobody writes the row before its bank needs another one.
    let close = ran(&nvm(RowWriteWhen::Close), Domain::Adr, again(5_000));
    assert_eq!(wear(&close), (vec![1, 0, 0, 0], 128, vec![(NVM_BASE, 1)]));
    assert_eq!(close.wear.activates(), [0, 1], "one row of NVM was opened");
    // Behind the last write the cells are written at once: what comes later is another write.
    let idle = ran(&nvm(RowWriteWhen::Idle), Domain::Adr, again(5_000));
    assert_eq!(wear(&idle), (vec![2, 0, 0, 0], 256, vec![(NVM_BASE, 2)]));
    let mode = |write_mode| NvmSpec { write_mode, ..NvmSpec::through(&dram(), ns(480)) };
    for mode in [WriteMode::Through, WriteMode::Latency].map(mode) {
        let direct = ran(&mode, Domain::Adr, again(5_000));
        assert_eq!(wear(&direct), (vec![2, 0, 0, 0], 256, vec![(NVM_BASE, 2)]), "{mode:?}");
    }
}

#[test]
fn another_row_has_the_cells_of_the_one_before_written() {
    let lines = [NVM_BASE, NVM_BASE + bank0(1), NVM_BASE];
    let script = (0..).zip(lines).map(|(nth, line)| (nth * 5_000, write(line, 7, FULL))).collect();
    let ran = ran(&nvm(RowWriteWhen::Close), Domain::Adr, script);
    assert_eq!(wear(&ran), (vec![3, 0, 0, 0], 384, vec![(NVM_BASE, 2), (NVM_BASE + bank0(1), 1)]));
}

#[test]
fn a_write_of_a_few_bytes_drives_the_cells_of_its_granules() {
    // Bytes 30 to 33: of two granules of 32 bytes.
    let mask = 0xf << 30;
    let few = |write_mode| {
        let nvm = NvmSpec { write_mode, row_write_ns: ns(320), ..NvmSpec::through(&dram(), ns(480)) };
        wear(&ran(&nvm, Domain::Adr, vec![(0, write(NVM_BASE, 7, mask))])).1
    };
    assert_eq!([WriteMode::Through, WriteMode::Latency, WriteMode::RowBuffer].map(few), [64, 4, 4]);
}

#[test]
fn a_write_wears_the_bank_that_it_goes_to() {
    // Rows rotate over the four banks: one line in the first, two in the second, and so on.
    let lines = (0..4).flat_map(|bank| (0..=bank).map(move |nth| NVM_BASE + 2048 * bank + 128 * nth));
    for write_mode in [WriteMode::Through, WriteMode::Latency, WriteMode::RowBuffer] {
        let nvm = NvmSpec { write_mode, row_write_ns: ns(320), ..NvmSpec::through(&dram(), ns(480)) };
        let script = (0..).zip(lines.clone()).map(|(nth, line)| (nth * 5_000, write(line, 7, FULL))).collect();
        let ran = ran(&nvm, Domain::Adr, script);
        assert_eq!(wear(&ran).0, [1, 2, 3, 4], "{write_mode:?}");
    }
}
