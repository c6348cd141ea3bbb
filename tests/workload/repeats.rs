//! Kernels whose warps only repeat themselves: that is found and told, with what independent thread scheduling
//! would change; kernels that get on are left alone.

use crate::cli_common::{durawarp_in, folder};
use durawarp::Experiment;
use durawarp::outcome::{End, Outcome};
use durawarp::run::{AnyExperiment, Conduct};
use durawarp::workload::Workload;

/// Looks of these tests are this many cycles apart: longer than any message of the machine is under way.
const LOOK: u64 = 4_000;

/// A workload of one launch: `%rd1` is the buffer f of 64 words, `%r1` the thread, `%r2` the CTA.
fn manifest(grid: u32, block: u32, body: &str) -> String {
    manifest_of(64, grid, block, body)
}

fn manifest_of(words: u32, grid: u32, block: u32, body: &str) -> String {
    format!(
        r#"schema = 1
name = "waits"
description = "waits"
buffer.f = {{ type = "u32", len = {words}, role = "scratch" }}
step = [{{ kernel = "k", grid = {grid}, block = {block}, args = ["&f"] }}]
isa = {{ kind = "ptx", text = '''
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p_f) {{
.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .shared .b32 s[4];
ld.param.u64 %rd1,[p_f]; mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x;
{body}
ret;
}}
''' }}
"#
    )
}

/// Warps wait for a flag that nobody sets.
const FLAG: &str = "W: ld.volatile.global.u32 %r6,[%rd1]; setp.eq.u32 %p2,%r6,0; @%p2 bra W;";

/// A barrier of the whole grid, of CTAs that count themselves.
const GRID_BARRIER: &str = "mov.u32 %r9,%nctaid.x;
setp.ne.u32 %p1,%r1,0; @%p1 bra W; atom.global.add.u32 %r5,[%rd1],1;
W: ld.volatile.global.u32 %r6,[%rd1]; setp.lt.u32 %p2,%r6,%r9; @%p2 bra W; bar.sync 0;";

/// Each lane takes one lock, and gives it back after the loop.
const LOCK: &str = "L: atom.global.cas.b32 %r5,[%rd1],0,1; setp.ne.u32 %p1,%r5,0; @%p1 bra L;
ld.volatile.global.u32 %r6,[%rd1+4]; add.u32 %r6,%r6,1; st.volatile.global.u32 [%rd1+4],%r6;
membar.gl; atom.global.exch.b32 %r7,[%rd1],0;";

fn outcome(manifest: &str, threads: usize) -> Outcome {
    let recipe = Experiment::of(Workload::from_text(manifest).unwrap()).machine("titan-x").set("sm.count", 2);
    let Ok(AnyExperiment::Gpu(experiment)) = recipe.max_cycles(2_000_000u64).build_any() else { panic!("kernels") };
    let conduct = Conduct { repeat_cycles: LOOK, threads, oversubscribe: true, ..Conduct::default() };
    AnyExperiment::Gpu(experiment).run(&conduct).outcome
}

/// The lines of what it repeats, which are the same at any number of threads.
fn lines(manifest: &str) -> Vec<String> {
    let one = outcome(manifest, 1);
    let End::Repeats(repeats) = &one.end else { panic!("{:?} after {} cycles", one.end, one.time.core_cycles) };
    for threads in [2, 3, 8] {
        let other = outcome(manifest, threads);
        assert_eq!((&one.end, &one.digest, one.time), (&other.end, &other.digest, other.time), "{threads} threads");
    }
    repeats.lines()
}

fn ends(manifest: &str) {
    let outcome = outcome(manifest, 1);
    assert_eq!(outcome.end, End::Finished, "after {} cycles", outcome.time.core_cycles);
    assert!(outcome.time.core_cycles > 10 * LOOK, "{} cycles show nothing", outcome.time.core_cycles);
}

#[test]
fn a_flag_that_is_never_set_is_told_with_its_buffer_and_value() {
    let lines = lines(&manifest(2, 32, FLAG));
    let line = "2 warps of 2 CTAs of kernel `k` repeat workload.toml:13:4 to 13:67: a load at 13:4 \
                reads 0 from byte 0 of `f`";
    assert_eq!(lines, [line]);
}

#[test]
fn a_grid_barrier_with_too_many_ctas_tells_how_many_have_not_started() {
    let lines = lines(&manifest(100, 256, GRID_BARRIER));
    let [spin, room] = &lines[..] else { panic!("{lines:?}") };
    assert!(spin.starts_with("128 warps of 16 CTAs of kernel `k` repeat "), "{spin}");
    assert!(spin.ends_with("reads 16 from byte 0 of `f`"), "{spin}");
    assert!(room.starts_with("84 CTAs of the grid have not started: they wait for room"), "{room}");
    assert!(room.ends_with("(a kernel with `grid.sync()` refuses such a grid)"), "{room}");
}

