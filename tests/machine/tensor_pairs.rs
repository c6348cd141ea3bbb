//! Pairs of CTAs in tensor memory (`tcgen05` with `.cta_group::2`) as a data sheet: what a product takes of both SMs, when
//! the peers hear of its end, who waits for columns of both; a kernel of two pairs that share tiles, and one with scaled
//! blocks. Values of single products are looked at in `tests/kernel/tcgen05_pair.rs` and `tests/kernel/scaled.rs`.

use crate::bench_machine::{Bench, SETTLE, machine};
use crate::same_results::{check, threads};
use crate::streams::{assert_goes_on, assert_same_events};
use crate::triton::watched;
use durawarp::crash::CrashRequest;
use durawarp::engine::{Placement, RunEnd, RunOptions};
use durawarp::kernel::functional::Limits;
use durawarp::kernel::functional::scrutiny::Scrutiny;
use durawarp::kernel::memory::Medium;
use durawarp::machine::MachineSpec;
use durawarp::oracle::allowed::Budget;
use durawarp::oracle::crash::Plan;
use durawarp::run::Experiment;
use durawarp::workload::{Choice, Workload};

const PROGRAM: &str = "tests/machine/pair_matmul";
/// MXFP8, whose scale factors are copied over those of products before.
const SCALED: &str = "tests/machine/pair_scaled_matmul";
pub(crate) const PROGRAMS: [&str; 2] = [PROGRAM, SCALED];

/// The B200 with this number of SMs, all of one GPC.
fn with_sms(sms: u32) -> MachineSpec {
    machine("blackwell-b200", &format!("sm.count={sms} sm.gpcs=1"))
}

/// Declares descriptors of two tiles of zeros, a barrier, and columns of tensor memory of both CTAs.
fn memory(columns: u32) -> String {
    format!(
        ".shared .align 1024 .b8 tile[32768];\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 place;\n\
         .reg .b32 %taddr, %idesc, %rank;\n.reg .pred %warp0, %first, %leads;\n\
         mov.u32 %rank, %cluster_ctarank;\nmov.u32 %r1, tile;\nshr.u32 %r1, %r1, 4;\nand.b32 %r1, %r1, 16383;\n\
         cvt.u64.u32 %d1, %r1;\nor.b64 %d1, %d1, 0x4000404000010000;\n\
         setp.lt.u32 %warp0, %tid, 32;\nsetp.eq.u32 %first, %tid, 0;\nsetp.ge.u32 %p1, %tid, 0;\n\
         setp.eq.u32 %leads, %rank, 0;\nand.pred %leads, %leads, %first;\n\
         @%warp0 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], {columns};\n\
         @%first mbarrier.init.shared.b64 [done], 1;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n\
         ld.shared.b32 %taddr, [place];\n"
    )
}

fn free(columns: u32) -> String {
    format!(
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\n\
         @%warp0 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %taddr, {columns};\n"
    )
}

/// A product of this number of rows in all, and columns.
fn product(kind: &str, rows: u32, columns: u32) -> String {
    let types = match kind {
        "f16" => 1 << 4,
        "tf32" => 1 << 4 | 2 << 7 | 2 << 10,
        "f8f6f4" => 1 << 4,
        _ => 2 << 4 | 1 << 7 | 1 << 10,
    };
    let descriptor = types | (columns / 8) << 17 | (rows / 16) << 24;
    format!(
        "mov.u32 %idesc, {descriptor};\n@%leads tcgen05.mma.cta_group::2.kind::{kind} [%taddr], %d1, %d1, %idesc, %p1;\n"
    )
}

/// A product of 256 rows with scaled blocks, whose factors are zeros; codes of the types of a and b.
fn scaled(kind: &str, types: u32, columns: u32) -> String {
    let descriptor = types | 1 << 23 | (columns / 8) << 17 | 16 << 24;
    format!(
        "mov.u32 %idesc, {descriptor};\n@%leads tcgen05.mma.cta_group::2.kind::{kind} [%taddr], %d1, %d1, %idesc, [%taddr], \
         [%taddr], %p1;\n"
    )
}

/// A copy of 4096 bytes in each CTA.
const COPY: &str = "@%leads tcgen05.cp.cta_group::2.128x256b [%taddr], %d1;\n";

