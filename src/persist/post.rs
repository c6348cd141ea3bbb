//! What sites write and ask for: letters to peers, lines and bytes that their host moves, notes for its journal.
//!
//! A site acts through the [`Post`] of its host alone, which carries out what is in it once the site has returned: letters in
//! order, each over the link to its peer, which has a latency of its own. Invariant: nothing in a post is a pointer to anybody's state.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;

use crate::engine::Time;

use super::journal::{Author, FactKind, Notebook};
use super::vocab::RegionStep;

/// Who is written to, or has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// The site of an SM.
    Sm(u16),
    /// The site of an L2 slice.
    Slice(u16),
    /// The site of the L2 slice of an address; only written to.
    SliceOf(u64),
    /// The scheme's own component.
    Hub,
    /// The command processor's site; it writes, nobody writes to it.
    Host,
    /// The site of a memory controller.
    Controller(u16),
    /// The site of the memory controller of an address; only written to.
    ControllerOf(u64),
}

/// What sites of one scheme tell each other: the scheme's own type, plain data.
pub trait Letter: Any + Debug + Send {
    /// A number that stands for its content.
    fn digest(&self) -> u64;
}

/// What a letter of a scheme says.
///
/// # Panics
/// When it is another scheme's: sites of two schemes never meet in a machine.
pub fn opened<L: Letter>(letter: Box<dyn Letter>) -> L {
    let letter: Box<dyn Any> = letter;
    match letter.downcast() {
        Ok(own) => *own,
        Err(_) => panic!("a letter of another scheme"),
    }
}

/// What time it is, and letters that a site has written and its host will send, in order.
#[derive(Debug, Default)]
pub struct Post {
    letters: Vec<(Peer, Box<dyn Letter>, Time)>,
    flushes: VecDeque<Flush>,
    notes: Vec<Note>,
    /// Its host keeps a journal.
    noting: bool,
    moves: Vec<Move>,
    cleans: Vec<u64>,
    persists: VecDeque<(u64, u64)>,
    now: Time,
}

/// Bytes that a slice's site moves between a buffer of its own and the memory reserved for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// So many to memory.
    Out(u32),
    /// So many back.
    In(u32),
}

impl Post {
    /// Of a host that keeps a journal, or does not.
    pub fn of_host(journal: bool) -> Post {
        Post { noting: journal, ..Post::default() }
    }

    /// The host handles an event of this time.
    pub fn at(&mut self, now: Time) {
        self.now = now;
    }

    /// The time of the event that the host handles, in ticks ([`Seat::tick_khz`](super::site::Seat::tick_khz)).
    pub fn now(&self) -> Time {
        self.now
    }

    /// Writes a letter.
    pub fn send(&mut self, to: Peer, letter: impl Letter) {
        self.send_in(0, to, letter);
    }

    /// Writes a letter that leaves so many ticks from now. Only SMs' and controllers' sites may.
    pub fn send_in(&mut self, delay: Time, to: Peer, letter: impl Letter) {
        self.letters.push((to, Box::new(letter), delay));
    }

    /// Has the controller write to memory, as soon as its write queue has room, in the order of asking.
    pub fn flush(&mut self, flush: Flush) {
        self.flushes.push_back(flush);
    }

    /// What is to be written, in order; taken by its host.
    pub fn flushes(&mut self) -> &mut VecDeque<Flush> {
        &mut self.flushes
    }

    /// Some are still to be written.
    pub fn has_flushes(&self) -> bool {
        !self.flushes.is_empty()
    }

    /// Has the host note a step of a region in its journal, where it keeps one.
    pub fn note(&mut self, step: RegionStep, author: Author) {
        if self.noting {
            self.notes.push(Note { step, author, bytes: None });
        }
    }

    /// The same with bytes of a line.
    pub fn note_bytes(&mut self, step: RegionStep, author: Author, line: u64, mask: u128, bytes: &[u8; 128]) {
        if self.noting {
            self.notes.push(Note { step, author, bytes: Some((line, mask, Box::new(*bytes))) });
        }
    }

    /// Notes down what the site has said.
    pub fn write_notes(&mut self, notebook: Option<&mut Notebook>, time: Time) {
        let Some(notebook) = notebook else { return };
        for Note { step, author, bytes } in self.notes.drain(..) {
            let kind = FactKind::Region(step);
            match bytes {
                Some((line, mask, bytes)) => notebook.note_data(time, kind, line, mask, author, &bytes),
                None => notebook.note(time, kind, 0, author),
            }
        }
    }

    /// Moves bytes, at most a line's; only a slice's site of a scheme that reserves memory may.
    pub fn transfer(&mut self, bytes: Move) {
        self.moves.push(bytes);
    }

    /// Has a line's dirty bytes leave the host's cache for the next level; the line stays.
    pub fn clean(&mut self, line: u64) {
        self.cleans.push(line);
    }

    /// The lines to be cleaned, in order; taken by its host.
    pub fn cleans(&mut self) -> &mut Vec<u64> {
        &mut self.cleans
    }

    /// Has a line's dirty bytes leave the SM's L1 for memory, past the L2's array; the line stays. `id` is the site's name
    /// for what leaves, and comes back in [`SmSite::persisted`](super::site::SmSite::persisted). Only a site that orders what leaves may.
    pub fn persist(&mut self, line: u64, id: u64) {
        self.persists.push_back((line, id));
    }

    /// The lines that leave so, in order, with their names; taken by its host.
    pub fn persists(&mut self) -> &mut VecDeque<(u64, u64)> {
        &mut self.persists
    }

    /// Takes what is to be moved.
    pub fn take_moves(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.moves)
    }

    /// Nothing is to be sent or moved.
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty() && self.moves.is_empty() && self.notes.is_empty()
    }

    /// Takes what is to be sent, all of it at once.
    pub fn take(&mut self) -> Vec<(Peer, Box<dyn Letter>)> {
        let letters = std::mem::take(&mut self.letters).into_iter();
        letters
            .map(|(to, letter, delay)| {
                assert!(delay == 0, "a letter that leaves later");
                (to, letter)
            })
            .collect()
    }

    /// Takes what is to be sent, with the ticks until it leaves.
    pub fn take_timed(&mut self) -> std::vec::Drain<'_, (Peer, Box<dyn Letter>, Time)> {
        self.letters.drain(..)
    }
}

/// A write to memory that a controller's site asks for.
#[derive(Debug, Clone)]
pub struct Flush {
    /// The site's name for it.
    pub token: u64,
    /// Whose region it is of, as journals say it.
    pub author: Author,
    /// Address of the line's first byte.
    pub line: u64,
    /// Bytes of the line.
    pub mask: u128,
    /// Their content.
    pub bytes: Box<[u8; 128]>,
    /// What memory has of these bytes is saved in an undo log first.
    pub logged: bool,
}

#[derive(Debug)]
struct Note {
    step: RegionStep,
    author: Author,
    bytes: Option<(u64, u128, Box<[u8; 128]>)>,
}
