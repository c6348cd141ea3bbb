//! Writes of a slice (of an L2, or a home slice) to memory that are not durable yet, and the acknowledgements
//! that wait for them.
//!
//! Every write has a *token* until it is durable. An acknowledgement waits for one write, or for all that are
//! under way to its lines. A write-back of a line that is clean because its bytes are already on their way
//! waits for these; that is what makes an acknowledgement sound whatever the cache did in between.
//!
//! Invariants: an acknowledged byte is durable; of acknowledgements that wait for one write, the first to
//! wait is the first due.

use smallvec::SmallVec;

use durawarp_checkpoint::{Storable, value};
use durawarp_engine::Time;

/// An acknowledgement that is due, and when the last write that it waited for was accepted and durable.
pub(super) type Due<A> = (A, [Time; 2]);

/// What waits for a write.
#[derive(Debug)]
enum Waiter<A> {
    /// An acknowledgement that waits for this write alone.
    Ack(A),
    /// One that waits for several, by its number.
    Group(u64),
}

value!(choice Waiter<A: Storable> { Ack(ack), Group(number) });

/// A write that is not durable yet.
#[derive(Debug)]
struct InFlight<A> {
    line: u64,
    under_way: bool,
    /// When its controller accepted it, once that is known.
    accepted: Time,
    waiters: Vec<Waiter<A>>,
}

value!(record InFlight<A: Storable> { line, under_way, accepted, waiters });

/// An acknowledgement that waits for several writes.
#[derive(Debug)]
struct GroupAck<A> {
    number: u64,
    ack: A,
    /// Writes that are not durable.
    left: u32,
}

value!(record GroupAck<A: Storable> { number, ack, left });

/// Writes on their way to durability, with acknowledgements of type `A`.
#[derive(Debug)]
pub(super) struct WritesUnderWay<A> {
    /// By token.
    writes: Vec<InFlight<A>>,
    free: Vec<u16>,
    groups: Vec<GroupAck<A>>,
    next_group: u64,
}

value!(record WritesUnderWay<A: Storable> { writes, free, groups, next_group });

impl<A> WritesUnderWay<A> {
    /// No write yet.
    pub(super) fn new() -> Self {
        WritesUnderWay { writes: Vec::new(), free: Vec::new(), groups: Vec::new(), next_group: 0 }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.writes.len() - self.free.len()
    }

    /// A write to memory begins; returns its token.
    pub(super) fn open(&mut self, line: u64) -> u16 {
        let token = self.free.pop().unwrap_or_else(|| {
            self.writes.push(InFlight { line, under_way: false, accepted: 0, waiters: Vec::new() });
            (self.writes.len() - 1) as u16
        });
        let write = &mut self.writes[usize::from(token)];
        write.line = line;
        write.under_way = true;
        write.accepted = 0;
        token
    }

    /// A write was accepted by its controller.
    pub(super) fn accepted(&mut self, token: u16, at: Time) {
        self.writes[usize::from(token)].accepted = at;
    }

    /// A write is durable since `at`: its line, and what is acknowledged for it, in order.
    pub(super) fn durable(&mut self, token: u16, at: Time) -> (u64, SmallVec<[Due<A>; 2]>) {
        let write = &mut self.writes[usize::from(token)];
        write.under_way = false;
        let line = write.line;
        let times = [write.accepted, at];
        let mut waiters = std::mem::take(&mut write.waiters);
        let mut due = SmallVec::new();
        self.free.push(token);
        for waiter in waiters.drain(..) {
            match waiter {
                Waiter::Ack(ack) => due.push((ack, times)),
                Waiter::Group(number) => due.extend(self.advance(number).map(|ack| (ack, times))),
            }
        }
        // The list is used again.
        self.writes[usize::from(token)].waiters = waiters;
        (line, due)
    }

    /// One more write of a group is durable: the acknowledgement, with the last of them.
    fn advance(&mut self, number: u64) -> Option<A> {
        let at = self.groups.iter().position(|group| group.number == number)?;
        self.groups[at].left -= 1;
        (self.groups[at].left == 0).then(|| self.groups.remove(at).ack)
    }

    /// Acknowledges when a write is durable.
    pub(super) fn await_write(&mut self, token: u16, ack: A) {
        self.writes[usize::from(token)].waiters.push(Waiter::Ack(ack));
    }

    /// Acknowledges when every write that is under way to one of these lines is durable; returns what is due
    /// at once, since there is none.
    pub(super) fn await_lines(&mut self, ack: A, of: impl Fn(u64) -> bool) -> Option<A> {
        let concerns = |write: &InFlight<A>| write.under_way && of(write.line);
        let left = self.writes.iter().filter(|write| concerns(write)).count() as u32;
        if left == 0 {
            return Some(ack);
        }
        let number = self.next_group;
        self.next_group += 1;
        self.groups.push(GroupAck { number, ack, left });
        for write in self.writes.iter_mut().filter(|write| concerns(write)) {
            write.waiters.push(Waiter::Group(number));
        }
        None
    }

    /// A write of a line is under way.
    pub(super) fn concern(&self, line: u64) -> bool {
        self.writes.iter().any(|write| write.under_way && write.line == line)
    }

    /// Acknowledgements that wait for several writes, or for all of a line: in the order in which they began
    /// to wait, with how many writes are left.
    pub(super) fn awaited(&self) -> impl Iterator<Item = (&A, u32)> {
        self.groups.iter().map(|group| (&group.ack, group.left))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(writes: &mut WritesUnderWay<u32>, token: u16, at: Time) -> Vec<Due<u32>> {
        writes.accepted(token, at - 5);
        writes.durable(token, at).1.into_iter().collect()
    }

    #[test]
    fn a_line_is_acknowledged_with_the_last_of_its_writes_under_way() {
        let mut writes = WritesUnderWay::new();
        let tokens = [128, 256, 128].map(|line| writes.open(line));
        assert!(writes.await_lines(9, |line| line == 128).is_none());
        writes.await_write(tokens[1], 8);
        assert_eq!(due(&mut writes, tokens[2], 40), [], "the first is on its way");
        assert!(writes.concern(128));
        assert_eq!(writes.awaited().collect::<Vec<_>>(), [(&9, 1)]);
        assert_eq!(due(&mut writes, tokens[0], 50), [(9, [45, 50])]);
        assert!(!writes.concern(128));
        assert_eq!(due(&mut writes, tokens[1], 60), [(8, [55, 60])]);
    }

    #[test]
    fn nothing_under_way_is_acknowledged_at_once() {
        let mut writes = WritesUnderWay::new();
        let token = writes.open(128);
        assert_eq!(writes.await_lines(1, |line| line == 256), Some(1));
        assert_eq!(writes.await_lines(2, |line| line == 128), None);
        assert_eq!(due(&mut writes, token, 7), [(2, [2, 7])]);
        assert_eq!(writes.open(256), token, "a token is used again");
        assert_eq!(due(&mut writes, token, 9), [], "with no waiter of the write before");
    }
}
