//! Which component runs in which partition: pure arithmetic over counts and loads.
//!
//! Components that are to be kept together form one *block*, placed as a whole. With loads, blocks go longest
//! first, each to the partition that has the least so far (LPT: at most 4/3 of the best possible makespan;
//! Graham, 1969).
//!
//! Invariant: a placement changes how fast a run is and nothing else. Not modelled: how much components talk;
//! a message across costs a few ns, and windows do not depend on the placement.

use super::driver::dice::Dice;

/// Components move when that makes the busiest partition this much lighter.
const WORTH_MOVING: f64 = 1.05;

/// Where components start. They move later when measured costs say so, see [`Rebalance`](super::Rebalance).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Placement {
    /// By measured costs, once there are any; else as [`Placement::Blocks`].
    #[default]
    Auto,
    /// Component i (or block i) in partition i modulo their number.
    RoundRobin,
    /// The first components in the first partition, and so on.
    Blocks,
    /// At random, balanced by number: for tests. The seed decides.
    Shuffled(u64),
    /// By component, its partition, taken modulo their number; hints to keep components together are ignored,
    /// but fused components stay with the first of them. Components past the end of the list are in partition
    /// 0.
    Explicit(Vec<u16>),
}

/// Sets of components that must share a partition; every component is in exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    blocks: Vec<Vec<u32>>,
    /// Sets that no placement parts.
    fused: Vec<Vec<u32>>,
}

impl Blocks {
    /// The blocks of `components` components that these hints and fused sets make, in order of their first
    /// component.
    pub(crate) fn new(components: usize, together: &[Vec<u32>], fused: &[Vec<u32>]) -> Self {
        let mut leader: Vec<u32> = (0..components as u32).collect();
        fn find(leader: &mut [u32], mut i: u32) -> u32 {
            while leader[i as usize] != i {
                let up = leader[leader[i as usize] as usize];
                leader[i as usize] = up;
                i = up;
            }
            i
        }
        // The least id leads its set, in whatever order hints join it. So blocks, which are numbered by their
        // leaders, do not depend on that order.
        for hint in together.iter().chain(fused) {
            for pair in hint.windows(2) {
                let (a, b) = (find(&mut leader, pair[0]), find(&mut leader, pair[1]));
                leader[a.max(b) as usize] = a.min(b);
            }
        }
        let mut block_of = vec![u32::MAX; components];
        let mut blocks: Vec<Vec<u32>> = Vec::new();
        for i in 0..components as u32 {
            let first = find(&mut leader, i) as usize;
            if block_of[first] == u32::MAX {
                block_of[first] = blocks.len() as u32;
                blocks.push(Vec::new());
            }
            blocks[block_of[first] as usize].push(i);
        }
        Blocks { blocks, fused: fused.to_vec() }
    }

    /// Calls `f` with every component and its block.
    pub(crate) fn each(&self, mut f: impl FnMut(u32, u32)) {
        for (block, components) in self.blocks.iter().enumerate() {
            components.iter().for_each(|&component| f(block as u32, component));
        }
    }

    /// How many blocks there are: more partitions than that are idle.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The partition of each component, before anything was measured.
    pub(crate) fn place(&self, placement: &Placement, partitions: usize) -> Vec<u32> {
        let components = self.blocks.iter().map(Vec::len).sum();
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        let contiguous = |i: usize| i * partitions / self.blocks.len().max(1);
        match placement {
            Placement::RoundRobin => self.deal(components, &order, |i| i % partitions),
            Placement::Auto | Placement::Blocks => self.deal(components, &order, contiguous),
            Placement::Shuffled(seed) => {
                shuffle(&mut order, *seed);
                self.deal(components, &order, contiguous)
            }
            Placement::Explicit(list) => {
                let of = |i: usize| list.get(i).map_or(0, |&partition| usize::from(partition) % partitions);
                let mut placed: Vec<u32> = (0..components).map(|i| of(i) as u32).collect();
                if !self.fused.is_empty() {
                    // By whole fused sets, where their first component is to be.
                    for block in &Blocks::new(components, &self.fused, &[]).blocks {
                        block.iter().for_each(|&i| placed[i as usize] = placed[block[0] as usize]);
                    }
                }
                placed
            }
        }
    }

    fn deal(&self, components: usize, order: &[usize], partition_of: impl Fn(usize) -> usize) -> Vec<u32> {
        let mut placed = vec![0; components];
        for (i, &block) in order.iter().enumerate() {
            for &component in &self.blocks[block] {
                placed[component as usize] = partition_of(i) as u32;
            }
        }
        placed
    }

    /// A better placement for these loads, or nothing where it is not worth the moves.
    pub(crate) fn better(&self, loads: &[f64], current: &[u32], partitions: usize) -> Option<Vec<u32>> {
        let better = self.balance(loads, current, partitions);
        let gain = imbalance(current, loads, partitions) / imbalance(&better, loads, partitions);
        (gain >= WORTH_MOVING).then_some(better)
    }

