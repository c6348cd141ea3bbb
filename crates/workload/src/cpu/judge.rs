//! What a run of a program of CPUs left, against its checks.

use std::collections::BTreeSet;

use super::program::{CpuCheck, CpuCheckKind, CpuProgram};
use crate::check::verdict::{CheckResult, Mismatch, Outcome, Verification};
use durawarp_riscv::syscalls::File;

/// What a run left.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    pub exit_code: i32,
    /// Standard output.
    pub stdout: &'a [u8],
    /// Files that it made or changed, by path.
    pub files: &'a [File],
    /// The persistent window.
    pub persistent: &'a [u8],
    /// What it posted to other servers, as it lies there; none without them.
    pub logs: &'a [u8],
}

impl CpuProgram {
    /// Judges what a run left. `reference` is what the functional driver left; without it, checks that need
    /// it are skipped.
    pub fn verify(&self, ran: &Ran<'_>, reference: Option<&Ran<'_>>) -> Verification {
        let checks = self.checks.iter().map(|check| result(check, ran, reference)).collect();
        Verification { checks, expectations: Vec::new() }
    }
}

fn result(check: &CpuCheck, ran: &Ran<'_>, reference: Option<&Ran<'_>>) -> CheckResult {
    let mut result = CheckResult {
        name: check.name.clone(),
        outcome: Outcome::Passed,
        compared: 1,
        mismatches: 0,
        first: None,
        message: None,
    };
    // Why it failed: none where it passed.
    let wrong = match (&check.kind, reference) {
        (CpuCheckKind::ExitCode(code), _) => exit_code(ran.exit_code, *code),
        (CpuCheckKind::Stdout { text, except }, _) => {
            result.compared = ran.stdout.len() as u64;
            stdout(ran.stdout, text.as_bytes(), except)
        }
        (CpuCheckKind::Functional, Some(reference)) => {
            result.compared = (ran.stdout.len() + ran.persistent.len() + ran.logs.len()) as u64;
            let differ =
                |one: &[u8], other: &[u8]| one.iter().zip(other).filter(|(one, other)| one != other).count() as u64;
            result.mismatches = differ(ran.persistent, reference.persistent) + differ(ran.logs, reference.logs);
            let own = first("persistent memory", ran.persistent, reference.persistent);
            result.first = own.or_else(|| first("logs at other servers", ran.logs, reference.logs));
            let memory = result.first.as_ref().map(|_| "persistent memory is not as the functional driver leaves it");
            let code = exit_code(ran.exit_code, reference.exit_code);
            let output = code.or_else(|| stdout(ran.stdout, reference.stdout, &[]));
            output.or_else(|| files(ran.files, reference.files)).or_else(|| memory.map(str::to_owned))
        }
        (CpuCheckKind::Functional, None) => {
            result.outcome = Outcome::Skipped;
            result.compared = 0;
            result.message = Some("there is no functional run to compare with".to_owned());
            return result;
        }
    };
    if wrong.is_some() {
        (result.outcome, result.message) = (Outcome::Failed, wrong);
    }
    result
}

fn exit_code(got: i32, expected: i32) -> Option<String> {
    (got != expected).then(|| format!("the exit code is {got}, expected {expected}"))
}

/// The first line that differs, of those that contain none of the texts of `except`.
fn stdout(got: &[u8], expected: &[u8], except: &[String]) -> Option<String> {
    let trimmed = |text: &[u8]| String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(text)).into_owned();
    let (got, expected) = (trimmed(got), trimmed(expected));
    if got == expected {
        return None;
    }
    let counts = |(_, line): &(usize, &str)| !except.iter().any(|text| line.contains(text.as_str()));
    let mut own = (1..).zip(got.split('\n')).filter(counts);
    let mut wanted = (1..).zip(expected.split('\n')).filter(counts);
    loop {
        match (own.next(), wanted.next()) {
            (None, None) => return None,
            (Some((_, own)), Some((_, wanted))) if own == wanted => {}
            (own, wanted) => {
                // Where output ends early, the line is that of what was expected.
                let line = own.or(wanted).map_or(0, |(line, _)| line);
                let shown =
                    |line: Option<(usize, &str)>| line.map_or("its end".to_owned(), |(_, text)| format!("{text:?}"));
                return Some(format!("line {line} of standard output is {}, expected {}", shown(own), shown(wanted)));
            }
        }
    }
}

