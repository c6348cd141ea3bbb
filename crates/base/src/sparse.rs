//! Large memories that were hardly written: their zeros are neither copied nor touched, so that the host
//! commits no page for them.
//!
//! A power failure is judged at thousands of instants, each on its own copy of a memory of which a program of
//! a few kilobytes has megabytes. Invariant: what is copied is equal to what it was copied from.

/// Bytes that are looked at together: a page of most hosts.
const PAGE_BYTES: usize = 4096;

const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// The pages that have a byte other than zero, by their offsets; the last one may be short.
///
/// ```
/// let mut bytes = vec![0; 10_000];
/// bytes[9_000] = 7;
/// let pages: Vec<(usize, usize)> = durawarp_base::sparse::pages(&bytes).map(|(at, page)| (at, page.len())).collect();
/// assert_eq!(pages, [(8192, 1808)]);
/// ```
pub fn pages(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let all = (0..).step_by(PAGE_BYTES).zip(bytes.chunks(PAGE_BYTES));
    all.filter(|(_, page)| *page != &ZEROS[..page.len()])
}

/// A copy.
pub fn copy_of(bytes: &[u8]) -> Vec<u8> {
    let mut copy = vec![0; bytes.len()];
    for (at, page) in pages(bytes) {
        copy[at..at + page.len()].copy_from_slice(page);
    }
    copy
}

/// Makes bytes equal to as many others; pages that are so already are left untouched.
///
/// # Panics
/// The lengths differ.
pub fn overwrite(bytes: &mut [u8], with: &[u8]) {
    assert_eq!(bytes.len(), with.len(), "as many bytes");
    for (old, new) in bytes.chunks_mut(PAGE_BYTES).zip(with.chunks(PAGE_BYTES)) {
        if old != new {
            old.copy_from_slice(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Zeros, but at these places.
    fn written(bytes: usize, at: &[usize]) -> Vec<u8> {
        let mut all = vec![0; bytes];
        at.iter().for_each(|&at| all[at] = at as u8 | 1);
        all
    }

    #[test]
    fn a_copy_is_equal_wherever_bytes_are_written() {
        let last = 3 * PAGE_BYTES + 5;
        for at in [&[][..], &[0], &[PAGE_BYTES - 1, PAGE_BYTES], &[2 * PAGE_BYTES + 9, last - 1]] {
            let (bytes, other) = (written(last, at), written(last, &[1, PAGE_BYTES, last - 2]));
            assert_eq!(copy_of(&bytes), bytes, "{at:?}");
            let mut changed = other;
            overwrite(&mut changed, &bytes);
            assert_eq!(changed, bytes, "{at:?}");
        }
        assert!(copy_of(&[]).is_empty());
    }
}
