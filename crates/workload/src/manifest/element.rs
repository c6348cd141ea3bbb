//! Types of elements, and elements as bytes: little-endian, stored with a range check, loaded as the kind of
//! their type.

use crate::expr::{Type, Value};
use durawarp_kernel::ir::Elem;

/// Kind of the values of an element type.
pub(crate) fn type_of(elem: Elem) -> Type {
    match elem {
        Elem::F32 | Elem::F64 => Type::Float,
        _ => Type::Int,
    }
}

/// An element type by its name in the manifest.
pub(crate) fn elem_of(name: &str) -> Option<Elem> {
    Some(match name {
        "u8" => Elem::U8,
        "i8" | "s8" => Elem::S8,
        "u16" => Elem::U16,
        "i16" | "s16" => Elem::S16,
        "u32" => Elem::U32,
        "i32" | "s32" => Elem::S32,
        "u64" => Elem::U64,
        "i64" | "s64" => Elem::S64,
        "f32" => Elem::F32,
        "f64" => Elem::F64,
        _ => return None,
    })
}

/// The name of an element type in the manifest.
pub(crate) fn elem_name(elem: Elem) -> &'static str {
    match elem {
        Elem::U8 => "u8",
        Elem::S8 => "i8",
        Elem::U16 => "u16",
        Elem::S16 => "i16",
        Elem::U32 => "u32",
        Elem::S32 => "i32",
        Elem::U64 => "u64",
        Elem::S64 => "i64",
        Elem::F32 => "f32",
        Elem::F64 => "f64",
    }
}

/// Stores `value` into the first bytes of `to`; a float is rounded to the nearest `f32` where that is the
/// type.
///
/// # Errors
/// Why the type cannot hold the value.
#[inline(always)]
pub(crate) fn store(elem: Elem, value: Value, to: &mut [u8]) -> Result<(), String> {
    let integer = match (elem, value) {
        (Elem::F32, value) => {
            let (wide, narrow) = (value.as_f64(), value.as_f64() as f32);
            if wide.is_finite() && !narrow.is_finite() {
                return Err(format!("{value} is too large for f32"));
            }
            to[..4].copy_from_slice(&narrow.to_le_bytes());
            return Ok(());
        }
        (Elem::F64, value) => {
            to[..8].copy_from_slice(&value.as_f64().to_le_bytes());
            return Ok(());
        }
        (_, Value::Int(integer)) => integer,
        (_, Value::Float(_)) => return Err(format!("{value} is a float, {} is not", elem_name(elem))),
    };
    let bits = 8 * elem.bytes();
    let (least, most) = match elem {
        // A value is an `i64`: the upper half of `u64` cannot be written.
        Elem::U64 => (0, i64::MAX),
        Elem::U8 | Elem::U16 | Elem::U32 => (0, (1 << bits) - 1),
        _ => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
    };
    if integer < least || integer > most {
        return Err(format!("{integer} does not fit {} ({least} to {most})", elem_name(elem)));
    }
    let bytes = elem.bytes() as usize;
    to[..bytes].copy_from_slice(&integer.to_le_bytes()[..bytes]);
    Ok(())
}

/// Loads the element in the first bytes of `from`.
///
/// # Errors
/// A `u64` above the largest `i64`.
pub(crate) fn load(elem: Elem, from: &[u8]) -> Result<Value, u64> {
    fn first<const N: usize>(from: &[u8]) -> [u8; N] {
        from[..N].try_into().expect("an element's bytes")
    }
    Ok(Value::Int(match elem {
        Elem::U8 => i64::from(from[0]),
        Elem::S8 => i64::from(from[0] as i8),
        Elem::U16 => i64::from(u16::from_le_bytes(first(from))),
        Elem::S16 => i64::from(i16::from_le_bytes(first(from))),
        Elem::U32 => i64::from(u32::from_le_bytes(first(from))),
        Elem::S32 => i64::from(i32::from_le_bytes(first(from))),
        Elem::S64 => i64::from_le_bytes(first(from)),
        Elem::U64 => {
            let value = u64::from_le_bytes(first(from));
            i64::try_from(value).map_err(|_| value)?
        }
        Elem::F32 => return Ok(Value::Float(f64::from(f32::from_le_bytes(first(from))))),
        Elem::F64 => return Ok(Value::Float(f64::from_le_bytes(first(from)))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_every_integer_type_fit_and_one_beyond_does_not() {
        let types = [
            (Elem::U8, 0, 255),
            (Elem::S8, -128, 127),
            (Elem::U16, 0, 65_535),
            (Elem::S16, -32_768, 32_767),
            (Elem::U32, 0, 4_294_967_295),
            (Elem::S32, -2_147_483_648, 2_147_483_647),
        ];
        for (elem, least, most) in types {
            let mut bytes = [0; 8];
            for value in [least, most] {
                store(elem, Value::Int(value), &mut bytes).unwrap();
                assert_eq!(load(elem, &bytes), Ok(Value::Int(value)));
            }
            for value in [least - 1, most + 1] {
                store(elem, Value::Int(value), &mut bytes).unwrap_err();
            }
        }
    }

    #[test]
    fn a_u64_beyond_the_largest_integer_is_told() {
        assert_eq!(load(Elem::U64, &u64::MAX.to_le_bytes()), Err(u64::MAX));
    }

    #[test]
    fn floats_round_to_the_type_and_do_not_become_infinite() {
        let mut bytes = [0; 8];
        store(Elem::F32, Value::Float(0.1), &mut bytes).unwrap();
        assert_eq!(load(Elem::F32, &bytes), Ok(Value::Float(f64::from(0.1_f32))));
        assert_eq!(store(Elem::F32, Value::Float(1e39), &mut bytes), Err("1e39 is too large for f32".to_owned()));
    }
}
