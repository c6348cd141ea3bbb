//! One HTML page that holds everything: words, tables, figures, data. It loads nothing, follows the reader's
//! light or dark preference, and prints. It runs one script, its own, that sorts tables; without it they
//! stand as written.
//!
//! Text is escaped by the template engine, always. The only markup that passes is SVG which `figure` wrote
//! itself, where text is escaped too: [`Drawing`] cannot be made of anything else. Left out: other scripts,
//! files.

use std::fmt::Write as _;

use minijinja::{AutoEscape, Environment, HtmlEscape, UndefinedBehavior, Value, value::Serde};
use serde::Serialize;

use super::table::Table;
use durawarp_plot::{Figure, FigureError};

/// A page being put together, from top to bottom.
///
/// # Example
/// ```
/// use durawarp_plot::{Axis, LineSeries, Lines, Sheet};
/// use durawarp_studies::report::{Column, Drawing, Page, Table};
/// let lines = Lines {
///     sheet: Sheet::one_column(),
///     x: Axis::new("threads", ""),
///     y: Axis::new("speed-up", ""),
///     series: vec![LineSeries::of("NW", &[(1.0, 1.0), (2.0, 1.8)])],
///     ideal: None,
/// };
/// let mut table = Table::new([Column::text("kernel"), Column::number("cycles")]);
/// table.row(["NW", "1024"]);
/// let mut page = Page::new("Scaling");
/// page.paragraph("One run each.");
/// page.warning("A & B differ.");
/// page.table(table);
/// page.figure(Drawing::new("scaling", "Speed-up by threads.", &lines.into())?);
/// let html = page.html()?;
/// assert!(html.contains("A &amp; B differ.") && html.contains("<svg"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    title: String,
    blocks: Vec<Block>,
}

/// Why there is no page: the template does not fit the data. That is a fault of this program.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be put together: {0}")]
pub struct PageError(#[from] minijinja::Error);

/// One thing on a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Block {
    Heading { id: String, text: String },
    Paragraph { text: String },
    Warning { text: String },
    Note { text: String },
    Listing { caption: String, text: String },
    Table { caption: Option<String>, folded: bool, header: Vec<Cell>, rows: Vec<Vec<Cell>> },
    Settings { caption: String, entries: Vec<(String, String)> },
    Figures { figures: Vec<Shown> },
}

/// A figure and the notes to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Shown {
    drawing: Drawing,
    notes: Vec<String>,
}

/// What the template is given.
#[derive(Debug, Serialize)]
struct Whole<'a> {
    title: &'a str,
    contents: Vec<ContentsLine<'a>>,
    blocks: &'a [Block],
}

/// A line of the contents.
#[derive(Debug, Serialize)]
struct ContentsLine<'a> {
    id: &'a str,
    text: &'a str,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Cell {
    text: String,
    numeric: bool,
}

/// A figure for a page, with its data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drawing {
    name: String,
    caption: String,
    width_pt: f64,
    svg: String,
    csv: String,
    link: String,
}

impl Drawing {
    /// Draws a figure. `name` is that of the file its data is saved as, without an ending.
    ///
    /// # Errors
    /// When the figure cannot be drawn.
    pub fn new(name: &str, caption: &str, figure: &Figure) -> Result<Drawing, FigureError> {
        let (svg, csv) = (figure.svg()?, figure.csv()?);
        let link = format!("data:text/csv;charset=utf-8,{}", percent_encoded(&csv));
        let (name, caption, width_pt) = (name.to_owned(), caption.to_owned(), figure.sheet().width_pt);
        Ok(Drawing { name, caption, width_pt, svg, csv, link })
    }

    /// The figure as an SVG document.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// Its data as CSV.
    pub fn csv(&self) -> &str {
        &self.csv
    }
}

impl Page {
    /// An empty page.
    pub fn new(title: &str) -> Page {
        Page { title: title.to_owned(), blocks: Vec::new() }
    }