    /// A placement balanced by loads that moves few components from where they are, if that is as good as any
    /// other.
    ///
    /// Small components of neighbouring ids share cache lines, so scattering them over threads costs more
    /// than a small imbalance does: 1024 components of 72 bytes ran 1.4 times as fast on two threads as on
    /// one when dealt out in turns, and 1.85 times in halves.
    pub(crate) fn balance(&self, loads: &[f64], current: &[u32], partitions: usize) -> Vec<u32> {
        let of_block: Vec<f64> = self.blocks.iter().map(|b| b.iter().map(|&i| loads[i as usize]).sum()).collect();
        let stay: Vec<u32> = self.blocks.iter().map(|block| current[block[0] as usize]).collect();
        let split = contiguous(&of_block, partitions);
        let candidates = [refine(stay, &of_block, partitions), refine(split, &of_block, partitions)];
        let mut best = longest_first(&of_block, partitions);
        for candidate in candidates.into_iter().rev() {
            // In rising order of preference.
            if imbalance(&candidate, &of_block, partitions) <= 1.01 * imbalance(&best, &of_block, partitions) {
                best = candidate;
            }
        }
        let mut placed = vec![0; loads.len()];
        for (block, partition) in self.blocks.iter().zip(best) {
            for &component in block {
                placed[component as usize] = partition;
            }
        }
        placed
    }
}

/// Longest first, each to the partition that has the least so far.
fn longest_first(loads: &[f64], partitions: usize) -> Vec<u32> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by(|&a, &b| loads[b].total_cmp(&loads[a]).then(a.cmp(&b)));
    // Of equals the one with fewer items, so that loads of 0 spread too.
    let mut filled = vec![(0.0f64, 0usize); partitions];
    let mut placed = vec![0; loads.len()];
    for item in order {
        let least = (0..partitions)
            .min_by(|&a, &b| filled[a].0.total_cmp(&filled[b].0).then(filled[a].1.cmp(&filled[b].1)).then(a.cmp(&b)));
        let partition = least.unwrap_or(0);
        filled[partition].0 += loads[item];
        filled[partition].1 += 1;
        placed[item] = partition as u32;
    }
    placed
}

/// Runs of neighbours of about the same load each.
fn contiguous(loads: &[f64], partitions: usize) -> Vec<u32> {
    let total: f64 = loads.iter().sum();
    let mut before = 0.0;
    let place = |&load: &f64| {
        let middle = before + load / 2.0;
        before += load;
        if total > 0.0 { ((middle / total * partitions as f64) as u32).min(partitions as u32 - 1) } else { 0 }
    };
    loads.iter().map(place).collect()
}

/// Moves items from the fullest partition to the emptiest while that helps, each time the one that fits best.
fn refine(mut placed: Vec<u32>, loads: &[f64], partitions: usize) -> Vec<u32> {
    let mut filled = vec![0.0f64; partitions];
    for (&partition, &load) in placed.iter().zip(loads) {
        filled[partition as usize] += load;
    }
    let mean = filled.iter().sum::<f64>() / partitions as f64;
    for _ in 0..loads.len() {
        let by_load = |a: &usize, b: &usize| filled[*a].total_cmp(&filled[*b]);
        let (Some(most), Some(least)) = ((0..partitions).max_by(by_load), (0..partitions).min_by(by_load)) else {
            break;
        };
        let gap = filled[most] - filled[least];
        if filled[most] <= 1.005 * mean {
            break;
        }
        let fits = |&item: &usize| placed[item] as usize == most && loads[item] > 0.0 && loads[item] < gap;
        let misfit = |item: usize| (loads[item] - gap / 2.0).abs();
        let Some(item) = (0..loads.len()).filter(fits).min_by(|&a, &b| misfit(a).total_cmp(&misfit(b))) else {
            break;
        };
        placed[item] = least as u32;
        filled[most] -= loads[item];
        filled[least] += loads[item];
    }
    placed
}

/// The load of the busiest partition, as a multiple of the mean: 1 is perfect, the number of partitions the
/// worst.
fn imbalance(placed: &[u32], loads: &[f64], partitions: usize) -> f64 {
    let mut filled = vec![0.0f64; partitions];
    for (&partition, &load) in placed.iter().zip(loads) {
        filled[partition as usize] += load;
    }
    let total: f64 = filled.iter().sum();
    let most = filled.iter().copied().fold(0.0, f64::max);
    if total > 0.0 { most * partitions as f64 / total } else { 1.0 }
}

