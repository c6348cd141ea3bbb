//! Products with scaled blocks and copies to tensor memory (`tcgen05.mma ... .block_scale`, `tcgen05.cp`) as a data sheet:
//! what each takes and what waits for what; a kernel of Triton's `dot_scaled`, and races of copies. Values of single products
//! are looked at in `tests/kernel/scaled.rs`.

use crate::bench_machine::machine;
use crate::tensor_memory::{COMMIT, WAIT, cycles};
use crate::triton::watched;
use durawarp::kernel::functional::Limits;
use durawarp::kernel::functional::scrutiny::Scrutiny;
use durawarp::run::Experiment;
use durawarp::workload::{Choice, Workload};

/// NVFP4 by `dot_scaled`.
const PROGRAM: &str = "tests/machine/triton_blackwell_scaled_matmul";

/// Kinds, the rate of the B200's table, k, codes of the types of a and b.
const TABLE: [(&str, u64, u64, u32); 4] = [
    ("mxf8f6f4.block_scale.block32", 16384, 32, 0),
    ("mxf4.block_scale.block32", 32768, 64, 1 << 7 | 1 << 10),
    ("mxf4nvf4.block_scale.block16", 32768, 64, 1 << 7 | 1 << 10),
    ("mxf4.block_scale.block32", 32768, 96, 1 << 7 | 1 << 10 | 1 << 31),
];

/// A product of 128 rows and this number of columns. Tensor memory has zeros, and so do all scale factors.
fn product(kind: &str, types: u32, columns: u32) -> String {
    let descriptor = types | 1 << 23 | (columns / 8) << 17 | 8 << 24;
    // Rows of a k of 96 go on at an address.
    let absolute = if types >> 31 == 1 { "or.b64 %d1, %d1, 0x10000000000000;\n" } else { "" };
    format!(
        "{absolute}mov.u32 %idesc, {descriptor};\n@%first tcgen05.mma.cta_group::1.kind::{kind} [%taddr], %d1, %d1, %idesc, [%taddr], \
         [%taddr], %p1;\n"
    )
}

fn copy(shape: &str) -> String {
    format!("@%first tcgen05.cp.cta_group::1.{shape} [%taddr], %d1;\n")
}

#[test]
fn a_chain_of_products_has_the_table_s_rate_and_one_its_work_and_tail() {
    let spec = machine("blackwell-b200", "");
    for (kind, rate, k, types) in TABLE {
        let chain = |columns: u32, count: usize| {
            cycles(&spec, &format!("{}{COMMIT}{WAIT}", product(kind, types, columns).repeat(count)))
        };
        for columns in [64, 256] {
            let work = 2 * 128 * u64::from(columns) * k / rate;
            let (one, many) = (chain(columns, 1), chain(columns, 17));
            // Waits end with a round of the loop.
            let apart = many - one;
            assert!(apart.abs_diff(16 * work) <= 40, "{kind}, {columns} columns: {apart}, {}", 16 * work);
            let expected = work + 160;
            assert!((expected..expected + 120).contains(&one), "{kind}, {columns} columns: {one}, {expected}");
        }
    }
}

#[test]
fn products_and_copies_take_turns_and_an_arrival_waits_for_copies_too() {
    let spec = machine("blackwell-b200", "");
    let of = |measured: String| cycles(&spec, &measured);
    let (kind, _, _, types) = TABLE[0];
    let one = product(kind, types, 64);
    let ended = format!("{COMMIT}{WAIT}");
    // 128 bytes a cycle.
    for (shape, bytes) in [
        ("128x256b", 4096),
        ("128x128b", 2048),
        ("64x128b.warpx2::02_13", 1024),
        ("64x128b.warpx2::01_23", 1024),
        ("32x128b.warpx4", 512),
        ("4x256b", 128),
    ] {
        let count = 16 * 1024 / bytes;
        let copies = copy(shape).repeat(count as usize);
        // The thread issues an instruction a cycle, and goes on.
        assert!(of(copies.clone()) < 20 + 3 * count, "{shape}: {}", of(copies.clone()));
        let work = count * (bytes / 128);
        let alone = of(format!("{copies}{ended}"));
        let expected = work + u64::from(spec.shared.latency_cycles);
        if shape != "4x256b" {
            assert!((expected..expected + 100).contains(&alone), "{shape}: {alone}, {expected}");
            let (behind, without) = (of(format!("{copies}{one}{ended}")), of(format!("{one}{ended}")));
            assert!((behind - without).abs_diff(work) <= 60, "{shape}: {behind}, {without}, {work}");
        }
    }
}

