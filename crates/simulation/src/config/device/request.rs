//! What is asked of a device file.

use std::fmt;

use durawarp_base::diagnostic::Diagnostic;

/// The fault of a key of a request (`bin`), at its place.
pub(super) type DevicePlace<'a> = dyn Fn(&str, &str) -> Diagnostic + 'a;

/// What is asked of a device file, and where: a machine's keys, or options of a command.
pub struct DeviceRequest<'a> {
    /// A built-in name, or a path to a `.toml` file.
    pub device: &'a str,
    /// A bin's name; "" for the first of the file.
    pub bin: &'a str,
    /// A density's name; "" for the first of the file.
    pub density: &'a str,
    /// Overrides of timings: `RFC = 295ns, FAW = 20`.
    pub timing: &'a str,
    /// Ranks of a channel.
    pub ranks: u32,
    /// The fault of a key of these (`bin`), at its place.
    pub place: &'a (dyn Fn(&str, &str) -> Diagnostic + 'a),
}

impl fmt::Debug for DeviceRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceRequest { device, bin, density, timing, ranks, .. } = self;
        write!(f, "{device} {bin} {density} \"{timing}\", {ranks} ranks")
    }
}
