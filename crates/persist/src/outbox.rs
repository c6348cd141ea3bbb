//! What handlers write and ask for: messages to peers, lines and bytes that their host moves, notes for its
//! journal.
//!
//! A handler acts through the [`Outbox`] of its host alone, which carries out what is in it once the handler
//! has returned: messages in order, each over the link to its peer, which has a latency of its own.
//! Invariant: nothing in a outbox is a pointer to anybody's state.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Debug;

use durawarp_checkpoint::{StateWriter, state, value};
use durawarp_engine::Time;

use super::dependency::{Dependencies, Dependency, depend};
use super::journal::{Author, FactKind, Notebook};
use super::vocab::RegionStep;

/// Who is written to, or has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// The handler of an SM.
    Sm(u16),
    /// The handler of a core.
    Core(u16),
    /// The handler of an L2 slice.
    Slice(u16),
    /// The handler of the L2 slice of an address; only written to.
    SliceOf(u64),
    /// The handler of a home slice.
    Home(u16),
    /// The handler of the home slice of an address; only written to.
    HomeOf(u64),
    /// The scheme's own component.
    Hub,
    /// The command processor's handler; it writes, nobody writes to it.
    Host,
    /// The handler of a memory controller.
    Controller(u16),
    /// The handler of the memory controller of an address; only written to.
    ControllerOf(u64),
    /// The handler of the network interface.
    Nic,
}

value!(choice Peer {
    Sm(sm), Core(core), Slice(slice), SliceOf(line), Home(slice), HomeOf(line), Hub, Host, Controller(controller),
    ControllerOf(line), Nic,
});

/// What handlers of one scheme tell each other: the scheme's own type, plain data.
pub trait SchemeMessage: Any + Debug + Send {
    /// A number that stands for its content.
    fn digest(&self) -> u64;

    /// Writes all of it, for [`Scheme::read_message`](super::Scheme::read_message).
    fn save(&self, out: &mut StateWriter) {
        out.refuse("a message of the scheme's is under way that cannot be saved");
    }
}

/// What a message of a scheme says.
///
/// # Panics
/// When it is another scheme's: handlers of two schemes never meet in a machine.
pub fn opened<L: SchemeMessage>(message: Box<dyn SchemeMessage>) -> L {
    let message: Box<dyn Any> = message;
    match message.downcast() {
        Ok(own) => *own,
        Err(_) => panic!("a message of another scheme"),
    }
}

/// What time it is, and messages that a handler has written and its host will send, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    messages: Vec<(Peer, Box<dyn SchemeMessage>, Time)>,
    flushes: VecDeque<Flush>,
    notes: Vec<Note>,
    /// Its host keeps a journal.
    noting: bool,
    moves: Vec<Move>,
    cleans: Vec<u64>,
    persists: VecDeque<(u64, u64)>,
    durables: Vec<u64>,
    settled: Vec<Author>,
    depends: Dependencies,
    now: Time,
}

state!(Outbox { saved: messages, flushes, moves, cleans, persists, durables, settled, depends, now; kept: notes, noting });

/// Bytes that a slice's handler moves between a buffer of its own and the memory reserved for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// So many to memory.
    Out(u32),
    /// So many back.
    In(u32),
}

value!(choice Move { Out(bytes), In(bytes) });

impl Outbox {
    /// Of a host that keeps a journal, or does not.
    #[inline]
    pub fn of_host(journal: bool) -> Outbox {
        Outbox { noting: journal, ..Outbox::default() }
    }

    /// The host handles an event of this time.
    #[inline]
    pub fn at(&mut self, now: Time) {
        self.now = now;
    }

    /// The time of the event that the host handles, in ticks
    /// ([`HandlerPlace::tick_khz`](super::handler::HandlerPlace::tick_khz)).
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Writes a message.
    pub fn send(&mut self, to: Peer, message: impl SchemeMessage) {
        self.send_in(0, to, message);
    }

