//! Every scheme by name, with its parameters. The command line, sweeps and the contract tests iterate over
//! this list.

use std::sync::{Arc, LazyLock};

use super::agpm::parameters::AgpmSpec;
use super::agpm::{self, Agpm};
use super::baseline::{BASE, EPOCH_CTA, EPOCH_KERNEL, NT_STORE_DEFAULTS, NtStoreSpec, STORE_CLWB, STRICT, nt_store};
use super::bucl::{self, Bucl};
use super::capri::{self, CapriSpec, capri};
use super::cwsp::{self, CwspSpec, cwsp};
use super::delegated::{self, BroiSpec, Delegated, EpochSpec};
pub use super::entry::{Entry, Faults, Parameters};
use super::epoch_tag::{self, EpochTag};
use super::light_wsp::{self, LightWsp, LightWspSpec};
use super::nvw_fifo::{self, NvwFifo};
use super::pmem_spec::{self, PmemSpec};
use super::ppa::{self, Ppa};
use super::psp_ideal::PspIdeal;
use super::sbrp::{self, Sbrp};
use super::sync::Sync;
use super::themis::{self, Themis};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_persist::Scheme;

/// The scheme used when none is named.
pub const DEFAULT_SCHEME: &str = "base";
/// The scheme under which workloads of clients are run when none is named: under the other no server persists
/// what they post.
pub const DEFAULT_CLUSTER_SCHEME: &str = "broi";

/// A scheme with parameters is a line `Entry::parametrised(DEFAULTS, FAULTS, |spec| Arc::new(...))`. Made
/// once: sweeps ask for each key of each point.
static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    vec![
        Entry::fixed(BASE),
        Entry::fixed(STRICT),
        Entry::fixed(EPOCH_CTA),
        Entry::fixed(EPOCH_KERNEL),
        Entry::parametrised(NT_STORE_DEFAULTS, |_| Vec::new(), |spec: NtStoreSpec| Arc::new(nt_store(&spec))),
        Entry::fixed(STORE_CLWB),
        Entry::parametrised(agpm::parameters::DEFAULTS, AgpmSpec::faults, |spec| Arc::new(Agpm::new(spec))),
        Entry::parametrised(bucl::DEFAULTS, |_| Vec::new(), |spec| Arc::new(Bucl::new(spec))),
        Entry::parametrised(pmem_spec::DEFAULTS, |_| Vec::new(), |spec| Arc::new(PmemSpec::new(spec))),
        Entry::parametrised(themis::DEFAULTS, |_| Vec::new(), |spec| Arc::new(Themis::new(spec))),
        Entry::parametrised(nvw_fifo::DEFAULTS, |_| Vec::new(), |spec| Arc::new(NvwFifo::new(spec))),
        Entry::parametrised(epoch_tag::DEFAULTS, |_| Vec::new(), |spec| Arc::new(EpochTag::new(spec))),
        Entry::parametrised(sbrp::DEFAULTS, |_| Vec::new(), |spec| Arc::new(Sbrp::new(spec))),
        Entry::parametrised(light_wsp::DEFAULTS, LightWspSpec::faults, |spec| Arc::new(LightWsp::new(spec)))
            .on_cores(light_wsp::DEFAULTS_ON_CORES),
        Entry::fixed(Sync),
        Entry::parametrised(delegated::EPOCH_DEFAULTS, EpochSpec::faults, |spec| Arc::new(Delegated::Epoch(spec))),
        Entry::parametrised(delegated::BROI_DEFAULTS, BroiSpec::faults, |spec| Arc::new(Delegated::Broi(spec))),
        Entry::fixed(PspIdeal),
        Entry::parametrised(ppa::DEFAULTS, |_| Vec::new(), |spec| Arc::new(Ppa::new(spec))),
        Entry::parametrised(capri::DEFAULTS, CapriSpec::faults, |spec| Arc::new(capri(spec))),
        Entry::parametrised(cwsp::DEFAULTS, CwspSpec::faults, |spec| Arc::new(cwsp(&spec))),
    ]
});

