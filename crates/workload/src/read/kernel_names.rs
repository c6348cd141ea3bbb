//! Kernels by the names that manifests write: the symbol in the PTX, or the C++ name of a mangled one
//! where a single kernel has it.
//!
//! A symbol wins over a C++ name. Not covered: telling overloads from each other by their parameters, which
//! takes the symbol.

use std::sync::Arc;

use crate::manifest::source::Programs;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::{Place, quoted};
use durawarp_kernel::ir::Kernel;
use durawarp_kernel::mangled::SourceName;

impl Programs {
    /// The kernel that `name` means, and the number of its module.
    ///
    /// # Errors
    /// No kernel is called so (with the nearest name, or all), or several are (with their names). `None`
    /// where a PTX file cannot be read: that has faults of its own, and any kernel may be in it.
    pub(crate) fn called(&self, name: &str, place: &Place) -> Result<(usize, Arc<Kernel>), Option<Diagnostic>> {
        if let Some(found) = self.kernel(name) {
            return Ok(found);
        }
        let fits = |kernel: &Kernel| SourceName::demangle(&kernel.name).is_some_and(|found| found.is(name));
        let fitting: Vec<_> = self.numbered_kernels().filter(|(_, kernel)| fits(kernel)).collect();
        match fitting[..] {
            [(number, kernel)] => Ok((number, kernel.clone())),
            _ if !self.complete => Err(None),
            [] => Err(Some(self.unknown(name, place))),
            _ => {
                let written: Vec<String> = fitting.iter().map(|(_, kernel)| self.display_name(kernel)).collect();
                let written: Vec<&str> = written.iter().map(String::as_str).collect();
                let fault = place.fault(format!("`{name}` is the name of {} kernels", fitting.len()));
                Err(Some(fault.with_help(format!("one of {}", quoted(&written)))))
            }
        }
    }

    /// The shortest text that means this kernel and no other.
    fn display_name(&self, kernel: &Kernel) -> String {
        let Some(name) = SourceName::demangle(&kernel.name) else { return kernel.name.clone() };
        let alone = |written: &str| {
            let others = self.numbered_kernels().filter(|(_, other)| other.name != kernel.name);
            let mut named = others.map(|(_, other)| (&other.name, SourceName::demangle(&other.name)));
            !named.any(|(symbol, other)| symbol == written || other.is_some_and(|other| other.is(written)))
        };
        let whole = name.to_string();
        [name.name(), whole.as_str()].into_iter().find(|written| alone(written)).unwrap_or(&kernel.name).to_owned()
    }

    fn unknown(&self, name: &str, place: &Place) -> Diagnostic {
        let written: Vec<String> = self.numbered_kernels().map(|(_, kernel)| self.display_name(kernel)).collect();
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let symbols = self.numbered_kernels().map(|(_, kernel)| kernel.name.as_str());
        let fault = place.fault(format!("there is no kernel `{name}`"));
        fault.with_nearest_or(name, written.iter().copied().chain(symbols), || match written.is_empty() {
            true => Some("no kernel is declared".to_owned()),
            false => Some(format!("declared: {}", quoted(&written))),
        })
    }

    fn numbered_kernels(&self) -> impl Iterator<Item = (usize, &Arc<Kernel>)> {
        self.modules.iter().enumerate().flat_map(|(number, module)| module.kernels.iter().map(move |k| (number, k)))
    }
}
