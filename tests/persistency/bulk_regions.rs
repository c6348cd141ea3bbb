//! Bulk stores and reductions under `light-wsp`: they are of the region that issues them, whatever has no room, and programs
//! whose copies only leave shared memory go on from every power failure.

use durawarp::crash::{CrashReport, CrashRequest, JudgedLevel};
use durawarp::outcome::End;
use durawarp::run::{Experiment, Recipe};
use durawarp::workload::Workload;

const KERNELS: &str = include_str!("bulk_regions.ptx");

/// A workload of two CTAs of two warps, on a machine of two SMs. `buffers` and `step` are of a manifest.
fn recipe(buffers: &str, steps: &str, set: &[&str]) -> Recipe {
    let text = format!(
        "schema = 1\nname = 'bulk'\ndescription = 'bulk copies'\n[isa]\nkind = 'ptx'\ntext = '''\n{KERNELS}'''\n\
         {buffers}\n{steps}\n[[verify]]\nref = {{ kind = 'functional' }}\n"
    );
    let workload = Workload::from_text(&text).unwrap_or_else(|faults| panic!("{faults}"));
    let small = ["sm.count=2", "controller.channels=2", "l2.slices=2"];
    Experiment::of(workload)
        .machine("agpm-table4")
        .scheme("light-wsp")
        .changes(small)
        .changes(set)
        .max_cycles(2_000_000)
}

const ROWS: [&str; 2] = [
    "[buffer.out]\ntype = 'u32'\nlen = 1536\nspace = 'pm'\n\
     [[verify]]\nbuffer = 'out'\nref = { kind = 'expr', expr = 'idx' }",
    "[[step]]\nkernel = 'rows'\ngrid = 2\nblock = 64\nregs = 60\nargs = ['&out', '3']",
];

/// Of a round 3, 6 and 9 by lanes, as their parts lie, and a thread's own 3.
const SUMS: [&str; 2] = [
    "[buffer.sums]\ntype = 'u32'\nlen = 192\nspace = 'pm'\n[[verify]]\nbuffer = 'sums'\n\
     ref = { kind = 'expr', expr = '4 * 6 * (1 + (idx >= 64 && idx < 128)) + (idx < 64) * 6' }",
    "[[step]]\nkernel = 'sums'\ngrid = 2\nblock = 64\nregs = 60\nargs = ['&sums', '3']",
];

const TILES: [&str; 2] = [
    "[buffer.maps]\ntype = 'u64'\nlen = 32\nspace = 'pm'\n[buffer.sums]\ntype = 'u32'\nlen = 192\nspace = 'pm'",
    "[[step]]\nencode = 'maps'\nmap = { tensor_map = 'sums', sizes = [32, 4], box = [32, 4] }\n\
     [[step]]\nencode = 'maps'\nindex = 16\nmap = { tensor_map = 'sums', index = 64, sizes = [32, 4], box = [32, 4] }\n\
     [[step]]\nkernel = 'tiles'\ngrid = 2\nblock = 64\nregs = 60\nargs = ['&maps', '&sums']",
];

/// What the copies store is in some region before the flag's, though nothing of the program waits for it.
const QUEUE: [&str; 2] = [
    "[buffer.out]\ntype = 'u32'\nlen = 2304\nspace = 'pm'\n[buffer.flags]\ntype = 'u32'\nlen = 96\nspace = 'pm'\n\
     [[crash]]\nname = 'flags tell of copies'\non = 'survived'\n\
     holds = 'sum(w, 0, 3, flags[32 * w] == 1 && out[768 * w + 767] == 0) == 0'\nschemes = ['light-wsp']",
    "[[step]]\nkernel = 'queue'\ngrid = 1\nblock = 96\nregs = 60\nargs = ['&out', '&flags']",
];

fn judged(recipe: Recipe) -> CrashReport {
    let request = CrashRequest { double: true, resume: 24, ..CrashRequest::default() };
    let report = recipe.crash(&request).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.ended_well(), "{:?} {:?}", report.outcome.end, report.outcome.verification);
    report
}

