//! What the storage that a scheme adds to a machine costs, as its paper publishes it: plain data.

/// A structure of entries: its area, and the energy of an access to one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StorageCost {
    /// Name; the scheme counts accesses as `NAME_read_entries` and `NAME_written_entries`.
    pub name: &'static str,
    /// Entries of the one that the area is of.
    pub entries: u32,
    /// Area of it, in square µm.
    pub area_um2: f64,
    /// Reading an entry, in pJ.
    pub read_pj: f64,
    /// Writing an entry, in pJ.
    pub write_pj: f64,
    /// Where the numbers come from.
    pub source: &'static str,
    /// How many of them the machine has, and of how many entries each.
    pub built: (u32, u32),
}
