//! AGPM's 22 kernels and where they are in our workloads.
//!
//! The paper names suites and kernels, not sizes. Each workload's manifest says how its profile `paper` was
//! found from the published counts; `note` says here why a count still differs. Work is warp instructions of
//! the plain kernels at that size, in thousands, for the order of runs and the time left.

use crate::papers::Request;

/// A kernel of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaperKernel {
    /// As the paper calls it.
    pub name: &'static str,
    /// Our workload.
    pub workload: &'static str,
    /// Its kernels in the workload.
    pub kernels: &'static [&'static str],
    /// The published counts are those of one launch of many; ours are a launch's mean.
    pub per_launch: bool,
    /// Thousands of warp instructions of the workload's profile `paper`.
    pub work: u64,
    /// Why our counts differ, where they do.
    pub note: &'static str,
}

const fn kernel(
    name: &'static str,
    workload: &'static str,
    kernels: &'static [&'static str],
    work: u64,
    note: &'static str,
) -> PaperKernel {
    PaperKernel { name, workload, kernels, per_launch: false, work, note }
}

const CUT: &str =
    "no whole run has this ratio of `all` to `log` by the rule of ATAX: the paper's may have been cut short";

/// In the order of the paper's figures.
pub const KERNELS: [PaperKernel; 22] = [
    kernel(
        "SAD1",
        "sad",
        &["sad"],
        9673,
        "more is logged than the kernel stores, it is not said what; our frames are read by bytes, not as textures",
    ),
    kernel(
        "Stencil1",
        "stencil",
        &["stencil"],
        184,
        "three accesses more a half-warp in the paper: the suite has several forms of it",
    ),
    kernel("SGEMM", "sgemm", &["sgemm"], 58_434, "K is fitted to `all`; `log` does not depend on it"),
    kernel(
        "GRID1",
        "grid_binning",
        &["binning"],
        330,
        "the launch is the transaction, as any CTA counts in any bin; samples are read word by word",
    ),
    kernel(
        "GRID2",
        "grid_reorder",
        &["reorder"],
        272,
        "samples come in random order, word by word; the paper's are nearer each other",
    ),
    kernel("2DCONV", "conv2d", &["conv2d"], 147, ""),
    kernel(
        "Backprop1",
        "backprop",
        &["layer_forward"],
        575,
        "data is written back too, which the paper's count has no room for",
    ),
    kernel("Backprop2", "backprop", &["adjust_weights"], 575, ""),
    kernel("Pathfinder", "pathfinder", &["pathfinder"], 2405, ""),
    kernel(
        "StreamTriad",
        "stream_triad",
        &["triad"],
        47,
        "a CTA: ours writes data back too (16); the paper has an access more a warp (8)",
    ),
    kernel("RA", "ra", &["random_access"], 1, "the launch is the transaction and logs the whole table"),
    kernel("ATAX1", "atax", &["atax_kernel1"], 607, ""),
    kernel("ATAX2", "atax", &["atax_kernel2"], 607, ""),
    kernel("NW", "nw", &["needle_upper", "needle_lower"], 15, "no multiple of a tile's 16 fits"),
    PaperKernel {
        per_launch: true,
        ..kernel("BFS", "bfs", &["bfs_level"], 1428, "a loop until converged keeps no undo logs: nothing is logged")
    },
    kernel(
        "SSSP1",
        "sssp",
        &["sssp_start"],
        8684,
        "the paper's graph is not stated; here the launch logs every length",
    ),
    PaperKernel {
        per_launch: true,
        ..kernel(
            "SSSP2",
            "sssp",
            &["sssp_relax"],
            8684,
            "24 accesses in each of 257 CTAs: no count of shortened paths is so even; here each round logs every length",
        )
    },
    kernel("MVT1", "mvt", &["mvt_kernel1"], 452, CUT),
    kernel("GESUMMV", "gesummv", &["gesummv"], 488, CUT),
    kernel("2MM1", "mm2", &["mm2_kernel1"], 109_969, CUT),
    kernel("3MM1", "mm3", &["mm3_kernel1"], 9322, CUT),
    kernel("GEMM", "gemm", &["gemm"], 10_461, CUT),
];

/// Their names.
pub const NAMES: [&str; KERNELS.len()] = {
    let mut names = [""; KERNELS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = KERNELS[at].name;
        at += 1;
    }
    names
};

/// The kernel of a name.
pub fn find(name: &str) -> Option<&'static PaperKernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// Work of a workload.
pub fn work(workload: &str) -> Option<u64> {
    KERNELS.iter().find(|kernel| kernel.workload == workload).map(|kernel| kernel.work)
}

/// The kernels of a request.
pub(super) fn of(request: &Request) -> impl Iterator<Item = &'static PaperKernel> {
    request.kernels.iter().filter_map(|name| find(name))
}

#[cfg(test)]
mod tests {
    use super::super::published::PUBLISHED;
    use super::*;
    use durawarp_workload::Workload;

    #[test]
    fn manifests_state_what_table_2_says_of_shared_memory_wherever_a_kernel_uses_it() {
        for kernel in KERNELS {
            let folder = format!("{}/../../workloads/{}", env!("CARGO_MANIFEST_DIR"), kernel.workload);
            let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
            let manifest = read("workload.toml");
            let ptx = read("kernel.ptx");
            for name in kernel.kernels {
                let text = ptx.split(".entry").find(|text| text.trim_start().starts_with(name)).unwrap();
                let states = |value| manifest.contains(&format!("[kernel.{name}]\ncommunicates = {value}\n"));
                let stated = [true, false].into_iter().find(|&value| states(value));
                let published = PUBLISHED.text("table2", kernel.name, "reason") == Some("h");
                let uses = text.contains(".shared.");
                assert_eq!(stated, uses.then_some(published), "{name}");
            }
        }
    }

    #[test]
    fn the_kernels_are_those_of_table_2_and_our_workloads_have_them() {
        let mut published: Vec<&str> = PUBLISHED
            .all()
            .filter(|row| row.experiment == "table2" && row.quantity == "log")
            .map(|row| row.kernel)
            .collect();
        published.sort_unstable();
        let mut ours: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        ours.sort_unstable();
        assert_eq!(ours, published);
        for kernel in KERNELS {
            let loaded = Workload::load(kernel.workload).unwrap_or_else(|faults| panic!("{faults}"));
            assert!(loaded.listing().profiles.iter().any(|profile| profile == "paper"), "{}", kernel.workload);
            assert!(!kernel.kernels.is_empty() && kernel.work > 0);
            assert_eq!(work(kernel.workload), Some(kernel.work), "kernels of a workload share its work");
        }
        assert_eq!(find("ATAX2").map(|kernel| kernel.name), Some("ATAX2"));
    }
}