/// An arrival in the CTAs of a mask.
fn commit(mask: u32) -> String {
    format!(
        "mov.u32 %r2, done;\nmov.b32 %r3, {mask};\n@%leads \
         tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r2], %r3;\n"
    )
}

const WAIT: &str = "AGAIN: mbarrier.try_wait.parity.shared.b64 %p3, [done], 0;\n@!%p3 bra AGAIN;\n";

/// Cycles of `measured` in the even CTA of a pair and in the odd one.
fn cycles(measured: &str) -> [u64; 2] {
    let mut bench = Bench::new(with_sms(8));
    let out = bench.buffer(64, Medium::Dram);
    let body = format!(
        "{}{SETTLE}barrier.cluster.arrive;\nbarrier.cluster.wait;\nmov.u64 %d60, %clock64;\n{measured}\
         mov.u64 %d61, %clock64;\nsub.s64 %d62, %d61, %d60;\nmul.wide.u32 %d2, %rank, 8;\nadd.u64 %d2, %out, %d2;\n\
         @%first st.global.u64 [%d2], %d62;\n{}",
        memory(256),
        free(256)
    );
    bench.launch(&body, 2, 128, (out, 0, 0, 3)).with_directives(".reqnctapercluster 2");
    bench.run().u64s(out, 2).try_into().unwrap()
}

/// Kinds, the rate of the B200's table for an SM, k.
const TABLE: [(&str, u64, u64); 4] = [("f16", 8192, 16), ("tf32", 4096, 8), ("f8f6f4", 16384, 32), ("i8", 16384, 32)];

#[test]
fn a_chain_of_products_has_twice_the_table_s_rate_and_the_odd_cta_hears_a_link_later() {
    let link = u64::from(with_sms(8).shared.cluster_cycles);
    for (kind, rate, k) in TABLE {
        for rows in [128u32, 256] {
            let chain =
                |count: usize| cycles(&format!("{}{}{WAIT}", product(kind, rows, 256).repeat(count), commit(3)));
            // Both SMs together have twice the rate.
            let work = 2 * u64::from(rows) * 256 * k / (2 * rate);
            let ([one, there], [many, _]) = (chain(1), chain(65));
            assert!((many - one).abs_diff(64 * work) <= 64, "{kind}, {rows} rows: {}, {}", many - one, 64 * work);
            // The answer of the peer has come before the end of work and tail, or is waited for.
            let expected = (work + 160).max(2 * link);
            assert!((expected..expected + 120).contains(&one), "{kind}, {rows} rows: {one}, {expected}");
            assert!(there.abs_diff(one + link) < 40, "{kind}, {rows} rows: {there}, {one}");
        }
    }
}

#[test]
fn scaled_blocks_have_twice_the_table_s_rate_and_copies_of_both_sms_take_turns_with_them() {
    let chain = |of: String| cycles(&format!("{of}{}{WAIT}", commit(3)));
    let link = u64::from(with_sms(8).shared.cluster_cycles);
    let packed = 1 << 7 | 1 << 10;
    for (kind, rate, k, types) in [
        ("mxf8f6f4.block_scale.block32", 16384, 32, 0),
        ("mxf4.block_scale.block32", 32768, 64, packed),
        ("mxf4nvf4.block_scale.block16", 32768, 64, packed),
    ] {
        let of = |count: usize| chain(scaled(kind, types, 256).repeat(count));
        let work = 2 * 256 * 256 * k / (2 * rate);
        let ([one, there], [many, _]) = (of(1), of(65));
        assert!((many - one).abs_diff(64 * work) <= 64, "{kind}: {}, {}", many - one, 64 * work);
        assert!(there.abs_diff(one + link) < 40, "{kind}: {there}, {one}");
    }
    // 128 bytes a cycle of each SM.
    let ([one, there], [some, _], [many, _]) = (chain(COPY.to_owned()), chain(COPY.repeat(17)), chain(COPY.repeat(65)));
    // A few are done before the peer's answer is here.
    assert!((many - some).abs_diff(48 * 4096 / 128) <= 64, "{some}, {many}");
    assert!(there.abs_diff(one + link) < 40, "{there}, {one}");
    let expected = (4096 / 128 + u64::from(with_sms(8).shared.latency_cycles)).max(2 * link);
    assert!((expected..expected + 120).contains(&one), "{one}, {expected}");
    let products = product("f16", 256, 256).repeat(16);
    let ([behind, _], [without, _]) = (chain(format!("{}{products}", COPY.repeat(16))), chain(products));
    assert!((behind - without).abs_diff(16 * 4096 / 128) <= 60, "{behind}, {without}");
}

