//! The checker finds each kind of violation: a list of commands whose last one comes a cycle too early, and
//! the same list a cycle later, which is clean.
//!
//! Times are written out from the standards' numbers, so that they hold the reading of the file, too.

use crate::checker::{Fault, Given, RefreshDue, Violation, check};
use crate::table::DeviceTable;

fn ddr4() -> DeviceTable {
    DeviceTable::built_in("ddr4", ["2400R", "8Gb_x8"], 2, &[])
}

fn hbm2() -> DeviceTable {
    DeviceTable::built_in("hbm2", ["2.0Gbps", "8Gb"], 1, &[])
}

/// Commands as `NAME cycle place row`: the place of each level, as digits.
fn list(table: &DeviceTable, text: &str) -> Vec<Given> {
    let given = |command: &str| {
        let words: Vec<&str> = command.split_whitespace().collect();
        let path = words[2].chars().map(|digit| digit.to_digit(10).expect("a digit") as usize).collect();
        let row = words.get(3).map_or(0, |row| row.parse().expect("a row"));
        Given { at: words[1].parse().expect("a cycle"), command: table.command(words[0]), path, row }
    };
    text.split(',').map(given).collect()
}

/// The last command of the list comes at the earliest time: a cycle before breaks this rule and no other.
fn assert_earliest(table: &DeviceTable, text: &str, rule: &str) {
    let mut commands = list(table, text);
    assert_eq!(check(table, &commands, None), [], "{text}");
    let number = commands.len() - 1;
    commands[number].at -= 1;
    // A refreshing target is busy besides, which is a violation by itself.
    let mut least_times = table.clone();
    least_times.commands.iter_mut().for_each(|command| command.busy = 0);
    let found = check(&least_times, &commands, None);
    let broken = |violation: &Violation| match &violation.fault {
        Fault::TooEarly { rule, by: 1 } => Some(rule.clone()),
        _ => None,
    };
    let rules: Vec<String> = found.iter().filter_map(broken).collect();
    assert_eq!(rules.len(), found.len(), "{text}: {found:?}");
    assert!(!rules.is_empty() && rules.iter().all(|found| found.contains(rule)), "{text}: {rules:?}");
}

/// The same of a violation that is no least time.
fn assert_found(table: &DeviceTable, wrong: &str, fault: Fault, right: &str) {
    let wrong = list(table, wrong);
    assert_eq!(check(table, &wrong, None), [Violation { number: wrong.len() - 1, fault }], "{right}");
    assert_eq!(check(table, &list(table, right), None), [], "{right}");
}

#[test]
fn least_times_of_ddr4_are_found_to_the_cycle() {
    let table = ddr4();
    for (text, rule) in [
        ("ACT 100 000 7, RD 116 000 7", "RCD @ bank"),
        ("ACT 100 000 7, WRA 116 000 7", "RCD @ bank"),
        ("ACT 100 000 7, PRE 139 000", "RAS @ bank"),
        ("ACT 100 000 7, PREA 139 0", "RAS @ rank"),
        ("ACT 100 000 7, PRE 150 000, ACT 166 000 8", "RP @ bank"),
        ("ACT 100 000 7, RD 140 000 7, PRE 149 000", "RTP @ bank"),
        ("ACT 100 000 7, WR 120 000 7, PRE 154 000", "CWL + BL + WR @ bank"),
        ("ACT 100 000 7, RDA 140 000 7, ACT 165 000 8", "RTP + RP @ bank"),
        ("ACT 100 000 7, WRA 116 000 7, ACT 166 000 8", "CWL + BL + WR + RP @ bank"),
        // Groups.
        ("ACT 100 000 7, ACT 104 010 7", "RRD_S @ rank"),
        ("ACT 100 000 7, ACT 106 001 7", "RRD_L @ bank_group"),
        ("ACT 100 000 7, ACT 110 001 7, RD 130 000 7, RD 136 001 7", "CCD_L @ bank_group"),
        ("ACT 100 000 7, ACT 110 001 7, WR 130 000 7, RD 155 001 7", "WTR_L @ bank_group"),
        ("ACT 100 000 7, ACT 110 010 7, WR 130 000 7, RD 149 010 7", "WTR_S @ rank"),
        ("ACT 100 000 7, ACT 110 010 7, RD 130 000 7, WR 140 010 7", "CL + BL + 2 - CWL @ rank"),
        // The fifth activation in a rank waits for the first.
        ("ACT 100 000 7, ACT 104 010 7, ACT 108 020 7, ACT 112 030 7, ACT 126 001 7", "FAW ; window 4 @ rank"),
        // Ranks.
        ("ACT 100 000 7, ACT 110 100 7, RD 130 000 7, RD 136 100 7", "BL + CS ; other @ rank"),
        ("ACT 100 000 7, ACT 110 100 7, RD 130 000 7, WR 140 100 7", "CL + BL + CS - CWL ; other @ rank"),
        // Refresh.
        ("ACT 100 000 7, PRE 150 000, REFab 166 0", "RP @ rank"),
        ("REFab 100 0, REFab 521 0", "REFab > ACT,PREA,REFab : RFC @ rank"),
    ] {
        assert_earliest(&table, text, rule);
    }
    // What shares no node of the scope does not wait.
    let free = "ACT 100 000 7, ACT 101 100 7, ACT 105 110 7, REFab 200 0, PRE 201 100, ACT 217 100 8";
    let found = check(&table, &list(&table, free), None);
    assert_eq!(found, [Violation { number: 3, fault: Fault::RowOpen }], "the row of the refreshed rank alone");
}

