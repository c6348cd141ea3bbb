//! A device's table as its file has it, read with code of its own: none of the simulator's reader or types.
//!
//! The form of the file is that of `crates/simulation/src/config/device.rs`. Faults panic: files with faults
//! are the business of other tests.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    Opens,
    Closes,
    Reads,
    Writes,
    Refreshes,
}

#[derive(Debug, Clone)]
pub(crate) struct CommandKind {
    pub(crate) name: String,
    pub(crate) does: Does,
    /// Levels of its path: the target is the last of them.
    pub(crate) depth: usize,
    /// It goes to the same bank of every group.
    pub(crate) same_bank: bool,
    pub(crate) slots: u64,
    pub(crate) closes: bool,
    /// Of a refresh: how long its target takes no command.
    pub(crate) busy: u64,
}

/// A least time between two commands.
#[derive(Debug, Clone)]
pub(crate) struct LeastTime {
    pub(crate) before: Vec<usize>,
    pub(crate) after: Vec<usize>,
    /// Levels of the path to the node that both share, 0 for the channel.
    pub(crate) depth: usize,
    /// Between the last slots of both.
    pub(crate) delay: u64,
    pub(crate) window: usize,
    pub(crate) other: bool,
    /// As written, with its scope.
    pub(crate) text: String,
}

/// How often a command refreshes.
#[derive(Debug, Clone)]
pub(crate) struct Refreshed {
    pub(crate) policy: String,
    pub(crate) command: usize,
    /// From a refresh of a rank to its next.
    pub(crate) every: u64,
}

/// A device of a bin and a density.
#[derive(Debug, Clone)]
pub(crate) struct DeviceTable {
    /// How many of each level there are in one of the level above, outermost first; the last one are banks.
    pub(crate) counts: Vec<usize>,
    /// Ranks are the machine's to say.
    pub(crate) has_ranks: bool,
    pub(crate) burst: u64,
    pub(crate) read: u64,
    pub(crate) write: u64,
    /// Levels of the path to what has a data bus of its own.
    pub(crate) bus_depth: usize,
    pub(crate) two_command_buses: bool,
    pub(crate) commands: Vec<CommandKind>,
    pub(crate) least_times: Vec<LeastTime>,
    pub(crate) refreshed: Vec<Refreshed>,
    pub(crate) timing: BTreeMap<String, u64>,
}

impl DeviceTable {
    /// The table of a built-in device.
    pub(crate) fn built_in(name: &str, variant: [&str; 2], ranks: usize, others: &[(&str, u64)]) -> DeviceTable {
        let path = format!("{}/crates/simulation/src/config/devices/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{path}: {fault}"));
        DeviceTable::read(&text, variant, ranks, others)
    }

    /// The table of a file's text, of the first bin and density unless they are named, and so many ranks.
    /// Some timings are others than the file's.
    pub(crate) fn read(text: &str, [bin, density]: [&str; 2], ranks: usize, others: &[(&str, u64)]) -> DeviceTable {
        let file = Value::read(text);
        let variant = |key: &str, name: &str| {
            let found = file.at(key).list().iter().find(|one| name.is_empty() || one.at("name").text() == name);
            found.unwrap_or_else(|| panic!("no {key} {name}"))
        };
        let (bin, density) = (variant("bin", bin), variant("density", density));
        let timing = Expressions::new(&file, bin, density, others);
        let organisation = file.at("organisation");
        let levels: Vec<&str> = organisation.at("levels").list().iter().map(Value::text).collect();
        let count = |level: &&str| {
            let own = density.get("counts").and_then(|counts| counts.get(level));
            let count = || own.unwrap_or_else(|| organisation.at("counts").at(level)).number();
            if *level == "rank" { ranks } else { count() as usize }
        };
        let depth = |level: &str| match level {
            "channel" => 0,
            _ => levels.iter().position(|own| *own == level).unwrap_or_else(|| panic!("no level {level}")) + 1,
        };
        let commands = file.at("commands").entries().iter();
        let commands: Vec<CommandKind> = commands.map(|(name, of)| command(name, of, &depth, &timing)).collect();
        let numbered = |name: &str| {
            let found = commands.iter().position(|command| command.name == name.trim());
            found.unwrap_or_else(|| panic!("no command {name}"))
        };
        let least_time = |scope: &str, line: &str| {
            let (rule, conditions) = line.split_once(';').unwrap_or((line, ""));
            let (commands, delay) = rule.split_once(':').expect("a delay");
            let (before, after) = commands.split_once('>').expect("a command after another");
            let conditions: Vec<&str> = conditions.split(';').map(str::trim).filter(|of| !of.is_empty()).collect();
            let window = conditions.iter().find_map(|of| of.strip_prefix("window"));
            LeastTime {
                before: before.split(',').map(numbered).collect(),
                after: after.split(',').map(numbered).collect(),
                depth: depth(scope),
                delay: timing.value(delay) as u64,
                window: window.map_or(1, |count| count.trim().parse().expect("a number")),
                other: conditions.contains(&"other"),
                text: format!("{line} @ {scope}"),
            }
        };
        let scopes = file.at("constraints").entries().iter();
        let least_times =
            scopes.flat_map(|(scope, lines)| lines.list().iter().map(|line| least_time(scope, line.text())));
        let refreshed = file.get("refresh").map_or(&[][..], Value::list).iter().map(|one| Refreshed {
            policy: one.at("policy").text().to_owned(),
            command: numbered(one.at("command").text()),
            every: timing.value(one.at("every").text()) as u64,
        });
        let cycles = |key: &str| timing.value(organisation.at(key).text()) as u64;
        DeviceTable {
            counts: levels.iter().map(count).collect(),
            has_ranks: levels.contains(&"rank"),
            burst: cycles("burst_cycles"),
            read: cycles("read_cycles"),
            write: cycles("write_cycles"),
            bus_depth: organisation.get("data_bus").map_or(0, |level| depth(level.text())),
            two_command_buses: organisation.at("buses").text() == "row_and_column",
            least_times: least_times.collect(),
            refreshed: refreshed.collect(),
            timing: timing.all(),
            commands,
        }
    }

    /// Banks of the channel.
    pub(crate) fn banks(&self) -> usize {
        self.counts.iter().product()
    }

    /// Number of a command.
    pub(crate) fn command(&self, name: &str) -> usize {
        self.commands.iter().position(|command| command.name == name).unwrap_or_else(|| panic!("no command {name}"))
    }
}

