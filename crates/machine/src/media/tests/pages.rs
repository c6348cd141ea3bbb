//! Rows that are closed behind a column command, or after a time: a command one tick early is refused, on
//! time it is taken.

use super::*;

/// Reads or writes the place's open row at `t` and closes it behind that.
fn closing(m: &mut Media, place: DeviceRow, access: Direction, t: Time) -> Time {
    let transfer = m.column(place, access, 32, t);
    assert!(m.leaves_row_open(place, access));
    m.close_behind(place, access, &transfer)
}

/// The next row of a bank can be opened at `t`, and not before.
fn assert_opens(m: &Media, place: DeviceRow, t: Time) {
    assert_eq!((m.open_row_of(place.bank), m.row_ready(place)), (None, t));
    let open = |at| std::panic::catch_unwind(|| m.clone().row_command(place, at).opens);
    assert!(open(t - 1).is_err(), "early");
    assert_eq!(open(t).ok(), Some(true), "on time");
}

#[test]
fn a_row_that_is_closed_behind_a_read_opens_again_after_tras_and_trp() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    // The burst of a tick is over at 125; the row stays open for tRAS, 130.
    closing(&mut m, at(0, 5), Direction::Read, 124);
    assert_opens(&m, at(0, 6), 130 + 15);
    // Later reads are precharged behind their burst.
    let mut m = media();
    m.row_command(at(0, 5), 0);
    closing(&mut m, at(0, 5), Direction::Read, 200);
    assert_opens(&m, at(0, 6), 201 + 15);
}

#[test]
fn a_row_that_is_closed_behind_a_write_opens_again_after_write_recovery_and_trp() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    let written_at = closing(&mut m, at(0, 5), Direction::Write, 124);
    assert_eq!(written_at, 124 + 20 + 1 + 12);
    assert_opens(&m, at(0, 6), written_at + 15);
}

#[test]
fn a_dirty_row_of_nvm_is_written_to_its_cells_before_it_is_precharged() {
    let mut m = row_buffer(RowWriteWhen::Close);
    let place = at(4, 5);
    m.row_command(place, 0);
    let transfer = m.column(place, Direction::Write, 32, 124);
    let before = m.row_ready(place);
    let written_at = m.close_behind(place, Direction::Write, &transfer);
    let mut by_command = row_buffer(RowWriteWhen::Close);
    by_command.row_command(place, 0);
    by_command.column(place, Direction::Write, 32, 124);
    let closed = by_command.row_command(at(4, 6), before);
    assert_eq!(closed, RowCommand { closed: Some(written_at), opens: false });
    assert_opens(&m, at(4, 6), by_command.row_ready(at(4, 6)));
    // Of reads, too; writes to cells leave nothing open.
    assert!(m.leaves_row_open(place, Direction::Read) && !media().leaves_row_open(place, Direction::Write));
}

#[test]
fn an_unused_row_is_closed_when_it_may_be_and_not_before_its_time() {
    let mut m = media();
    m.row_command(at(0, 5), 0);
    m.column(at(0, 5), Direction::Read, 32, 124);
    assert_eq!(m.unused_closes_at(at(0, 5), 125), 130, "tRAS");
    assert_eq!(m.unused_closes_at(at(0, 5), 300), 300);
    m.close_unused(at(0, 5), 300);
    assert_opens(&m, at(0, 6), 300 + 15);
}
