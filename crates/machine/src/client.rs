//! A client of a server: it commits transactions whose data it persists in the server's memory.
//!
//! ```text
//!  compute ──> writes? ──no──> committed
//!                 └─yes─> sync: epoch 1, ack, epoch 2, ack ... committed at the last ack
//!                    ▲    bsp:  epochs 1, 2 ... at once, committed at the ack of the last
//!                    └─ no ack within retry_us: log abort
//! ```
//! Packets leave the client's port one after the other, each after its bytes at the port's bandwidth. A
//! client has one transaction under way; with `client.arrivals=open` it begins the next at its time, however
//! many are, as one that replays a trace does, and they are committed in their order. One whose transactions
//! are not counted begins none after it has heard that the server's program is over: the other half of a
//! hybrid run.
//!
//! With `client.retry_us` a client that has waited so long for an acknowledgement gives the attempt up: the
//! log is aborted, and the transaction is persisted again, by new verbs of the same bytes.
//! The server need not know of it. Nothing is lost on the network: only an acknowledgement that is late has a
//! client try again, and each comes in the end. One at the very tick of `retry_us` is in time. What the log
//! abort itself writes is not told, and no message is modelled for it.
//!
//! The first `client.plain_epochs` of a transaction are written without being made durable (`rdma_write`),
//! and wait for a reply instead.
//!
//! Source: persistence parallelism, section V and Fig. 8. Invariants: a transaction that writes is committed
//! in the event of its last acknowledgement; under sync the next epoch is posted in the event of the one
//! before. Not modelled: the client's own machine, reads of the server, loss.

mod parameters;
mod script;
#[cfg(test)]
mod tests;
mod transaction;

use std::collections::VecDeque;

use durawarp_base::timeline::{Label, Recorder};
use durawarp_checkpoint::{state, state_methods, value};
use durawarp_engine::{Component, Ctx, StateDigest, Time, Timebase, Wait};
use durawarp_persist::journal::{Author, FactKind, Notebook};

use super::msg::{Msg, Receiver, deliver};
use super::ports::Ports;
use super::verbs::{ClientMsg, NetworkSpec, NicMsg, PersistAck, SendingPort, VerbHead, note_verb};

pub use parameters::{Addresses, Arrivals, ClientCounters, ClientSpec, Protocol};
pub use script::{Epoch, Script};
use transaction::{Heard, Transaction};

/// How a client is wired.
#[derive(Debug)]
pub struct ClientWiring {
    /// Its number among the clients of all servers.
    pub number: u16,
    /// The number of its channel at its server.
    pub channel: u16,
    pub ports: Ports,
    /// The machine's tick rate.
    pub timebase: Timebase,
    /// Physical address of its memory at its server.
    pub memory: u64,
    /// It keeps a journal of what it posts.
    pub journal: bool,
}

/// What a client measured, in ticks.
#[derive(Debug, Default)]
struct ClientTimes {
    /// From the first verb of a transaction to its commit, summed.
    latency: Time,
    /// The last commit.
    committed: Time,
}

value!(record ClientTimes { latency, committed });

/// What a client does by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alarm {
    /// It has computed, and begins a transaction.
    Begin,
    /// It has waited too long, and tries again.
    Retry,
}

value!(choice Alarm { Begin, Retry });

/// A client.
#[derive(Debug)]
pub struct Client {
    spec: ClientSpec,
    wiring: ClientWiring,
    script: Script,
    /// Under way, in the order in which they began. One, unless they do not wait for each other.
    transactions: VecDeque<Transaction>,
    begun: u64,
    /// What it does next by itself, and when.
    alarm: Option<(Time, Alarm)>,
    began: bool,
    /// The server's program is over.
    program_over: bool,
    port: SendingPort,
    counters: ClientCounters,
    times: ClientTimes,
    /// What it posted, where it keeps a journal.
    journal: Option<Notebook>,
    /// Verbs until they were acknowledged, where a timeline is kept; by lanes.
    verbs: Option<Box<Recorder>>,
    /// Lanes of the timeline of verbs that are posted and not acknowledged, in the order of their posting.
    under_way: VecDeque<u32>,
}

state!(Client {
    parts: script, port; saved: transactions, begun, alarm, began, program_over, counters, times, under_way;
    kept: spec, wiring, journal, verbs
});

