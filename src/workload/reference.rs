//! Reference algorithms in Rust, for results that an expression cannot say: `ref = {kind = "rust:NAME", ...}`.
//!
//! Each is the plainest sequential form of its algorithm. They compute in integers; a reference that is called with
//! data that makes no sense (an edge to a node that does not exist) says so instead of guessing.

use std::collections::VecDeque;

/// A reference: its name, its arguments in order, and the algorithm.
pub(crate) struct Reference {
    pub(crate) name: &'static str,
    pub(crate) args: &'static [(&'static str, ArgumentKind)],
    pub(crate) run: fn(&[Argument]) -> Result<Vec<i64>, String>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    Integers(Vec<i64>),
    Integer(i64),
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

fn at(vector: &[i64], index: i64, what: &str) -> Result<i64, String> {
    let found = usize::try_from(index).ok().and_then(|index| vector.get(index));
    found.copied().ok_or_else(|| format!("{what} {index} does not exist ({} do)", vector.len()))
}

/// Edges on a shortest path from `start` to each node of a graph in compressed sparse rows.
fn bfs_levels(args: &[Argument]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(row_ptr), Argument::Integers(col), Argument::Integer(start), Argument::Integer(unreached)] =
        args
    else {
        unreachable!("the reader checked the arguments");
    };
    let nodes = row_ptr.len().saturating_sub(1);
    let mut level = vec![*unreached; nodes];
    at(&level, *start, "start node")?;
    level[*start as usize] = 0;
    let mut seen = vec![false; nodes];
    seen[*start as usize] = true;
    let mut queue = VecDeque::from([*start]);
    while let Some(node) = queue.pop_front() {
        for edge in row_ptr[node as usize]..row_ptr[node as usize + 1] {
            let target = at(col, edge, "edge")?;
            at(&level, target, "node")?;
            if !std::mem::replace(&mut seen[target as usize], true) {
                level[target as usize] = level[node as usize] + 1;
                queue.push_back(target);
            }
        }
    }
    Ok(level)
}

/// Where `hops` steps along `next` lead.
fn chase(args: &[Argument]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(next), Argument::Integer(start), Argument::Integer(hops)] = args else {
        unreachable!("the reader checked the arguments");
    };
    let mut position = *start;
    for _ in 0..*hops {
        position = at(next, position, "element")?;
    }
    Ok(vec![position])
}

/// How often each value from 0 to `bins` - 1 occurs.
fn histogram(args: &[Argument]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(data), Argument::Integer(bins)] = args else {
        unreachable!("the reader checked the arguments");
    };
    let mut counts = vec![0; usize::try_from(*bins).map_err(|_| format!("{bins} bins"))?];
    for value in data {
        at(&counts, *value, "bin")?;
        counts[*value as usize] += 1;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_a_diamond_with_an_unreached_node() {
        let graph = [Argument::Integers(vec![0, 2, 3, 4, 4, 4]), Argument::Integers(vec![1, 2, 3, 3])];
        let args = [&graph[..], &[Argument::Integer(0), Argument::Integer(-1)]].concat();
        assert_eq!(bfs_levels(&args), Ok(vec![0, 1, 1, 2, -1]));
    }

    #[test]
    fn an_edge_to_nowhere_is_named() {
        let graph = [Argument::Integers(vec![0, 1]), Argument::Integers(vec![7])];
        let args = [&graph[..], &[Argument::Integer(0), Argument::Integer(-1)]].concat();
        assert_eq!(bfs_levels(&args), Err("node 7 does not exist (1 do)".to_owned()));
    }

    #[test]
    fn a_chase_follows_the_ring() {
        let args = [Argument::Integers(vec![2, 0, 1]), Argument::Integer(0), Argument::Integer(4)];
        assert_eq!(chase(&args), Ok(vec![2]));
    }

    #[test]
    fn a_histogram_counts_each_bin() {
        let args = [Argument::Integers(vec![1, 1, 0, 3]), Argument::Integer(4)];
        assert_eq!(histogram(&args), Ok(vec![1, 2, 0, 1]));
    }
}
