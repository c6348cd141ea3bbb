//! Figures, looked at as XML: what must hold of every one, and what each kind promises.

use std::collections::{BTreeMap, BTreeSet};

use durawarp::plot::*;
use durawarp::report::{Column, Drawing, Page, Table};
use roxmltree::Document;

use crate::samples::{self, Dice};
use crate::xml::{self, bar, class, number};

/// Writes every sample where it can be looked at, and a page with all of them.
#[test]
fn samples_are_sound_and_always_the_same() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    std::fs::create_dir_all(&folder).unwrap();
    let mut page = Page::new("Samples of all kinds of figures");
    page.paragraph("Numbers here are invented. The page shows what figures, tables and settings look like.");
    page.warning("2 of 22 kernels were not run: their bars say n/a.");
    let mut table =
        Table::new([Column::text("scheme"), Column::number("cycles"), Column::number("x base")]).caption("Two schemes");
    table.row(["base", "1234567", "1.000"]);
    table.row(["themis", "2345678", "1.900"]);
    page.table(table);
    page.settings("Settings of the machine", [("controller.write_queue_entries", "64"), ("sm.count", "30")]);
    page.heading("Figures");
    let mut drawn = Vec::new();
    let mut keep = |name: String, text: &str| {
        std::fs::write(folder.join(&name), text).unwrap();
        drawn.push(format!("{name} {}", &blake3::hash(text.as_bytes()).to_hex()[..16]));
    };
    for (name, figure) in samples::all() {
        let svg = figure.svg().unwrap_or_else(|error| panic!("{name}: {error}"));
        xml::check(name, &svg);
        assert_eq!(svg, figure.clone().svg().unwrap());
        let drawing = Drawing::new(name, &format!("Sample {name}."), &figure).unwrap();
        assert_eq!((drawing.svg(), drawing.csv()), (&*svg, &*figure.csv().unwrap()));
        keep(format!("{name}.svg"), &svg);
        keep(format!("{name}.csv"), drawing.csv());
        page.figure(drawing);
    }
    keep("page.html".to_owned(), &page.html().unwrap());
    // Whoever changes how figures look has looked at them.
    let known: Vec<&str> = include_str!("samples/drawn.txt").lines().collect();
    let changed: Vec<&String> = drawn.iter().filter(|line| !known.contains(&line.as_str())).collect();
    let look =
        format!("look at these in {}, then put their lines into tests/sweep/samples/drawn.txt", folder.display());
    assert!(changed.is_empty() && known.len() == drawn.len(), "{look}: {changed:#?}");
}

#[test]
fn a_bar_for_each_value_on_one_foot_side_by_side() {
    for (figure, series) in [(samples::slowdowns(), 6), (samples::slowdowns_with_gaps(), 7)] {
        let svg = figure.svg().unwrap();
        let svg = Document::parse(&svg).unwrap();
        let bars: Vec<[f64; 4]> = class(&svg, "bar").into_iter().map(bar).collect();
        // 3 single values and a kernel of 7 are missing in the second.
        let missing = if series == 7 { 10 } else { 0 };
        assert_eq!(bars.len(), (22 + 1) * series - missing);
        for pair in bars.windows(2) {
            assert_eq!(pair[0][3], pair[1][3], "feet");
            assert!(pair[0][2] <= pair[1][0] + 0.02, "{pair:?}");
        }
        let widths: BTreeSet<String> = bars.iter().map(|b| format!("{:.1}", b[2] - b[0])).collect();
        assert!(widths.len() <= 2, "{widths:?}");
        assert_eq!(class(&svg, "separator").len(), 1);
    }
}

#[test]
fn the_baseline_lies_where_its_bars_end() {
    let figure = samples::slowdowns_with_gaps();
    let svg = figure.svg().unwrap();
    let svg = Document::parse(&svg).unwrap();
    let line = class(&svg, "baseline")[0];
    assert_eq!(number(line, "y1"), number(line, "y2"));
    let first = bar(class(&svg, "bar")[0]);
    assert!((first[1] - number(line, "y1")).abs() < 0.02, "{first:?}");
    let mut absolute = samples::few_bars();
    absolute.baseline = Baseline::None;
    absolute.cut_off = None;
    let svg = absolute.svg().unwrap();
    assert!(class(&Document::parse(&svg).unwrap(), "baseline").is_empty());
}

