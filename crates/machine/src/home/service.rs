//! The walk of a request through a home slice: what it needs first, and what it gets then.
//!
//! ```text
//!  request ──> needs ──nothing──────────────────────────────────> complete: Data, or bytes to memory
//!               │├──probe──> Probing ──last ack──────────────────────┤
//!               │└──fetch──> Held ──> Fetching ──bytes and place─────┤
//!               │                      └─victim: Recalling ──> evict │
//!               └───────────────── ready: next of the queue <────────┘
//! ```
//! Invariant: a request that needs nothing is completed without a core and without memory. Where
//! several transactions can go on in one event, fetches that wait go first, then transactions in the order in
//! which they became ready.

use crate::coherence::{CPU_LINE_MASK, CoreMsg, LineData, Want};
use crate::line::{Line, sectors_touched};
use crate::msg::Msg;
use crate::persistence::Clwb;
use crate::ports::Requester;
use durawarp_engine::{Ctx, Time};
use durawarp_kernel::memory::Medium;
use durawarp_persist::handler::Dependencies;

use super::HomeSlice;
use super::request::{Answer, Ask, CoreSet, HomeRequest, PendingAnswer, TransactionId};
use super::transactions::Phase;

/// What a request needs before it can be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// No core and no memory.
    Nothing,
    /// That these cores give the line up, or keep a copy to read.
    Probe { cores: CoreSet, invalidate: bool },
    /// The line.
    Fetch,
}

impl HomeSlice {
    /// A request comes: it is served, or begins a transaction of its line, or waits behind one.
    pub(super) fn request(&mut self, line: u64, request: HomeRequest, cx: &mut Ctx<'_, Msg>) {
        let place = self.directory.find(line);
        let busy = match place {
            Some(place) => self.directory.transaction(place),
            None => self.transactions.of_absent(line),
        };
        if let Some(id) = busy {
            self.counters.queued += 1;
            self.transactions.at_mut(id).queue.push_back(request);
            return;
        }
        let needs = self.needs(place, &request);
        self.count_hit(needs, &request);
        if needs == Needs::Nothing {
            self.complete(line, place, request, cx);
        } else {
            let id = self.transactions.begin(line, place, cx.now());
            if let Some(place) = place {
                self.directory.set_transaction(place, Some(id));
            }
            self.start(id, request, needs, cx);
        }
    }

    /// A clean that overtakes waiting requests of its line, unless a core may have newer bytes.
    pub(super) fn clean_at_once(&mut self, line: u64, request: HomeRequest, cx: &mut Ctx<'_, Msg>) {
        let place = self.directory.find(line);
        if self.needs(place, &request) == Needs::Nothing {
            self.complete(line, place, request, cx);
        } else {
            self.request(line, request, cx);
        }
    }

    /// What a request of a line at a place needs, or of one that is not there.
    fn needs(&self, place: Option<usize>, request: &HomeRequest) -> Needs {
        let from = self.core(request.from);
        let Some(place) = place else {
            // A line that is not here is in no cache: a clean of it has nothing to do.
            return if matches!(request.ask, Ask::Clean { .. }) { Needs::Nothing } else { Needs::Fetch };
        };
        let (cores, invalidate) = match request.ask {
            Ask::Get(Want::Shared | Want::Once) | Ask::Clean { flush: false } => {
                (self.directory.owner(place) & !from, false)
            }
            Ask::Get(Want::Exclusive) => (self.directory.holders(place) & !from, true),
            // The sender of a flush may have been granted a copy that comes after the flush was sent.
            Ask::Clean { flush: true } | Ask::Write => (self.directory.holders(place), true),
        };
        if cores == 0 { Needs::Nothing } else { Needs::Probe { cores, invalidate } }
    }

    fn count_hit(&mut self, needs: Needs, request: &HomeRequest) {
        let hit = u64::from(needs != Needs::Fetch);
        match request.ask {
            Ask::Get(_) => self.counters.get_hits += hit,
            Ask::Write => self.counters.nic_write_hits += hit,
            Ask::Clean { .. } => {}
        }
    }

    /// The step of a transaction that its head needs begins.
    fn start(&mut self, id: TransactionId, head: HomeRequest, needs: Needs, cx: &mut Ctx<'_, Msg>) {
        self.transactions.at_mut(id).head = Some(head);
        match needs {
            Needs::Probe { cores, invalidate } => self.probe(id, cores, Phase::Probing { invalidate }, cx),
            Needs::Fetch => self.transactions.set_phase(id, Phase::Held, cx.now()),
            Needs::Nothing => unreachable!("a request that needs nothing begins no step"),
        }
    }

