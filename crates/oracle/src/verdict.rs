//! Verdicts as plain data: what was judged, what was found, and how to see each finding again.
//!
//! Source: the list of properties is that of the oracle's design (P0 to P9); a witness names the two persists
//! whose order is missing, as PMTest and Witcher report them. Invariants: failures are sorted by instant; the
//! same input gives the same verdict. Not modelled: liveness and the comparison with a functional reference,
//! which belong to the caller that runs the machine.

use serde::{Deserialize, Serialize};

use super::authors::ShownAuthor;
use durawarp_engine::Time;
use durawarp_persist::journal::Author;

/// What was judged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Property {
    /// The facts themselves agree with each other.
    Facts,
    /// P0: durable bytes are some version's, and versions never go back.
    Value,
    /// P1: what is durable is closed under each warp's program order.
    Strict,
    /// P2: all of a CTA or kernel is durable when it ends.
    Epoch,
    /// P2: what a scope stored before a persist barrier of it is durable no later than what it stored after.
    Scope,
    /// P3: after recovery each transaction's data is all old or all new.
    Undo,
    /// P3: log slots, and homes, of the transactions of one launch do not overlap.
    Disjoint,
    /// P4: after recovery, memory has the stores of exactly the regions before one number, which the
    /// program's order allows.
    Regions,
    /// P4: from there the program runs on to the result that it has without a failure.
    Resume,
    /// P4': after stores that are not known to be durable are replayed, memory has all that was stored.
    Replay,
    /// Where caches survive: memory is all that was performed, and a hart's stores are performed in program
    /// order.
    Visible,
    /// P5: non-temporal stores are durable before what the machine orders after them.
    Ordered,
    /// P5: a persist is durable after those that its thread ordered before it, and after what it followed
    /// from by way of other threads.
    Epochs,
    /// P6: what is durable of a channel's verbs is a prefix of them, and a part of the next; what was not
    /// acknowledged can be written again.
    Verbs,
    /// P8: recovery that is cut off and starts again comes to the same image.
    Idempotent,
    /// P9: whatever waits for stores goes on only when they are durable.
    Acknowledged,
    /// Recovery comes to an end without a fault.
    Recovery,
    /// A condition of the caller's, by its name.
    Check(String),
}

/// How the judged image came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It follows from the program's description alone.
    Program,
    /// The machine really left it (level A); `point` is a crash point.
    Actual,
    /// The model allows it (level B); `point` is an instant, `choice` one of its images.
    Allowed,
    /// It could be if a warp had run ahead of others (level C); `point` is the fact that it stored.
    Overtaking,
}

/// A write of the program, and by whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Persist {
    /// What it was for: "flag", "log", "data", "store".
    pub role: String,
    pub sm: u16,
    pub launch: u32,
    /// CTA of the launch.
    pub cta: u32,
    /// Warp of the CTA.
    pub warp: u16,
    /// Instruction.
    pub pc: u32,
    /// The line's address.
    pub line: u64,
    /// Address of the bytes in question.
    pub address: u64,
}

impl Persist {
    /// A write of an author.
    pub fn new(role: &str, author: Author, line: u64, address: u64) -> Persist {
        let ShownAuthor { sm, launch, cta, warp, pc } = author.into();
        Persist { role: role.to_owned(), sm, launch, cta, warp, pc, line, address }
    }
}

/// The two persists whose order is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// This one should have been durable first, and is not; none when the program never makes it.
    pub missing: Option<Persist>,
    /// This one is durable.
    pub present: Option<Persist>,
}

/// Bytes of an image that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongBytes {
    /// Address of the first.
    pub address: u64,
    /// The bytes.
    pub found: Vec<u8>,
    /// What they should be; none where that is a relation and no value.
    pub expected: Option<Vec<u8>>,
}

/// An element of the program that is not what it should be, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongElement {
    /// `buffer[index]`, or the expression that has the value.
    pub name: String,
    /// Type of the element.
    #[serde(rename = "type")]
    pub ty: Option<String>,
    /// Its value.
    pub found: String,
    /// What it should be: a value, or a relation to one.
    pub expected: String,
    /// The elements that its expected value depends on, each with its type and value.
    pub given: Vec<String>,
}

/// A value that is wrong: as bytes, as an element, or both.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WrongValue {
    /// None of an expression over several elements.
    pub bytes: Option<WrongBytes>,
    /// None where no buffer is known.
    pub element: Option<WrongElement>,
}

impl WrongValue {
    /// Bytes that should be others.
    pub(super) fn of_bytes(address: u64, found: &[u8], expected: &[u8]) -> WrongValue {
        let bytes = WrongBytes { address, found: found.to_vec(), expected: Some(expected.to_vec()) };
        WrongValue { bytes: Some(bytes), element: None }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What does not hold.
    pub property: Property,
    /// In which kind of state.
    pub level: Level,
    /// Crash point (actual) or instant (allowed).
    pub point: u64,
    /// Which of the instant's images.
    pub choice: Option<u64>,
    /// When, in ticks.
    pub time: Time,
    /// What is wrong, in words.
    pub what: String,
    /// The values that show it; the first of them where there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<WrongValue>,
    /// The two persists whose order is missing.
    pub witness: Option<Witness>,
}

/// On how many images a condition held.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ConditionCount {
    pub name: String,
    /// Images on which it held.
    pub held: u64,
    /// Images on which it did not.
    pub violated: u64,
    /// The first violation, whether it is a failure or only counted.
    pub first: Option<Failure>,
}

