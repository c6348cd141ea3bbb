//! A cache in the words of GPGPU-Sim: `S:4:128:64,L:T:m:L:L,A:512:8,16:0,32`.
//!
//! ```text
//! [KIND:]SETS:LINE:WAYS , REPLACEMENT:WRITES:ALLOCATION:WRITE_ALLOCATION[:INDEX] ,
//! MSHR:ENTRIES:MERGES , QUEUE[:FIFO] [, PORT]
//! ```
//! Source: `cache_config::init` of GPGPU-Sim. Older files have neither kind, nor index, nor port.

/// Most sets, bytes, ways, MSHRs of a cache: its size is within 64 bits.
const MOST: u64 = 1 << 20;

/// The fields of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheFields {
    /// `S`: filled by sectors; `N`: by lines.
    pub(super) kind: char,
    pub(super) sets: u64,
    pub(super) line_bytes: u64,
    pub(super) ways: u64,
    /// `L`: LRU; `F`: FIFO.
    pub(super) replacement: char,
    /// `B`: back; `T`: through; `E`: evict; `L`: local memory back, the rest through; `R`: read only.
    pub(super) writes: char,
    /// `m`: on a miss; `f`: on a fill; `s`: streaming.
    pub(super) allocation: char,
    /// `N`: none; `W`: write and fetch; `F`: fetch first; `L`: fetch when read.
    pub(super) write_allocation: char,
    /// `L`: linear; `X`: XOR; `P`: IPoly; `H`: Fermi's hash; `C`: custom.
    pub(super) index: Option<char>,
    /// `A`, `S`: associative; `F`, `T`: FIFOs of texture caches.
    pub(super) mshr: char,
    pub(super) mshr_entries: u64,
    pub(super) mshr_merges: u64,
    pub(super) queue_entries: u64,
    pub(super) port_bytes: Option<u64>,
}

impl CacheFields {
    /// The form that is expected.
    pub(super) const FORM: &str = "KIND:SETS:LINE:WAYS,R:W:A:WA:I,M:MSHRS:MERGES,QUEUE";

    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts: Vec<Vec<&str>> = text.split(',').map(|part| part.split(':').map(str::trim).collect()).collect();
        let number = |part: usize, at: usize| parts.get(part)?.get(at)?.parse::<u64>().ok();
        let some = |part: usize, at: usize| number(part, at).filter(|number| (1..=MOST).contains(number));
        let letter = |part: usize, at: usize| {
            let mut letters = parts.get(part)?.get(at)?.chars();
            letters.next().filter(|_| letters.next().is_none())
        };
        // Without a kind the sizes come first.
        let (kind, sizes) = if parts[0].len() == 3 { ('N', 0) } else { (letter(0, 0)?, 1) };
        Some(CacheFields {
            kind,
            sets: some(0, sizes)?,
            line_bytes: some(0, sizes + 1)?,
            ways: some(0, sizes + 2)?,
            replacement: letter(1, 0)?,
            writes: letter(1, 1)?,
            allocation: letter(1, 2)?,
            write_allocation: letter(1, 3)?,
            index: letter(1, 4),
            mshr: letter(2, 0)?,
            mshr_entries: some(2, 1)?,
            mshr_merges: some(2, 2)?,
            queue_entries: some(3, 0)?,
            port_bytes: number(4, 0).filter(|&bytes| bytes > 0),
        })
    }

    /// Capacity of all its sets and ways.
    pub(super) fn kb(&self) -> f64 {
        (self.sets * self.line_bytes * self.ways) as f64 / 1024.0
    }

    /// The name of its replacement policy.
    pub(super) fn policy(&self) -> &'static str {
        if self.replacement == 'F' { "fifo" } else { "lru" }
    }

    /// What of it is otherwise here, but for what writes do.
    pub(super) fn otherwise(&self) -> Vec<String> {
        let mut told = Vec::new();
        if self.kind != 'S' {
            told.push(format!("kind {}: a miss fetches a whole line there, its sectors here", self.kind));
        }
        if !matches!(self.replacement, 'L' | 'F') {
            told.push(format!("replacement {}: here LRU", self.replacement));
        }
        if self.allocation != 'm' {
            told.push(format!("allocation {}: here on a miss (m)", self.allocation));
        }
        if let Some(index) = self.index {
            told.push(format!("index {index}: here an XOR of all bits of the line's number"));
        }
        if matches!(self.mshr, 'F' | 'T') {
            told.push(format!("MSHRs {}: here associative (A)", self.mshr));
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_ages_are_read() {
        let new = CacheFields::parse("S:4:128:64,L:T:m:L:L,A:512:8,16:0,32").unwrap();
        let numbers = [new.sets, new.line_bytes, new.ways, new.mshr_entries, new.mshr_merges, new.queue_entries];
        assert_eq!(numbers, [4, 128, 64, 512, 8, 16]);
        assert_eq!((new.kind, new.writes, new.index, new.port_bytes), ('S', 'T', Some('L'), Some(32)));
        assert_eq!((new.policy(), CacheFields::parse("8:64:4,F:B:m:N,A:16:4,4").unwrap().policy()), ("lru", "fifo"));
        let old = CacheFields::parse("64:128:8,L:B:m:N,A:16:4,4").unwrap();
        assert_eq!((old.kind, old.sets, old.ways, old.index, old.port_bytes), ('N', 64, 8, None, None));
        assert_eq!(old.kb(), 64.0);
        let huge = "S:1048577:128:64,L:T:m:L:L,A:512:8,16";
        for wrong in
            ["", "none", "S:4:128", "S:4:128:64", "S:0:128:64,L:T:m:L:L,A:512:8,16", "S:4:128:64,L:T:m,A:1:1,1", huge]
        {
            assert_eq!(CacheFields::parse(wrong), None, "{wrong}");
        }
    }
}
