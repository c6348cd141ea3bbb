//! The table in `workloads/README.md` of what persistency instructions do under each scheme, made of the schemes' answers.
//!
//! Each scheme is asked as an SM asks it, with its defaults, on a machine whose L1s write through. Where an answer depends
//! on the accesses of the instruction, on earlier ones or on a selected way, the words for all answers stand in the table.
//! Columns of schemes that answer alike are one.

use durawarp::config::{Override, SchemeConfig};
use durawarp::persist::{
    FenceKind, FenceRule, HandlerPlace, Outbox, Route, Scheme, SmHandler, Store, StoreClass, Synchronisation,
    WriteBack, WriteBackClass, WriteBackRule,
};
use durawarp::schemes::catalogue;

const README: &str = include_str!("../../workloads/README.md");

const LINE: u64 = 1 << 40;

/// Line accesses of a warp's store: coalesced, and not.
const DEGREES: [u32; 2] = [1, 32];

/// Ways that are selected while a program runs, one after the other.
const SELECTED: [(&str, [&str; 2]); 1] = [("agpm", ["agpm.path=temporal", "agpm.path=non_temporal"])];

fn place() -> HandlerPlace {
    HandlerPlace { sms: 2, slices: 2, controllers: 1, tick_khz: 1_000_000, ..HandlerPlace::default() }
}

/// Words that are there once each, in the order of their coming.
fn once(words: impl IntoIterator<Item = String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all.join(", or ")
}

fn stores(handlers: &mut dyn FnMut() -> Box<dyn SmHandler>, class: StoreClass, atomic: bool) -> String {
    let mut words = Vec::new();
    for degree in DEGREES {
        let (mut handler, outbox) = (handlers(), &mut Outbox::default());
        let store = Store { degree, atomic, ..Store::to(class, &[LINE]) };
        for _first_and_again in 0..2 {
            let rule = handler.store(&store, outbox);
            let route = match rule.route {
                _ if atomic => "at the L2",
                Route::Temporal => "cached",
                Route::NonTemporal => "past the caches",
                Route::Dropped => "left out",
            };
            let copy = if handler.interests().front_end { ", and into its region" } else { "" };
            words.push(format!("{route}{copy}{}", if rule.wait { ", waits" } else { "" }));
        }
    }
    once(words)
}

/// What a write-back does behind a store.
fn write_backs(handlers: &mut dyn FnMut() -> Box<dyn SmHandler>, stored: StoreClass, class: WriteBackClass) -> String {
    let mut words = Vec::new();
    for degree in DEGREES {
        let (mut handler, outbox) = (handlers(), &mut Outbox::default());
        handler.store(&Store { degree, ..Store::to(stored, &[LINE]) }, outbox);
        let rule = handler.write_back(&WriteBack { class, warp: 0, launch: 0, lines: &[LINE] }, outbox);
        words.push(if rule == WriteBackRule::Written { "writes back" } else { "-" }.to_owned());
    }
    once(words)
}

fn rule_word(rule: FenceRule) -> String {
    let word = match rule {
        FenceRule::Pass => "-",
        FenceRule::WaitDurable => "waits",
        FenceRule::Ordered => "orders",
        FenceRule::Marker => "marker",
    };
    word.to_owned()
}

fn released(handler: &mut dyn SmHandler, wide: bool) -> String {
    let orders = handler.interests().persist_order;
    rule_word(if orders { handler.synchronise(Synchronisation::Release { wide }).fence } else { FenceRule::Pass })
}

/// An acquire takes over what releases of its CTA have ordered.
fn acquired(handler: &mut dyn SmHandler, wide: bool) -> String {
    let asked = handler.interests().persist_order;
    let orders = asked && handler.synchronise(Synchronisation::Release { wide }).fence != FenceRule::Pass;
    let forgets = asked && handler.synchronise(Synchronisation::Acquire { wide }).forgets;
    match (orders, forgets) {
        (true, true) => "orders, L1 forgets",
        (true, false) => "orders",
        (false, true) => "L1 forgets",
        (false, false) => "-",
    }
    .to_owned()
}