#[test]
fn the_thread_goes_on_and_nobody_waits_who_does_not_ask() {
    let products = product("f16", 256, 256).repeat(8);
    assert!(cycles(&products).iter().all(|&cycles| cycles < 100));
    assert!(cycles(&format!("{products}{}", commit(3)))[0] < 160);
    // Only the even CTA is told.
    let told = format!("{products}{}@!%leads bra OVER;\n{WAIT}OVER:\n", commit(1));
    let [waits, other] = cycles(&told);
    assert!(waits >= 8 * 128 + 160 && other < 100, "{waits}, {other}");
}

/// Pairs on two SMs that each take columns for some products, which of every other pair the odd CTA begins: it lies on
/// the other SM.
fn pairs(columns: u32, pairs: u32, work: &str) -> Bench {
    let mut bench = Bench::new(with_sms(2));
    let out = bench.buffer(4096, Medium::Dram);
    let body = format!(
        "{}mov.u32 %r5, %clusterid.x;\nand.b32 %r5, %r5, 1;\nsetp.eq.u32 %leads, %rank, %r5;\n\
         and.pred %leads, %leads, %first;\n{}{}{WAIT}mul.wide.u32 %d2, %cta, 4;\nadd.u64 %d2, %out, %d2;\nadd.u32 %r4, %taddr, 7;\n{}\
         @%first st.global.u32 [%d2], %r4;\n",
        memory(columns),
        work,
        commit(3),
        free(columns)
    );
    bench.launch(&body, 2 * pairs, 128, (out, 0, 0, 0)).with_directives(".reqnctapercluster 2");
    bench
}

#[test]
fn products_of_a_pair_occupy_the_tensor_cores_of_both_sms() {
    let end = |count: u32, work: &str| pairs(256, count, work).run().assembly.command_processor().ended().unwrap();
    let base = end(1, "");
    for work in [product("f16", 256, 256).repeat(48), COPY.repeat(192)] {
        let (one, two) = (end(1, &work), end(2, &work));
        let (alone, together) = (one - base, two - base);
        // Two pairs on the same two SMs, of which each lies on both, take turns.
        assert!(together > 2 * alone * 9 / 10 && together < 2 * alone * 11 / 10, "{base}, {one}, {two}");
    }
}

#[test]
fn pairs_wait_for_columns_of_both_sms_and_none_for_one_that_waits_for_it() {
    let end = |columns: u32, count: u32| {
        let ran = pairs(columns, count, &product("f16", 256, columns.min(256)).repeat(8)).run();
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{:?}", ran.end);
        ran.assembly.command_processor().ended().unwrap()
    };
    let alone = end(512, 1);
    let in_turn = end(512, 4);
    assert!(in_turn > 2 * alone, "one after another: {in_turn}, {alone}");
}

#[test]
fn pairs_are_the_same_at_any_number_of_threads_and_from_a_checkpoint() {
    let work = format!("{}{COPY}{}", product("f16", 256, 256), scaled("mxf8f6f4.block_scale", 0, 256)).repeat(2);
    let bench = pairs(256, 3, &work);
    assert_same_events("pairs", &bench);
    // Words of columns, products and arrivals are under way in some of these.
    assert_goes_on(&bench, (700..4500).step_by(290));
}

