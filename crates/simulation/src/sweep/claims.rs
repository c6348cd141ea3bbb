//! Which points this process may run, where others work on the same folder of results.
//!
//! ```text
//!   claim: written to the own file ──> look: the files of others are read ──> nobody else's: run it
//!                                                                         └──> another's, alive: later
//! ```
//! Both write before they look, so of two processes that claim one point at least one sees the other and puts
//! it off; where both do, the first of them runs it when it comes again. Of processes on other hosts it is
//! not known whether they live: shards keep these apart. Invariants: no point is run before a look that began
//! after its claim was written; a point that another process of this host claimed is not run before a look
//! that began after that one was found gone.
//!
//! A look takes long in a large folder, on a network, or on a busy host. Then one look serves the claims of
//! several points, enough of them to keep looking within a fifth of the time.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};

use super::record::{Head, State};
use super::runner::lock;
use super::store::{Author, Order, Store};

/// A look that takes longer serves several points.
const SLOW: Duration = Duration::from_millis(20);
/// Points that one look serves at most: the last of them wait for their worker while others may be idle.
const MOST_AHEAD: usize = 256;

/// What is known of a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    /// It has a result.
    Done,
    /// It has failed since this process began, or is not to be run again: why.
    Failed(String),
    /// Another process runs it, or will.
    Begun,
    /// It is for this process to run.
    Own,
}

/// What the last look says of a point.
enum Seen {
    Done,
    Failed(String),
    /// Another process that is alive has claimed it, and goes first.
    Begun,
    /// Another process claimed it and is gone: it may have a result since.
    Left,
    Nothing,
}

/// That this process begins a point.
#[derive(Clone, Copy)]
struct Claim {
    /// When it was written, in ms since 1970.
    at_ms: u64,
    /// The last look that had begun by then.
    look: u64,
}

/// The folder as it was last seen.
struct View<'s> {
    store: &'s mut Store,
    /// Number of the look.
    look: u64,
    /// How long it took.
    took: Duration,
    /// When it ended.
    ended: Instant,
}

/// The claims of one process.
pub(super) struct Claims<'s> {
    /// Keys of the points by their number.
    keys: Vec<&'s str>,
    /// Points to run, in about the order in which they are given out.
    order: Vec<usize>,
    author: Author,
    keep_failed: bool,
    orders: Sender<Order>,
    view: Mutex<View<'s>>,
    /// Looks that have begun.
    looks: AtomicU64,
    made: Mutex<BTreeMap<usize, Claim>>,
    /// Points that this process runs at a time.
    jobs: usize,
    /// Points that it ran, and for how many microseconds in all.
    ran: AtomicUsize,
    ran_us: AtomicU64,
}

impl<'s> Claims<'s> {
    /// No claims yet. The store was just read.
    #[expect(clippy::disallowed_methods, reason = "how often a folder is looked at; no result depends on it")]
    pub(super) fn new(
        store: &'s mut Store,
        keys: Vec<&'s str>,
        order: Vec<usize>,
        author: Author,
        keep_failed: bool,
        orders: Sender<Order>,
        jobs: usize,
    ) -> Self {
        Claims {
            keys,
            order,
            author,
            keep_failed,
            orders,
            view: Mutex::new(View { store, look: 0, took: Duration::ZERO, ended: Instant::now() }),
            looks: AtomicU64::new(0),
            made: Mutex::new(BTreeMap::new()),
            jobs,
            ran: AtomicUsize::new(0),
            ran_us: AtomicU64::new(0),
        }
    }

