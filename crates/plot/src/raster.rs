//! Figures as pixels, for programs that take no SVG: `resvg` draws what [`Figure::svg`](super::Figure::svg)
//! wrote.
//!
//! Letters are outlines in the SVG, so no font of the system is looked at: a PNG is the same on every host.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Pixels an inch: what printers of journals ask for.
const DPI: f32 = 300.0;

/// A figure as PNG, 300 pixels an inch at the size of print.
///
/// # Errors
/// The text is no SVG of this module, a line of it has letters that the font of figures lacks, or there is no
/// memory for its pixels.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    if let Some(line) = left_to_the_viewer(svg) {
        return Err(format!("`{line}` has letters that the font of figures lacks: take the SVG"));
    }
    let tree = Tree::from_str(svg, &Options::default()).map_err(|fault| format!("cannot read the figure: {fault}"))?;
    // Sizes of the tree are in pixels of 1/96 inch.
    let scale = DPI / 96.0;
    let size = tree.size().to_int_size().scale_by(scale);
    let pixels = size.and_then(|size| Pixmap::new(size.width(), size.height()));
    let mut pixels = pixels.ok_or("the figure has no size, or is too large for a PNG")?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|fault| format!("cannot write PNG: {fault}"))
}

/// The first line of text that is not drawn as outlines.
fn left_to_the_viewer(svg: &str) -> Option<&str> {
    let mut lines = svg.split("<text").skip(1).filter_map(|rest| rest.split_once('>'));
    let (_, rest) = lines.find(|(attributes, _)| !attributes.contains("fill-opacity=\"0\""))?;
    rest.split('<').next().filter(|line| !line.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, BarSeries, Baseline, GroupedBars, Mean, Sheet};
    use super::*;

    fn titled(title: &str) -> String {
        let bars = GroupedBars {
            sheet: Sheet::one_column().titled(title),
            axis: Axis::new("time", "s"),
            groups: vec!["NW".to_owned()],
            groups_name: String::new(),
            series: vec![BarSeries::of("base", &[2.0])],
            baseline: Baseline::None,
            mean: Mean::None,
            cut_off: None,
        };
        bars.svg().unwrap()
    }

    /// Dark pixels in the line of the title.
    fn ink(svg: &str) -> usize {
        let pixels = Pixmap::decode_png(&png(svg).unwrap()).unwrap();
        let line = pixels.width() as usize * (11.0 * DPI / 72.0) as usize;
        pixels.pixels()[..line].iter().filter(|pixel| pixel.red() < 128).count()
    }

    #[test]
    fn letters_are_drawn_without_a_font_of_the_system() {
        let [one, eight] = ["I", "IIIIIIII"].map(|title| ink(&titled(title)));
        assert!(one > 50 && eight > 6 * one, "{one} {eight}");
    }

    #[test]
    fn a_letter_that_cannot_be_drawn_is_told() {
        let fault = png(&titled("名前 of kernels")).unwrap_err();
        assert!(fault.contains("`名前 of kernels`") && fault.contains("take the SVG"), "{fault}");
    }
}
