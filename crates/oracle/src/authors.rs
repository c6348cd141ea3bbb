//! Authors of facts, as judges check and name them.
//!
//! Invariant: reports name every author by the five numbers of a warp, so that they are of one shape. A hart
//! is the warp of its number on the SM of its core's; of a verb, the channel stands for the warp, the
//! transaction for the launch and its number for the instruction.

use durawarp_persist::journal::{Author, Fact};

/// An author in the numbers that reports have; what one has not is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShownAuthor {
    pub(super) sm: u16,
    pub(super) launch: u32,
    pub(super) cta: u32,
    pub(super) warp: u16,
    pub(super) pc: u32,
}

impl From<Author> for ShownAuthor {
    fn from(author: Author) -> ShownAuthor {
        let none = ShownAuthor::default();
        match author {
            Author::Warp { sm, launch, cta, warp, pc } => ShownAuthor { sm, launch, cta, warp: warp.into(), pc },
            Author::WarpRegion { sm, launch, cta, warp, .. } => {
                ShownAuthor { sm, launch, cta, warp: warp.into(), pc: 0 }
            }
            Author::Hart { core, hart, pc } => ShownAuthor { sm: core, warp: hart.into(), pc, ..none },
            Author::HartRegion { core, hart, .. } | Author::Entry { core, hart, .. } => {
                ShownAuthor { sm: core, warp: hart.into(), ..none }
            }
            Author::Cta { sm, launch, cta } => ShownAuthor { sm, launch, cta, ..none },
            Author::Sm(sm) | Author::Core { core: sm, .. } => ShownAuthor { sm, ..none },
            Author::Launch(launch) => ShownAuthor { launch, ..none },
            Author::Channel(channel) => ShownAuthor { warp: channel, ..none },
            Author::Verb { channel, sequence } => ShownAuthor { warp: channel, pc: sequence, ..none },
            Author::PostedVerb { channel, transaction, sequence } => {
                ShownAuthor { launch: transaction, warp: channel, pc: sequence, ..none }
            }
            Author::Unknown | Author::Host | Author::HeldRegion { .. } => none,
        }
    }
}

/// What is wrong with a fact whose author cannot have done it.
pub(super) fn misattributed(fact: &Fact) -> Option<String> {
    let Fact { kind, author, .. } = fact;
    (!kind.may_be_of(*author)).then(|| format!("{kind:?} is noted of {author:?}, which cannot have done it"))
}
