//! Timing pairs: a command one tick early is refused, on time it is taken.

mod pages;

use super::*;
use durawarp_base::spec::Nanos;

fn ns(ns: u64) -> Nanos {
    Nanos { ps: ns * 1000 }
}

/// DRAM 124 + 36 ns, NVM the same with a 480 ns cell write; a 1 GHz clock, so a tick is a nanosecond.
fn media() -> Media {
    media_with(|nvm| nvm)
}

/// The same with another NVM.
fn media_with(nvm: impl FnOnce(NvmSpec) -> NvmSpec) -> Media {
    of_specs(|dram| dram, nvm)
}

/// The same with another DRAM, and NVM of the same rows.
fn of_dram(dram: impl FnOnce(MediaSpec) -> MediaSpec) -> Media {
    of_specs(dram, |nvm| nvm)
}

fn of_specs(dram: impl FnOnce(MediaSpec) -> MediaSpec, nvm: impl FnOnce(NvmSpec) -> NvmSpec) -> Media {
    let dram = dram(MediaSpec {
        banks: 4,
        row_bytes: 2048,
        t_rcd_ns: ns(124),
        t_cl_ns: ns(36),
        t_wl_ns: ns(20),
        t_rp_ns: ns(15),
        t_ras_ns: ns(130),
        t_ccd_ns: ns(4),
        bank_groups: 1,
        t_ccd_l_ns: ns(4),
        t_rrd_ns: ns(6),
        t_wr_ns: ns(12),
        ..MediaSpec::default()
    });
    let nvm = nvm(NvmSpec::through(&dram, ns(480)));
    let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(7), write_to_read_ns: ns(9) };
    Media::new(&dram, &nvm, &bus, Clock::of_period(1), Timebase::of_khz(&[1_000_000]).unwrap())
}

fn at(bank: BankId, row: u32) -> DeviceRow {
    DeviceRow { bank, row, medium: if bank < 4 { Medium::Dram } else { Medium::Nvm } }
}

/// The column command is blocked until just before `t` and ready on time.
fn assert_column_earliest(m: &Media, place: DeviceRow, access: Direction, t: Time) {
    assert_eq!(m.channel_ready(place.medium, access, 0).max(m.bank_ready(place, access, 0)), t);
    let issue = |at| std::panic::catch_unwind(|| m.clone().column(place, access, 32, at));
    assert!(issue(t - 1).is_err(), "early");
    assert!(issue(t).is_ok(), "on time");
}

/// Closes what is open in the place's bank at `t`, and opens its row as early as can be; returns when.
fn other_row(m: &mut Media, place: DeviceRow, t: Time) -> Time {
    assert!(!m.row_command(place, t).opens);
    let ready = m.row_ready(place);
    assert_row_earliest(m, place, ready);
    assert_eq!(m.row_command(place, ready), RowCommand { closed: None, opens: true });
    ready
}

/// Four banks of NVM, of which one closes a row that was written to.
#[test]
fn a_row_that_is_closed_dirty_does_not_keep_other_banks_from_opening_theirs() {
    let mut m = row_buffer(RowWriteWhen::Close);
    m.row_command(at(4, 5), 0);
    m.column(at(4, 5), Direction::Write, 128, 124);
    m.row_command(at(4, 6), 1000);
    // The command bus alone stands between.
    assert_row_earliest(&m, at(5, 1), 1001);
    m.row_command(at(5, 1), 1001);
    // tRRD from the activation that came, and the cells and tRP of the one that is to come.
    assert_row_earliest(&m, at(6, 1), 1007);
    assert_row_earliest(&m, at(4, 6), 1335);
    // A precharge that takes no time is no command of its own.
    let mut m = of_dram(|dram| MediaSpec { t_rp_ns: ns(0), ..dram });
    m.row_command(at(0, 5), 0);
    assert_eq!(m.row_command(at(0, 6), 1000), RowCommand { closed: Some(0), opens: true });
    // So for DRAM: a precharge is no activation.
    let mut m = media();
    m.row_command(at(0, 5), 1500);
    m.row_command(at(0, 6), 2000);
    assert_row_earliest(&m, at(1, 1), 2001);
}

