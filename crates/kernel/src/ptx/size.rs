//! Sizes of variables and parameters as declared (PTX ISA 5.4, "Variables").
//!
//! Invariant: a size is at most 2^34 bytes and an alignment a power of two, else it is a fault at its place.

use super::ast::{Init, Var};
use super::token::Bytes;
use super::types::Ty;

/// A fault of a declaration: its place and a message.
pub(super) type LayoutFault = (Bytes, String);

/// Bytes and alignment of a variable.
pub(super) fn size_of(var: &Var<'_>) -> Result<(u64, u64), LayoutFault> {
    let Some(ty) = Ty::parse(var.ty.text).filter(|ty| ty.bits >= 8) else {
        return Err((var.ty.at.clone(), format!("type `.{}` is not supported for variables", var.ty.text)));
    };
    let element = u64::from(ty.bytes()) * var.vector;
    let mut count: u64 = 1;
    for (i, &dim) in var.dims.iter().enumerate() {
        // `x[] = {...}`: as many as there are initialisers.
        let dim = match (&var.init, dim, i) {
            (Some(Init::List(list)), 0, 0) => list.len() as u64,
            _ => dim,
        };
        count = count.saturating_mul(dim);
    }
    let bytes = element.saturating_mul(count);
    if bytes > 1 << 34 {
        return Err((var.name.at.clone(), format!("`{}` is too large: {bytes} bytes", var.name.text)));
    }
    let align = var.align.unwrap_or(element).max(1);
    if !align.is_power_of_two() || align > 1 << 16 {
        return Err((var.name.at.clone(), format!("alignment {align} of `{}` is not a power of two", var.name.text)));
    }
    Ok((bytes, align))
}
