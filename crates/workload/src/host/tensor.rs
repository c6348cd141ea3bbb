//! From the form of a tensor's map to the map of a launch.
//!
//! Invariant: a map is one that the driver would make, and its tensor lies in its buffer.

use super::view::{Interrupt, View};
use crate::expr::Expr;
use crate::manifest::steps::EncodeStep;
use crate::manifest::tensor::{PartForm, PixelForm, TensorForm};
use durawarp_kernel::tensor_map::{MAP_ALIGN, MOST_DIMENSIONS, PixelBox, TensorMap};

/// The map of a tensor, with the values of this moment.
pub(super) fn tensor_map(view: &mut View, form: &TensorForm) -> Result<TensorMap, Interrupt> {
    let dimensions = form.sizes.len();
    let sizes = list_of(view, &form.sizes, "a size", u64::from(u32::MAX))?;
    let (box_sizes, im2col) = match &form.part {
        PartForm::Box(sizes) => (list_of(view, sizes, "a size of a box", u64::from(u32::MAX))?, None),
        PartForm::Pixels(pixels) => pixel_box(view, pixels)?,
    };
    let steps = match &form.steps {
        Some(steps) => list_of(view, steps, "a step", u64::from(u32::MAX))?,
        None => [1; MOST_DIMENSIONS],
    };
    let mut strides = [0; MOST_DIMENSIONS - 1];
    match &form.strides_bytes {
        Some(list) => {
            let list = list_of(view, list, "a stride", u64::MAX)?;
            strides[..dimensions - 1].copy_from_slice(&list[..dimensions - 1]);
        }
        // Dense: a row is as long as its elements, a slice as its rows.
        None => {
            let mut bits = u64::from(form.elem.bits());
            for d in 1..dimensions {
                bits = bits.saturating_mul(sizes[d - 1]);
                strides[d - 1] = bits / 8;
            }
        }
    }
    // What the driver would be asked for.
    let map = TensorMap {
        dimensions: dimensions as u8,
        elem: form.elem,
        swizzle: form.swizzle,
        fill: form.fill,
        address: view.address_at(&form.to, None)?,
        strides,
        sizes: sizes.map(|size| size as u32),
        box_sizes: box_sizes.map(|size| size as u32),
        steps: steps.map(|step| step as u32),
        im2col,
    };
    if let Err(faults) = map.check() {
        return Err(form.place.fault(faults.join("; ")).into());
    }
    let buffer = &view.plan.buffers[view.bindings.of(form.to.buffer)];
    let end = buffer.address + buffer.bytes;
    if map.end() > end {
        let name = &view.plan.manifest.buffers[form.to.buffer].name;
        let message = format!("the tensor ends {} bytes behind buffer `{name}`", map.end() - end);
        return Err(form.place.fault(message).into());
    }
    Ok(map)
}

/// The channels of a pixel as sizes of a box, and the pixels.
fn pixel_box(view: &mut View, form: &PixelForm) -> Result<([u64; MOST_DIMENSIONS], Option<PixelBox>), Interrupt> {
    let channels = std::slice::from_ref(&form.channels);
    let channels = list_of(view, channels, "a number of channels", u64::from(u32::MAX))?;
    let pixels = list_of(view, std::slice::from_ref(&form.pixels), "a number of pixels", u64::from(u16::MAX))?;
    let mut corners = |list: &Option<Vec<Expr>>| {
        let mut corners = [0; 3];
        for (corner, expr) in corners.iter_mut().zip(list.iter().flatten()) {
            let found = view.integer(expr, "a corner")?;
            let fault = || Interrupt::from(expr.place().fault(format!("a corner cannot be {found}")));
            *corner = i16::try_from(found).map_err(|_| fault())?;
        }
        Ok::<_, Interrupt>(corners)
    };
    let (lower, upper) = (corners(&form.lower)?, corners(&form.upper)?);
    Ok((channels, Some(PixelBox { pixels: pixels[0] as u16, lower, upper })))
}

/// Where a step puts a map, which fits there.
pub(super) fn map_address(view: &mut View, step: &EncodeStep, bytes: u64) -> Result<u64, Interrupt> {
    let first = view.index(&step.to)?;
    let address = view.address(step.to.buffer, first);
    let buffer = &view.plan.buffers[view.bindings.of(step.to.buffer)];
    let name = &view.plan.manifest.buffers[step.to.buffer].name;
    if address + bytes > buffer.address + buffer.bytes {
        let message = format!("a map of {bytes} bytes from element {first} on ends behind buffer `{name}`");
        return Err(step.place.fault(message).into());
    }
    if !address.is_multiple_of(MAP_ALIGN) {
        let message =
            format!("element {first} of buffer `{name}` lies at no multiple of {MAP_ALIGN} bytes, as maps do");
        return Err(step.place.fault(message).into());
    }
    Ok(address)
}

/// Values of a list, 1 behind its end.
fn list_of(view: &mut View, list: &[Expr], what: &str, most: u64) -> Result<[u64; MOST_DIMENSIONS], Interrupt> {
    let mut values = [1; MOST_DIMENSIONS];
    for (value, expr) in values.iter_mut().zip(list) {
        let found = view.integer(expr, what)?;
        *value = match u64::try_from(found) {
            Ok(found) if found <= most => found,
            _ => return Err(expr.place().fault(format!("{what} cannot be {found}")).into()),
        };
    }
    Ok(values)
}