    /// Asks cores to give a line up, or to keep a copy to read; its place stays as it is until they have.
    fn probe(&mut self, id: TransactionId, cores: CoreSet, phase: Phase, cx: &mut Ctx<'_, Msg>) {
        self.transactions.set_phase(id, phase, cx.now());
        let transaction = self.transactions.at_mut(id);
        (transaction.awaited, transaction.probed) = (cores, cores);
        let line = transaction.line;
        let Some(place) = transaction.place else { unreachable!("line {line:#x} has no copies: it is not here") };
        self.directory.lock(place, true);
        self.counters.probes += u64::from(cores.count_ones());
        let invalidate = phase != Phase::Probing { invalidate: false };
        let recall = matches!(phase, Phase::Recalling { .. });
        let mut left = cores;
        while left != 0 {
            let core = left.trailing_zeros() as u16;
            left &= left - 1;
            let room = self.memory.line_pool.take();
            self.send(Requester::core(core), CoreMsg::Probe { line, invalidate, recall, room }, cx);
        }
    }

    /// A core has obeyed a probe.
    ///
    /// # Panics
    /// When it was not asked.
    pub(super) fn probe_ack(
        &mut self,
        line: u64,
        from: Requester,
        dirty: bool,
        room: Box<Line>,
        cx: &mut Ctx<'_, Msg>,
    ) {
        let core = self.core(from);
        let at = self.directory.find(line).and_then(|place| Some((place, self.directory.transaction(place)?)));
        let Some((place, id)) = at.filter(|&(_, id)| self.transactions.at(id).awaited & core != 0) else {
            panic!("an acknowledgement of core {} for line {line:#x}, which it was not asked for", from.number())
        };
        if dirty {
            self.counters.dirty_probe_acks += 1;
            // Where a put or a flush has crossed the probe, its bytes are in already, and the core owns the
            // line no more.
            if self.directory.owner(place) == core {
                self.directory.store(place, &room);
            }
        }
        self.memory.line_pool.give(room);
        let transaction = self.transactions.at_mut(id);
        transaction.awaited &= !core;
        if transaction.awaited != 0 {
            return;
        }
        let (probed, phase) = (transaction.probed, transaction.phase);
        if phase == (Phase::Probing { invalidate: false }) {
            self.directory.share(place);
        } else {
            self.directory.release(place, probed);
        }
        if let Phase::Recalling { fetch } = phase {
            if self.keeps(line) {
                // What a core has just brought is not in memory yet.
                self.counters.kept_lines += 1;
                self.transactions.set_phase(id, Phase::Kept { fetch }, cx.now());
            } else {
                self.end_recall(id, place, fetch, cx);
            }
        } else {
            self.directory.lock(place, false);
            self.serve_head(id, cx);
        }
    }

    /// A line whose copies are gone makes room.
    fn end_recall(&mut self, id: TransactionId, place: usize, fetch: TransactionId, cx: &mut Ctx<'_, Msg>) {
        self.directory.lock(place, false);
        self.evict(place, cx);
        self.transactions.set_phase(id, Phase::Ready, cx.now());
        self.occupy(fetch, place, cx);
    }

    /// The scheme has a line stay.
    fn keeps(&mut self, line: u64) -> bool {
        Medium::of(line) == Medium::Nvm && self.host.as_mut().is_some_and(|host| host.keeps(line))
    }

    /// Lines that stayed make room if they may now.
    pub(super) fn release_kept(&mut self, cx: &mut Ctx<'_, Msg>) {
        for id in self.transactions.take_kept() {
            let (Phase::Kept { fetch }, line) = (self.transactions.at(id).phase, self.transactions.at(id).line) else {
                unreachable!("a line that stays waits for nothing else")
            };
            let Some(place) = self.transactions.at(id).place else { unreachable!("line {line:#x} is here") };
            if self.keeps(line) {
                self.transactions.keep(id);
            } else {
                self.end_recall(id, place, fetch, cx);
            }
        }
    }

    /// A transaction has what its head needs.
    fn serve_head(&mut self, id: TransactionId, cx: &mut Ctx<'_, Msg>) {
        let transaction = self.transactions.at_mut(id);
        let (line, place) = (transaction.line, transaction.place);
        let Some(head) = transaction.head.take() else { unreachable!("a step of line {line:#x} serves a request") };
        self.complete(line, place, head, cx);
        self.transactions.set_phase(id, Phase::Ready, cx.now());
    }

