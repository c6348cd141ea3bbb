//! The state of a machine between two events as bytes, and back.
//!
//! ```text
//!   machine ── Stateful::save ──> Writer ──> bytes ──> Reader ── Stateful::load ──> a machine that was assembled anew
//!               Storable::save                              Storable::read
//! ```
//! Loading is *in place*: the machine is assembled from its configuration first, and only what changes while
//! it runs is saved and loaded. Sizes, links, programs and parameters are never written. [`Stateful`] is for
//! what is loaded in place, [`Storable`] for plain data that is made anew. `state!` and `value!` take a
//! type's fields one by one; a field that they do not name is a compile error.
//!
//! Invariants: the same state gives the same bytes, at any number of threads; reading never panics, whatever
//! the bytes are. A part that cannot be saved refuses ([`StateWriter::refuse`]); the bytes mean nothing then.
//!
//! Not here: files (`run::checkpoint`). The bytes fit the build that wrote them, and no other.

#![warn(missing_docs)]

mod collections;
mod plain;
mod shape;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What keeps bytes from becoming a machine's state: what was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFault {
    what: String,
    /// From the innermost place outwards.
    places: Vec<String>,
}

impl LoadFault {
    /// A fault, at a place that its callers add.
    pub fn new(what: impl Into<String>) -> LoadFault {
        LoadFault { what: what.into(), places: Vec::new() }
    }

    /// The same, inside of something.
    #[must_use]
    pub fn within(mut self, place: impl Into<String>) -> LoadFault {
        self.places.push(place.into());
        self
    }

    /// Something has another length than the configuration gives it.
    pub fn length(found: usize, expected: usize) -> LoadFault {
        LoadFault::new(format!("{found} entries were saved, and this machine has {expected}"))
    }
}

impl fmt::Display for LoadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places: Vec<&str> = self.places.iter().rev().map(String::as_str).collect();
        if places.is_empty() { f.write_str(&self.what) } else { write!(f, "{}: {}", places.join("."), self.what) }
    }
}

impl std::error::Error for LoadFault {}

/// What saving and loading need to know beside the bytes, by type: which programs run, which scheme reads its
/// messages.
#[derive(Debug, Default)]
pub struct Context(Vec<Arc<dyn Any + Send + Sync>>);

impl Context {
    /// Adds something that parts look up by its type.
    pub fn provide<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.push(Arc::new(value));
    }

    fn of<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| value.downcast_ref())
    }
}

/// Takes in state as bytes.
#[derive(Debug, Default)]
pub struct StateWriter {
    bytes: Vec<u8>,
    refusal: Option<String>,
    context: Context,
}

impl StateWriter {
    /// Nothing saved yet.
    pub fn new(context: Context) -> StateWriter {
        StateWriter { bytes: Vec::new(), refusal: None, context }
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A whole number: seven bits a byte, the low ones first. 1 byte below 128.
    #[inline]
    pub fn word(&mut self, mut word: u64) {
        while word >= 0x80 {
            self.bytes.push(word as u8 | 0x80);
            word >>= 7;
        }
        self.bytes.push(word as u8);
    }

    /// Says that something cannot be saved. The first to say so is reported.
    pub fn refuse(&mut self, why: impl Into<String>) {
        self.refusal.get_or_insert_with(|| why.into());
    }

    /// What [`Context::provide`] was given of this type.
    pub fn known<T: Any>(&self) -> Option<&T> {
        self.context.of()
    }

    /// All that was saved.
    ///
    /// # Errors
    /// Something refused.
    pub fn finish(self) -> Result<Vec<u8>, LoadFault> {
        match self.refusal {
            Some(why) => Err(LoadFault::new(why)),
            None => Ok(self.bytes),
        }
    }
}

/// Hands out state that was saved, in the same order.
#[derive(Debug)]
pub struct StateReader<'a> {
    bytes: &'a [u8],
    context: Context,
}