#[test]
fn heights_follow_values_and_bars_that_are_cut_say_theirs() {
    let mut figure = samples::few_bars();
    figure.baseline = Baseline::Relative("base".to_owned());
    figure.mean = Mean::None;
    figure.groups = samples::names(&["a", "b"]);
    figure.series = vec![BarSeries::of("s", &[1.0, 2.0]), BarSeries::of("t", &[3.0, 17.04])];
    let svg = figure.svg().unwrap();
    let svg = Document::parse(&svg).unwrap();
    let heights: Vec<f64> = class(&svg, "bar").into_iter().map(bar).map(|b| b[3] - b[1]).collect();
    // By group, then series; the cut-off is 3.
    assert!(
        (heights[2] - 2.0 * heights[0]).abs() < 0.05 && (heights[1] - 3.0 * heights[0]).abs() < 0.05,
        "{heights:?}"
    );
    assert_eq!(heights[3], heights[1]);
    let broken: Vec<&str> = class(&svg, "broken").into_iter().filter_map(|node| node.text()).collect();
    assert_eq!((broken, class(&svg, "break").len()), (vec!["17.0"], 1));
}

#[test]
fn published_means_stand_in_the_group_of_means_of_their_kind() {
    let mut figure = samples::few_bars();
    figure.baseline = Baseline::Relative("base".to_owned());
    figure.groups = samples::names(&["a", "b"]);
    figure.series = vec![BarSeries::of("s", &[1.0, 4.0]), BarSeries::of("t", &[2.0, 2.5])];
    figure.series[0].published_mean = Some(2.25);
    figure.cut_off = None;
    for (mean, of_s, name) in [(Mean::Geometric, 2.0, "geometric mean"), (Mean::Arithmetic, 2.5, "arithmetic mean")] {
        figure.mean = mean;
        let csv = figure.csv().unwrap();
        let row = format!("mean,{name},s,,{of_s:?},,2.25,2");
        assert!(csv.lines().any(|line| line == row), "no {row} in {csv}");
        let svg = figure.svg().unwrap();
        let svg = Document::parse(&svg).unwrap();
        let marks = class(&svg, "published");
        assert_eq!(marks.len(), 1, "t's mean was not published");
        assert!(svg.descendants().any(|node| node.text() == Some("published")), "the legend says what a diamond is");
        let last = class(&svg, "separator")[0];
        assert!(svg.input_text()[marks[0].range()].contains(&format!("{name}, s: published 2.25")));
        assert_eq!(number(last, "x1"), number(last, "x2"));
    }
}

#[test]
fn the_cut_off_rises_until_its_numbers_have_room() {
    let mut figure = samples::slowdowns();
    figure.cut_off = Some(1.01);
    let svg = figure.svg().unwrap();
    xml::check("low cut-off", &svg);
    let svg = Document::parse(&svg).unwrap();
    let count = class(&svg, "broken").len();
    assert!((5..=34).contains(&count), "{count} of 138");
}