/// A Fisher-Yates shuffle: the same for the same seed, everywhere.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut dice = Dice::new(seed);
    for i in (1..order.len()).rev() {
        order.swap(i, (dice.throw() % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn singles(components: usize) -> Blocks {
        Blocks::new(components, &[], &[])
    }

    #[test]
    fn placements_are_as_named() {
        let blocks = singles(5);
        assert_eq!(blocks.place(&Placement::RoundRobin, 2), [0, 1, 0, 1, 0]);
        assert_eq!(blocks.place(&Placement::Blocks, 2), [0, 0, 0, 1, 1]);
        assert_eq!(blocks.place(&Placement::Explicit(vec![1, 3, 0]), 2), [1, 1, 0, 0, 0]);
        let shuffled = blocks.place(&Placement::Shuffled(7), 2);
        assert_eq!(shuffled, blocks.place(&Placement::Shuffled(7), 2));
        assert_eq!(shuffled.iter().filter(|&&partition| partition == 0).count(), 3);
    }

    #[test]
    fn hints_that_share_a_component_join() {
        let blocks = Blocks::new(6, &[vec![1, 4], vec![5, 4], vec![2]], &[]);
        assert_eq!(blocks.blocks, [vec![0], vec![1, 4, 5], vec![2], vec![3]]);
        for placement in [Placement::RoundRobin, Placement::Blocks, Placement::Shuffled(3)] {
            let placed = blocks.place(&placement, 3);
            assert_eq!((placed[1], placed[1]), (placed[4], placed[5]), "{placement:?}");
        }
    }

    #[test]
    fn nothing_parts_what_is_fused() {
        let blocks = Blocks::new(5, &[vec![0, 1]], &[vec![1, 3], vec![3, 4]]);
        assert_eq!(blocks.blocks, [vec![0, 1, 3, 4], vec![2]]);
        assert_eq!(blocks.place(&Placement::Explicit(vec![0, 1, 1, 0, 0]), 2), [0, 1, 1, 1, 1]);
    }

    #[test]
    fn the_heaviest_goes_alone() {
        let loads = [1.0, 8.0, 1.0, 1.0];
        let placed = singles(4).balance(&loads, &[0; 4], 2);
        assert_eq!(imbalance(&placed, &loads, 2), 8.0 * 2.0 / 11.0);
        assert!((0..4).filter(|&i| placed[i] == placed[1]).eq([1]), "{placed:?}");
    }

    #[test]
    fn what_is_balanced_stays_and_little_moves_otherwise() {
        let even = [1.0; 64];
        let scattered: Vec<u32> = (0..64).map(|i| i % 2).collect();
        assert_eq!(singles(64).balance(&even, &scattered, 2), scattered);
        // An eighth is 8 times as heavy, all in one half: 14 light ones (or fewer heavier) must go.
        let skewed: Vec<f64> = (0..64).map(|i| if i < 8 { 8.0 } else { 1.0 }).collect();
        let halves: Vec<u32> = (0..64).map(|i| i / 32).collect();
        let placed = singles(64).balance(&skewed, &halves, 2);
        assert!(imbalance(&placed, &skewed, 2) <= 1.01);
        assert!(placed.iter().zip(&halves).filter(|(new, old)| new != old).count() <= 8, "{placed:?}");
    }

    #[test]
    fn many_small_ones_stay_with_their_neighbours() {
        let loads: Vec<f64> = (0..1000).map(|i| if i < 300 { 3.0 } else { 1.0 }).collect();
        let all_in_one = vec![0; 1000];
        let placed = contiguous(&loads, 4);
        assert!(imbalance(&placed, &loads, 4) < 1.01);
        assert!(placed.is_sorted());
        assert!(imbalance(&singles(1000).balance(&loads, &all_in_one, 4), &loads, 4) < 1.02);
    }

    proptest! {
        #[test]
        fn balancing_is_within_graham_of_the_mean_and_keeps_blocks(
            loads in proptest::collection::vec(0.0f64..100.0, 1..40), partitions in 1usize..6, pair in any::<bool>(),
            seed in any::<u64>(),
        ) {
            let together = if pair && loads.len() > 1 { vec![vec![0, loads.len() as u32 - 1]] } else { vec![] };
            let blocks = Blocks::new(loads.len(), &together, &[]);
            let current = blocks.place(&Placement::Shuffled(seed), partitions);
            let placed = blocks.balance(&loads, &current, partitions);
            prop_assert!(placed.iter().all(|&p| (p as usize) < partitions));
            if let [pair] = &together[..] {
                prop_assert_eq!(placed[pair[0] as usize], placed[pair[1] as usize]);
            }
            // The busiest partition has at most the mean and one block over it.
            let mean = loads.iter().sum::<f64>() / partitions as f64;
            let largest = blocks.blocks.iter().map(|b| b.iter().map(|&i| loads[i as usize]).sum::<f64>()).fold(0.0, f64::max);
            prop_assert!(imbalance(&placed, &loads, partitions) * mean <= 1.01 * (mean + largest) + 1e-6);
        }
    }
}
