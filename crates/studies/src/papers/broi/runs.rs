//! The runs that the figures need: the five programs under `epoch` and `broi`, with clients beside them and
//! without, the hash table on more cores, and clients over the network alone.
//!
//! Clients beside a program are those of the machine (the paper's ycsb) and persist as long as it runs. All
//! runs are of the paper's machine, so that readings and changes are for all of them.
//!
//! On more cores there are as many threads as harts, and as many operations for each of them: with the
//! operations of one size for all, the largest machine would have a handful a thread. Keys and buckets are
//! enough that threads seldom meet at a lock. The paper gives none of these sizes.

use crate::papers::{Request, Run};

/// The paper's micro-benchmarks, in the order of Table IV.
pub const PROGRAMS: [&str; 5] = ["hash", "rbtree", "sps", "btree", "ssca2"];
/// The mixes of clients, in the order of Table IV.
pub const MIXES: [&str; 5] = ["tpcc_remote", "ycsb_remote", "ctree_remote", "hashmap_remote", "memcached_remote"];
/// Everything that its figures show one by one.
pub(super) const ALL: [&str; 10] = {
    let mut all = [""; 10];
    let mut at = 0;
    while at < 5 {
        (all[at], all[5 + at]) = (PROGRAMS[at], MIXES[at]);
        at += 1;
    }
    all
};
/// How clients persist: the baseline, and the paper's way.
pub const PROTOCOLS: [&str; 2] = ["sync", "bsp"];
/// The mix of Figures 4 and 13, of which what is chosen is varied: all of its transactions write.
pub const SWEPT: &str = "hashmap_remote";
/// What its clients compute, and epochs of a transaction.
pub(super) const COMPUTE_US: [u32; 3] = [1, 5, 20];
pub(super) const EPOCHS: [u32; 3] = [2, 6, 12];
/// Bytes of an epoch, Fig. 13.
pub const ELEMENTS: [u32; 6] = [128, 256, 512, 1024, 2048, 4096];
/// 4 clients, Table IV, and one alone; the paper's machine has none by itself.
const FOUR_CLIENTS: &str = "nodes.clients=4";
const ONE_CLIENT: &str = "nodes.clients=1";
/// NVRAM of which no access takes time.
const NO_NVRAM: [&str; 4] = ["nvm.t_rcd_ns=0", "nvm.t_wl_ns=0", "nvm.row_write_ns=0", "nvm.write_hit_ns=0"];
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

/// Keys and buckets of the hash table of which conflicts between threads are counted, 8 buckets a lock: 2, 32
/// and 256 locks. The paper has a share of other work's applications, of its own programs it has none.
pub(crate) const CONFLICTING: [[u32; 2]; 3] = [[64, 16], [1_024, 256], [8_192, 2_048]];
/// Its operations, by as many threads as the machine has harts.
const CONFLICTING_OPS: u32 = 400;

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

/// The same with clients that persist beside it as long as it runs.
pub fn hybrid(program: &'static str, scheme: &'static str) -> Run {
    Run::new(program, scheme).with("with clients", [FOUR_CLIENTS, "client.transactions=0"])
}

/// The same with clients that begin a transaction at its time, however many are under way, as a replayed
/// trace does. Four of them write what they write beside `hash` under `epoch` at `default` where they wait:
/// 65 % of transactions write 3 KiB, 0.6 GB/s.
pub fn open(program: &'static str, scheme: &'static str) -> Run {
    let set = [FOUR_CLIENTS, "client.transactions=0", "client.arrivals=open", "client.compute_ns=13000"];
    Run::new(program, scheme).with("with clients that do not wait", set)
}

/// Clients alone.
pub fn remote(mix: &'static str, protocol: &'static str) -> Run {
    Run::new(mix, SCHEMES[1]).with(protocol, [FOUR_CLIENTS, &format!("client.protocol={protocol}")])
}

/// Clients whose computing and epochs are not as chosen.
pub(super) fn varied(protocol: &'static str, compute_us: u32, epochs: u32) -> Run {
    let set = [format!("params.COMPUTE_NS={}", compute_us * 1000), format!("params.EPOCHS={epochs}")];
    remote(SWEPT, protocol).with(&format!("{compute_us} us, {epochs} epochs"), set.iter().map(String::as_str))
}

/// Clients with epochs of so many bytes.
pub fn sized(protocol: &'static str, bytes: u32) -> Run {
    remote(SWEPT, protocol).with(&format!("{bytes} B"), [format!("params.BYTES={bytes}").as_str()])
}

