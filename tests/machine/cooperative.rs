//! Cooperative launches: CTAs that meet at `grid.sync()`, in a workspace whose address is in `%envreg1` and
//! `%envreg2`; grids that are not resident at once; a fence of one thread for all of its CTA.

use crate::bench_machine::{Bench, one_gigahertz};
use durawarp::Experiment;
use durawarp::determinism::{Way, compare_all, run_one};
use durawarp::kernel::memory::Medium;
use durawarp::outcome::End;
use durawarp::run::{AnyExperiment, Recipe};
use tempfile::TempDir;

/// Steps of a sum of neighbours in a ring: `a` and `b` take turns, and the grid meets between two steps. The
/// barrier is that of CUDA's headers (CCCL, `cuda/experimental/__hierarchy`), written by hand.
const RING: &str = ".version 8.0
.target sm_70
.address_size 64
.visible .entry ring(.param .u64 a, .param .u64 b, .param .u32 steps)
{
.reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .pred %p<12>;
ld.param.u64 %rd1, [a];
ld.param.u64 %rd2, [b];
ld.param.u32 %r30, [steps];
mov.u32 %r1, %ntid.x;
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
mov.u32 %r5, %nctaid.x;
mul.lo.s32 %r6, %r1, %r5;
add.s32 %r7, %r4, 1;
rem.u32 %r7, %r7, %r6;
add.s32 %r8, %r4, %r6;
sub.s32 %r8, %r8, 1;
rem.u32 %r8, %r8, %r6;
WORKSPACE
setp.ne.s64 %p1, %rd5, 0;
@%p1 bra $there;
trap;
$there:
mul.wide.u32 %rd6, %r4, 4;
mul.wide.u32 %rd7, %r7, 4;
mul.wide.u32 %rd8, %r8, 4;
$step:
add.s64 %rd10, %rd1, %rd7;
add.s64 %rd11, %rd1, %rd8;
ld.global.u32 %r10, [%rd10];
ld.global.u32 %r11, [%rd11];
add.s32 %r12, %r10, %r11;
add.s64 %rd12, %rd2, %rd6;
st.global.u32 [%rd12], %r12;
barrier.sync 0;
or.b32 %r13, %r3, 0;
setp.ne.s32 %p2, %r13, 0;
@%p2 bra $met;
sub.s32 %r14, -2147483647, %r5;
setp.eq.s32 %p3, %r2, 0;
selp.b32 %r15, %r14, 1, %p3;
add.s64 %rd13, %rd5, 4;
fence.acq_rel.gpu;
atom.add.release.gpu.u32 %r16, [%rd13], %r15;
$wait:
ld.acquire.gpu.u32 %r17, [%rd13];
xor.b32 %r18, %r17, %r16;
setp.gt.s32 %p4, %r18, -1;
@%p4 bra $wait;
$met:
barrier.sync 0;
mov.u64 %rd20, %rd1;
mov.u64 %rd1, %rd2;
mov.u64 %rd2, %rd20;
sub.s32 %r30, %r30, 1;
setp.ne.s32 %p5, %r30, 0;
@%p5 bra $step;
ret;
}
";

/// The address of the workspace, as compilers read it: by halves, and as a vector.
const ADDRESSES: [&str; 2] = [
    "mov.u32 %r20, %envreg2;\nmov.u32 %r21, %envreg1;\ncvt.u64.u32 %rd3, %r20;\ncvt.u64.u32 %rd4, %r21;\n\
     bfi.b64 %rd5, %rd4, %rd3, 32, 32;",
    "mov.b64 %rd5, {%envreg2, %envreg1};",
];

const THREADS: u32 = 64;

/// A program of two launches with this many CTAs, each of which makes this many steps.
///
/// With three steps the first launch leaves two sums of neighbours in `a`. The second launch begins with them and
/// leaves five in `b`: a row of binomial coefficients.
fn ring(address: &str, ctas: u32, steps: u32) -> (TempDir, Recipe) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kernel.ptx"), RING.replace("WORKSPACE", address)).unwrap();
    let step = format!(
        "[[step]]\nkernel = \"ring\"\nblock = {THREADS}\ngrid = {ctas}\nargs = [\"&a\", \"&b\", \"{steps}\"]\n"
    );
    let all = THREADS * ctas;
    let term = |(from, times): (u32, u32)| format!("{times} * initial(a[(idx + {all} - 5 + {from}) % {all}])");
    let sum = [(0, 1), (2, 5), (4, 10), (6, 10), (8, 5), (10, 1)].map(term).join(" + ");
    let arithmetic = match steps {
        3 => format!("[[verify]]\nbuffer = \"b\"\nref = {{ kind = \"expr\", expr = \"{sum}\" }}\n"),
        _ => String::new(),
    };
    let manifest = format!(
        "schema = 1\nname = \"ring\"\ndescription = \"sums of neighbours\"\n[isa]\nkind = \"ptx\"\nfile = \"kernel.ptx\"\n\
         [buffer.a]\ntype = \"u32\"\nlen = {all}\ninit = {{ kind = \"expr\", expr = \"idx * idx\" }}\n\
         [buffer.b]\ntype = \"u32\"\nlen = {all}\n{step}{step}{arithmetic}\
         [[verify]]\nref = {{ kind = \"functional\" }}\nbuffers = [\"a\", \"b\"]\n"
    );
    std::fs::write(folder.path().join("workload.toml"), manifest).unwrap();
    let recipe = Experiment::of(folder.path().display().to_string());
    (folder, recipe)
}

