//! Memory devices from files: a standard with its bins and densities, resolved to a table that the media
//! interpret.
//!
//! ```toml
//! kind = "device"
//! name = "ddr4"
//! source = "JESD79-4B"
//! [rounding]                       # of durations to cycles: `timing`
//! [organisation]                   # levels below the channel, row, burst, buses
//! [commands]                       # what each does, to what
//! ACT = { effect = "open", target = "bank" }
//! [timing]                         # of all bins and densities: cycles, "350ns", "max(4, 3.3ns)", "RAS + RP"
//! [[bin]]                          # name, tCK, timing
//! [[density]]                      # name, timing, and what differs in the organisation
//! [constraints]                    # least times between commands, a list for each scope: `constraints`
//! bank_group = ["RD,RDA > RD,RDA : CCD_L"]
//! [[refresh]]                      # policy, command, every
//! [buffer]                         # of NVM: lines between bus and cells, in place of rows
//! ```
//! A standard is one such file: nothing here knows one. Invariants: all faults of a file are found at once,
//! each with its place; of timings of one name an override counts more than the density's, then the bin's,
//! then that of all.

mod buffer;
mod check;
mod constraints;
mod expression;
mod file;
mod listing;
mod of_machine;
mod organisation;
mod request;
#[cfg(test)]
mod tests;
mod timing;

pub use self::file::{LoadedDevice, load, names};
pub(super) use self::listing::says_device;
pub use self::listing::{BuiltinDevice, builtin, check_file, is_device_file, table};
pub use self::of_machine::{Devices, tables};
pub(super) use self::of_machine::{devices, leave_to_device};
pub use self::request::DeviceRequest;
