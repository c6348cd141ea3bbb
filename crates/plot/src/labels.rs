//! Labels around the data: names of categories below it, and numbers of bars above it.
//!
//! Names lie level where they fit, else they lean, else they stand upright; where not even that fits, the
//! answer is an error. A name is never left out: a bar without a name is worthless.
//!
//! Numbers stand upright above the data: those of bars that are cut off, and "n/a" for bars that are missing.
//! They move apart as far as they must, and a line joins each to its place.

use super::palette::GREY;
use super::sheet::FigureError;
use super::svg::{Anchor, Rect, Svg, Text};
use super::text::{BOLD, MIDDLE, NORMAL, SMALL, cut, text_width};

/// Share of its length by which a leaning name goes down and left: the sine of 45 degrees.
const LEAN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// A row of names with the way they are written.
#[derive(Debug)]
pub(super) struct NameRow {
    names: Vec<(f64, String)>,
    size: f64,
    /// Degrees, clockwise.
    turned: f64,
    /// From the axis to the end of the longest.
    pub(super) height: f64,
    /// How far a name sticks out of the paper on the left.
    pub(super) sticks_out: f64,
    /// The last is a mean, and bold.
    pub(super) mean: bool,
}

impl NameRow {
    /// Plans names centred at these places, on paper of this width. None becomes longer than `longest`.
    pub(super) fn plan(
        what: &str,
        names: &[(f64, &str)],
        paper: f64,
        longest: f64,
        mean: bool,
    ) -> Result<NameRow, FigureError> {
        let pitch = names.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
        let spare = if mean { BOLD } else { 1.0 };
        for (size, turned) in [(NORMAL, 0.0), (NORMAL, -45.0), (SMALL, -45.0), (NORMAL, -90.0), (SMALL, -90.0)] {
            let fits = match turned {
                0.0 => level(names, size * spare, paper),
                -45.0 => pitch * LEAN >= size * 1.08,
                _ => pitch >= size * 1.04,
            };
            if fits {
                let room = if turned == -45.0 { longest / LEAN } else { longest };
                let name = |name: &str| if turned == 0.0 { name.to_owned() } else { cut(name, size, room) };
                let names: Vec<(f64, String)> = names.iter().map(|(x, text)| (*x, name(text))).collect();
                return Ok(NameRow::sized(names, size, turned, mean));
            }
        }
        let needed_pt = SMALL * 1.04;
        Err(FigureError::Room { what: format!("{what} stand too close for their names"), needed_pt, have_pt: pitch })
    }

    fn sized(names: Vec<(f64, String)>, size: f64, turned: f64, mean: bool) -> NameRow {
        let widths = names.iter().map(|(x, text)| (x, text_width(text, size) * if mean { BOLD } else { 1.0 }));
        let (mut height, mut sticks_out): (f64, f64) = (0.0, 0.0);
        for (x, width) in widths {
            height = height.max(match turned {
                0.0 => size,
                -45.0 => size * 0.55 + (width + size * 0.22) * LEAN,
                _ => width,
            });
            let left = if turned == -45.0 { x + size * 0.45 - (width + size * 0.75) * LEAN } else { *x - size };
            sticks_out = sticks_out.max(1.0 - left);
        }
        NameRow { names, size, turned, height: height + 3.0, sticks_out, mean }
    }

    /// Writes the names below `top`.
    pub(super) fn draw(&self, svg: &mut Svg, top: f64) {
        for (i, (x, name)) in self.names.iter().enumerate() {
            let (at, anchor) = match self.turned {
                0.0 => ((*x, top + 3.0 + 0.74 * self.size), Anchor::Middle),
                -45.0 => ((x + 0.45 * self.size, top + 3.0 + 0.55 * self.size), Anchor::End),
                _ => ((x + MIDDLE * self.size, top + 3.0), Anchor::End),
            };
            let text = Text::new("category", at, self.size).anchor(anchor).turned(self.turned);
            svg.text(&text.bold(self.mean && i + 1 == self.names.len()), name);
        }
    }
}

/// Whether names fit beside each other and on the paper.
fn level(names: &[(f64, &str)], size: f64, paper: f64) -> bool {
    let half = |name: &str| text_width(name, size) / 2.0;
    let apart = |pair: &[(f64, &str)]| pair[1].0 - pair[0].0 >= half(pair[0].1) + half(pair[1].1) + 3.0;
    names.windows(2).all(apart) && names.iter().all(|(x, name)| x - half(name) >= 1.0 && x + half(name) <= paper - 1.0)
}

/// The room of each of `count` groups between two edges: from, to. A mean follows them at a little distance.
pub(super) fn bands(left: f64, right: f64, count: usize, mean: bool) -> Vec<(f64, f64)> {
    let gap = if mean { 0.5 } else { 0.0 };
    let all = count + usize::from(mean);
    let pitch = (right - left) / (all as f64 + gap);
    let place = |i: usize| left + pitch * (i as f64 + if mean && i == count { gap } else { 0.0 });
    (0..all).map(|i| (place(i), place(i) + pitch)).collect()
}