    /// Writes a message that leaves so many ticks from now. Only SMs' and controllers' handlers may.
    pub fn send_in(&mut self, delay: Time, to: Peer, message: impl SchemeMessage) {
        self.messages.push((to, Box::new(message), delay));
    }

    /// Its host looks at the notes, whether it keeps a journal or not.
    pub fn keep_notes(&mut self) {
        self.noting = true;
    }

    /// Tells that what a warp's fence did not wait for is durable, or all of a channel before its fence.
    #[inline]
    pub fn settle(&mut self, author: Author) {
        self.settled.push(author);
    }

    /// Whose fences are settled; taken by the host.
    pub fn settled(&mut self) -> &mut Vec<Author> {
        &mut self.settled
    }

    /// Has what its host passes on depend on an entry of a persist buffer.
    #[inline]
    pub fn depend(&mut self, on: Dependency) {
        depend(&mut self.depends, on);
    }

    /// What it depends on, boxed as it travels; taken by its host.
    pub fn take_dependencies(&mut self) -> Option<Box<Dependencies>> {
        if self.depends.is_empty() { None } else { Some(Box::new(std::mem::take(&mut self.depends))) }
    }

    /// Has the controller write to memory, as soon as its write queue has room, in the order of asking.
    #[inline]
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
    #[inline]
    pub fn note(&mut self, step: RegionStep, author: Author) {
        if self.noting {
            self.notes.push(Note { kind: FactKind::Region(step), author, line: 0, bytes: None });
        }
    }

    /// The same of a fact of another kind, about no line.
    pub fn note_fact(&mut self, kind: FactKind, author: Author) {
        self.note_line(kind, 0, author);
    }

    /// The same about a line.
    #[inline]
    pub fn note_line(&mut self, kind: FactKind, line: u64, author: Author) {
        if self.noting {
            self.notes.push(Note { kind, author, line, bytes: None });
        }
    }

    /// Notes a step of a region with bytes of a line.
    #[inline]
    pub fn note_bytes(&mut self, step: RegionStep, author: Author, line: u64, mask: u128, bytes: &[u8; 128]) {
        if self.noting {
            let bytes = Some((mask, Box::new(*bytes)));
            self.notes.push(Note { kind: FactKind::Region(step), author, line, bytes });
        }
    }

    /// Steps of regions that the handler has said and nobody has noted down, with their authors, in order.
    pub fn notes(&self) -> impl Iterator<Item = (RegionStep, Author)> {
        self.notes.iter().filter_map(|note| match note.kind {
            FactKind::Region(step) => Some((step, note.author)),
            _ => None,
        })
    }

    /// Forgets what the handler has said.
    #[inline]
    pub fn drop_notes(&mut self) {
        self.notes.clear();
    }

    /// Notes down what the handler has said.
    pub fn write_notes(&mut self, notebook: Option<&mut Notebook>, time: Time) {
        let Some(notebook) = notebook else { return };
        for Note { kind, author, line, bytes } in self.notes.drain(..) {
            match bytes {
                Some((mask, bytes)) => notebook.note_data(time, kind, line, mask, author, &bytes),
                None => notebook.note(time, kind, line, author),
            }
        }
    }

    /// Moves bytes, at most a line's; only a slice's handler of a scheme that reserves memory may.
    #[inline]
    pub fn transfer(&mut self, bytes: Move) {
        self.moves.push(bytes);
    }

    /// Has a line's dirty bytes leave the host's cache for the next level; the line stays.
    #[inline]
    pub fn clean(&mut self, line: u64) {
        self.cleans.push(line);
    }

    /// The lines to be cleaned, in order; taken by its host.
    #[inline]
    pub fn cleans(&mut self) -> &mut Vec<u64> {
        &mut self.cleans
    }

    /// Has a line's dirty bytes leave the SM's L1; the line stays. They go to memory, past the L2's array; to
    /// the L2 where the handler's interests have `persists_by_l2`. `id` is the handler's name for what
    /// leaves, and comes back in `SmEvent::Persisted`. Only a handler that orders what leaves may.
    #[inline]
    pub fn persist(&mut self, line: u64, id: u64) {
        self.persists.push_back((line, id));
    }

