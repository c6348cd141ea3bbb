//! Arguments of launches, checked against the kernel's parameters: numbers, addresses of elements and bytes,
//! structures by value as C lays them out, texture objects.
//!
//! Not covered: alignment of an address, which the kernel's accesses decide.

use super::reader::Reader;
use crate::expr::{Expr, Scope, Type};
use crate::manifest::buffers::{BufferStart, Space};
use crate::manifest::element::elem_of;
use crate::manifest::schema::ELEMENT_TYPES;
use crate::manifest::steps::Arg;
use durawarp_base::document::{Item, Place, TomlTable, quoted};
use durawarp_kernel::ir::{Elem, Kernel, Param};
use durawarp_kernel::mangled::parameter;
use durawarp_kernel::tensor_map::{MAP_ALIGN, MAP_BYTES};

impl Reader<'_> {
    /// An argument for `param`, whose type it must fit; without a parameter only its names are checked.
    pub(crate) fn arg(&mut self, item: Item<'_>, param: Option<&Param>, scope: &Scope) -> Option<Arg> {
        let place = item.place();
        if let Some(table) = item.table() {
            return self.typed_arg(table, param, scope);
        }
        let text = item.text().map(str::trim_start);
        // Addresses come before expressions, whose syntax has no `&` for them.
        if let (Some(text), Some(whole)) = (text.filter(|text| text.starts_with('&')), item.text()) {
            let address = self.address(text, whole, &place, scope)?;
            if let Some(param) = param
                && (param.bytes != 8 || bare_type(param) == "f64")
            {
                self.mismatch(param, &place, "an address (8 bytes)");
            }
            return Some(address);
        }
        if item.number().is_none() && item.text().is_none() {
            let message =
                format!("an argument must be an expression, `&buffer` or a table, found {}", item.described());
            self.fault(place.fault(message));
            return None;
        }
        let value = self.expr(item, scope)?;
        // Without a parameter nothing is left to check: `expr` has looked up the names.
        let param = param?;
        let elem = match (bare_type(param), param.bytes) {
            ("b8", bytes) if bytes > 1 => {
                self.mismatch(param, &place, "a number");
                return None;
            }
            // PTX's `b` types are bits of any kind: the value's own type decides.
            ("b64", _) => {
                if value.ty() == Type::Float {
                    Elem::F64
                } else {
                    Elem::U64
                }
            }
            ("b32", _) => {
                if value.ty() == Type::Float {
                    Elem::F32
                } else {
                    Elem::U32
                }
            }
            ("b16", _) => Elem::U16,
            ("b8" | "pred", _) => Elem::U8,
            (name, _) => elem_of(name)?,
        };
        self.number(value, elem, &place, Some(param))
    }

    fn number(&mut self, value: Expr, elem: Elem, place: &Place, param: Option<&Param>) -> Option<Arg> {
        let float = matches!(elem, Elem::F32 | Elem::F64);
        if !float && value.ty() == Type::Float {
            let of = param.map_or_else(String::new, |param| format!(" for parameter `{}`", parameter(&param.name)));
            let ty = crate::manifest::element::elem_name(elem);
            let fault = place.fault(format!("expected an integer ({ty}){of}, found the float `{}`", value.text()));
            self.fault(fault.with_help("`int(x)` rounds toward zero"));
            return None;
        }
        Some(Arg::Number { value, elem })
    }

    pub(super) fn mismatch(&mut self, param: &Param, place: &Place, found: &str) {
        let wanted = match (bare_type(param), param.bytes) {
            ("b8", bytes) if bytes > 1 => format!("a structure of {bytes} bytes"),
            (name, bytes) => format!("`.{name}` ({bytes} byte{})", if bytes == 1 { "" } else { "s" }),
        };
        let fault = place.fault(format!("parameter `{}` is {wanted}, found {found}", parameter(&param.name)));
        self.fault(match bare_type(param) {
            "b8" => fault.with_help("`{struct = [\"&buffer\", {u32 = \"N\"}]}`"),
            _ => fault,
        });
    }

    /// `&buffer`, `&buffer + elements`, `&buffer + bytes(n)`, or both with the bytes last.
    fn address(&mut self, text: &str, whole: &str, place: &Place, scope: &Scope) -> Option<Arg> {
        let lead = whole.len() - text.len() + 1;
        let rest = &text[1..];
        let name_end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let name = &rest[..name_end];
        let name_place = place.inside(whole, lead..lead + name_end);
        if name.is_empty() {
            self.fault(place.fault("expected a buffer's name after `&`"));
            return None;
        }
        let buffer = self.buffer(name, &name_place);
        if let Some(buffer) = buffer {
            self.not_const(buffer, &name_place);
        }
        let tail = rest[name_end..].trim_start();
        if tail.is_empty() {
            return Some(Arg::Address { to: BufferStart { buffer: buffer?, index: None }, bytes: None });
        }
        let at = whole.len() - tail.len();
        let Some(offset) = tail.strip_prefix('+') else {
            let fault = place.inside(whole, at..whole.len()).fault(format!("expected `+` after `&{name}`"));
            let help = format!("`&{name} + 4` is the address of element 4, `&{name} + bytes(4)` of byte 4");
            self.fault(fault.with_help(help));
            return None;
        };
        let (elements, bytes) = split_bytes(offset);
        let mut offset_of = |part: Option<&str>, what: &str| {
            let Some(part) = part else { return Some(None) };
            let start = part.as_ptr() as usize - whole.as_ptr() as usize;
            self.offset(part, &place.inside(whole, start..start + part.len()), scope, what).map(Some)
        };
        // Both offsets are read before an unknown buffer ends this, so that their faults are reported, too.
        let index = offset_of(elements, "an offset in elements");
        let bytes = offset_of(bytes, "an offset in bytes");
        Some(Arg::Address { to: BufferStart { buffer: buffer?, index: index? }, bytes: bytes? })
    }

    fn offset(&mut self, text: &str, place: &Place, scope: &Scope, what: &str) -> Option<Expr> {
        match Expr::compile(text, place, scope) {
            Ok(expr) if expr.ty() == Type::Int => Some(expr),
            Ok(expr) => {
                self.fault(expr.not_an_integer(what));
                None
            }
            Err(fault) => {
                self.fault(fault);
                None
            }
        }
    }

    /// `{u32 = "N"}` or `{struct = [..]}`.
    fn typed_arg(&mut self, table: TomlTable<'_>, param: Option<&Param>, scope: &Scope) -> Option<Arg> {
        let place = table.place();
        // The only one of several keys.
        if table.get("tensor_map").is_some() {
            return self.tensor_map(table, param, scope);
        }
        let mut entries = table.entries();
        let (Some((key, key_place, item)), None) = (entries.next(), entries.next()) else {
            let fault =
                place.fault("an argument's table has one key: an element type, `struct`, `texture` or `tensor_map`");
            self.fault(
                fault
                    .with_help("`{u32 = \"N\"}`, `{struct = [..]}`, `{texture = \"A\"}` or `{tensor_map = \"A\", ..}`"),
            );
            return None;
        };
        match key {
            "struct" => return self.structure(item, param, scope),
            "texture" => return self.texture_object(item, param),
            _ => {}
        }
        let Some(elem) = elem_of(key) else {
            let fault =
                key_place.fault(format!("`{key}` is no element type, and not `struct`, `texture` or `tensor_map`"));
            let valid = ELEMENT_TYPES.into_iter().chain(["struct", "texture", "tensor_map"]);
            self.fault(fault.with_nearest_or(key, valid, || None));
            return None;
        };
        if let Some(param) = param
            && param.bytes != elem.bytes()
        {
            self.mismatch(param, &place, &format!("{key} ({} bytes)", elem.bytes()));
        }
        let value = self.expr(item, scope)?;
        self.number(value, elem, &item.place(), param)
    }

    /// `{texture = "A"}`: the kernel fetches from the buffer by this parameter.
    fn texture_object(&mut self, item: Item<'_>, param: Option<&Param>) -> Option<Arg> {
        let place = item.place();
        let Some(name) = item.text() else {
            self.fault(place.fault(format!("`texture` must be a buffer's name in quotes, found {}", item.described())));
            return None;
        };
        let buffer = self.buffer(name, &place)?;
        if self.buffers[buffer].space != Space::Texture {
            let fault = place.fault(format!("buffer `{name}` is not in space `texture`"));
            self.fault(fault.with_help("`space = \"texture\"` with its `texture = {width = ..}`"));
        }
        if let Some(param) = param
            && (param.bytes != 8 || bare_type(param) == "f64")
        {
            self.mismatch(param, &place, "a texture object (8 bytes)");
        }
        self.texture_objects.push(buffer);
        Some(Arg::Texture(buffer))
    }

    /// Texture objects are arguments for parameters by which the kernel fetches.
    pub(crate) fn check_texture_objects(&mut self, kernel: &Kernel, args: &[(Arg, Place)]) {
        for ((arg, place), param) in args.iter().zip(&kernel.params) {
            if !matches!(arg, Arg::Texture(_)) || kernel.textures.contains(&param.name) {
                continue;
            }
            let message =
                format!("kernel `{}` does not fetch from a texture by parameter `{}`", kernel.name, param.name);
            let fetched: Vec<&str> = kernel.textures.iter().map(String::as_str).collect();
            self.fault(place.fault(message).with_help(match fetched.is_empty() {
                true => "it fetches from no texture".to_owned(),
                false => format!("it fetches by {}", quoted(&fetched)),
            }));
        }
    }

    /// A by-value structure: its parts at their natural alignment, as C lays them out.
    fn structure(&mut self, item: Item<'_>, param: Option<&Param>, scope: &Scope) -> Option<Arg> {
        let place = item.place();
        let Some(items) = item.list() else {
            self.fault(place.fault(format!("`struct` must be a list, found {}", item.described())));
            return None;
        };
        let (wanted, mut parts) = (items.len(), Vec::new());
        let (mut end, mut align) = (0_u32, 1_u32);
        for part in items {
            let Some(arg) = self.arg_of_structure(part, scope) else {
                continue;
            };
            let (bytes, aligned) = match &arg {
                Arg::Number { elem, .. } => (elem.bytes(), elem.bytes()),
                Arg::Tensor(_) => (MAP_BYTES as u32, MAP_ALIGN as u32),
                _ => (8, 8),
            };
            let offset = end.next_multiple_of(aligned);
            end = offset + bytes;
            align = align.max(aligned);
            parts.push((offset, arg));
        }
        let bytes = end.next_multiple_of(align);
        // A part that could not be read has its own fault, and the size means nothing then.
        if let Some(param) = param.filter(|_| parts.len() == wanted)
            && (bare_type(param) != "b8" || param.bytes != bytes)
        {
            self.mismatch(param, &place, &format!("a structure of {bytes} bytes"));
        }
        Some(Arg::Struct(parts))
    }

    fn arg_of_structure(&mut self, item: Item<'_>, scope: &Scope) -> Option<Arg> {
        if item.table().is_some_and(|table| table.get("texture").is_some()) {
            let fault = item.place().fault("a texture object is no part of a structure");
            self.fault(fault.with_help("kernels fetch by parameters of their own"));
            return None;
        }
        let address = item.text().is_some_and(|text| text.trim_start().starts_with('&'));
        if address || item.table().is_some_and(|table| table.get("struct").is_none()) {
            return self.arg(item, None, scope);
        }
        let fault = item.place().fault("a part of a structure must be `\"&buffer\"` or say its type");
        self.fault(fault.with_help("`{u32 = \"N\"}`"));
        None
    }
}

/// The offset after the `+` of an address: elements, and the argument of a `bytes(...)` at its end.
fn split_bytes(offset: &str) -> (Option<&str>, Option<&str>) {
    let Some(inner) = offset.trim_end().strip_suffix(')') else { return (Some(offset), None) };
    let mut depth = 1;
    let open = inner.char_indices().rev().find(|(_, c)| {
        depth += i32::from(*c == ')') - i32::from(*c == '(');
        depth == 0
    });
    let Some((open, _)) = open else { return (Some(offset), None) };
    let (before, bytes) = (&inner[..open], &inner[open + 1..]);
    match before.trim_end().strip_suffix("bytes").map(str::trim_end) {
        Some("") => (None, Some(bytes)),
        Some(elements) => match elements.strip_suffix('+') {
            Some(elements) => (Some(elements), Some(bytes)),
            None => (Some(offset), None),
        },
        None => (Some(offset), None),
    }
}

/// The type of a parameter without its dot.
pub(crate) fn bare_type(param: &Param) -> &str {
    param.ptx_type.trim_start_matches('.')
}