    /// Serves a request that needs nothing more.
    fn complete(&mut self, line: u64, place: Option<usize>, request: HomeRequest, cx: &mut Ctx<'_, Msg>) {
        let HomeRequest { from, tag, ask, mut room, dependencies, .. } = request;
        match ask {
            Ask::Get(want) => {
                let Some(place) = place else { unreachable!("line {line:#x} is granted from nowhere") };
                self.directory.touch(place);
                let grant = self.directory.grant(place, self.core(from), want);
                self.directory.read(place, &mut room);
                // Nothing that the OS reads is followed.
                let host = self.host.as_mut().filter(|_| from.index() < self.cores);
                let dependencies = host.and_then(|host| host.given(line, from.number()));
                let line = LineData { tag, grant, data: room, dependencies };
                self.ports.send_line(from, line, self.service, cx);
            }
            Ask::Clean { flush } => {
                let writes = flush || self.clwb == Clwb::Write;
                let written = writes && place.is_some_and(|place| self.write_back(place, true, cx));
                if writes && !written && self.memory_caches && Medium::of(line) == Medium::Nvm {
                    self.clean_below(line, cx);
                }
                if let Some(place) = place.filter(|_| flush) {
                    self.remove(place);
                }
                // Also writes that began before: the line may be clean because of them.
                let waits = writes && !self.is_durable_here(line);
                self.answer(line, from, Answer::Cleaned { tag, room }, waits, cx);
            }
            Ask::Write => {
                let Some(place) = place else { unreachable!("line {line:#x} is written to nowhere") };
                self.directory.touch(place);
                self.directory.store_whole(place, &room, dependencies.is_none());
                let before = self.overwrite(line, dependencies, cx);
                // What is on its way to memory from here does not pass what the NIC sends there.
                self.answer(line, from, Answer::Written { tag, room, dependencies: before }, true, cx);
            }
        }
    }

    /// Sends an answer, or has it wait until every write of the line that is under way is durable.
    fn answer(&mut self, line: u64, to: Requester, answer: Answer, waits: bool, cx: &mut Ctx<'_, Msg>) {
        let pending = PendingAnswer { line, to, since: cx.now(), answer };
        let due = if waits { self.writes.await_lines(pending, |of| of == line) } else { Some(pending) };
        if let Some(answer) = due {
            self.send_answer(answer, cx);
        }
    }

    /// A line gets the NIC's bytes, which depend on something: what it depended on before.
    fn overwrite(
        &mut self,
        line: u64,
        dependencies: Option<Box<Dependencies>>,
        cx: &mut Ctx<'_, Msg>,
    ) -> Option<Box<Dependencies>> {
        let host = self.host.as_mut()?;
        // Of bytes that nothing makes durable nobody waits for those before.
        let on = dependencies?;
        let before = host.given(line, self.cores as u16);
        host.taken(line, &on, cx);
        before
    }

    /// A write to memory begins; returns its token.
    fn open(&mut self, line: u64, now: Time) -> u16 {
        let token = self.writes.open(line);
        if let Some(timeline) = &mut self.timeline {
            timeline.opened(token, line, now, self.writes.len());
        }
        token
    }

    /// Memory gets the bytes of a line, `through` its caches, if it lacks them; false if it has them.
    fn write_back(&mut self, place: usize, through: bool, cx: &mut Ctx<'_, Msg>) -> bool {
        let Some(line) = self.directory.line_at(place).filter(|_| self.directory.clean(place)) else { return false };
        let mut data = self.memory.line_pool.take();
        self.directory.read(place, &mut data);
        let token = self.open(line, cx.now());
        self.counters.writebacks += 1;
        if through {
            self.memory.write_through(line, token, data, cx);
        } else {
            self.memory.write(line, token, false, data, cx);
        }
        true
    }

    /// Memory's cache is to write a line whose bytes it may have alone.
    fn clean_below(&mut self, line: u64, cx: &mut Ctx<'_, Msg>) {
        let (token, data) = (self.open(line, cx.now()), self.memory.line_pool.take());
        self.memory.write_through(line, token, data, cx);
    }

    /// A line without copies leaves its place, which stays locked or not; requests of it may wait.
    fn evict(&mut self, place: usize, cx: &mut Ctx<'_, Msg>) {
        let of_scheme = self.host.is_some()
            && !self.directory.is_plain(place)
            && self.directory.line_at(place).is_some_and(|line| Medium::of(line) == Medium::Nvm);
        if of_scheme && !self.memory_caches {
            // Memory has had its bytes from the scheme.
            self.counters.dropped_lines += u64::from(self.directory.clean(place));
        } else {
            self.write_back(place, false, cx);
        }
        self.directory.give_way(place);
        self.remove(place);
    }

    /// Empties a place.
    fn remove(&mut self, place: usize) {
        if let Some(id) = self.directory.transaction(place) {
            self.transactions.move_to(id, None);
        }
        self.directory.remove(place);
    }

    /// The bytes of a fetch come.
    pub(super) fn memory_data(&mut self, id: TransactionId, data: Box<Line>, cx: &mut Ctx<'_, Msg>) {
        self.memory.read_done();
        let transaction = self.transactions.at_mut(id);
        transaction.fetched = Some(data);
        if transaction.place.is_some() {
            self.fill(id, cx);
        }
    }

