//! The bytes of one medium on one channel, in pages that exist once something other than zero was put there.
//!
//! A page may be *initial*: its bytes are those that memory began with, and lie where whoever made them keeps
//! them ([`Origin`]) until the page is first written to.
//!
//! Invariants: bytes never written are zero, or initial; an access beyond the end panics, but for the tail of
//! the last line, which may be shorter than the longest line of any machine. Cost: one look at a table more
//! than a flat array; memory is what is used.

use std::sync::Arc;

use super::contents::{Contents, Origin};
use super::msg::{Line, MAX_LINE_BYTES, copy_masked};
use durawarp_checkpoint::{LoadFault, StateReader, StateWriter, Stateful, Storable};
use durawarp_engine::StateDigest;
use durawarp_kernel::warp::prefetch;

/// A line never straddles two pages.
const PAGE_BYTES: usize = 1 << 16;
const _: () = assert!(PAGE_BYTES.is_multiple_of(MAX_LINE_BYTES));

/// Pieces of 256 bytes, as a rule, between the one that is folded and the one that memory is asked for.
const PIECES_AHEAD: usize = 8;

/// What an image knows of the bytes of a page.
#[derive(Debug, Clone, Default)]
enum Page {
    #[default]
    Zeros,
    /// They are the origin's.
    Initial,
    Own(Box<[u8; PAGE_BYTES]>),
}

/// Bytes by channel-local address.
#[derive(Debug, Clone, Default)]
pub struct Image {
    pages: Vec<Page>,
    bytes: usize,
    origin: Option<Origin>,
}

/// Pages of its own; all others are as it was assembled.
impl Stateful for Image {
    fn save(&self, out: &mut StateWriter) {
        let Image { pages, bytes, origin: _ } = self;
        bytes.save(out);
        for page in pages {
            match page {
                Page::Zeros => out.bytes(&[0]),
                Page::Initial => out.bytes(&[1]),
                Page::Own(own) => {
                    out.bytes(&[2]);
                    out.bytes(&own[..]);
                }
            }
        }
    }

    fn load(&mut self, from: &mut StateReader<'_>) -> Result<(), LoadFault> {
        let Image { pages, bytes, origin } = self;
        let saved = usize::read(from)?;
        if saved != *bytes {
            return Err(LoadFault::length(saved, *bytes).within("bytes"));
        }
        for page in pages {
            *page = match from.bytes(1)?[0] {
                0 => Page::Zeros,
                1 if origin.is_some() => Page::Initial,
                2 => {
                    let mut own = zeros();
                    own.copy_from_slice(from.bytes(PAGE_BYTES)?);
                    Page::Own(own)
                }
                other => return Err(LoadFault::new(format!("{other} names no kind of page"))),
            };
        }
        Ok(())
    }
}

/// Page and offset in it.
fn place(at: usize) -> (usize, usize) {
    (at / PAGE_BYTES, at % PAGE_BYTES)
}

fn zeros() -> Box<[u8; PAGE_BYTES]> {
    match vec![0; PAGE_BYTES].into_boxed_slice().try_into() {
        Ok(page) => page,
        Err(_) => unreachable!("a page has the bytes of a page"),
    }
}

impl Image {
    /// `bytes` zeros.
    pub fn new(bytes: usize) -> Image {
        Image { pages: vec![Page::Zeros; bytes.div_ceil(PAGE_BYTES)], bytes, origin: None }
    }

    /// The bytes are those of an origin from now on; before, they are zeros.
    pub fn begin(&mut self, origin: Origin) {
        for (first, page) in (0..).step_by(PAGE_BYTES).zip(&mut self.pages) {
            if !origin.is_zero(first, PAGE_BYTES.min(self.bytes - first)) {
                *page = Page::Initial;
            }
        }
        self.origin = Some(origin);
    }

    /// The bytes are those of other contents from now on.
    pub fn replace_all(&mut self, contents: &Arc<Contents>) {
        if let Some(origin) = &mut self.origin {
            *origin = origin.of(contents.clone());
            self.pages.fill(Page::Initial);
        }
    }