impl Client {
    /// A client before its first transaction. It is to be woken at 0.
    pub fn new(spec: ClientSpec, network: NetworkSpec, wiring: ClientWiring) -> Client {
        let script = Script::new(&spec, wiring.number);
        let journal = wiring.journal.then(Notebook::default);
        let port = SendingPort::new(network, wiring.timebase);
        Client {
            spec,
            wiring,
            script,
            transactions: VecDeque::new(),
            begun: 0,
            alarm: None,
            began: false,
            program_over: false,
            port,
            counters: ClientCounters::default(),
            times: ClientTimes::default(),
            journal,
            verbs: None,
            under_way: VecDeque::new(),
        }
    }

    /// Its number among the clients of all servers.
    pub fn number(&self) -> u16 {
        self.wiring.number
    }

    /// What it posted, when it keeps a journal.
    pub fn journal(&self) -> Option<&Notebook> {
        self.journal.as_ref()
    }

    /// Keeps a timeline from now on, of at most `spans` verbs.
    pub fn keep_timeline(&mut self, spans: usize) {
        self.verbs = Some(Box::new(Recorder::new(spans)));
    }

    /// With a timeline: verbs from when they were posted until they, or one behind them, was acknowledged.
    pub fn timeline(&self) -> Option<&Recorder> {
        self.verbs.as_deref()
    }

    /// What it counted.
    pub fn counters(&self) -> ClientCounters {
        let ns = |ticks| self.wiring.timebase.ps_of_ticks(ticks) / 1000;
        ClientCounters { latency_ns: ns(self.times.latency), busy_ns: ns(self.times.committed), ..self.counters }
    }

    /// When the last transaction was committed, in ticks.
    pub fn committed(&self) -> Time {
        self.times.committed
    }

    /// Computes before the next transaction, if there is one.
    fn compute(&mut self, cx: &mut Ctx<'_, Msg>) {
        let goes_on = match self.spec.transactions {
            0 => !self.program_over,
            count => self.begun < u64::from(count),
        };
        if goes_on {
            let end = cx.now() + self.wiring.timebase.ticks_of_ps(self.spec.compute_ns.ps);
            self.set_alarm(Some((end, Alarm::Begin)), cx);
        }
    }

    fn set_alarm(&mut self, alarm: Option<(Time, Alarm)>, cx: &mut Ctx<'_, Msg>) {
        self.alarm = alarm;
        if let Some((at, _)) = alarm {
            cx.wake_at(at);
        }
    }

    /// Begins the next transaction.
    fn begin(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Some(epochs) = self.script.next_transaction() else { return };
        self.begun += 1;
        if epochs.is_empty() {
            self.commit(cx.now(), cx);
        } else {
            self.counters.writes += 1;
            self.transactions.push_back(Transaction::new(epochs, cx.now()));
            self.post(cx);
        }
        if self.is_open() {
            self.compute(cx);
        }
    }

    fn is_open(&self) -> bool {
        self.spec.arrivals == Arrivals::Open
    }

    /// Posts what the protocol allows of the transaction that began last.
    fn post(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(transaction) = self.transactions.back_mut()
            && let Some((place, epoch)) = transaction.post()
        {
            let asks = self.spec.protocol == Protocol::Sync || transaction.is_posted();
            // Without a retry that is the number of the epoch.
            let number = self.counters.verbs + 1;
            self.post_verb(epoch, number, place >= self.spec.plain_epochs as usize, asks, cx);
            if asks {
                self.transactions.back_mut().expect("it has posted").asks(number);
                let limit = self.wiring.timebase.ticks_of_ps(u64::from(self.spec.retry_us) * 1_000_000);
                self.set_alarm((limit > 0).then(|| (cx.now() + limit, Alarm::Retry)), cx);
                return;
            }
        }
    }

    /// Verbs of the first transaction, or of the one that has posted, are acknowledged.
    fn acknowledged(&mut self, now: Time) {
        // Behind the first, others have posted all of theirs.
        let others: usize = self.transactions.iter().skip(1).map(Transaction::epochs).sum();
        let acknowledged = self.under_way.len() - others;
        for lane in self.under_way.drain(..acknowledged) {
            if let Some(verbs) = &mut self.verbs {
                verbs.end(lane as usize, now);
            }
        }
    }

