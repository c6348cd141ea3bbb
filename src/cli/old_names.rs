//! Commands under the names that they had before the group `sweep`: scripts that use them work as before.
//!
//! A typed command line becomes one of today's before it is parsed, so that help and errors know one name a
//! command. Invariant: what begins with a name of today passes as it is.

use std::ffi::OsString;
use std::path::Path;

/// What was typed, and the words that stand for it today.
const RENAMED: [(&[&str], [&str; 2]); 5] = [
    (&["sweep-status"], ["sweep", "status"]),
    (&["results"], ["sweep", "table"]),
    (&["figures"], ["sweep", "figures"]),
    (&["report"], ["sweep", "report"]),
    (&["config", "lint"], ["sweep", "lint"]),
];

/// The arguments, the program's own name first, with a command of today.
pub(super) fn today(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    for (old, new) in RENAMED {
        let typed = arguments.iter().skip(1).take(old.len());
        if typed.eq(old) {
            arguments.splice(1..=old.len(), new.map(OsString::from));
            return arguments;
        }
    }
    // `sweep FILE` and `sweep --dry-run FILE` run it. A word that cannot be a file is a command, perhaps
    // misspelt.
    if let [_, command, next, ..] = arguments.as_slice()
        && command == "sweep"
        && (is_option(next) || is_file(next))
    {
        arguments.insert(2, "run".into());
    }
    arguments
}

fn is_option(word: &OsString) -> bool {
    word.to_string_lossy().starts_with('-') && word != "-h" && word != "--help"
}

fn is_file(word: &OsString) -> bool {
    let path = Path::new(word);
    path.extension().is_some() || path.components().count() > 1 || path.is_file()
}

#[cfg(test)]
mod tests {
    fn today(typed: &str) -> String {
        let words = ["durawarp"].into_iter().chain(typed.split(' ')).map(Into::into);
        let words: Vec<String> = super::today(words).into_iter().map(|word| word.into_string().unwrap()).collect();
        words[1..].join(" ")
    }

    #[test]
    fn old_names_become_commands_of_the_group() {
        assert_eq!(today("sweep-status a.toml --results r"), "sweep status a.toml --results r");
        assert_eq!(today("results --columns"), "sweep table --columns");
        assert_eq!(today("figures a.toml"), "sweep figures a.toml");
        assert_eq!(today("report --help"), "sweep report --help");
        assert_eq!(today("config lint a.toml --strict"), "sweep lint a.toml --strict");
    }

    #[test]
    fn a_sweep_of_a_file_is_run() {
        assert_eq!(today("sweep a.toml -q"), "sweep run a.toml -q");
        assert_eq!(today("sweep folder/a"), "sweep run folder/a");
        assert_eq!(today("sweep --dry-run a.toml"), "sweep run --dry-run a.toml");
        assert_eq!(today("sweep Cargo.toml"), "sweep run Cargo.toml");
    }

    #[test]
    fn names_of_today_and_misspelt_ones_stay() {
        for typed in
            ["sweep run a.toml", "sweep --help", "sweep -h", "sweep", "sweep statu", "config show", "run report"]
        {
            assert_eq!(today(typed), typed);
        }
    }
}
