//! Which component runs in which partition: pure arithmetic over counts and loads.
//!
//! Components that are to be kept together form one *block*, placed as a whole. With loads, blocks go longest first,
//! each to the partition that has the least so far (LPT: at most 4/3 of the best possible makespan; Graham, 1969).
//!
//! Invariant: a placement changes how fast a run is and nothing else. Not modelled: how much components talk; a message
//! across costs a few ns, and windows do not depend on the placement.

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
    /// By component, its partition, taken modulo their number; hints to keep components together are ignored.
    /// Components past the end of the list are in partition 0.
    Explicit(Vec<u16>),
}

/// Sets of components that must share a partition; every component is in exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    blocks: Vec<Vec<u32>>,
}

impl Blocks {
    /// The blocks of `components` components that these hints make, in order of their first component.
    pub(crate) fn new(components: usize, together: &[Vec<u32>]) -> Self {
        let mut leader: Vec<u32> = (0..components as u32).collect();
        fn find(leader: &mut [u32], mut i: u32) -> u32 {
            while leader[i as usize] != i {
                let up = leader[leader[i as usize] as usize];
                leader[i as usize] = up;
                i = up;
            }
            i
        }
        for hint in together {
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
        Blocks { blocks }
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
                (0..components).map(|i| of(i) as u32).collect()
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

    /// The partition of each component by its load, longest blocks first.
    pub(crate) fn balance(&self, loads: &[f64], partitions: usize) -> Vec<u32> {
        let load_of = |block: usize| self.blocks[block].iter().map(|&i| loads[i as usize]).sum::<f64>();
        let mut order: Vec<(usize, f64)> = (0..self.blocks.len()).map(|block| (block, load_of(block))).collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // Least loaded first; of equals the one with fewer blocks, so that loads of 0 spread too.
        let mut filled = vec![(0.0f64, 0usize); partitions];
        let mut placed = vec![0; loads.len()];
        for (block, load) in order {
            let least = (0..partitions).min_by(|&a, &b| {
                filled[a]
                    .0
                    .total_cmp(&filled[b].0)
                    .then(filled[a].1.cmp(&filled[b].1))
                    .then(a.cmp(&b))
            });
            let partition = least.unwrap_or(0);
            filled[partition].0 += load;
            filled[partition].1 += 1;
            for &component in &self.blocks[block] {
                placed[component as usize] = partition as u32;
            }
        }
        placed
    }
}

/// The load of the busiest partition, as a multiple of the mean: 1 is perfect, the number of partitions the worst.
pub(crate) fn imbalance(placed: &[u32], loads: &[f64], partitions: usize) -> f64 {
    let mut filled = vec![0.0f64; partitions];
    for (&partition, &load) in placed.iter().zip(loads) {
        filled[partition as usize] += load;
    }
    let total: f64 = filled.iter().sum();
    let most = filled.iter().copied().fold(0.0, f64::max);
    if total > 0.0 {
        most * partitions as f64 / total
    } else {
        1.0
    }
}

/// A Fisher-Yates shuffle by splitmix64: the same for the same seed, everywhere.
fn shuffle(order: &mut [usize], seed: u64) {
    let mut state = seed;
    for i in (1..order.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        order.swap(i, ((z ^ (z >> 31)) % (i as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn singles(components: usize) -> Blocks {
        Blocks::new(components, &[])
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
        let blocks = Blocks::new(6, &[vec![1, 4], vec![5, 4], vec![2]]);
        assert_eq!(blocks.blocks, [vec![0], vec![1, 4, 5], vec![2], vec![3]]);
        for placement in [Placement::RoundRobin, Placement::Blocks, Placement::Shuffled(3)] {
            let placed = blocks.place(&placement, 3);
            assert_eq!((placed[1], placed[1]), (placed[4], placed[5]), "{placement:?}");
        }
    }

    #[test]
    fn the_heaviest_goes_alone() {
        let placed = singles(4).balance(&[1.0, 8.0, 1.0, 1.0], 2);
        assert_eq!(placed, [1, 0, 1, 1]);
        assert_eq!(imbalance(&placed, &[1.0, 8.0, 1.0, 1.0], 2), 8.0 * 2.0 / 11.0);
    }

    proptest! {
        #[test]
        fn balancing_is_within_graham_of_the_mean_and_keeps_blocks(
            loads in proptest::collection::vec(0.0f64..100.0, 1..40), partitions in 1usize..6, pair in any::<bool>(),
        ) {
            let together = if pair && loads.len() > 1 { vec![vec![0, loads.len() as u32 - 1]] } else { vec![] };
            let blocks = Blocks::new(loads.len(), &together);
            let placed = blocks.balance(&loads, partitions);
            prop_assert!(placed.iter().all(|&p| (p as usize) < partitions));
            if let [pair] = &together[..] {
                prop_assert_eq!(placed[pair[0] as usize], placed[pair[1] as usize]);
            }
            // The busiest partition has at most the mean and one block over it.
            let mean = loads.iter().sum::<f64>() / partitions as f64;
            let largest = blocks.blocks.iter().map(|b| b.iter().map(|&i| loads[i as usize]).sum::<f64>()).fold(0.0, f64::max);
            prop_assert!(imbalance(&placed, &loads, partitions) * mean <= mean + largest + 1e-6);
        }
    }
}