    /// Adds a heading.
    pub fn heading(&mut self, text: &str) {
        let id = format!("part-{}", self.contents().count() + 1);
        self.blocks.push(Block::Heading { id, text: text.to_owned() });
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph { text: text.to_owned() });
    }

    /// Adds a warning, which stands out.
    pub fn warning(&mut self, text: &str) {
        self.blocks.push(Block::Warning { text: text.to_owned() });
    }

    /// Adds a note to what stands above it.
    pub fn note(&mut self, text: &str) {
        match self.blocks.last_mut() {
            Some(Block::Figures { figures }) => {
                figures.iter_mut().last().into_iter().for_each(|shown| shown.notes.push(text.to_owned()));
            }
            _ => self.blocks.push(Block::Note { text: text.to_owned() }),
        }
    }

    /// Adds text as it was written, line by line.
    pub fn listing(&mut self, caption: &str, text: &str) {
        self.blocks.push(Block::Listing { caption: caption.to_owned(), text: text.to_owned() });
    }

    /// Adds a table that is folded away under its caption; on paper it is not.
    pub fn folded_table(&mut self, caption: &str, table: Table) {
        self.put_table(table.caption(caption), true);
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.put_table(table, false);
    }

    fn put_table(&mut self, table: Table, folded: bool) {
        let cell = |text: &str, numeric| Cell { text: text.to_owned(), numeric };
        let header = table.columns.iter().map(|column| cell(&column.name, column.numeric)).collect();
        let row = |row: Vec<&str>| row.iter().zip(&table.columns).map(|(text, c)| cell(text, c.numeric)).collect();
        let rows = table.even_rows().map(row).collect();
        self.blocks.push(Block::Table { caption: table.caption.clone(), folded, header, rows });
    }

    /// Adds settings: keys and values, folded away under their caption.
    pub fn settings<K: Into<String>, V: Into<String>>(
        &mut self,
        caption: &str,
        entries: impl IntoIterator<Item = (K, V)>,
    ) {
        let entries = entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        self.blocks.push(Block::Settings { caption: caption.to_owned(), entries });
    }

    /// Adds a figure with its caption and its data; figures that follow each other stand side by side.
    pub fn figure(&mut self, drawing: Drawing) {
        let shown = Shown { drawing, notes: Vec::new() };
        match self.blocks.last_mut() {
            Some(Block::Figures { figures }) => figures.push(shown),
            _ => self.blocks.push(Block::Figures { figures: vec![shown] }),
        }
    }

    /// Its headings, with what links call them.
    fn contents(&self) -> impl Iterator<Item = ContentsLine<'_>> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Heading { id, text } => Some(ContentsLine { id, text }),
            _ => None,
        })
    }

    /// The page as HTML. The same page gives the same bytes.
    ///
    /// # Errors
    /// When the template does not fit the data, which is a fault of this program.
    pub fn html(&self) -> Result<String, PageError> {
        let mut engine = Environment::new();
        engine.set_auto_escape_callback(|_| AutoEscape::Html);
        engine.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        engine.add_filter("breakable", breakable);
        engine.add_template("page.html", include_str!("page.html"))?;
        // One heading or two are in sight anyway.
        let contents: Vec<ContentsLine<'_>> = self.contents().collect();
        let contents = if contents.len() > 2 { contents } else { Vec::new() };
        let whole = Whole { title: &self.title, contents, blocks: &self.blocks };
        Ok(engine.get_template("page.html")?.render(Value::from(Serde(&whole)))?)
    }
}

/// A name, escaped, that may go on in the next line behind a dot or an underscore, and nowhere else
/// within a word.
fn breakable(name: &str) -> Value {
    let mut html = HtmlEscape(name).to_string();
    for mark in ['.', '_'] {
        html = html.replace(mark, &format!("{mark}<wbr>"));
    }
    Value::from_safe_string(html)
}