/// The places of `count` bars in a band.
pub(super) fn slots((from, to): (f64, f64), count: usize) -> Vec<(f64, f64)> {
    let margin = (to - from) * if count == 1 { 0.16 } else { 0.08 };
    let width = (to - from - 2.0 * margin) / count.max(1) as f64;
    (0..count).map(|i| (from + margin + width * i as f64, from + margin + width * (i + 1) as f64)).collect()
}

/// Between two labels: their height and a little.
pub(super) const PITCH: f64 = SMALL * 1.08;
/// From the data to the labels.
const LEADER: f64 = 5.0;

/// A label above the data and the place that it belongs to.
#[derive(Debug)]
pub(super) struct NumberLabel {
    pub(super) x: f64,
    pub(super) text: String,
    /// Of something missing: where its line ends, which shows where it would be.
    pub(super) gap: Option<f64>,
}

/// Room that labels need above the data.
pub(super) fn room_above(texts: impl Iterator<Item = String>) -> f64 {
    texts.map(|text| text_width(&text, SMALL) + LEADER + 2.0).fold(1.0, f64::max)
}

/// Whether "n/a" surely fits into the room of a bar, whatever stands beside the data.
pub(super) fn fits_into_gaps(paper: f64, groups: usize, bars: usize) -> bool {
    // Names beside the data take less than 35 of 100, margins of bars less than a third.
    0.65 * paper / groups.max(1) as f64 * 0.66 / bars.max(1) as f64 >= PITCH
}

/// Ends a run of missing bars and says so: in the run's own room where that is wide enough, else above the
/// data.
pub(super) fn close_gap(svg: &mut Svg, plot: Rect, gap: &mut Option<(f64, f64)>, labels: &mut Vec<NumberLabel>) {
    let Some((from, to)) = gap.take() else { return };
    let (x, bottom) = ((from + to) / 2.0, plot.bottom);
    if to - from >= PITCH {
        let text = Text::new("missing", (x + MIDDLE * SMALL, bottom - 2.0), SMALL).turned(-90.0).colour(GREY);
        svg.text(&text, "n/a");
    } else {
        labels.push(NumberLabel { x, text: "n/a".to_owned(), gap: Some(bottom) });
    }
}

/// Writes the labels, which ascend from left to right. Where there is no room for all, neighbouring gaps
/// share one.
pub(super) fn write_above(svg: &mut Svg, plot: Rect, labels: &[NumberLabel]) {
    let room = ((plot.width() - PITCH) / PITCH) as usize;
    let numbers = labels.iter().filter(|label| label.gap.is_none()).count();
    let shared = (labels.len() - numbers).div_ceil(room.saturating_sub(numbers).max(1)).max(1);
    let mut groups: Vec<Vec<&NumberLabel>> = Vec::new();
    for label in labels {
        match groups.last_mut() {
            Some(group) if group.len() < shared && group[0].gap.is_some() && label.gap.is_some() => group.push(label),
            _ => groups.push(vec![label]),
        }
    }
    let middle = |group: &Vec<&NumberLabel>| group.iter().map(|label| label.x).sum::<f64>() / group.len() as f64;
    let wanted: Vec<f64> = groups.iter().map(middle).collect();
    let places = spread(&wanted, PITCH, plot.left + 1.0, plot.right - PITCH / 2.0);
    for (group, x) in groups.iter().zip(places) {
        for label in group {
            if let Some(foot) = label.gap {
                svg.line("leader", (label.x, foot), (label.x, plot.top), GREY, 0.4, &[0.8, 1.2]);
            }
            svg.line("leader", (label.x, plot.top - 0.5), (x, plot.top - LEADER + 1.0), GREY, 0.4, &[]);
        }
        let class = if group[0].gap.is_some() { "missing" } else { "broken" };
        let text = Text::new(class, (x + MIDDLE * SMALL, plot.top - LEADER), SMALL).turned(-90.0);
        svg.text(&text, &group[0].text);
    }
}

/// Moves ascending places apart until each is at least `gap` from the next, all within `low` to `high`; the
/// sum of the squares of the moves is least. Without room for all, the last ones leave on the right.
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

    fn turned(pitch: f64, name: &str) -> Result<f64, FigureError> {
        let names: Vec<(f64, &str)> = (0..10).map(|i| (50.0 + f64::from(i) * pitch, name)).collect();
        NameRow::plan("bars", &names, 2000.0, 100.0, false).map(|row| row.turned)
    }

    #[test]
    fn names_turn_where_they_have_to() {
        assert_eq!(turned(60.0, "StreamTriad"), Ok(0.0));
        assert_eq!(turned(20.0, "StreamTriad"), Ok(-45.0));
        assert_eq!(turned(20.0, "NW"), Ok(0.0));
        assert_eq!(turned(7.5, "StreamTriad"), Ok(-90.0));
        assert!(matches!(turned(3.0, "StreamTriad"), Err(FigureError::Room { .. })));
    }

    #[test]
    fn bands_fill_the_room_and_set_the_mean_off() {
        let places = bands(10.0, 110.0, 4, true);
        assert_eq!(places.len(), 5);
        assert!((places[4].1 - 110.0).abs() < 1e-9 && places[4].0 > places[3].1 + 5.0, "{places:?}");
        assert_eq!(slots((0.0, 10.0), 4).len(), 4);
    }

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