#[test]
fn a_write_of_a_part_of_a_granule_reads_it_first() {
    let whole = media().write(at(4, 0), u128::from(u32::MAX), 0);
    let part = media().write(at(4, 0), 0xffff, 0);
    assert_eq!(part.media_done - whole.media_done, 124 + 36);
    // Through a row buffer there is nothing to read.
    let dram = |mask| {
        let mut m = media();
        m.row_command(at(0, 0), 0);
        m.write(at(0, 0), mask, 124).media_done
    };
    assert_eq!(dram(0xffff), dram(u128::from(u32::MAX)));
    assert!(covers_a_part(u128::from(u32::MAX), 64) && !covers_a_part(u128::from(u64::MAX) << 64, 64));
}

#[test]
fn read_waits_trcd_after_activate_and_data_follow_after_tcl() {
    let mut m = media();
    m.row_command(at(0, 5), 100);
    assert_column_earliest(&m, at(0, 5), Direction::Read, 224);
    let transfer = m.column(at(0, 5), Direction::Read, 128, 224);
    assert_eq!(transfer.data_end, 224 + 36 + 4);
}

#[test]
fn a_second_column_waits_tccd_and_for_the_bus() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    m.column(at(0, 5), Direction::Read, 32, 124);
    assert_column_earliest(&m, at(0, 5), Direction::Read, 128);
    m.column(at(0, 5), Direction::Read, 256, 128);
    assert_column_earliest(&m, at(0, 5), Direction::Read, 136);
}

#[test]
fn a_gap_is_told_where_it_alone_kept_a_column_command_from_an_earlier_edge() {
    let second = |first_bytes: u32, at_tick: Time, bank_groups: u32| {
        let mut m = of_dram(|dram| MediaSpec { bank_groups, t_ccd_l_ns: ns(6), ..dram });
        m.row_command(at(0, 5), 0);
        m.column(at(0, 5), Direction::Read, first_bytes, 200);
        m.column(at(0, 5), Direction::Read, 32, at_tick).held_by
    };
    // The gap is 4, a burst of 32 B takes 1.
    assert_eq!(second(32, 204, 1), Some(ColumnGap::Medium));
    assert_eq!(second(32, 205, 1), None, "it could have gone before");
    assert_eq!(second(96, 204, 1), Some(ColumnGap::Medium), "the bus was free an edge before");
    assert_eq!(second(128, 204, 1), None, "it would have waited for the bus as long");
    assert_eq!(second(32, 206, 2), Some(ColumnGap::Group));
    assert_eq!(second(32, 207, 2), None);
}

#[test]
fn another_row_waits_tras_then_trp() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    assert_eq!(m.row_ready(at(0, 6)), 130, "tRAS");
    assert_eq!(other_row(&mut m, at(0, 6), 130), 130 + 15);
    assert_column_earliest(&m, at(0, 6), Direction::Read, 130 + 15 + 124);
}

#[test]
fn activates_of_two_banks_are_trrd_apart() {
    let mut m = media();
    m.row_command(at(0, 5), 10);
    assert_eq!(m.row_ready(at(1, 5)), 16);
}

#[test]
fn precharge_after_a_write_waits_write_recovery() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    let written = m.column(at(0, 5), Direction::Write, 128, 124);
    assert_eq!(written, Transfer { data_end: 148, media_done: 160, held_by: None, last_command: 127 });
    assert_eq!(m.row_ready(at(0, 6)), 160);
}

#[test]
fn the_bus_turns_around_both_ways() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    m.column(at(0, 5), Direction::Read, 32, 200); // data until 237
    assert_column_earliest(&m, at(0, 5), Direction::Write, 237 + 7 - 20);
    m.column(at(0, 5), Direction::Write, 32, 224); // data until 245
    assert_column_earliest(&m, at(0, 5), Direction::Read, 245 + 9);
}

#[test]
fn an_nvm_write_needs_no_row_but_holds_its_bank_for_the_cell_write() {
    let mut m = media();
    let written = m.column(at(4, 9), Direction::Write, 128, 10);
    assert_eq!(written, Transfer { data_end: 34, media_done: 490, held_by: None, last_command: 13 });
    assert_column_earliest(&m, at(4, 1), Direction::Write, 490);
    assert_eq!(m.row_ready(at(4, 1)), 490);
    assert_eq!(m.bank_ready(at(5, 1), Direction::Write, 10), 0, "another bank is free");
}

