//! Graphs from files: DIMACS `.gr`, Matrix Market `.mtx` and Rodinia's text format.
//!
//! A fault names its line. Weights must fit 32 bits; node numbers become 0-based.

use super::graph::{Csr, check_sizes};

/// Reads the text of a graph file; its first line decides the format.
///
/// # Errors
/// The line and what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Csr, String> {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if first.starts_with("%%MatrixMarket") {
        read_matrix_market(text)
    } else if first.trim().bytes().all(|c| c.is_ascii_digit()) && !first.is_empty() {
        read_rodinia(text)
    } else {
        read_dimacs(text)
    }
}

/// The words of a line as numbers, or a fault that names the line.
fn numbers<const N: usize>(words: &[&str], line: usize) -> Result<[u64; N], String> {
    let form = || format!("line {}: expected {N} whole numbers", line + 1);
    let found: Vec<u64> = words.iter().map(|word| word.parse().map_err(|_| form())).collect::<Result<_, _>>()?;
    found.try_into().map_err(|_| form())
}

/// 1-based node number to 0-based.
fn node(number: u64, nodes: u64, line: usize) -> Result<u32, String> {
    if number == 0 || number > nodes {
        return Err(format!("line {}: node {number} is not in 1 to {nodes}", line + 1));
    }
    Ok((number - 1) as u32)
}

/// The 9th DIMACS challenge's format: `c` comments, `p sp NODES EDGES`, `a FROM TO WEIGHT`.
fn read_dimacs(text: &str) -> Result<Csr, String> {
    let mut sizes = None;
    let mut list = Vec::new();
    for (line, words) in text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>()).enumerate() {
        match (words.split_first(), sizes) {
            (None | Some((&"c", _)), _) => {}
            (Some((&"p", rest)), None) => {
                let [nodes, edges] = numbers(rest.get(1..).unwrap_or(&[]), line)?;
                check_sizes(nodes as i64, edges as i64)?;
                sizes = Some((nodes, edges));
            }
            (Some((&"a", rest)), Some((nodes, _))) => {
                let [from, to, weight] = numbers(rest, line)?;
                let weight = u32::try_from(weight).map_err(|_| format!("line {}: weight too large", line + 1))?;
                list.push((node(from, nodes, line)?, node(to, nodes, line)?, weight));
            }
            _ => {
                return Err(format!("line {}: expected `p sp NODES EDGES`, then lines `a FROM TO WEIGHT`", line + 1));
            }
        }
    }
    let (nodes, edges) = sizes.ok_or("the file has no line `p sp NODES EDGES`")?;
    if list.len() as u64 != edges {
        return Err(format!("the file announces {edges} edges and has {}", list.len()));
    }
    Ok(Csr::of_edges(nodes, &list))
}

/// Matrix Market coordinate format; the values of a non-pattern matrix are not read, weights are 1.
fn read_matrix_market(text: &str) -> Result<Csr, String> {
    let mut lines = text.lines().enumerate();
    let header = lines.next().map_or("", |(_, line)| line).to_ascii_lowercase();
    let words: Vec<&str> = header.split_whitespace().collect();
    let ["%%matrixmarket", "matrix", "coordinate", _, symmetry] = words[..] else {
        return Err("line 1: expected `%%MatrixMarket matrix coordinate TYPE SYMMETRY`".to_owned());
    };
    // A symmetric file has one triangle of the matrix: each entry off the diagonal is two edges.
    let both = match symmetry {
        "general" => false,
        "symmetric" => true,
        _ => {
            return Err(format!("line 1: symmetry `{symmetry}` is not supported (general, symmetric)"));
        }
    };
    let mut sizes = None;
    let mut entries = 0;
    let mut list = Vec::new();
    for (line, text) in lines.filter(|(_, line)| !line.starts_with('%') && !line.trim().is_empty()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        // The first line after the comments has the sizes, all others are entries.
        let Some((nodes, _)) = sizes else {
            let [rows, cols, count] = numbers(&words, line)?;
            if rows != cols {
                return Err(format!("line {}: a graph's matrix is square, not {rows} by {cols}", line + 1));
            }
            check_sizes(rows as i64, count as i64)?;
            sizes = Some((rows, count));
            continue;
        };
        let [row, col] = numbers(words.get(..2).unwrap_or(&words), line)?;
        let (row, col) = (node(row, nodes, line)?, node(col, nodes, line)?);
        entries += 1;
        list.push((row, col, 1));
        if both && row != col {
            list.push((col, row, 1));
        }
    }
    let (nodes, count) = sizes.ok_or("the file has no line of sizes")?;
    // Entries are counted, not edges: the file announces what it writes down.
    if entries != count {
        return Err(format!("the file announces {count} entries and has {entries}"));
    }
    Ok(Csr::of_edges(nodes, &list))
}