#[test]
fn an_arrival_comes_to_a_barrier_of_another_cta_with_and_without_a_mask() {
    for (group, arrival) in [
        (
            1,
            "mapa.shared::cluster.u32 %r2, %r1, 1;\n@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r2];\n",
        ),
        (
            2,
            "mapa.shared::cluster.u32 %r2, %r1, 1;\n@%p1 tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.b64 [%r2];\n",
        ),
        (
            1,
            "mov.b32 %r2, 2;\n@%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r1], %r2;\n",
        ),
    ] {
        let mut bench = Bench::new(with_sms(8));
        let out = bench.buffer(64, Medium::Dram);
        // A product before it, or none.
        for products in [0, 1] {
            let product = product("f16", if group == 2 { 256 } else { 128 }, 64).repeat(products);
            let memory = memory(64).replace("cta_group::2", &format!("cta_group::{group}"));
            let free = free(64).replace("cta_group::2", &format!("cta_group::{group}"));
            let body = format!(
                "{memory}{}mov.u32 %r1, done;\nsetp.eq.u32 %p1, %id, 0;\n{arrival}setp.eq.u32 %p2, %rank, 0;\n\
                 @%p2 bra OVER;\n{WAIT}mov.u32 %r5, 9;\n@%first st.global.u32 [%out], %r5;\nOVER:\n{free}",
                product.replace("cta_group::2", &format!("cta_group::{group}"))
            );
            bench.launch(&body, 2, 128, (out, 0, 0, 0)).with_directives(".reqnctapercluster 2");
        }
        let ran = bench.run();
        assert!(matches!(ran.end, RunEnd::Finished { .. }), "{arrival}: {:?}", ran.end);
        assert_eq!(ran.u64s(out, 1)[0] as u32, 9);
    }
}

#[test]
fn who_waits_for_columns_that_the_peer_does_not_ask_for_is_told() {
    let mut bench = Bench::new(with_sms(8));
    let out = bench.buffer(64, Medium::Dram);
    let body = ".shared .align 4 .b32 place;\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p1, %r1, 1;\n\
                @%p1 bra OVER;\ntcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 64;\nOVER:\n";
    bench.launch(body, 2, 32, (out, 0, 0, 0)).with_directives(".reqnctapercluster 2");
    let ran = bench.run_with(&RunOptions::default());
    let RunEnd::Deadlock { waits, .. } = &ran.end else { panic!("{:?}", ran.end) };
    let told = format!("{waits:?}");
    assert!(told.contains("64 columns of tensor memory in both CTAs of a pair, of which 512 are free here"), "{told}");
}

#[test]
fn two_pairs_that_share_tiles_have_the_values_of_their_manifest_and_bits_of_one_thread() {
    check("blackwell-b200", PROGRAM, &[threads(2, Placement::Shuffled(3)), threads(8, Placement::RoundRobin)]);
}

#[test]
fn a_pair_with_scaled_blocks_has_the_values_of_its_manifest_and_bits_of_one_thread() {
    check("blackwell-b200", SCALED, &[threads(2, Placement::Shuffled(3)), threads(8, Placement::RoundRobin)]);
}

#[test]
fn over_a_long_link_an_arrival_waits_for_the_peer_s_part() {
    // There and back it takes longer than a product and its tail.
    for program in PROGRAMS {
        let outcome = Experiment::of(program).machine("blackwell-b200").set("shared.cluster_cycles", 700).run();
        let outcome = outcome.unwrap_or_else(|faults| panic!("{faults}"));
        let passed = outcome.verification.as_ref().is_some_and(|check| check.passed);
        assert!(passed, "values of a product are there when its arrival is: {:?}", outcome.verification);
    }
}

#[test]
fn products_are_as_many_as_the_sizes_say() {
    let outcome = Experiment::of(PROGRAM).run().unwrap_or_else(|faults| panic!("{faults}"));
    // Two tiles of 256 rows and 128 columns; k in steps of 16.
    assert_eq!(outcome.total("tensor", "tensor_products"), 2 * 192 / 16);
    let outcome = Experiment::of(SCALED).run().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.total("tensor", "tensor_products"), 384 / 32);
}

#[test]
fn a_machine_without_such_copies_refuses_those_of_pairs_before_the_run() {
    let fault = Experiment::of(SCALED).machine("blackwell-b200").set("tensor.memory_copy_bytes", 0).run();
    let fault = fault.unwrap_err().to_string();
    assert!(fault.contains("kernel.ptx:") && fault.contains("which blackwell-b200 has not"), "{fault}");
}