/// Text as part of an address: all bytes but letters, digits and `-._~` as `%` and two digits.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Column, Table};
    use durawarp_plot::{Axis, BarSeries, Baseline, GroupedBars, Mean, Sheet};

    const EVIL: &str = "<script>alert(\"x\")</script> & '";

    fn evil_page() -> String {
        let bars = GroupedBars {
            groups_name: String::new(),
            sheet: Sheet::one_column().titled(EVIL),
            axis: Axis::new(EVIL, EVIL),
            groups: vec![EVIL.to_owned()],
            series: vec![BarSeries::of(EVIL, &[2.0])],
            baseline: Baseline::Relative(EVIL.to_owned()),
            mean: Mean::Geometric,
            cut_off: None,
        };
        let mut table = Table::new([Column::text(EVIL), Column::number("n")]).caption(EVIL);
        table.row([EVIL, "1", "a cell too many"]);
        table.row([EVIL]);
        let mut page = Page::new(EVIL);
        page.heading(EVIL);
        page.paragraph(EVIL);
        page.warning(EVIL);
        page.table(table);
        page.settings(EVIL, [(EVIL, EVIL)]);
        page.figure(Drawing::new(EVIL, EVIL, &bars.into()).unwrap());
        page.html().unwrap()
    }

    #[test]
    fn no_text_becomes_markup() {
        let html = evil_page();
        let own = html.matches("<script nonce=\"sorting\">").count();
        assert_eq!((own, html.matches("<script").count()), (1, 1), "{html}");
        assert!(!html.contains("alert(\"x\")"), "{html}");
        assert!(html.matches("&lt;script&gt;").count() > 10);
    }

    #[test]
    fn contents_name_every_heading_where_there_are_some() {
        let of = |headings: &[&str]| {
            let mut page = Page::new("a page");
            headings.iter().for_each(|heading| page.heading(heading));
            page.html().unwrap()
        };
        let long = of(&["Figures", "Results & more", "Digests"]);
        for (nth, heading) in ["Figures", "Results &amp; more", "Digests"].iter().enumerate() {
            let nth = nth + 1;
            assert!(long.contains(&format!("<a href=\"#part-{nth}\">{heading}</a>")), "{long}");
            assert!(long.contains(&format!("<h2 id=\"part-{nth}\">{heading}</h2>")), "{long}");
        }
        assert!(!of(&["Figures", "Results"]).contains("<nav"));
    }

    #[test]
    fn notes_stay_with_their_figure_and_figures_share_a_row() {
        let lines = durawarp_plot::Lines {
            sheet: Sheet::one_column(),
            x: Axis::new("threads", ""),
            y: Axis::new("speed-up", ""),
            series: vec![durawarp_plot::LineSeries::of("NW", &[(1.0, 1.0), (2.0, 1.8)])],
            ideal: None,
        };
        let mut page = Page::new("a page");
        for name in ["one", "two"] {
            page.figure(Drawing::new(name, name, &lines.clone().into()).unwrap());
            page.note(&format!("note of {name}"));
        }
        page.paragraph("after");
        let html = page.html().unwrap();
        assert_eq!((html.matches("<div class=\"figures\">").count(), html.matches("</figure>").count()), (1, 2));
        let [one, note, two] =
            ["<figcaption>one", "note of one", "<figcaption>two"].map(|text| html.find(text).unwrap());
        assert!(one < note && note < two);
    }

    #[test]
    fn settings_stand_under_their_caption() {
        let mut page = Page::new("a page");
        page.settings("The machine", [("sm.count", "20"), ("l2.ways", "16")]);
        let html = page.html().unwrap();
        for word in ["The machine", "sm.count", "20", "l2.ways", "16"] {
            assert!(html.contains(word), "no `{word}` in {html}");
        }
    }

    #[test]
    fn a_page_loads_nothing() {
        let html = evil_page();
        for way in ["http:", "https:", "src=", "<link", "@import", "onload", "<iframe"] {
            let used = html.replace("=\"http://www.w3.org/", "").matches(way).count();
            assert_eq!(used, 0, "{way}");
        }
        assert!(html.contains("default-src 'none'"));
    }

    #[test]
    fn tables_are_even_and_numbers_stand_right() {
        let html = evil_page();
        assert!(!html.contains("a cell too many"));
        assert_eq!(html.matches("<td class=\"number\">").count(), 2);
        assert_eq!(html.matches("<th class=\"number\"").count(), 1);
    }

    #[test]
    fn headings_break_between_words_alone_and_wide_tables_say_that_they_scroll() {
        let of = |columns: usize| {
            let mut page = Page::new("a page");
            page.table(Table::new((0..columns).map(|_| Column::number("sm.slots<full"))));
            page.html().unwrap()
        };
        let narrow = of(8);
        assert_eq!(narrow.matches(">sm.<wbr>slots&lt;full</th>").count(), 8, "{narrow}");
        assert!(!narrow.contains("scrolls sideways") && of(9).contains("9 columns: it scrolls sideways"));
    }

    #[test]
    fn data_can_be_saved_as_it_is() {
        let html = evil_page();
        let link = html.split("data:text/csv;charset=utf-8,").nth(1).unwrap().split('"').next().unwrap();
        let mut bytes = Vec::new();
        let mut rest = link.as_bytes();
        while let [first, after @ ..] = rest {
            let (byte, used) = match first {
                b'%' => (u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap(), 3),
                other => (*other, 1),
            };
            bytes.push(byte);
            rest = &rest[used..];
        }
        let csv = String::from_utf8(bytes).unwrap();
        assert!(csv.starts_with("kind,group,series,") && csv.contains("<script>"), "{csv}");
    }

    #[test]
    fn the_same_page_gives_the_same_bytes() {
        assert_eq!(evil_page(), evil_page());
        assert!(Page::new("").html().unwrap().contains("</html>"));
    }
}