#[test]
fn machines_without_such_products_or_copies_refuse_them_before_the_run() {
    let fault = Experiment::of(PROGRAM).machine("hopper-h100").run().unwrap_err().to_string();
    assert!(fault.contains("kernel.ptx:") && fault.contains("has tensor memory (tcgen05) here"), "{fault}");
    let fault = Experiment::of(PROGRAM)
        .machine("blackwell-b200")
        .set("tensor.group_fp4_rate", "0")
        .run()
        .unwrap_err()
        .to_string();
    assert!(fault.contains("kernel.ptx:") && fault.contains("which blackwell-b200 has not"), "{fault}");
}

#[test]
fn products_are_as_many_as_the_sizes_say() {
    let outcome = Experiment::of(PROGRAM).run().unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(outcome.machine.name, "blackwell-b200", "the machine that such kernels have without a name");
    assert_eq!(outcome.total("tensor", "tensor_products"), 256 / 64, "k in steps of 64");
}

#[test]
fn a_kernel_of_triton_that_lost_its_wait_has_races() {
    // Tiles of a later step of k lie over what products read that nobody has waited for.
    let (races, _) = watched(PROGRAM, |kernel| {
        let stays = |line: &&str| !line.contains("tcgen05.commit") && !line.contains("bra.uni waitLoop");
        kernel.lines().filter(stays).collect::<Vec<_>>().join("\n")
    });
    assert!(!races.is_empty() && races.iter().all(|race| race.contains("tcgen05.mma at ")), "{races:?}");
}

/// Races of a kernel that fills shared memory, which its first thread copies, and fills it again.
fn races(fence: &str, wait: &str) -> Vec<String> {
    let manifest = format!(
        "schema = 1\nname = \"copies\"\ndescription = \"copies\"\n[isa]\nkind = \"ptx\"\ntext = '''\n.version 8.8\n.target sm_100a\n.address_size 64\n\
         .visible .entry k(.param .u64 out) {{\n.reg .b64 %o, %d; .reg .b32 %t, %w, %x, %a; .reg .pred %q, %f, %z;\n\
         .shared .align 1024 .b8 tile[512]; .shared .align 8 .b64 done; .shared .align 4 .b32 place;\n\
         mov.u32 %t, %tid.x; setp.lt.u32 %z, %t, 32; setp.eq.u32 %f, %t, 0;\n\
         @%z tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], 32;\n\
         @%f mbarrier.init.shared.b64 [done], 1;\n\
         shl.b32 %x, %t, 2; mov.u32 %w, tile; add.u32 %x, %x, %w; st.shared.b32 [%x], %t;\n\
         {fence}bar.sync 0;\nld.shared.b32 %a, [place]; shr.u32 %w, %w, 4; cvt.u64.u32 %d, %w;\n\
         or.b64 %d, %d, 0x400800080000;\n\
         @%f tcgen05.cp.cta_group::1.32x128b.warpx4 [%a], %d;\n\
         @%f tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];\n\
         {wait}st.shared.b32 [%x], %a;\nbar.sync 0;\n@%z tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, 32;\nret;\n}}\n'''\n\
         [buffer.out]\ntype = \"u32\"\nlen = 4\n[[step]]\nkernel = \"k\"\nblock = 128\ngrid = 1\nargs = [\"&out\"]\n"
    );
    let workload = Workload::from_text(&manifest).unwrap_or_else(|faults| panic!("{faults}"));
    let resolved = workload.resolve(&Choice::default()).unwrap_or_else(|faults| panic!("{faults}"));
    let run = resolved.run_under(&Limits::default(), Scrutiny::new(true)).unwrap_or_else(|error| panic!("{error}"));
    run.scrutiny().races().unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn a_copy_needs_a_fence_between_proxies_before_it_and_a_wait_behind_it() {
    let (fence, wait) = (
        "fence.proxy.async.shared::cta;\n",
        "AGAIN: mbarrier.try_wait.parity.shared.b64 %q, [done], 0;\n@!%q bra AGAIN;\n",
    );
    assert_eq!(races(fence, wait), Vec::<String>::new());
    let without = races("", wait);
    let across =
        |race: &String| race.contains(" and tcgen05.cp at ") && race.contains("without a `fence.proxy.async` between");
    assert!(!without.is_empty() && without.iter().all(across), "{without:?}");
    let hasty = races(fence, "");
    // Other warps store without having tested the barrier, which is no order.
    let over = |race: &String| race.contains("without a wait for the end of the first");
    assert!(hasty.iter().any(over) && hasty.iter().all(|race| race.contains("tcgen05.cp at ")), "{hasty:?}");
}
