//! What tells series apart: colours that colour-blind readers tell apart (Okabe and Ito), and besides, for
//! black and white, a hatch (areas) or a marker and a dash pattern (lines). Series beyond the eighth repeat
//! colours with another hatch or marker. For values: viridis, perceptually uniform, dark to light.

use super::svg::{Element, Point, Svg, number, places};

/// Ink of outlines, axes and text.
pub(super) const INK: &str = "#000000";
/// Ink of grid lines.
pub(super) const GRID: &str = "#d9d9d9";
/// Ink of what is less important.
pub(super) const GREY: &str = "#6b6b6b";

/// How an area is hatched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hatch {
    Solid,
    Rising,
    Falling,
    Level,
    Cross,
    Dense,
    Dots,
    Grid,
}

/// How an area is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fill {
    pub(super) colour: [u8; 3],
    pub(super) hatch: Hatch,
}

/// Areas, in this order: neighbours differ in lightness as well as in hue and hatch.
const FILLS: [([u8; 3], Hatch); 8] = [
    ([0xff, 0xff, 0xff], Hatch::Solid),
    ([0xe6, 0x9f, 0x00], Hatch::Rising),
    ([0x56, 0xb4, 0xe9], Hatch::Level),
    ([0x00, 0x9e, 0x73], Hatch::Falling),
    ([0xf0, 0xe4, 0x42], Hatch::Cross),
    ([0x00, 0x72, 0xb2], Hatch::Solid),
    ([0xcc, 0x79, 0xa7], Hatch::Dense),
    ([0xd5, 0x5e, 0x00], Hatch::Dots),
];

const HATCHES: [Hatch; 8] =
    [Hatch::Solid, Hatch::Rising, Hatch::Level, Hatch::Falling, Hatch::Cross, Hatch::Dense, Hatch::Dots, Hatch::Grid];

impl Fill {
    /// The fill of a series, by its number from 0.
    pub(super) fn of(index: usize) -> Fill {
        let (colour, hatch) = FILLS[index % FILLS.len()];
        // Each time that colours repeat, each has the next hatch after its last one.
        let first = HATCHES.iter().position(|known| *known == hatch).unwrap_or(0);
        Fill { colour, hatch: HATCHES[(first + index / FILLS.len()) % HATCHES.len()] }
    }

    /// The fill of the class `index` of `count` classes that have an order.
    pub(super) fn ordered(index: usize, count: usize) -> Fill {
        let share = if count < 2 { 0.5 } else { index as f64 / (count - 1) as f64 };
        // Light to dark; every other one hatched, so that neighbours never run together.
        let hatch = if index % 2 == 1 { Hatch::Rising } else { Hatch::Solid };
        Fill { colour: viridis(1.0 - share), hatch }
    }

    /// The value of a `fill` attribute. A hatch is defined on the way.
    ///
    /// Hatches are drawn from the origin of the element that they fill: an element that is moved to its place
    /// by a transform shows the hatch as the legend does, wherever it is.
    pub(super) fn paint(&self, svg: &mut Svg) -> String {
        let colour = hex(self.colour);
        if self.hatch == Hatch::Solid {
            return colour;
        }
        let name = format!("{:?}-{}", self.hatch, &colour[1..]).to_lowercase();
        svg.define(&name, || self.pattern(&name));
        format!("url(#{name})")
    }

    fn pattern(&self, name: &str) -> String {
        let (size, path) = match self.hatch {
            Hatch::Solid => (1.0, ""),
            Hatch::Rising => (3.2, "M-0.8,0.8 L0.8,-0.8 M0,3.2 L3.2,0 M2.4,4 L4,2.4"),
            Hatch::Falling => (3.2, "M-0.8,2.4 L0.8,4 M0,0 L3.2,3.2 M2.4,-0.8 L4,0.8"),
            Hatch::Level => (2.4, "M0,1.2 L2.4,1.2"),
            Hatch::Cross => (3.2, "M0,0 L3.2,3.2 M0,3.2 L3.2,0"),
            Hatch::Dense => (1.2, "M0,0.6 L1.2,0.6"),
            Hatch::Dots => (2.4, "M0.8,1.2 L1.6,1.2"),
            Hatch::Grid => (2.4, "M0,1.2 L2.4,1.2 M1.2,0 L1.2,2.4"),
        };
        let width = match self.hatch {
            Hatch::Dots => 0.8,
            Hatch::Dense => 0.5,
            _ => 0.55,
        };
        let ink = if luminance(self.colour) > 0.18 { INK } else { "#ffffff" };
        let size = number(size);
        format!(
            "<pattern id=\"{name}\" width=\"{size}\" height=\"{size}\" patternUnits=\"userSpaceOnUse\"><rect \
             width=\"{size}\" height=\"{size}\" fill=\"{}\"/><path d=\"{path}\" stroke=\"{ink}\" \
             stroke-width=\"{}\" fill=\"none\"/></pattern>",
            hex(self.colour),
            number(width)
        )
    }
}