    /// The lines that leave so, in order, with their names; taken by its host.
    #[inline]
    pub fn persists(&mut self) -> &mut VecDeque<(u64, u64)> {
        &mut self.persists
    }

    /// Tells the SM that what left for the L2 under this name is durable.
    #[inline]
    pub fn durable(&mut self, id: u64) {
        self.durables.push(id);
    }

    /// What is durable, by its names; taken by its host.
    #[inline]
    pub fn durables(&mut self) -> &mut Vec<u64> {
        &mut self.durables
    }

    /// Takes what is to be moved.
    pub fn take_moves(&mut self) -> Vec<Move> {
        std::mem::take(&mut self.moves)
    }

    /// Nothing is to be sent or moved.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.moves.is_empty() && self.notes.is_empty()
    }

    /// Takes what is to be sent, all of it at once.
    #[inline]
    pub fn take(&mut self) -> Vec<(Peer, Box<dyn SchemeMessage>)> {
        let messages = std::mem::take(&mut self.messages).into_iter();
        messages
            .map(|(to, message, delay)| {
                assert!(delay == 0, "a message that leaves later");
                (to, message)
            })
            .collect()
    }

    /// Takes what is to be sent, with the ticks until it leaves.
    #[inline]
    pub fn take_timed(&mut self) -> std::vec::Drain<'_, (Peer, Box<dyn SchemeMessage>, Time)> {
        self.messages.drain(..)
    }
}

/// A write to memory that a controller's handler asks for.
#[derive(Debug, Clone)]
pub struct Flush {
    /// The handler's name for it.
    pub token: u64,
    /// Whose it is, as journals say it: a region's as the controller has it, or what the write is of.
    pub author: Author,
    /// Address of the line's first byte.
    pub line: u64,
    /// Bytes of the line.
    pub mask: u128,
    /// Their content.
    pub bytes: Box<[u8; 128]>,
    /// What memory has of these bytes is saved in an undo log first.
    pub logged: bool,
    /// It is an ordinary write of the author, not a region's: journals say when it is accepted and at the
    /// media, and the handler hears when it is durable
    /// ([`ControllerEvent::Persisted`](super::event::ControllerEvent::Persisted)).
    pub plain: bool,
}

value!(record Flush { token, author, line, mask, bytes, logged, plain });

#[derive(Debug)]
struct Note {
    kind: FactKind,
    author: Author,
    line: u64,
    bytes: Option<(u128, Box<[u8; 128]>)>,
}

#[cfg(test)]
mod tests {
    use super::super::journal::Journal;
    use super::*;

    #[derive(Debug, PartialEq)]
    struct Number(u64);

    impl SchemeMessage for Number {
        fn digest(&self) -> u64 {
            self.0
        }
    }

    #[derive(Debug)]
    struct Other;

    impl SchemeMessage for Other {
        fn digest(&self) -> u64 {
            0
        }
    }

    #[test]
    fn messages_are_taken_once_in_order_with_their_delays() {
        let mut outbox = Outbox::default();
        assert!(outbox.is_empty());
        outbox.at(17);
        outbox.send(Peer::Hub, Number(1));
        outbox.send_in(5, Peer::Sm(2), Number(2));
        assert_eq!((outbox.now(), outbox.is_empty()), (17, false));
        let taken: Vec<_> = outbox.take_timed().map(|(to, message, delay)| (to, message.digest(), delay)).collect();
        assert_eq!(taken, [(Peer::Hub, 1, 0), (Peer::Sm(2), 2, 5)]);
        outbox.send(Peer::Slice(3), Number(4));
        let taken: Vec<_> = outbox.take().into_iter().map(|(to, message)| (to, opened::<Number>(message))).collect();
        assert_eq!((taken, outbox.is_empty()), (vec![(Peer::Slice(3), Number(4))], true));
    }