/// One client that computes nothing; the network alone, or with the server's NVRAM.
pub fn alone(protocol: &'static str, network_alone: bool) -> Run {
    let protocol_set = format!("client.protocol={protocol}");
    let set = [ONE_CLIENT, &protocol_set, "params.COMPUTE_NS=0", "params.TRANSACTIONS=10"];
    let run = Run::new(SWEPT, SCHEMES[1]).with(&format!("{protocol}, one client"), set);
    if network_alone { run.with("no NVRAM", NO_NVRAM) } else { run }
}

/// The programs that are wanted.
pub(super) fn programs(request: &Request) -> impl Iterator<Item = &'static str> + use<'_> {
    request.kernels.iter().copied().filter(|name| PROGRAMS.contains(name))
}

/// The mixes that are wanted.
pub(super) fn mixes(request: &Request) -> impl Iterator<Item = &'static str> + use<'_> {
    request.kernels.iter().copied().filter(|name| MIXES.contains(name))
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

/// The hash table with these numbers of keys and buckets, under the baseline. Without operations one thread
/// fills it and checks it, and nothing conflicts.
pub fn conflicting([keys, buckets]: [u32; 2], operations: bool) -> Run {
    let ops = if operations { CONFLICTING_OPS } else { 0 };
    let set = [("KEYS", keys), ("BUCKETS", buckets), ("OPS", ops), ("THREADS", 4 * HARTS)];
    let set = set.map(|(name, value)| format!("params.{name}={value}"));
    let about = if operations { format!("{keys} keys") } else { format!("{keys} keys, no operations") };
    Run::new(SCALED, SCHEMES[0]).with(&about, set.iter().map(String::as_str))
}

/// Section III.
pub(super) fn motivation(request: &Request) -> Vec<Run> {
    let own = programs(request).map(|program| local(program, SCHEMES[0]));
    let of = |sizes| [true, false].map(|operations| conflicting(sizes, operations));
    let sizes: Vec<Run> =
        if request.kernels.contains(&SCALED) { CONFLICTING.into_iter().flat_map(of).collect() } else { Vec::new() };
    own.chain(sizes).collect()
}

/// Figures 9 and 10.
pub(super) fn throughput(request: &Request) -> Vec<Run> {
    let of = |program| SCHEMES.into_iter().flat_map(move |scheme| [local, hybrid, open].map(|of| of(program, scheme)));
    programs(request).flat_map(of).collect()
}

/// Fig. 11; nothing where its program is not wanted.
pub(super) fn scaling(request: &Request) -> Vec<Run> {
    let of = |cores| {
        let schemes = SCHEMES.into_iter();
        schemes.flat_map(move |scheme| [true, false].map(|operations| scaled(request, scheme, cores, operations)))
    };
    if request.kernels.contains(&SCALED) { CORES.into_iter().flat_map(of).collect() } else { Vec::new() }
}

/// Fig. 4; nothing where its mix is not wanted.
pub(super) fn calibration(request: &Request) -> Vec<Run> {
    let of = |protocol| [true, false].map(|network_alone| alone(protocol, network_alone));
    if mixes(request).any(|mix| mix == SWEPT) { PROTOCOLS.into_iter().flat_map(of).collect() } else { Vec::new() }
}

/// Fig. 12, with what is chosen varied where its mix is wanted.
pub(super) fn clients(request: &Request) -> Vec<Run> {
    let of_mixes = mixes(request).flat_map(|mix| PROTOCOLS.map(|protocol| remote(mix, protocol)));
    let points = COMPUTE_US.into_iter().flat_map(|us| EPOCHS.map(|epochs| (us, epochs)));
    let varied = points.flat_map(|(us, epochs)| PROTOCOLS.map(|protocol| varied(protocol, us, epochs)));
    let varied: Vec<Run> = if mixes(request).any(|mix| mix == SWEPT) { varied.collect() } else { Vec::new() };
    of_mixes.chain(varied).collect()
}

/// Fig. 13.
pub(super) fn elements(request: &Request) -> Vec<Run> {
    let of = |bytes| PROTOCOLS.map(|protocol| sized(protocol, bytes));
    if mixes(request).any(|mix| mix == SWEPT) { ELEMENTS.into_iter().flat_map(of).collect() } else { Vec::new() }
}
