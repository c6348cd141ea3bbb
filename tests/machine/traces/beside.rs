//! What goes on beside the warps of a trace of Hopper: copies of the copy engine, barriers in shared memory, clusters. A
//! trace comes to what a kernel of PTX comes to that does the same; waits end with phases; what a trace does not say is
//! told.

use std::fmt::Write as _;

use super::super::clusters::{goes_on, same_at_any_threads, small, workload};
use super::export::SHIFT;
use super::run;
use durawarp::Experiment;
use durawarp::kernel::memory::DRAM_BASE;
use durawarp::outcome::{End, Outcome};
use durawarp::run::Recipe;
use tempfile::TempDir;

/// The first byte of memory in the trace that has the place of the first in the machine.
pub(super) const MEMORY: u64 = SHIFT + DRAM_BASE;

/// A line without its address in the code and its immediates: the lanes, and what follows.
pub(super) type Line = (u32, String);

pub(super) const ALL: u32 = u32::MAX;
/// The lane that an election finds.
pub(super) const ONE: u32 = 1;

/// A trace of version 6 of CTAs of `warps` warps in clusters of `cluster` CTAs; `lines` has those of a warp but its exit.
pub(super) fn traced(ctas: u32, cluster: u32, warps: u32, lines: impl Fn(u32, u32) -> Vec<Line>) -> (TempDir, Recipe) {
    let mut text = format!(
        "-kernel name = beside\n-grid dim = ({ctas},1,1)\n-block dim = ({},1,1)\n-shmem = 8192\n-nregs = 32\n\
         -binary version = 90\n-accelsim tracer version = 6\n#\n",
        32 * warps
    );
    for cta in 0..ctas {
        let (of, at) = (cta / cluster, cta % cluster);
        write!(text, "#BEGIN_TB\n\nthread block = {cta},0,0\ncluster id = {of},0,0\n").unwrap();
        write!(text, "cluster cta = {at},0,0\ncluster rank = {at}\n").unwrap();
        for warp in 0..warps {
            let mut lines = lines(cta, warp);
            lines.push((ALL, "0 EXIT 0 0 0 NoVal".to_owned()));
            write!(text, "\nwarp = {warp}\ninsts = {}\n", lines.len()).unwrap();
            for (pc, (mask, line)) in lines.iter().enumerate() {
                writeln!(text, "{:04x} {mask:08x} {line}", 16 * pc).unwrap();
            }
        }
        text += "\n#END_TB\n";
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kernel-1.traceg");
    std::fs::write(&path, text).unwrap();
    (folder, Experiment::of(path.display().to_string()).machine("hopper-h100"))
}

/// The barrier of rank 0 at byte 0x400, and the one behind it.
pub(super) const BARRIER: u64 = 0x400;

/// An address of the same byte in the CTA of a rank.
pub(super) fn of_rank(rank: u32, byte: u64) -> u64 {
    u64::from(rank) << 24 | byte
}

pub(super) fn begin(barrier: u64, arrivals: u64) -> Line {
    let half = 0x10_0000 - arrivals;
    let word = (half << 11 & 0xffff_ffff) << 32 | half << 1;
    (ONE, format!("1 UR63 SYNCS.EXCH.64 2 UR5 UR6 8 0 {barrier:#x} 0 Val 1 0 1 {barrier:x} 1 {word:x}"))
}

pub(super) fn expect(barrier: u64, bytes: u32) -> Line {
    (ONE, format!("0 SYNCS.ARRIVE.TRANS64 2 R5 R6 8 0 {barrier:#x} 0 Val 1 {barrier:x} 1 {bytes:x}"))
}

pub(super) fn arrive(mask: u32, barrier: u64) -> Line {
    (mask, format!("0 SYNCS.ARRIVE.TRANS64.RED.A1T0 1 R5 8 1 {barrier:#x} 0 0 NoVal"))
}

pub(super) fn wait(barrier: u64, parity: u32) -> Line {
    let value = parity << 31;
    (ALL, format!("1 P0 SYNCS.PHASECHK.TRANS64.TRYWAIT 2 R5 R6 8 1 {barrier:#x} 0 0 Val 1 1 1 {barrier:x} 1 {value:x}"))
}

/// A load of the copy engine from these addresses, to the CTAs of a mask where there is one.
pub(super) fn load(barrier: u64, ctas: Option<u16>, bytes: [u32; 2], addresses: &[u64]) -> Line {
    let name = if ctas.is_some() { "UBLKCP.S.G.MULTICAST" } else { "UBLKCP.S.G" };
    let mask = ctas.map_or_else(|| "0".to_owned(), |mask| format!("1 {mask:#x}"));
    let listed: String = addresses.iter().map(|address| format!(" {:#x}", MEMORY + address)).collect();
    let [all, outside] = bytes;
    (ONE, format!("0 {name} 2 UR4 UR8 16 {barrier:#x} {mask} {all} {outside} 3 {}{listed} 0 NoVal", addresses.len()))
}

pub(super) fn plain(text: &str) -> Line {
    (ALL, format!("{text} 0 NoVal"))
}

pub(super) fn sync() -> [Line; 2] {
    [plain("0 UCGABAR_ARV 0 0"), plain("0 UCGABAR_WAIT 0 0")]
}

pub(super) fn finished(recipe: Recipe) -> Outcome {
    let outcome = run(recipe.reference(false));
    assert_eq!(outcome.end, End::Finished);
    outcome
}

/// Three rounds, in each of which four CTAs read 256 bytes each for all of them, as kernel `gathers` of
/// `tests/kernel/ptx/multicast.ptx` has it.
fn gathers(cta: u32, warp: u32) -> Vec<Line> {
    let (of, rank) = (u64::from(cta / 4), cta % 4);
    let at = |barrier| of_rank(rank, barrier);
    let mut lines = vec![plain("1 R0 S2R 0 0"), plain("1 R1 IMAD 1 R0 0"), plain("1 R2 IADD3 1 R1 0")];
    if warp == 0 {
        lines.push(begin(at(BARRIER), 1));
    }
    lines.extend(sync());
    for round in 0..3 {
        if warp == 0 {
            let first = (4 * (3 * of + round) + u64::from(rank)) * 256;
            lines.push(expect(at(BARRIER), 1024));
            lines.push(load(at(BARRIER), Some(0b1111), [256, 0], &[first, first + 64, first + 128, first + 192]));
        }
        lines.push(wait(at(BARRIER), round as u32 & 1));
        for word in 0..4 {
            lines.push((ALL, format!("1 R3 LDS 1 R2 4 1 {:#x} 4 0 NoVal", 128 * warp + 256 * word)));
            lines.push(plain("1 R4 IMAD 2 R4 R3 0"));
            lines.push(plain("1 P0 ISETP.LT.U32.AND 1 R2 0"));
        }
        lines.extend(sync());
    }
    let sums = MEMORY + (1 << 20) + u64::from(cta * 64 + warp * 32) * 4;
    lines.push((ALL, format!("0 STG.E 2 R8 R4 4 1 {sums:#x} 4 0 NoVal")));
    lines
}

#[test]
fn copies_barriers_and_clusters_of_a_trace_come_to_what_a_kernel_comes_to() {
    let kernels = include_str!("../../kernel/ptx/multicast.ptx");
    let buffers = "[buffer.input]\ntype = \"u32\"\nlen = 4096\n[buffer.sums]\ntype = \"u32\"\nlen = 1024\n";
    let step =
        "[[step]]\nkernel = \"gathers\"\ngrid = 16\nblock = 64\ncluster = 4\nargs = [\"&input\", \"&sums\", \"3\"]\n";
    let (_kernel, kernel) = workload(kernels, buffers, step, "\"sums\"");
    let (_trace, trace) = traced(16, 4, 2, gathers);
    let narrow = kernel.clone();
    let [of_kernel, of_trace] = [kernel, trace].map(|recipe| finished(small(recipe).set("sm.gpcs", 2)));
    let counted = |outcome: &Outcome| {
        let of_copies = ["bulk_loads", "bulk_multicasts", "bulk_reads", "bulk_parts_served", "bulk_peer_bytes"];
        let of_clusters = ["cluster_phases"].map(|name| outcome.total("cluster", name));
        (of_copies.map(|name| outcome.total("bulk", name)), of_clusters, outcome.total("l2", "reads"))
    };
    assert_eq!(counted(&of_trace), counted(&of_kernel));
    // What a copy of global memory brings to others takes no time of the links between SMs.
    let narrow = finished(small(narrow).set("sm.gpcs", 2).set("shared.cluster_bytes", 1));
    assert_eq!(narrow.time.core_cycles, of_kernel.time.core_cycles);
    assert!(counted(&of_trace).0.iter().take(4).all(|&count| count > 0));
    let cycles = [&of_kernel, &of_trace].map(|outcome| outcome.time.core_cycles as f64);
    assert!((cycles[1] / cycles[0] - 1.0).abs() < 0.1, "{cycles:?}");
    assert!(of_trace.workload["trace"]["stood_in"].as_object().unwrap().is_empty());
}

#[test]
fn a_trace_with_copies_and_clusters_is_the_same_at_every_number_of_threads_and_from_checkpoints() {
    let (_folder, recipe) = traced(16, 4, 2, gathers);
    let recipe = small(recipe).set("sm.gpcs", 2);
    same_at_any_threads(&recipe, "clusters of a trace");
    let resumed = goes_on(recipe, (10..100).step_by(20));
    assert!(resumed >= 4, "{resumed}");
}

/// Cycles of a trace of one CTA of two warps.
fn cycles(lines: impl Fn(u32) -> Vec<Line>) -> u64 {
    let (_folder, recipe) = traced(1, 1, 2, |_, warp| lines(warp));
    finished(small(recipe)).time.core_cycles
}

#[test]
fn a_wait_ends_with_the_phase_whoever_ends_it() {
    // The second warp arrives behind a chain of 40 or 140 additions of 4 cycles each; the first waits for it.
    let chain = |length: usize| {
        cycles(|warp| match warp {
            0 => vec![begin(BARRIER, 1), plain("0 BAR.SYNC 0 0"), wait(BARRIER, 0)],
            _ => {
                let mut lines = vec![plain("0 BAR.SYNC 0 0")];
                lines.extend(vec![plain("1 R4 IADD3 1 R4 0"); length]);
                lines.push(arrive(ONE, BARRIER));
                lines.extend(vec![plain("1 R4 IADD3 1 R4 0"); 140 - length]);
                lines
            }
        })
    };
    // The warp that is over last ends the run: the one with the chain, or the one that waits for its arrival.
    let whole = cycles(|warp| match warp {
        0 => vec![begin(BARRIER, 1), plain("0 BAR.SYNC 0 0")],
        _ => {
            let mut lines = vec![plain("0 BAR.SYNC 0 0")];
            lines.extend(vec![plain("1 R4 IADD3 1 R4 0"); 140]);
            lines
        }
    });
    assert!(chain(40).abs_diff(whole) < 8, "the first warp is over long before: {} and {whole}", chain(40));
    assert!(chain(140) > whole + 20, "it reads the barrier when the other has arrived: {} and {whole}", chain(140));
    // A parity that is not that of the phase is that of the one before, which is over.
    let passes = cycles(|warp| match warp {
        0 => vec![begin(BARRIER, 1), plain("0 BAR.SYNC 0 0"), wait(BARRIER, 1)],
        _ => vec![plain("0 BAR.SYNC 0 0")],
    });
    assert!(passes < whole, "{passes} and {whole}");
}

#[test]
fn all_lanes_arrive_and_a_phase_that_nobody_ends_is_reported() {
    let arrivals = |expected| {
        let (_folder, recipe) = traced(1, 1, 2, |_, warp| match warp {
            0 => vec![begin(BARRIER, expected), plain("0 BAR.SYNC 0 0"), wait(BARRIER, 0)],
            _ => vec![plain("0 BAR.SYNC 0 0"), arrive(0x00ff_ff00, BARRIER)],
        });
        run(small(recipe).reference(false)).end
    };
    assert_eq!(arrivals(16), End::Finished);
    let End::Deadlock { waits } = arrivals(17) else { panic!("16 lanes arrive of 17") };
    assert!(waits[0].contains("the end of a phase of an `mbarrier`, which its trace awaits"), "{waits:?}");
}

#[test]
fn bytes_outside_of_a_tensor_complete_and_are_not_read() {
    // Which of both numbers has them all, what the barrier awaits says: 128 bytes at two places, and 128 outside.
    for (awaited, bytes, lines) in [(384, [384, 128], 2), (384, [256, 128], 2), (256, [256, 0], 2), (128, [0, 128], 0)]
    {
        let addresses = if lines == 0 { &[][..] } else { &[0, 4096] };
        let (_folder, recipe) = traced(1, 1, 2, |_, warp| match warp {
            0 => vec![
                begin(BARRIER, 1),
                expect(BARRIER, awaited),
                load(BARRIER, None, bytes, addresses),
                wait(BARRIER, 0),
            ],
            _ => Vec::new(),
        });
        let outcome = finished(small(recipe));
        assert_eq!(outcome.total("bulk", "bulk_reads"), lines, "{bytes:?}");
        assert_eq!(outcome.workload["trace"]["barriers_unknown"], 0);
    }
}

/// What is told of a trace of one warp.
pub(super) fn told(lines: &[Line]) -> (Outcome, Vec<String>) {
    let (_folder, recipe) = traced(1, 1, 1, |_, _| lines.to_vec());
    let outcome = finished(small(recipe));
    let told = outcome.validity.iter().map(|caveat| caveat.text.clone()).collect();
    (outcome, told)
}

#[test]
fn barriers_of_which_a_trace_does_not_say_all_order_nothing_and_that_is_told() {
    let begun = begin(BARRIER, 1);
    let without_values = (ONE, format!("0 SYNCS.ARRIVE.TRANS64 2 R5 R6 8 0 {BARRIER:#x} 0 NoVal"));
    let to_others = (ONE, "0 STAS.64 2 R2 R4 8 0 0x1000400 0 NoVal".to_owned());
    let fetch = load(BARRIER, None, [256, 0], &[0]);
    for lines in [
        vec![begun.clone(), without_values, fetch.clone(), wait(BARRIER, 0)],
        // It awaits more than comes.
        vec![begun.clone(), expect(BARRIER, 512), fetch.clone(), wait(BARRIER, 0)],
        vec![begun, expect(BARRIER, 256), fetch, wait(BARRIER, 0), to_others],
    ] {
        let (outcome, told) = told(&lines);
        assert_eq!(outcome.workload["trace"]["barriers_unknown"], 1);
        assert_eq!(outcome.total("bulk", "bulk_reads"), 2, "its copies are made");
        assert!(told.iter().any(|text| text.starts_with("in 1 launches barriers in shared memory order nothing")));
    }
}

#[test]
fn stores_of_the_copy_engine_are_groups_that_a_wait_awaits() {
    let store = |address: u64| {
        let text = format!("0 UTMASTG.2D 2 UR4 UR8 16 0x0 0 4096 0 4 {:#x} 1 0 NoVal", MEMORY + address);
        (ONE, text)
    };
    let commit = || plain("0 UTMACMDFLUSH 0 0");
    let leaves = |kept: u32| (ALL, format!("0 DEPBAR.LE 0 0 {kept} NoVal"));
    let of = |waits: Option<u32>| {
        let mut lines = vec![store(0), commit(), store(8192), commit()];
        lines.extend(waits.map(leaves));
        lines.extend(vec![plain("1 R4 IADD3 1 R4 0"); 200]);
        let (outcome, _) = told(&lines);
        assert_eq!([outcome.total("bulk", "bulk_stores"), outcome.total("l2", "writes")], [2, 64]);
        outcome.time.core_cycles
    };
    let [none, two, one, all] = [None, Some(2), Some(1), Some(0)].map(of);
    assert!(none.abs_diff(two) <= 8 && two < one && one < all, "{none}, {two}, {one}, {all}");
}

#[test]
fn an_arrival_behind_copies_past_the_registers_waits_for_them() {
    let copy = |lanes: u32| (lanes, format!("0 LDGSTS.E.BYPASS.128 2 R2 R4 16 1 {:#x} 16 0 NoVal", MEMORY + 512));
    let behind =
        |lanes: u32, what: &str| (lanes, format!("0 ARRIVES.LDGSTSBAR.64.{what} 1 R5 8 1 {BARRIER:#x} 0 0 NoVal"));
    let of = |arrivals: u64, lines: &[Line]| {
        let (_folder, recipe) = traced(1, 1, 2, |_, warp| {
            let begun = [begin(BARRIER, arrivals), plain("0 BAR.SYNC 0 0"), wait(BARRIER, 0)];
            let with = |lines: &[Line]| [&[plain("0 BAR.SYNC 0 0")], lines].concat();
            if warp == 0 { begun.to_vec() } else { with(lines) }
        });
        let outcome = finished(small(recipe));
        assert_eq!(outcome.workload["trace"]["barriers_unknown"], 0);
        (outcome.time.core_cycles, outcome.total("tensor", "async_copies"))
    };
    // Of 32 lanes; without a copy they arrive at once, behind one when its four lines have come from memory.
    let (without, none) = of(32, &[behind(ALL, "ARVCNT")]);
    let (with, one) = of(32, &[copy(ALL), behind(ALL, "ARVCNT")]);
    assert_eq!((none, one), (0, 1));
    assert!(with > without + 300, "{without} and {with}");
    // An arrival that is awaited in addition leaves as many to come.
    let awaited = (ONE, format!("0 SYNCS.ARRIVE.TRANS64.RED.A0T1 1 R5 8 0 {BARRIER:#x} 0 NoVal"));
    let (added, _) = of(1, &[copy(ALL), awaited, behind(ONE, "TRANSCNT"), arrive(ONE, BARRIER)]);
    assert!(added.abs_diff(with) < 60, "{added} and {with}");
    // Groups of the same kernel are waited for one by one.
    let waits = |kept: u32| {
        let commit = || plain("0 LDGDEPBAR 0 0");
        let wait = (ALL, format!("0 DEPBAR.LE 0 0 {kept} NoVal"));
        let chain = vec![plain("1 R4 IADD3 1 R4 0"); 100];
        let begun = [arrive(ONE, BARRIER), behind(ONE, "ARVCNT"), copy(ALL), commit(), wait];
        of(2, &[&begun[..], &chain].concat()).0
    };
    assert!(waits(0) > waits(1) + 300, "{} and {}", waits(0), waits(1));
}

#[test]
fn barriers_of_a_cta_have_numbers_and_threads() {
    // Two of three warps meet at barrier 3; the third, whose chain is long, only meets them at 0.
    let chain = || vec![plain("1 R4 IADD3 1 R4 0"); 300];
    let meets = |at: &str| {
        let (_folder, recipe) = traced(1, 1, 3, |_, warp| {
            let (at, mut lines) = ((ALL, format!("0 BAR.SYNC.DEFER_BLOCKING 0 0 {at} NoVal")), chain());
            if warp < 2 {
                lines = vec![at];
                lines.extend(chain());
            }
            lines.push(plain("0 BAR.SYNC.DEFER_BLOCKING 0 0"));
            lines
        });
        finished(small(recipe)).time.core_cycles
    };
    // At the barrier of all they would wait for the third warp, and then have their chains.
    let [own, of_all] = ["3 64", "0"].map(meets);
    assert!(of_all > own + 900, "{own} and {of_all}");
    // Who arrives only does not wait.
    let (_folder, recipe) = traced(1, 1, 2, |_, warp| match warp {
        0 => vec![(ALL, "0 BAR.ARV 0 0 4 64 NoVal".to_owned())],
        _ => {
            let mut lines = chain();
            lines.push((ALL, "0 BAR.SYNC 0 0 4 64 NoVal".to_owned()));
            lines
        }
    });
    let outcome = finished(small(recipe));
    assert!(outcome.total("sm", "slots_barrier") < 100, "{}", outcome.total("sm", "slots_barrier"));
}

#[test]
fn a_loop_that_polled_is_executed_once_and_its_marks_are_no_instructions() {
    let polls = [
        plain("0 REPLAY_START 0 0"),
        wait(BARRIER, 1),
        plain("0 NANOSLEEP.SYNCS 0 0"),
        plain("0 BRA 0 0"),
        plain("0 REPLAY_END 0 0"),
    ];
    let mut lines = vec![begin(BARRIER, 1)];
    lines.extend(polls);
    let (outcome, _) = told(&lines);
    assert_eq!(outcome.warp_instructions(), 1 + 3 + 1);
}

#[test]
fn stores_of_the_copy_engine_persist_under_every_scheme_that_runs_traces() {
    let recipe = Experiment::of("tests/traces/packed/kernel-3.tracez").persistent(true).machine("hopper-h100");
    let mut schemes = 0;
    for scheme in durawarp::schemes::catalogue::all() {
        let recipe = small(recipe.clone()).scheme(scheme.name());
        if recipe.clone().build().is_err() {
            continue;
        }
        let outcome = finished(recipe);
        // Four tiles of 128 rows of 256 bytes.
        assert_eq!(outcome.total("sm", "pm_store_accesses"), 4 * 128 * 2, "{}", scheme.name());
        schemes += 1;
    }
    assert!(schemes > 10, "{schemes}");
}

#[test]
fn a_warp_without_an_exit_ends_with_its_last_instruction_and_that_is_told() {
    // As a generator of traces for models of memory writes it: no exit, no cluster, version 4.
    let warp = |at: u32| {
        let mut text = format!("warp = {at}\ninsts = 3\n");
        for (pc, rest) in
            ["LDG.E.128 1 R2 16 1 0x3000000000 16 0", "FFMA 3 R4 R6 R8 0", "FFMA 3 R4 R6 R8 0"].iter().enumerate()
        {
            writeln!(text, "{:04x} ffffffff 1 R4 {rest}", 16 * pc).unwrap();
        }
        text
    };
    let ctas: String = (0..4)
        .map(|cta| format!("#BEGIN_TB\n\nthread block = {cta},0,0\n\n{}{}#END_TB\n\n", warp(0), warp(1)))
        .collect();
    let text = format!(
        "-kernel name = _Z9h3_layer0\n-kernel id = 1\n-grid dim = (4,1,1)\n-block dim = (64,1,1)\n-shmem = 0\n-nregs = 32\n\
         -binary version = 90\n-cuda stream id = 0\n-shmem base_addr = 0x0\n-local mem base_addr = 0x0\n-nvbit version = 1.5.5\n\
         -accelsim tracer version = 4\n\n#traces format = PC mask dest_num reg_dests opcode src_num reg_srcs\n\n{ctas}"
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel-1.traceg"), text).unwrap();
    let list = "MemcpyHtoD,0x0000000000000000,4096\nMemcpyHtoD,0x0000003000000000,8192\nkernel-1.traceg\n";
    std::fs::write(folder.path().join("kernelslist.g"), list).unwrap();
    let outcome = finished(small(Experiment::of(folder.path().display().to_string()).machine("hopper-h100")));
    assert_eq!(outcome.warp_instructions(), 4 * 2 * (3 + 1));
    assert_eq!(outcome.workload["trace"]["unended_warps"], 8);
    let told = "8 warps have no exit in the trace; each executes one, which is counted";
    assert!(outcome.validity.iter().any(|caveat| caveat.text.contains(told)));
}