    #[test]
    #[should_panic(expected = "a message that leaves later")]
    fn a_message_that_leaves_later_is_taken_with_its_delay_only() {
        let mut outbox = Outbox::default();
        outbox.send_in(1, Peer::Hub, Number(1));
        outbox.take();
    }

    #[test]
    #[should_panic(expected = "a message of another scheme")]
    fn a_message_of_another_scheme_is_not_opened() {
        opened::<Number>(Box::new(Other));
    }

    #[test]
    fn lines_and_bytes_to_be_moved_are_kept_apart_and_in_order() {
        let mut outbox = Outbox::default();
        outbox.clean(256);
        outbox.clean(128);
        outbox.persist(384, 9);
        outbox.persist(512, 8);
        assert_eq!((std::mem::take(outbox.cleans()), outbox.cleans().len()), (vec![256, 128], 0));
        assert_eq!(outbox.persists().drain(..).collect::<Vec<_>>(), [(384, 9), (512, 8)]);
        outbox.durable(8);
        outbox.durable(9);
        assert_eq!((std::mem::take(outbox.durables()), outbox.durables().len()), (vec![8, 9], 0));
        assert!(outbox.is_empty(), "these are no messages");
        outbox.transfer(Move::Out(128));
        outbox.transfer(Move::In(64));
        assert!(!outbox.is_empty());
        assert_eq!(outbox.take_moves(), [Move::Out(128), Move::In(64)]);
        assert!(outbox.is_empty() && outbox.take_moves().is_empty());
        let bytes = || Box::new([0; 128]);
        assert!(!outbox.has_flushes());
        for token in [7, 6] {
            outbox.flush(Flush {
                token,
                author: Author::default(),
                line: 0,
                mask: 1,
                bytes: bytes(),
                logged: false,
                plain: false,
            });
        }
        assert!(outbox.has_flushes());
        assert_eq!(outbox.flushes().drain(..).map(|flush| flush.token).collect::<Vec<_>>(), [7, 6]);
        assert!(!outbox.has_flushes());
    }

    #[test]
    fn notes_can_be_looked_at_without_a_journal() {
        let mut outbox = Outbox::default();
        let author = Author::HartRegion { core: 1, hart: 0, region: 7 };
        outbox.note(RegionStep::Ended, author);
        assert_eq!(outbox.notes().count(), 0, "nobody looks");
        outbox.keep_notes();
        outbox.note(RegionStep::Ended, author);
        outbox.note(RegionStep::Done, author);
        assert_eq!(outbox.notes().collect::<Vec<_>>(), [(RegionStep::Ended, author), (RegionStep::Done, author)]);
        outbox.drop_notes();
        assert!(outbox.is_empty() && outbox.notes().next().is_none());
    }

    #[test]
    fn notes_reach_the_journal_of_a_host_that_keeps_one() {
        let author = Author::HartRegion { core: 1, hart: 0, region: 3 };
        for keeps in [true, false] {
            let (mut outbox, mut notebook) = (Outbox::of_host(keeps), Notebook::default());
            outbox.note(RegionStep::Ended, author);
            outbox.note_bytes(RegionStep::Stored, author, 256, 0b110, &std::array::from_fn(|at| at as u8));
            assert_eq!(outbox.is_empty(), !keeps);
            outbox.write_notes(None, 4);
            outbox.write_notes(Some(&mut notebook), 5);
            outbox.write_notes(Some(&mut notebook), 6);
            assert!(!keeps || outbox.is_empty());
            let journal = Journal::merged(&[&notebook]);
            let facts: Vec<_> = journal
                .facts()
                .iter()
                .map(|fact| (fact.time, fact.kind, fact.line, fact.author, journal.data(fact).to_vec()))
                .collect();
            let expected = [
                (5, FactKind::Region(RegionStep::Ended), 0, author, vec![]),
                (5, FactKind::Region(RegionStep::Stored), 256, author, vec![1, 2]),
            ];
            assert_eq!(facts, if keeps { expected.to_vec() } else { Vec::new() });
        }
    }
}
