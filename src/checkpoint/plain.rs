//! Numbers, flags and texts as [`Value`]s.
//!
//! Unsigned numbers take seven bits a byte, `u8` a byte; signed ones alternate (0, -1, 1, -2, ...), so that
//! small ones are short.

use std::sync::Arc;

use super::{Fault, Reader, Value, Writer};

macro_rules! unsigned {
    ($($number:ty),*) => {$(
        impl Value for $number {
            fn save(&self, out: &mut Writer) {
                out.word(*self as u64);
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
                let word = from.word()?;
                <$number>::try_from(word)
                    .map_err(|_| Fault::new(format!("{word} where a number of {} bits is expected", <$number>::BITS)))
            }
        }
    )*};
}

unsigned!(u16, u32, u64, usize);

impl Value for u8 {
    fn save(&self, out: &mut Writer) {
        out.bytes(&[*self]);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(from.bytes(1)?[0])
    }

    fn save_all(all: &[Self], out: &mut Writer) {
        out.bytes(all);
    }

    fn read_all(count: usize, from: &mut Reader<'_>) -> Result<Vec<Self>, Fault> {
        Ok(from.bytes(count)?.to_vec())
    }
}

impl Value for u128 {
    fn save(&self, out: &mut Writer) {
        out.word(*self as u64);
        out.word((*self >> 64) as u64);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let low = u128::from(from.word()?);
        Ok(low | u128::from(from.word()?) << 64)
    }
}

impl Value for i64 {
    fn save(&self, out: &mut Writer) {
        out.word((*self << 1 ^ *self >> 63) as u64);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let word = from.word()?;
        Ok((word >> 1) as i64 ^ -((word & 1) as i64))
    }
}

impl Value for i32 {
    fn save(&self, out: &mut Writer) {
        i64::from(*self).save(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let wide = i64::read(from)?;
        i32::try_from(wide).map_err(|_| Fault::new(format!("{wide} where a number of 32 bits is expected")))
    }
}

impl Value for bool {
    fn save(&self, out: &mut Writer) {
        out.bytes(&[u8::from(*self)]);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        match from.bytes(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Fault::new(format!("{other} where a flag is expected"))),
        }
    }
}

impl Value for () {
    fn save(&self, _: &mut Writer) {}

    fn read(_: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(())
    }
}

impl Value for String {
    fn save(&self, out: &mut Writer) {
        out.word(self.len() as u64);
        out.bytes(self.as_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let count = from.count()?;
        String::from_utf8(from.bytes(count)?.to_vec()).map_err(|_| Fault::new("bytes that are no text"))
    }
}

impl Value for Arc<str> {
    fn save(&self, out: &mut Writer) {
        out.word(self.len() as u64);
        out.bytes(self.as_bytes());
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        String::read(from).map(Arc::from)
    }
}