#[test]
fn the_kernel_has_no_races_and_one_that_frees_a_stage_too_early_has_some() {
    assert_eq!(watched(PROGRAM, |kernel| kernel), (Vec::new(), 0));
    // The stage is free before the products have begun: copies of either pair write over what they read.
    let (races, _) = watched(PROGRAM, |kernel| {
        let frees = kernel.lines().find(|line| line.contains("tcgen05.commit") && line.contains("%h2")).unwrap();
        kernel.replace(frees, "").replacen("\ttcgen05.mma", &format!("{frees}\n\ttcgen05.mma"), 1)
    });
    let over = |race: &String| {
        race.contains("tcgen05.mma.cta_group::2 at ")
            && race.contains("and bulk copy at")
            && race.contains("without a wait for the end of the first")
    };
    assert!(!races.is_empty() && races.iter().all(over), "{races:?}");
    // The same of copies to tensor memory, and without products.
    assert_eq!(watched(SCALED, |kernel| kernel), (Vec::new(), 0));
    let (races, _) = watched(SCALED, |kernel| {
        let frees = kernel.lines().find(|line| line.contains("tcgen05.commit")).unwrap();
        kernel.replacen(&format!("{frees}\n"), "", 1).replacen("\ttcgen05.cp", &format!("{frees}\n\ttcgen05.cp"), 1)
    });
    let of_copy = |race: &String| race.contains("tcgen05.cp.cta_group::2 at ");
    assert!(races.iter().any(of_copy) && races.iter().all(|race| race.contains("and bulk copy at")), "{races:?}");
}

/// A pair whose CTAs fill a tile each by plain stores, behind which one of them begins a product of both.
const STORES: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n\
    .visible .entry k() .reqnctapercluster 2 {\n.reg .b32 r<8>, taddr, rank, t;\n.reg .b64 d;\n.reg .pred first, leads, p;\n\
    .shared .align 1024 .b8 tile[16384];\n.shared .align 8 .b64 done;\n.shared .align 4 .b32 place;\n\
    mov.u32 rank, %cluster_ctarank;\nmov.u32 t, %tid.x;\nsetp.eq.u32 first, t, 0;\nsetp.eq.u32 leads, rank, 0;\n\
    and.pred leads, leads, first;\n@first mbarrier.init.shared.b64 [done], 1;\n\
    tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 32;\n\
    mov.u32 r0, tile;\nshl.b32 r1, t, 2;\nadd.u32 r1, r1, r0;\nmov.u32 r2, 0;\n\
    FILL: st.shared.b32 [r1], r2;\nadd.u32 r1, r1, 128;\nadd.u32 r2, r2, 1;\nsetp.lt.u32 p, r2, 128;\n@p bra FILL;\n\
    FENCE\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nld.shared.b32 taddr, [place];\n\
    shr.u32 r3, r0, 4;\nand.b32 r3, r3, 16383;\ncvt.u64.u32 d, r3;\nor.b64 d, d, 0x4000404000010000;\n\
    mov.u32 r4, 0x10080010;\nsetp.ne.u32 p, t, t;\n\
    @leads tcgen05.mma.cta_group::2.kind::f16 [taddr], d, d, r4, p;\nmov.u32 r5, done;\nmov.b32 r6, 3;\n\
    @leads tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [r5], r6;\n\
    WAIT: mbarrier.try_wait.parity.shared.b64 p, [done], 0;\n@!p bra WAIT;\nst.shared.b32 [r0], r2;\n\
    barrier.cluster.arrive;\nbarrier.cluster.wait;\n\
    tcgen05.dealloc.cta_group::2.sync.aligned.b32 taddr, 32;\nret;\n}";