    fn post_verb(&mut self, epoch: Epoch, number: u64, persistent: bool, acknowledged: bool, cx: &mut Ctx<'_, Msg>) {
        let bytes = self.script.bytes_of(epoch);
        self.counters.verbs += 1;
        self.counters.bytes += bytes.len() as u64;
        let kind = if persistent { FactKind::VerbPosted } else { FactKind::VerbWritten };
        self.note(kind, epoch, number, &bytes, cx.now());
        let mut lane = 0;
        if let Some(verbs) = &mut self.verbs {
            // The lowest that no other has.
            while self.under_way.contains(&lane) {
                lane += 1;
            }
            verbs.begin(lane as usize, cx.now(), Label::Verb { number });
        }
        self.under_way.push_back(lane);
        let head = VerbHead {
            channel: self.wiring.channel,
            sequence: number,
            address: self.wiring.memory + epoch.offset,
            acknowledged,
            persistent,
        };
        for (packet, delay) in self.port.packets(head, &bytes, cx.now()) {
            self.wiring.ports.to_nic().send(NicMsg::Verb(packet), delay, cx);
        }
    }

    /// The lines of a verb, as the oracle knows them.
    fn note(&mut self, kind: FactKind, epoch: Epoch, number: u64, bytes: &[u8], now: Time) {
        let Some(journal) = &mut self.journal else { return };
        let author = Author::PostedVerb {
            channel: self.wiring.channel,
            // An attempt that is given up is over for itself: its verbs are written again by the next.
            transaction: (self.begun - 1 + self.counters.retries) as u32,
            sequence: number as u32,
        };
        note_verb(journal, kind, now, self.wiring.memory + epoch.offset, author, bytes);
    }

    /// The first transaction under way, or one that reads alone, is committed.
    fn commit(&mut self, began: Time, cx: &mut Ctx<'_, Msg>) {
        self.counters.transactions += 1;
        self.times.latency += cx.now() - began;
        self.times.committed = cx.now();
        if !self.is_open() {
            self.compute(cx);
        }
    }
}

impl Receiver for Client {
    type Inbox = ClientMsg;

    fn receive(&mut self, message: ClientMsg, cx: &mut Ctx<'_, Msg>) {
        let sequence = match message {
            ClientMsg::PersistAck(PersistAck { sequence, .. }) | ClientMsg::WriteReply { sequence, .. } => sequence,
            ClientMsg::ProgramOver => {
                self.program_over = true;
                return;
            }
        };
        let heard = self.transactions.front_mut().map_or(Heard::Late, |transaction| transaction.hear(sequence));
        if heard == Heard::Late {
            assert!(self.counters.retries > 0, "an acknowledgement of verb {sequence} that nobody waits for");
            self.counters.late_acks += 1;
            return;
        }
        if !self.is_open() {
            self.alarm = None;
        }
        self.acknowledged(cx.now());
        if heard == Heard::Over {
            let began = self.transactions.pop_front().map_or(0, |transaction| transaction.began());
            self.commit(began, cx);
        } else {
            self.post(cx);
        }
    }
}

impl Component<Msg> for Client {
    state_methods!();

    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        deliver(self, message, cx);
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.began {
            self.began = true;
            self.compute(cx);
            return;
        }
        match self.alarm {
            // A wake-up that an acknowledgement has made void.
            Some((at, _)) if cx.now() < at => cx.wake_at(at),
            Some((_, alarm)) => {
                self.alarm = None;
                match alarm {
                    Alarm::Begin if self.program_over && self.spec.transactions == 0 => {}
                    Alarm::Begin => self.begin(cx),
                    Alarm::Retry => {
                        self.counters.retries += 1;
                        self.transactions.back_mut().expect("it waits").begin_anew();
                        self.post(cx);
                    }
                }
            }
            None => {}
        }
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        let first = self.transactions.front();
        if let Some((sequence, began)) = first.and_then(|first| Some((first.awaited()?, first.began()))) {
            let who = format!("transaction {}", self.counters.transactions + 1);
            let what = format!("the acknowledgement of verb {sequence}");
            out.push(Wait { who, what, on: None, since: began });
        }
    }

    fn digest(&self) -> u64 {
        let mut digest = StateDigest::default();
        digest.word(self.counters.transactions);
        digest.word(self.counters.verbs);
        digest.word(self.times.latency);
        digest.word(self.times.committed);
        digest.value()
    }
}