#[test]
fn consecutive_rows_go_to_different_banks_of_their_medium() {
    let m = media();
    let banks: Vec<_> = (0..4).map(|r| m.place(Medium::Nvm, r * 2048).bank).collect();
    assert_eq!(banks, [4, 5, 6, 7]);
    let of_stride = |stride: u64| -> std::collections::BTreeSet<_> {
        (0..64).map(|r| m.place(Medium::Dram, r * stride).bank).collect()
    };
    assert_eq!(of_stride(2048 * 4).len(), 4, "a stride over all banks does not camp");
}

/// A row buffer whose cells take 320 ns, behind the write or at the close, as BROI's: precharge 15 ns.
fn row_buffer(row_write_when: RowWriteWhen) -> Media {
    let write_mode = WriteMode::RowBuffer;
    media_with(|nvm| NvmSpec { write_mode, row_write_ns: ns(320), row_write_when, ..nvm })
}

/// A row command is blocked until just before `t` and taken on time.
fn assert_row_earliest(m: &Media, place: DeviceRow, t: Time) {
    let open = |at| std::panic::catch_unwind(|| m.clone().row_command(place, at));
    assert!(open(t - 1).is_err(), "early");
    assert!(open(t).is_ok(), "on time");
}

#[test]
fn a_write_to_an_open_row_buffer_waits_tccd_only() {
    let mut m = row_buffer(RowWriteWhen::Close);
    m.row_command(at(4, 5), 0);
    m.column(at(4, 5), Direction::Write, 32, 200); // the bus is free again at 221
    assert_column_earliest(&m, at(4, 5), Direction::Write, 204);
    let hit = |nvm: NvmSpec| NvmSpec { write_mode: WriteMode::RowBuffer, write_hit_ns: ns(36), ..nvm };
    let mut m = media_with(hit);
    m.row_command(at(4, 5), 0);
    m.row_command(at(5, 5), 6);
    m.column(at(4, 5), Direction::Write, 32, 200);
    assert_column_earliest(&m, at(4, 5), Direction::Write, 236);
    assert_column_earliest(&m, at(5, 5), Direction::Write, 204);
}

#[test]
fn a_row_that_was_written_to_is_written_to_its_cells_before_another_row_opens() {
    let mut m = row_buffer(RowWriteWhen::Close);
    m.row_command(at(4, 5), 0);
    let written = m.column(at(4, 5), Direction::Write, 128, 124);
    assert_eq!(written.data_end, 148);
    assert_eq!(m.written_at(4), None, "as long as nothing closes it");
    assert_row_earliest(&m, at(4, 6), 148 + 12); // write recovery
    let closed = m.clone().row_command(at(4, 6), 1000);
    assert_eq!(closed, RowCommand { closed: Some(1320), opens: false }, "in cells");
    assert_eq!(other_row(&mut m, at(4, 6), 1000), 1335);
    assert_column_earliest(&m, at(4, 6), Direction::Read, 1000 + 320 + 15 + 124);
    // After a read nothing is to be written.
    m.column(at(4, 6), Direction::Read, 32, 1459);
    other_row(&mut m, at(4, 7), 2000);
    assert_column_earliest(&m, at(4, 7), Direction::Read, 2000 + 15 + 124);
}

#[test]
fn a_row_that_is_written_behind_its_last_write_is_free_for_another_row_then() {
    let mut m = row_buffer(RowWriteWhen::Idle);
    m.row_command(at(4, 5), 0);
    m.column(at(4, 5), Direction::Write, 128, 124);
    assert_eq!(m.written_at(4), Some(148 + 320));
    m.column(at(4, 5), Direction::Write, 128, 200);
    assert_eq!(m.written_at(4), Some(224 + 320), "another write to it puts that off");
    assert_row_earliest(&m, at(4, 6), 224 + 320);
    other_row(&mut m, at(4, 6), 544);
    assert_column_earliest(&m, at(4, 6), Direction::Read, 544 + 15 + 124);
}

#[test]
fn a_row_may_be_written_while_it_stays_open() {
    let mut m = row_buffer(RowWriteWhen::Close);
    m.row_command(at(4, 5), 0);
    m.column(at(4, 5), Direction::Write, 128, 124);
    let early = std::panic::catch_unwind(|| m.clone().write_back(4, 159));
    assert!(early.is_err(), "write recovery");
    assert_eq!((m.write_back_ready(4), m.write_back(4, 160), m.written_at(4)), (160, 480, Some(480)));
    assert_column_earliest(&m, at(4, 5), Direction::Write, 480);
    other_row(&mut m, at(4, 6), 480);
    assert_column_earliest(&m, at(4, 6), Direction::Read, 480 + 15 + 124);
}