/// Every scheme with its parameters, in the order they are listed.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// Every scheme of machines with GPUs as it is by default, in the order they are listed.
pub fn all() -> Vec<Arc<dyn Scheme>> {
    entries().iter().map(|entry| entry.scheme.clone()).filter(|scheme| scheme.machines().gpu).collect()
}

/// The same of machines of CPU cores.
pub fn of_cpus() -> Vec<Arc<dyn Scheme>> {
    entries().iter().map(|entry| entry.scheme.clone()).filter(|scheme| scheme.machines().cpu).collect()
}

/// The scheme called `name`, as it is by default.
///
/// # Errors
/// There is none; the nearest name is told.
pub fn find(name: &str) -> Result<Arc<dyn Scheme>, Diagnostics> {
    let names: Vec<&str> = entries().iter().map(Entry::name).collect();
    match entries().iter().find(|entry| entry.name() == name) {
        Some(entry) => Ok(entry.scheme.clone()),
        None => {
            let message = format!("there is no scheme `{name}`; there are {}", names.join(", "));
            Err(Diagnostic::nowhere("--scheme", message).with_nearest(name, names).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use durawarp_persist::{HandlerPlace, Outbox, Route, Store, StoreClass};

    #[test]
    fn names_are_distinct_and_found() {
        let every = || entries().iter().map(|entry| entry.scheme.clone());
        assert_eq!(
            of_cpus().iter().map(|scheme| scheme.name()).collect::<Vec<_>>(),
            ["base", "light-wsp", "sync", "epoch", "broi", "psp-ideal", "ppa", "capri", "cwsp"]
        );
        for scheme in every() {
            assert_eq!(find(scheme.name()).unwrap().name(), scheme.name());
            assert!(!scheme.description().is_empty());
        }
        for told in [Scheme::name, Scheme::description] {
            let mut texts: Vec<_> = entries().iter().map(|entry| told(&*entry.scheme)).collect();
            texts.sort_unstable();
            texts.dedup();
            assert_eq!(texts.len(), entries().len(), "{texts:?}");
        }
    }

    #[test]
    fn who_drops_log_updates_says_so() {
        let place = HandlerPlace { sms: 2, slices: 2, controllers: 1, tick_khz: 1_000_000, ..HandlerPlace::default() };
        for scheme in all() {
            let rule = scheme.sm_handler(place).unwrap().store(&Store::of(StoreClass::Log), &mut Outbox::default());
            assert_eq!(rule.route == Route::Dropped, scheme.drops_log_stores(), "{}", scheme.name());
            assert!(!(scheme.logs() && scheme.drops_log_stores()), "{}", scheme.name());
        }
    }

    #[test]
    fn a_scheme_has_handlers_of_the_machines_that_it_is_for_and_of_no_others() {
        let place = HandlerPlace { slices: 2, controllers: 1, channels: 2, tick_khz: 1, ..HandlerPlace::default() };
        let (gpu, cpu) = (HandlerPlace { sms: 2, ..place }, HandlerPlace { cores: 2, harts: 1, ..place });
        for Entry { scheme, .. } in entries() {
            let (machines, name) = (scheme.machines(), scheme.name());
            assert!(machines.gpu || machines.cpu, "{name}");
            assert!(machines.gpu || scheme.slice_handler(gpu).is_none(), "{name}");
            assert!(machines.cpu || scheme.home_handler(cpu).is_none() && scheme.nic_handler(cpu).is_none(), "{name}");
            assert!(machines.cpu || !scheme.drops_evictions(), "{name}");
        }
        let both: Vec<_> = of_cpus().iter().map(|scheme| scheme.name()).filter(|name| of_gpus(name)).collect();
        assert_eq!(both, ["base", "light-wsp"]);
    }

    fn of_gpus(name: &str) -> bool {
        all().iter().any(|scheme| scheme.name() == name)
    }

    #[test]
    fn an_unknown_name_is_told_with_the_nearest() {
        let faults = find("store-clwb").unwrap_err().to_string();
        assert!(faults.contains("`store-clwb`") && faults.contains("did you mean `store+clwb`?"), "{faults}");
    }
}
