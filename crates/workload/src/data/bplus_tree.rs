//! B+trees in a buffer: the initial tree of a run (`init = {kind = "bplus_tree"}`), and the tree after an
//! insertion (`rust:bplus_tree_insert`).
//!
//! A node is 16 words of 32 bits: entries (0), the next node of its level (1), 8 * parent + its number there
//! (2), up to six keys (4 to 9), as many values or children (10 to 15). Nodes are numbered level by level,
//! leaves first, so the root is the last that is loaded. Of `n` loaded nodes, node `n + i` is where the right
//! half of node `i` goes when it splits, and node `2 n` is a root above two halves: a buffer has `2 n + 1`
//! nodes. The key of a child is the least of its subtree.
//!
//! Source: Gope et al., "A Case for Scoped Persist Barriers in GPUs" (GPGPU 2018), section 5.1, for the tree
//! and its bulk insertion. It gives neither node nor order; they are chosen here: a node fills a line of its
//! machine (64 bytes).
//!
//! Invariant: what the reference returns was walked: every key is found from the root, nodes are in order and
//! within the range that their parent gives them, and the leaves are a chain in key order. Not covered: a
//! second insertion (the numbers of parents are those that were loaded), deletion.

use super::argument::Argument;
use crate::manifest::buffers::LoadedTree;
use durawarp_base::diagnostic::Diagnostic;

const WORDS: usize = 16;
const COUNT: usize = 0;
const NEXT: usize = 1;
const PLACE: usize = 2;
const KEYS: usize = 4;
const ENTRIES: usize = 10;
/// Entries of a node, at most.
const CAPACITY: i64 = 6;
/// List places a node, in which children have their numbers.
const PLACES: i64 = 8;
/// No next node.
const END: i64 = 0xffff_ffff;

impl LoadedTree {
    /// The words of a buffer of `len` words.
    ///
    /// # Errors
    /// Sizes that make no tree, or not one of this length.
    pub(crate) fn words(&self, frame: &[u64], len: u64) -> Result<Vec<i64>, Diagnostic> {
        let mut values = [0; 4];
        let limits = [(1, 1 << 26), (2, CAPACITY), (4, CAPACITY), (8 * CAPACITY, 1 << 20)];
        let names = ["`leaves`", "`fan`", "`order`", "`span`"];
        for ((value, expr), (name, (low, high))) in
            values.iter_mut().zip(&self.sizes).zip(names.into_iter().zip(limits))
        {
            *value = expr.integer(&mut frame.to_vec(), name)?;
            if !(low..=high).contains(value) {
                return Err(expr.place().fault(format!("{name} is {value}: it must be {low} to {high}")));
            }
        }
        let [leaves, fan, order, span] = values;
        if fan > order {
            let message = format!("`fan` ({fan}) is above `order` ({order}): a node would be too full");
            return Err(self.sizes[1].place().fault(message));
        }
        let words = load(leaves, fan, order, span);
        if words.len() as u64 != len {
            let message = format!("the buffer has {len} elements: this tree takes {}", words.len());
            return Err(self.place.fault(message));
        }
        Ok(words)
    }
}

/// The value of a key.
fn value_of(key: i64) -> i64 {
    i64::from((key as u32).wrapping_mul(2_654_435_761))
}

/// A tree in which leaf `i` has `order - i % 4` keys: `span * i` and multiples of 8 above. All other nodes
/// have `fan` children, but for the last of each level.
fn load(leaves: i64, fan: i64, order: i64, span: i64) -> Vec<i64> {
    let mut words = Vec::new();
    let (mut first, mut size) = (0, leaves);
    // The level below: where it begins, its nodes, keys that each has to itself.
    let (mut first_below, mut below, mut reach) = (0, 0, 0);
    loop {
        for i in 0..size {
            let mut node = [0; WORDS];
            node[COUNT] = if below == 0 { order - i % 4 } else { fan.min(below - i * fan) };
            node[NEXT] = if i + 1 < size { first + i + 1 } else { END };
            node[PLACE] = PLACES * (first + size + i / fan) + i % fan;
            for s in 0..node[COUNT] {
                let (key, child) = (i * span + 8 * s, i * fan + s);
                let entry = if below == 0 { (key, value_of(key)) } else { (child * reach, first_below + child) };
                (node[KEYS + s as usize], node[ENTRIES + s as usize]) = entry;
            }
            words.extend(node);
        }
        if size == 1 {
            break;
        }
        reach = if below == 0 { span } else { reach * fan };
        (first_below, below) = (first, size);
        (first, size) = (first + size, (size + fan - 1) / fan);
    }
    words.resize(2 * words.len() + WORDS, 0);
    words
}