impl ConditionCount {
    /// A condition that was not judged yet.
    pub fn new(name: &str) -> ConditionCount {
        ConditionCount { name: name.to_owned(), ..ConditionCount::default() }
    }
}

/// What a judgement came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// Crash points or choices that were planned.
    pub points: u64,
    /// How many of them have images of their own; the others equal one of these.
    pub distinct: u64,
    /// Images judged: `distinct`, unless it was stopped.
    pub judged: u64,
    /// Images in which everything holds.
    pub passed: u64,
    /// Instants that the budget left out.
    pub left_out: u64,
    /// Whether these are all states there are.
    pub exhaustive: bool,
    /// Whether it was stopped before its end.
    pub stopped: bool,
    /// How many failures there were; `failures` holds the first of them.
    pub failed: u64,
    /// Failures, sorted by point and choice.
    pub failures: Vec<Failure>,
    /// The caller's conditions, in the caller's order; images on which recovery failed are not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionCount>,
}

impl Verdict {
    /// Whether nothing was found.
    pub fn holds(&self) -> bool {
        self.failed == 0
    }

    /// Counts a judged state, with what was found on it; keeps the first failures.
    pub fn add(&mut self, found: impl IntoIterator<Item = Failure>, keep: usize) {
        let before = self.failed;
        for failure in found {
            self.failed += 1;
            if self.failures.len() < keep {
                self.failures.push(failure);
            }
        }
        self.judged += 1;
        self.passed += u64::from(self.failed == before);
    }

    /// Both together, of judgements of one run.
    pub fn with(mut self, other: Verdict, keep: usize) -> Verdict {
        self.points += other.points;
        self.distinct += other.distinct;
        self.judged += other.judged;
        self.passed += other.passed;
        self.failed += other.failed;
        self.exhaustive &= other.exhaustive;
        self.failures.extend(other.failures);
        self.settle(keep)
    }

    /// Sorts failures and keeps the first ones.
    pub(super) fn settle(mut self, keep: usize) -> Verdict {
        self.failures.sort_by(|a, b| (a.point, a.choice, &a.property).cmp(&(b.point, b.choice, &b.property)));
        self.failures.truncate(keep);
        self
    }
}

/// What is wrong with an image, and who did it if that can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) property: Property,
    pub(super) what: String,
    pub(super) values: Vec<WrongValue>,
    pub(super) witness: Option<Witness>,
}

impl Finding {
    /// What is told in words alone.
    pub(super) fn in_words(property: Property, what: String) -> Finding {
        Finding { property, what, values: Vec::new(), witness: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_sorted_by_instant_and_the_first_are_kept() {
        let failure = |point, choice, property| Failure {
            property,
            level: Level::Allowed,
            point,
            choice,
            time: 0,
            what: String::new(),
            values: Vec::new(),
            witness: None,
        };
        let failures = vec![
            failure(2, Some(1), Property::Undo),
            failure(1, Some(5), Property::Undo),
            failure(2, Some(0), Property::Undo),
            failure(1, Some(5), Property::Value),
        ];
        let verdict = Verdict { failed: 4, failures, ..Verdict::default() }.settle(3);
        let found: Vec<_> = verdict.failures.iter().map(|f| (f.point, f.choice, f.property.clone())).collect();
        assert_eq!(found, [(1, Some(5), Property::Value), (1, Some(5), Property::Undo), (2, Some(0), Property::Undo)]);
        assert!(!verdict.holds() && Verdict::default().holds());
    }

    #[test]
    fn a_verdict_is_plain_data() {
        let author = Author::Warp { sm: 1, launch: 2, cta: 3, warp: 4, pc: 5 };
        let witness = Witness { missing: Some(Persist::new("flag", author, 128, 132)), present: None };
        let failure = Failure {
            property: Property::Check("sum".into()),
            level: Level::Actual,
            point: 1,
            choice: None,
            time: 7,
            what: "x".into(),
            values: vec![WrongValue::of_bytes(128, &[1, 2], &[1, 3])],
            witness: Some(witness),
        };
        let verdict = Verdict { failed: 1, failures: vec![failure], ..Verdict::default() };
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict);
    }

    #[test]
    fn a_state_counts_once_and_each_of_its_failures_does() {
        let failure = |point| Failure {
            property: Property::Undo,
            level: Level::Actual,
            point,
            choice: None,
            time: 0,
            what: String::new(),
            values: Vec::new(),
            witness: None,
        };
        let mut verdict = Verdict::default();
        verdict.add(None, 2);
        verdict.add([failure(1), failure(1)], 3);
        verdict.add([failure(2), failure(2)], 3);
        verdict.add(None, 3);
        assert_eq!((verdict.judged, verdict.passed, verdict.failed), (4, 2, 4));
        assert_eq!(verdict.failures.iter().map(|failure| failure.point).collect::<Vec<_>>(), [1, 1, 2]);
        let unjudged = ConditionCount { name: "sum".to_owned(), held: 0, violated: 0, first: None };
        assert_eq!(ConditionCount::new("sum"), unjudged);
    }

    #[test]
    fn a_persist_has_every_number_of_its_author() {
        let author = Author::Warp { sm: 1, launch: 2, cta: 3, warp: 4, pc: 5 };
        let Persist { role, sm, launch, cta, warp, pc, line, address } = Persist::new("flag", author, 128, 132);
        assert_eq!((role.as_str(), sm, launch, cta, warp, pc, line, address), ("flag", 1, 2, 3, 4, 5, 128, 132));
    }
}
