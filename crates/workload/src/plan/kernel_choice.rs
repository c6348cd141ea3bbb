//! Which kernels of a trace run: `3,5-8,@gemm`.
//!
//! A number is the `-kernel id` of a kernel's header, which counts the launches of the traced program from 1;
//! where a header has none, the place in the list counts. `@` begins a regular expression that is searched in
//! the mangled name, as the tracer's own ranges have it; it ends at a comma. A kernel runs if one of the
//! items names it. Copies of the list stay, since a chosen kernel may read what they brought.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use regex::bytes::{Regex, RegexBuilder};

/// What was chosen of a trace's kernels.
#[derive(Debug, Clone)]
pub struct KernelChoice {
    /// As it was written.
    text: String,
    items: Vec<(String, ChosenBy)>,
}

#[derive(Debug, Clone)]
enum ChosenBy {
    Number(RangeInclusive<u64>),
    Name(Regex),
}

impl ChosenBy {
    fn names(&self, number: u64, name: &str) -> bool {
        match self {
            ChosenBy::Number(range) => range.contains(&number),
            ChosenBy::Name(regex) => regex.is_match(name.as_bytes()),
        }
    }
}

impl KernelChoice {
    /// A kernel of this number and name runs.
    pub(crate) fn chooses(&self, number: u64, name: &str) -> bool {
        self.items.iter().any(|(_, item)| item.names(number, name))
    }

    /// Items that name none of these kernels.
    pub(crate) fn idle<'a>(&'a self, kernels: &[(u64, String)]) -> Vec<&'a str> {
        let idle =
            self.items.iter().filter(|(_, item)| !kernels.iter().any(|(number, name)| item.names(*number, name)));
        idle.map(|(text, _)| text.as_str()).collect()
    }
}

impl PartialEq for KernelChoice {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for KernelChoice {}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<KernelChoice, String> {
        let items = text.split(',').map(|item| Ok((item.trim().to_owned(), chosen_by(item.trim())?)));
        Ok(KernelChoice { text: text.to_owned(), items: items.collect::<Result<_, String>>()? })
    }
}

fn chosen_by(item: &str) -> Result<ChosenBy, String> {
    if let Some(pattern) = item.strip_prefix('@') {
        // Mangled names are ASCII: classes of characters need no tables.
        let regex = RegexBuilder::new(pattern).unicode(false).build();
        return match regex {
            Ok(regex) if !pattern.is_empty() => Ok(ChosenBy::Name(regex)),
            Ok(_) => Err("expected a regular expression after `@`".to_owned()),
            Err(error) => Err(format!("`{pattern}` is no regular expression: {error}")),
        };
    }
    let number = |text: &str| text.trim().parse().ok().filter(|&number: &u64| number > 0);
    let range = match item.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)).filter(|(first, last)| first <= last),
        None => number(item).map(|number| (number, number)),
    };
    let wrong = || format!("expected kernels as 3, 5-8 or @REGEX, numbers from 1; got `{item}`");
    range.map(|(first, last)| ChosenBy::Number(first..=last)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str) -> Vec<u64> {
        let choice: KernelChoice = text.parse().unwrap();
        let names = ["_Z4initPf", "_Z4gemmPfS_", "_Z6reducePf", "_Z4gemmPd"];
        (1..).zip(names).filter(|(number, name)| choice.chooses(*number, name)).map(|(number, _)| number).collect()
    }

    #[test]
    fn numbers_ranges_and_names_are_chosen() {
        assert_eq!(chosen("3"), [3]);
        assert_eq!(chosen("1,3-4"), [1, 3, 4]);
        assert_eq!(chosen(" 2 - 3 "), [2, 3]);
        assert_eq!(chosen("@gemm"), [2, 4]);
        assert_eq!(chosen("1,@^_Z\\d+gemmPd$"), [1, 4]);
        assert_eq!(chosen("7-9"), [0; 0]);
    }

    #[test]
    fn what_names_no_kernel_is_known() {
        let choice: KernelChoice = "1,5-8,@gemm,@nosuch".parse().unwrap();
        let kernels = [(1, "gemm".to_owned()), (2, "init".to_owned())];
        assert_eq!(choice.idle(&kernels), ["5-8", "@nosuch"]);
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        for text in ["", "0", "3-1", "-2", "1,,2", "x", "1-", "@", "@(", "1.5"] {
            assert!(text.parse::<KernelChoice>().is_err(), "{text}");
        }
        assert!("4-2".parse::<KernelChoice>().unwrap_err().contains("got `4-2`"));
    }
}