    /// Appends zeros, up to `bytes` bytes in all.
    pub fn grow(&mut self, bytes: usize) {
        self.bytes = self.bytes.max(bytes);
        self.pages.resize(self.bytes.div_ceil(PAGE_BYTES), Page::Zeros);
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// No byte from `from` on and before `to` was ever other than zero. It may say no where all are zero.
    pub fn is_zero(&self, from: usize, to: usize) -> bool {
        self.pages_of(from, to).iter().all(|page| matches!(page, Page::Zeros))
    }

    /// A byte from `from` on and before `to` may have been written to.
    pub fn is_written(&self, from: usize, to: usize) -> bool {
        self.pages_of(from, to).iter().any(|page| matches!(page, Page::Own(_)))
    }

    /// Pages with a byte from `from` on and before `to`.
    fn pages_of(&self, from: usize, to: usize) -> &[Page] {
        self.pages.get(from / PAGE_BYTES..to.div_ceil(PAGE_BYTES).min(self.pages.len())).unwrap_or_default()
    }

    /// What memory began with.
    pub fn contents(&self) -> Option<&Contents> {
        self.origin.as_ref().map(Origin::contents)
    }

    fn origin(&self) -> &Origin {
        self.origin.as_ref().unwrap_or_else(|| unreachable!("initial pages have an origin"))
    }

    /// Copies the bytes from `at` on into `out`.
    ///
    /// # Panics
    /// When they go beyond the end.
    #[inline]
    pub fn read(&self, mut at: usize, mut out: &mut [u8]) {
        assert!(at + out.len() <= self.bytes, "{} bytes at {at} of {}", out.len(), self.bytes);
        while !out.is_empty() {
            let (page, from) = place(at);
            let length = out.len().min(PAGE_BYTES - from);
            let (now, rest) = out.split_at_mut(length);
            match &self.pages[page] {
                Page::Own(page) => now.copy_from_slice(&page[from..from + length]),
                Page::Initial => self.origin().read(at, now),
                Page::Zeros => now.fill(0),
            }
            (at, out) = (at + length, rest);
        }
    }

    /// The bytes of a page, to be written.
    #[inline]
    fn own(&mut self, page: usize) -> &mut [u8; PAGE_BYTES] {
        if !matches!(self.pages[page], Page::Own(_)) {
            self.take_over(page);
        }
        match &mut self.pages[page] {
            Page::Own(page) => page,
            Page::Zeros | Page::Initial => unreachable!("just made its own"),
        }
    }

    #[cold]
    fn take_over(&mut self, page: usize) {
        let mut bytes = zeros();
        if matches!(self.pages[page], Page::Initial) {
            let first = page * PAGE_BYTES;
            let length = PAGE_BYTES.min(self.bytes - first);
            self.origin().read(first, &mut bytes[..length]);
        }
        self.pages[page] = Page::Own(bytes);
    }

    /// Overwrites the bytes from `at` on.
    ///
    /// # Panics
    /// When they go beyond the end.
    pub fn write(&mut self, mut at: usize, mut data: &[u8]) {
        assert!(at + data.len() <= self.bytes, "{} bytes at {at} of {}", data.len(), self.bytes);
        while !data.is_empty() {
            let (page, to) = place(at);
            let (now, rest) = data.split_at(data.len().min(PAGE_BYTES - to));
            if !matches!(self.pages[page], Page::Zeros) || now.iter().any(|&byte| byte != 0) {
                self.own(page)[to..to + now.len()].copy_from_slice(now);
            }
            (at, data) = (at + now.len(), rest);
        }
    }

    /// Overwrites those bytes of the line at `at` that its mask names and that exist.
    #[inline]
    pub fn write_line(&mut self, at: usize, line: &Line) {
        let (page, to) = place(at);
        let left = self.bytes - at;
        let bytes = &mut self.own(page)[to..];
        let exist = if left < MAX_LINE_BYTES { (1u128 << left) - 1 } else { u128::MAX };
        if let Some(bytes) = bytes.first_chunk_mut::<MAX_LINE_BYTES>() {
            copy_masked(bytes, &line.bytes, line.mask & exist);
        } else {
            // The last line of a page, of a machine whose lines are shorter.
            let mut whole = [0; MAX_LINE_BYTES];
            let short = bytes.len();
            whole[..short].copy_from_slice(bytes);
            copy_masked(&mut whole, &line.bytes, line.mask & exist);
            bytes.copy_from_slice(&whole[..short]);
        }
    }

    /// The bytes at `at`, which do not cross a page, are those that memory began with, and lie where `bytes`
    /// do.
    pub fn lies_at(&self, at: usize, bytes: &[u8]) -> bool {
        matches!(self.pages[at / PAGE_BYTES], Page::Initial) && self.origin().lies_at(at, bytes)
    }

    /// Asks the computer for a line's bytes, some time before they are needed: images are larger than its
    /// caches.
    #[inline]
    pub fn touch(&self, at: usize) {
        let (page, from) = place(at);
        match self.pages.get(page) {
            Some(Page::Own(page)) => {
                std::hint::black_box(page[from]);
                std::hint::black_box(page.get(from + 64).copied());
            }
            Some(Page::Initial) => self.origin().touch(at),
            Some(Page::Zeros) | None => {}
        }
    }

    /// Frees the pages from that of `from` on that lie below `to`: their bytes are zero afterwards.
    pub fn forget(&mut self, from: usize, to: usize) {
        let below = (to / PAGE_BYTES).min(self.pages.len());
        self.pages[(from / PAGE_BYTES).min(below)..below].fill(Page::Zeros);
    }

    /// All bytes in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.bytes];
        self.read(0, &mut out);
        out
    }