#[test]
fn writes_of_the_latency_mode_overlap_and_each_is_in_its_cells_after_the_latency() {
    let mode = |nvm: NvmSpec| NvmSpec { write_mode: WriteMode::Latency, write_hold_ns: ns(40), ..nvm };
    let mut m = media_with(mode);
    assert_eq!(m.write(at(4, 9), u128::MAX, 10).media_done, 10 + 480);
    assert_column_earliest(&m, at(4, 1), Direction::Write, 50);
    assert_row_earliest(&m, at(4, 1), 50);
    for nth in 1..=10 {
        let start = 10 + 40 * nth;
        assert_eq!(m.write(at(4, 9), u128::MAX, start).media_done, start + 480, "write {nth} of its bank");
    }
    // A part of a granule is nothing to read first.
    assert_eq!(m.write(at(5, 0), 0xff, 600).media_done, 600 + 480);
}

#[test]
fn writes_take_the_write_bandwidth_whatever_banks_and_bus_could() {
    let rate = |nvm: NvmSpec| NvmSpec {
        write_mode: WriteMode::Latency,
        cell_write_ns: ns(30),
        write_bandwidth_mb_s: 1280,
        ..nvm
    };
    let mut m = media_with(rate);
    for nth in 0..4 {
        assert_column_earliest_or_now(&m, at(4 + nth, 0), 100 * Time::from(nth));
        let written = m.write(at(4 + nth, 0), u128::MAX, 100 * Time::from(nth));
        assert_eq!(written.media_done, 100 * Time::from(nth + 1), "128 B at 1.28 GB/s");
    }
    assert_eq!(m.channel_ready(Medium::Dram, Direction::Write, 0), 324 - 20, "DRAM waits for the bus only");
    assert!(m.channel_ready(Medium::Nvm, Direction::Read, 0) < 400, "reads are no writes");
}

#[test]
fn a_write_takes_of_the_bandwidth_its_bytes_its_sectors_or_a_line() {
    let (store, astride) = (0xff << 8, 0xff << 28);
    for (write_charge, ns_of) in [
        (WriteCharge::Bytes, [8, 8, 128]),
        (WriteCharge::Sector32, [32, 64, 128]),
        (WriteCharge::Line256, [256, 256, 256]),
    ] {
        // A byte in a ns.
        let mode = WriteMode::Latency;
        let mut m = media_with(|nvm| NvmSpec { write_mode: mode, write_bandwidth_mb_s: 1000, write_charge, ..nvm });
        let mut at_ns = 0;
        for (nth, mask) in [store, astride, u128::MAX].into_iter().enumerate() {
            assert_column_earliest_or_now(&m, at(4 + nth as u16, 0), at_ns);
            m.write(at(4 + nth as u16, 0), mask, at_ns);
            at_ns += ns_of[nth];
        }
        assert_column_earliest_or_now(&m, at(7, 0), at_ns);
    }
}

fn assert_column_earliest_or_now(m: &Media, place: DeviceRow, t: Time) {
    let ready = m.channel_ready(place.medium, Direction::Write, 0).max(m.bank_ready(place, Direction::Write, 0));
    assert_eq!(ready, t);
}

#[test]
fn columns_of_a_bank_group_are_tccd_l_apart_and_those_of_others_are_not() {
    let mut m = media_with(|nvm| NvmSpec { bank_groups: 2, t_ccd_l_ns: ns(9), ..nvm });
    for bank in 4..8 {
        m.row_command(at(bank, 0), 6 * Time::from(bank - 4));
    }
    m.column(at(4, 0), Direction::Read, 32, 200);
    assert_column_earliest(&m, at(4, 0), Direction::Read, 209);
    assert_column_earliest(&m, at(6, 0), Direction::Read, 209);
    assert_column_earliest(&m, at(5, 0), Direction::Read, 204);
    assert_column_earliest(&m, at(7, 0), Direction::Read, 204);
    // A line of four sectors is four of its group's commands, and of the bus's time 4 ns.
    m.column(at(5, 0), Direction::Read, 128, 300);
    assert_column_earliest(&m, at(7, 0), Direction::Read, 336);
    assert_column_earliest(&m, at(6, 0), Direction::Read, 304);
}
