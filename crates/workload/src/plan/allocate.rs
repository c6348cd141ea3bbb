//! Where buffers and module-scope variables lie: one after the other in manifest order, each in its medium.
//!
//! ```text
//! ... | guard | padding | elements of a buffer | padding | guard | ...
//! ```
//!
//! The first element lies at a multiple of 256 bytes, and at least 256 bytes are unallocated between two
//! buffers. A guard makes that more; padding is allocated and part of no buffer. Not modelled: placement that
//! the user chooses.

use super::allocation::Allocation;
use super::stage::Stage;
use crate::expr::Expr;
use crate::manifest::buffers::{Buffer, Space};
use crate::manifest::source::Programs;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::ir::GlobalVar;
use durawarp_kernel::memory::{AddressMap, Margin, Medium};

/// Most bytes of a guard, and of padding, on one side.
const MAX_MARGIN: u64 = 1 << 20;

/// Gives every buffer its place; `volatile` is where those go that need not persist.
pub(crate) fn allocate(stage: &mut Stage<'_>, buffers: &mut [Allocation], volatile: Medium) -> AddressMap {
    let mut addresses = AddressMap::default();
    for (form, allocation) in stage.manifest.buffers.iter().zip(buffers) {
        let found = margin(stage, form);
        let margin = stage.keep(found).unwrap_or_default();
        let medium = match form.space {
            Space::Const => continue,
            Space::Pm => Medium::Nvm,
            Space::Dram | Space::Texture => volatile,
        };
        allocation.address = addresses.allocate_within(&form.name, allocation.bytes, margin, medium);
        if let Some(texture) = &mut allocation.texture {
            texture.address = allocation.address;
        }
        if let Some(surface) = &mut allocation.surface {
            surface.address = allocation.address;
        }
    }
    addresses
}

fn margin(stage: &mut Stage<'_>, form: &Buffer) -> Result<Margin, Diagnostic> {
    let guard = side(stage, form.guard.as_ref(), "`guard`", 1)?;
    let padding = side(stage, form.padding.as_ref(), "`padding`", form.stride)?;
    Ok(Margin { padding, guard })
}

/// Bytes of one side, which is given in units of `unit` bytes.
fn side(stage: &mut Stage<'_>, expr: Option<&Expr>, what: &str, unit: u64) -> Result<u64, Diagnostic> {
    let Some(expr) = expr else { return Ok(0) };
    let count = expr.integer(&mut stage.frame, what)?;
    let most = MAX_MARGIN / unit;
    match u64::try_from(count) {
        Ok(count) if count <= most => Ok(count * unit),
        _ => Err(expr.place().fault(format!("{what} must be 0 to {most} (1 MiB), found {count}"))),
    }
}

/// Gives every module-scope variable its place, after the buffers.
pub(crate) fn allocate_globals(programs: &Programs, addresses: &mut AddressMap, medium: Medium) -> Vec<Vec<u64>> {
    let place = |var: &GlobalVar, addresses: &mut AddressMap| addresses.allocate(&var.name, var.bytes.max(1), medium);
    programs.modules.iter().map(|module| module.globals.iter().map(|var| place(var, addresses)).collect()).collect()
}