#[test]
fn least_times_of_hbm2_count_from_the_last_slot_of_an_activation() {
    let table = hbm2();
    for (text, rule) in [
        ("ACT 100 000 7, RD 115 000 7", "RCDRD @ bank"),
        ("ACT 100 000 7, WR 113 000 7", "RCDWR @ bank"),
        ("ACT 100 000 7, PRE 135 000", "RAS @ bank"),
        ("ACT 100 000 7, PRE 140 000, ACT 153 000 8", "RP @ bank"),
        ("ACT 100 000 7, RD 140 000 7, PRE 145 000", "RTP @ bank"),
        ("ACT 100 000 7, WR 120 000 7, PRE 143 000", "CWL + BL + WR @ bank"),
        ("ACT 100 000 7, ACT 104 010 7", "RRD_S @ pseudo_channel"),
        ("ACT 100 000 7, ACT 110 001 7, RD 130 000 7, RD 134 001 7", "CCD_L @ bank_group"),
        ("ACT 100 000 7, ACT 110 001 7, WR 130 000 7, RD 145 001 7", "WTR_L @ bank_group"),
        ("ACT 100 000 7, ACT 110 010 7, WR 130 000 7, RD 143 010 7", "WTR_S @ pseudo_channel"),
        ("ACT 100 000 7, ACT 110 010 7, RD 130 000 7, WR 143 010 7", "CL + BL + 2 - CWL @ pseudo_channel"),
        ("ACT 100 000 7, PRE 150 000, REFab 164 0", "RP @ pseudo_channel"),
        ("REFab 100 0, REFpb 450 000", "RFC @ pseudo_channel"),
        ("REFpb 100 000, REFpb 108 010", "RREFD @ pseudo_channel"),
        ("REFpb 100 000, ACT 107 010 7", "RREFD @ pseudo_channel"),
        ("REFpb 100 000, REFab 260 0", "RFCpb @ pseudo_channel"),
    ] {
        assert_earliest(&table, text, rule);
    }
    // Pseudo channels share nothing but the buses of commands.
    let free = "ACT 100 000 7, ACT 102 100 7, RD 117 000 7, RD 118 100 7, REFab 300 1";
    let found = check(&table, &list(&table, free), None);
    assert_eq!(found, [Violation { number: 4, fault: Fault::RowOpen }], "the other one's row is open");
}

