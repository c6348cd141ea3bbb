//! Tensor maps as arguments: their keys, which of them belong together, and that lists are as long as the
//! tensor has dimensions.
//!
//! Not here: values of expressions, which a launch knows (`host::tensor`).

use super::reader::Reader;
use crate::expr::{Expr, Scope};
use crate::manifest::buffers::{BufferStart, Space};
use crate::manifest::steps::Arg;
use crate::manifest::tensor::{KEYS, PartForm, PixelForm, TensorForm};
use durawarp_base::document::{TomlTable, check_keys};
use durawarp_kernel::ir::{Elem, Param};
use durawarp_kernel::tensor_map::{Fill, MAP_BYTES, MOST_DIMENSIONS, Swizzle, TensorElem};

/// Keys of a map of pixels, which one of boxes does not have.
const OF_PIXELS: [&str; 4] = ["channels", "pixels", "lower_corner", "upper_corner"];

impl Reader<'_> {
    /// `{tensor_map = "A", sizes = [..], box = [..], ..}`.
    pub(crate) fn tensor_map(&mut self, table: TomlTable<'_>, param: Option<&Param>, scope: &Scope) -> Option<Arg> {
        let before = self.faults.0.len();
        check_keys(KEYS, table, "a tensor map", self.faults);
        if self.faults.0.len() > before {
            return None;
        }
        let buffer = self.buffer_at(table, "tensor_map");
        if let Some(param) = param
            && param.bytes as usize != MAP_BYTES
        {
            self.mismatch(param, &table.place(), &format!("a tensor map ({MAP_BYTES} bytes)"));
        }
        let sizes = self.extent_list(table, "sizes", scope);
        let part = self.part(table, scope);
        let strides_bytes = self.extent_list(table, "strides_bytes", scope);
        let steps = self.extent_list(table, "steps", scope);
        let index = self.integer_at(table, "index", scope);
        // Every list is read before an unknown buffer ends this, so that their faults are told, too.
        let buffer = buffer?;
        let form = &self.buffers[buffer];
        if !matches!(form.space, Space::Dram | Space::Pm) {
            let message = format!("buffer `{}` is not in global memory, where tensors are", form.name);
            self.fault(table.place().fault(message));
            return None;
        }
        let (name, elem) = (form.name.clone(), form.fields.first().filter(|_| !form.is_structured()).map(|f| f.elem));
        let named = table.text("type").map(|(word, _)| word);
        let Some(elem) = named.map_or_else(|| elem.and_then(of_buffer), |word| named_in(&TensorElem::ALL, word)) else {
            let fault = table.place().fault(format!("a tensor cannot have the elements of buffer `{name}`"));
            self.fault(fault.with_help("`type` says of what type they are, such as `type = \"f16\"`"));
            return None;
        };
        // Lists must agree on the number of dimensions.
        let (sizes, part) = (sizes?, part?);
        let dimensions = sizes.len();
        let (what, fewest) = if let PartForm::Pixels(_) = part { ("tensor of pixels", 3) } else { ("tensor", 1) };
        if !(fewest..=MOST_DIMENSIONS).contains(&dimensions) {
            let message = format!("a {what} has {fewest} to {MOST_DIMENSIONS} dimensions, `sizes` has {dimensions}");
            self.fault(table.place().fault(message));
            return None;
        }
        let [box_sizes, lower, upper] = match &part {
            PartForm::Box(sizes) => [Some(sizes), None, None],
            PartForm::Pixels(form) => [None, form.lower.as_ref(), form.upper.as_ref()],
        };
        let lists = [
            ("box", box_sizes, dimensions),
            ("strides_bytes", strides_bytes.as_ref(), dimensions - 1),
            ("steps", steps.as_ref(), dimensions),
            ("lower_corner", lower, dimensions.saturating_sub(2)),
            ("upper_corner", upper, dimensions.saturating_sub(2)),
        ];
        for (key, list, wanted) in lists {
            let Some(found) = list.map(Vec::len).filter(|found| *found != wanted) else { continue };
            let place = table.get(key).map_or(table.place(), |item| item.place());
            let help = match key {
                "strides_bytes" => "one of each dimension but the first",
                "lower_corner" | "upper_corner" => "one of each dimension but the first and the last",
                _ => "one of each",
            };
            let message = format!("a tensor of {dimensions} dimension(s) has {wanted} in `{key}`, not {found}");
            self.fault(place.fault(message).with_help(help));
        }
        // Words are those of the lists: the keys were checked.
        let word = |key: &str| table.text(key).map(|(word, _)| word);
        Some(Arg::Tensor(Box::new(TensorForm {
            place: table.place(),
            to: BufferStart { buffer, index },
            elem,
            swizzle: word("swizzle").and_then(|word| named_in(&Swizzle::ALL, word)).unwrap_or(Swizzle::None),
            fill: word("fill").and_then(|word| named_in(&Fill::ALL, word)).unwrap_or(Fill::Zeros),
            sizes,
            strides_bytes,
            part,
            steps,
        })))
    }

    /// What copies by the map have: `box`, or `channels` and `pixels`, with corners or without.
    fn part(&mut self, table: TomlTable<'_>, scope: &Scope) -> Option<PartForm> {
        let box_sizes = self.extent_list(table, "box", scope);
        let [channels, pixels] = ["channels", "pixels"].map(|key| self.integer_at(table, key, scope));
        let [lower, upper] = ["lower_corner", "upper_corner"].map(|key| self.extent_list(table, key, scope));
        let help = "`box` is of a map of tiles, `channels`, `pixels` and corners are of one for `im2col`";
        let of_pixels = OF_PIXELS.iter().find_map(|key| table.get(key).map(|item| (key, item.place())));
        match (table.get("box"), of_pixels) {
            (Some(_), None) => return box_sizes.map(PartForm::Box),
            (Some(_), Some((key, place))) => {
                self.fault(place.fault(format!("a tensor map with `box` has no `{key}`")).with_help(help));
            }
            (None, None) => {
                let message = "a tensor map needs `box`, or `channels` and `pixels`";
                self.fault(table.place().fault(message).with_help(help));
            }
            (None, Some(_)) => {
                if let Some(missing) = OF_PIXELS[..2].iter().find(|key| table.get(key).is_none()) {
                    let message = format!("a tensor map for `im2col` needs `{missing}`");
                    self.fault(table.place().fault(message).with_help(help));
                }
                let form = PixelForm { channels: channels?, pixels: pixels?, lower, upper };
                return Some(PartForm::Pixels(Box::new(form)));
            }
        }
        None
    }

    /// The integers at `key`, one or a list.
    fn extent_list(&mut self, table: TomlTable<'_>, key: &str, scope: &Scope) -> Option<Vec<Expr>> {
        let item = table.get(key)?;
        let items = item.list().unwrap_or_else(|| vec![item]);
        items.into_iter().map(|item| self.integer(item, scope, &format!("`{key}`"))).collect()
    }
}

/// What a word of a list means.
fn named_in<T: Copy>(all: &[(&str, T)], word: &str) -> Option<T> {
    all.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning)
}

/// The type of a tensor's elements that a buffer's have.
fn of_buffer(elem: Elem) -> Option<TensorElem> {
    Some(match elem {
        Elem::U8 => TensorElem::U8,
        Elem::U16 => TensorElem::U16,
        Elem::U32 => TensorElem::U32,
        Elem::S32 => TensorElem::S32,
        Elem::U64 => TensorElem::U64,
        Elem::S64 => TensorElem::S64,
        Elem::F32 => TensorElem::F32,
        Elem::F64 => TensorElem::F64,
        Elem::S8 | Elem::S16 => return None,
    })
}