/// The first file that differs.
fn files(got: &[File], expected: &[File]) -> Option<String> {
    let names = |files: &[File]| files.iter().map(|file| file.path.clone()).collect::<BTreeSet<_>>();
    let (own, wanted) = (names(got), names(expected));
    if let Some(path) = wanted.difference(&own).next() {
        return Some(format!("file `{path}` is missing"));
    }
    if let Some(path) = own.difference(&wanted).next() {
        return Some(format!("file `{path}` is one that the functional driver does not write"));
    }
    let (one, other) = got.iter().zip(expected).find(|(one, other)| one.content != other.content)?;
    let (one_bytes, other_bytes) = (&one.content, &other.content);
    let at = one_bytes.iter().zip(other_bytes.iter()).position(|(own, wanted)| own != wanted);
    let at = at.unwrap_or(one_bytes.len().min(other_bytes.len()));
    let (own, wanted) = (one_bytes.len(), other_bytes.len());
    Some(format!("file `{}` differs from byte {at} on ({own} bytes, expected {wanted})", one.path))
}

/// The first byte of some memory that differs.
fn first(memory: &str, got: &[u8], expected: &[u8]) -> Option<Mismatch> {
    let index = got.iter().zip(expected).position(|(got, expected)| got != expected)?;
    Some(Mismatch {
        buffer: memory.to_owned(),
        index: index as u64,
        got: format!("{:#04x}", got[index]),
        expected: format!("{:#04x}", expected[index]),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn verdict(kind: CpuCheckKind, ran: &Ran<'_>, reference: Option<&Ran<'_>>) -> (Outcome, String) {
        let found = result(&CpuCheck { name: "it".to_owned(), kind }, ran, reference);
        (found.outcome, found.message.unwrap_or_default())
    }

    #[test]
    fn a_run_is_judged_by_exit_code_output_and_the_functional_driver() {
        let ran = Ran { exit_code: 0, stdout: b"sum 7\nok\n", files: &[], persistent: &[1, 2, 3], logs: &[4] };
        let of = |kind| verdict(kind, &ran, None);
        assert_eq!(of(CpuCheckKind::ExitCode(0)).0, Outcome::Passed);
        assert_eq!(of(CpuCheckKind::ExitCode(3)), (Outcome::Failed, "the exit code is 0, expected 3".to_owned()));
        let text = |text: &str, except: &[&str]| {
            let except = except.iter().map(|&text| text.to_owned()).collect();
            of(CpuCheckKind::Stdout { text: text.to_owned(), except })
        };
        assert_eq!(text("sum 7\nok", &[]).0, Outcome::Passed);
        let told = text("sum 8\nok", &[]).1;
        assert_eq!(told, "line 1 of standard output is \"sum 7\", expected \"sum 8\"");
        let told = text("sum 7", &[]).1;
        assert_eq!(told, "line 2 of standard output is \"ok\", expected its end");
        // Lines with a text of `except` count on neither side, and the others keep their numbers.
        assert_eq!(text("took 2 s\nsum 9\nok", &["took", "sum"]).0, Outcome::Passed);
        let told = text("took 2 s\nsum 9\nwell", &["took", "sum"]).1;
        assert_eq!(told, "line 2 of standard output is \"ok\", expected \"well\"");
        let told = text("sum 7\nok\ntook 2 s\nend", &["took"]).1;
        assert_eq!(told, "line 4 of standard output is its end, expected \"end\"");
        assert_eq!(of(CpuCheckKind::Functional).0, Outcome::Skipped);
        let functional = |reference: &Ran<'_>| verdict(CpuCheckKind::Functional, &ran, Some(reference)).0;
        assert_eq!(functional(&ran), Outcome::Passed);
        assert_eq!(functional(&Ran { persistent: &[1, 2, 4], ..ran }), Outcome::Failed);
        assert_eq!(functional(&Ran { exit_code: 1, ..ran }), Outcome::Failed);
        assert_eq!(functional(&Ran { logs: &[5], ..ran }), Outcome::Failed);
        assert_eq!(functional(&Ran { stdout: b"sum 7\n", ..ran }), Outcome::Failed);
        let file = |path: &str, text: &str| File { path: path.to_owned(), content: Arc::new(text.as_bytes().to_vec()) };
        let all = |text| [file("a", text), file("b", "")];
        let told = |own: &[File], wanted: &[File]| files(own, wanted).unwrap_or_default();
        assert_eq!(functional(&Ran { files: &all("x"), ..ran }), Outcome::Failed);
        assert_eq!(told(&all("xy"), &all("xy")), "");
        assert_eq!(told(&all("xy"), &all("xz")), "file `a` differs from byte 1 on (2 bytes, expected 2)");
        assert_eq!(told(&all("xy")[1..], &all("xy")), "file `a` is missing");
    }
}
