//! Labels side by side: as near to where they belong as a least distance between them allows.

/// Moves ascending places apart until each is at least `gap` from the next, all within `low` to `high`; the sum of the
/// squares of the moves is least. Without room for all, the last ones leave on the right.
pub(super) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    // Groups of labels that touch: how many, and the sum of where each would have the group begin.
    let mut groups: Vec<(usize, f64)> = Vec::new();
    let begin = |(count, sum): (usize, f64)| {
        let last = high - gap * (count - 1) as f64;
        (sum / count as f64).min(last).max(low)
    };
    for place in wanted {
        groups.push((1, *place));
        while let [.., before, after] = groups[..] {
            if begin(before) + gap * before.0 as f64 <= begin(after) {
                break;
            }
            groups.truncate(groups.len() - 2);
            let shifted = after.1 - gap * (before.0 * after.0) as f64;
            groups.push((before.0 + after.0, before.1 + shifted));
        }
    }
    groups.iter().flat_map(|group| (0..group.0).map(|i| begin(*group) + gap * i as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_move_only_as_far_as_they_must() {
        assert_eq!(spread(&[10.0, 50.0], 6.0, 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[20.0, 20.0, 20.0], 6.0, 0.0, 100.0), [14.0, 20.0, 26.0]);
        assert_eq!(spread(&[1.0, 2.0], 6.0, 3.0, 100.0), [3.0, 9.0]);
        assert_eq!(spread(&[99.0, 99.0, 99.0], 6.0, 0.0, 100.0), [88.0, 94.0, 100.0]);
        assert!(spread(&[], 6.0, 0.0, 100.0).is_empty());
    }

    #[test]
    fn they_keep_their_distance_and_order() {
        let wanted: Vec<f64> = (0..40).map(|i| f64::from(i * i % 97)).collect();
        let mut wanted = wanted;
        wanted.sort_by(f64::total_cmp);
        let places = spread(&wanted, 2.4, 0.0, 97.0);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 2.4 - 1e-9), "{places:?}");
        assert!(places[0] >= 0.0 && places[39] <= 97.0 + 1e-9);
    }
}
