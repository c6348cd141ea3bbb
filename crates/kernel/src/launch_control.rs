//! Taking a cluster that has not begun from the grid (PTX ISA 9.7.13.17, `clusterlaunchcontrol`): what the
//! answer to a request looks like.
//!
//! A launch without clusters has clusters of one CTA. The answer is 16 bytes in shared memory, which the ISA
//! leaves opaque; here they are
//!
//! | bytes | what they have |
//! |---|---|
//! | 0 to 11 | `%ctaid` of the first CTA of the cluster: x, y, z |
//! | 12 to 15 | 1 where a cluster was taken, which does not begin any more; else 0, as all other bytes |
//!
//! Invariant: a cluster begins, or is taken once. Which one a request gets is up to who hands out CTAs: the
//! functional driver and the machine give the next in the order in which they begin.

use super::launch::Launch;

/// Bytes of an answer.
pub const ANSWER_BYTES: u32 = 16;

/// The answer: the cluster that was taken begins at this place in the order in which CTAs begin
/// ([`Launch::cta_at`]); none was left.
///
/// # Example: no cluster is left
/// ```
/// use durawarp_kernel::launch::Launch;
/// use durawarp_kernel::launch_control::answer;
/// # let text = ".version 8.6\n.target sm_100\n.address_size 64\n.visible .entry k()\n{\n  ret;\n}";
/// # let module = durawarp_kernel::ptx::parse("k.ptx", text).unwrap();
/// let launch = Launch::of_trace(module.kernels[0].clone(), [[4, 2, 1], [32, 1, 1]], Default::default());
/// assert_eq!(answer(None, &launch), [0; 16]);
/// ```
pub fn answer(first: Option<u64>, launch: &Launch) -> [u8; ANSWER_BYTES as usize] {
    let mut bytes = [0; ANSWER_BYTES as usize];
    let Some(place) = first else { return bytes };
    let [x, y, z] = launch.cta_index(launch.cta_at(place));
    for (to, word) in bytes.chunks_exact_mut(4).zip([x, y, z, 1]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
