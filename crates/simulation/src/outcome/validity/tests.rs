//! Tests of caveats: each rule on both sides of its bound, by its whole text.

use super::super::sample::{cycles, under};
use super::super::{End, Warning};
use super::*;
use durawarp_base::stats::Table;
use durawarp_persist::selection::Period;

/// Counters of two components each, as `kind.name`, in the order of their names.
fn tables(counters: &[(&str, [u64; 2])]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for (key, values) in counters {
        let (kind, name) = key.split_once('.').unwrap();
        if !tables.iter().any(|table| table.kind == kind) {
            let rows = vec![Vec::new(); 2];
            tables.push(Table { kind: kind.to_owned(), names: Vec::new(), docs: Vec::new(), rows });
        }
        let table = tables.iter_mut().find(|table| table.kind == kind).unwrap();
        table.names.push(name.to_owned());
        table.docs.push(String::new());
        table.rows.iter_mut().zip(values).for_each(|(row, value)| row.push(*value));
    }
    tables
}

/// A run of 50,000 ticks under `sbrp` with 100 writes to NVM and 10 fences, in which nothing is to be said;
/// with these counters besides, and every parameter from a data sheet.
fn plain(counters: &[(&str, [u64; 2])]) -> Outcome {
    let mut outcome = under("sbrp", 10_000);
    outcome.scheme_logs = false;
    outcome.machine.parameters.values_mut().for_each(|parameter| parameter.source = "a data sheet".to_owned());
    let own = [("memory_controller.nvm_writes", [60, 40]), ("sm.pm_fences", [3, 7])];
    let is_own = |key: &str| !counters.iter().any(|(other, _)| *other == key);
    let all: Vec<_> = own.into_iter().filter(|(key, _)| is_own(key)).chain(counters.iter().copied()).collect();
    outcome.counters = tables(&all);
    outcome
}

fn told(outcome: &Outcome) -> Vec<(Kind, String)> {
    of(outcome).into_iter().map(|caveat| (caveat.kind, caveat.text)).collect()
}

/// The caveats of the plain run with these counters.
fn check(counters: &[(&str, [u64; 2])], expected: &[(Kind, &str)]) {
    check_of(&plain(counters), expected);
}

