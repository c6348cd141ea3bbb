//! Tensor maps as arguments: their keys, and that lists are as long as the tensor has dimensions.
//!
//! Not here: values of expressions, which a launch knows (`host::tensor`).

use super::reader::Reader;
use crate::expr::{Expr, Scope};
use crate::manifest::buffers::{BufferStart, Space};
use crate::manifest::steps::Arg;
use crate::manifest::tensor::{KEYS, TensorForm};
use durawarp_base::document::{TomlTable, check_keys};
use durawarp_kernel::ir::{Elem, Param};
use durawarp_kernel::tensor_map::{Fill, MAP_BYTES, MOST_DIMENSIONS, Swizzle, TensorElem};

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
        let box_sizes = self.extent_list(table, "box", scope);
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
        let (sizes, box_sizes) = (sizes?, box_sizes?);
        let dimensions = sizes.len();
        if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
            let message = format!("a tensor has 1 to {MOST_DIMENSIONS} dimensions, `sizes` has {dimensions}");
            self.fault(table.place().fault(message));
            return None;
        }
        let lists = [
            ("box", Some(&box_sizes), dimensions),
            ("strides_bytes", strides_bytes.as_ref(), dimensions - 1),
            ("steps", steps.as_ref(), dimensions),
        ];
        for (key, list, wanted) in lists {
            let Some(found) = list.map(Vec::len).filter(|found| *found != wanted) else { continue };
            let place = table.get(key).map_or(table.place(), |item| item.place());
            let help = if key == "strides_bytes" { "one of each dimension but the first" } else { "one of each" };
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
            box_sizes,
            steps,
        })))
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