    /// Folds all bytes.
    pub fn digest(&self, digest: &mut StateDigest) {
        for (number, page) in self.pages.iter().enumerate() {
            match page {
                Page::Zeros => {}
                Page::Own(bytes) => {
                    digest.word(number as u64);
                    digest.bytes(&bytes[..]);
                }
                // The same, of bytes that do not lie together.
                Page::Initial => {
                    digest.word(number as u64);
                    digest.word(PAGE_BYTES as u64);
                    let first = number * PAGE_BYTES;
                    let length = PAGE_BYTES.min(self.bytes - first);
                    // They lie apart, and a word waits for the one before it: memory is asked ahead.
                    let pieces: Vec<_> = self.origin().pieces(first, length).collect();
                    pieces.iter().take(PIECES_AHEAD).for_each(|piece| prefetch::lines(&**piece));
                    for (at, piece) in pieces.iter().enumerate() {
                        pieces.get(at + PIECES_AHEAD).into_iter().for_each(|ahead| prefetch::lines(&**ahead));
                        digest.words(piece);
                    }
                    (length.div_ceil(8)..=PAGE_BYTES / 8).for_each(|_| digest.word(0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Interleave;
    use crate::contents::Contents;
    use durawarp_kernel::memory::Medium;
    use proptest::prelude::*;
    use std::sync::Arc;

    #[test]
    fn pages_exist_once_something_is_put_there() {
        let mut image = Image::new(3 * PAGE_BYTES + 40);
        image.write(10, &[0; 100]);
        assert!(image.pages.iter().all(|page| matches!(page, Page::Zeros)), "zeros need no page");
        image.write(2 * PAGE_BYTES - 1, &[1, 2]);
        let own: Vec<bool> = image.pages.iter().map(|page| matches!(page, Page::Own(_))).collect();
        assert_eq!(own, [false, true, true, false]);
        let zero = |from, to| image.is_zero(from * PAGE_BYTES, to * PAGE_BYTES);
        assert_eq!([zero(0, 1), zero(0, 2), zero(2, 3), zero(3, 9), zero(5, 9)], [true, false, false, true, true]);
        image.forget(0, 2 * PAGE_BYTES + 5);
        let mut bytes = [9; 2];
        image.read(2 * PAGE_BYTES - 1, &mut bytes);
        assert_eq!(bytes, [0, 2], "the page that lies below as a whole is gone");
    }

    /// Channels over shared contents, and the same bytes put into channels of their own.
    fn both() -> (Vec<Image>, Vec<Image>) {
        let map = Interleave::new(6, 3, 256);
        let range = |start: u64, bytes: usize, seed: usize| {
            let bytes = (0..bytes).map(|at| ((at * seed) >> 7) as u8).collect::<Vec<_>>();
            (Medium::Dram.base() + start, Arc::new(bytes))
        };
        // Ends within chunks, a hole, and two ranges in one chunk.
        let ranges = [range(0, 300_001, 31), range(300_032, 100, 77), range(400_000, 500_000, 13)];
        let contents = Arc::new(Contents::new(map, ranges.into_iter()));
        let share = map.channel_share(900_000) as usize;
        let (mut shared, mut own) = (vec![Image::new(share); 3], vec![Image::new(share); 3]);
        for (channel, (shared, own)) in shared.iter_mut().zip(&mut own).enumerate() {
            let origin = Origin::new(contents.clone(), Medium::Dram, channel as u32);
            let mut bytes = vec![0; share];
            origin.read(0, &mut bytes);
            own.write(0, &bytes);
            shared.begin(origin);
        }
        (shared, own)
    }

    #[test]
    fn pages_without_a_byte_other_than_zero_are_not_initial() {
        let map = Interleave::new(4, 2, 256);
        let page = 2 * PAGE_BYTES as u64;
        let of = |first: u64, bytes: Vec<u8>| (Medium::Nvm.base() + first, Arc::new(bytes));
        // A byte at the end of the second page, of the channel that has it; zeros in the third; a hole; a
        // range that ends in the fifth.
        let mut last = vec![0; 2 * page as usize];
        last[page as usize - 1] = 7;
        let ranges = [of(page, last), of(4 * page, vec![1; 300])];
        let contents = Arc::new(Contents::new(map, ranges.into_iter()));
        let initial = [0, 1].map(|channel| {
            let mut image = Image::new(6 * PAGE_BYTES);
            image.begin(Origin::new(contents.clone(), Medium::Nvm, channel));
            image.pages.iter().map(|page| matches!(page, Page::Initial)).collect::<Vec<_>>()
        });
        let has_last = map.channel_of(Medium::Nvm.base() + 2 * page - 1);
        for (channel, initial) in initial.iter().enumerate() {
            assert_eq!(initial[..4], [false, channel == has_last, false, false]);
            assert!(!initial[5]);
        }
        assert!(initial.iter().any(|initial| initial[4]), "the last range is in the fifth page");
    }

    #[test]
    fn what_was_never_written_lies_where_it_came_from() {
        let (mut shared, mut own) = both();
        assert!(shared.iter().all(|image| image.pages.iter().all(|page| !matches!(page, Page::Own(_)))));
        let digest = |image: &Image| {
            let mut digest = StateDigest::default();
            image.digest(&mut digest);
            digest
        };
        for (shared, own) in shared.iter_mut().zip(&mut own) {
            assert!(shared.to_vec() == own.to_vec() && digest(shared) == digest(own));
            let line = Line { bytes: [7; MAX_LINE_BYTES], mask: 0xff00, log: false, launch: 0 };
            for image in [&mut *shared, own] {
                image.write_line(PAGE_BYTES + 512, &line);
            }
            let pages = shared.pages.iter().filter(|page| matches!(page, Page::Own(_))).count();
            assert_eq!(pages, 1, "the page that was written to");
            assert!(shared.to_vec() == own.to_vec() && digest(shared) == digest(own));
            shared.forget(3, PAGE_BYTES);
            assert!(shared.to_vec()[..PAGE_BYTES].iter().all(|&byte| byte == 0));
        }
    }

    #[test]
    fn the_last_line_may_be_short() {
        let mut image = Image::new(PAGE_BYTES + 40);
        image.write_line(PAGE_BYTES, &Line { bytes: [7; MAX_LINE_BYTES], mask: u128::MAX, log: false, launch: 0 });
        assert_eq!(image.to_vec()[PAGE_BYTES..], [7; 40]);
    }

    #[test]
    fn lines_of_64_bytes_fill_a_page_to_its_end() {
        let mut image = Image::new(2 * PAGE_BYTES);
        let line = Line { bytes: [7; MAX_LINE_BYTES], mask: u128::from(u64::MAX), log: false, launch: 0 };
        image.write_line(PAGE_BYTES - 64, &line);
        let mut bytes = [0; 66];
        image.read(PAGE_BYTES - 65, &mut bytes);
        assert_eq!((bytes[0], &bytes[1..65], bytes[65]), (0, &[7; 64][..], 0));
    }

    proptest! {
        #[test]
        fn an_image_is_an_array(
            writes in prop::collection::vec((0usize..2 * PAGE_BYTES, prop::collection::vec(0u8..3, 0..300)), 0..20)
        ) {
            let (mut image, mut plain) = (Image::new(2 * PAGE_BYTES + 300), vec![0; 2 * PAGE_BYTES + 300]);
            for (at, data) in writes {
                image.write(at, &data);
                plain[at..at + data.len()].copy_from_slice(&data);
            }
            prop_assert!(image.to_vec() == plain);
        }
    }
}
