//! Graphs in compressed sparse rows, and their generators. Files are read by `graph_file`.
//!
//! Edges are directed; the edges of a node are in the order in which they were made. Weights are integers
//! from 1. Multiple edges and self-loops are kept (as Graph500 does): kernels must stand them.

use super::random::{Random, below_of};

/// Nodes and edges of the largest graph that is made: 32-bit indices, and a bound on the host's memory.
const MAX_NODES: u64 = 1 << 28;
const MAX_EDGES: u64 = 1 << 30;

/// Draws in a row that may miss the nodes before an R-MAT graph is given up.
const MAX_MISSES: u32 = 10_000;

/// Edges of a uniform graph whose targets are drawn at once.
const BATCH: usize = 128;

/// A graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Csr {
    /// First edge of each node, then the number of edges.
    pub(crate) row_ptr: Vec<u64>,
    /// Target of each edge.
    pub(crate) col: Vec<u32>,
    /// Weight of each edge; empty where all are 1.
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
        let mut places = Places::new(nodes, edges.iter().map(|(source, ..)| *source));
        let (mut col, mut weight) = (vec![0; edges.len()], vec![0; edges.len()]);
        for (source, target, w) in edges {
            let at = places.next(*source);
            (col[at], weight[at]) = (*target, *w);
        }
        Csr { row_ptr: places.into_row_ptr(), col, weight }
    }
}

/// Places of edges in compressed rows: the next one of each source.
struct Places {
    /// From 1 on: where the next edge of a node belongs, which comes to be where the following node's begin.
    next: Vec<u64>,
}

impl Places {
    fn new(nodes: u64, sources: impl Iterator<Item = u32>) -> Places {
        let mut next = vec![0_u64; nodes as usize + 2];
        sources.for_each(|source| next[source as usize + 2] += 1);
        let mut sum = 0;
        next[2..].iter_mut().for_each(|count| {
            sum += *count;
            *count = sum;
        });
        Places { next }
    }

    #[inline]
    fn next(&mut self, source: u32) -> usize {
        let next = &mut self.next[source as usize + 1];
        *next += 1;
        *next as usize - 1
    }

    /// When each edge has its place.
    fn into_row_ptr(mut self) -> Vec<u64> {
        self.next.pop();
        self.next
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

/// Edges whose both ends are uniform. An edge has three numbers of the stream: source, target, weight.
pub(crate) fn uniform(nodes: u64, edges: u64, max_weight: u32, random: Random) -> Csr {
    // Each from a generator of its own: weights of 1 are not made, and no list of edges is.
    let [mut from_sources, mut from_targets, mut from_weights] = random.dealt();
    let mut sources = vec![0; edges as usize];
    from_sources.fill(&mut sources, |bits| below_of(bits, nodes) as u32);
    let mut places = Places::new(nodes, sources.iter().copied());
    let mut col = vec![0; sources.len()];
    let mut weight = vec![0; if max_weight == 1 { 0 } else { sources.len() }];
    let (mut targets, mut weights) = ([0; BATCH], [0; BATCH]);
    for sources in sources.chunks(BATCH) {
        from_targets.fill(&mut targets, |bits| below_of(bits, nodes) as u32);
        if max_weight == 1 {
            sources.iter().zip(&targets).for_each(|(source, target)| col[places.next(*source)] = *target);
        } else {
            from_weights.fill(&mut weights, |bits| below_of(bits, u64::from(max_weight)) as u32 + 1);
            for (source, (target, w)) in sources.iter().zip(targets.iter().zip(&weights)) {
                let at = places.next(*source);
                (col[at], weight[at]) = (*target, *w);
            }
        }
    }
    Csr { row_ptr: places.into_row_ptr(), col, weight }
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
        assert!(graph.weight.is_empty() || graph.weight.len() == graph.col.len());
    }

    #[test]
    fn generated_graphs_are_sound_and_have_the_size_asked_for() {
        for graph in
            [rmat(1000, 8000, [0.57, 0.19, 0.19], 10, &mut random()).unwrap(), uniform(1000, 8000, 10, random())]
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
    fn a_uniform_graph_is_its_stream_sorted_by_source() {
        for max_weight in [1, 10] {
            let mut stream = random();
            let mut edge = || (stream.below(50) as u32, stream.below(50) as u32, weight(&mut stream, max_weight));
            let list: Vec<_> = (0..700).map(|_| edge()).collect();
            let (mut whole, graph) = (Csr::of_edges(50, &list), uniform(50, 700, max_weight, random()));
            if max_weight == 1 {
                assert_eq!(std::mem::take(&mut whole.weight), [1; 700]);
            }
            assert_eq!(graph, whole);
            let sorted = list.iter().filter(|edge| edge.0 == 7).map(|edge| edge.1);
            assert!(sorted.eq(graph.col[graph.row_ptr[7] as usize..graph.row_ptr[8] as usize].iter().copied()));
        }
    }

    #[test]
    fn an_rmat_graph_is_skewed_and_a_uniform_one_is_not() {
        let most = |graph: &Csr| graph.row_ptr.windows(2).map(|w| w[1] - w[0]).max().unwrap();
        let skewed = rmat(1024, 8192, [0.57, 0.19, 0.19], 1, &mut random()).unwrap();
        let flat = uniform(1024, 8192, 1, random());
        assert!(most(&skewed) > 3 * most(&flat), "{} and {}", most(&skewed), most(&flat));
    }

    #[test]
    fn an_rmat_graph_that_cannot_be_is_given_up() {
        assert!(rmat(3, 1, [0.0, 0.0, 0.0], 1, &mut random()).unwrap_err().contains("beyond the 3 nodes"));
        assert!(rmat(4, 1, [0.9, 0.9, 0.0], 1, &mut random()).unwrap_err().contains("no probabilities"));
    }
}
