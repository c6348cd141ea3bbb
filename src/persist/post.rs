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

    /// Its host looks at the notes, whether it keeps a journal or not.
    pub fn keep_notes(&mut self) {
        self.noting = true;
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

    /// Steps of regions that the site has said and nobody has noted down, with their authors, in order.
    pub fn notes(&self) -> impl Iterator<Item = (RegionStep, Author)> {
        self.notes.iter().map(|note| (note.step, note.author))
    }

    /// Forgets what the site has said.
    pub fn drop_notes(&mut self) {
        self.notes.clear();
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

#[cfg(test)]
mod tests {
    use super::super::journal::Journal;
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Number(u64);

    impl Letter for Number {
        fn digest(&self) -> u64 {
            self.0
        }
    }

    #[derive(Debug)]
    struct Other;

    impl Letter for Other {
        fn digest(&self) -> u64 {
            0
        }
    }

    #[test]
    fn letters_are_taken_once_in_order_with_their_delays() {
        let mut post = Post::default();
        assert!(post.is_empty());
        post.at(17);
        post.send(Peer::Hub, Number(1));
        post.send_in(5, Peer::Sm(2), Number(2));
        assert_eq!((post.now(), post.is_empty()), (17, false));
        let taken: Vec<_> = post.take_timed().map(|(to, letter, delay)| (to, letter.digest(), delay)).collect();
        assert_eq!(taken, [(Peer::Hub, 1, 0), (Peer::Sm(2), 2, 5)]);
        post.send(Peer::Slice(3), Number(4));
        let taken: Vec<_> = post.take().into_iter().map(|(to, letter)| (to, opened::<Number>(letter))).collect();
        assert_eq!((taken, post.is_empty()), (vec![(Peer::Slice(3), Number(4))], true));
    }

    #[test]
    #[should_panic(expected = "a letter that leaves later")]
    fn a_letter_that_leaves_later_is_taken_with_its_delay_only() {
        let mut post = Post::default();
        post.send_in(1, Peer::Hub, Number(1));
        post.take();
    }

    #[test]
    #[should_panic(expected = "a letter of another scheme")]
    fn a_letter_of_another_scheme_is_not_opened() {
        opened::<Number>(Box::new(Other));
    }

    #[test]
    fn lines_and_bytes_to_be_moved_are_kept_apart_and_in_order() {
        let mut post = Post::default();
        post.clean(256);
        post.clean(128);
        post.persist(384, 9);
        post.persist(512, 8);
        assert_eq!((std::mem::take(post.cleans()), post.cleans().len()), (vec![256, 128], 0));
        assert_eq!(post.persists().drain(..).collect::<Vec<_>>(), [(384, 9), (512, 8)]);
        assert!(post.is_empty(), "these are no letters");
        post.transfer(Move::Out(128));
        post.transfer(Move::In(64));
        assert!(!post.is_empty());
        assert_eq!(post.take_moves(), [Move::Out(128), Move::In(64)]);
        assert!(post.is_empty() && post.take_moves().is_empty());
        let bytes = || Box::new([0; 128]);
        assert!(!post.has_flushes());
        for token in [7, 6] {
            post.flush(Flush { token, author: Author::default(), line: 0, mask: 1, bytes: bytes(), logged: false });
        }
        assert!(post.has_flushes());
        assert_eq!(post.flushes().drain(..).map(|flush| flush.token).collect::<Vec<_>>(), [7, 6]);
        assert!(!post.has_flushes());
    }

    #[test]
    fn notes_can_be_looked_at_without_a_journal() {
        let mut post = Post::default();
        let author = Author { pc: 7, ..Author::default() };
        post.note(RegionStep::Ended, author);
        assert_eq!(post.notes().count(), 0, "nobody looks");
        post.keep_notes();
        post.note(RegionStep::Ended, author);
        post.note(RegionStep::Done, author);
        assert_eq!(post.notes().collect::<Vec<_>>(), [(RegionStep::Ended, author), (RegionStep::Done, author)]);
        post.drop_notes();
        assert!(post.is_empty() && post.notes().next().is_none());
    }

    #[test]
    fn notes_reach_the_journal_of_a_host_that_keeps_one() {
        let author = Author { sm: 3, ..Author::default() };
        for keeps in [true, false] {
            let (mut post, mut notebook) = (Post::of_host(keeps), Notebook::default());
            post.note(RegionStep::Ended, author);
            post.note_bytes(RegionStep::Stored, author, 256, 0b110, &std::array::from_fn(|at| at as u8));
            assert_eq!(post.is_empty(), !keeps);
            post.write_notes(None, 4);
            post.write_notes(Some(&mut notebook), 5);
            post.write_notes(Some(&mut notebook), 6);
            assert!(!keeps || post.is_empty());
            let journal = Journal::merged(&[&notebook]);
            let facts: Vec<_> = journal
                .facts()
                .iter()
                .map(|fact| (fact.time, fact.kind, fact.line, fact.author.sm, journal.data(fact).to_vec()))
                .collect();
            let expected = [
                (5, FactKind::Region(RegionStep::Ended), 0, 3, vec![]),
                (5, FactKind::Region(RegionStep::Stored), 256, 3, vec![1, 2]),
            ];
            assert_eq!(facts, if keeps { expected.to_vec() } else { Vec::new() });
        }
    }
}