/// How a line is drawn: colour, dashes, and a marker at its points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stroke {
    pub(super) colour: &'static str,
    pub(super) dashes: &'static [f64],
    pub(super) marker: usize,
}

/// Lines: no yellow, which white paper swallows.
const LINES: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#000000", "#cc79a7", "#56b4e9", "#e69f00"];
const DASHES: [&[f64]; 4] = [&[], &[4.0, 1.5], &[1.2, 1.2], &[5.0, 1.5, 1.2, 1.5]];
const MARKERS: usize = 8;

impl Stroke {
    /// The stroke of a series, by its number from 0.
    pub(super) fn of(index: usize) -> Stroke {
        Stroke {
            colour: LINES[index % LINES.len()],
            dashes: DASHES[index % DASHES.len()],
            marker: (index + index / (LINES.len() * MARKERS)) % MARKERS,
        }
    }
}

/// The marker of a number, centred at a place: circle, square, triangle, diamond, then the same hollow.
pub(super) fn marker(svg: &mut Svg, class: &str, stroke: &Stroke, (x, y): Point, told: &str) {
    let r = 1.9;
    let element = match stroke.marker % 4 {
        0 => Element::new("circle", class).number("cx", x).number("cy", y).number("r", r),
        1 => {
            polygon(class, &[(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)].map(|p| shrunk(p, (x, y))))
        }
        2 => polygon(class, &[(x, y - 1.2 * r), (x + 1.15 * r, y + 0.9 * r), (x - 1.15 * r, y + 0.9 * r)]),
        _ => polygon(class, &diamond((x, y), 1.25 * r)),
    };
    let inside = if (stroke.marker / 4).is_multiple_of(2) { stroke.colour } else { "#ffffff" };
    svg.put_told(element.word("fill", inside).stroke(stroke.colour, 0.8), told);
}

/// A square looks larger than a circle of its width.
fn shrunk((px, py): Point, (x, y): Point) -> Point {
    (x + 0.85 * (px - x), y + 0.85 * (py - y))
}

/// A polygon without a fill yet.
pub(super) fn polygon(class: &str, points: &[Point]) -> Element {
    Element::new("polygon", class).word("points", &places(points))
}

/// The corners of a diamond.
pub(super) fn diamond((x, y): Point, r: f64) -> [Point; 4] {
    [(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
}

/// A colour as SVG writes it.
pub(super) fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Relative luminance (WCAG 2): 0 for black, 1 for white.
pub(super) fn luminance(colour: [u8; 3]) -> f64 {
    let [r, g, b] = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 { part / 12.92 } else { libm::pow((part + 0.055) / 1.055, 2.4) }
    });
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// Black or white, whichever stands out more from a colour.
pub(super) fn readable_on(colour: [u8; 3]) -> &'static str {
    let lightness = luminance(colour);
    if (lightness + 0.05) / 0.05 >= 1.05 / (lightness + 0.05) { "#000000" } else { "#ffffff" }
}

/// Viridis at eleven places of equal distance; in between, straight lines, which stay within 2 of 255 of the
/// original.
const VIRIDIS: [[u8; 3]; 11] = [
    [68, 1, 84],
    [72, 36, 117],
    [65, 68, 135],
    [53, 95, 141],
    [42, 120, 142],
    [33, 145, 140],
    [34, 168, 132],
    [68, 191, 112],
    [122, 209, 81],
    [189, 223, 38],
    [253, 231, 37],
];

/// Viridis at a share of its way from dark to light.
pub(super) fn viridis(share: f64) -> [u8; 3] {
    let at = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let below = (at as usize).min(VIRIDIS.len() - 2);
    let part = at - below as f64;
    let between = |i: usize| {
        let (a, b) = (f64::from(VIRIDIS[below][i]), f64::from(VIRIDIS[below + 1][i]));
        (a + (b - a) * part).round() as u8
    };
    [between(0), between(1), between(2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_differ() {
        let fills: Vec<Fill> = (0..64).map(Fill::of).collect();
        let strokes: Vec<Stroke> = (0..24).map(Stroke::of).collect();
        for i in 0..64 {
            assert!(fills[..i].iter().all(|other| *other != fills[i]), "fill {i}");
        }
        for i in 0..24 {
            assert!(strokes[..i].iter().all(|other| *other != strokes[i]), "stroke {i}");
        }
    }

    #[test]
    fn viridis_gets_lighter_and_its_text_stays_readable() {
        let steps: Vec<[u8; 3]> = (0..=100).map(|i| viridis(f64::from(i) / 100.0)).collect();
        assert!(steps.windows(2).all(|pair| luminance(pair[0]) <= luminance(pair[1]) + 1e-3));
        for colour in steps {
            let text = if readable_on(colour) == "#ffffff" { 1.0 } else { 0.0 };
            let (light, dark) = (luminance(colour).max(text), luminance(colour).min(text));
            assert!((light + 0.05) / (dark + 0.05) >= 4.5, "{colour:?}");
        }
    }
}