fn command(name: &str, of: &Value, depth: &impl Fn(&str) -> usize, timing: &Expressions) -> CommandKind {
    let flag = |key: &str| of.get(key).is_some_and(|flag| flag.text() == "true");
    let does = match of.at("effect").text() {
        "open" => Does::Opens,
        "close" => Does::Closes,
        "read" => Does::Reads,
        "write" => Does::Writes,
        "refresh" => Does::Refreshes,
        other => panic!("{name} has the effect {other}"),
    };
    // JEDEC's names: REFab takes tRFC, REFpb tRFCpb, REFsb tRFCsb.
    let busy = name.strip_prefix("REF").map(|of| format!("RFC{}", if of == "ab" { "" } else { of }));
    let busy = busy.filter(|_| does == Does::Refreshes).map_or(0, |busy| timing.value(&busy) as u64);
    CommandKind {
        name: name.to_owned(),
        does,
        depth: depth(of.at("target").text()),
        same_bank: flag("same_bank"),
        slots: of.get("cycles").map_or(1, Value::number),
        closes: flag("closes"),
        busy,
    }
}

/// A value of a file; numbers and truth values as they are written.
#[derive(Debug)]
enum Value {
    Text(String),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

impl Value {
    fn read(text: &str) -> Value {
        let table = DeTable::parse(text).unwrap_or_else(|fault| panic!("{fault}"));
        Value::of(&DeValue::Table(table.into_inner()))
    }

    fn of(value: &DeValue<'_>) -> Value {
        match value {
            DeValue::Array(items) => Value::List(items.iter().map(|item| Value::of(item.get_ref())).collect()),
            DeValue::Table(entries) => {
                let entries = entries.iter();
                let own = entries.map(|(key, value)| (key.get_ref().to_string(), Value::of(value.get_ref())));
                Value::Table(own.collect())
            }
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => Value::Text(number.as_str().replace('_', "")),
            DeValue::Float(number) => Value::Text(number.as_str().to_owned()),
            other => Value::Text(other.as_bool().expect("no date").to_string()),
        }
    }

    fn text(&self) -> &str {
        if let Value::Text(text) = self { text } else { panic!("no single value: {self:?}") }
    }

    fn number(&self) -> u64 {
        self.text().parse().expect("a number")
    }

    fn list(&self) -> &[Value] {
        if let Value::List(items) = self { items } else { panic!("no list: {self:?}") }
    }

    fn entries(&self) -> &[(String, Value)] {
        if let Value::Table(entries) = self { entries } else { panic!("no table: {self:?}") }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.entries().iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    fn at(&self, key: &str) -> &Value {
        self.get(key).unwrap_or_else(|| panic!("no `{key}` in {self:?}"))
    }
}

/// Timings as they are written, and how durations become cycles.
struct Expressions {
    written: BTreeMap<String, String>,
    t_ck_ps: f64,
    guard_thousandths: f64,
    guard_is_of_duration: bool,
    down: Vec<String>,
}

impl Expressions {
    fn new(file: &Value, bin: &Value, density: &Value, others: &[(&str, u64)]) -> Self {
        let mut written = BTreeMap::new();
        // What is said of all, then of the bin, then of the density: the last word counts.
        for table in [file, bin, density] {
            let timing = table.get("timing").map_or(&[][..], Value::entries).iter();
            written.extend(timing.map(|(name, value)| (name.clone(), value.text().to_owned())));
        }
        written.extend(others.iter().map(|(name, cycles)| ((*name).to_owned(), cycles.to_string())));
        let rounding = |key: &str| file.get("rounding").and_then(|rounding| rounding.get(key));
        let down = rounding("down").map_or(&[][..], Value::list);
        Expressions {
            written,
            t_ck_ps: duration_ps(bin.at("tCK").text()).expect("a duration"),
            guard_thousandths: rounding("guard_thousandths").map_or(0, Value::number) as f64,
            guard_is_of_duration: rounding("of").is_some_and(|of| of.text() == "duration"),
            down: down.iter().map(|name| name.text().to_owned()).collect(),
        }
    }

