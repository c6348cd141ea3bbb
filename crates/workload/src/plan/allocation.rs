//! A buffer of a plan: its place, its size and its initial content.

use std::borrow::Cow;
use std::sync::Arc;

use durawarp_kernel::launch::{Surface, Texture};

/// A buffer's place, size and initial content.
#[derive(Debug, Clone)]
pub(crate) struct Allocation {
    /// 0 for a buffer in the constant bank.
    pub(crate) address: u64,
    /// Elements.
    pub(crate) len: u64,
    /// Size.
    pub(crate) bytes: u64,
    /// Initial content; nothing is kept of zeros.
    initial: Option<Arc<Vec<u8>>>,
    pub(crate) texture: Option<Texture>,
    pub(crate) surface: Option<Surface>,
}

impl Allocation {
    /// A buffer of `len` elements without an address.
    pub(crate) fn new(len: u64, initial: Vec<u8>) -> Self {
        let bytes = initial.len() as u64;
        let initial = initial.iter().any(|byte| *byte != 0).then(|| Arc::new(initial));
        Allocation { address: 0, len, bytes, initial, texture: None, surface: None }
    }

    /// A buffer of `len` elements of `stride` bytes, all zeros.
    pub(crate) fn zeros(len: u64, stride: u64) -> Self {
        Allocation { address: 0, len, bytes: len * stride, initial: None, texture: None, surface: None }
    }

    /// Initial content, if it is not all zeros.
    pub(crate) fn kept(&self) -> Option<&Arc<Vec<u8>>> {
        self.initial.as_ref()
    }

    /// Whether the initial content is `bytes`.
    pub(crate) fn began_as(&self, bytes: &[u8]) -> bool {
        match &self.initial {
            Some(initial) => initial.as_slice() == bytes,
            None => bytes.iter().all(|&byte| byte == 0),
        }
    }

    /// Initial content.
    pub(crate) fn initial(&self) -> Cow<'_, [u8]> {
        self.kept().map_or_else(|| Cow::Owned(vec![0; self.bytes as usize]), |bytes| Cow::Borrowed(bytes.as_slice()))
    }
}
