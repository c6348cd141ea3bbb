//! Whether a name or a file is a machine or a scheme, where either will do.
//!
//! Built-in names of the two differ (a test holds it). A file is of a scheme when it says `scheme = ` or has
//! a scheme's table; everything else, also what cannot be parsed, is taken for a machine, whose reading tells
//! what is wrong.

use super::compute::Compute;
use super::device::says_device;
use super::presets;
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use durawarp_base::document::{is_path, top_keys};
use durawarp_schemes::catalogue;

/// What a name or a file describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A machine with a GPU.
    Machine,
    /// A machine of CPU cores.
    CpuMachine,
    /// A persistency scheme.
    Scheme,
}

impl Kind {
    /// What `name_or_path` describes.
    ///
    /// # Errors
    /// There is neither a machine nor a scheme of that name; the file cannot be read.
    pub fn of(name_or_path: &str) -> Result<Self, Diagnostics> {
        let entries = catalogue::entries();
        if is_path(name_or_path) {
            let cannot = |error| Diagnostic::nowhere(name_or_path, format!("cannot read the file: {error}"));
            let text = durawarp_base::input::text(std::path::Path::new(name_or_path)).map_err(cannot)?;
            if says_device(name_or_path, text.clone()) {
                let fault = Diagnostic::nowhere(name_or_path, "the file is of a memory device, which a machine names");
                return Err(fault
                    .with_help("`durawarp config device FILE` prints it, `config check FILE` checks it")
                    .into());
            }
            let says = |key: &str| key == "scheme" || entries.iter().any(|entry| entry.table() == key);
            let of_scheme = top_keys(name_or_path, text).iter().any(|key| says(key));
            return Ok(if of_scheme { Kind::Scheme } else { Self::of_machine(name_or_path) });
        }
        // A name: machines and schemes have different ones.
        let machines: Vec<&str> = presets::names().collect();
        let schemes: Vec<&str> = entries.iter().map(|entry| entry.name()).collect();
        if machines.contains(&name_or_path) {
            return Ok(Self::of_machine(name_or_path));
        }
        if schemes.contains(&name_or_path) {
            return Ok(Kind::Scheme);
        }
        let (of_machines, of_schemes) = (machines.join(", "), schemes.join(", "));
        let message = format!(
            "there is no machine or scheme `{name_or_path}`; machines are {of_machines}, schemes are {of_schemes}, and a \
             path to a .toml file works too"
        );
        let fault = Diagnostic::nowhere(name_or_path, message);
        Err(fault.with_nearest(name_or_path, machines.into_iter().chain(schemes)).into())
    }

    fn of_machine(name_or_path: &str) -> Self {
        match Compute::of(name_or_path) {
            Compute::Gpu => Kind::Machine,
            Compute::Cpu => Kind::CpuMachine,
        }
    }

    /// What it is, for messages.
    pub fn described(self) -> &'static str {
        match self {
            Kind::Machine => "a machine with a GPU",
            Kind::CpuMachine => "a machine of CPU cores",
            Kind::Scheme => "a scheme",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_machines_and_schemes_differ() {
        for (name, _) in presets::MACHINES {
            assert_eq!(Kind::of(name), Ok(Kind::Machine));
        }
        for (name, _) in presets::CPU_MACHINES {
            assert_eq!(Kind::of(name), Ok(Kind::CpuMachine));
        }
        for entry in catalogue::entries() {
            assert_eq!(Kind::of(entry.name()), Ok(Kind::Scheme));
        }
        let told = Kind::of("strikt").unwrap_err().to_string();
        assert!(told.contains("titan-x") && told.contains("did you mean `strict`?"), "{told}");
    }

    #[test]
    fn a_file_is_what_it_says() {
        let folder = std::env::temp_dir().join(format!("durawarp-kind-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let of = |text: &str| {
            let file = folder.join("it.toml");
            std::fs::write(&file, text).unwrap();
            Kind::of(file.to_str().unwrap())
        };
        assert_eq!(of("scheme = \"strict\"\n"), Ok(Kind::Scheme));
        assert_eq!(of("[nt_store]\n"), Ok(Kind::Scheme));
        assert_eq!(of("inherits = \"titan-x\"\n[sm]\ncount = 1\n"), Ok(Kind::Machine));
        assert_eq!(of("kind = \"cpu\"\n[core]\ncount = 1\n"), Ok(Kind::CpuMachine));
        assert_eq!(of("inherits = \"broi-cpu\"\n"), Ok(Kind::CpuMachine));
        assert_eq!(of("kind = \"gpu\"\ninherits = \"broi-cpu\"\n"), Ok(Kind::Machine));
        assert_eq!(of("scheme = \n"), Ok(Kind::Machine));
        assert!(of("kind = \"device\"\n").unwrap_err().to_string().contains("config device FILE"));
        assert!(Kind::of("nowhere.toml").unwrap_err().to_string().contains("cannot read"));
    }
}