/// Instructions, and what each does under a scheme.
type Column = Vec<(&'static str, String)>;

/// The cells of a scheme, one an instruction.
fn column(scheme: &dyn Scheme) -> Column {
    let handlers = &mut || scheme.sm_handler(place()).unwrap();
    let mut cells = vec![
        ("`st`", stores(handlers, StoreClass::Data, false)),
        ("`atom`, `red`", stores(handlers, StoreClass::Data, true)),
        ("`pm.st.nt`", stores(handlers, StoreClass::NonTemporal, false)),
        ("`pm.st.log`", stores(handlers, StoreClass::Log, false)),
        ("`pm.clwb` behind `st`", write_backs(handlers, StoreClass::Data, WriteBackClass::Data)),
        ("`pm.clwb.log` behind `pm.st.log`", write_backs(handlers, StoreClass::Log, WriteBackClass::Log)),
        ("`pm.clflushopt` behind `st`", write_backs(handlers, StoreClass::Data, WriteBackClass::Flush)),
    ];
    let fences = [
        ("`pm.sfence`", FenceKind::Sfence),
        ("`pm.ofence`", FenceKind::Ofence),
        ("`pm.dfence`", FenceKind::Dfence),
        ("`pm.barrier.wi`", FenceKind::BarrierThread),
        ("`pm.barrier.wg`", FenceKind::BarrierCta),
        ("`pm.barrier.kr`", FenceKind::BarrierKernel),
    ];
    cells.extend(fences.map(|(name, kind)| (name, rule_word(handlers().fence(kind)))));
    cells.extend([
        ("`pm.rel.cta`", released(&mut *handlers(), false)),
        ("`pm.rel.gpu`, `.sys`", released(&mut *handlers(), true)),
        ("`pm.acq.cta`", acquired(&mut *handlers(), false)),
        ("`pm.acq.gpu`, `.sys`", acquired(&mut *handlers(), true)),
        ("`pm.region`", if handlers().interests().front_end { "ends the region" } else { "-" }.to_owned()),
    ]);
    cells
}

/// The column of a scheme with all the ways that it selects from.
fn whole_column(scheme: &dyn Scheme) -> Column {
    let Some((name, ways)) = SELECTED.into_iter().find(|(name, _)| *name == scheme.name()) else {
        return column(scheme);
    };
    let [first, second] = ways.map(|way| {
        let config = SchemeConfig::load(name, &[Override::parse(way).unwrap()]).unwrap();
        column(&*config.built)
    });
    let cell = |((row, one), (_, other))| (row, once([one, other]));
    first.into_iter().zip(second).map(cell).collect()
}

/// The table as Markdown.
fn table() -> String {
    let mut columns: Vec<(Vec<String>, Column)> = Vec::new();
    for scheme in catalogue::all() {
        let (name, cells) = (format!("`{}`", scheme.name()), whole_column(&*scheme));
        match columns.iter_mut().find(|(_, known)| *known == cells) {
            Some((names, _)) => names.push(name),
            None => columns.push((vec![name], cells)),
        }
    }
    let heads: Vec<String> = columns.iter().map(|(names, _)| names.join(", ")).collect();
    let mut lines = vec![format!("| instruction | {} |", heads.join(" | "))];
    lines.push(format!("|---|{}", "---|".repeat(heads.len())));
    for (row, (name, _)) in columns[0].1.iter().enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(_, cells)| cells[row].1.as_str()).collect();
        lines.push(format!("| {name} | {} |", cells.join(" | ")));
    }
    lines.join("\n")
}

#[test]
fn the_manual_says_what_each_instruction_does_under_each_scheme() {
    let table = table();
    assert!(README.contains(&table), "workloads/README.md must have this table:\n{table}");
}

#[test]
fn the_table_has_every_scheme_and_every_kind_of_answer() {
    let table = table();
    let head = table.lines().next().unwrap();
    for scheme in catalogue::all() {
        assert!(head.contains(&format!("`{}`", scheme.name())), "{head}");
    }
    for word in ["cached", "past the caches", "left out", "writes back", "waits", "orders", "marker", "ends the region"]
    {
        assert!(table.contains(word), "{word}");
    }
}
