//! For each of AGPM's asks a machine that meets it, and one that misses it.

use super::{counts, reasons, times};
use crate::papers::tests::pairs::AskPair;

pub(in crate::papers) fn pairs() -> Vec<AskPair> {
    [times::tests::pairs(), counts::tests::pairs(), reasons::tests::pairs()].into_iter().flatten().collect()
}