/// The words of the nodes after sorted keys were inserted: entries of a node that overflows go to it and its
/// right half, which has the lesser number of them.
pub(crate) fn bplus_tree_insert(args: &[Argument<'_>]) -> Result<Vec<i64>, String> {
    let [Argument::Integers(nodes), Argument::Integers(keys), Argument::Integer(leaves), Argument::Integer(order)] =
        args
    else {
        unreachable!("the reader checked the arguments");
    };
    let (mut words, keys) = (nodes.all()?, keys.all()?);
    let loaded = (words.len() / WORDS).saturating_sub(1) / 2;
    let leaves = usize::try_from(*leaves).ok().filter(|leaves| (1..=loaded).contains(leaves));
    let leaves = leaves.ok_or_else(|| format!("{loaded} nodes, but not as many leaves"))?;
    let order = usize::try_from(*order).map_err(|_| format!("an order of {order}"))?;
    let mut there: Vec<(i64, i64)> = (0..leaves).flat_map(|leaf| entries(&words, leaf)).collect();
    there.extend(keys.iter().map(|key| (*key, value_of(*key))));
    there.sort_unstable();

    // New entries of each loaded node, and of a root above it all.
    let mut new: Vec<Vec<(i64, i64)>> = vec![Vec::new(); loaded + 1];
    let mut rest = &keys[..];
    for leaf in 0..leaves {
        let end = (leaf + 1 < leaves).then(|| words[(leaf + 1) * WORDS + KEYS]);
        let (mine, others) = rest.split_at(end.map_or(rest.len(), |end| rest.partition_point(|key| *key < end)));
        new[leaf].extend(mine.iter().map(|key| (*key, value_of(*key))));
        rest = others;
    }
    // Children have lower numbers than their parents.
    for node in 0..loaded {
        if new[node].is_empty() {
            continue;
        }
        let mut all = entries(&words, node);
        all.append(&mut new[node]);
        all.sort_unstable();
        if all.len() > 2 * order {
            return Err(format!("node {node} has {} entries: too many for a node and its half", all.len()));
        }
        let left = if all.len() <= order { all.len() } else { all.len().div_ceil(2) };
        write(&mut words, node, &all[..left]);
        if left < all.len() {
            let (half, at) = (loaded + node, node * WORDS);
            write(&mut words, half, &all[left..]);
            words[half * WORDS + NEXT] = std::mem::replace(&mut words[at + NEXT], half as i64);
            words[half * WORDS + PLACE] = words[at + PLACE];
            new[(words[at + PLACE] / PLACES) as usize].push((all[left].0, half as i64));
        }
    }
    let mut root = loaded - 1;
    if let [half] = new[loaded][..] {
        let old = (words[root * WORDS + KEYS], root as i64);
        root = 2 * loaded;
        write(&mut words, root, &[old, half]);
        words[root * WORDS + NEXT] = END;
    }
    let mut walk = Walk { words: &words, loaded, leaves, order, found: Vec::new(), next: None };
    walk.node(root, 0, END)?;
    if walk.found != there {
        return Err(format!("{} keys are found from the root, of {}", walk.found.len(), there.len()));
    }
    Ok(words)
}

/// The entries of a node.
fn entries(words: &[i64], node: usize) -> Vec<(i64, i64)> {
    let node = &words[node * WORDS..][..WORDS];
    let count = (node[COUNT] as usize).min(CAPACITY as usize);
    (0..count).map(|s| (node[KEYS + s], node[ENTRIES + s])).collect()
}

fn write(words: &mut [i64], node: usize, entries: &[(i64, i64)]) {
    let node = &mut words[node * WORDS..][..WORDS];
    node[COUNT] = entries.len() as i64;
    for (s, entry) in entries.iter().enumerate() {
        (node[KEYS + s], node[ENTRIES + s]) = *entry;
    }
}

/// A walk through a tree in key order.
struct Walk<'a> {
    words: &'a [i64],
    loaded: usize,
    leaves: usize,
    order: usize,
    /// Keys and values so far.
    found: Vec<(i64, i64)>,
    /// What the leaf before says is the next.
    next: Option<i64>,
}