#[test]
fn two_buses_take_a_row_and_a_column_command_in_one_slot() {
    let table = hbm2();
    let open = "ACT 100 000 7, ACT 110 100 7";
    let with = |rest: &str| format!("{open}, {rest}");
    assert_found(&table, "ACT 100 000 7, ACT 101 100 7", Fault::SlotTaken, "ACT 100 000 7, ACT 102 100 7");
    assert_found(&table, &with("RD 130 000 7, RD 130 100 7"), Fault::SlotTaken, &with("RD 130 000 7, RD 131 100 7"));
    assert_eq!(check(&table, &list(&table, &with("RD 130 000 7, ACT 130 010 7")), None), []);
}

#[test]
fn what_no_least_time_forbids_is_found_in_ddr4() {
    let table = ddr4();
    let open = "ACT 100 000 7";
    let with = |rest: &str| format!("{open}, {rest}");
    assert_found(&table, &with("ACT 100 100 7"), Fault::SlotTaken, &with("ACT 101 100 7"));
    assert_found(&table, &with("RD 116 000 8"), Fault::RowNotOpen, &with("RD 116 000 7"));
    assert_found(&table, &with("RD 116 100 7"), Fault::RowNotOpen, &with("ACT 101 100 7, RD 117 100 7"));
    let closed = with("RDA 140 000 7");
    assert_found(&table, &format!("{closed}, RD 150 000 7"), Fault::RowNotOpen, &with("RD 140 000 7, RD 150 000 7"));
    assert_found(&table, &with("ACT 155 000 8"), Fault::RowOpen, &with("PRE 139 000, ACT 155 000 8"));
    assert_found(&table, &with("REFab 200 0"), Fault::RowOpen, &with("PREA 150 0, REFab 200 0"));
    // The table has no least time from a refresh to the precharge of one bank.
    assert_found(&table, "REFab 100 0, PRE 520 000", Fault::Refreshing { by: 1 }, "REFab 100 0, PRE 521 000");
    // Data on the bus, where no least time keeps it apart: read data of 116 to 120, write data of 119 to 123.
    let mut bare = table.clone();
    bare.least_times.clear();
    let apart = |write: u64| format!("ACT 90 000 7, ACT 91 100 7, RD 100 000 7, WR {write} 100 7");
    assert_found(&bare, &apart(107), Fault::BurstsOverlap { by: 1 }, &apart(108));
}

#[test]
fn a_same_bank_refresh_is_of_that_bank_in_every_group() {
    let table = DeviceTable::built_in("ddr5", ["4800B", "16Gb_x8"], 1, &[]);
    // 130 ns are 312 cycles (0.3 % less: 311.6), counted to the second slot of the activation.
    assert_earliest(&table, "REFsb 100 002, ACT 411 052 7", "RFCsb @ bank");
    assert_found(&table, "REFsb 100 002, PRE 411 052", Fault::Refreshing { by: 1 }, "REFsb 100 002, PRE 412 052");
    assert_eq!(check(&table, &list(&table, "REFsb 100 002, ACT 200 051 7"), None), [], "another bank");
}

#[test]
fn a_refresh_that_comes_too_late_is_found() {
    let table = ddr4();
    // tREFI of 9363 cycles, and twice tRC, a write's data and tWR, tRP for rows that are closed before.
    let closing = 2 * (55 + 12 + 4 + 18 + 16);
    let every = |postponed: u64| 9363 * (1 + postponed) + closing;
    let refreshes = |times: [u64; 2], end: u64, postponed: u64| {
        let text = times.map(|at| format!("REFab {at} 0, REFab {} 1", at + 1)).join(",");
        check(&table, &list(&table, &text), Some(&RefreshDue { policy: "all_bank", postponed, end }))
    };
    let late = |number: usize| vec![Violation { number, fault: Fault::RefreshLate { by: 1 } }];
    for postponed in [0, 8] {
        let every = every(postponed);
        assert_eq!(refreshes([9000, 9000 + every], 9000 + 2 * every, postponed), []);
        assert_eq!(refreshes([9000, 9000 + every], 9001 + 2 * every, postponed), late(4), "none at the end");
        assert_eq!(refreshes([9000, 9001 + every], 9001 + every, postponed), [late(2), late(3)].concat()[..2]);
        assert_eq!(refreshes([every, 2 * every], 2 * every, postponed), late(1), "the second rank's first");
    }
}
