//! Data files: raw little-endian elements, or NumPy's `.npy` (format 1 to 3, C order, little-endian).
//!
//! A `.npy` header is a Python dictionary of three known keys; only these are understood. The shape is
//! flattened.

use std::path::Path;

use crate::manifest::buffers::Buffer;
use crate::manifest::element::elem_name;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_kernel::ir::Elem;

const MAGIC: &[u8] = b"\x93NUMPY";

/// The elements' bytes of a file's content, which may be of either form.
///
/// # Errors
/// What is wrong with the file, or that its elements are not of type `elem`.
pub(crate) fn elements(content: Vec<u8>, elem: Elem) -> Result<Vec<u8>, String> {
    let data = match npy(&content)? {
        None => return whole_elements(content, elem),
        Some((descr, data)) => {
            let wanted = npy_type(elem);
            let found = descr.trim_start_matches(['<', '|', '=']);
            if descr.starts_with('>') || found != wanted {
                let name = elem_name(elem);
                return Err(format!("the .npy elements are `{descr}`, the buffer's are `<{wanted}` ({name})"));
            }
            data.to_vec()
        }
    };
    whole_elements(data, elem)
}

/// The bytes of an input file for a buffer.
pub(crate) fn input_bytes(path: &Path, buffer: &Buffer) -> Result<Vec<u8>, Diagnostic> {
    let shown = format!("--input {}={}", buffer.name, path.display());
    let fault = |message: String| Diagnostic::nowhere(&shown, message);
    let content =
        durawarp_base::input::bytes(path, u64::MAX).map_err(|error| fault(format!("cannot read the file: {error}")))?;
    if buffer.is_structured() {
        return Ok(content);
    }
    elements(content, buffer.fields[0].elem).map_err(fault)
}

fn whole_elements(data: Vec<u8>, elem: Elem) -> Result<Vec<u8>, String> {
    let bytes = elem.bytes() as usize;
    if !data.len().is_multiple_of(bytes) {
        return Err(format!("{} bytes are no whole number of {} elements of {bytes}", data.len(), elem_name(elem)));
    }
    Ok(data)
}

fn npy_type(elem: Elem) -> &'static str {
    match elem {
        Elem::U8 => "u1",
        Elem::S8 => "i1",
        Elem::U16 => "u2",
        Elem::S16 => "i2",
        Elem::U32 => "u4",
        Elem::S32 => "i4",
        Elem::U64 => "u8",
        Elem::S64 => "i8",
        Elem::F32 => "f4",
        Elem::F64 => "f8",
    }
}

/// Element type and data of a `.npy` content; `None` if it is none.
fn npy(content: &[u8]) -> Result<Option<(&str, &[u8])>, String> {
    let Some(rest) = content.strip_prefix(MAGIC) else {
        return Ok(None);
    };
    let broken = || "the .npy header is broken".to_owned();
    let (length, start) = match (rest.first(), rest.len()) {
        (Some(1), 4..) => (usize::from(u16::from_le_bytes([rest[2], rest[3]])), 4),
        (Some(2 | 3), 6..) => (u32::from_le_bytes([rest[2], rest[3], rest[4], rest[5]]) as usize, 6),
        _ => return Err(broken()),
    };
    let header = rest.get(start..start + length).ok_or_else(broken)?;
    let header = std::str::from_utf8(header).map_err(|_| broken())?;
    let value = |key: &str| {
        let after = header.split_once(&format!("'{key}'"))?.1.trim_start().strip_prefix(':')?.trim_start();
        Some(after)
    };
    let descr = value("descr").and_then(|v| v.strip_prefix('\'')).and_then(|v| v.split('\'').next());
    let Some(descr) = descr else {
        return Err("the .npy elements are structures, which is not supported".to_owned());
    };
    if value("fortran_order").is_none_or(|v| !v.starts_with("False")) {
        return Err("the .npy array is in Fortran order: save `numpy.ascontiguousarray(a)`".to_owned());
    }
    Ok(Some((descr, &rest[start + length..])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy_of(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([1, 0]);
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn a_npy_file_gives_its_data() {
        let file = npy_of("{'descr': '<u4', 'fortran_order': False, 'shape': (2,), }\n", &[1, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(elements(file, Elem::U32).unwrap(), [1, 0, 0, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn a_npy_file_of_another_type_or_order_is_refused() {
        let check = |header: &str, expected: &str| {
            assert_eq!(elements(npy_of(header, &[0; 8]), Elem::U32), Err(expected.to_owned()));
        };
        check(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
            "the .npy elements are `<f4`, the buffer's are `<u4` (u32)",
        );
        check(
            "{'descr': '<u4', 'fortran_order': True, 'shape': (1, 2), }\n",
            "the .npy array is in Fortran order: save `numpy.ascontiguousarray(a)`",
        );
        check("{'descr': [('a', '<u4')], ", "the .npy elements are structures, which is not supported");
    }

    #[test]
    fn raw_bytes_are_whole_elements() {
        assert_eq!(elements(vec![1, 2, 3, 4], Elem::S16).unwrap(), [1, 2, 3, 4]);
        assert!(elements(vec![1, 2, 3], Elem::S16).is_err());
    }

    #[test]
    fn a_cut_header_is_told() {
        assert_eq!(elements(MAGIC.to_vec(), Elem::U8), Err("the .npy header is broken".to_owned()));
        assert!(elements(npy_of("{'descr'", &[]), Elem::U8).is_err());
    }
}