#[test]
fn a_cut_breaks_a_quarter_of_the_bars_at_the_most_and_never_most_of_a_series() {
    // Times of a scheme that is far behind all others: with a cut at 4 its bars were one level block.
    let far = [14.9, 3.7, 17.4, 6.3, 16.6, 12.6, 14.9, 12.9, 5.2, 13.1, 11.8, 5.9];
    let near = [1.3, 1.2, 2.1, 1.5, 1.9, 2.2, 3.3, 2.0, 1.5, 2.1, 2.3, 1.7];
    let drawn = |far: &[f64]| {
        let mut figure = samples::few_bars();
        figure.sheet = Sheet::two_columns();
        figure.baseline = Baseline::Relative("base".to_owned());
        (figure.mean, figure.cut_off) = (Mean::None, Some(4.0));
        figure.groups = (0..12).map(|i| format!("g{i}")).collect();
        figure.series = ["a", "b", "c"].iter().map(|name| BarSeries::of(name, &near)).collect();
        figure.series.push(BarSeries::of("far", far));
        figure.svg().unwrap()
    };
    let heights = |svg: &str| {
        let svg = Document::parse(svg).unwrap();
        let heights: Vec<f64> =
            class(&svg, "bar").into_iter().map(bar).map(|b| b[3] - b[1]).skip(3).step_by(4).collect();
        (class(&svg, "broken").len(), heights)
    };
    let (broken, bars) = heights(&drawn(&far));
    assert_eq!((broken, bars.len()), (0, 12), "a cut above half of the series would save nothing");
    assert!((bars[2] / bars[1] - 17.4 / 3.7).abs() < 0.1, "{bars:?}");
    // Far enough away for a cut: half of the series is as long as its values say.
    let farther: Vec<f64> = far.iter().map(|value| if *value > 12.7 { value * 4.0 } else { *value }).collect();
    let (broken, bars) = heights(&drawn(&farther));
    assert_eq!(broken, farther.iter().filter(|value| **value > 20.0).count());
    assert!(broken <= 6 && (bars[5] / bars[1] - 12.6 / 3.7).abs() < 0.1, "{bars:?}");
    // One bar of 48 is what a cut is for.
    let mut one = near;
    one[4] = 40.0;
    assert_eq!(heights(&drawn(&one)).0, 1);
}

#[test]
fn bars_of_a_logarithmic_axis_are_as_high_as_their_factors_and_none_is_cut() {
    let of = |values: &[f64]| {
        let mut figure = samples::few_bars();
        figure.axis = figure.axis.scale(Scale::Log10);
        figure.baseline = Baseline::Relative("base".to_owned());
        (figure.mean, figure.cut_off) = (Mean::None, Some(4.0));
        figure.series = vec![BarSeries::of("far", values)];
        figure
    };
    let drawn = |values: &[f64]| {
        let svg = of(values).svg().unwrap();
        xml::check("logarithmic", &svg);
        let svg = Document::parse(&svg).unwrap();
        let bars: Vec<[f64; 4]> = class(&svg, "bar").into_iter().map(bar).collect();
        let heights: Vec<f64> = bars.iter().map(|bar| bar[3] - bar[1]).collect();
        (class(&svg, "broken").len(), heights, bars[0][3] - number(class(&svg, "baseline")[0], "y1"))
    };
    let (broken, heights, above) = drawn(&[10.0, 100.0, 4.0, 30.0, 1.0]);
    assert_eq!((broken, heights.len()), (0, 5));
    assert!((heights[1] / heights[0] - 2.0).abs() < 0.01 && heights[4] < 0.01, "{heights:?}");
    assert!((heights[3] / heights[0] - 30f64.log10()).abs() < 0.01, "{heights:?}");
    assert!(above.abs() < 0.02, "nothing is below the baseline, on which bars stand: {above}");
    let (_, heights, above) = drawn(&[0.5, 100.0, 4.0, 30.0, 2.0]);
    assert!(above > 1.0 && heights[0] < heights[4], "the baseline is above a bar that is below it: {above}");
    let told = of(&[0.0, 1.0, 1.0, 1.0, 1.0]).svg().unwrap_err().to_string();
    assert!(told.contains("has no place on a logarithmic scale"), "{told}");
}

