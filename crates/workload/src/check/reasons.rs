//! Why a result may differ from the functional run's and not be wrong, in words: what the kernels of a
//! program leave undetermined ([`undetermined`](crate::kernel::undetermined)).

use std::sync::Arc;

use durawarp_kernel::ir::Kernel;
use durawarp_kernel::undetermined::{float_atomic, machine_reads, name_of, place};

/// The order of floating-point additions by atomics.
pub(crate) struct FloatOrder(String);

impl FloatOrder {
    /// Of the first kernel that has such atomics.
    pub(crate) fn of<'k>(kernels: impl Iterator<Item = &'k Arc<Kernel>>) -> Option<FloatOrder> {
        let mut found = kernels.filter_map(|kernel| Some((kernel, float_atomic(kernel)?)));
        let (kernel, pc) = found.next()?;
        Some(FloatOrder(format!(
            "the order of floating-point additions by atomics may be the reason (kernel `{}`, {})",
            kernel.name,
            place(kernel, pc)
        )))
    }

    pub(crate) fn told(self) -> String {
        self.0
    }

    /// With the largest difference relative to the value, which a tolerance would have to be.
    pub(crate) fn told_within(self, largest: f64) -> String {
        match largest {
            0.0 => self.0,
            _ => format!(
                "{}; the largest difference is {largest:.1e} of the value, which the check's `rtol` does not allow",
                self.0
            ),
        }
    }
}

/// Numbers that only the machine knows.
pub(crate) struct MachineValues {
    names: String,
    first: String,
}

impl MachineValues {
    /// Of every kernel whose results follow from such numbers; where the first is read.
    pub(crate) fn of<'k>(kernels: impl Iterator<Item = &'k Arc<Kernel>>) -> Option<MachineValues> {
        let (mut names, mut first): (Vec<&str>, Option<String>) = (Vec::new(), None);
        for kernel in kernels {
            for (what, pc) in machine_reads(kernel) {
                if !names.contains(&name_of(what)) {
                    names.push(name_of(what));
                }
                first.get_or_insert_with(|| format!("kernel `{}`, {}", kernel.name, place(kernel, pc)));
            }
        }
        Some(MachineValues { names: names.join(", "), first: first? })
    }

    /// Of elements that were not judged, where all others are as they should be.
    pub(crate) fn told_of(&self, unknown: u64, compared: u64) -> String {
        let MachineValues { names, first } = self;
        format!(
            "{unknown} of {compared} elements follow from {names} ({first}), which no functional run knows: they are not \
             judged; all others are as they should be"
        )
    }

    /// Of a failure.
    pub(crate) fn told(&self, unknown: u64) -> String {
        let MachineValues { names, first } = self;
        let beside = match unknown {
            0 => String::new(),
            _ => format!("; {unknown} elements more follow from it and are not judged"),
        };
        format!("results may follow from {names} ({first}), which no functional run knows{beside}")
    }
}
