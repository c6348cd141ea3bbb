//! What a home slice waits for, as the report of a deadlock has it: by transaction, then answers whose writes
//! are under way.

use crate::ports::{Endpoint, Requester, Roster};
use crate::writes_under_way::WritesUnderWay;
use durawarp_engine::{Time, Wait};

use super::request::{Answer, Ask, CoreSet, HomeRequest, PendingAnswer};
use super::transactions::{Phase, Transaction, Transactions};

/// Every wait of a slice of a machine.
pub(super) fn waits(roster: Roster, transactions: &Transactions, writes: &WritesUnderWay<PendingAnswer>) -> Vec<Wait> {
    let mut waits = Vec::new();
    for transaction in transactions.open() {
        let who = match &transaction.head {
            Some(request) => name_request(roster, request),
            None => "a line that makes room".to_owned(),
        };
        waits.push(wait(who, of_transaction(transaction), transaction.since));
        let turn = format!("its turn for line {:#x}", transaction.line);
        let queue = transaction.queue.iter();
        waits.extend(queue.map(|request| wait(name_request(roster, request), turn.clone(), request.arrived)));
    }
    waits.extend(writes.awaited().map(|(pending, left)| {
        let what = format!("{left} writes of line {:#x} to be durable", pending.line);
        let of = if matches!(pending.answer, Answer::Written { .. }) { "write" } else { "clean" };
        wait(format!("a {of} of {}", name(roster, pending.to)), what, pending.since)
    }));
    waits
}

fn wait(who: String, what: String, since: Time) -> Wait {
    Wait { who, what, on: None, since }
}

fn of_transaction(transaction: &Transaction) -> String {
    let (line, cores) = (transaction.line, list(transaction.awaited));
    match transaction.phase {
        Phase::Ready => format!("its turn for line {line:#x}"),
        Phase::Held => format!("an MSHR, a way or memory credit for line {line:#x}"),
        Phase::Fetching if transaction.fetched.is_some() => format!("a place for line {line:#x}"),
        Phase::Fetching => format!("memory's bytes of line {line:#x}"),
        Phase::Probing { .. } => format!("{cores} to answer a probe of line {line:#x}"),
        Phase::Kept { .. } => format!("line {line:#x} to be durable"),
        Phase::Recalling { .. } => format!("{cores} to give up line {line:#x}"),
    }
}

fn name_request(roster: Roster, request: &HomeRequest) -> String {
    let what = match request.ask {
        Ask::Get(_) => "get",
        Ask::Clean { flush: false } => "clean",
        Ask::Clean { flush: true } => "flush",
        Ask::Write => "write",
    };
    format!("a {what} of {}", name(roster, request.from))
}

fn name(roster: Roster, requester: Requester) -> Endpoint {
    roster.requester_roles().nth(requester.index()).unwrap_or(Endpoint::Os)
}

/// Cores, one after the other.
fn list(cores: CoreSet) -> String {
    let of_set = (0..64).filter(|core| cores >> core & 1 == 1);
    of_set.map(|core| Endpoint::Core(core).to_string()).collect::<Vec<_>>().join(", ")
}
