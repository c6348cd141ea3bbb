//! A ring of stations that pass tokens on: ends of runs, worked by hand.
//! Run: `cargo run -p durawarp-engine --example ring`.
//!
//! ```text
//!   station 0 ──Port(0)── latency 40 ──> station 1 ──> ... ──> station 11 ──> station 0
//! ```
//! A station holds a token for [`HOLD`] ticks and passes it on, until the token has made its hops. Tokens do
//! not disturb each other. So a run ends after `HOPS * (LATENCY + HOLD)` ticks.
//!
//! Prints how four runs end: a whole one; one that a limit of time cuts; that one, saved, loaded into a fresh
//! ring and run on by 3 threads, with the digest of the whole one; and one in which a station loses a token,
//! a deadlock that says who waits for whom.

use durawarp_checkpoint::{Context, LoadFault, StateReader, StateWriter, Storable, state, state_methods, value};
use durawarp_engine::{
    Blockage, Component, ComponentId, Ctx, Fallback, Link, Message, Port, RunEnd, RunOptions, Simulation, Topology,
    Wait, blockage, load_simulation, save_simulation,
};

/// Stations.
pub(crate) const STATIONS: u32 = 12;
/// Tokens; token `i` begins at station `i`.
pub(crate) const TOKENS: u32 = 4;
/// From station to station, in ticks.
pub(crate) const LATENCY: u64 = 40;
/// In a station, in ticks.
pub(crate) const HOLD: u64 = 10;
/// Hops of a token: whole laps, so that each token passes each station equally often.
pub(crate) const HOPS: u64 = 6_000;
/// Hops that token 0 has left when it comes to station 5 half-way. No other token ever has as many left there.
pub(crate) const LOST: u64 = HOPS / 2 - 5;

/// A token with the hops that it has left.
#[derive(Debug)]
pub(crate) struct Token {
    hops_left: u64,
}

value!(record Token { hops_left });

impl Message for Token {
    fn digest(&self) -> u64 {
        self.hops_left
    }

    fn save(&self, out: &mut StateWriter) {
        Storable::save(self, out);
    }

    fn read(from: &mut StateReader<'_>) -> Result<Token, LoadFault> {
        Storable::read(from)
    }
}

pub(crate) struct Station {
    /// The station before it in the ring.
    before: ComponentId,
    /// A token with this number of hops left stays here.
    loses: Option<u64>,
    /// Tokens passed on.
    passed: u64,
    /// Tokens that it will pass on in all.
    expects: u64,
    /// When it passed on the last, in ticks.
    since: u64,
}

state!(Station { saved: passed, since; kept: before, loses, expects; });

impl Component<Token> for Station {
    fn handle(&mut self, token: Token, cx: &mut Ctx<'_, Token>) {
        if token.hops_left > 0 && self.loses != Some(token.hops_left) {
            (self.passed, self.since) = (self.passed + 1, cx.now());
            cx.send(Port(0), Token { hops_left: token.hops_left - 1 }, HOLD);
        }
    }

    fn wake(&mut self, _: &mut Ctx<'_, Token>) {}

    fn waits(&self, out: &mut Vec<Wait>) {
        if self.passed < self.expects {
            let what = format!("token {} of {}", self.passed + 1, self.expects);
            out.push(Wait { who: "its port".to_owned(), what, on: Some(self.before), since: self.since });
        }
    }

    fn digest(&self) -> u64 {
        self.passed
    }

    state_methods!();
}

/// The ring. Station 5 keeps a token that comes to it with `lossy` hops left.
pub(crate) fn topology(lossy: Option<u64>) -> Topology<Token> {
    let mut topology = Topology::new();
    let ids: Vec<ComponentId> = (0..STATIONS)
        .map(|number| {
            let before = ComponentId((number + STATIONS - 1) % STATIONS);
            let loses = lossy.filter(|_| number == 5);
            let expects = u64::from(TOKENS) * HOPS / u64::from(STATIONS);
            topology.add(format!("station {number}"), Box::new(Station { before, loses, passed: 0, expects, since: 0 }))
        })
        .collect();
    for (number, id) in ids.iter().enumerate() {
        topology.connect(*id, Port(0), ids[(number + 1) % ids.len()], Link { latency: LATENCY, phase: 0 });
    }
    for id in &ids[..TOKENS as usize] {
        topology.post(*id, 0, Token { hops_left: HOPS });
    }
    topology
}

/// The ring, ready to run.
pub(crate) fn simulation(lossy: Option<u64>) -> Simulation<Token> {
    Simulation::new(topology(lossy)).expect("links of at least one tick between stations that exist")
}

/// Threads that all work, even where the host has fewer cores or one alone would be faster.
fn threads(threads: usize) -> RunOptions<'static> {
    RunOptions { threads, oversubscribe: true, fallback: Fallback::Never, ..RunOptions::default() }
}

/// Saves a ring between two runs, and loads it into a fresh one.
pub(crate) fn copied(ring: &Simulation<Token>) -> Result<Simulation<Token>, LoadFault> {
    let mut out = StateWriter::new(Context::default());
    save_simulation(ring, &mut out);
    let bytes = out.finish()?;
    let mut fresh = simulation(None);
    load_simulation(&mut fresh, &mut StateReader::new(&bytes, Context::default()))?;
    Ok(fresh)
}

pub(crate) fn main() {
    let mut whole = simulation(None);
    let end = whole.run(&threads(1));
    assert!(matches!(end, RunEnd::Finished { at } if at == HOPS * (LATENCY + HOLD)), "{end:?}");
    println!("whole:   {end:?}, digest {:016x}", whole.digest());

    let mut cut = simulation(None);
    let end = cut.run(&RunOptions { time_limit: Some(100_000), ..threads(1) });
    assert!(matches!(end, RunEnd::TimeLimit { at: 100_000 }), "{end:?}");
    println!("cut:     {end:?}, digest {:016x}", cut.digest());

    let mut copy = copied(&cut).expect("tokens and stations can be saved");
    let end = copy.run(&threads(3));
    assert!(matches!(end, RunEnd::Finished { .. }), "{end:?}");
    assert_eq!(copy.digest(), whole.digest(), "saved, loaded, and run on at 3 threads");
    println!("goes on: {end:?}, digest {:016x}", copy.digest());

    let mut lossy = simulation(Some(LOST));
    let RunEnd::Deadlock { at, waits } = lossy.run(&threads(1)) else { panic!("a station loses a token") };
    let Some(Blockage::Cycle(cycle)) = blockage(waits.iter().map(|(id, _, wait)| (*id, wait))) else {
        panic!("each station waits for the one before it")
    };
    println!("lossy:   Deadlock {{ at: {at} }}, {} stations wait for each other", cycle.len());
    let (_, name, wait) = &waits[0];
    println!("         {name} waits for {} of {}", wait.what, lossy.name(wait.on.expect("the one before it")));
}