#[test]
fn a_lock_within_a_warp_tells_who_waits_to_be_joined() {
    let lines = lines(&manifest(1, 32, LOCK));
    let [spin] = &lines[..] else { panic!("{lines:?}") };
    assert!(spin.starts_with("1 warp of 1 CTA of kernel `k` repeats workload.toml:13:4 to "), "{spin}");
    assert!(spin.contains("an atomic at 13:4 reads 1 from byte 0 of `f`; 1 lane"), "{spin}");
    assert!(spin.contains("until the 31 that repeat join"), "{spin}");
    assert!(spin.contains("independent thread scheduling (Volta and later)"), "{spin}");
}

#[test]
fn warps_that_wait_for_a_word_of_shared_memory_and_warps_at_a_barrier_are_told_apart() {
    let body = "setp.lt.u32 %p1,%r1,32; @!%p1 bra B;
W: ld.volatile.shared.u32 %r6,[s]; add.u32 %r7,%r7,1; setp.eq.u32 %p2,%r6,0; @%p2 bra W;
B: bar.sync 0;";
    let lines = lines(&manifest(1, 128, body));
    let [spin, barrier] = &lines[..] else { panic!("{lines:?}") };
    assert!(spin.starts_with("1 warp of 1 CTA") && spin.ends_with("reads 0 from shared memory, byte 0"), "{spin}");
    assert_eq!(barrier, "3 warps of 1 CTA wait at a barrier of their CTA for those that repeat");
}

/// CTA 0 loads f[0] into its L1 and then waits as `waits` says; CTA 1, of the other SM, sets f[0] in between.
fn behind_the_l1(waits: &str) -> String {
    let body = format!(
        "setp.ne.u32 %p1,%r2,0; @%p1 bra B;
ld.global.nc.u32 %r6,[%rd1]; add.u32 %r7,%r6,1; st.volatile.global.u32 [%rd1+128],%r7;
A: ld.volatile.global.u32 %r6,[%rd1+192]; setp.eq.u32 %p2,%r6,0; @%p2 bra A;
{waits} bra E;
B: ld.volatile.global.u32 %r6,[%rd1+128]; setp.eq.u32 %p2,%r6,0; @%p2 bra B;
st.volatile.global.u32 [%rd1],1; membar.gl; st.volatile.global.u32 [%rd1+192],1; E:"
    );
    manifest(2, 1, &body)
}

#[test]
fn who_never_looks_past_its_l1_is_told_so_and_who_does_is_not() {
    let [cached] = &lines(&behind_the_l1("W: ld.global.nc.u32 %r6,[%rd1]; setp.eq.u32 %p2,%r6,0; @%p2 bra W;"))[..]
    else {
        panic!("one warp waits")
    };
    assert!(cached.contains("a load at 16:4 reads 0 from byte 0 of `f`; memory has another value"), "{cached}");
    let [atomic] = &lines(&behind_the_l1("W: atom.global.or.b32 %r6,[%rd1],0; setp.ne.u32 %p2,%r6,2; @%p2 bra W;"))[..]
    else {
        panic!("one warp waits")
    };
    assert!(atomic.ends_with("an atomic at 16:4 reads 1 from byte 0 of `f`"), "{atomic}");
}

/// A warp reads an old value in its L1 until another warp of its SM, which waits for it, has read so much
/// that the line is evicted. Alone, each would repeat itself for ever.
#[test]
fn a_line_that_another_warp_evicts_is_waited_for() {
    let body = "mov.u32 %r3,0; setp.ne.u32 %p1,%r2,0; @%p1 bra O; setp.ge.u32 %p1,%r1,32; @%p1 bra N;
ld.global.nc.u32 %r6,[%rd1]; add.u32 %r7,%r6,1; st.volatile.global.u32 [%rd1+128],%r7;
A: ld.volatile.global.u32 %r6,[%rd1+192]; setp.eq.u32 %p2,%r6,0; @%p2 bra A;
W: mov.u32 %r3,0;
D: add.u32 %r3,%r3,1; setp.lt.u32 %p2,%r3,2000; @%p2 bra D;
ld.global.nc.u32 %r6,[%rd1]; setp.eq.u32 %p2,%r6,0; @%p2 bra W;
st.volatile.global.u32 [%rd1+64],1; bra E;
N: ld.volatile.global.u32 %r6,[%rd1+192]; setp.eq.u32 %p2,%r6,0; @%p2 bra N;
S: mov.u32 %r3,0; add.u64 %rd2,%rd1,4096;
T: ld.global.nc.u32 %r4,[%rd2]; ld.global.nc.u32 %r5,[%rd2+128]; ld.global.nc.u32 %r6,[%rd2+256];
ld.global.nc.u32 %r7,[%rd2+384]; add.u64 %rd2,%rd2,512; add.u32 %r3,%r3,1; setp.lt.u32 %p2,%r3,128; @%p2 bra T;
ld.volatile.global.u32 %r6,[%rd1+64]; setp.eq.u32 %p2,%r6,0; @%p2 bra S; bra E;
O: ld.volatile.global.u32 %r6,[%rd1+128]; setp.eq.u32 %p2,%r6,0; @%p2 bra O;
st.volatile.global.u32 [%rd1],1; membar.gl; st.volatile.global.u32 [%rd1+192],1; E:";
    ends(&manifest_of(32 << 10, 2, 64, body));
}