#[test]
fn letters_are_outlines_as_wide_as_the_layout_takes_them_for() {
    for (name, figure) in samples::all() {
        let svg = figure.sheet().clone().origin("durawarp 0.0.0, machine small");
        let mut figure = figure.clone();
        *figure.sheet_mut() = svg;
        let Ok(svg) = figure.svg() else { continue };
        let svg = Document::parse(&svg).unwrap();
        for text in svg.descendants().filter(|node| node.has_tag_name("text")) {
            let content = text.text().unwrap_or("");
            let size = number(text, "font-size");
            assert!((number(text, "textLength") - text_width(content, size)).abs() < 0.006, "{name}: {content}");
            let Some(group) = text.prev_sibling_element().filter(|group| group.attribute("class") == Some("glyphs"))
            else {
                assert!(!content.is_ascii(), "{name}: `{content}` is left to the viewer's fonts");
                continue;
            };
            assert_eq!(text.attribute("fill-opacity"), Some("0"), "{name}: `{content}` is drawn twice");
            let letters: Vec<_> = group.children().filter(|node| node.has_tag_name("use")).collect();
            assert_eq!(letters.len(), content.chars().filter(|c| !c.is_whitespace()).count(), "{name}: {content}");
            for letter in &letters {
                let id = letter.attribute(("http://www.w3.org/1999/xlink", "href")).unwrap().trim_start_matches('#');
                assert!(svg.descendants().any(|node| node.attribute("id") == Some(id)), "{name}: no {id}");
            }
            // From the first letter to where the last one begins, at the size of print.
            let scale: f64 = group.attribute("transform").unwrap().rsplit(['(', ')']).nth(1).unwrap().parse().unwrap();
            let (first, last) = (number(letters[0], "x"), number(letters[letters.len() - 1], "x"));
            let trimmed = content.trim();
            let end = trimmed.chars().next_back().map_or(0.0, |c| text_width(&c.to_string(), size));
            let taken = text_width(trimmed, size) - end;
            assert!(((last - first) * scale - taken).abs() < 0.01, "{name}: {content}");
        }
    }
}

#[test]
fn every_figure_says_below_all_else_of_what_it_is() {
    for (name, mut figure) in samples::all() {
        let plain = figure.svg().unwrap();
        figure.sheet_mut().origin = Some("durawarp 0.0.0, machine small, profile ci".to_owned());
        figure.sheet_mut().height_pt += 10.0;
        let svg = figure.svg().unwrap_or_else(|error| panic!("{name}: {error}"));
        xml::check(name, &svg);
        assert!(!plain.contains("class=\"origin\""));
        let svg = Document::parse(&svg).unwrap();
        let [origin] = class(&svg, "origin")[..] else { panic!("{name}: no line") };
        assert_eq!(origin.text(), Some("durawarp 0.0.0, machine small, profile ci"));
        let texts = svg.descendants().filter(|node| node.has_tag_name("text") && *node != origin);
        let lowest = texts.map(|node| number(node, "y")).fold(0.0, f64::max);
        assert!(lowest < number(origin, "y"), "{name}: {lowest}");
    }
}

#[test]
fn legends_show_what_bars_show() {
    let fills = |svg: &Document<'_>, name: &str| -> BTreeSet<String> {
        class(svg, name)
            .into_iter()
            .filter(|n| n.has_tag_name("rect"))
            .filter_map(|n| n.attribute("fill"))
            .map(str::to_owned)
            .collect()
    };
    for (figure, count) in [
        (Figure::from(samples::slowdowns()), 6),
        (samples::slowdowns_with_gaps().into(), 7),
        (samples::stalls().into(), 6),
        (samples::degrees().into(), 6),
    ] {
        let svg = figure.svg().unwrap();
        let svg = Document::parse(&svg).unwrap();
        let (bars, legend) = (fills(&svg, "bar"), fills(&svg, "swatch"));
        assert_eq!(bars, legend);
        assert_eq!(bars.len(), count);
    }
}

#[test]
fn series_keep_their_looks_when_the_baseline_is_hidden() {
    let look = |drawn| {
        let mut figure = samples::slowdowns();
        figure.baseline = Baseline::Series { name: "base".to_owned(), drawn };
        let svg = figure.svg().unwrap();
        let svg = Document::parse(&svg).unwrap();
        let mut looks: Vec<String> = Vec::new();
        for node in class(&svg, "swatch").into_iter().filter(|node| node.has_tag_name("rect")) {
            looks.push(node.attribute("fill").unwrap().to_owned());
        }
        looks
    };
    assert_eq!(look(true)[1..], look(false));
}

