//! What is read back is what was saved; what was not saved is refused and not taken.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt::Debug;

use hashbrown::HashMap;
use proptest::prelude::*;
use smallvec::SmallVec;

use super::*;

fn bytes_of(value: &impl Storable) -> Vec<u8> {
    let mut out = StateWriter::default();
    value.save(&mut out);
    out.finish().expect("nothing refuses")
}

fn read<T: Storable>(bytes: &[u8]) -> Result<T, LoadFault> {
    let mut from = StateReader::new(bytes, Context::default());
    let value = T::read(&mut from)?;
    from.end()?;
    Ok(value)
}

/// Read back it is the same, and no shorter text is taken for it.
fn check<T: Storable + PartialEq + Debug>(value: T) {
    let bytes = bytes_of(&value);
    assert_eq!(read::<T>(&bytes).as_ref(), Ok(&value));
    for shorter in 0..bytes.len() {
        assert!(read::<T>(&bytes[..shorter]).is_err(), "{shorter} bytes of {value:?}");
    }
}

#[derive(Debug, PartialEq)]
enum Shape {
    Nothing,
    Pair(u8, Vec<u32>),
    Named { wide: u128, of: Option<String> },
}
value!(choice Shape { Nothing, Pair(left, right), Named { wide, of } });

#[derive(Debug, PartialEq, Default)]
struct Piece {
    queue: VecDeque<u16>,
    table: Vec<u64>,
    capacity: usize,
}
state!(Piece { saved: queue; sized: table; kept: capacity });

#[derive(Debug, PartialEq, Default)]
struct Assembled {
    parts: Vec<Piece>,
    extra: Option<Box<Piece>>,
    count: i64,
}
state!(Assembled { parts: parts, extra; saved: count });

proptest! {
    #[test]
    fn numbers_and_lists_come_back(
        words in prop::collection::vec(any::<u64>(), 0..20), wide: u128, signed: i64, flag: bool, text: String
    ) {
        check(words.clone());
        check((wide, signed, flag, text));
        check(words.iter().copied().collect::<VecDeque<_>>());
        check(words.iter().copied().collect::<BTreeSet<_>>());
        check(words.iter().copied().collect::<SmallVec<[u64; 4]>>());
        check(words.iter().map(|word| (*word, *word as u16)).collect::<BTreeMap<_, _>>());
        let heap: BinaryHeap<u64> = words.iter().copied().collect();
        prop_assert_eq!(read::<BinaryHeap<u64>>(&bytes_of(&heap)).unwrap().into_sorted_vec(), heap.into_sorted_vec());
        let one: HashMap<u64, u8> = words.iter().map(|word| (*word, 1)).collect();
        let other: HashMap<u64, u8> = words.iter().rev().map(|word| (*word, 1)).collect();
        prop_assert_eq!(bytes_of(&one), bytes_of(&other), "the order of keys is that of their values");
        check(one);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = read::<Vec<Shape>>(&bytes);
        let mut whole = Assembled { extra: Some(Box::default()), ..Assembled::default() };
        let _ = whole.load(&mut StateReader::new(&bytes, Context::default()));
    }
}

#[test]
fn variants_and_fields_come_back() {
    check(Shape::Nothing);
    check(vec![Shape::Pair(7, vec![1, 2]), Shape::Named { wide: u128::MAX, of: Some("x".into()) }]);
    check([Some(3u8), None]);
    assert_eq!(read::<Shape>(&[9]).unwrap_err().to_string(), "9 names no Shape");
}

fn saved(state: &impl Stateful) -> Vec<u8> {
    let mut out = StateWriter::default();
    state.save(&mut out);
    out.finish().expect("nothing refuses")
}

#[test]
fn what_is_kept_stays_and_all_else_is_taken_over() {
    let part = |seed: u64, capacity| Piece { queue: [seed as u16; 2].into(), table: vec![seed; 3], capacity };
    let of = Assembled { parts: vec![part(1, 10), part(2, 10)], extra: Some(Box::new(part(3, 10))), count: -5 };
    let mut into = Assembled { parts: vec![part(0, 77), part(0, 78)], extra: Some(Box::new(part(0, 79))), count: 0 };
    let bytes = saved(&of);
    let mut from = StateReader::new(&bytes, Context::default());
    into.load(&mut from).unwrap();
    from.end().unwrap();
    assert_eq!(saved(&into), bytes);
    assert_eq!(into.parts.iter().map(|part| part.capacity).collect::<Vec<_>>(), [77, 78]);
    assert_eq!((into.parts[1].table[2], into.count), (2, -5));
}

#[test]
fn another_shape_is_refused_by_its_place() {
    let table = |entries| Piece { table: vec![0; entries], ..Piece::default() };
    let of = Assembled { parts: vec![table(4), table(4)], ..Assembled::default() };
    let loaded = |mut into: Assembled| {
        let bytes = saved(&of);
        into.load(&mut StateReader::new(&bytes, Context::default())).unwrap_err().to_string()
    };
    assert_eq!(
        loaded(Assembled { parts: vec![table(4), table(5)], ..Assembled::default() }),
        "parts.[1].table: 4 entries were saved, and this machine has 5"
    );
    assert_eq!(loaded(Assembled::default()), "parts: 2 entries were saved, and this machine has 0");
    let more = Assembled { parts: vec![table(4), table(4)], extra: Some(Box::default()), count: 0 };
    assert_eq!(loaded(more), "extra: was not saved, and this machine has one");
}

#[test]
fn the_first_refusal_is_reported() {
    let mut out = StateWriter::default();
    out.refuse("one");
    out.refuse("two");
    assert_eq!(out.finish().unwrap_err().to_string(), "one");
}

#[test]
fn what_is_known_is_found_by_its_type() {
    let mut from = StateReader::new(&[], Context::default());
    from.provide(5u8);
    from.provide("text".to_owned());
    assert_eq!((from.known::<u8>(), from.known::<String>().map(String::as_str)), (Some(&5), Some("text")));
    assert_eq!(from.known::<u16>(), None);
}