/// Rodinia's format: NODES, then `FIRST_EDGE EDGES` a node, the source of its search (which the manifest
/// chooses here), EDGES, then `TARGET WEIGHT` an edge, nodes numbered from 0; line breaks mean nothing.
fn read_rodinia(text: &str) -> Result<Csr, String> {
    let words = text.lines().enumerate().flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)));
    let mut words = words.peekable();
    let mut next = |what: &str| -> Result<(u64, usize), String> {
        let (line, word) = words.next().ok_or_else(|| format!("the file ends where {what} should be"))?;
        let number = word.parse().map_err(|_| format!("line {}: expected {what}, found `{word}`", line + 1))?;
        Ok((number, line))
    };
    let (nodes, _) = next("the number of nodes")?;
    check_sizes(i64::try_from(nodes).unwrap_or(-1), 0)?;
    let mut row_ptr = vec![0];
    for node in 0..nodes {
        let (first, line) = next("the first edge of a node")?;
        let (count, _) = next("the number of edges of a node")?;
        // The format says twice where edges lie: both must agree before a graph is made of them.
        if first != row_ptr[node as usize] {
            let message =
                format!("node {node} starts at edge {first}, the one before it ends at {}", row_ptr[node as usize]);
            return Err(format!("line {}: {message}", line + 1));
        }
        row_ptr.push(first.saturating_add(count));
    }
    next("the source node")?;
    let (edges, line) = next("the number of edges")?;
    check_sizes(1, i64::try_from(edges).unwrap_or(-1))?;
    if row_ptr[nodes as usize] != edges {
        return Err(format!("line {}: {edges} edges, the nodes have {}", line + 1, row_ptr[nodes as usize]));
    }
    let (mut col, mut weight) = (Vec::new(), Vec::new());
    for _ in 0..edges {
        let (target, line) = next("the target of an edge")?;
        let (cost, _) = next("the weight of an edge")?;
        if target >= nodes {
            return Err(format!("line {}: node {target} is not in 0 to {}", line + 1, nodes - 1));
        }
        col.push(target as u32);
        weight.push(u32::try_from(cost).map_err(|_| format!("line {}: weight too large", line + 1))?);
    }
    Ok(Csr { row_ptr, col, weight })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dimacs_file_is_read() {
        let graph = read("c two roads\np sp 3 2\na 1 3 7\na 3 2 9\n").unwrap();
        assert_eq!(graph, Csr { row_ptr: vec![0, 1, 1, 2], col: vec![2, 1], weight: vec![7, 9] });
    }

    #[test]
    fn a_symmetric_matrix_gives_both_directions_and_one_self_loop() {
        let text = "%%MatrixMarket matrix coordinate real symmetric\n% note\n3 3 2\n2 1 0.5\n3 3 1\n";
        let graph = read(text).unwrap();
        assert_eq!((graph.row_ptr, graph.col), (vec![0, 1, 2, 3], vec![1, 0, 2]));
    }

    #[test]
    fn a_broken_file_is_told_by_its_line() {
        assert_eq!(read("p sp 2 1\na 1 5 1\n"), Err("line 2: node 5 is not in 1 to 2".to_owned()));
        assert_eq!(read("p sp 2 3\na 1 2 1\n"), Err("the file announces 3 edges and has 1".to_owned()));
        assert!(read("hello\n").unwrap_err().starts_with("line 1: expected"));
    }

    #[test]
    fn a_rodinia_file_is_read_and_its_faults_are_told() {
        let graph = read("3\n0 1\n1 0\n1 1\n\n0\n\n2\n2 7\n1 9\n").unwrap();
        assert_eq!(graph, Csr { row_ptr: vec![0, 1, 1, 2], col: vec![2, 1], weight: vec![7, 9] });
        assert_eq!(read("1\n0 1\n0\n1\n4 1\n"), Err("line 5: node 4 is not in 0 to 0".to_owned()));
        assert_eq!(
            read("2\n0 1\n5 1\n"),
            Err("line 3: node 1 starts at edge 5, the one before it ends at 1".to_owned())
        );
        assert_eq!(read("1\n0 1\n0\n2\n"), Err("line 4: 2 edges, the nodes have 1".to_owned()));
        assert_eq!(read("2\n0 x\n"), Err("line 2: expected the number of edges of a node, found `x`".to_owned()));
        assert_eq!(read("2\n0 1\n"), Err("the file ends where the first edge of a node should be".to_owned()));
    }
}