#[test]
fn means_are_geometric_and_of_the_same_groups() {
    let values = |csv: &str| -> BTreeMap<String, (String, String)> {
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let rows = reader.records().map(Result::unwrap).filter(|row| &row[0] == "mean");
        rows.map(|row| (row[2].to_owned(), (row[4].to_owned(), row[7].to_owned()))).collect()
    };
    let mut figure = samples::few_bars();
    figure.groups = samples::names(&["a", "b", "c"]);
    figure.baseline = Baseline::Series { name: "base".to_owned(), drawn: true };
    figure.series = vec![
        BarSeries::of("base", &[2.0, 4.0, 8.0]),
        BarSeries::of("s", &[4.0, 32.0, f64::NAN]),
        BarSeries::of("t", &[2.0, 1.0, 800.0]),
        BarSeries::of("nothing", &[f64::NAN, f64::INFINITY, f64::NAN]),
    ];
    let means = values(&figure.csv().unwrap());
    let mean = |name: &str| means[name].0.parse::<f64>().unwrap();
    // Of `a` and `b`: 2 x 8 and 1 x 1/4.
    assert!((mean("base") - 1.0).abs() < 1e-12 && (mean("s") - 4.0).abs() < 1e-12 && (mean("t") - 0.5).abs() < 1e-12);
    assert_eq!((means["t"].1.as_str(), means["nothing"].0.as_str()), ("2", ""));
    let svg = figure.svg().unwrap();
    assert!(svg.contains(">geomean of 2<") && svg.contains(">n/a<"));
}

#[test]
fn text_is_escaped_wherever_it_stands() {
    let evil = "<b>&\"'\u{1}";
    let mut figure = samples::slowdowns();
    figure.sheet = figure.sheet.titled(evil);
    figure.axis = Axis::new(evil, evil);
    figure.groups[0] = evil.to_owned();
    figure.series[1].name = evil.to_owned();
    let svg = figure.svg().unwrap();
    assert!(!svg.contains("<b>") && !svg.contains('\u{1}'));
    let document = Document::parse(&svg).unwrap();
    let titles: Vec<&str> = class(&document, "title").into_iter().filter_map(|node| node.text()).collect();
    assert_eq!(titles, ["<b>&\"'\u{fffd}"]);
}

#[test]
fn data_comes_back_from_csv() {
    for (name, figure) in samples::all() {
        let text = figure.csv().unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert!(reader.headers().unwrap().len() >= 3, "{name}");
        assert!(reader.records().all(|row| row.is_ok()), "{name}");
    }
    let mut figure = samples::few_bars();
    figure.groups = samples::names(&["a, \"b\"", "two\nlines"]);
    let exact = [0.1 + 0.2, 1e-300];
    figure.series = vec![BarSeries::of("base", &[1.0, 1.0]), BarSeries::of("s", &exact)];
    let text = figure.csv().unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).filter(|row| &row[2] == "s").collect();
    let back: Vec<f64> = rows[..2].iter().map(|row| row[3].parse().unwrap()).collect();
    assert_eq!(back, exact);
    assert_eq!((&rows[0][1], &rows[1][1]), ("a, \"b\"", "two\nlines"));
}

#[test]
fn figures_come_back_from_json() {
    for (name, figure) in samples::all() {
        let json = serde_json::to_string(&figure).unwrap();
        let back: Figure = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
        // NaN is `null` in JSON: both are "n/a". Numbers may lose their last digit on the way, which no
        // drawing shows.
        assert!(back.svg() == figure.svg(), "{name}");
    }
}

#[test]
fn colours_do_not_decide_which_text_can_be_read() {
    let svg = samples::heat().svg().unwrap();
    let svg = Document::parse(&svg).unwrap();
    let inks: BTreeSet<&str> =
        class(&svg, "value").into_iter().map(|node| node.attribute("fill").unwrap_or("black")).collect();
    assert_eq!(inks, BTreeSet::from(["#ffffff", "black"]));
    assert_eq!(class(&svg, "cell").len(), 8 * 12);
    assert_eq!(class(&svg, "missing").len(), 1);
}