impl Walk<'_> {
    /// The subtree of a node, whose keys are `low` to `high` - 1.
    fn node(&mut self, node: usize, low: i64, high: i64) -> Result<(), String> {
        let all = entries(self.words, node);
        let ascending = all.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let within = all.first().is_some_and(|first| first.0 == low) && all.last().is_some_and(|last| last.0 < high);
        if !ascending || !within || all.len() > self.order {
            return Err(format!("node {node} is out of order: {all:?} in {low} to {high}"));
        }
        if node % self.loaded < self.leaves && node < 2 * self.loaded {
            if self.next.is_some_and(|next| next != node as i64) {
                return Err(format!("the leaf before {node} has another next one: {:?}", self.next));
            }
            self.next = Some(self.words[node * WORDS + NEXT]);
            self.found.extend(all);
            return Ok(());
        }
        for (s, (key, child)) in all.iter().enumerate() {
            let end = all.get(s + 1).map_or(high, |next| next.0);
            let child = usize::try_from(*child).ok().filter(|child| *child < 2 * self.loaded);
            self.node(child.ok_or_else(|| format!("node {node} has a child that does not exist"))?, *key, end)?;
        }
        Ok(())
    }
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

    fn inserted(words: &[i64], leaves: i64, order: i64, keys: &[i64]) -> Result<Vec<i64>, String> {
        let sizes = [Argument::Integer(leaves), Argument::Integer(order)];
        bplus_tree_insert(&[&[integers(words), integers(keys)], &sizes[..]].concat())
    }

    #[test]
    fn a_loaded_tree_is_in_order() {
        for (leaves, fan) in [(1, 2), (4, 4), (7, 2), (27, 5)] {
            let words = load(leaves, fan, 5, 48);
            assert_eq!(inserted(&words, leaves, 5, &[]), Ok(words), "{leaves} leaves, {fan} children");
        }
        // Two leaves and a root of five loaded nodes.
        let words = load(2, 2, 4, 48);
        assert_eq!(words.len(), 7 * WORDS);
        assert_eq!(entries(&words, 2), [(0, 0), (48, 1)]);
        assert_eq!(entries(&words, 1), [(48, value_of(48)), (56, value_of(56)), (64, value_of(64))]);
        assert_eq!([words[NEXT], words[WORDS + NEXT], words[WORDS + PLACE]], [1, END, PLACES * 2 + 1]);
    }

    #[test]
    fn a_full_leaf_splits_and_so_does_a_full_root() {
        // Leaf 0 is full with 4 keys, and so is the root with 4 children.
        let words = inserted(&load(4, 4, 4, 48), 4, 4, &[1]).unwrap();
        let [loaded, half] = [5, 5];
        assert_eq!(entries(&words, 0).iter().map(|entry| entry.0).collect::<Vec<_>>(), [0, 1, 8]);
        assert_eq!(entries(&words, half), [(16, value_of(16)), (24, value_of(24))]);
        assert_eq!(words[NEXT], half as i64);
        assert_eq!(entries(&words, 4), [(0, 0), (16, 5), (48, 1)]);
        assert_eq!(entries(&words, loaded + 4), [(96, 2), (144, 3)]);
        assert_eq!(entries(&words, 2 * loaded), [(0, 4), (96, 9)]);
    }

    #[test]
    fn what_cannot_be_inserted_is_told() {
        let words = load(4, 4, 4, 48);
        assert!(inserted(&words, 4, 4, &[1, 2, 3, 4, 5]).unwrap_err().contains("node 0 has 9 entries"));
        assert!(inserted(&words, 4, 4, &[8]).unwrap_err().contains("node 0 is out of order"));
        assert!(inserted(&words, 9, 4, &[]).unwrap_err().contains("5 nodes"));
    }

    #[test]
    fn a_walk_finds_a_broken_chain_and_a_child_out_of_its_range() {
        let mut words = load(4, 4, 4, 48);
        words[NEXT] = 2;
        assert!(inserted(&words, 4, 4, &[]).unwrap_err().contains("another next one"));
        let mut words = load(4, 4, 4, 48);
        words[4 * WORDS + KEYS + 1] = 47;
        assert!(inserted(&words, 4, 4, &[]).unwrap_err().contains("node 1 is out of order"));
    }
}
