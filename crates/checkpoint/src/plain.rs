//! Numbers, flags and texts as [`Storable`]s.
//!
//! Unsigned numbers take seven bits a byte, `u8` a byte; signed ones alternate (0, -1, 1, -2, ...), so that
//! small ones are short.

use std::sync::Arc;

use super::{LoadFault, StateReader, StateWriter, Storable};

macro_rules! unsigned {
    ($($number:ty),*) => {$(
        impl Storable for $number {
            fn save(&self, out: &mut StateWriter) {
                out.word(*self as u64);
            }

            fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
                let word = from.word()?;
                <$number>::try_from(word)
                    .map_err(|_| LoadFault::new(format!("{word} where a number of {} bits is expected", <$number>::BITS)))
            }
        }
    )*};
}

unsigned!(u16, u32, u64, usize);

impl Storable for u8 {
    fn save(&self, out: &mut StateWriter) {
        out.bytes(&[*self]);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Ok(from.bytes(1)?[0])
    }

    fn save_all(all: &[Self], out: &mut StateWriter) {
        out.bytes(all);
    }

    fn read_all(count: usize, from: &mut StateReader<'_>) -> Result<Vec<Self>, LoadFault> {
        Ok(from.bytes(count)?.to_vec())
    }
}

impl Storable for u128 {
    fn save(&self, out: &mut StateWriter) {
        out.word(*self as u64);
        out.word((*self >> 64) as u64);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let low = u128::from(from.word()?);
        Ok(low | u128::from(from.word()?) << 64)
    }
}

impl Storable for i64 {
    fn save(&self, out: &mut StateWriter) {
        out.word((*self << 1 ^ *self >> 63) as u64);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let word = from.word()?;
        Ok((word >> 1) as i64 ^ -((word & 1) as i64))
    }
}

macro_rules! signed {
    ($($number:ty),*) => {$(
        impl Storable for $number {
            fn save(&self, out: &mut StateWriter) {
                i64::from(*self).save(out);
            }

            fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
                let wide = i64::read(from)?;
                <$number>::try_from(wide)
                    .map_err(|_| LoadFault::new(format!("{wide} where a number of {} bits is expected", <$number>::BITS)))
            }
        }
    )*};
}

signed!(i16, i32);

impl Storable for bool {
    fn save(&self, out: &mut StateWriter) {
        out.bytes(&[u8::from(*self)]);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        match from.bytes(1)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(LoadFault::new(format!("{other} where a flag is expected"))),
        }
    }
}

impl Storable for () {
    fn save(&self, _: &mut StateWriter) {}

    fn read(_: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Ok(())
    }
}

impl Storable for String {
    fn save(&self, out: &mut StateWriter) {
        out.word(self.len() as u64);
        out.bytes(self.as_bytes());
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let count = from.count()?;
        String::from_utf8(from.bytes(count)?.to_vec()).map_err(|_| LoadFault::new("bytes that are no text"))
    }
}

impl Storable for Arc<str> {
    fn save(&self, out: &mut StateWriter) {
        out.word(self.len() as u64);
        out.bytes(self.as_bytes());
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        String::read(from).map(Arc::from)
    }
}
