//! How large a figure is: as asked for, or as small as its labels allow.

use crate::report::figure::{Figure, FigureError, Sheet};
use crate::sweep::file::figure::{FigureSpec, Kind};

/// Heights that are tried, over the first.
const HEIGHTS: [f64; 4] = [1.0, 1.3, 1.7, 2.4];

/// A bar that is narrower than this on one column gets two, in points.
const BAR_PT: f64 = 5.0;

/// The figure on paper of a size that it fits on.
pub(super) fn fitted(spec: &FigureSpec, figure: &Figure, title: Option<&str>) -> Result<Figure, String> {
    let narrow = bars(figure) as f64 * BAR_PT <= Sheet::one_column().width_pt * 0.8;
    let sheets = match spec.columns {
        Some(1) => vec![Sheet::one_column()],
        None if narrow => vec![Sheet::one_column(), Sheet::two_columns()],
        Some(_) | None => vec![Sheet::two_columns()],
    };
    let heights: &[f64] = if spec.height_pt.is_some() { &[1.0] } else { &HEIGHTS };
    let mut tried = None;
    for sheet in sheets {
        for times in heights {
            let height = spec.height_pt.unwrap_or_else(|| height(spec.kind, figure)) * times;
            let mut figure = figure.clone();
            let own = figure.sheet().clone();
            let sheet = Sheet { title: title.map(str::to_owned), better: own.better, ..sheet.clone() }.height(height);
            *figure.sheet_mut() = sheet;
            match figure.svg() {
                Ok(_) => return Ok(figure),
                Err(fault @ FigureError::Room { .. }) => tried = Some(fault),
                Err(fault) => return Err(fault.to_string()),
            }
        }
    }
    Err(tried.map_or_else(String::new, |fault| fault.to_string()))
}

/// Bars or cells beside each other.
fn bars(figure: &Figure) -> usize {
    match figure {
        Figure::GroupedBars(bars) => (bars.groups.len() + usize::from(bars.mean)) * (bars.series.len() + 1),
        Figure::StackedBars(bars) => bars.groups.iter().map(|group| group.bars.len() + 1).sum::<usize>() * 2,
        Figure::HeatMap(map) => map.columns.len() * 4,
        Figure::Lines(_) | Figure::Cdf(_) | Figure::Distribution(_) => 0,
    }
}

/// Height to begin with, in points.
fn height(kind: Kind, figure: &Figure) -> f64 {
    match (kind, figure) {
        (_, Figure::HeatMap(map)) => 64.0 + 16.0 * map.rows.len() as f64,
        (Kind::Stacked, _) => 170.0,
        _ => 150.0,
    }
}