fn check_of(outcome: &Outcome, expected: &[(Kind, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect();
    assert_eq!(told(outcome), expected);
}

fn parameter(source: &str) -> Parameter {
    Parameter { value: 1.into(), source: source.to_owned() }
}

/// Decisions: each period's threshold, and how often its counters were full.
fn decided(complete: u64, periods: &[(u64, u64)]) -> Option<serde_json::Value> {
    let period = |&(threshold_logs, saturated)| Period { threshold_logs, saturated, ..Period::default() };
    let periods = periods.iter().map(period).collect();
    let selection = Selection { periods, complete, temporal_logs: 30, non_temporal_logs: 12, ..Selection::default() };
    Some(serde_json::to_value(selection).unwrap())
}

#[test]
fn a_plain_run_has_no_caveat() {
    check(&[], &[]);
    assert_eq!(words(&plain(&[])), "");
}

#[test]
fn a_count_is_the_sum_over_counters_and_components_and_does_not_overflow() {
    let outcome = plain(&[("sm.a", [3, 4]), ("sm.b", [10, 20]), ("l2.a", [100, 200]), ("sm.c", [u64::MAX, 1])]);
    let judge = Judge { outcome: &outcome, selection: None };
    assert_eq!((judge.count("sm", &["a"]), judge.count("sm", &["a", "b"])), (7, 37));
    assert_eq!((judge.count("sm", &["b", "none"]), judge.count("none", &["a"]), judge.l2(&["a"])), (30, 0, 300));
    assert_eq!((judge.sm(&["c", "a"]), judge.mc(&["nvm_writes"]), judge.persistency()), (u64::MAX, 100, 10));
}

/// Every counter that tells whether a parameter had a part.
const PARTS: [&str; 17] = [
    "memory_controller.nvm_reads",
    "memory_controller.nvm_writes",
    "memory_controller.dram_reads",
    "memory_controller.dram_writes",
    "sm.shared_accesses",
    "sm.l1_cleanings",
    "sm.l1_loads",
    "sm.l1_stores",
    "sm.l1_bypasses",
    "sm.pm_store_accesses",
    "sm.pm_write_backs",
    "sm.pm_fences",
    "sm.alu_instructions",
    "sm.sfu_instructions",
    "l2.atomics",
    "l2.reads",
    "l2.writes",
];

#[test]
fn a_parameter_has_a_part_by_its_own_counters_and_no_others() {
    let persistency = &["sm.pm_store_accesses", "sm.pm_write_backs", "sm.pm_fences"][..];
    let writes = &["memory_controller.dram_writes", "memory_controller.nvm_writes"][..];
    let parts: [(&str, &[&str]); 13] = [
        ("nvm.banks", &["memory_controller.nvm_reads", "memory_controller.nvm_writes"]),
        ("dram.banks", &["memory_controller.dram_reads", "memory_controller.dram_writes"]),
        ("shared.banks", &["sm.shared_accesses"]),
        ("l1.sfifo_entries", &["sm.l1_cleanings"]),
        ("l1.ways", &["sm.l1_loads", "sm.l1_stores", "sm.l1_bypasses"]),
        ("persist.entries", persistency),
        ("latency.alu_cycles", &["sm.alu_instructions"]),
        ("interval.sfu_cycles", &["sm.sfu_instructions"]),
        ("interval.sfu", &["sm.sfu_instructions"]),
        ("l2.atomic_pass_cycles", &["l2.atomics"]),
        ("controller.drain_high", writes),
        ("controller.write_queue_entries", writes),
        ("agpm.sample", persistency),
    ];
    let has = |key: &str, counted: &dyn Fn(&str) -> bool| {
        let counters: Vec<_> = PARTS.iter().map(|&name| (name, [0, u64::from(counted(name))])).collect();
        let mut outcome = plain(&counters);
        outcome.scheme_parameters.insert("agpm.sample".to_owned(), parameter("a paper"));
        Judge { outcome: &outcome, selection: None }.had_a_part(key)
    };
    for (key, own) in parts {
        assert!(!has(key, &|name| !own.contains(&name)), "{key} by another counter");
        for counter in own {
            assert!(has(key, &|name| name == *counter), "{key} by {counter}");
        }
    }
    for key in ["l2.ways", "controller.read_queue_entries", "crossbar.latency", "seed"] {
        assert!(has(key, &|_| false), "{key} always has one");
    }
}

#[test]
fn a_setting_that_another_one_hides_is_told_with_what_hides_it() {
    let told_of = |key: &str, counted: &str, mode: &str| {
        let mut outcome = plain(&[
            ("memory_controller.dram_reads", [1, 0]),
            ("memory_controller.nvm_writes", [1, 0]),
            (counted, [0, 1]),
        ]);
        outcome.machine.parameters.insert(key.to_owned(), parameter("user"));
        let word = Parameter { value: mode.into(), ..parameter("a paper") };
        outcome.machine.parameters.insert("nvm.write_mode".to_owned(), word);
        told(&outcome).into_iter().map(|(_, text)| text).filter(|text| text.starts_with("set, ")).collect::<String>()
    };
    let hidden = |key: &str, why: &str| format!("set, and without a part in the run: {key} ({why})");
    let bus = "no column command waited for it, but for the data bus";
    let other = "memory_controller.nvm_ccd_held";
    assert_eq!(told_of("dram.t_ccd_ns", other, "latency"), hidden("dram.t_ccd_ns", bus));
    assert_eq!(told_of("dram.t_ccd_ns", "memory_controller.dram_ccd_held", "latency"), "");
    assert_eq!(
        told_of("nvm.t_ccd_l_ns", other, "latency"),
        hidden("nvm.t_ccd_l_ns", "no column command waited for it")
    );
    assert_eq!(told_of("nvm.t_ccd_l_ns", "memory_controller.nvm_ccd_l_held", "latency"), "");
    let row_buffer = "it is of nvm.write_mode row_buffer";
    assert_eq!(told_of("nvm.row_write_ns", other, "latency"), hidden("nvm.row_write_ns", row_buffer));
    assert_eq!(told_of("nvm.row_write_ns", other, "row_buffer"), "");
    assert_eq!(
        told_of("nvm.write_hold_ns", other, "through"),
        hidden("nvm.write_hold_ns", "it is of nvm.write_mode latency")
    );
    assert_eq!(told_of("nvm.write_hold_ns", other, "latency"), "");
    let not_rows = "it is not of nvm.write_mode row_buffer";
    assert_eq!(told_of("nvm.cell_write_ns", other, "row_buffer"), hidden("nvm.cell_write_ns", not_rows));
    assert_eq!(told_of("nvm.cell_write_ns", other, "through"), "");
    let through = "it is of nvm.write_mode through";
    assert_eq!(told_of("nvm.write_granule_bytes", other, "latency"), hidden("nvm.write_granule_bytes", through));
    assert_eq!(told_of("nvm.write_granule_bytes", other, "through"), "");
}

#[test]
fn what_a_write_is_charged_has_a_part_where_writes_are_bound() {
    let told_of = |mb_s: u64| {
        let mut outcome = plain(&[("memory_controller.nvm_writes", [1, 0])]);
        outcome.machine.parameters.insert("nvm.write_charge".to_owned(), parameter("user"));
        let bound = Parameter { value: mb_s.into(), ..parameter("a paper") };
        outcome.machine.parameters.insert("nvm.write_bandwidth_mb_s".to_owned(), bound);
        told(&outcome).into_iter().map(|(_, text)| text).filter(|text| text.starts_with("set, ")).collect::<String>()
    };
    let why = "set, and without a part in the run: nvm.write_charge (nvm.write_bandwidth_mb_s is no bound)";
    assert_eq!([told_of(10_000_000), told_of(4_600)], [why, ""]);
}

#[test]
fn write_backs_that_end_at_the_l2_make_nothing_durable_unless_that_survives() {
    let with = |clwb: &str, domain: &str, write_backs: u64| {
        let mut outcome = plain(&[("sm.pm_write_backs", [write_backs, 0])]);
        for (key, value) in [("persist.clwb", clwb), ("persist.domain", domain)] {
            let parameter = Parameter { value: value.into(), source: "a data sheet".to_owned() };
            outcome.machine.parameters.insert(key.to_owned(), parameter);
        }
        told(&outcome)
    };
    let found = with("l2", "adr", 1);
    assert!(matches!(&found[..], [(Kind::Undurable, text)] if text.starts_with("persist.clwb = l2")), "{found:?}");
    for (clwb, domain, write_backs) in [("l2", "eadr", 1), ("write", "adr", 1), ("l2", "adr", 0)] {
        assert_eq!(with(clwb, domain, write_backs), [], "{clwb} {domain} {write_backs}");
    }
}

#[test]
fn parameters_without_a_source_are_listed_where_they_had_a_part() {
    let mut outcome = plain(&[]);
    outcome.machine.parameters.insert("l2.ways".to_owned(), parameter("chosen"));
    outcome.machine.parameters.insert("l2.mshrs".to_owned(), parameter("chosen: as large as others"));
    // Nothing was read from DRAM or written to it.
    outcome.machine.parameters.insert("dram.banks".to_owned(), parameter("chosen"));
    outcome.scheme_parameters.insert("sbrp.entries".to_owned(), parameter("scheme file without a source"));
    let text = "3 parameters that this run depends on have no source of their own: l2.mshrs, l2.ways, sbrp.entries";
    check_of(&outcome, &[(Kind::Unsourced, text)]);
}

#[test]
fn a_list_names_fifty_parameters_and_counts_the_others() {
    let names: Vec<String> = (0..52).map(|nth| format!("l2.p{nth:02}")).collect();
    let text = |count: usize| {
        let mut outcome = plain(&[]);
        outcome.machine.parameters = names[..count].iter().map(|name| (name.clone(), parameter("chosen"))).collect();
        told(&outcome).remove(0).1
    };
    let listed = names[..50].join(", ");
    let start = |count| format!("{count} parameters that this run depends on have no source of their own: {listed}");
    assert_eq!(text(50), start(50));
    assert_eq!(text(51), format!("{} and 1 more", start(51)));
    assert_eq!(text(52), format!("{} and 2 more", start(52)));
}

#[test]
fn nvm_that_was_neither_read_nor_written_is_told() {
    let idle = [(Kind::Unexercised, "the machine has NVM and nothing was read from it or written to it")];
    let nvm =
        |reads, writes| [("memory_controller.nvm_reads", [0, reads]), ("memory_controller.nvm_writes", [0, writes])];
    check(&nvm(0, 0), &idle);
    check(&nvm(1, 0), &[]);
    check(&nvm(0, 1), &[]);
}

#[test]
fn a_scheme_without_a_store_a_write_back_or_a_fence_had_nothing_to_do() {
    let text = |name: &str| {
        format!(
            "scheme `{name}` had nothing to do: there was no store to persistent memory, no write-back and no fence, \
             and the persistence domain had no part"
        )
    };
    let of_counters = |stores, write_backs, fences| {
        plain(&[
            ("sm.pm_store_accesses", [0, stores]),
            ("sm.pm_write_backs", [write_backs, 0]),
            ("sm.pm_fences", [0, fences]),
        ])
    };
    let mut idle = of_counters(0, 0, 0);
    check_of(&idle, &[(Kind::Unexercised, &text("sbrp"))]);
    for busy in [of_counters(1, 0, 0), of_counters(0, 1, 0), of_counters(0, 0, 1)] {
        check_of(&busy, &[]);
    }
    // That it keeps logs, too, is not said besides; it is called as its file calls it.
    idle.scheme_logs = true;
    idle.scheme_variant = Some("sbrp-16".to_owned());
    check_of(&idle, &[(Kind::Unexercised, &text("sbrp-16"))]);
    // `base` has nothing to do anyway.
    let base = Outcome { scheme: "base".to_owned(), scheme_logs: false, ..of_counters(0, 0, 0) };
    check_of(&base, &[]);
}

#[test]
fn a_scheme_that_keeps_logs_of_a_program_that_updates_none_is_told() {
    let text = "scheme `sbrp` keeps undo logs and the program updated none: it may have no [instrument]";
    for (logs, updates, expected) in [(true, 0, &[(Kind::Unexercised, text)][..]), (true, 1, &[]), (false, 0, &[])] {
        let mut outcome = plain(&[("sm.pm_log_stores", [0, updates])]);
        outcome.scheme_logs = logs;
        check_of(&outcome, expected);
    }
    // `base` without any persistency operation, which is not told by itself, keeps logs as well.
    let mut base = plain(&[("sm.pm_fences", [0, 0])]);
    base.scheme = "base".to_owned();
    base.scheme_logs = true;
    check_of(&base, &[(Kind::Unexercised, &text.replace("sbrp", "base"))]);
}

#[test]
fn log_updates_that_a_scheme_without_logs_left_out_are_counted() {
    let text = "scheme `sbrp` keeps no logs: 7 log updates that the program makes itself were left out, and its logs \
                hold what they held before";
    check(&[("sm.pm_log_stores_dropped", [3, 4])], &[(Kind::Unexercised, text)]);
    check(&[("sm.pm_log_stores_dropped", [0, 1])], &[(Kind::Unexercised, &text.replace('7', "1"))]);
    check(&[("sm.pm_log_stores_dropped", [0, 0])], &[]);
}

#[test]
fn a_scheme_that_never_decided_says_how_far_it_was_from_a_decision() {
    let text = "scheme `sbrp` never decided: no period came to its end; log updates were 42";
    for (complete, periods, expected) in [
        (0, &[][..], Some(text.to_owned())),
        (0, &[(64, 0), (128, 0), (32, 0)], Some(format!("{text}, fewer than a period's 128"))),
        (1, &[(64, 0)], None),
    ] {
        let outcome = Outcome { scheme_report: decided(complete, periods), ..plain(&[]) };
        check_of(&outcome, &expected.iter().map(|text| (Kind::Unexercised, text.as_str())).collect::<Vec<_>>());
    }
}

#[test]
fn store_ordering_that_never_held_an_access_is_told() {
    let text = "fences passed early and the gate that keeps order behind them never held an access";
    for (ordered, held, expected) in [(1, 0, &[(Kind::Unexercised, text)][..]), (0, 0, &[]), (1, 1, &[]), (0, 1, &[])] {
        check(&[("sm.pm_fences_ordered", [0, ordered]), ("sm.pm_held", [held, 0])], expected);
    }
}

#[test]
fn a_parameter_that_the_user_set_is_idle_without_a_part_and_unsourced_with_one() {
    let mut outcome = plain(&[]);
    for (key, source) in [("dram.banks", "user: --set"), ("l2.ways", "user: --set"), ("dram.rows", "chosen")] {
        outcome.machine.parameters.insert(key.to_owned(), parameter(source));
    }
    outcome.scheme_parameters.insert("shared.size".to_owned(), parameter("user: a file"));
    let unsourced = "1 parameters that this run depends on have no source of their own: l2.ways";
    let idle = "set, and without a part in the run: dram.banks, shared.size";
    check_of(&outcome, &[(Kind::Unsourced, unsourced), (Kind::Unexercised, idle)]);
}

#[test]
fn a_run_that_was_cut_says_when() {
    let text = "cut: the cycle limit was reached after 12345 core cycles, and the result was not checked";
    let end = |end| Outcome { end, time: cycles(12_345), ..plain(&[]) };
    check_of(&end(End::Cut { waits: Vec::new() }), &[(Kind::Cap, text)]);
    check_of(&end(End::Stopped), &[]);
    check_of(&end(End::Deadlock { waits: Vec::new() }), &[]);
}

#[test]
fn write_pending_queues_are_told_when_most_writes_find_theirs_full_or_nine_tenths_are_in_use() {
    // 64 entries of 2 controllers over 50,000 ticks are 6,400,000 entry ticks.
    let of_counters = |dram, arrivals, ticks: u64| {
        plain(&[
            ("memory_controller.dram_writes", [dram, 0]),
            ("memory_controller.wpq_full_arrivals", [arrivals, 0]),
            ("memory_controller.wpq_entry_ticks", [1_000, ticks - 1_000]),
        ])
    };
    let text = |full, in_use| {
        format!(
            "write-pending queues: {full} % of writes found theirs full, {in_use} % of the entries were in use on \
             average"
        )
    };
    check_of(&of_counters(0, 50, 1_600_000), &[]);
    check_of(&of_counters(0, 51, 1_600_000), &[(Kind::Cap, &text(51, 25))]);
    // 100 writes to NVM, 100 to DRAM.
    check_of(&of_counters(100, 100, 1_600_000), &[]);
    check_of(&of_counters(100, 122, 1_600_000), &[(Kind::Cap, &text(61, 25))]);
    check_of(&of_counters(0, 0, 5_760_000), &[]);
    check_of(&of_counters(0, 7, 5_760_001), &[(Kind::Cap, &text(7, 90))]);
    // Queues drain on after the end.
    check_of(&of_counters(0, 0, 9_000_000), &[(Kind::Cap, &text(0, 100))]);
    // No queue of known size is in use.
    let mut unknown = of_counters(0, 51, 6_400_000);
    unknown.machine.parameters.clear();
    check_of(&unknown, &[(Kind::Cap, &text(51, 0))]);
}

#[test]
fn a_region_that_the_threshold_lets_grow_larger_than_a_gated_queue_is_told() {
    let of = |entries: u64, owner: &str, block: [u32; 3]| {
        let mut outcome = plain(&[]);
        let parameter = |value: serde_json::Value| Parameter { value, source: "a paper".to_owned() };
        let scheme = [("threshold_stores", 32.into()), ("entry_bytes", 128.into()), ("wpq_entries", entries.into())];
        let all = scheme.into_iter().chain([("owner", owner.into())]);
        outcome.scheme_parameters = all.map(|(key, value)| (format!("light_wsp.{key}"), parameter(value))).collect();
        outcome.machine.parameters.insert("sm.warp_size".to_owned(), parameter(32.into()));
        outcome.launches[0].block = block;
        outcome.launches.truncate(1);
        outcome
    };
    let text = |region: u64, queue: u64| {
        format!(
            "gated WPQs: a region may store 32 words of 8 bytes a lane, {region} entries where its accesses coalesce, and a queue \
             has {queue}: one that comes to a single controller overflows it whatever else is there"
        )
    };
    // 32 stores of 32 lanes are 8 KiB.
    check_of(&of(64, "warp", [64, 1, 1]), &[]);
    check_of(&of(63, "warp", [64, 1, 1]), &[(Kind::Cap, &text(64, 63))]);
    // It is not only allowed.
    let mut beyond = of(63, "warp", [64, 1, 1]);
    let mut report = durawarp_persist::regions::RegionReport::default();
    (report.sizes.beyond_queue, report.sizes.largest_entries) = (3, 70);
    beyond.scheme_report = serde_json::to_value(report).ok();
    let measured = "gated WPQs: 3 regions had more entries for one controller than its queue, up to 70: they overflow it whatever \
                    else is there";
    check_of(&beyond, &[(Kind::Cap, measured)]);
    // Two warps and a part of one share a region.
    check_of(&of(192, "cta", [8, 9, 1]), &[]);
    check_of(&of(191, "cta", [8, 9, 1]), &[(Kind::Cap, &text(192, 191))]);
}

#[test]
fn l2_slices_are_told_when_most_requests_waited() {
    let of_stalls = |stalls| {
        plain(&[("l2.stalls", [stalls, 1]), ("l2.reads", [60, 0]), ("l2.writes", [30, 0]), ("l2.atomics", [0, 10])])
    };
    check_of(&of_stalls(49), &[]);
    check_of(&of_stalls(50), &[(Kind::Cap, "L2: 51 % of requests waited for an MSHR, a way or a credit")]);
}

#[test]
fn l1s_are_told_when_most_loads_went_past_them() {
    let of_stalls =
        |stalls| plain(&[("sm.l1_stalls_past", [1, stalls]), ("sm.l1_loads", [70, 0]), ("sm.l1_bypasses", [0, 30])]);
    check_of(&of_stalls(49), &[]);
    let text = "L1: 51 % of loads went past it since every way was waiting for a fill";
    check_of(&of_stalls(50), &[(Kind::Cap, text)]);
}

#[test]
fn load_store_units_are_told_when_they_are_mostly_full() {
    let of_slots = |full| plain(&[("sm.slots_memory_full", [full, 100]), ("sm.slots_resident", [800, 200])]);
    check_of(&of_slots(400), &[]);
    check_of(&of_slots(410), &[(Kind::Cap, "load-store units: full for 51 % of resident warp cycles")]);
}

#[test]
fn decisions_are_told_when_no_more_periods_were_kept() {
    for (periods, expected) in
        [(9_999, &[][..]), (10_000, &[(Kind::Cap, "decisions: only the first 10000 periods were kept")])]
    {
        let outcome = Outcome { scheme_report: decided(1, &vec![(64, 0); periods]), ..plain(&[]) };
        check_of(&outcome, expected);
    }
}

#[test]
fn a_counter_that_is_full_in_any_component_is_told() {
    check(
        &[("sm.pm_stores", [1, u64::MAX]), ("l2.hits", [u64::MAX, 0]), ("sm.persists", [0, u64::MAX - 1])],
        &[(Kind::Saturated, "counter sm.pm_stores is full"), (Kind::Saturated, "counter l2.hits is full")],
    );
}

#[test]
fn counters_of_a_scheme_that_were_full_are_told_of_all_periods() {
    for (first, second, expected) in [
        (0, 0, &[][..]),
        (1, 0, &[(Kind::Saturated, "counters of scheme `sbrp` were full 1 times when they should have grown")]),
        (3, 4, &[(Kind::Saturated, "counters of scheme `sbrp` were full 7 times when they should have grown")]),
    ] {
        let outcome = Outcome { scheme_report: decided(1, &[(64, first), (64, second)]), ..plain(&[]) };
        check_of(&outcome, expected);
    }
}

#[test]
fn coalescing_is_told_when_most_accesses_are_in_the_open_bucket() {
    let of_open = |open| {
        plain(&[
            ("sm.degree_1", [5, 4]),
            ("sm.degree_2", [5, 5]),
            ("sm.degree_3_4", [10, 0]),
            ("sm.degree_5_8", [0, 10]),
            ("sm.degree_9_16", [1, 10]),
            ("sm.degree_17_more", [open, 20]),
        ])
    };
    check_of(&of_open(30), &[]);
    let text = "coalescing: 51 % of accesses are in the open bucket of 17 or more lines";
    check_of(&of_open(32), &[(Kind::Saturated, text)]);
}

#[test]
fn caveats_come_kind_by_kind_and_have_a_word_each() {
    let mut outcome = plain(&[("l2.hits", [u64::MAX, 0]), ("memory_controller.nvm_writes", [0, 0])]);
    outcome.machine.parameters.insert("l2.ways".to_owned(), parameter("chosen"));
    outcome.end = End::Cut { waits: Vec::new() };
    outcome.validity = of(&outcome);
    let kinds: Vec<Kind> = outcome.validity.iter().map(|caveat| caveat.kind).collect();
    assert_eq!(kinds, [Kind::Unsourced, Kind::Unexercised, Kind::Cap, Kind::Saturated]);
    assert_eq!(words(&outcome), "unsourced unexercised cap saturated");
    let (message, kernel, file) = ("a race".to_owned(), "nw".to_owned(), "nw.ptx".to_owned());
    outcome.warnings = vec![Warning { message, kernel, file, line: 1, launch: 0 }];
    outcome.validity.retain(|caveat| caveat.kind == Kind::Cap);
    assert_eq!(words(&outcome), "cap program");
    outcome.validity.clear();
    assert_eq!(words(&outcome), "program");
    for (kind, word) in Kind::ALL {
        assert_eq!((kind.name(), serde_json::to_value(kind).unwrap()), (word, word.into()));
    }
}