    /// The value of an expression in cycles.
    fn value(&self, text: &str) -> i64 {
        self.rounded(text, false)
    }

    fn rounded(&self, text: &str, down: bool) -> i64 {
        let tokens = tokens(text);
        let mut rest = tokens.as_slice();
        let value = self.sum(&mut rest, down);
        assert!(rest.is_empty(), "`{text}` ends in {rest:?}");
        value
    }

    fn all(&self) -> BTreeMap<String, u64> {
        self.written.keys().map(|name| (name.clone(), self.named(name) as u64)).collect()
    }

    fn named(&self, name: &str) -> i64 {
        let text = self.written.get(name).unwrap_or_else(|| panic!("no timing `{name}`"));
        self.rounded(text, self.down.iter().any(|own| own == name))
    }

    fn sum(&self, rest: &mut &[String], down: bool) -> i64 {
        let mut value = self.product(rest, down);
        while let Some(sign) = take(rest, &["+", "-"]) {
            let term = self.product(rest, down);
            value += if sign == "+" { term } else { -term };
        }
        value
    }

    fn product(&self, rest: &mut &[String], down: bool) -> i64 {
        let mut value = self.atom(rest, down);
        while take(rest, &["*"]).is_some() {
            value *= self.atom(rest, down);
        }
        value
    }

    fn atom(&self, rest: &mut &[String], down: bool) -> i64 {
        let (first, after) = rest.split_first().expect("an operand");
        *rest = after;
        if first == "(" || first == "max" {
            if first == "max" {
                take(rest, &["("]).expect("what is the greatest");
            }
            let mut value = self.sum(rest, down);
            while take(rest, &[","]).is_some() {
                value = value.max(self.sum(rest, down));
            }
            take(rest, &[")"]).expect("a bracket that closes");
            return value;
        }
        if let Some(ps) = duration_ps(first) {
            return self.cycles(ps, down);
        }
        first.parse().unwrap_or_else(|_| self.named(first))
    }

    /// JEDEC's rules: a duration may be short of whole cycles by thousandths of a cycle, or of itself.
    fn cycles(&self, ps: f64, down: bool) -> i64 {
        let thousandths = (1000.0 * ps / self.t_ck_ps + 1e-6).floor();
        let of_duration = ((1000.0 - self.guard_thousandths) * ps / self.t_ck_ps + 1e-6).floor();
        let whole = match (down, self.guard_thousandths > 0.0, self.guard_is_of_duration) {
            (true, ..) => (thousandths / 1000.0).floor(),
            (_, false, _) => (ps / self.t_ck_ps - 1e-9).ceil(),
            (_, _, true) => ((of_duration + 1000.0) / 1000.0).floor(),
            (_, _, false) => ((thousandths + 1000.0 - self.guard_thousandths) / 1000.0).floor(),
        };
        whole as i64
    }
}

fn take<'t>(rest: &mut &'t [String], wanted: &[&str]) -> Option<&'t str> {
    let (first, after) = rest.split_first().filter(|(first, _)| wanted.contains(&first.as_str()))?;
    *rest = after;
    Some(first)
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut joins = false;
    for c in text.chars() {
        match tokens.last_mut().filter(|_| joins && is_word(c)) {
            Some(last) => last.push(c),
            None if c.is_whitespace() => {}
            None => tokens.push(c.to_string()),
        }
        joins = is_word(c);
    }
    tokens
}

/// Picoseconds of `7.8us` and the like.
fn duration_ps(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_alphabetic())?);
    let size = [("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9)].into_iter().find(|(name, _)| *name == unit)?.1;
    Some((number.parse::<f64>().ok()? * size).round())
}

#[test]
fn expressions_of_files_are_evaluated() {
    let text = "[rounding]\nguard_thousandths = 26\ndown = ['REFI']\n[timing]\nA = 3\nB = 'A + 2 * max(A, 3.4ns) - (1 + A)'\n\
                FAW = '21ns'\nREFI = '7.8us'\nRFC = '350ns'";
    let bin = "tCK = '0.833ns'\ntiming = { A = 4 }";
    let all = Expressions::new(&Value::read(text), &Value::read(bin), &Value::read(""), &[("B2", 7)]).all();
    let wanted = [("A", 4), ("B", 4 + 2 * 5 - 5), ("B2", 7), ("FAW", 26), ("REFI", 9363), ("RFC", 421)];
    assert_eq!(all.iter().map(|(name, value)| (name.as_str(), *value)).collect::<Vec<_>>(), wanted);
}
