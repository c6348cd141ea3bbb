//! Who a fact is of: each kind of author with the numbers that name it, and no others.
//!
//! | noted by | authors |
//! |---|---|
//! | an SM | its warps, their regions, its CTAs, itself |
//! | a core | its harts, their regions, entries of their persist buffers, itself |
//! | an L2 slice, the command processor | an SM or the host, a launch |
//! | a controller | a region as it is held there, an entry, a verb, nobody |
//! | a client, a poster, a NIC | a verb as it was posted, a verb, a channel |
//!
//! Invariants: a number means the same to all readers; an author takes no more than its longest kind, a warp
//! at an instruction, since a journal has one a fact. Not modelled: threads of a warp.

use durawarp_checkpoint::value;

/// Who in the program did it, as far as the component that noted the fact knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Author {
    /// Nobody that is known: what caches write back may be of several.
    #[default]
    Unknown,
    /// A warp at an instruction.
    Warp {
        /// Its SM.
        sm: u16,
        /// Its launch, from 0.
        launch: u32,
        /// Its CTA in the launch.
        cta: u32,
        /// Its number in the CTA.
        warp: u8,
        /// The instruction.
        pc: u32,
    },
    /// A hart at an instruction.
    Hart {
        /// Its core.
        core: u16,
        /// Its number in the core.
        hart: u8,
        /// The instruction's address.
        pc: u32,
    },
    /// An SM, whichever of its warps.
    Sm(u16),
    /// A CTA, all its warps together.
    Cta {
        /// Its SM.
        sm: u16,
        /// Its launch, from 0.
        launch: u32,
        /// Its number in the launch.
        cta: u32,
    },
    /// The host, through the command processor.
    Host,
    /// A launch, from 0.
    Launch(u32),
    /// A recoverable region as a warp has it.
    WarpRegion {
        /// The warp's SM.
        sm: u16,
        /// Its launch, from 0.
        launch: u32,
        /// Its CTA in the launch.
        cta: u32,
        /// Its number in the CTA.
        warp: u8,
        /// The region's number, from 0 in commit order.
        region: u32,
    },
    /// A recoverable region as a hart has it.
    HartRegion {
        /// The hart's core.
        core: u16,
        /// Its number in the core.
        hart: u8,
        /// The region's number, from 0 in commit order.
        region: u32,
    },
    /// A recoverable region as a controller has it.
    HeldRegion {
        /// The controller.
        controller: u16,
        /// The order that the number belongs to: 0 where one holds for the machine, else the region's SM or
        /// core.
        order: u16,
        /// The region's number, from 0 in commit order.
        region: u32,
    },
    /// Stores of a hart in an entry of its persist buffer.
    Entry {
        /// The hart's core.
        core: u16,
        /// Its number in the core.
        hart: u8,
        /// The entry's number in the buffer.
        entry: u32,
        /// How many of the entry's stores are meant, from its first on: a store that joins it is the last of
        /// them, a write has all.
        stores: u32,
    },
    /// A core with its stores to persistent memory.
    Core {
        /// The core.
        core: u16,
        /// How many of those that it performed are meant, from the first on.
        stores: u32,
    },
    /// A channel of a NIC.
    Channel(u16),
    /// A verb, as a server has it.
    Verb {
        /// Its channel.
        channel: u16,
        /// Its number in the channel, from 1.
        sequence: u32,
    },
    /// A verb, as it was posted.
    PostedVerb {
        /// Its channel.
        channel: u16,
        /// The transaction of the channel that it is of.
        transaction: u32,
        /// Its number in the channel, from 1.
        sequence: u32,
    },
}

value!(choice Author {
    Unknown, Warp { sm, launch, cta, warp, pc }, Hart { core, hart, pc }, Sm(sm), Cta { sm, launch, cta }, Host,
    Launch(launch), WarpRegion { sm, launch, cta, warp, region }, HartRegion { core, hart, region },
    HeldRegion { controller, order, region }, Entry { core, hart, entry, stores }, Core { core, stores },
    Channel(channel), Verb { channel, sequence }, PostedVerb { channel, transaction, sequence },
});

const _: () = assert!(size_of::<Author>() == 16, "a journal has one a fact");

/// What has a program order of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Thread {
    /// A warp.
    Warp {
        /// Its SM.
        sm: u16,
        /// Its launch, from 0.
        launch: u32,
        /// Its CTA in the launch.
        cta: u32,
        /// Its number in the CTA.
        warp: u8,
    },
    /// A hart.
    Hart {
        /// Its core.
        core: u16,
        /// Its number in the core.
        hart: u8,
    },
}

