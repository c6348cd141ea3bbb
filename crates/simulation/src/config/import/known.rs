//! What is known of each option: its default in GPGPU-Sim, and what becomes of it here.
//!
//! The table is data, `options.tsv`, with its source at its head; `docs/coming-from-gpgpu-sim.md` shows it. A
//! test holds both against what the import asks for.

use std::sync::LazyLock;

/// What becomes of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It sets keys.
    Mapped,
    /// It describes the machine and has no counterpart: the import says so.
    Told,
    /// It says nothing of a machine.
    Ignored,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownOption {
    pub(super) name: &'static str,
    /// What GPGPU-Sim takes where no file gives it, if that is known.
    pub(super) default: Option<&'static str>,
    pub(super) fate: Fate,
    /// The keys that it sets, or why it sets none.
    pub(super) note: &'static str,
}

const TABLE: &str = include_str!("options.tsv");

static KNOWN: LazyLock<Vec<KnownOption>> = LazyLock::new(|| {
    let of = |row: &'static str| {
        let mut cells = row.split('\t');
        let mut next = || cells.next().unwrap_or_else(|| panic!("options.tsv has five columns, not so in {row:?}"));
        let (name, default, _registered, fate, note) = (next(), next(), next(), next(), next());
        let fate = match fate {
            "mapped" => Fate::Mapped,
            "told" => Fate::Told,
            "ignored" => Fate::Ignored,
            _ => panic!("options.tsv: `{fate}` is none of mapped, told, ignored"),
        };
        KnownOption { name, default: Some(default).filter(|default| *default != "-"), fate, note }
    };
    TABLE.lines().filter(|row| !row.starts_with('#')).map(of).collect()
});

/// Every option, those that set keys first.
pub(super) fn all() -> &'static [KnownOption] {
    &KNOWN
}

/// The option of this name, without its `-`.
pub(super) fn find(name: &str) -> Option<&'static KnownOption> {
    all().iter().find(|known| known.name == name)
}
