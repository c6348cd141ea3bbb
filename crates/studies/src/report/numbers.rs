//! Numbers as people read them: whole digits, which copy and paste, or digits in groups of three where a
//! command is asked for them; SI prefixes for rates, units behind.
//!
//! Whether digits are grouped is said once, before anything is printed ([`group_digits`]): it is how a reader
//! likes numbers, and no part of any result or file.

use std::sync::atomic::{AtomicBool, Ordering};

use durawarp_simulation::outcome::Sampling;

static GROUPED: AtomicBool = AtomicBool::new(false);

/// Has [`count`] group digits from now on, or not.
pub fn group_digits(grouped: bool) {
    GROUPED.store(grouped, Ordering::Relaxed);
}

/// A count: its digits, in groups of three after [`group_digits`].
///
/// # Example: a million
/// ```
/// assert_eq!(durawarp_studies::report::count(1_234_567), "1234567");
/// ```
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    if GROUPED.load(Ordering::Relaxed) { in_groups(&digits) } else { digits }
}

/// The interval of a sampled run's cycles.
pub(super) fn estimated(sampling: &Sampling) -> String {
    let (low, high) = (count(sampling.low.core_cycles), count(sampling.high.core_cycles));
    format!("{low} to {high}, +-{:.1} % (95 % confidence)", sampling.half_width_percent())
}

fn in_groups(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// `value` with an SI prefix and three to four significant digits: "3.80 M".
pub fn rate(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 1e12 => (value / 1e12, " T"),
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, " "),
    };
    let digits = if scaled.abs() >= 100.0 { 0 } else { 2 };
    format!("{scaled:.digits$}{prefix}")
}

/// A share of 1 in percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Bytes a second in GB/s (10^9).
pub fn bandwidth(bytes_per_s: f64) -> String {
    format!("{:.1} GB/s", bytes_per_s / 1e9)
}

/// A time in s, ms, µs or ns.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        v if v >= 1.0 => format!("{value:.3} s"),
        v if v >= 1e-3 => format!("{:.3} ms", value * 1e3),
        v if v >= 1e-6 => format!("{:.3} µs", value * 1e6),
        _ => format!("{:.1} ns", value * 1e9),
    }
}

/// An energy in J, mJ, µJ or nJ.
pub fn joules(value: f64) -> String {
    match value.abs() {
        v if v >= 1.0 => format!("{value:.3} J"),
        v if v >= 1e-3 => format!("{:.3} mJ", value * 1e3),
        v if v >= 1e-6 => format!("{:.3} µJ", value * 1e6),
        _ => format!("{:.1} nJ", value * 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_whole_digits_unless_groups_are_asked_for() {
        let cases = [(0, "0"), (999, "999"), (1000, "1 000"), (38_150_144, "38 150 144")];
        for (value, grouped) in cases {
            assert_eq!(count(value), value.to_string());
            assert_eq!(in_groups(&count(value)), grouped);
        }
    }

    #[test]
    fn rates_times_and_energies_choose_a_prefix() {
        assert_eq!([rate(12.0), rate(3_800_000.0), rate(250_000.0)], ["12.00 ", "3.80 M", "250 k"]);
        assert_eq!([seconds(1.5e-3), seconds(42e-9), seconds(2.0)], ["1.500 ms", "42.0 ns", "2.000 s"]);
        assert_eq!([joules(2.0), joules(1.5e-6), joules(42e-9)], ["2.000 J", "1.500 µJ", "42.0 nJ"]);
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(bandwidth(307.2e9), "307.2 GB/s");
    }
}
