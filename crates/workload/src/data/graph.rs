//! Graphs in compressed sparse rows, and their generators. Files are read by `graph_file`.
//!
//! Edges are directed; the edges of a node are in the order in which they were made. Weights are integers
//! from 1. Multiple edges and self-loops are kept (as Graph500 does): kernels must stand them.

use super::random::Random;

/// Nodes and edges of the largest graph that is made: 32-bit indices, and a bound on the host's memory.
const MAX_NODES: u64 = 1 << 28;
const MAX_EDGES: u64 = 1 << 30;

/// Draws in a row that may miss the nodes before an R-MAT graph is given up.
const MAX_MISSES: u32 = 10_000;

/// A graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Csr {
    /// First edge of each node, then the number of edges.
    pub(crate) row_ptr: Vec<u64>,
    /// Target of each edge.
    pub(crate) col: Vec<u32>,
    /// Weight of each edge.
    pub(crate) weight: Vec<u32>,
}

impl Csr {
    /// Number of nodes.
    pub(crate) fn nodes(&self) -> u64 {
        self.row_ptr.len().saturating_sub(1) as u64
    }

    /// Number of edges.
    pub(crate) fn edges(&self) -> u64 {
        self.col.len() as u64
    }

    /// Sorts a list of (source, target, weight) by source, keeping the order of a source's edges.
    pub(crate) fn of_edges(nodes: u64, edges: &[(u32, u32, u32)]) -> Csr {
        let mut row_ptr = vec![0_u64; nodes as usize + 1];
        for (source, ..) in edges {
            row_ptr[*source as usize + 1] += 1;
        }
        for node in 0..nodes as usize {
            row_ptr[node + 1] += row_ptr[node];
        }
        let mut next = row_ptr.clone();
        let mut col = vec![0; edges.len()];
        let mut weight = vec![0; edges.len()];
        for (source, target, w) in edges {
            let at = &mut next[*source as usize];
            col[*at as usize] = *target;
            weight[*at as usize] = *w;
            *at += 1;
        }
        Csr { row_ptr, col, weight }
    }
}

/// Checks sizes before anything is allocated.
///
/// # Errors
/// Which of them is out of range.
pub(crate) fn check_sizes(nodes: i64, edges: i64) -> Result<(u64, u64), String> {
    match (u64::try_from(nodes), u64::try_from(edges)) {
        (Ok(nodes @ 1..=MAX_NODES), Ok(edges @ 0..=MAX_EDGES)) => Ok((nodes, edges)),
        (Ok(1..=MAX_NODES), _) => Err(format!("a graph has 0 to {MAX_EDGES} edges, not {edges}")),
        _ => Err(format!("a graph has 1 to {MAX_NODES} nodes, not {nodes}")),
    }
}

fn weight(random: &mut Random, max: u32) -> u32 {
    random.below(u64::from(max)) as u32 + 1
}

/// A recursive-matrix graph: each edge descends log2(nodes) levels into one of four quadrants of the
/// adjacency matrix, with probabilities `a` (upper left), `b`, `c` and the rest. An edge beyond `nodes` is
/// drawn again.
///
/// # Errors
/// Probabilities that are none, or that put (almost) every edge beyond `nodes`.
pub(crate) fn rmat(
    nodes: u64,
    edges: u64,
    [a, b, c]: [f64; 3],
    max_weight: u32,
    random: &mut Random,
) -> Result<Csr, String> {
    if !(a >= 0.0 && b >= 0.0 && c >= 0.0 && a + b + c <= 1.0) {
        return Err(format!("a = {a}, b = {b}, c = {c} are no probabilities with a sum of at most 1"));
    }
    let levels = nodes.next_power_of_two().ilog2();
    let mut misses = 0;
    let mut list = Vec::with_capacity(edges as usize);
    while (list.len() as u64) < edges {
        let (mut source, mut target) = (0_u64, 0_u64);
        for _ in 0..levels {
            let draw = random.unit();
            let (down, right) = (draw >= a + b, (draw >= a && draw < a + b) || draw >= a + b + c);
            source = 2 * source + u64::from(down);
            target = 2 * target + u64::from(right);
        }
        if source < nodes && target < nodes {
            list.push((source as u32, target as u32, weight(random, max_weight)));
            misses = 0;
        } else {
            // Only misses in a row count: with hopeless probabilities the loop would not end.
            misses += 1;
            if misses > MAX_MISSES {
                return Err(format!("a = {a}, b = {b}, c = {c} put almost every edge beyond the {nodes} nodes"));
            }
        }
    }
    Ok(Csr::of_edges(nodes, &list))
}