    /// Claims a point unless it is another's, or has a result. `again`: it was another's before.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn known(&self, point: usize, again: bool) -> Result<Known, String> {
        // The last look that had begun when it was found to be left by another.
        let (mut left, mut waited) = (None, false);
        loop {
            let (seen, look) = self.seen(point, again);
            let claim = lock(&self.made).get(&point).copied();
            match (seen, claim) {
                (Seen::Done, _) => return Ok(Known::Done),
                (Seen::Failed(why), _) => return Ok(Known::Failed(why)),
                (Seen::Begun, _) if !again || waited => return Ok(Known::Begun),
                (Seen::Begun, _) => {
                    waited = true;
                    self.look_again()?;
                }
                (_, None) => self.claim(point, again),
                (Seen::Nothing, Some(claim)) if claim.look < look => return Ok(Known::Own),
                (Seen::Left, Some(claim)) if claim.look < look && left.is_some_and(|left| left < look) => {
                    return Ok(Known::Own);
                }
                (seen, Some(claim)) => {
                    if matches!(seen, Seen::Left) {
                        // That process may have written its result after the look and then ended.
                        left = left.or(Some(self.looks.load(Ordering::SeqCst)));
                    }
                    self.look_after(left.map_or(claim.look, |left| left.max(claim.look)))?;
                }
            }
        }
    }

    /// One more point was run here, in such a time.
    pub(super) fn ran(&self, time: Duration) {
        self.ran.fetch_add(1, Ordering::Relaxed);
        self.ran_us.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// The store, when nobody claims any more.
    pub(super) fn into_store(self) -> &'s mut Store {
        self.view.into_inner().unwrap_or_else(PoisonError::into_inner).store
    }

    /// What the last look says of a point, and the look's number.
    fn seen(&self, point: usize, again: bool) -> (Seen, u64) {
        let own = lock(&self.made).get(&point).map(|claim| claim.at_ms);
        let view = lock(&self.view);
        (self.seen_in(&view, point, own, again), view.look)
    }

    fn seen_in(&self, view: &View<'_>, point: usize, own_ms: Option<u64>, again: bool) -> Seen {
        let key = self.keys[point];
        let result = view.store.result(key).map(|entry| &entry.head);
        match result.map(|head| (head.state, head)) {
            Some((State::Good | State::Cut, _)) => return Seen::Done,
            // What failed before this process began is to be run again.
            Some((State::Failed, head)) if head.unix_ms >= self.author.started_ms() || self.keep_failed => {
                return Seen::Failed(head.why.clone().unwrap_or_default());
            }
            _ => {}
        }
        let newer = |begun: &&Head| result.is_none_or(|head| head.unix_ms <= begun.unix_ms);
        let mut seen = Seen::Nothing;
        for begun in view.store.begun(key).iter().filter(newer) {
            // Two that claim it at once may both put it off. When it comes again the first of those who live
            // runs it.
            let first = !again || own_ms.is_none_or(|own_ms| self.author.is_before(begun, own_ms));
            let alive = self.author.is_another_alive(&begun.host, begun.pid);
            if alive && first {
                return Seen::Begun;
            }
            if !alive && self.author.is_gone(&begun.host, begun.pid) {
                seen = Seen::Left;
            }
        }
        seen
    }

    /// Says that this process begins a point, and those after it that one look shall serve.
    fn claim(&self, point: usize, again: bool) {
        // Held until the claims are written: nobody here claims a point twice.
        let mut made = lock(&self.made);
        let Entry::Vacant(_) = made.entry(point) else { return };
        let mut points = vec![point];
        if !again {
            let view = lock(&self.view);
            let more = self.ahead(view.took).saturating_sub(1);
            let after = self.order.iter().skip_while(|&&other| other != point).skip(1);
            let free = |other: &&usize| {
                !made.contains_key(other) && matches!(self.seen_in(&view, **other, None, false), Seen::Nothing)
            };
            points.extend(after.filter(free).take(more));
        }
        let (answer, written) = bounded(1);
        let keys = points.iter().map(|&point| self.keys[point].to_owned()).collect();
        let at_ms = self.orders.send(Order::Begin { keys, answer }).ok().and_then(|()| written.recv().ok()?);
        // Where it could not be written others run the points too, which does no harm.
        let claim = Claim { at_ms: at_ms.unwrap_or(u64::MAX), look: self.looks.load(Ordering::SeqCst) };
        made.extend(points.into_iter().map(|point| (point, claim)));
    }

    /// Points that are run here in four times as long as a look takes; one where it takes no time to speak
    /// of.
    fn ahead(&self, look: Duration) -> usize {
        if look <= SLOW {
            return 1;
        }
        let points_a_us = self.ran.load(Ordering::Relaxed) as f64 / self.ran_us.load(Ordering::Relaxed).max(1) as f64;
        let points = 4.0 * look.as_micros() as f64 * points_a_us * self.jobs as f64;
        (points.ceil() as usize).clamp(1, MOST_AHEAD)
    }

    /// Looks, unless a look has ended that began after one of this number.
    #[expect(clippy::disallowed_methods, reason = "how often a folder is looked at; no result depends on it")]
    fn look_after(&self, look: u64) -> Result<(), String> {
        let mut view = lock(&self.view);
        if view.look <= look {
            let (nth, from) = (self.looks.fetch_add(1, Ordering::SeqCst) + 1, Instant::now());
            view.store.refresh()?;
            (view.look, view.took, view.ended) = (nth, from.elapsed(), Instant::now());
        }
        Ok(())
    }

    /// Looks for what another process does, not too often where that takes long.
    fn look_again(&self) -> Result<(), String> {
        let (look, took, ended) = {
            let view = lock(&self.view);
            (view.look, view.took, view.ended)
        };
        if took > SLOW && ended.elapsed() < 4 * took { Ok(()) } else { self.look_after(look) }
    }
}
