//! A reproduction as files: tables as CSV, verdicts, runs, a page of Markdown; and as text for a terminal.

use super::{Figure, FigureTable, Finding, Reproduction};
use crate::papers::Cell;
use crate::report::{Markdown, origin_of};
use durawarp_plot::{Figure as Drawing, FigureError};

/// A file: its name and its content.
pub(crate) type File = (String, String);

/// A figure and what was found.
type Found = (&'static Figure, Finding);

/// A figure's picture as SVG, where it has one, or why it cannot be drawn.
type Picture = Option<Result<String, FigureError>>;

/// The reading that the paper's machine takes, or the machine that was named.
const OWN: &str = "machine";

/// In place of a verdict, where nothing was measured.
const NO_VERDICT: &str = "no verdict";

impl Reproduction {
    /// Everything as files.
    pub fn files(&self) -> Vec<File> {
        let mut files = Vec::new();
        let pictures: Vec<Picture> = self.findings.iter().map(|found| Some(self.picture(found)?.svg())).collect();
        let page = self.page(&pictures);
        for ((figure, finding), picture) in self.findings.iter().zip(pictures) {
            files.extend(finding.tables.iter().map(|table| (format!("{}.csv", table.name), table.csv())));
            let drawn = picture.and_then(Result::ok);
            files.extend(drawn.map(|drawn| (format!("{}.svg", figure.name), drawn)));
        }
        for (reading, findings) in &self.readings {
            for (_, finding) in self.different(findings) {
                let named = |table: &FigureTable| (format!("{}.{}.csv", table.name, reading.name), table.csv());
                files.extend(finding.tables.iter().map(named));
            }
        }
        files.push(("asks.csv".to_owned(), self.asks().csv()));
        files.push(("runs.csv".to_owned(), self.runs().csv()));
        files.push((format!("{}.md", self.paper.name), page));
        files
    }

    /// Everything for a terminal.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (figure, finding) in &self.findings {
            out += &format!("{}: {}\n\n", figure.name, figure.title);
            for table in &finding.tables {
                out += &format!("{}\n", table.text());
            }
            for ask in &finding.asks {
                out += &format!("  {:14} {}\n{:17}{}\n", ask.verdict.words(), ask.text, "", ask.evidence);
            }
            if let Some(why) = finding.unmeasured {
                out += &format!("  {NO_VERDICT:14} {why}\n");
            }
            for note in &finding.notes {
                out += &format!("  note: {note}\n");
            }
            out += "\n";
        }
        // After the findings, what they rest on: other readings, runs that failed, notes.
        if !self.readings.is_empty() {
            out += &format!("{}\n", self.bracket().text());
            for (reading, _) in &self.readings {
                out += &format!("  {}: {} ({})\n", reading.name, reading.set.join(", "), reading.source);
            }
            out += "\n";
        }
        for record in &self.records {
            if let Err(why) = &record.result {
                out += &format!("run `{}` failed: {why}\n", record.label);
            }
        }
        for note in &self.notes {
            out += &format!("note: {note}\n");
        }
        if !self.records.is_empty() {
            out += &self.program;
        }
        out + &self.tally_text()
    }

    /// A figure's picture, which says of what it is.
    fn picture(&self, (figure, finding): &Found) -> Option<Drawing> {
        let setting =
            |name: &str| self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let machine = setting("machine").unwrap_or_default();
        let changed = setting("changes to it").is_some_and(|changes| changes != "none");
        let machine = if changed { format!("{machine} with changes") } else { machine.to_owned() };
        let mut drawing = figure.picture(finding)?;
        let version = setting("version").unwrap_or_default();
        drawing.sheet_mut().origin = Some(origin_of(version, &machine, setting("profile")));
        Some(drawing)
    }

    /// How many asks are met and not; nothing where none was judged.
    fn tally_text(&self) -> String {
        let [met, not_met, unjudged] = self.tally();
        let many = |count: usize| if count == 1 { "1 ask".to_owned() } else { format!("{count} asks") };
        match (met + not_met, unjudged) {
            (0, _) => String::new(),
            (_, 0) => format!("{} met, {not_met} not\n", many(met)),
            _ => format!("{} met, {not_met} not, {unjudged} not applicable\n", many(met)),
        }
    }

    /// Figures of a reading that are not as those of the machine: what needs no run is.
    fn different<'r>(&'r self, findings: &'r [Found]) -> impl Iterator<Item = &'r Found> {
        let own = self.findings.iter().map(|(_, finding)| finding);
        findings.iter().zip(own).filter(|((_, other), own)| other != *own).map(|(found, _)| found)
    }

    /// Every ask and its verdict, under each reading.
    fn asks(&self) -> FigureTable {
        let mut table = FigureTable::new("asks", "Asks", &["figure", "verdict", "ask", "evidence", "reading"]);
        let own = [(OWN, &self.findings)];
        let others = self.readings.iter().map(|(reading, findings)| (reading.name, findings));
        for (reading, findings) in own.into_iter().chain(others) {
            for (figure, finding) in findings {
                for ask in &finding.asks {
                    let cells = [figure.name, ask.verdict.words(), ask.text, &ask.evidence, reading];
                    table.push(cells.map(Cell::from).to_vec());
                }
                if let Some(why) = finding.unmeasured.filter(|_| reading == OWN) {
                    table.push([figure.name, NO_VERDICT, "-", why, reading].map(Cell::from).to_vec());
                }
            }
        }
        table
    }

    /// Every ask and its verdicts side by side.
    fn bracket(&self) -> FigureTable {
        let names = self.readings.iter().map(|(reading, _)| reading.name);
        let columns: Vec<&str> = ["figure", "ask", OWN].into_iter().chain(names).collect();
        let mut table = FigureTable::new("readings", "verdicts under each reading of the paper", &columns);
        for (nth, (figure, finding)) in self.findings.iter().enumerate() {
            for (at, ask) in finding.asks.iter().enumerate() {
                let mut row = [figure.name, ask.text, ask.verdict.words()].map(Cell::from).to_vec();
                row.extend(self.readings.iter().map(|(_, findings)| {
                    let other = findings[nth].1.asks.get(at).filter(|other| other.text == ask.text);
                    Cell::from(other.map_or("-", |other| other.verdict.words()))
                }));
                table.push(row);
            }
        }
        table
    }

    /// Every run, its digests, and the command line that repeats it.
    fn runs(&self) -> FigureTable {
        let mut table = FigureTable::new("runs", "Runs", &["run", "digest", "memory digest", "fault", "command"]);
        for record in &self.records {
            let cells = match &record.result {
                Ok([digest, memory]) => [record.label.as_str(), digest, memory, "", &record.command],
                Err(why) => [record.label.as_str(), "", "", why, &record.command],
            };
            table.push(cells.map(Cell::from).to_vec());
        }
        table
    }

    /// One page: settings, figures with asks, runs, parameters without a source.
    fn page(&self, pictures: &[Picture]) -> String {
        let mut page = Markdown::new();
        page.heading(1, &format!("{}, reproduced", self.paper.title));
        let settings = self.settings.iter().map(|(name, value)| format!("{name}: {value}"));
        page.list(settings.chain(self.notes.iter().cloned()));
        for ((figure, finding), picture) in self.findings.iter().zip(pictures) {
            let name = figure.name;
            page.heading(2, &format!("{name}: {}", figure.title));
            match picture {
                Some(Ok(_)) => page.image(name, &format!("{name}.svg")),
                Some(Err(why)) => page.paragraph(&format!("No picture: {why}.")),
                None => {}
            }
            for table in &finding.tables {
                page.table(&table.page());
            }
            for note in &finding.notes {
                page.paragraph(note);
            }
        }
        // A reading shows only figures that are not as those above.
        for (reading, findings) in &self.readings {
            page.heading(2, &format!("Reading {}: what differs", reading.name));
            page.paragraph(&format!("{}: {}.", reading.set.join(", "), reading.source));
            for (figure, finding) in self.different(findings) {
                page.heading(3, &format!("{}: {}", figure.name, figure.title));
                for table in &finding.tables {
                    page.table(&table.page());
                }
            }
        }
        if !self.readings.is_empty() {
            page.heading(2, "Readings beside each other");
            page.table(&self.bracket().page());
        }
        page.heading(2, "Asks");
        page.table(&self.asks().page());
        page.heading(2, "Runs");
        if let Some(record) = self.records.first() {
            page.paragraph(self.program.trim_end());
            page.paragraph(&format!(
                "`runs.csv` has the command line that repeats each, the first: `{}`",
                record.command
            ));
        }
        // Without the last column, the command lines: they are too long for a page.
        let mut runs = self.runs();
        runs.columns.pop();
        runs.rows.iter_mut().for_each(|row| row.truncate(runs.columns.len()));
        page.table(&runs.page());
        let mut chosen = FigureTable::new("assumptions", "", &["parameter", "value", "why"]);
        for row in &self.assumptions {
            chosen.push(row.iter().map(|cell| Cell::from(cell.as_str())).collect());
        }
        page.heading(2, "Parameters without a source of their own");
        page.table(&chosen.page());
        page.finish()
    }
}
