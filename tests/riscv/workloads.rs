//! The C programs of `workloads/`: right by their own checks with any number of threads, the same line, and at
//! their size.

use durawarp::riscv::functional::{self, End, Options};

use crate::common::executable;

pub(crate) const HASH: &[u8] = include_bytes!("../../workloads/hash/hash.elf");
pub(crate) const RBTREE: &[u8] = include_bytes!("../../workloads/rbtree/rbtree.elf");
pub(crate) const BTREE: &[u8] = include_bytes!("../../workloads/btree/btree.elf");
pub(crate) const SPS: &[u8] = include_bytes!("../../workloads/sps/sps.elf");
pub(crate) const SSCA2: &[u8] = include_bytes!("../../workloads/ssca2/ssca2.elf");
const STENCIL: &[u8] = include_bytes!("../../workloads/stencil_cpu/stencil_cpu.elf");
const TREAP: &[u8] = include_bytes!("../../workloads/treap/treap.elf");
const SPIN_COUNTER: &[u8] = include_bytes!("../../workloads/spin_counter/spin_counter.elf");

#[test]
fn programs_print_the_line_that_qemu_prints_with_any_number_of_threads() {
    // Arguments are the programs' own defaults. The lines were printed by qemu-riscv64.
    for (name, bytes, line) in [
        ("hash", HASH, "hash: 300 operations, 126 items, sum 10489933986639409532\n"),
        ("rbtree", RBTREE, "rbtree: 300 operations, 126 items, sum 10489933986639409532\n"),
        ("btree", BTREE, "btree: 300 operations, 126 items, sum 10489933986639409532\n"),
        ("sps", SPS, "sps: 300 swaps, 256 elements, each there once\n"),
        (
            "ssca2",
            SSCA2,
            "ssca2: 384 edges, 9 vertices of heaviest edges, 380 vertices in subgraphs, betweenness 501\n",
        ),
        ("stencil_cpu", STENCIL, "stencil_cpu: 20 steps, energy 172804361 millionths\n"),
        ("treap", TREAP, "treap: 2000 nodes, depth 24, sum 10525211072105655627\n"),
        ("spin_counter", SPIN_COUNTER, "spin_counter: 2000\n"),
    ] {
        for threads in [1u32, 2, 4] {
            let process = executable(name, bytes, &["--threads", &threads.to_string()]);
            let options = Options { harts: threads, instructions: 50_000_000, ..Options::default() };
            let outcome = functional::run(&process, process.memory(), &options);
            let text = String::from_utf8_lossy(&outcome.stdout);
            assert_eq!((&outcome.end, &text[..]), (&End::Exited(0), line), "{name} with {threads} threads");
            assert_eq!(outcome.unsupported_calls, [], "{name}");
            println!("{name} with {threads} threads: {:?} {:?}", outcome.instructions, outcome.pm);
        }
    }
}
