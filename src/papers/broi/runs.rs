//! The runs that the figures need: the five programs under `epoch` and `broi`, and the hash table on more
//! cores.
//!
//! On more cores there are as many threads as harts, and as many operations for each of them: with the
//! operations of one size for all, the largest machine would have a handful a thread. Keys and buckets are
//! enough that threads seldom meet at a lock. The paper gives none of these sizes.

use crate::papers::{Request, Run};

/// The paper's micro-benchmarks, in the order of Table IV.
pub const PROGRAMS: [&str; 5] = ["hash", "rbtree", "sps", "btree", "ssca2"];
/// The paper's baseline, and its scheme.
pub const SCHEMES: [&str; 2] = ["epoch", "broi"];
/// Fig. 11.
pub const CORES: [u32; 4] = [2, 4, 8, 16];
/// The program of Fig. 11.
pub const SCALED: &str = "hash";
/// Threads of a core, Table III.
pub(crate) const HARTS: u32 = 2;

/// Operations of a thread, keys and buckets of Fig. 11.
const SCALED_SIZES: [(&str, [u32; 3]); 3] =
    [("ci", [50, 256, 1_024]), ("default", [250, 2_048, 2_048]), ("paper", [2_500, 524_288, 131_072])];

/// Thousands of instructions of a program at its profile `paper`, as its manifest tells.
pub fn work(workload: &str) -> Option<u64> {
    const ALL: [(&str, u64); 5] =
        [("hash", 120_390), ("rbtree", 166_892), ("sps", 99_415), ("btree", 196_285), ("ssca2", 143_038)];
    ALL.iter().find(|(name, _)| *name == workload).map(|(_, thousands)| *thousands)
}

/// A program under a scheme.
pub fn local(program: &'static str, scheme: &'static str) -> Run {
    Run::new(program, scheme)
}

/// The hash table on `cores` cores; without operations, what is left is the work before and after them.
pub fn scaled(request: &Request, scheme: &'static str, cores: u32, operations: bool) -> Run {
    let sizes = SCALED_SIZES.iter().find(|(profile, _)| *profile == request.profile).unwrap_or(&SCALED_SIZES[1]);
    let ([of_thread, keys, buckets], threads) = (sizes.1, cores * HARTS);
    let ops = if operations { of_thread * threads } else { 0 };
    let set = [
        format!("core.count={cores}"),
        format!("core.harts={HARTS}"),
        format!("params.THREADS={threads}"),
        format!("params.OPS={ops}"),
        format!("params.KEYS={keys}"),
        format!("params.BUCKETS={buckets}"),
    ];
    let about = if operations { format!("{cores} cores") } else { format!("{cores} cores, no operations") };
    Run::new(SCALED, scheme).with(&about, set.iter().map(String::as_str))
}

/// What needs no run.
pub(super) fn none(_: &Request) -> Vec<Run> {
    Vec::new()
}

/// Section III.
pub(super) fn motivation(request: &Request) -> Vec<Run> {
    request.kernels.iter().map(|program| local(program, SCHEMES[0])).collect()
}

/// Figures 9 and 10.
pub(super) fn throughput(request: &Request) -> Vec<Run> {
    request.kernels.iter().flat_map(|program| SCHEMES.map(|scheme| local(program, scheme))).collect()
}

/// Fig. 11; nothing where its program is not wanted.
pub(super) fn scaling(request: &Request) -> Vec<Run> {
    let of = |cores| {
        let schemes = SCHEMES.into_iter();
        schemes.flat_map(move |scheme| [true, false].map(|operations| scaled(request, scheme, cores, operations)))
    };
    if request.kernels.contains(&SCALED) { CORES.into_iter().flat_map(of).collect() } else { Vec::new() }
}
