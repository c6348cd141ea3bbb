//! Labels above the data: numbers of bars that are cut off, and "n/a" for bars that are missing. They stand upright, moved
//! apart as far as they must be, each joined to its place by a line.

use super::frame::Frame;
use super::palette::GREY;
use super::spread::spread;
use super::svg::Text;
use super::text::{MIDDLE, SMALL, text_width};

/// Between two labels: their height and a little.
pub(super) const PITCH: f64 = SMALL * 1.08;
/// From the data to the labels.
const LEADER: f64 = 5.0;

/// A label above the data and the place that it belongs to.
#[derive(Debug)]
pub(super) struct Above {
    pub(super) x: f64,
    pub(super) text: String,
    /// Of something missing: where its line ends, which shows where it would be.
    pub(super) gap: Option<f64>,
}

/// Room that labels need above the data.
pub(super) fn height(texts: impl Iterator<Item = String>) -> f64 {
    texts.map(|text| text_width(&text, SMALL) + LEADER + 2.0).fold(1.0, f64::max)
}

/// Whether "n/a" surely fits into the room of a bar, whatever stands beside the data.
pub(super) fn fits_into_gaps(paper: f64, groups: usize, bars: usize) -> bool {
    // Names beside the data take less than 35 of 100, margins of bars less than a third.
    0.65 * paper / groups.max(1) as f64 * 0.66 / bars.max(1) as f64 >= PITCH
}

/// Ends a run of missing bars and says so: in the run's own room where that is wide enough, else above the data.
pub(super) fn close(frame: &mut Frame, gap: &mut Option<(f64, f64)>, labels: &mut Vec<Above>) {
    let Some((from, to)) = gap.take() else { return };
    let (x, bottom) = ((from + to) / 2.0, frame.plot.bottom);
    if to - from >= PITCH {
        let text = Text::new("missing", (x + MIDDLE * SMALL, bottom - 2.0), SMALL).turned(-90.0).colour(GREY);
        frame.svg.text(&text, "n/a");
    } else {
        labels.push(Above { x, text: "n/a".to_owned(), gap: Some(bottom) });
    }
}

/// Writes the labels, which ascend from left to right. Where there is no room for all, neighbouring gaps share one.
pub(super) fn write(frame: &mut Frame, labels: &[Above]) {
    let plot = frame.plot;
    let room = ((plot.width() - PITCH) / PITCH) as usize;
    let numbers = labels.iter().filter(|label| label.gap.is_none()).count();
    let shared = (labels.len() - numbers).div_ceil(room.saturating_sub(numbers).max(1)).max(1);
    let mut groups: Vec<Vec<&Above>> = Vec::new();
    for label in labels {
        match groups.last_mut() {
            Some(group) if group.len() < shared && group[0].gap.is_some() && label.gap.is_some() => group.push(label),
            _ => groups.push(vec![label]),
        }
    }
    let middle = |group: &Vec<&Above>| group.iter().map(|label| label.x).sum::<f64>() / group.len() as f64;
    let wanted: Vec<f64> = groups.iter().map(middle).collect();
    let places = spread(&wanted, PITCH, plot.left + 1.0, plot.right - PITCH / 2.0);
    for (group, x) in groups.iter().zip(places) {
        for label in group {
            if let Some(foot) = label.gap {
                frame.svg.line("leader", (label.x, foot), (label.x, plot.top), GREY, 0.4, &[0.8, 1.2]);
            }
            frame.svg.line("leader", (label.x, plot.top - 0.5), (x, plot.top - LEADER + 1.0), GREY, 0.4, &[]);
        }
        let class = if group[0].gap.is_some() { "missing" } else { "broken" };
        let text = Text::new(class, (x + MIDDLE * SMALL, plot.top - LEADER), SMALL).turned(-90.0);
        frame.svg.text(&text, &group[0].text);
    }
}
