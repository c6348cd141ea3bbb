//! Collections as [`Storable`]s, and parts of parts as [`Stateful`].
//!
//! Maps by hash are written in the order of their keys. A list of parts is loaded place by place: the machine
//! says how many there are.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;
use slab::Slab;
use smallvec::{Array, SmallVec};

use super::{LoadFault, SharedState, StateReader, StateWriter, Stateful, Storable};

impl<T: Storable> Storable for Option<T> {
    fn save(&self, out: &mut StateWriter) {
        self.is_some().save(out);
        self.iter().for_each(|value| value.save(out));
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Ok(if bool::read(from)? { Some(T::read(from)?) } else { None })
    }
}

impl<T: Storable> Storable for Box<T> {
    fn save(&self, out: &mut StateWriter) {
        (**self).save(out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        T::read(from).map(Box::new)
    }
}

impl<T: Storable> Storable for Range<T> {
    fn save(&self, out: &mut StateWriter) {
        self.start.save(out);
        self.end.save(out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Ok(T::read(from)?..T::read(from)?)
    }
}

impl<T: Storable> Storable for Reverse<T> {
    fn save(&self, out: &mut StateWriter) {
        self.0.save(out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        T::read(from).map(Reverse)
    }
}

impl<T: Storable, const N: usize> Storable for [T; N] {
    fn save(&self, out: &mut StateWriter) {
        T::save_all(self, out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let values = T::read_all(N, from)?;
        values.try_into().map_err(|values: Vec<T>| LoadFault::length(values.len(), N))
    }
}

macro_rules! lists {
    ($([$($bound:tt)*] $list:ty: $item:ty;)*) => {$(
        impl<$($bound)*> Storable for $list
        where
            $item: Storable,
        {
            fn save(&self, out: &mut StateWriter) {
                out.word(self.len() as u64);
                self.iter().for_each(|value| value.save(out));
            }

            fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
                let count = from.count()?;
                Ok(<$item>::read_all(count, from)?.into_iter().collect())
            }
        }
    )*};
}

lists! {
    [T] VecDeque<T>: T;
    [T] Box<[T]>: T;
    [A: Array] SmallVec<A>: A::Item;
    [T: Ord] BTreeSet<T>: T;
}

impl<T: Storable> Storable for Vec<T> {
    fn save(&self, out: &mut StateWriter) {
        out.word(self.len() as u64);
        T::save_all(self, out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let count = from.count()?;
        T::read_all(count, from)
    }
}

/// Bytes that are shared are written as often as they are pointed at.
impl SharedState for Vec<u8> {
    fn save_shared(this: &Arc<Self>, out: &mut StateWriter) {
        (**this).save(out);
    }

    fn read_shared(from: &mut StateReader<'_>) -> Result<Arc<Self>, LoadFault> {
        Vec::read(from).map(Arc::new)
    }
}

/// In the order of their values: of equal ones it does not matter which comes first.
impl<T: Storable + Ord> Storable for BinaryHeap<T> {
    fn save(&self, out: &mut StateWriter) {
        let mut sorted: Vec<&T> = self.iter().collect();
        sorted.sort_unstable();
        out.word(sorted.len() as u64);
        sorted.into_iter().for_each(|value| value.save(out));
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        Vec::read(from).map(BinaryHeap::from)
    }
}

impl<K: Storable + Ord, V: Storable> Storable for BTreeMap<K, V> {
    fn save(&self, out: &mut StateWriter) {
        out.word(self.len() as u64);
        for (key, value) in self {
            key.save(out);
            value.save(out);
        }
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let count = from.count()?;
        (0..count).map(|_| Ok((K::read(from)?, V::read(from)?))).collect()
    }
}

impl<K: Storable + Ord + Hash, V: Storable> Storable for HashMap<K, V> {
    fn save(&self, out: &mut StateWriter) {
        let mut sorted: Vec<(&K, &V)> = self.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        out.word(sorted.len() as u64);
        for (key, value) in sorted {
            key.save(out);
            value.save(out);
        }
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let count = from.count()?;
        (0..count).map(|_| Ok((K::read(from)?, V::read(from)?))).collect()
    }
}

/// Values stay in their places. Which place the next one gets is not saved: nothing may depend on it.
impl<T: Storable> Storable for Slab<T> {
    fn save(&self, out: &mut StateWriter) {
        out.word(self.len() as u64);
        for (place, value) in self {
            place.save(out);
            value.save(out);
        }
    }

    fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
        let count = from.count()?;
        (0..count).map(|_| Ok((usize::read(from)?, T::read(from)?))).collect()
    }
}

macro_rules! tuples {
    ($(($($name:ident),*);)*) => {$(
        impl<$($name: Storable),*> Storable for ($($name,)*) {
            #[allow(non_snake_case, reason = "fields are called as their types")]
            fn save(&self, out: &mut StateWriter) {
                let ($($name,)*) = self;
                $($name.save(out);)*
            }

            fn read(from: &mut StateReader<'_>) -> Result<Self, LoadFault> {
                Ok(($($name::read(from)?,)*))
            }
        }
    )*};
}

tuples! { (A, B); (A, B, C); (A, B, C, D); }

impl<T: Stateful + ?Sized> Stateful for Box<T> {
    fn save(&self, out: &mut StateWriter) {
        (**self).save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        (**self).load(from)
    }
}

/// Whether there is a part follows from the configuration.
impl<T: Stateful> Stateful for Option<T> {
    fn save(&self, out: &mut StateWriter) {
        self.is_some().save(out);
        self.iter().for_each(|part| part.save(out));
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        match (bool::read(from)?, self) {
            (true, Some(part)) => part.load(from),
            (false, None) => Ok(()),
            (true, None) => Err(LoadFault::new("was saved, and this machine has none")),
            (false, Some(_)) => Err(LoadFault::new("was not saved, and this machine has one")),
        }
    }
}

impl<T: Stateful> Stateful for [T] {
    fn save(&self, out: &mut StateWriter) {
        out.word(self.len() as u64);
        self.iter().for_each(|part| part.save(out));
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        let count = from.word()? as usize;
        if count != self.len() {
            return Err(LoadFault::length(count, self.len()));
        }
        let mut parts = self.iter_mut().enumerate();
        parts.try_for_each(|(nth, part)| part.load(from).map_err(|fault| fault.within(format!("[{nth}]"))))
    }
}

impl<T: Stateful> Stateful for Vec<T> {
    fn save(&self, out: &mut StateWriter) {
        self.as_slice().save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        self.as_mut_slice().load(from)
    }
}

impl<T: Stateful, const N: usize> Stateful for [T; N] {
    fn save(&self, out: &mut StateWriter) {
        self.as_slice().save(out);
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        self.as_mut_slice().load(from)
    }
}