impl Author {
    /// Whose program order it is of: a warp's or a hart's.
    #[inline]
    pub fn thread(self) -> Option<Thread> {
        match self {
            Author::Warp { sm, launch, cta, warp, .. } | Author::WarpRegion { sm, launch, cta, warp, .. } => {
                Some(Thread::Warp { sm, launch, cta, warp })
            }
            Author::Hart { core, hart, .. }
            | Author::HartRegion { core, hart, .. }
            | Author::Entry { core, hart, .. } => Some(Thread::Hart { core, hart }),
            _ => None,
        }
    }

    /// The SM or the core that it is of.
    #[inline]
    pub fn processor(self) -> Option<u16> {
        match (self, self.thread()) {
            (_, Some(Thread::Warp { sm, .. })) | (Author::Sm(sm) | Author::Cta { sm, .. }, _) => Some(sm),
            (_, Some(Thread::Hart { core, .. })) | (Author::Core { core, .. }, _) => Some(core),
            _ => None,
        }
    }

    /// The CTA that it is of, behind its launch.
    #[inline]
    pub fn cta(self) -> Option<(u32, u32)> {
        match (self, self.thread()) {
            (_, Some(Thread::Warp { launch, cta, .. })) | (Author::Cta { launch, cta, .. }, _) => Some((launch, cta)),
            _ => None,
        }
    }

    /// The instruction.
    #[inline]
    pub fn pc(self) -> Option<u32> {
        match self {
            Author::Warp { pc, .. } | Author::Hart { pc, .. } => Some(pc),
            _ => None,
        }
    }

    /// The number of the recoverable region.
    #[inline]
    pub fn region(self) -> Option<u32> {
        match self {
            Author::WarpRegion { region, .. }
            | Author::HartRegion { region, .. }
            | Author::HeldRegion { region, .. } => Some(region),
            _ => None,
        }
    }

    /// A verb's channel, and its number there.
    #[inline]
    pub fn verb(self) -> Option<(u16, u32)> {
        match self {
            Author::Verb { channel, sequence } | Author::PostedVerb { channel, sequence, .. } => {
                Some((channel, sequence))
            }
            _ => None,
        }
    }

    /// A region of the warp's or the hart's; another author has none and stays as it is.
    #[inline]
    pub fn in_region(self, region: u32) -> Author {
        match self {
            Author::Warp { sm, launch, cta, warp, .. } => Author::WarpRegion { sm, launch, cta, warp, region },
            Author::Hart { core, hart, .. } => Author::HartRegion { core, hart, region },
            _ => self,
        }
    }

    /// The hart's stores in an entry of its persist buffer, up to the `stores`-th. A verb that has an entry
    /// stays the verb.
    #[inline]
    pub fn in_entry(self, entry: u32, stores: u32) -> Author {
        match self {
            Author::Hart { core, hart, .. } => Author::Entry { core, hart, entry, stores },
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use durawarp_checkpoint::{Context, StateReader, StateWriter, Storable};

    use super::*;

    const WARP: Author = Author::Warp { sm: 1, launch: 2, cta: 3, warp: 4, pc: 5 };
    const HART: Author = Author::Hart { core: 6, hart: 7, pc: 8 };

    #[test]
    fn an_author_has_the_numbers_of_its_kind_and_no_others() {
        let thread = Thread::Warp { sm: 1, launch: 2, cta: 3, warp: 4 };
        let region = WARP.in_region(9);
        assert_eq!((WARP.thread(), region.thread()), (Some(thread), Some(thread)));
        assert_eq!((WARP.pc(), WARP.region(), region.pc(), region.region()), (Some(5), None, None, Some(9)));
        assert_eq!((region.processor(), region.cta()), (Some(1), Some((2, 3))));
        let entry = HART.in_entry(9, 2);
        assert_eq!(entry, Author::Entry { core: 6, hart: 7, entry: 9, stores: 2 });
        assert_eq!((entry.thread(), entry.processor(), entry.cta()), (HART.thread(), Some(6), None));
        for of_none in [Author::Unknown, Author::Host, Author::Launch(3), Author::Channel(1)] {
            assert_eq!((of_none.thread(), of_none.processor(), of_none.cta()), (None, None, None));
            assert_eq!((of_none.in_region(1), of_none.in_entry(1, 1)), (of_none, of_none));
        }
    }

    #[test]
    fn a_checkpoint_has_every_number_of_an_author() {
        let held = Author::HeldRegion { controller: 1, order: 2, region: 3 };
        let posted = Author::PostedVerb { channel: 1, transaction: 2, sequence: 3 };
        for author in [Author::Unknown, WARP, HART, WARP.in_region(9), HART.in_entry(9, 2), held, posted] {
            let mut out = StateWriter::default();
            author.save(&mut out);
            let bytes = out.finish().unwrap();
            assert_eq!(Author::read(&mut StateReader::new(&bytes, Context::default())).unwrap(), author);
        }
    }
}
