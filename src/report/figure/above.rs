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
    /// A gap, whose line goes down to the foot.
    pub(super) gap: bool,
}

/// Room that labels need above the data.
pub(super) fn height(texts: impl Iterator<Item = String>) -> f64 {
    texts.map(|text| text_width(&text, SMALL) + LEADER + 2.0).fold(1.0, f64::max)
}

/// Ends a run of missing bars and says so: in the run's own room where that is wide enough, else above the data.
pub(super) fn close(frame: &mut Frame, gap: &mut Option<(f64, f64)>, labels: &mut Vec<Above>) {
    let Some((from, to)) = gap.take() else { return };
    let (x, bottom) = ((from + to) / 2.0, frame.plot.bottom);
    if to - from >= PITCH {
        let text = Text::new("missing", (x + MIDDLE * SMALL, bottom - 2.0), SMALL).turned(-90.0).colour(GREY);
        frame.svg.text(&text, "n/a");
    } else {
        labels.push(Above { x, text: "n/a".to_owned(), gap: true });
    }
}

/// Writes the labels, which ascend from left to right.
pub(super) fn write(frame: &mut Frame, labels: &[Above]) {
    let plot = frame.plot;
    let wanted: Vec<f64> = labels.iter().map(|label| label.x).collect();
    let places = spread(&wanted, PITCH, plot.left + 1.0, plot.right - PITCH / 2.0);
    for (label, x) in labels.iter().zip(places) {
        if label.gap {
            frame.svg.line("leader", (label.x, plot.bottom), (label.x, plot.top), GREY, 0.4, &[0.8, 1.2]);
        }
        frame.svg.line("leader", (label.x, plot.top - 0.5), (x, plot.top - LEADER + 1.0), GREY, 0.4, &[]);
        let class = if label.gap { "missing" } else { "broken" };
        let text = Text::new(class, (x + MIDDLE * SMALL, plot.top - LEADER), SMALL).turned(-90.0);
        frame.svg.text(&text, &label.text);
    }
}
