//! Checks of the result and expected figures.

use super::reader::{Reader, unknown};
use crate::data::argument::ArgumentKind;
use crate::data::reference;
use crate::expr::{Type, Value};
use crate::manifest::buffers::Profile;
use crate::manifest::buffers::determined;
use crate::manifest::checks::{Check, CheckKind, Expectation, ReferenceArg};
use crate::manifest::element::type_of;
use crate::manifest::schema;
use durawarp_base::document::{Item, Place, TomlTable, check, quoted};

impl Reader<'_> {
    /// `[verify]` or `[[verify]]`; a manifest without one is compared with the functional run.
    pub(crate) fn checks(&mut self, root: TomlTable<'_>) -> Vec<Check> {
        let mut checks: Vec<Check> = Vec::new();
        for table in root.tables("verify") {
            if let Some(mut check) = self.check(table) {
                let same = checks.iter().filter(|other| other.name == check.name).count();
                if same > 0 {
                    check.name = format!("{} ({})", check.name, same + 1);
                }
                checks.push(check);
            }
        }
        checks
    }

    fn check(&mut self, table: TomlTable<'_>) -> Option<Check> {
        let place = table.place();
        let item = table.get("ref")?;
        let Some(form) = item.table() else {
            let fault =
                item.place().fault(format!("`ref` must be a table with the key `kind`, found {}", item.described()));
            self.fault(fault.with_help("`{kind = \"expr\", expr = \"a[idx] + b[idx]\"}`"));
            return None;
        };
        let kind_name = form.text("kind").map(|(kind, _)| kind);
        let reference = kind_name.and_then(|kind| kind.strip_prefix("rust:"));
        // A reference in Rust has arguments of its own, which `reference` checks; the schema has all other
        // kinds.
        if reference.is_none() {
            check(&schema::REFERENCE_KINDS, item, "`ref`", self.faults);
        }
        let elementwise = reference.is_some() || matches!(kind_name, Some("expr" | "file"));
        if elementwise || matches!(kind_name, Some("functional" | "invariant")) {
            self.allowed_keys(table, kind_name.unwrap_or(""), elementwise);
        }
        // The other kinds have no single target, and do not look at this one.
        let target = if elementwise { self.target(table) } else { Some((0, 0)) };
        let kind = match (kind_name?, reference) {
            (_, Some(name)) => self.reference(form, name, target),
            ("expr", _) => {
                let scope = self.names.in_verify(true);
                // The expression is compiled before a missing target ends this, so that the faults of both
                // are reported.
                let expr = form.get("expr").and_then(|item| self.expr(item, &scope));
                let (buffer, field) = target?;
                let expr = expr?;
                let elem = self.buffers[buffer].fields[field].elem;
                if type_of(elem) == Type::Int && expr.ty() == Type::Float {
                    let fault = expr.not_an_integer("an element of an integer buffer");
                    self.fault(fault);
                }
                Some(CheckKind::Expr { buffer, field, expr })
            }
            ("file", _) => {
                let (file, place) = form.text("file")?;
                let (buffer, field) = target?;
                Some(CheckKind::File { buffer, field, file: file.to_owned(), place })
            }
            ("functional", _) => Some(CheckKind::Functional { buffers: self.compared(table) }),
            ("invariant", _) => {
                let scope = self.names.in_verify(false);
                self.integer(form.get("expr")?, &scope, "an invariant").map(CheckKind::Invariant)
            }
            _ => None,
        }?;
        let elem = match &kind {
            CheckKind::Expr { buffer, field, .. }
            | CheckKind::File { buffer, field, .. }
            | CheckKind::Reference { buffer, field, .. } => Some(self.buffers[*buffer].fields[*field].elem),
            _ => None,
        };
        let default_rtol = match elem {
            Some(durawarp_kernel::ir::Elem::F32) => 1e-5,
            Some(durawarp_kernel::ir::Elem::F64) => 1e-12,
            _ => 0.0,
        };
        if let CheckKind::Functional { buffers } = &kind {
            self.of_floats(table, buffers);
        }
        let rtol = self.tolerance(table, "rtol", default_rtol);
        let atol = self.tolerance(table, "atol", 0.0);
        let scope = self.names.in_verify(false);
        let sample = self.integer_at(table, "sample", &scope);
        let name = match (table.text("name"), &kind) {
            (Some((name, _)), _) => name.to_owned(),
            (None, CheckKind::Functional { .. }) => "functional".to_owned(),
            (None, CheckKind::Invariant(_)) => "invariant".to_owned(),
            (None, _) => table.text("buffer").map_or("", |(name, _)| name).to_owned(),
        };
        Some(Check { name, place, kind, rtol, atol, sample })
    }

    /// Keys that this kind of check would ignore are faults.
    fn allowed_keys(&mut self, table: TomlTable<'_>, kind: &str, elementwise: bool) {
        for (key, place, _) in table.entries() {
            let meant = match key {
                "buffer" | "field" => elementwise,
                "rtol" | "atol" => elementwise || kind == "functional",
                "sample" => kind == "expr",
                "buffers" => kind == "functional",
                _ => true,
            };
            if !meant {
                let fault = place.fault(format!("`{key}` means nothing in a check of kind `{kind}`"));
                self.fault(fault);
            }
        }
    }

    /// A tolerance is of floats: without one among the buffers that are compared it is a fault.
    fn of_floats(&mut self, table: TomlTable<'_>, buffers: &[usize]) {
        let mut fields = buffers.iter().flat_map(|&buffer| &self.buffers[buffer].fields);
        if fields.any(|field| type_of(field.elem) == Type::Float) {
            return;
        }
        for key in ["rtol", "atol"] {
            if let Some(item) = table.get(key) {
                let message = format!("`{key}` means nothing here: none of the buffers that are compared holds floats");
                let fault = item.place().fault(message);
                self.fault(fault);
            }
        }
    }

    fn tolerance(&mut self, table: TomlTable<'_>, key: &str, default: f64) -> f64 {
        let Some(item) = table.get(key) else { return default };
        let value = item.number().map_or(default, Value::as_f64);
        if !(value >= 0.0 && value.is_finite()) {
            let fault = item.place().fault(format!("`{key}` must be a finite number from 0"));
            self.fault(fault);
        }
        value
    }

    /// Buffer and field that an element-wise check looks at.
    fn target(&mut self, table: TomlTable<'_>) -> Option<(usize, usize)> {
        if table.get("buffer").is_none() {
            let fault = table.place().fault("a check lacks the key `buffer`");
            self.fault(fault);
        }
        let buffer = self.buffer_at(table, "buffer")?;
        let place = table.get("buffer")?.place();
        if self.buffers[buffer].space == crate::manifest::buffers::Space::Const {
            let fault = place.fault(format!("`{}` is constant: there is nothing to check", self.buffers[buffer].name));
            self.fault(fault);
        }
        let names: Vec<String> = self.buffers[buffer].fields.iter().map(|field| field.name.clone()).collect();
        let structured = self.buffers[buffer].is_structured();
        // A check compares numbers: of a structure it has to say which field.
        match (structured, table.text("field")) {
            (false, None) => Some((buffer, 0)),
            (false, Some((_, place))) => {
                let fault = place.fault(format!("buffer `{}` has no fields", self.buffers[buffer].name));
                self.fault(fault);
                None
            }
            (true, None) => {
                let words: Vec<&str> = names.iter().map(String::as_str).collect();
                let fault = place.fault("a buffer of structures is checked field by field: the key `field` is missing");
                self.fault(fault.with_help(format!("one of {}", quoted(&words))));
                None
            }
            (true, Some((name, place))) => {
                let found = names.iter().position(|field| field == name);
                if found.is_none() {
                    let fault = unknown("field", name, &place, names.iter().map(String::as_str));
                    self.fault(fault);
                }
                Some((buffer, found?))
            }
        }
    }

    /// The buffers of a functional check: those named, or every one whose content is determined.
    fn compared(&mut self, table: TomlTable<'_>) -> Vec<usize> {
        match table.get("buffers").and_then(Item::list) {
            Some(items) => {
                let named = |item: &Item<'_>| item.text().map(|text| (text.to_owned(), item.place()));
                let names: Vec<(String, Place)> = items.iter().filter_map(named).collect();
                names.into_iter().filter_map(|(name, place)| self.buffer(&name, &place)).collect()
            }
            None => determined(&self.buffers),
        }
    }

    fn reference(&mut self, form: TomlTable<'_>, name: &str, target: Option<(usize, usize)>) -> Option<CheckKind> {
        let (_, place) = form.text("kind")?;
        let Some(found) = reference::ALL.iter().find(|reference| reference.name == name) else {
            let fault = unknown("reference", name, &place, reference::ALL.iter().map(|r| r.name));
            self.fault(fault);
            return None;
        };
        for (key, place, _) in form.entries() {
            if key != "kind" && !found.args.iter().any(|(arg, _)| *arg == key) {
                let names: Vec<&str> = found.args.iter().map(|(arg, _)| *arg).collect();
                let fault = place.fault(format!("reference `{name}` has no argument `{key}`"));
                let all = || Some(format!("its arguments are {}", quoted(&names)));
                self.fault(fault.with_nearest_or(key, names.iter().copied(), all));
            }
        }
        let scope = self.names.in_verify(false);
        let mut args = Vec::new();
        for (arg, kind) in found.args {
            let Some(item) = form.get(arg) else {
                let fault = form.place().fault(format!("reference `{name}` lacks its argument `{arg}`"));
                self.fault(fault);
                continue;
            };
            args.extend(match kind {
                ArgumentKind::Integers => self.integer_buffer(item).map(ReferenceArg::Buffer),
                ArgumentKind::Integer => self.integer(item, &scope, &format!("`{arg}`")).map(ReferenceArg::Number),
            });
        }
        let (buffer, field) = target?;
        if type_of(self.buffers[buffer].fields[field].elem) == Type::Float {
            let fault = place.fault(format!("reference `{name}` gives integers, the buffer holds floats"));
            self.fault(fault);
        }
        // Arguments with faults were left out, and the rest would be taken for other ones.
        (args.len() == found.args.len()).then_some(CheckKind::Reference { buffer, field, name: found.name, args })
    }

    fn integer_buffer(&mut self, item: Item<'_>) -> Option<usize> {
        let Some(name) = item.text() else {
            let fault = item.place().fault(format!("expected the name of a buffer, found {}", item.described()));
            self.fault(fault);
            return None;
        };
        let number = self.buffer(name, &item.place())?;
        if self.buffers[number].is_structured() || type_of(self.buffers[number].fields[0].elem) == Type::Float {
            let fault = item.place().fault(format!("`{name}` must be a buffer of integers"));
            self.fault(fault);
            return None;
        }
        Some(number)
    }

    /// `[expect]`.
    pub(crate) fn expectations(&mut self, root: TomlTable<'_>, profiles: &[Profile]) -> Vec<Expectation> {
        let Some(all) = root.table("expect") else {
            return Vec::new();
        };
        let scope = self.names.in_verify(false);
        let mut out = Vec::new();
        for (metric, _, item) in all.entries() {
            let Some(table) = item.table() else { continue };
            let value = table.get("value").and_then(|item| self.expr(item, &scope));
            let tolerance = self.tolerance(table, "tol", 0.0);
            let mut names = Vec::new();
            if let Some(item) = table.get("profile") {
                for name in item.list().unwrap_or_else(|| vec![item]) {
                    let Some(text) = name.text() else { continue };
                    if text != "default" && !profiles.iter().any(|profile| profile.name == text) {
                        let fault = unknown("profile", text, &name.place(), profiles.iter().map(|p| p.name.as_str()));
                        self.fault(fault);
                    }
                    names.push(text.to_owned());
                }
            }
            let source = table.text("source").map(|(text, _)| text.to_owned());
            let Some(value) = value else { continue };
            out.push(Expectation { metric: metric.to_owned(), value, tolerance, source, profiles: names });
        }
        out
    }
}