#[test]
fn a_product_reads_the_peer_s_memory_behind_its_fence_and_the_peer_s_stores_come_behind_the_product() {
    let races = |change: &dyn Fn(String) -> String| {
        let text = change(STORES.to_owned());
        let manifest = format!(
            "schema = 1\nname = \"k\"\ndescription = \"a pair\"\n[isa]\nkind = \"ptx\"\ntext = \'\'\'\n{text}\n\'\'\'\n\
             [buffer.out]\ntype = \"u32\"\nlen = 1\nrole = \"output\"\n\
             [[step]]\nkernel = \"k\"\ngrid = 2\nblock = 32\nargs = []\n"
        );
        let workload = Workload::from_text(&manifest).unwrap_or_else(|faults| panic!("{faults}"));
        let resolved = workload.resolve(&Choice::default()).unwrap_or_else(|faults| panic!("{faults}"));
        let run = resolved.run_under(&Limits::default(), Scrutiny::new(true)).unwrap_or_else(|error| panic!("{error}"));
        run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let fenced = |text: String| text.replace("FENCE", "fence.proxy.async;");
    assert_eq!(races(&fenced), Vec::<String>::new());
    // The odd CTA has no fence: what it stored is read by the product of the even one.
    let even = |text: String| text.replace("FENCE", "setp.eq.u32 p, rank, 1;\n@p bra NONE;\nfence.proxy.async;\nNONE:");
    let found = races(&even);
    let across = |race: &String| {
        race.contains("by warp 0 of CTA (1,0,0) and tcgen05.mma")
            && race.contains("without a `fence.proxy.async` between")
    };
    assert!(!found.is_empty() && found.iter().all(across), "{found:?}");
    // A copy to tensor memory is ordered as the product is.
    let copies = |text: String| {
        let product = "@leads tcgen05.mma.cta_group::2.kind::f16 [taddr], d, d, r4, p;";
        assert!(text.contains(product));
        text.replace(product, "@leads tcgen05.cp.cta_group::2.128x128b [taddr], d;")
    };
    assert_eq!(races(&|text| copies(fenced(text))), Vec::<String>::new());
    let found = races(&|text| copies(even(text)));
    let across = |race: &String| {
        race.contains("by warp 0 of CTA (1,0,0) and tcgen05.cp.cta_group::2")
            && race.contains("without a `fence.proxy.async` between")
    };
    assert!(!found.is_empty() && found.iter().all(across), "{found:?}");
    // Nobody waits for the product: the odd CTA stores over what it reads.
    let found = races(&|text: String| {
        let stays = |line: &&str| !line.contains("[done], 0") && !line.contains("bra WAIT");
        let text = fenced(text).lines().filter(stays).collect::<Vec<_>>().join("\n");
        text.replace("st.shared.b32 [r0], r2;", "setp.eq.u32 p, rank, 1;\n@p st.shared.b32 [r0], r2;")
    });
    let over = |cta: &str| found.iter().any(|race| race.contains("tcgen05.mma") && race.contains(cta));
    assert!(over("of CTA (1,0,0), without a wait for the end of the first"), "{found:?}");
}

#[test]
fn a_result_in_persistent_memory_survives_power_failures() {
    let recipe = Experiment::of(PROGRAM).machine("blackwell-b200").scheme("strict");
    let recipe = recipe.param("K", 64);
    // A share of what may be judged, as each state has all of C.
    let allowed = Some(Budget { instants: 20, boundaries: 60, product: 64, random: 16, ..Budget::default() });
    let request = CrashRequest { plan: Plan::Count(150), allowed, overtaking: 200, ..CrashRequest::default() };
    let report = recipe.crash(&request).unwrap_or_else(|faults| panic!("{faults}"));
    assert!(report.holds(), "{report:?}");
}

#[test]
fn a_kernel_of_pairs_without_pairs_is_refused() {
    let manifest = std::fs::read_to_string(format!("{PROGRAM}/workload.toml")).unwrap();
    let kernel = std::fs::read_to_string(format!("{PROGRAM}/kernel.ptx")).unwrap();
    let alone = manifest.replace("cluster = [2, 2, 1]\n", "");
    let alone = alone.replace("file = \"kernel.ptx\"", &format!("text = '''\n{kernel}'''"));
    let workload = Workload::from_text(&alone).unwrap_or_else(|faults| panic!("{faults}"));
    let fault = match workload.resolve(&Choice::default()) {
        Err(faults) => faults.to_string(),
        Ok(resolved) => match resolved.run_under(&Limits::default(), Scrutiny::new(false)) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("it is refused"),
        },
    };
    assert!(fault.contains("(`.cta_group::2`), and clusters of 1"), "{fault}");
}
