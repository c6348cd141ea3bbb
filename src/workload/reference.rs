//! Reference algorithms in Rust, for results that an expression cannot say: `ref = {kind = "rust:NAME", ...}`.
//!
//! Each is the plainest sequential form of its algorithm. They compute in integers; a reference that is called with
//! data that makes no sense (an edge to a node that does not exist) says so instead of guessing.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::element::load;
use super::expr::Value;
use crate::kernel::ir::Elem;

/// A reference: its name, its arguments in order, and the algorithm.
pub(crate) struct Reference {
    pub(crate) name: &'static str,
    pub(crate) args: &'static [(&'static str, ArgumentKind)],
    pub(crate) run: fn(&[Argument<'_>]) -> Result<Vec<i64>, String>,
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    /// The initial content of a buffer of integers, by its name.
    Integers,
    /// An integer expression.
    Integer,
}

/// An argument's value.
#[derive(Debug, Clone)]
pub(crate) enum Argument<'a> {
    Integers(IntegerBuffer<'a>),
    Integer(i64),
}

/// The initial content of a buffer of integers.
#[derive(Debug, Clone)]
pub(crate) struct IntegerBuffer<'a> {
    elem: Elem,
    bytes: Cow<'a, [u8]>,
}

impl<'a> IntegerBuffer<'a> {
    pub(crate) fn new(elem: Elem, bytes: Cow<'a, [u8]>) -> Self {
        IntegerBuffer { elem, bytes }
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.elem.bytes() as usize
    }

    /// Element `index`, or that there is no such `what`.
    fn at(&self, index: i64, what: &str) -> Result<i64, String> {
        let number = usize::try_from(index).ok().filter(|number| *number < self.len());
        let number = number.ok_or_else(|| missing(index, what, self.len()))?;
        match load(self.elem, &self.bytes[number * self.elem.bytes() as usize..]) {
            Ok(Value::Int(value)) => Ok(value),
            Ok(Value::Float(value)) => Err(format!("element {index} is the float {value}")),
            Err(large) => Err(format!("element {index} is {large}, beyond 2^63")),
        }
    }
}

fn missing(index: i64, what: &str, len: usize) -> String {
    format!("{what} {index} does not exist ({len} do)")
}

use ArgumentKind::{Integer, Integers};

/// Every reference, by name.
pub(crate) static ALL: [Reference; 3] = [
    Reference {
        name: "bfs_levels",
        args: &[("row_ptr", Integers), ("col", Integers), ("start", Integer), ("unreached", Integer)],
        run: bfs_levels,
    },
    Reference { name: "chase", args: &[("next", Integers), ("start", Integer), ("hops", Integer)], run: chase },
    Reference { name: "histogram", args: &[("data", Integers), ("bins", Integer)], run: histogram },
];

/// The place of `index` in `list`, or that there is no such `what`.
fn place(list: &[i64], index: i64, what: &str) -> Result<usize, String> {
    usize::try_from(index).ok().filter(|place| *place < list.len()).ok_or_else(|| missing(index, what, list.len()))
}

/// Edges on a shortest path from `start` to each node of a graph in compressed sparse rows.
fn bfs_levels(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(row_ptr), Argument::Integers(col), Argument::Integer(start), Argument::Integer(unreached)] =
        args
    else {
        unreachable!("the reader checked the arguments");
    };
    let nodes = row_ptr.len().saturating_sub(1);
    let mut level = vec![*unreached; nodes];
    let start = place(&level, *start, "start node")?;
    level[start] = 0;
    let mut seen = vec![false; nodes];
    seen[start] = true;
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for edge in row_ptr.at(node as i64, "node")?..row_ptr.at(node as i64 + 1, "node")? {
            let target = place(&level, col.at(edge, "edge")?, "node")?;
            if !std::mem::replace(&mut seen[target], true) {
                level[target] = level[node] + 1;
                queue.push_back(target);
            }
        }
    }
    Ok(level)
}

/// Where `hops` steps along `next` lead.
fn chase(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(next), Argument::Integer(start), Argument::Integer(hops)] = args else {
        unreachable!("the reader checked the arguments");
    };
    let mut position = *start;
    for _ in 0..*hops {
        position = next.at(position, "element")?;
    }
    Ok(vec![position])
}

/// How often each value from 0 to `bins` - 1 occurs.
fn histogram(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(data), Argument::Integer(bins)] = args else {
        unreachable!("the reader checked the arguments");
    };
    let mut counts = vec![0; usize::try_from(*bins).map_err(|_| format!("{bins} bins"))?];
    for index in 0..data.len() {
        let bin = place(&counts, data.at(index as i64, "element")?, "bin")?;
        counts[bin] += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(values: &[i64]) -> Argument<'static> {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Argument::Integers(IntegerBuffer::new(Elem::S64, Cow::Owned(bytes)))
    }

    #[test]
    fn levels_of_a_diamond_with_an_unreached_node() {
        let graph = [integers(&[0, 2, 3, 4, 4, 4]), integers(&[1, 2, 3, 3])];
        let args = [&graph[..], &[Argument::Integer(0), Argument::Integer(-1)]].concat();
        assert_eq!(bfs_levels(&args), Ok(vec![0, 1, 1, 2, -1]));
    }

    #[test]
    fn an_edge_to_nowhere_is_named() {
        let graph = [integers(&[0, 1]), integers(&[7])];
        let args = [&graph[..], &[Argument::Integer(0), Argument::Integer(-1)]].concat();
        assert_eq!(bfs_levels(&args), Err("node 7 does not exist (1 do)".to_owned()));
    }

    #[test]
    fn a_chase_follows_the_ring() {
        let args = [integers(&[2, 0, 1]), Argument::Integer(0), Argument::Integer(4)];
        assert_eq!(chase(&args), Ok(vec![2]));
    }

    #[test]
    fn a_histogram_counts_each_bin() {
        let args = [integers(&[1, 1, 0, 3]), Argument::Integer(4)];
        assert_eq!(histogram(&args), Ok(vec![1, 2, 0, 1]));
    }
}
