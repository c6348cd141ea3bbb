//! Collections as [`Value`]s, and parts of parts as [`State`].
//!
//! Maps by hash are written in the order of their keys. A list of parts is loaded place by place: the machine
//! says how many there are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::hash::Hash;

use hashbrown::HashMap;
use slab::Slab;
use smallvec::{Array, SmallVec};

use super::{Fault, Reader, State, Value, Writer};

impl<T: Value> Value for Option<T> {
    fn save(&self, out: &mut Writer) {
        self.is_some().save(out);
        self.iter().for_each(|value| value.save(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(if bool::read(from)? { Some(T::read(from)?) } else { None })
    }
}

impl<T: Value> Value for Box<T> {
    fn save(&self, out: &mut Writer) {
        (**self).save(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        T::read(from).map(Box::new)
    }
}

impl<T: Value> Value for Reverse<T> {
    fn save(&self, out: &mut Writer) {
        self.0.save(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        T::read(from).map(Reverse)
    }
}

impl<T: Value, const N: usize> Value for [T; N] {
    fn save(&self, out: &mut Writer) {
        T::save_all(self, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let values = T::read_all(N, from)?;
        values.try_into().map_err(|values: Vec<T>| Fault::length(values.len(), N))
    }
}

macro_rules! lists {
    ($([$($bound:tt)*] $list:ty: $item:ty;)*) => {$(
        impl<$($bound)*> Value for $list
        where
            $item: Value,
        {
            fn save(&self, out: &mut Writer) {
                out.word(self.len() as u64);
                self.iter().for_each(|value| value.save(out));
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
                let count = from.count()?;
                Ok(<$item>::read_all(count, from)?.into_iter().collect())
            }
        }
    )*};
}

lists! {
    [T] VecDeque<T>: T;
    [A: Array] SmallVec<A>: A::Item;
    [T: Ord] BTreeSet<T>: T;
}

impl<T: Value> Value for Vec<T> {
    fn save(&self, out: &mut Writer) {
        out.word(self.len() as u64);
        T::save_all(self, out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let count = from.count()?;
        T::read_all(count, from)
    }
}

/// In the order of their values: of equal ones it does not matter which comes first.
impl<T: Value + Ord> Value for BinaryHeap<T> {
    fn save(&self, out: &mut Writer) {
        let mut sorted: Vec<&T> = self.iter().collect();
        sorted.sort_unstable();
        out.word(sorted.len() as u64);
        sorted.into_iter().for_each(|value| value.save(out));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        Vec::read(from).map(BinaryHeap::from)
    }
}

impl<K: Value + Ord, V: Value> Value for BTreeMap<K, V> {
    fn save(&self, out: &mut Writer) {
        out.word(self.len() as u64);
        for (key, value) in self {
            key.save(out);
            value.save(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let count = from.count()?;
        (0..count).map(|_| Ok((K::read(from)?, V::read(from)?))).collect()
    }
}

impl<K: Value + Ord + Hash, V: Value> Value for HashMap<K, V> {
    fn save(&self, out: &mut Writer) {
        let mut sorted: Vec<(&K, &V)> = self.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        out.word(sorted.len() as u64);
        for (key, value) in sorted {
            key.save(out);
            value.save(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let count = from.count()?;
        (0..count).map(|_| Ok((K::read(from)?, V::read(from)?))).collect()
    }
}

/// Values stay in their places. Which place the next one gets is not saved: nothing may depend on it.
impl<T: Value> Value for Slab<T> {
    fn save(&self, out: &mut Writer) {
        out.word(self.len() as u64);
        for (place, value) in self {
            place.save(out);
            value.save(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        let count = from.count()?;
        (0..count).map(|_| Ok((usize::read(from)?, T::read(from)?))).collect()
    }
}

macro_rules! tuples {
    ($(($($name:ident),*);)*) => {$(
        impl<$($name: Value),*> Value for ($($name,)*) {
            #[allow(non_snake_case, reason = "fields are called as their types")]
            fn save(&self, out: &mut Writer) {
                let ($($name,)*) = self;
                $($name.save(out);)*
            }

            fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
                Ok(($($name::read(from)?,)*))
            }
        }
    )*};
}

tuples! { (A, B); (A, B, C); (A, B, C, D); }

impl<T: State + ?Sized> State for Box<T> {
    fn save(&self, out: &mut Writer) {
        (**self).save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        (**self).load(from)
    }
}

/// Whether there is a part follows from the configuration.
impl<T: State> State for Option<T> {
    fn save(&self, out: &mut Writer) {
        self.is_some().save(out);
        self.iter().for_each(|part| part.save(out));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        match (bool::read(from)?, self) {
            (true, Some(part)) => part.load(from),
            (false, None) => Ok(()),
            (true, None) => Err(Fault::new("was saved, and this machine has none")),
            (false, Some(_)) => Err(Fault::new("was not saved, and this machine has one")),
        }
    }
}

impl<T: State> State for [T] {
    fn save(&self, out: &mut Writer) {
        out.word(self.len() as u64);
        self.iter().for_each(|part| part.save(out));
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        let count = from.word()? as usize;
        if count != self.len() {
            return Err(Fault::length(count, self.len()));
        }
        let mut parts = self.iter_mut().enumerate();
        parts.try_for_each(|(nth, part)| part.load(from).map_err(|fault| fault.within(format!("[{nth}]"))))
    }
}

impl<T: State> State for Vec<T> {
    fn save(&self, out: &mut Writer) {
        self.as_slice().save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        self.as_mut_slice().load(from)
    }
}

impl<T: State, const N: usize> State for [T; N] {
    fn save(&self, out: &mut Writer) {
        self.as_slice().save(out);
    }

    fn load(&mut self, from: &mut Reader<'_>) -> Result<(), Fault> {
        self.as_mut_slice().load(from)
    }
}
