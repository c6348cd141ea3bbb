//! Warps that wait for others under `light-wsp`, with a store in their open region, while the others store more than the
//! gated queues hold: kernels are formed so that the waiting warp's region has ended. Without, nothing younger commits, the
//! queues stay full, and the run never ends.

use durawarp::outcome::End;
use durawarp::run::Experiment;
use durawarp::workload::Workload;

/// Warp 0 stores, and waits; warp 1 stores to 64 times 32 lines, and does what the other waits for. A warp is a CTA, or half
/// of the only one.
fn ends(warps: &str, begin: &str, wait: &str, act: &str, set: &[&str]) {
    let (grid, block, warp) = match warps {
        "of two CTAs" => (2, 32, "mov.u32 %warp, %ctaid.x;"),
        _ => (1, 64, "mov.u32 %warp, %tid.x;\nshr.u32 %warp, %warp, 5;"),
    };
    let cluster = if wait.contains("cluster") { "cluster = 2" } else { "" };
    let text = format!(
        "schema = 1\nname = 'waits'\ndescription = 'a warp waits'\n[isa]\nkind = 'ptx'\ntext = '''\n.version 8.6\n.target sm_90a\n.address_size 64\n\
         .visible .entry k(.param .u64 p_data, .param .u64 p_flag) {{\n.shared .align 8 .b64 bar;\n.reg .pred %q<4>;\n\
         .reg .b32 %r<9>, %lane, %warp;\n.reg .b64 %d<4>, %data, %flag;\nld.param.u64 %data, [p_data];\n\
         ld.param.u64 %flag, [p_flag];\nmov.u32 %lane, %laneid;\n{warp}\nmul.wide.u32 %d1, %lane, 128;\n\
         add.s64 %d2, %data, %d1;\n{begin}\nsetp.ne.u32 %q1, %warp, 0;\n@%q1 bra STORES;\nst.global.u32 [%d2], 7;\n\
         {wait}\nret;\nSTORES:\nmov.u32 %r3, 0;\nLOOP:\nadd.s64 %d2, %d2, 4096;\nst.global.u32 [%d2], %r3;\n\
         add.u32 %r3, %r3, 1;\nsetp.lt.u32 %q2, %r3, 64;\n@%q2 bra LOOP;\n{act}\nret;\n}}\n'''\n\
         [buffer.data]\ntype = 'u32'\nlen = 66560\nspace = 'pm'\n[buffer.flag]\ntype = 'u32'\nlen = 32\nspace = 'pm'\n\
         [[step]]\nkernel = 'k'\ngrid = {grid}\nblock = {block}\nregs = 40\n{cluster}\nargs = ['&data', '&flag']\n\
         [[verify]]\nbuffer = 'data'\nref = {{ kind = 'expr', expr = 'idx % 32 == 0 ? (idx < 1024 ? 7 : idx / 1024 - 1) : 0' }}\n"
    );
    let workload = Workload::from_text(&text).unwrap_or_else(|faults| panic!("{faults}"));
    let small = ["sm.count=2", "l2.slice_kb=40", "light_wsp.wpq_entries=16", "light_wsp.feb_entries=16"];
    let recipe = Experiment::of(workload).machine("hopper-h100").scheme("light-wsp").changes(small).changes(set);
    let experiment = recipe.max_cycles(1_000_000).build().unwrap_or_else(|faults| panic!("{faults}"));
    let outcome = experiment.run();
    assert_eq!(outcome.end, End::Finished, "{warps}: {wait} {set:?}");
    let verification = outcome.verification.as_ref().unwrap();
    assert!(verification.passed, "{warps}: {wait} {set:?}: {:?}", verification.failures);
}

const FLAG: &str = "membar.gl;\nst.global.u32 [%flag], 1;";

/// A loop that loads a flag of global memory.
fn polls(load: &str) -> String {
    format!("POLL:\n{load} %r4, [%flag];\nsetp.eq.u32 %q3, %r4, 0;\n@%q3 bra POLL;")
}

#[test]
fn a_loop_that_polls_ends_by_whatever_load_it_looks() {
    for load in ["ld.volatile.global.u32", "ld.relaxed.gpu.global.u32", "ld.acquire.gpu.u32", "ld.global.cg.u32"] {
        ends("of two CTAs", "", &polls(load), FLAG, &[]);
        ends("of one CTA", "", &polls(load), FLAG, &["light_wsp.owner=cta"]);
    }
    ends("of two CTAs", "", &polls("ld.global.cg.u32"), FLAG, &["light_wsp.id_draw=paper"]);
    // Without an L1 that keeps the old value a plain load polls as well.
    ends("of two CTAs", "", &polls("ld.global.u32"), FLAG, &["l1.global_loads=false"]);
    // Another loop round it computes the address.
    let places = polls("ld.global.cg.u32").replace("[%flag]", "[%d3]");
    let turns = format!(
        "mov.u64 %d3, %flag;\nmov.u32 %r5, 0;\nNEXT:\n{places}\nadd.s64 %d3, %d3, 4;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %q3, %r5, 4;\n@%q3 bra NEXT;"
    );
    let all = format!("{FLAG}\nst.global.u32 [%flag+4], 1;\nst.global.u32 [%flag+8], 1;\nst.global.u32 [%flag+12], 1;");
    ends("of two CTAs", "", &turns, &all, &[]);
    // On another way through the loop lies a store, behind a fence, which the turns that wait do not take.
    let stores = "FIRST:\nld.global.cg.u32 %r4, [%flag];\nsetp.ne.u32 %q3, %r4, 0;\n@!%q3 bra AGAIN;\nmembar.gl;\n\
                  st.global.u32 [%flag+64], %r4;\nAGAIN:\nsetp.eq.u32 %q3, %r4, 0;\n@%q3 bra FIRST;";
    ends("of two CTAs", "", stores, FLAG, &[]);
}

#[test]
fn barriers_of_clusters_end_whether_or_not_they_order_memory() {
    for arrive in ["arrive", "arrive.relaxed"] {
        let step = format!("barrier.cluster.{arrive};\nbarrier.cluster.wait;");
        ends("of two CTAs", "", &step, &step, &[]);
    }
}

#[test]
fn a_store_to_another_cta_of_clusters_that_only_the_launch_has_is_repeated_in_no_shadow() {
    let begin = "st.shared.u32 [bar], 0;";
    let wait = "POLL:\nld.acquire.cluster.shared.u32 %r4, [bar];\nsetp.eq.u32 %q3, %r4, 0;\n@%q3 bra POLL;";
    let store =
        "mov.u32 %r5, bar;\nmapa.shared::cluster.u32 %r6, %r5, 0;\nst.release.cluster.shared::cluster.u32 [%r6], 1;";
    ends("of two CTAs", begin, wait, store, &[]);
}

#[test]
fn waits_for_registers_and_for_phases_of_barriers_end() {
    // The pool of a CTA is empty at first: what the other warp gives back is all there is.
    let (wait, act) = ("setmaxnreg.inc.sync.aligned.u32 48;", "setmaxnreg.dec.sync.aligned.u32 32;");
    ends("of one CTA", "", wait, act, &[]);
    let begin = "mov.u32 %r6, bar;\nsetp.ne.u32 %q1, %warp, 0;\n@!%q1 mbarrier.init.shared.b64 [%r6], 32;\nbar.sync 0;";
    let wait = "POLL:\nmbarrier.try_wait.parity.shared.b64 %q3, [%r6], 0;\n@!%q3 bra POLL;";
    ends("of one CTA", begin, wait, "mbarrier.arrive.shared.b64 _, [%r6];", &[]);
}