/// Edges whose both ends are uniform.
pub(crate) fn uniform(nodes: u64, edges: u64, max_weight: u32, random: &mut Random) -> Csr {
    let edge = |_| (random.below(nodes) as u32, random.below(nodes) as u32, weight(random, max_weight));
    let list: Vec<_> = (0..edges).map(edge).collect();
    Csr::of_edges(nodes, &list)
}

/// A grid of crossings, numbered row by row, each joined in both directions (one weight) to its right and
/// lower neighbour.
pub(crate) fn road_grid(width: u64, height: u64, max_weight: u32, random: &mut Random) -> Csr {
    let mut list = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let node = (y * width + x) as u32;
            let right = (x + 1 < width).then_some(node + 1);
            let below = (y + 1 < height).then_some(node + width as u32);
            for other in [right, below].into_iter().flatten() {
                let weight = weight(random, max_weight);
                list.push((node, other, weight));
                list.push((other, node, weight));
            }
        }
    }
    Csr::of_edges(width * height, &list)
}

#[cfg(test)]
mod tests {
    use super::super::random::Seeds;
    use super::*;

    fn random() -> Random {
        Random::new(Seeds { manifest: 1, run: 0 }, 0, "graph g")
    }

    fn is_sound(graph: &Csr) {
        assert_eq!(graph.row_ptr[0], 0);
        assert_eq!(*graph.row_ptr.last().unwrap(), graph.edges());
        assert!(graph.row_ptr.is_sorted());
        assert!(graph.col.iter().all(|target| u64::from(*target) < graph.nodes()));
        assert_eq!(graph.weight.len(), graph.col.len());
    }

    #[test]
    fn generated_graphs_are_sound_and_have_the_size_asked_for() {
        for graph in
            [rmat(1000, 8000, [0.57, 0.19, 0.19], 10, &mut random()).unwrap(), uniform(1000, 8000, 10, &mut random())]
        {
            is_sound(&graph);
            assert_eq!((graph.nodes(), graph.edges()), (1000, 8000));
            assert!(graph.weight.iter().all(|w| (1..=10).contains(w)));
        }
        let grid = road_grid(3, 4, 5, &mut random());
        is_sound(&grid);
        assert_eq!((grid.nodes(), grid.edges()), (12, 2 * (2 * 4 + 3 * 3)));
    }

    #[test]
    fn an_rmat_graph_is_skewed_and_a_uniform_one_is_not() {
        let most = |graph: &Csr| graph.row_ptr.windows(2).map(|w| w[1] - w[0]).max().unwrap();
        let skewed = rmat(1024, 8192, [0.57, 0.19, 0.19], 1, &mut random()).unwrap();
        let flat = uniform(1024, 8192, 1, &mut random());
        assert!(most(&skewed) > 3 * most(&flat), "{} and {}", most(&skewed), most(&flat));
    }

    #[test]
    fn an_rmat_graph_that_cannot_be_is_given_up() {
        assert!(rmat(3, 1, [0.0, 0.0, 0.0], 1, &mut random()).unwrap_err().contains("beyond the 3 nodes"));
        assert!(rmat(4, 1, [0.9, 0.9, 0.0], 1, &mut random()).unwrap_err().contains("no probabilities"));
    }
}