    /// The line of a fetch gets its place.
    fn occupy(&mut self, id: TransactionId, place: usize, cx: &mut Ctx<'_, Msg>) {
        self.directory.replace(place, self.transactions.at(id).line);
        self.directory.set_transaction(place, Some(id));
        self.directory.lock(place, true);
        self.transactions.move_to(id, Some(place));
        if self.transactions.at(id).fetched.is_some() {
            self.fill(id, cx);
        }
    }

    /// Place and bytes of a fetch are there.
    fn fill(&mut self, id: TransactionId, cx: &mut Ctx<'_, Msg>) {
        let transaction = self.transactions.at_mut(id);
        if let (Some(place), Some(data)) = (transaction.place, transaction.fetched.take()) {
            self.directory.fill(place, &data);
            self.directory.lock(place, false);
            self.memory.line_pool.give(data);
            self.transactions.fetched();
            self.serve_head(id, cx);
        }
    }

    /// Does all that can be done before the next message.
    pub(super) fn settle(&mut self, cx: &mut Ctx<'_, Msg>) {
        loop {
            // A fetch may take the place of a line whose next request waits: else lines that are asked for
            // again and again would leave it none.
            while self.start_fetch(cx) {}
            let Some(id) = self.transactions.pop_ready() else { return };
            self.serve_queue(id, cx);
        }
    }

    /// The requests of a line go on, up to one that needs a step.
    fn serve_queue(&mut self, id: TransactionId, cx: &mut Ctx<'_, Msg>) {
        while let Some(request) = self.transactions.at_mut(id).queue.pop_front() {
            self.counters.queued_ticks += cx.now() - request.arrived;
            let (line, place) = (self.transactions.at(id).line, self.transactions.at(id).place);
            let needs = self.needs(place, &request);
            self.count_hit(needs, &request);
            if needs != Needs::Nothing {
                self.start(id, request, needs, cx);
                return;
            }
            self.complete(line, place, request, cx);
        }
        if let Some(place) = self.transactions.at(id).place {
            self.directory.set_transaction(place, None);
        }
        self.transactions.end(id);
    }

    /// The place for a line that is not there: that of the first line to leave that may.
    fn victim(&mut self, line: u64) -> Option<usize> {
        if self.host.is_none() {
            return self.directory.victim(line);
        }
        let places = self.directory.victims(line);
        let ways = self.host.as_ref().map_or(usize::MAX, |host| host.searched_ways(self.directory.ways()));
        places.into_iter().take(ways).find(|&place| {
            let line = self.directory.line_at(place);
            line.is_none_or(|line| !self.keeps(line))
        })
    }

    /// The fetch that waits longest starts, if there is all that it needs.
    fn start_fetch(&mut self, cx: &mut Ctx<'_, Msg>) -> bool {
        let Some(id) = self.transactions.first_held() else { return false };
        let line = self.transactions.at(id).line;
        // A line that the NIC writes needs a place, and no bytes.
        let writes = self.transactions.at(id).head.as_ref().is_some_and(|head| head.ask == Ask::Write);
        if self.transactions.fetching() == self.mshrs || !writes && !self.memory.may_read() {
            return false;
        }
        let Some(place) = self.victim(line) else { return false };
        self.transactions.pop_held();
        let held = cx.now() - self.transactions.at(id).since;
        self.counters.held_fetches += u64::from(held > 0);
        self.counters.held_fetch_ticks += held;
        self.transactions.set_phase(id, Phase::Fetching, cx.now());
        if writes {
            self.transactions.at_mut(id).fetched = Some(self.memory.line_pool.take());
        } else {
            self.counters.fetches += 1;
            let from = self.transactions.at(id).head.as_ref().map(|head| head.from);
            self.memory.read(line, id, sectors_touched(CPU_LINE_MASK), from, cx);
        }
        self.make_room(place, id, cx);
        true
    }

    /// A place becomes free for a fetch: its line leaves, and its copies before.
    fn make_room(&mut self, place: usize, fetch: TransactionId, cx: &mut Ctx<'_, Msg>) {
        let Some(line) = self.directory.line_at(place) else { return self.occupy(fetch, place, cx) };
        let copies = self.directory.holders(place);
        if copies == 0 {
            self.evict(place, cx);
            return self.occupy(fetch, place, cx);
        }
        // The line has a transaction if requests of it wait: they go on when it has left.
        let id = self.directory.transaction(place).unwrap_or_else(|| {
            let id = self.transactions.begin(line, Some(place), cx.now());
            self.directory.set_transaction(place, Some(id));
            id
        });
        self.counters.recalls += 1;
        self.probe(id, copies, Phase::Recalling { fetch }, cx);
    }
}
