//! Reference algorithms in Rust, for results that no expression can state:
//! `ref = {kind = "rust:NAME", ...}`.
//!
//! Each is the plainest sequential form of its algorithm. They compute in integers; a reference that is
//! called with data that makes no sense (an edge to a node that does not exist) says so instead of guessing.

use super::argument::missing;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::argument::{Argument, ArgumentKind};
use super::bplus_tree::bplus_tree_insert;

/// A reference: its name, its arguments in order, and the algorithm.
pub(crate) struct Reference {
    pub(crate) name: &'static str,
    pub(crate) args: &'static [(&'static str, ArgumentKind)],
    pub(crate) run: fn(&[Argument<'_>]) -> Result<Vec<i64>, String>,
}

use ArgumentKind::{Integer, Integers};

/// Every reference, by name.
pub(crate) static ALL: [Reference; 7] = [
    Reference {
        name: "bfs_levels",
        args: &[("row_ptr", Integers), ("col", Integers), ("start", Integer), ("unreached", Integer)],
        run: bfs_levels,
    },
    Reference {
        name: "bplus_tree_insert",
        args: &[("nodes", Integers), ("keys", Integers), ("leaves", Integer), ("order", Integer)],
        run: bplus_tree_insert,
    },
    Reference { name: "cheapest_ways", args: &[("wall", Integers), ("columns", Integer)], run: cheapest_ways },
    Reference { name: "chase", args: &[("next", Integers), ("start", Integer), ("hops", Integer)], run: chase },
    Reference { name: "histogram", args: &[("data", Integers), ("bins", Integer)], run: histogram },
    Reference {
        name: "random_access",
        args: &[("start", Integers), ("table", Integers), ("updates", Integer)],
        run: random_access,
    },
    Reference {
        name: "shortest_paths",
        args: &[
            ("row_ptr", Integers),
            ("col", Integers),
            ("weight", Integers),
            ("start", Integer),
            ("unreached", Integer),
        ],
        run: shortest_paths,
    },
];

/// `index` as a place in `list`; an error that names `what` if it is outside.
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

/// What the cheapest way from the top of a grid to each cell of its last row costs: the cells on the way, its
/// ends included, where each step leads down, or down and one column aside.
fn cheapest_ways(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(wall), Argument::Integer(columns)] = args else {
        unreachable!("the reader checked the arguments");
    };
    let width =
        usize::try_from(*columns).ok().filter(|width| *width > 0).ok_or_else(|| format!("{columns} columns"))?;
    let row = |number: usize| -> Result<Vec<i64>, String> {
        (number * width..(number + 1) * width).map(|cell| wall.at(cell as i64, "cell")).collect()
    };
    let mut ways = row(0)?;
    for number in 1..wall.len() / width {
        let above = ways;
        ways = row(number)?;
        for (x, way) in ways.iter_mut().enumerate() {
            let near = &above[x.saturating_sub(1)..width.min(x + 2)];
            *way += near.iter().min().expect("a cell has one above it");
        }
    }
    Ok(ways)
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

/// A table after `updates` words from each start, each a step of the shift register after the one before,
/// were combined by exclusive or with the elements that their low bits name. The table's length is a power of
/// two.
fn random_access(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(start), Argument::Integers(table), Argument::Integer(updates)] = args else {
        unreachable!("the reader checked the arguments");
    };
    let mut table: Vec<i64> = (0..table.len()).map(|at| table.at(at as i64, "element")).collect::<Result<_, _>>()?;
    let mask = table.len().checked_sub(1).ok_or("an empty table")? as i64;
    for thread in 0..start.len() {
        let mut word = start.at(thread as i64, "start")?;
        for _ in 0..*updates {
            word = (word << 1) ^ if word < 0 { 7 } else { 0 };
            let at = place(&table, word & mask, "element")?;
            table[at] ^= word;
        }
    }
    Ok(table)
}

/// Length of a shortest path from `start` to each node of a graph with weights that are not negative, by
/// Dijkstra's algorithm.
fn shortest_paths(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [
        Argument::Integers(row_ptr),
        Argument::Integers(col),
        Argument::Integers(weight),
        Argument::Integer(start),
        Argument::Integer(unreached),
    ] = args
    else {
        unreachable!("the reader checked the arguments");
    };
    let mut length = vec![i64::MAX; row_ptr.len().saturating_sub(1)];
    let start = place(&length, *start, "start node")?;
    length[start] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((so_far, node))) = queue.pop() {
        // A longer way, queued before a shorter one was found: entries are not taken out of the queue.
        if so_far > length[node] {
            continue;
        }
        for edge in row_ptr.at(node as i64, "node")?..row_ptr.at(node as i64 + 1, "node")? {
            let target = place(&length, col.at(edge, "edge")?, "node")?;
            let step = weight.at(edge, "edge")?;
            if step < 0 {
                return Err(format!("edge {edge} has the weight {step}"));
            }
            if so_far + step < length[target] {
                length[target] = so_far + step;
                queue.push(Reverse((length[target], target)));
            }
        }
    }
    Ok(length.into_iter().map(|length| if length == i64::MAX { *unreached } else { length }).collect())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::argument::IntegerBuffer;
    use super::*;
    use durawarp_kernel::ir::Elem;

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

    #[test]
    fn the_cheapest_way_down_may_lead_aside() {
        let args = [integers(&[9, 1, 9, 5, 9, 2, 3, 9, 9]), Argument::Integer(3)];
        assert_eq!(cheapest_ways(&args), Ok(vec![9, 12, 12]));
        let args = [integers(&[1, 2]), Argument::Integer(0)];
        assert_eq!(cheapest_ways(&args), Err("0 columns".to_owned()));
    }

    #[test]
    fn random_access_shifts_and_folds_the_highest_bit_back() {
        // i64::MIN becomes 7, then 14; 1 becomes 2, then 4.
        let args = [integers(&[i64::MIN, 1]), integers(&[0, 0, 100, 0]), Argument::Integer(2)];
        assert_eq!(random_access(&args), Ok(vec![4, 0, 100 ^ 14 ^ 2, 7]));
    }

    #[test]
    fn a_detour_may_be_shorter() {
        let graph = [integers(&[0, 2, 3, 3, 3]), integers(&[2, 1, 2]), integers(&[9, 1, 3])];
        let args = [&graph[..], &[Argument::Integer(0), Argument::Integer(-1)]].concat();
        assert_eq!(shortest_paths(&args), Ok(vec![0, 1, 4, -1]));
    }

    #[test]
    fn a_negative_weight_is_named() {
        let graph = [integers(&[0, 1, 1]), integers(&[1]), integers(&[-2])];
        let args = [&graph[..], &[Argument::Integer(0), Argument::Integer(-1)]].concat();
        assert_eq!(shortest_paths(&args), Err("edge 0 has the weight -2".to_owned()));
    }
}
