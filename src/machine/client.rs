//! A client of a server: it commits transactions whose data it persists in the server's memory.
//!
//! ```text
//!  compute ──> writes? ──no──> committed
//!                 └─yes─> sync: epoch 1, ack, epoch 2, ack ... committed at the last ack
//!                         bsp:  epochs 1, 2 ... at once, committed at the ack of the last
//! ```
//! Packets leave the client's port one after the other, each after its bytes at the port's bandwidth. A
//! client has one transaction under way. One whose transactions are not counted begins none after it has
//! heard that the server's program is over: the other half of a hybrid run.
//!
//! Source: persistence parallelism, section V and Fig. 8. Invariants: a transaction that writes is committed
//! in the event of its last acknowledgement; under sync the next epoch is posted in the event of the one
//! before. Not modelled: the client's own machine, reads of the server, retries (nothing is lost).

mod parameters;
mod script;

use std::collections::VecDeque;

use crate::engine::{Component, Ctx, StateDigest, Time, Timebase, Wait};
use crate::persist::journal::{Author, Notebook};
use crate::timeline::{Label, Recorder};

use super::msg::Msg;
use super::ports::{Endpoint, Ports};
use super::verbs::{NetworkMsg, NetworkSpec, SendingPort, VerbHead, note_verb};

pub use parameters::{Addresses, ClientCounters, ClientSpec, Protocol};
pub use script::{Epoch, Script};

/// How a client is wired.
#[derive(Debug)]
pub struct ClientWiring {
    /// Its number among the clients of all servers.
    pub number: u16,
    /// The number of its channel at its server.
    pub channel: u16,
    /// Its ports.
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

/// A client.
#[derive(Debug)]
pub struct Client {
    spec: ClientSpec,
    wiring: ClientWiring,
    script: Script,
    /// Epochs of the transaction that are to be posted.
    to_post: VecDeque<Epoch>,
    /// The verb whose acknowledgement it waits for.
    awaited: Option<u64>,
    /// It computes, or is yet to begin; false while it waits, and at the end.
    computes: bool,
    began: bool,
    /// The server's program is over.
    program_over: bool,
    /// When the first epoch of the transaction was posted.
    posted: Time,
    port: SendingPort,
    counters: ClientCounters,
    times: ClientTimes,
    /// What it posted, where it keeps a journal.
    journal: Option<Notebook>,
    /// Verbs until they were acknowledged, where a timeline is kept; by their place among those under way.
    verbs: Option<Box<Recorder>>,
    /// Verbs that are posted and not acknowledged.
    under_way: usize,
}

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
            to_post: VecDeque::new(),
            awaited: None,
            computes: false,
            began: false,
            program_over: false,
            posted: 0,
            port,
            counters: ClientCounters::default(),
            times: ClientTimes::default(),
            journal,
            verbs: None,
            under_way: 0,
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
        self.computes = match self.spec.transactions {
            0 => !self.program_over,
            count => self.counters.transactions < u64::from(count),
        };
        if self.computes {
            cx.wake_at(cx.now() + self.wiring.timebase.ticks_of_ps(self.spec.compute_ns.ps));
        }
    }

    /// Begins the next transaction.
    fn begin(&mut self, cx: &mut Ctx<'_, Msg>) {
        let Some(epochs) = self.script.next_transaction() else { return };
        self.to_post = epochs.into();
        self.posted = cx.now();
        if self.to_post.is_empty() {
            self.commit(cx);
        } else {
            self.counters.writes += 1;
            self.post(cx);
        }
    }

    /// Posts what the protocol allows.
    fn post(&mut self, cx: &mut Ctx<'_, Msg>) {
        while let Some(epoch) = self.to_post.pop_front() {
            let asks = self.spec.protocol == Protocol::Sync || self.to_post.is_empty();
            self.post_verb(epoch, asks, cx);
            if asks {
                self.awaited = Some(epoch.sequence);
                return;
            }
        }
    }

    fn post_verb(&mut self, epoch: Epoch, acknowledged: bool, cx: &mut Ctx<'_, Msg>) {
        let bytes = self.script.bytes_of(epoch);
        self.counters.verbs += 1;
        self.counters.bytes += bytes.len() as u64;
        self.note(epoch, &bytes, cx.now());
        if let Some(verbs) = &mut self.verbs {
            verbs.begin(self.under_way, cx.now(), Label::Verb { number: epoch.sequence });
        }
        self.under_way += 1;
        let head = VerbHead {
            channel: self.wiring.channel,
            sequence: epoch.sequence,
            address: self.wiring.memory + epoch.offset,
            acknowledged,
        };
        for (packet, delay) in self.port.packets(head, &bytes, cx.now()) {
            cx.send(self.wiring.ports.to(Endpoint::Nic), Msg::Network(NetworkMsg::Verb(packet)), delay);
        }
    }

    /// The lines of a verb, as the oracle knows them.
    fn note(&mut self, epoch: Epoch, bytes: &[u8], now: Time) {
        let Some(journal) = &mut self.journal else { return };
        let author = Author {
            warp: self.wiring.channel,
            launch: self.counters.transactions as u32,
            pc: epoch.sequence as u32,
            ..Author::default()
        };
        note_verb(journal, now, self.wiring.memory + epoch.offset, author, bytes);
    }

    fn commit(&mut self, cx: &mut Ctx<'_, Msg>) {
        self.counters.transactions += 1;
        self.times.latency += cx.now() - self.posted;
        self.times.committed = cx.now();
        self.compute(cx);
    }
}

impl Component<Msg> for Client {
    fn handle(&mut self, message: Msg, cx: &mut Ctx<'_, Msg>) {
        let sequence = match message {
            Msg::Network(NetworkMsg::PersistAck { sequence, .. }) => sequence,
            Msg::Network(NetworkMsg::ProgramOver) => {
                self.program_over = true;
                return;
            }
            other => panic!("a client received {other:?}"),
        };
        assert_eq!(self.awaited.take(), Some(sequence), "an acknowledgement that nobody waits for");
        let acknowledged = std::mem::take(&mut self.under_way);
        if let Some(verbs) = &mut self.verbs {
            (0..acknowledged).for_each(|verb| verbs.end(verb, cx.now()));
        }
        if self.to_post.is_empty() { self.commit(cx) } else { self.post(cx) }
    }

    fn wake(&mut self, cx: &mut Ctx<'_, Msg>) {
        if !self.began {
            self.began = true;
            self.compute(cx);
        } else if std::mem::take(&mut self.computes) && !(self.program_over && self.spec.transactions == 0) {
            self.begin(cx);
        }
    }

    fn waits(&self, out: &mut Vec<Wait>) {
        if let Some(sequence) = self.awaited {
            let who = format!("transaction {}", self.counters.transactions + 1);
            let what = format!("the acknowledgement of verb {sequence}");
            out.push(Wait { who, what, on: None, since: self.posted });
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