/// The first thread of CTA 0 counts to `turns`, then sets the flag that all others wait for.
fn slow_partner(turns: u32) -> String {
    format!(
        "or.b32 %r8,%r1,%r2; setp.ne.u32 %p1,%r8,0; @%p1 bra W;
mov.u32 %r7,0; C: add.u32 %r7,%r7,1; setp.lt.u32 %p3,%r7,{turns}; @%p3 bra C; st.volatile.global.u32 [%rd1],1;
W: ld.volatile.global.u32 %r6,[%rd1]; setp.eq.u32 %p2,%r6,0; @%p2 bra W;"
    )
}

#[test]
fn a_wait_for_a_slow_partner_is_left_alone() {
    // The partner has a warp of its own: lanes of one warp would wait for each other.
    ends(&manifest(2, 1, &slow_partner(4_000)));
}

#[test]
fn a_grid_barrier_with_room_for_all_is_left_alone_and_so_is_a_wait_for_a_time() {
    let outcome = outcome(&manifest(16, 256, GRID_BARRIER), 1);
    assert_eq!(outcome.end, End::Finished);
    ends(&manifest(2, 32, "C: mov.u32 %r6,%clock; setp.lt.u32 %p2,%r6,60000; @%p2 bra C;"));
}

#[test]
fn a_long_computation_on_a_table_is_left_alone() {
    ends(&manifest(
        2,
        32,
        "mov.u32 %r7,0; C: ld.global.u32 %r6,[%rd1]; mad.lo.u32 %r8,%r8,3,%r6; add.u32 %r7,%r7,1;
setp.lt.u32 %p3,%r7,400; @%p3 bra C;",
    ));
}

#[test]
fn ctas_that_hand_a_word_to_and_fro_are_left_alone() {
    // 256 times: CTA 0 waits for 0 and writes 1, CTA 1 waits for 1 and writes 0.
    let body = "mov.u32 %r7,0; xor.b32 %r8,%r2,1;
W: ld.volatile.global.u32 %r6,[%rd1]; setp.ne.u32 %p2,%r6,%r2; @%p2 bra W;
st.volatile.global.u32 [%rd1],%r8; add.u32 %r7,%r7,1; setp.lt.u32 %p3,%r7,256; @%p3 bra W;";
    ends(&manifest(2, 1, body));
}

#[test]
fn the_command_line_ends_with_exit_code_3_and_a_sweep_counts_a_failed_point() {
    let folder = folder("repeats/cli");
    std::fs::write(folder.join("workload.toml"), manifest(2, 32, FLAG)).unwrap();
    let run = durawarp_in(&folder, &["run", ".", "--set", "sm.count=2", "--json", "out.json"]);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(3), "{told}");
    assert!(told.contains("the run only repeats itself") && told.contains("reads 0 from byte 0 of `f`"), "{told}");
    let outcome: Outcome = serde_json::from_slice(&std::fs::read(folder.join("out.json")).unwrap()).unwrap();
    assert!(matches!(outcome.end, End::Repeats(_)), "{:?}", outcome.end);
    let asked_not_to = ["run", ".", "--set", "sm.count=2", "--repeat-cycles", "0", "--max-cycles", "300000", "-q"];
    assert_eq!(durawarp_in(&folder, &asked_not_to).status.code(), Some(0));
    let too_often = durawarp_in(&folder, &["run", ".", "--repeat-cycles", "10"]);
    assert_eq!(too_often.status.code(), Some(2), "{}", String::from_utf8_lossy(&too_often.stderr));
    let spec = "schema = 1\nname = \"s\"\nmetrics = [\"cycles\"]\n[base]\nworkload = \".\"\nset = { \"sm.count\" = 2 }\n\
                [[axis]]\nkey = \"seed\"\nvalues = [1]\n";
    std::fs::write(folder.join("sweep.toml"), spec).unwrap();
    let sweep = durawarp_in(&folder, &["sweep", "run", "sweep.toml"]);
    let told = format!("{}{}", String::from_utf8_lossy(&sweep.stdout), String::from_utf8_lossy(&sweep.stderr));
    assert_eq!(sweep.status.code(), Some(3), "{told}");
    assert!(told.contains("repeats itself for ever"), "{told}");
}