#[test]
fn gaps_interrupt_lines_and_are_named() {
    let svg = samples::scaling().svg().unwrap();
    let svg = Document::parse(&svg).unwrap();
    // Four series, two of them in two parts.
    assert_eq!(class(&svg, "line").len(), 6);
    assert_eq!(class(&svg, "marker").len(), 4 * 7 - 2);
    assert_eq!((class(&svg, "gap").len(), class(&svg, "ideal").len()), (2, 1));
    let clipped = class(&svg, "line")[0].attribute("clip-path").unwrap().to_owned();
    let id = clipped.trim_start_matches("url(#").trim_end_matches(')').to_owned();
    assert!(svg.descendants().any(|node| node.attribute("id") == Some(&id)));
}

#[test]
fn shares_fill_their_bars() {
    let svg = samples::degrees().svg().unwrap();
    let svg = Document::parse(&svg).unwrap();
    let mut by_bar: BTreeMap<String, f64> = BTreeMap::new();
    for [left, top, _, foot] in class(&svg, "bar").into_iter().map(bar) {
        *by_bar.entry(left.to_string()).or_default() += foot - top;
    }
    let heights: BTreeSet<String> = by_bar.values().map(|height| format!("{height:.0}")).collect();
    assert_eq!((by_bar.len(), heights.len()), (21, 1), "{by_bar:?}");
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let bars = samples::few_bars();
    let figures: Vec<(Figure, &str)> = vec![
        (GroupedBars { groups: vec![], ..bars.clone() }.into(), "no groups"),
        (GroupedBars { series: vec![], ..bars.clone() }.into(), "no series"),
        (GroupedBars { groups: samples::names(&["a"]), ..bars.clone() }.into(), "5 values, 1 are due"),
        (GroupedBars { baseline: Baseline::Series { name: "x".into(), drawn: true }, ..bars.clone() }.into(), "`x`"),
        (GroupedBars { series: bars.series[..1].to_vec(), ..bars.clone() }.into(), "beside the baseline"),
        (GroupedBars { cut_off: Some(0.5), ..bars.clone() }.into(), "above the baseline"),
        (
            GroupedBars { sheet: Sheet { width_pt: f64::NAN, ..bars.sheet.clone() }, ..bars.clone() }.into(),
            "size of paper",
        ),
        (
            GroupedBars { sheet: Sheet { width_pt: 100.0, ..bars.sheet.clone() }, ..samples::slowdowns() }.into(),
            "needed",
        ),
        (GroupedBars { sheet: Sheet { height_pt: 50.0, ..bars.sheet.clone() }, ..bars.clone() }.into(), "needed"),
        (StackedBars { parts: vec![], ..samples::stalls() }.into(), "no parts"),
        (StackedBars { groups: vec![], ..samples::stalls() }.into(), "no groups"),
        (Lines { series: vec![], ..samples::scaling() }.into(), "no series"),
        (Lines { series: vec![LineSeries::of("a", &[])], ..samples::scaling() }.into(), "no points"),
        (Lines { series: vec![LineSeries::of("a", &[(1.0, 0.0)])], ..samples::scaling() }.into(), "logarithmic"),
        (HeatMap { rows: vec![], ..samples::heat() }.into(), "no rows"),
        (HeatMap { columns: samples::names(&["a"]), ..samples::heat() }.into(), "12 values, 1 are due"),
        (HeatMap { sheet: Sheet::one_column().height(60.0), ..samples::heat() }.into(), "needed"),
        (Cdf { series: vec![], ..samples::latencies() }.into(), "no series"),
        (Distribution { classes: vec![], ..samples::degrees() }.into(), "no classes"),
    ];
    for (figure, part) in figures {
        let error = figure.svg().expect_err(part).to_string();
        assert!(error.contains(part), "{error} | {part}");
    }
    let negative = GroupedBars { series: vec![BarSeries::of("base", &[-1.0; 5])], ..bars };
    assert!(negative.csv().is_err());
    let points = vec![[1.0, 0.6], [2.0, 0.4]];
    let falls = CdfSeries { name: "s".into(), points, left_out: 0 };
    assert!(Cdf { series: vec![falls], ..samples::latencies() }.svg().is_err());
}

