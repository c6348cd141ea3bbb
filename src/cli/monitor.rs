//! `durawarp run --monitor`: one local page that shows a run while it goes on.
//!
//! ```text
//!   simulation ──LiveState, about every 500 ms──> Monitor ──JSON──> server ──GET /state.json──> page
//! ```
//! The monitor keeps how the counters grew and makes rates of that; the page draws them and asks again. At
//! the end it serves the last state once more, to a page that is open, and ends with the command: the page
//! keeps what it shows. Nothing of this changes a result, and nothing of it runs unless it is asked for.

mod history;
mod server;

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use durawarp::outcome::{End, Outcome};
use durawarp::run::LiveState;
use serde::Serialize;

use super::exit::Stop;
use history::{History, Rates};
use server::Server;

/// How long the end of a run waits for an open page to ask for the last state.
const LAST_LOOK: Duration = Duration::from_millis(1500);

/// What is run, in words.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Title {
    pub(super) workload: String,
    pub(super) machine: String,
    pub(super) scheme: String,
    /// What it executes: warp instructions, or instructions.
    pub(super) instructions: &'static str,
}

/// What the page asks for.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    title: &'a Title,
    /// In words.
    status: &'a str,
    over: bool,
    elapsed_s: f64,
    /// What is done, from 0 to 1, and seconds that are left, where they are known.
    share: Option<f64>,
    left_s: Option<f64>,
    now: &'a LiveState,
    rates: Rates,
}

#[derive(Debug, Default)]
struct Kept {
    history: History,
    last: LiveState,
    share: Option<f64>,
    left_s: Option<f64>,
}

/// A page that is served while a run goes on.
#[derive(Debug)]
pub(super) struct Monitor {
    title: Title,
    server: Server,
    began: Instant,
    kept: Mutex<Kept>,
}

impl Monitor {
    /// Serves at an address of this host alone.
    ///
    /// # Errors
    /// The address is taken, or not there.
    #[expect(clippy::disallowed_methods, reason = "the page tells wall-clock time; no result depends on it")]
    pub(super) fn open(address: SocketAddr, title: Title) -> Result<Monitor, Stop> {
        let server = Server::open(address).map_err(|fault| {
            Stop::File(format!("--monitor: cannot serve at {address}: {fault}; port 0 picks one that is free"))
        })?;
        let monitor = Monitor { title, server, began: Instant::now(), kept: Mutex::default() };
        monitor.publish("starting", false);
        Ok(monitor)
    }

    /// Where it is served; with the port that was picked.
    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// How far the run is, and how long it still takes, as far as that is known.
    pub(super) fn progress(&self, share: Option<f64>, left_s: Option<f64>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.share, kept.left_s) = (share, left_s);
    }

    /// The machine, as it is just now.
    pub(super) fn show(&self, state: LiveState) {
        let status = if state.over { "simulated; checks of the result follow" } else { "running" };
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.history.add(&state);
            if state.over {
                (kept.share, kept.left_s) = (Some(1.0), None);
            }
            kept.last = state;
        }
        self.publish(status, false);
    }

    /// The run is over: the last state is served from now on.
    pub(super) fn finish(&self, outcome: &Outcome) {
        self.publish(&ended(outcome), true);
    }

    /// The command ends: waits for a moment until a page that is open has the last state.
    pub(super) fn close(&self) {
        self.server.wait_for_last_look(LAST_LOOK);
    }

    fn publish(&self, status: &str, over: bool) {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = Shown {
            title: &self.title,
            status,
            over,
            elapsed_s: self.began.elapsed().as_secs_f64(),
            share: kept.share,
            left_s: kept.left_s,
            now: &kept.last,
            rates: kept.history.rates(),
        };
        // Plain data, without maps of keys that are no text: it is always JSON.
        let json = serde_json::to_string(&shown).unwrap_or_default();
        drop(kept);
        self.server.serve(json, over);
    }
}

/// How a run ended, in words.
fn ended(outcome: &Outcome) -> String {
    match (&outcome.end, &outcome.verification) {
        (End::Finished, Some(check)) if !check.passed => "finished; its result is wrong".to_owned(),
        (End::Finished, _) => "finished".to_owned(),
        (End::Cut { .. }, _) => "cut at its cycle limit".to_owned(),
        (End::Stopped, _) => "stopped".to_owned(),
        (End::Failed { error }, _) => format!("the simulated program failed: {error}"),
        (End::Deadlock { .. }, _) => "deadlock: see who waits for what".to_owned(),
        (End::Repeats(_), _) => "repeats itself for ever".to_owned(),
        (End::Panicked { .. }, _) => "the simulator failed, which is a defect".to_owned(),
    }
}

/// An address for `--monitor`: one that no other host can reach, as the page asks for no password.
///
/// # Errors
/// In words, what is expected.
pub(super) fn local_address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    let Ok(address) = numeric.parse::<SocketAddr>() else {
        return Err("expected 127.0.0.1:PORT, [::1]:PORT or localhost:PORT; port 0 picks one that is free".to_owned());
    };
    if !address.ip().is_loopback() {
        let ip = address.ip();
        return Err(format!(
            "other hosts may reach {ip}, and the page asks for no password: expected 127.0.0.1:PORT or [::1]:PORT; \
             from elsewhere, forward the port over ssh"
        ));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_host_are_taken() {
        for good in ["127.0.0.1:0", "127.0.0.1:8080", "127.3.2.1:80", "[::1]:9000", "localhost:9000"] {
            assert!(local_address(good).is_ok(), "{good}");
        }
        for (bad, word) in [
            ("0.0.0.0:8080", "may reach 0.0.0.0"),
            ("192.168.1.2:80", "may reach"),
            ("[::]:80", "may reach"),
            ("8080", "expected 127.0.0.1:PORT"),
            ("127.0.0.1", "expected 127.0.0.1:PORT"),
            ("127.0.0.1:65536", "expected 127.0.0.1:PORT"),
        ] {
            assert!(local_address(bad).is_err_and(|told| told.contains(word)), "{bad}");
        }
    }
}
