//! Journals made by hand, for the oracle's tests: one line a fact, each one tick after the other.
//!
//! All warps are of CTA 0 of launch 0 on SM 0 unless a fact says otherwise.

use durawarp_persist::journal::{Author, FactKind, Journal};

/// A journal under way.
#[derive(Debug, Default, Clone)]
pub(crate) struct Script {
    pub(crate) journal: Journal,
    pub(crate) time: u64,
}

/// A warp of CTA 0 of launch 0 on SM 0.
pub(crate) fn warp(warp: u8) -> Author {
    warp_of(0, warp)
}

/// The same of another CTA.
pub(crate) fn warp_of(cta: u32, warp: u8) -> Author {
    Author::Warp { sm: 0, launch: 0, cta, warp, pc: 0 }
}

/// The same author at another instruction, if it is a warp.
pub(crate) fn at_pc(author: Author, pc: u32) -> Author {
    match author {
        Author::Warp { sm, launch, cta, warp, .. } => Author::Warp { sm, launch, cta, warp, pc },
        _ => author,
    }
}

impl Script {
    /// A fact without data; the program counter is the number of facts before it.
    pub(crate) fn fact(&mut self, kind: FactKind, address: u64, author: Author) -> &mut Script {
        self.time += 1;
        let pc = self.journal.facts().len() as u32;
        self.journal.note(self.time, kind, address & !127, 0, at_pc(author, pc));
        self
    }

    /// A fact with the bytes at an address; they are all in one line.
    pub(crate) fn data(&mut self, kind: FactKind, address: u64, bytes: &[u8], author: Author) -> &mut Script {
        self.time += 1;
        let (line, at) = (address & !127, (address & 127) as usize);
        let mut room = [0; 128];
        room[at..at + bytes.len()].copy_from_slice(bytes);
        let mask = (u128::MAX >> (128 - bytes.len())) << at;
        let pc = self.journal.facts().len() as u32;
        self.journal.note_data(self.time, kind, line, mask, at_pc(author, pc), &room);
        self
    }

    /// A store through the caches, performed at once.
    pub(crate) fn store(&mut self, author: Author, address: u64, value: u32) -> &mut Script {
        self.data(FactKind::Stored, address, &value.to_le_bytes(), author);
        self.performed_of(author, address, value)
    }

    /// A non-temporal store, performed at once.
    pub(crate) fn through(&mut self, author: Author, address: u64, value: u32) -> &mut Script {
        self.data(FactKind::StoredNonTemporal, address, &value.to_le_bytes(), author);
        self.performed_of(author, address, value)
    }

    /// A write of an SM, or of the host, became visible.
    pub(crate) fn performed(&mut self, by: Author, address: u64, value: u32) -> &mut Script {
        self.data(FactKind::Performed, address, &value.to_le_bytes(), by)
    }

    /// A store of a warp became visible.
    fn performed_of(&mut self, author: Author, address: u64, value: u32) -> &mut Script {
        self.performed(author.processor().map_or(Author::Host, Author::Sm), address, value)
    }

    /// A write-back.
    pub(crate) fn write_back(&mut self, author: Author, address: u64) -> &mut Script {
        self.fact(FactKind::WroteBack, address, author)
    }

    /// A fence.
    pub(crate) fn fence(&mut self, author: Author) -> &mut Script {
        self.fact(FactKind::FencePassed, 0, author)
    }

    /// A fence that did not wait for non-temporal stores.
    pub(crate) fn ordered(&mut self, author: Author) -> &mut Script {
        self.fact(FactKind::FenceOrdered, 0, author)
    }

    /// What it did not wait for is durable.
    pub(crate) fn settled(&mut self, author: Author) -> &mut Script {
        self.fact(FactKind::FenceSettled, 0, author)
    }

    /// A launch began.
    pub(crate) fn launch(&mut self, launch: u32) -> &mut Script {
        self.fact(FactKind::KernelStarted, 0, Author::Launch(launch))
    }

    /// A word was accepted by a controller.
    pub(crate) fn accepted(&mut self, address: u64, value: u32) -> &mut Script {
        self.data(FactKind::Accepted, address, &value.to_le_bytes(), Author::Unknown)
    }

    /// A word reached the media.
    pub(crate) fn at_media(&mut self, address: u64, value: u32) -> &mut Script {
        self.data(FactKind::AtMedia, address, &value.to_le_bytes(), Author::Unknown)
    }

    /// A store that is made durable: stored, written back, accepted, fenced.
    pub(crate) fn persist(&mut self, author: Author, address: u64, value: u32) -> &mut Script {
        self.store(author, address, value).write_back(author, address).accepted(address, value).fence(author)
    }
}
