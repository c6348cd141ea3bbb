//! Names of categories below an axis: level where they fit, else leaning, else upright; where not even that fits, an
//! error. Names are never left out: a bar without a name is worthless.

use super::FigureError;
use super::svg::{Anchor, Svg, Text};
use super::text::{MIDDLE, NORMAL, SMALL, cut, text_width};

/// Share of its length by which a leaning name goes down and left: the sine of 45 degrees.
const LEAN: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// A row of names with the way they are written.
#[derive(Debug)]
pub(super) struct Row {
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

impl Row {
    /// Plans names centred at these places, on paper of this width. None becomes longer than `longest`.
    pub(super) fn plan(
        what: &str,
        names: &[(f64, &str)],
        paper: f64,
        longest: f64,
        mean: bool,
    ) -> Result<Row, FigureError> {
        let pitch = names.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(f64::INFINITY, f64::min);
        // Bold is up to a tenth wider.
        let spare = if mean { 1.1 } else { 1.0 };
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
                return Ok(Row::sized(names, size, turned, mean));
            }
        }
        let needed_pt = SMALL * 1.04;
        Err(FigureError::Room { what: format!("{what} stand too close for their names"), needed_pt, have_pt: pitch })
    }

    fn sized(names: Vec<(f64, String)>, size: f64, turned: f64, mean: bool) -> Row {
        let widths = names.iter().map(|(x, text)| (x, text_width(text, size) * if mean { 1.05 } else { 1.0 }));
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
        Row { names, size, turned, height: height + 3.0, sticks_out, mean }
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
pub(super) fn bars((from, to): (f64, f64), count: usize) -> Vec<(f64, f64)> {
    let margin = (to - from) * if count == 1 { 0.16 } else { 0.08 };
    let width = (to - from - 2.0 * margin) / count.max(1) as f64;
    (0..count).map(|i| (from + margin + width * i as f64, from + margin + width * (i + 1) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(pitch: f64, name: &str) -> Result<f64, FigureError> {
        let names: Vec<(f64, &str)> = (0..10).map(|i| (50.0 + f64::from(i) * pitch, name)).collect();
        Row::plan("bars", &names, 2000.0, 100.0, false).map(|row| row.turned)
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
        assert_eq!(bars((0.0, 10.0), 4).len(), 4);
    }
}