#[test]
fn nothing_but_gaps_is_still_a_figure() {
    let nan = f64::NAN;
    let mut bars = samples::few_bars();
    for series in &mut bars.series {
        series.bars = vec![Bar::default(); 5];
    }
    let mut lines = samples::scaling();
    lines.ideal = None;
    lines.series = vec![LineSeries::of("a", &[(1.0, nan), (nan, 1.0), (2.0, f64::INFINITY)])];
    let mut heat = samples::heat();
    heat.values = vec![vec![None; 12]; 8];
    let cdf = Cdf { series: vec![CdfSeries::of("a", &[nan, nan])], ..samples::latencies() };
    let rows = vec![DistributionRow::of("a", &[0.0; 6]), DistributionRow::of("b", &[nan; 6])];
    let shares = Distribution { rows, ..samples::degrees() };
    let figures: [Figure; 5] = [bars.into(), lines.into(), heat.into(), cdf.into(), shares.into()];
    for figure in figures {
        let svg = figure.svg().unwrap();
        xml::check("gaps", &svg);
        assert!(svg.contains("n/a"), "{svg}");
    }
}

/// Figures of many sizes with odd names and values: each is sound or an error, and none panics.
#[test]
fn any_bars_are_sound_or_an_error() {
    let mut dice = Dice::new(1);
    let mut drawn = 0;
    for round in 0..100 {
        let mut up_to = |most: usize| (dice.roll() * most as f64) as usize;
        let (groups, series) = (1 + up_to(25), 1 + up_to(9));
        let words = ["a", "SGEMM", "a long name of a kernel", "", "Stencil-2D", "ü<&>", "名前"];
        let names = |count: usize, up_to: &mut dyn FnMut(usize) -> usize| -> Vec<String> {
            (0..count).map(|i| format!("{}{i}", words[up_to(words.len())])).collect()
        };
        let groups = names(groups, &mut up_to);
        let series_names = names(series, &mut up_to);
        let values = [0.0, 0.5, 1.0, 1.7, 3.0, 17.0, 1e9, 1e-9, f64::NAN, f64::INFINITY, 1e308];
        let spread = if round % 2 == 0 { 6 } else { values.len() };
        let mut bar = || Bar {
            value: Some(values[up_to(spread)]),
            error: (up_to(3) == 0).then(|| values[up_to(spread)]),
            published: (up_to(3) == 0).then(|| values[up_to(spread)]),
        };
        let series: Vec<BarSeries> = series_names
            .into_iter()
            .map(|name| BarSeries::new(&name, (0..groups.len()).map(|_| bar()).collect()))
            .collect();
        let baseline = match round % 3 {
            0 => Baseline::None,
            1 => Baseline::Relative("base".to_owned()),
            _ => Baseline::Series { name: series[0].name.clone(), drawn: round % 2 == 0 },
        };
        let sheet = if round % 4 < 3 { Sheet::two_columns() } else { Sheet::one_column() };
        let mut figure = GroupedBars {
            groups_name: String::new(),
            sheet: sheet.better(Better::Higher).height(100.0 + up_to(200) as f64),
            axis: Axis::new("time over base", "s"),
            groups,
            series,
            baseline,
            mean: [Mean::Geometric, Mean::None, Mean::Arithmetic][up_to(3)],
            cut_off: (up_to(2) == 0).then_some(4.0),
        };
        if up_to(3) == 0 {
            figure.sheet = figure.sheet.titled("A title that may take more than a line of a column's width, or not");
        }
        match figure.svg() {
            Ok(svg) => {
                xml::check(&format!("round {round}"), &svg);
                drawn += 1;
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        figure.csv().unwrap();
    }
    assert!(drawn > 60, "{drawn}");
}

#[test]
fn any_lines_and_cells_are_sound_or_an_error() {
    let mut dice = Dice::new(2);
    let mut drawn = 0;
    for round in 0..90 {
        let mut up_to = |most: usize| (dice.roll() * most as f64) as usize;
        let values = [0.5, 1.0, 1.7, 3.0, 170.0, 12.0, 1e9, 1e-9, f64::NAN, f64::INFINITY, 1e308, -3.0, 0.0];
        let spread = [6, 10, values.len()][round % 3];
        let scales = [Scale::Linear, Scale::Log2, Scale::Log10];
        let scale = [scales[up_to(3)], scales[up_to(3)]];
        let sheet = Sheet::one_column().better(Better::Lower).height(110.0 + up_to(100) as f64);
        let series: Vec<LineSeries> = (0..1 + up_to(8))
            .map(|i| {
                let error = (i % 2 == 0).then(|| values[i]);
                let mut point = || LinePoint { x: values[up_to(spread)], y: Some(values[up_to(spread)]), error };
                LineSeries::new(&format!("series {i}"), (0..6).map(|_| point()).collect())
            })
            .collect();
        let [x, y] = scale.map(|scale| Axis::new("latency of a persist", "ns").scale(scale));
        let x = if up_to(3) == 0 { x.range(2.0, 100.0) } else { x };
        let cells = (0..5).map(|_| (0..4).map(|_| Some(values[up_to(spread)])).collect()).collect();
        let samples: Vec<f64> = (0..50).map(|_| values[up_to(spread)]).collect();
        let lines = Lines { sheet: sheet.clone(), x: x.clone(), y: y.clone(), series, ideal: None };
        let cdf = Cdf {
            sheet: sheet.clone(),
            x,
            of: "persists".to_owned(),
            series: vec![CdfSeries::of("a", &samples), CdfSeries::of("b", &samples[..3])],
        };
        let heat = HeatMap {
            sheet,
            axis: y,
            rows_name: "rows".to_owned(),
            rows: (0..5).map(|i| format!("row {i}")).collect(),
            columns_name: "columns".to_owned(),
            columns: (0..4).map(|i| format!("{}", i * 1000)).collect(),
            values: cells,
        };
        let figures: [Figure; 3] = [lines.into(), cdf.into(), heat.into()];
        for figure in figures {
            if let Ok(svg) = figure.svg() {
                xml::check(&format!("round {round}"), &svg);
                drawn += 1;
            }
        }
    }
    assert!(drawn > 140, "{drawn}");
}

#[test]
fn any_stacks_are_sound_or_an_error() {
    let mut dice = Dice::new(4);
    let mut drawn = 0;
    for round in 0..60 {
        let mut up_to = |most: usize| (dice.roll() * most as f64) as usize;
        let values = [0.0, 3.0, 20.0, 70.0, f64::NAN, 1e300];
        let (groups, bars, parts) = (1 + up_to(24), 1 + up_to(5), 1 + up_to(9));
        let spread = [4, 5, 6][round % 3];
        let mut stack = |b: usize| {
            let name = if bars == 1 { String::new() } else { format!("scheme{b}") };
            Stack { name, values: (0..parts).map(|_| Some(values[up_to(spread)])).collect() }
        };
        let mut group = |g: usize| StackGroup { name: format!("Kernel{g}"), bars: (0..bars).map(&mut stack).collect() };
        let groups: Vec<StackGroup> = (0..groups).map(&mut group).collect();
        let parts: Vec<String> = (0..parts).map(|p| format!("part {p}")).collect();
        let row =
            |group: &StackGroup| DistributionRow { name: group.name.clone(), counts: group.bars[0].values.clone() };
        let shares = Distribution {
            sheet: Sheet::two_columns(),
            of: "accesses".to_owned(),
            class: "lines touched:".to_owned(),
            classes: parts.clone(),
            rows: groups.iter().map(row).collect(),
        };
        let axis = Axis::new("resident warp cycles", "%");
        let stacked = StackedBars {
            sheet: Sheet::two_columns().better(Better::Lower),
            axis,
            parts,
            groups,
            groups_name: String::new(),
        };
        let figures: [Figure; 2] = [stacked.into(), shares.into()];
        for figure in figures {
            if let Ok(svg) = figure.svg() {
                xml::check(&format!("round {round}"), &svg);
                drawn += 1;
            }
        }
    }
    assert!(drawn > 100, "{drawn}");
}
