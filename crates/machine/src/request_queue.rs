//! Requests that wait at a memory controller, by bank, and which comes first: what the scheduler looks at
//! each cycle is one line a bank, not one a request.
//!
//! ```text
//!   bank 3: [row 7, age 12] [row 7, age 19] [row 4, age 15]...   oldest first
//!             first hit (row 7 is open)      first conflict
//! ```
//! The oldest hit of a bank stands for all its hits, and its oldest conflict for all its conflicts, since
//! what a bank can take, and when, is the same for each. Both are found again only when the bank's requests,
//! its open row or its count of passed requests has changed.
//!
//! | order | a bank's request | of those that can go |
//! |---|---|---|
//! | row hits first | as in the picture | the oldest |
//! | arrival | its oldest | columns: the oldest of all alone, whether it can go or not; rows: the oldest |
//! | ranks | the first by [`Ranks`], then row hits | the first by rank, then the oldest |
//!
//! Of a device with a buffer a read asks for its line, oldest first, and transfers when its data is ready:
//! the *hit* of a bank is the read that has its data first, its *conflict* the oldest that has not asked, and
//! both stand for the bank. Writes go in their order, each when the buffer has room for it.
//!
//! Invariants: requests of a bank are in the order of their ages; ages never repeat.

mod ranks;

use durawarp_checkpoint::{Storable, state, value};
use durawarp_engine::Time;
use durawarp_kernel::memory::Medium;

use super::media::{BankId, DeviceRow, Direction, Media};

pub(super) use ranks::{NO_SOURCE, Ranks};

/// A request's place in its bank's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub(super) bank: BankId,
    index: u16,
}

/// What the scheduler found for one clock edge.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The oldest request that can transfer now.
    pub(super) column: Option<At>,
    /// The oldest request whose row can be opened now, in a bank without a hit.
    pub(super) row: Option<At>,
    /// When something that is not ready now becomes ready; of a meaning where nothing goes now.
    pub(super) next: Time,
}

impl Choice {
    pub(super) fn acts(&self) -> bool {
        self.column.is_some() || self.row.is_some()
    }
}

#[derive(Debug, Clone, Copy)]
struct QueuedRequest {
    age: u64,
    line: u64,
    row: u32,
    item: u16,
    /// Who sent it.
    source: u16,
}

value!(record QueuedRequest { age, line, row, item, source });

#[derive(Debug, Clone, Default)]
struct BankQueue {
    entries: Vec<QueuedRequest>,
    /// The first hit that may be served, and the first conflict: where they are, and what orders them.
    hit: StandingRequest,
    conflict: StandingRequest,
}

value!(record BankQueue { entries, hit, conflict });

/// A request that stands for a bank.
#[derive(Debug, Clone, Copy, Default)]
struct StandingRequest {
    index: u16,
    /// Its age, below its rank where there are ranks.
    age: u64,
}

value!(record StandingRequest { index, age });

/// Banks, one bit each, 64 a word.
#[derive(Debug, Default)]
pub(super) struct BankSet(Vec<u64>);

value!(wrapper BankSet);

/// No bank.
pub(super) const NO_BANKS: BankSet = BankSet(Vec::new());

impl BankSet {
    fn of(banks: usize) -> BankSet {
        BankSet(vec![0; banks.div_ceil(64)])
    }

    fn put(&mut self, bank: BankId, has: bool) {
        let word = &mut self.0[usize::from(bank / 64)];
        *word = *word & !(1 << (bank % 64)) | u64::from(has) << (bank % 64);
    }

    /// 64 banks.
    #[inline]
    fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }
}

/// Which requests of a queue come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueOrder {
    /// Those whose row is open, then the oldest.
    HitsFirst,
    /// The oldest.
    Arrival,
    /// By ranks of their sources.
    Ranked,
}