/// Every queue with room for next to nothing.
const FULL: &[&str] = &["light_wsp.wpq_entries=1", "light_wsp.feb_entries=1"];

#[test]
fn programs_go_on_from_every_power_failure() {
    for (name, [buffers, steps]) in [("rows", ROWS), ("sums", SUMS), ("tiles", TILES), ("queue", QUEUE)] {
        for set in [
            &[][..],
            FULL,
            &["light_wsp.owner=cta", "light_wsp.wpq_entries=1", "light_wsp.feb_entries=1"],
            &["light_wsp.threshold_stores=2", "light_wsp.commit=pipelined"],
            &[
                "light_wsp.wpq_hit=wait",
                "l2.slice_kb=2",
                "l2.ways=4",
                "light_wsp.id_bits=4",
                "light_wsp.path_mb_s=1000",
            ],
        ] {
            let report = judged(recipe(buffers, steps, set));
            let found: Vec<_> = report.judgements().flat_map(|(_, judgement)| &judgement.found).collect();
            assert!(report.holds(), "{name}, {set:?}: {:?}", found.first().map(|one| &one.failure.what));
            let resumed = &report.level(JudgedLevel::Resumed).unwrap().verdict;
            assert!(resumed.judged >= 12, "{name}, {set:?}: {resumed:?}");
            assert!(report.regions.unwrap() >= 12, "{name}, {set:?}: {:?}", report.regions);
        }
    }
}

#[test]
fn stores_go_on_in_an_order_of_each_sm_and_reductions_are_refused_there_with_their_place() {
    let own = ["light_wsp.order=sm"];
    for more in [&[][..], FULL] {
        let report = judged(recipe(ROWS[0], ROWS[1], &[&own, more].concat()));
        assert!(report.holds() && report.level(JudgedLevel::Resumed).unwrap().verdict.judged >= 12);
    }
    let fault = recipe(SUMS[0], SUMS[1], &own).run().unwrap_err().to_string();
    assert!(fault.contains("kernel `sums` reduces in bulk here"), "{fault}");
    assert!(fault.contains("`light_wsp.order = \"global\"`"), "{fault}");
}

/// A published hole shows with bulk reductions as it does with atomics: their region has its ID before they are performed.
#[test]
fn ids_drawn_before_a_bulk_reduction_are_found_out_of_order() {
    let report = judged(recipe(SUMS[0], SUMS[1], &["light_wsp.id_draw=paper"]));
    assert!(!report.level(JudgedLevel::History).unwrap().verdict.holds());
    assert!(!report.level(JudgedLevel::Resumed).unwrap().verdict.holds());
}

/// The entries of copies count as those of stores do; a line of 128 bytes has one at the default width of an entry.
#[test]
fn a_bulk_store_is_copied_to_the_buffer_line_by_line_as_its_region_s() {
    let outcome = recipe(ROWS[0], ROWS[1], &[]).run().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.end, End::Finished);
    // Two lines a lane, two lanes a warp, four warps, three rounds.
    assert_eq!((outcome.total("bulk", "bulk_stores"), outcome.total("bulk", "bulk_bytes")), (24, 24 * 256));
    let regions = outcome.regions().expect("regions");
    let bytes = regions.sizes.bytes - regions.checkpoints.bytes;
    assert_eq!(bytes, 24 * 256, "of stores that are no checkpoints");
}

#[test]
fn results_are_the_same_at_every_number_of_threads() {
    for [buffers, steps] in [ROWS, SUMS, TILES] {
        for set in [&[][..], FULL] {
            let digest = |threads: usize| {
                let outcome = recipe(buffers, steps, set).threads(threads).run();
                outcome.unwrap_or_else(|faults| panic!("{faults}")).digest
            };
            let one = digest(1);
            assert!([2, 8].iter().all(|&threads| digest(threads) == one), "{set:?}");
        }
    }
}