#[test]
fn ctas_that_meet_at_grid_sync_see_what_all_others_stored() {
    for machine in ["titan-x", "volta-v100", "hopper-h100"] {
        for address in ADDRESSES {
            let (_folder, recipe) = ring(address, 24, 3);
            let outcome = super::traces::run(recipe.machine(machine));
            assert_eq!(outcome.end, End::Finished, "{machine}");
            let check = outcome.verification.as_ref().unwrap();
            assert!(check.passed, "{machine}: {:?}", check.failures);
        }
    }
}

#[test]
fn cooperative_launches_are_the_same_at_every_number_of_threads() {
    let (_folder, recipe) = ring(ADDRESSES[1], 24, 4);
    let experiment = AnyExperiment::from(recipe.machine("titan-x").build().unwrap());
    let reference = run_one(&experiment, &Way::REFERENCE, 1000, None);
    let ways: Vec<Way> = [2, 8].into_iter().flat_map(|threads| Way::at(threads).into_iter().take(2)).collect();
    for compared in compare_all(&experiment, &reference, &ways, 1000, None, |_| {}) {
        assert_eq!(compared.difference, None, "{}", compared.way);
    }
}

#[test]
fn a_grid_that_is_not_resident_at_once_is_refused_and_one_that_just_is_runs() {
    // 32 CTAs on an SM.
    let on_two = |ctas| {
        let (_folder, recipe) = ring(ADDRESSES[0], ctas, 1);
        super::traces::run(recipe.machine("titan-x").set("sm.count", 2)).end
    };
    assert_eq!(on_two(64), End::Finished);
    let told = format!("{:?}", on_two(65));
    let expected =
        "kernel `ring` has a `grid.sync()` and 65 CTAs, of which 64 are resident at once (2 SMs with 32 each";
    assert!(told.contains(expected), "{told}");
}

/// CTA 0 waits for the number that CTA 1 stores.
const LATER: &str = "setp.ne.u32 %p1, %cta, 0;
@%p1 bra STORES;
AGAIN:
ld.volatile.global.u32 %r1, [%a];
setp.eq.u32 %p2, %r1, 0;
@%p2 bra AGAIN;
st.global.u32 [%out], %r1;
bra DONE;
STORES:
mov.u32 %r1, 7;
st.volatile.global.u32 [%a], %r1;
DONE:";

#[test]
fn a_cta_that_waits_for_a_later_one_does_not_repeat_itself_for_ever() {
    let mut bench = Bench::new(one_gigahertz(""));
    let (out, a) = (bench.buffer(4, Medium::Dram), bench.buffer(4, Medium::Dram));
    bench.launch(LATER, 2, 1, (out, a, 0, 0));
    let ran = bench.run();
    assert_eq!(ran.u32s(out, 1), [7]);
    assert!(ran.memory == bench.functional());
}

/// Of two warps the second stores 64 lines; both meet at a barrier, or at none, and then the first fences and stores
/// how long that took.
const FENCE_BEHIND: &str = "setp.lt.u32 %p1, %tid, 32;
@%p1 bra STORED;
mov.u32 %r1, 0;
mul.wide.u32 %d1, %tid, 4;
add.s64 %d1, %d1, %a;
MORE:
st.global.u32 [%d1], %r1;
add.s64 %d1, %d1, 128;
add.u32 %r1, %r1, 1;
setp.lt.u32 %p2, %r1, 64;
@%p2 bra MORE;
STORED:
MEET
setp.ne.u32 %p1, %tid, 0;
@%p1 bra DONE;
mov.u32 %r2, %clock;
membar.gl;
mov.u32 %r3, %clock;
sub.u32 %r3, %r3, %r2;
st.global.u32 [%out], %r3;
DONE:";

#[test]
fn a_fence_waits_for_what_others_stored_before_a_barrier_of_its_cta_and_for_nothing_else() {
    let cycles = |meet: &str| {
        let mut bench = Bench::new(one_gigahertz(""));
        let (out, a) = (bench.buffer(4, Medium::Dram), bench.buffer(128 * 128, Medium::Dram));
        bench.launch(&FENCE_BEHIND.replace("MEET", meet), 1, 64, (out, a, 0, 0));
        bench.run().u32s(out, 1)[0]
    };
    // Behind the barrier the last stores have just left: a way to the L2 and back.
    let [behind, beside] = [cycles("bar.sync 0;"), cycles("")];
    assert!(behind > 60 && beside < 20, "{behind} cycles behind the barrier, {beside} without one");
}