impl<'a> StateReader<'a> {
    /// Everything is still to be read.
    pub fn new(bytes: &'a [u8], context: Context) -> StateReader<'a> {
        StateReader { bytes, context }
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// Fewer are left.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], LoadFault> {
        let Some((taken, rest)) = self.bytes.split_at_checked(count) else {
            return Err(LoadFault::new(format!("{count} bytes are expected, and {} are left", self.bytes.len())));
        };
        self.bytes = rest;
        Ok(taken)
    }

    /// A whole number.
    ///
    /// # Errors
    /// It does not fit 64 bits; the bytes end in it.
    #[inline]
    pub fn word(&mut self) -> Result<u64, LoadFault> {
        // Most are: tables of machines that hardly ran are megabytes of zeros.
        if let &[byte @ 0..0x80, ref left @ ..] = self.bytes {
            self.bytes = left;
            return Ok(u64::from(byte));
        }
        self.long_word()
    }

    /// A whole number of several bytes.
    fn long_word(&mut self) -> Result<u64, LoadFault> {
        let mut word = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            word |= bits << shift;
            if byte < 0x80 {
                return Ok(word);
            }
        }
        Err(LoadFault::new("a number of more than 64 bits"))
    }

    /// How many values follow.
    ///
    /// # Errors
    /// More than there are bytes left, of which each value takes one at least.
    pub fn count(&mut self) -> Result<usize, LoadFault> {
        let count = self.word()?;
        match usize::try_from(count) {
            Ok(fits) if fits <= self.bytes.len() => Ok(fits),
            _ => Err(LoadFault::new(format!("{count} values are announced, and {} bytes are left", self.bytes.len()))),
        }
    }

    /// Makes something known to the parts that are read from now on.
    pub fn provide<T: Any + Send + Sync>(&mut self, value: T) {
        self.context.provide(value);
    }

    /// What was made known of this type.
    pub fn known<T: Any>(&self) -> Option<&T> {
        self.context.of()
    }

    /// Checks that all was read.
    ///
    /// # Errors
    /// Bytes are left.
    pub fn end(&self) -> Result<(), LoadFault> {
        match self.bytes.len() {
            0 => Ok(()),
            left => Err(LoadFault::new(format!("{left} bytes are left"))),
        }
    }
}

/// What has a place in an assembled machine, and state that changes while it runs.
pub trait Stateful {
    /// Writes what changes.
    fn save(&self, out: &mut StateWriter);

    /// Takes over what was saved of a part like this one.
    ///
    /// # Errors
    /// The bytes are of something else. The part is of no use then.
    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault>;
}

/// Plain data, which is made anew.
pub trait Storable: Sized {
    /// Writes all of it.
    fn save(&self, out: &mut StateWriter);

    /// Reads what [`Storable::save`] wrote.
    ///
    /// # Errors
    /// The bytes are of something else.
    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault>;

    /// Several of them, one after the other; not how many.
    fn save_all(all: &[Self], out: &mut StateWriter) {
        all.iter().for_each(|value| value.save(out));
    }

    /// So many of them.
    ///
    /// # Errors
    /// As [`Storable::read`].
    fn read_all(count: usize, from: &mut StateReader<'_>) -> Result<Vec<Self>, LoadFault> {
        (0..count).map(|nth| Self::read(from).map_err(|fault| fault.within(format!("[{nth}]")))).collect()
    }
}

/// Data that several parts of a state point at.
pub trait SharedState: Sized {
    /// Writes it, or what finds it again.
    fn save_shared(this: &Arc<Self>, out: &mut StateWriter);

    /// Reads what [`SharedState::save_shared`] wrote.
    ///
    /// # Errors
    /// The bytes are of something else, or what they name is not there.
    fn read_shared(from: &mut StateReader<'_>) -> Result<Arc<Self>, LoadFault>;
}

impl<T: SharedState> Storable for Arc<T> {
    fn save(&self, out: &mut StateWriter) {
        T::save_shared(self, out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        T::read_shared(from)
    }
}

/// Loads values into a place whose length the configuration gives.
///
/// # Errors
/// Another length was saved.
pub fn load_sized<T: Storable>(place: &mut [T], from: &mut StateReader<'_>) -> Result<(), LoadFault> {
    let count = from.count()?;
    if count != place.len() {
        return Err(LoadFault::length(count, place.len()));
    }
    for (into, value) in place.iter_mut().zip(T::read_all(count, from)?) {
        *into = value;
    }
    Ok(())
}

/// Saves values for [`load_sized`].
pub fn save_sized<T: Storable>(place: &[T], out: &mut StateWriter) {
    out.word(place.len() as u64);
    T::save_all(place, out);
}

#[cfg(test)]
mod tests;
