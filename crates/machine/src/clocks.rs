//! What is wrong with clocks that no tick divides, and the nearest clocks that one does.
//!
//! The rule is [`Timebase`]'s: the least common multiple of all clocks is at most 2^53 kHz.

use durawarp_engine::Timebase;

/// What to tell of clocks (key, kHz) that have no timebase; `None` of those that have one.
pub(super) fn without_timebase(clocks: &[(&str, u64)]) -> Option<String> {
    let khz: Vec<u64> = clocks.iter().map(|&(_, khz)| khz).collect();
    if Timebase::of_khz(&khz).is_some() {
        return None;
    }
    let told = "the clocks have no common multiple below 2^53 kHz".to_owned();
    let near = Timebase::nearest_khz(&khz).unwrap_or_default();
    let changed = clocks.iter().zip(near).filter(|((_, khz), near)| khz != near);
    let changed: Vec<String> = changed.map(|((key, _), near)| format!("{key}={}", near as f64 / 1e3)).collect();
    Some(if changed.is_empty() { told } else { format!("{told}; the nearest that have one: {}", changed.join(" ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_without_a_tick_are_told_with_the_nearest_that_have_one() {
        assert_eq!(without_timebase(&[("a", 1_800_000), ("b", 1_400_000)]), None);
        let told = without_timebase(&[("a", 1_401_337), ("b", 1_400_003), ("c", 1_200_001), ("d", 1_500_000)]).unwrap();
        let (_, near) = told.split_once("have one: ").unwrap();
        assert_eq!(near, "a=1401.34 b=1400 c=1200");
        // What is advised works.
        assert!(Timebase::of_khz(&[1_401_340, 1_400_000, 1_200_000, 1_500_000]).is_some());
    }
}