/// Requests of one direction.
#[derive(Debug)]
pub(super) struct RequestQueue<T> {
    access: Direction,
    order: QueueOrder,
    /// Of effect in a ranked queue.
    ranks: Ranks,
    banks: Vec<BankQueue>,
    /// Banks with requests.
    busy: BankSet,
    /// Banks whose request that stands for them is to be found again.
    stale: BankSet,
    /// Banks that a hit, or a conflict, stands for, unless they are stale.
    hits: BankSet,
    conflicts: BankSet,
    items: Vec<Option<T>>,
    /// When each item has its data in a buffer; `Time::MAX` where it has not asked.
    ready: Vec<Time>,
    free: Vec<u16>,
    len: usize,
    next_age: u64,
}

state!(RequestQueue<T: Storable> { sized: banks;
    saved: ranks, busy, stale, hits, conflicts, items, ready, free, len, next_age; kept: access, order
});

impl<T> RequestQueue<T> {
    /// No requests, for `banks` banks.
    pub(super) fn new(access: Direction, order: QueueOrder, banks: usize) -> Self {
        RequestQueue {
            access,
            order,
            ranks: Ranks::default(),
            banks: vec![BankQueue::default(); banks],
            busy: BankSet::of(banks),
            stale: BankSet::of(banks),
            hits: BankSet::of(banks),
            conflicts: BankSet::of(banks),
            items: Vec::new(),
            ready: Vec::new(),
            free: Vec::new(),
            len: 0,
            next_age: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Banks with requests.
    pub(super) fn banks(&self) -> &BankSet {
        &self.busy
    }

    /// Requests wait for a bank.
    pub(super) fn waits_for(&self, bank: BankId) -> bool {
        self.busy.word(usize::from(bank / 64)) >> (bank % 64) & 1 == 1
    }

    /// A request waits for the place's row.
    pub(super) fn waits_for_row(&self, place: DeviceRow) -> bool {
        self.banks[usize::from(place.bank)].entries.iter().any(|entry| entry.row == place.row)
    }

    /// A read has asked for its line, and has its data at `ready`.
    pub(super) fn asked(&mut self, at: At, ready: Time) {
        let item = self.banks[usize::from(at.bank)].entries[usize::from(at.index)].item;
        self.ready[usize::from(item)] = ready;
        self.stale.put(at.bank, true);
    }

    /// Ranks of sources, to be changed: whatever stands for a bank is found again.
    pub(super) fn ranks_mut(&mut self) -> &mut Ranks {
        self.stale.0.clone_from(&self.busy.0);
        &mut self.ranks
    }

    /// The age that the next request gets.
    pub(super) fn next_age(&self) -> u64 {
        self.next_age
    }

    /// Who sent a request.
    pub(super) fn source(&self, at: At) -> u16 {
        self.banks[usize::from(at.bank)].entries[usize::from(at.index)].source
    }

    /// Takes in a request of a source for `line`, as the youngest.
    pub(super) fn push(&mut self, place: DeviceRow, line: u64, source: u16, item: T) {
        let index = match self.free.pop() {
            Some(index) => {
                self.items[usize::from(index)] = Some(item);
                self.ready[usize::from(index)] = Time::MAX;
                index
            }
            None => {
                self.items.push(Some(item));
                self.ready.push(Time::MAX);
                (self.items.len() - 1) as u16
            }
        };
        let entry = QueuedRequest { age: self.next_age, line, row: place.row, item: index, source };
        self.banks[usize::from(place.bank)].entries.push(entry);
        self.stale.put(place.bank, true);
        self.busy.put(place.bank, true);
        self.next_age += 1;
        self.len += 1;
    }

    /// The oldest request for `line`, which lies at `place`.
    pub(super) fn find_mut(&mut self, place: DeviceRow, line: u64) -> Option<&mut T> {
        let entry = self.banks[usize::from(place.bank)].entries.iter().find(|entry| entry.line == line)?;
        self.items[usize::from(entry.item)].as_mut()
    }

    /// Takes out a request, and its row and line.
    pub(super) fn remove(&mut self, at: At) -> (u32, u64, T) {
        let bank = &mut self.banks[usize::from(at.bank)];
        let entry = bank.entries.remove(usize::from(at.index));
        self.stale.put(at.bank, true);
        self.busy.put(at.bank, !bank.entries.is_empty());
        self.len -= 1;
        self.free.push(entry.item);
        let Some(item) = self.items[usize::from(entry.item)].take() else { unreachable!("an entry has its item") };
        (entry.row, entry.line, item)
    }

    /// The row of a request.
    pub(super) fn row(&self, at: At) -> u32 {
        self.banks[usize::from(at.bank)].entries[usize::from(at.index)].row
    }

    /// The bank has requests to other rows that are older.
    pub(super) fn passes_an_older(&self, at: At) -> bool {
        let entries = &self.banks[usize::from(at.bank)].entries;
        let row = entries[usize::from(at.index)].row;
        entries[..usize::from(at.index)].iter().any(|entry| entry.row != row)
    }

    /// The bank's open row, or its count of passed requests, has changed.
    pub(super) fn changed(&mut self, bank: BankId) {
        self.stale.put(bank, true);
    }

    /// The first request that can transfer now, the first row to open now. A bank that is `capped` serves no
    /// hit behind a conflict; one of those `but` is left out.
    pub(super) fn choose(
        &mut self,
        media: &Media,
        capped: impl Fn(BankId) -> bool,
        but: &BankSet,
        now: Time,
    ) -> Choice {
        let mut choice = Choice { column: None, row: None, next: Time::MAX };
        // Columns that are younger are of no interest.
        let in_turn = self.order == QueueOrder::Arrival;
        let mut oldest_column = if in_turn { self.oldest(media, but) } else { u64::MAX };
        let mut oldest_row = u64::MAX;
        let first_of_nvm = usize::from(media.nvm_banks().0);
        for word in 0..self.busy.0.len() {
            let busy = self.busy.word(word) & !but.word(word) & !media.held_back(word);
            // What stands for a bank changes with its row and its queue only, and most edges change neither.
            for bank in banks_in(word, busy & self.stale.word(word)) {
                self.refresh(media, bank, &capped);
            }
            let dram = !bits_from(first_of_nvm.saturating_sub(64 * word));
            for (medium, of_medium) in [(Medium::Dram, busy & dram), (Medium::Nvm, busy & !dram)] {
                // Idle banks cost nothing.
                if of_medium == 0 {
                    continue;
                }
                let channel = media.channel_ready(medium, self.access, now);
                let times = media.bank_times(medium, self.access, now);
                let buffered = media.has_buffer(medium);
                for bank in banks_in(word, of_medium & self.hits.word(word)) {
                    // A channel that takes nothing now makes all wait at least as long.
                    if channel > now && choice.next <= channel {
                        break;
                    }
                    let StandingRequest { index, age } = self.banks[usize::from(bank)].hit;
                    // Once one goes, only older ones are of interest.
                    if age > oldest_column {
                        continue;
                    }
                    let mut ready = channel.max(times.column(bank));
                    if buffered {
                        ready = ready.max(self.ready_in_buffer(media, At { bank, index }));
                    }
                    if ready > now {
                        choice.next = choice.next.min(ready);
                    } else {
                        (oldest_column, choice.column) = (age, Some(At { bank, index }));
                    }
                }
                let slot = media.row_slot_ready(medium, now);
                for bank in banks_in(word, of_medium & self.conflicts.word(word)) {
                    let StandingRequest { index, age } = self.banks[usize::from(bank)].conflict;
                    if age > oldest_row {
                        continue;
                    }
                    let ready = slot.max(media.row_ready(DeviceRow { bank, row: 0, medium }));
                    if ready > now {
                        choice.next = choice.next.min(ready);
                    } else {
                        (oldest_row, choice.row) = (age, Some(At { bank, index }));
                    }
                }
            }
        }
        choice
    }

    /// The age of the oldest request, without banks of `but` and those of a pending refresh.
    fn oldest(&self, media: &Media, but: &BankSet) -> u64 {
        let words = 0..self.busy.0.len();
        let of_word = |word| banks_in(word, self.busy.word(word) & !but.word(word) & !media.held_back(word));
        let first = |bank: BankId| self.banks[usize::from(bank)].entries.first().map_or(u64::MAX, |own| own.age);
        words.flat_map(of_word).map(first).min().unwrap_or(u64::MAX)
    }

    /// When a buffer lets a request transfer.
    fn ready_in_buffer(&self, media: &Media, at: At) -> Time {
        let entry = &self.banks[usize::from(at.bank)].entries[usize::from(at.index)];
        match self.access {
            Direction::Read => self.ready[usize::from(entry.item)],
            Direction::Write => media.room_at(DeviceRow { row: entry.row, ..media.place_in(at.bank) }),
        }
    }

    /// Finds the requests that stand for a bank.
    fn refresh(&mut self, media: &Media, number_of_bank: BankId, capped: impl Fn(BankId) -> bool) {
        let place = media.place_in(number_of_bank);
        let direct = self.access == Direction::Write && media.writes_without_row(place.medium);
        let asks = self.access == Direction::Read && media.has_buffer(place.medium);
        let open = media.open_row_of(number_of_bank);
        let bank = &mut self.banks[usize::from(number_of_bank)];
        let first = |hits: bool| bank.entries.iter().position(|entry| (open == Some(entry.row)) == hits);
        let ready = |index: &usize| self.ready[usize::from(bank.entries[*index].item)];
        let number = |index: &usize| {
            let QueuedRequest { source, age, .. } = bank.entries[*index];
            if self.order == QueueOrder::Ranked { self.ranks.number(source, age) } else { age }
        };
        let (hit, conflict) = match () {
            () if direct => (Some(0), None),
            // Each in its turn; what a buffer has ready for others waits, and they ask meanwhile.
            () if self.order == QueueOrder::Arrival => {
                let next_to_ask = (0..bank.entries.len()).find(|index| ready(index) == Time::MAX);
                let other = if asks { next_to_ask } else { first(false).filter(|&index| index == 0) };
                (Some(0).filter(|_| other != Some(0)), other)
            }
            // Reads that have asked come back in the order of their data; the others ask in theirs.
            () if asks => {
                let asked = (0..bank.entries.len()).filter(|index| ready(index) < Time::MAX);
                let others = (0..bank.entries.len()).filter(|index| ready(index) == Time::MAX);
                (asked.min_by_key(ready), others.min_by_key(number))
            }
            () if self.order == QueueOrder::Ranked => {
                // Of a capped bank no hit that would pass a conflict.
                let until = if capped(number_of_bank) { first(false) } else { None };
                let hit = |index: usize| open == Some(bank.entries[index].row);
                let may = (0..bank.entries.len()).filter(|&at| !hit(at) || until.is_none_or(|conflict| at < conflict));
                let before = |&at: &usize| {
                    let QueuedRequest { source, age, .. } = bank.entries[at];
                    (self.ranks.rank(source, age), !hit(at), at)
                };
                let best = may.min_by_key(before);
                (best.filter(|&at| hit(at)), best.filter(|&at| !hit(at)))
            }
            () => {
                let (hit, conflict) = (first(true), first(false));
                let passes = hit > conflict && conflict.is_some();
                let hit = hit.filter(|_| !(passes && capped(number_of_bank)));
                (hit, conflict.filter(|_| hit.is_none()))
            }
        };
        let standing = |index: usize| StandingRequest { index: index as u16, age: number(&index) };
        let (hit, conflict) = (hit.map(standing), conflict.map(standing));
        (bank.hit, bank.conflict) = (hit.unwrap_or_default(), conflict.unwrap_or_default());
        self.stale.put(number_of_bank, false);
        self.hits.put(number_of_bank, hit.is_some());
        self.conflicts.put(number_of_bank, conflict.is_some());
    }
}

/// The banks of a word of a set.
#[inline]
fn banks_in(word: usize, mut left: u64) -> impl Iterator<Item = BankId> {
    std::iter::from_fn(move || {
        let bank = (left != 0).then(|| (64 * word) as BankId + left.trailing_zeros() as BankId);
        left &= left.wrapping_sub(1);
        bank
    })
}

/// The bits of a word from this one on; none from 64 on.
#[inline]
fn bits_from(bit: usize) -> u64 {
    if bit < 64 { u64::MAX << bit } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::media::{BusSpec, MediaSpec, NvmSpec};
    use super::*;
    use durawarp_base::spec::Nanos;
    use durawarp_engine::{Clock, Timebase};
    use proptest::prelude::*;

    /// DRAM and NVM of so many banks each.
    fn media(banks: u32) -> Media {
        let ns = |ns: u64| Nanos { ps: ns * 1000 };
        let dram = MediaSpec {
            banks,
            row_bytes: 2048,
            t_rcd_ns: ns(12),
            t_cl_ns: ns(3),
            t_wl_ns: ns(2),
            t_rp_ns: ns(5),
            t_ras_ns: ns(13),
            t_ccd_ns: ns(4),
            bank_groups: 1,
            t_ccd_l_ns: ns(4),
            t_rrd_ns: ns(6),
            t_wr_ns: ns(12),
            ..MediaSpec::default()
        };
        let nvm = NvmSpec::through(&dram, ns(48));
        let bus = BusSpec { bytes_per_cycle: 32, read_to_write_ns: ns(7), write_to_read_ns: ns(9) };
        Media::new(&dram, &nvm, &bus, Clock::of_period(1), Timebase::of_khz(&[1_000_000]).unwrap())
    }

    /// One look at every request, oldest first: what the queue's answers must agree with.
    fn plain(media: &Media, access: Direction, all: &[(DeviceRow, u64)], capped: u8, now: Time) -> [Option<u64>; 3] {
        let (mut column, mut row, mut next) = (None, None, Time::MAX);
        let (mut hits, mut conflicts) = (0u128, Vec::new());
        for &(place, line) in all {
            let direct = access == Direction::Write && media.writes_without_row(place.medium);
            let conflict = conflicts.iter().any(|&(p, _): &(DeviceRow, u64)| p.bank == place.bank);
            if direct || media.open_row_of(place.bank) == Some(place.row) {
                if !direct && capped >> (place.bank % 8) & 1 == 1 && conflict {
                    continue;
                }
                hits |= 1 << place.bank;
                let ready = media.channel_ready(place.medium, access, now).max(media.bank_ready(place, access, now));
                if ready > now {
                    next = next.min(ready);
                } else {
                    column = column.or(Some(line));
                }
            } else if !conflict {
                conflicts.push((place, line));
            }
        }
        for (place, line) in conflicts.into_iter().filter(|(place, _)| hits >> place.bank & 1 == 0) {
            let ready = media.row_ready(place).max(media.row_slot_ready(place.medium, now));
            if ready > now {
                next = next.min(ready);
            } else {
                row = row.or(Some(line));
            }
        }
        let next = (next != Time::MAX && column.is_none() && row.is_none()).then_some(next);
        [column, row, next]
    }

    /// The same in turn or by ranks: `number` orders requests by their lines, which are in the order of ages.
    fn plain_by(
        (media, access, order): (&Media, Direction, QueueOrder),
        all: &[(DeviceRow, u64)],
        capped: u8,
        now: Time,
        number: impl Fn(u64) -> (u64, u64),
    ) -> [Option<u64>; 3] {
        let (mut columns, mut rows, mut next) = (Vec::new(), Vec::new(), Time::MAX);
        for bank in 0..media.banks() as BankId {
            let of_bank: Vec<_> = all.iter().filter(|(place, _)| place.bank == bank).copied().collect();
            let Some(&(first, _)) = of_bank.first() else { continue };
            let direct = access == Direction::Write && media.writes_without_row(first.medium);
            let is_hit = |place: &DeviceRow| direct || media.open_row_of(bank) == Some(place.row);
            let conflict = of_bank.iter().position(|(place, _)| !is_hit(place)).unwrap_or(usize::MAX);
            let keeps = |at: usize| at < conflict || capped >> (bank % 8) & 1 == 0 || !is_hit(&of_bank[at].0);
            let order_of = |&at: &usize| (number(of_bank[at].1).0, !is_hit(&of_bank[at].0), at);
            let best = if direct || order == QueueOrder::Arrival {
                0
            } else {
                (0..of_bank.len()).filter(|&at| keeps(at)).min_by_key(order_of).expect("a request stays")
            };
            let (place, line) = of_bank[best];
            let hit = is_hit(&place);
            if hit && order == QueueOrder::Arrival && line != all[0].1 {
                continue;
            }
            let ready = if hit {
                media.channel_ready(place.medium, access, now).max(media.bank_ready(place, access, now))
            } else {
                media.row_ready(place).max(media.row_slot_ready(place.medium, now))
            };
            match (ready > now, hit) {
                (true, _) => next = next.min(ready),
                (false, true) => columns.push(line),
                (false, false) => rows.push(line),
            }
        }
        let [column, row] = [columns, rows].map(|lines| lines.into_iter().min_by_key(|&line| number(line)));
        let next = (next != Time::MAX && column.is_none() && row.is_none()).then_some(next);
        [column, row, next]
    }

    proptest! {
        #[test]
        fn it_chooses_as_a_look_at_every_request_does(
            steps in prop::collection::vec((0u16..6, 0u32..3, 0u64..30, any::<u8>()), 1..80),
            writes: bool,
            // Six banks; eighty, in two words.
            each in prop::sample::select(&[3u16, 40]),
            order in prop::sample::select(&[QueueOrder::HitsFirst, QueueOrder::Arrival, QueueOrder::Ranked]),
        ) {
            let access = if writes { Direction::Write } else { Direction::Read };
            let mut media = media(u32::from(each));
            let mut queue = RequestQueue::new(access, order, media.banks());
            // Of three sources.
            let (ranks, mut favoured) = ([0u16, 2, 1], 0);
            ranks.iter().zip(0..).for_each(|(&rank, source)| queue.ranks_mut().put(source, rank));
            let mut all: Vec<(DeviceRow, u64)> = Vec::new();
            let (mut now, mut capped) = (0, 0u8);
            for (line, (bank, row, wait, cap)) in steps.into_iter().enumerate() {
                let bank = bank * (2 * each - 1) / 5;
                let place = DeviceRow { row, ..media.place_in(bank) };
                prop_assert_eq!(place.medium, if bank < each { Medium::Dram } else { Medium::Nvm });
                queue.push(place, line as u64, (line % 3) as u16, line as u64);
                all.push((place, line as u64));
                now += wait;
                if cap != capped {
                    (capped, favoured) = (cap, favoured.max(line as u64 / 2));
                    queue.ranks_mut().favour_before(favoured);
                    (0..2 * each).for_each(|bank| queue.changed(bank));
                }
                let choice = queue.choose(&media, |bank| capped >> (bank % 8) & 1 == 1, &NO_BANKS, now);
                let line_of = |queue: &RequestQueue<u64>, at: Option<At>| {
                    at.map(|at| queue.banks[usize::from(at.bank)].entries[usize::from(at.index)].line)
                };
                let next = (choice.next != Time::MAX && !choice.acts()).then_some(choice.next);
                let found = [line_of(&queue, choice.column), line_of(&queue, choice.row), next];
                let number = |line: u64| match order {
                    QueueOrder::Ranked if line >= favoured => (u64::from(ranks[line as usize % 3]) + 1, line),
                    _ => (0, line),
                };
                let expected = match order {
                    QueueOrder::HitsFirst => plain(&media, access, &all, capped, now),
                    _ => plain_by((&media, access, order), &all, capped, now, number),
                };
                prop_assert_eq!(found, expected);
                if let Some(at) = choice.row {
                    media.row_command(DeviceRow { row: queue.row(at), ..media.place_in(at.bank) }, now);
                    queue.changed(at.bank);
                }
                if let Some(at) = choice.column {
                    let older = all.iter().take_while(|(_, line)| Some(*line) != found[0]);
                    let passes = older.filter(|(p, _)| p.bank == at.bank && p.row != queue.row(at)).count() > 0;
                    prop_assert_eq!(queue.passes_an_older(at), passes);
                    let (row, line, _) = queue.remove(at);
                    media.column(DeviceRow { row, ..media.place_in(at.bank) }, access, 32, now);
                    all.retain(|(_, other)| *other != line);
                    prop_assert_eq!((Some(line), queue.len()), (found[0], all.len()));
                }
            }
        }
    }
}
