//! Named machines, embedded so that an installed binary works from any folder.

/// Name and text of every built-in machine with a GPU, in the order they are listed.
pub const MACHINES: [(&str, &str); 17] = [
    ("agpm-table4", include_str!("machines/agpm-table4.toml")),
    ("titan-x", include_str!("machines/titan-x.toml")),
    ("volta-v100", include_str!("machines/volta-v100.toml")),
    ("ampere-a100", include_str!("machines/ampere-a100.toml")),
    ("ampere-3070", include_str!("machines/ampere-3070.toml")),
    ("ada-4090", include_str!("machines/ada-4090.toml")),
    ("hopper-h100", include_str!("machines/hopper-h100.toml")),
    ("hopper-h200", include_str!("machines/hopper-h200.toml")),
    ("blackwell-b200", include_str!("machines/blackwell-b200.toml")),
    ("blackwell-5090", include_str!("machines/blackwell-5090.toml")),
    ("scoped-table2", include_str!("machines/scoped-table2.toml")),
    ("lightwsp-gpu", include_str!("machines/lightwsp-gpu.toml")),
    ("lightwsp-table1", include_str!("machines/lightwsp-table1.toml")),
    ("cxl-i", include_str!("machines/cxl-i.toml")),
    ("cxl-ii", include_str!("machines/cxl-ii.toml")),
    ("cxl-iii", include_str!("machines/cxl-iii.toml")),
    ("cxl-pmem", include_str!("machines/cxl-pmem.toml")),
];

/// The same of machines of CPU cores.
pub const CPU_MACHINES: [(&str, &str); 7] = [
    ("lightwsp-cpu", include_str!("machines/lightwsp-cpu.toml")),
    ("cxl-i-cpu", include_str!("machines/cxl-i-cpu.toml")),
    ("cxl-ii-cpu", include_str!("machines/cxl-ii-cpu.toml")),
    ("cxl-iii-cpu", include_str!("machines/cxl-iii-cpu.toml")),
    ("cxl-pmem-cpu", include_str!("machines/cxl-pmem-cpu.toml")),
    ("broi-cpu", include_str!("machines/broi-cpu.toml")),
    ("broi-cluster", include_str!("machines/broi-cluster.toml")),
];

/// The machine used when none is named, for programs of GPUs.
pub const DEFAULT_MACHINE: &str = "agpm-table4";

/// The machine used when none is named, for programs of GPUs with clusters of CTAs.
pub const DEFAULT_MACHINE_OF_CLUSTERS: &str = "hopper-h100";

/// The machine used when none is named, for programs of GPUs that need tensor cores.
pub const DEFAULT_TENSOR_MACHINE: &str = "ampere-a100";

/// The machine used when none is named, for programs of GPUs with products of four warps (`wgmma`).
pub const DEFAULT_GROUP_MACHINE: &str = "hopper-h100";

/// The machine used when none is named, for programs of GPUs with tensor memory (`tcgen05`).
pub const DEFAULT_MACHINE_OF_TENSOR_MEMORY: &str = "blackwell-b200";

/// The machine used when none is named, for programs of CPUs.
pub const DEFAULT_CPU_MACHINE: &str = "lightwsp-cpu";

/// The machine used when none is named, for workloads of clients.
pub const DEFAULT_CLUSTER: &str = "broi-cluster";

/// Names of all built-in machines, in the order they are listed.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().chain(&CPU_MACHINES).map(|(name, _)| *name)
}

/// The text of a built-in machine.
pub fn find(name: &str) -> Option<&'static str> {
    MACHINES.iter().chain(&CPU_MACHINES).find(|(n, _)| *n == name).map(|(_, text)| *text)
}
