//! How large a figure is: as asked for, or as small as its labels allow.

use durawarp_plot::{Figure, FigureError, Mean, Sheet, text_width};
use durawarp_simulation::sweep::file::figure::FigureSpec;

/// Heights that are tried, over the first.
const HEIGHTS: [f64; 4] = [1.0, 1.3, 1.7, 2.4];

/// Size of text, from one line to the next, and what an entry of a legend needs beside its name, in points.
const TEXT: f64 = 7.0;
const LINE: f64 = 9.1;
const KEY: f64 = 26.0;

/// Share of the width that names beside the data get.
const BESIDE: f64 = 0.3;

/// A bar that is narrower than this on one column gets two, in points.
const BAR_PT: f64 = 5.0;

/// The figure on paper of a size that it fits on.
pub(super) fn fitted(spec: &FigureSpec, figure: &Figure, title: Option<&str>) -> Result<Figure, String> {
    let width = Sheet::one_column().width_pt;
    let narrow = bars(figure) as f64 * BAR_PT <= width * 0.8 && beside(figure) <= width * BESIDE;
    let sheets = match spec.columns {
        Some(1) => vec![Sheet::one_column()],
        None if narrow => vec![Sheet::one_column(), Sheet::two_columns()],
        Some(_) | None => vec![Sheet::two_columns()],
    };
    let heights: &[f64] = if spec.height_pt.is_some() { &[1.0] } else { &HEIGHTS };
    let mut fault = None;
    for sheet in sheets {
        for times in heights {
            let height = spec.height_pt.unwrap_or_else(|| height(figure, sheet.width_pt)) * times;
            let mut figure = figure.clone();
            let own = figure.sheet_mut();
            own.title = title.map(str::to_owned);
            (own.width_pt, own.height_pt) = (sheet.width_pt, height);
            match figure.svg() {
                Ok(_) => return Ok(figure),
                Err(small @ FigureError::Room { .. }) => fault = Some(small),
                Err(fault) => return Err(fault.to_string()),
            }
        }
    }
    Err(fault.map_or_else(String::new, |fault| fault.to_string()))
}

/// The longest name beside the data, in points. One that is cut may look like another.
fn beside(figure: &Figure) -> f64 {
    match figure {
        Figure::HeatMap(map) => map.rows.iter().map(|row| text_width(row, TEXT)).fold(0.0, f64::max),
        _ => 0.0,
    }
}

/// Bars or cells beside each other.
fn bars(figure: &Figure) -> usize {
    match figure {
        Figure::GroupedBars(bars) => {
            (bars.groups.len() + usize::from(bars.mean != Mean::None)) * (bars.series.len() + 1)
        }
        Figure::StackedBars(bars) => bars.groups.iter().map(|group| group.bars.len() + 1).sum::<usize>() * 3,
        Figure::HeatMap(map) => map.columns.len() * 4,
        Figure::Lines(_) | Figure::Cdf(_) | Figure::Distribution(_) | Figure::Steps(_) => 0,
    }
}

/// Height to begin with, in points: 110 for the data and its axis, and what the legend and long names need.
fn height(figure: &Figure, width: f64) -> f64 {
    let legend = |names: &mut dyn Iterator<Item = &str>| {
        let widths: Vec<f64> = names.map(|name| text_width(name, TEXT) + KEY).collect();
        let widest = widths.iter().copied().fold(1.0, f64::max);
        let rows = match widths.iter().sum::<f64>() <= width {
            true => 1.0,
            false => (widths.len() as f64 / (width / widest).floor().max(1.0)).ceil(),
        };
        110.0 + rows * LINE
    };
    match figure {
        Figure::HeatMap(map) => 64.0 + 16.0 * map.rows.len() as f64,
        Figure::GroupedBars(bars) => legend(&mut bars.series.iter().map(|series| series.name.as_str())) + 20.0,
        Figure::Lines(lines) => {
            legend(&mut lines.series.iter().chain(&lines.ideal).map(|line| line.name.as_str())) + 30.0
        }
        Figure::Cdf(cdf) => legend(&mut cdf.series.iter().map(|line| line.name.as_str())) + 30.0,
        Figure::StackedBars(bars) => {
            let names = bars.groups.iter().flat_map(|group| &group.bars).map(|bar| text_width(&bar.name, TEXT));
            // They lean.
            legend(&mut bars.parts.iter().map(String::as_str)) + 20.0 + 0.75 * names.fold(0.0, f64::max)
        }
        Figure::Distribution(_) | Figure::Steps(_) => legend(&mut std::iter::empty()),
    }
}
