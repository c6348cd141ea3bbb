//! Makes cargo rebuild the crate when a built-in workload is added, changed or removed.

fn main() {
    println!("cargo::rerun-if-changed=../../workloads");
}
