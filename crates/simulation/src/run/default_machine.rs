//! The machine that is meant where none is named, of a run and of a sweep alike: the built-in one that has
//! what the workloads need. Not modelled: how much of it they need.

use crate::config::presets::{
    DEFAULT_CLUSTER, DEFAULT_CPU_MACHINE, DEFAULT_GROUP_MACHINE, DEFAULT_MACHINE, DEFAULT_MACHINE_OF_CLUSTERS,
    DEFAULT_MACHINE_OF_TENSOR_MEMORY, DEFAULT_TENSOR_MACHINE,
};
use durawarp_workload::Workload;

/// The machine meant for all of these workloads. Of several that have a kind in common it is the one on
/// which each of them runs; where they have none, and without workloads, it is [`DEFAULT_MACHINE`].
pub(crate) fn default_machine<'a>(workloads: impl Iterator<Item = &'a Workload> + Clone) -> &'static str {
    let any = |is: fn(&Workload) -> bool| workloads.clone().any(is);
    let all = |is: fn(&Workload) -> bool| any(|_| true) && workloads.clone().all(is);
    let of_tensor_cores = |of: &Workload| of.needs_tensor_cores() || of.needs_tensor_memory();
    if all(Workload::has_clients) {
        DEFAULT_CLUSTER
    } else if all(Workload::is_of_a_cpu) {
        DEFAULT_CPU_MACHINE
    } else if all(of_tensor_cores) && any(Workload::needs_tensor_memory) {
        DEFAULT_MACHINE_OF_TENSOR_MEMORY
    } else if all(of_tensor_cores) && any(Workload::needs_warp_groups) {
        DEFAULT_GROUP_MACHINE
    } else if all(Workload::has_clusters) {
        DEFAULT_MACHINE_OF_CLUSTERS
    } else if all(of_tensor_cores) {
        DEFAULT_TENSOR_MACHINE
    } else {
        DEFAULT_MACHINE
    }
}
