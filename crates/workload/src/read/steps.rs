//! Host steps: launches (their arguments: `args`), copies, fills, swaps, loops.
//!
//! TOML keeps `[[step]]` and `[[loop]]` in two lists; the order in which they run is their order in the file,
//! which their places give back.

use std::sync::Arc;

use super::args::bare_type;
use super::reader::{KernelFact, Reader};
use crate::expr::{Expr, Scope, Type, Value};
use crate::manifest::buffers::BufferStart;
use crate::manifest::buffers::Space;
use crate::manifest::schema;
use crate::manifest::steps::{Arg, EncodeStep, HostStep, LaunchStep, LoopKind, LoopStep, RECOVERY_LIMIT, RecoveryForm};
use durawarp_base::document::{Item, Place, TomlTable, check};
use durawarp_kernel::ir::Param;
use durawarp_kernel::mangled::parameter;

/// Iterations after which a loop that waits for a condition is given up, unless the manifest says otherwise.
const DEFAULT_MAX_ITERATIONS: i64 = 10_000;

impl Reader<'_> {
    /// What is stated of kernels. To be read before the steps that launch them.
    pub(crate) fn kernel_facts(&mut self, root: TomlTable<'_>) {
        for (name, place, item) in root.table("kernel").iter().flat_map(|table| table.entries()) {
            match (
                self.programs.called(name, &place),
                item.table().and_then(|table| table.get("communicates")?.boolean()),
            ) {
                (Ok((_, kernel)), Some(communicates)) => self.facts.push(KernelFact { kernel, communicates }),
                (Err(faults), _) => faults.into_iter().for_each(|fault| self.fault(fault)),
                _ => {}
            }
        }
    }

    /// The host program.
    pub(crate) fn steps(&mut self, root: TomlTable<'_>) -> Vec<HostStep> {
        let mut scope = self.names.in_steps();
        self.variables(&[root], &mut scope);
        let steps = self.body(root, &scope);
        if root.get("step").is_none() && root.get("loop").is_none() {
            let fault = root.place().fault("there is nothing to run: no `[[step]]` and no `[[loop]]`");
            self.fault(fault);
        }
        steps
    }

    /// What runs at boot after a power failure, and how far it may go.
    pub(crate) fn recovery(&mut self, root: TomlTable<'_>) -> RecoveryForm {
        let mut scope = self.names.in_steps();
        self.variables(&root.tables("recovery"), &mut scope);
        let part = |reader: &mut Self, table: TomlTable<'_>| match table.get("step") {
            Some(_) => reader.loop_step(table, &scope),
            None => reader.step(table, &scope),
        };
        let steps = root.tables("recovery").into_iter().filter_map(|table| part(self, table)).collect();
        let limit = root.get("recovery_limit").and_then(Item::number).map_or(RECOVERY_LIMIT, Value::bits);
        RecoveryForm { steps, limit }
    }

    /// The steps and loops of a table, in file order.
    fn body(&mut self, table: TomlTable<'_>, scope: &Scope) -> Vec<HostStep> {
        let mut parts: Vec<(usize, bool, TomlTable<'_>)> = Vec::new();
        for (key, is_loop) in [("step", false), ("loop", true)] {
            parts.extend(table.tables(key).into_iter().map(|part| (part.place().start(), is_loop, part)));
        }
        parts.sort_by_key(|(start, ..)| *start);
        parts
            .into_iter()
            .filter_map(|(_, is_loop, part)| if is_loop { self.loop_step(part, scope) } else { self.step(part, scope) })
            .collect()
    }

    fn step(&mut self, table: TomlTable<'_>, scope: &Scope) -> Option<HostStep> {
        let place = table.place();
        // The key says what a step is. None or several of these keys were reported by the schema check.
        if table.get("kernel").is_some() {
            self.launch(table, scope).map(|launch| HostStep::Launch(Box::new(launch)))
        } else if table.get("copy").is_some() {
            let from = self.span(table, "copy", "from_index", scope);
            let to = self.span(table, "to", "to_index", scope);
            let count = self.integer_at(table, "count", scope);
            // All parts are read before a missing one ends this, so that the faults of each are reported.
            let (from, to) = (from?, to?);
            let form = |span: &BufferStart| self.buffers[span.buffer].fields.iter().map(|f| f.elem).collect::<Vec<_>>();
            if form(&from) != form(&to) {
                let fault = place.fault("a copy needs two buffers of the same element type");
                self.fault(fault);
            }
            Some(HostStep::Copy { from, to, count, place })
        } else if table.get("fill").is_some() {
            let to = self.span(table, "fill", "index", scope);
            let count = self.integer_at(table, "count", scope);
            let value = table.get("value").and_then(|item| self.expr(item, scope));
            let (to, value) = (to?, value?);
            if self.buffers[to.buffer].is_structured() {
                let fault = place.fault("a buffer of structures cannot be filled");
                self.fault(fault);
            }
            let float = crate::manifest::element::type_of(self.buffers[to.buffer].fields[0].elem) == Type::Float;
            if !float && value.ty() == Type::Float {
                let fault = value.not_an_integer("an element of an integer buffer");
                self.fault(fault);
            }
            Some(HostStep::Fill { to, value, count, place })
        } else if table.get("encode").is_some() {
            let to = self.span(table, "encode", "index", scope);
            let map = table.get("map").map(|item| (item.table(), item.place()));
            let map = match map? {
                (Some(map), _) => self.tensor_map(map, None, scope),
                (None, place) => {
                    self.fault(place.fault("`map` is a table: `{tensor_map = \"A\", sizes = [..], box = [..]}`"));
                    None
                }
            };
            let (to, Arg::Tensor(map)) = (to?, map?) else { return None };
            if !matches!(self.buffers[to.buffer].space, Space::Dram | Space::Pm) {
                let message = format!("buffer `{}` is not in global memory", self.buffers[to.buffer].name);
                self.fault(place.fault(message).with_help("a map in constant memory is a kernel's argument"));
            }
            Some(HostStep::Encode(Box::new(EncodeStep { place, to, map: *map })))
        } else if let Some(item) = table.get("swap") {
            self.swap(item)
        } else if table.get("reduce").is_some() {
            self.reduce(table, scope)
        } else if let Some(item) = table.get("warm") {
            self.warm(item)
        } else if let Some(item) = table.get("persist") {
            // Nothing runs at such a step: only its buffers are checked.
            for name in item.list().unwrap_or_else(|| vec![item]) {
                let number = name.text().and_then(|text| self.buffer(text, &name.place()));
                if let Some(number) = number
                    && self.buffers[number].space != Space::Pm
                {
                    let fault = name.place().fault("only a buffer in space `pm` can be persisted");
                    self.fault(fault);
                }
            }
            Some(HostStep::Persist)
        } else {
            None
        }
    }

    /// The buffer named at `key`, from the element at `index_key` on.
    pub(crate) fn span(
        &mut self,
        table: TomlTable<'_>,
        key: &str,
        index_key: &str,
        scope: &Scope,
    ) -> Option<BufferStart> {
        let buffer = self.buffer_at(table, key);
        let index = self.integer_at(table, index_key, scope);
        let buffer = buffer?;
        let place = table.get(key)?.place();
        self.not_const(buffer, &place);
        Some(BufferStart { buffer, index })
    }

    pub(crate) fn not_const(&mut self, buffer: usize, place: &Place) {
        if self.buffers[buffer].space == Space::Const {
            let message = format!("`{}` lies in the constant bank, which has no address", self.buffers[buffer].name);
            self.fault(place.fault(message).with_help("kernels read it by its symbol; the host cannot change it"));
        }
    }

    fn swap(&mut self, item: Item<'_>) -> Option<HostStep> {
        let names = item.list()?;
        let [first, second] = names[..] else {
            let fault = item.place().fault(format!("`swap` takes two buffers, found {}", names.len()));
            self.fault(fault);
            return None;
        };
        let a = first.text().and_then(|text| self.buffer(text, &first.place()));
        let b = second.text().and_then(|text| self.buffer(text, &second.place()));
        let (a, b) = (a?, b?);
        self.not_const(a, &first.place());
        self.not_const(b, &second.place());
        let form =
            |n: usize| (self.buffers[n].fields.iter().map(|f| f.elem).collect::<Vec<_>>(), self.buffers[n].space);
        if form(a) != form(b) {
            let fault = item.place().fault("`swap` needs two buffers of the same element type and space");
            self.fault(fault);
        }
        Some(HostStep::Swap(a, b))
    }

    fn loop_step(&mut self, table: TomlTable<'_>, scope: &Scope) -> Option<HostStep> {
        let place = table.place();
        let present: Vec<&str> = ["count", "until", "while"].into_iter().filter(|k| table.get(k).is_some()).collect();
        let kind = match present[..] {
            ["count"] => self.integer_at(table, "count", scope).map(LoopKind::Count),
            [key] => {
                let condition = table.get(key).and_then(|item| self.condition(item, key, scope));
                let max = match table.get("max") {
                    Some(item) => self.integer(item, scope, "`max`"),
                    None => Some(Expr::constant(Value::Int(DEFAULT_MAX_ITERATIONS), &place)),
                };
                match (condition, max) {
                    (Some(condition), Some(max)) if key == "until" => Some(LoopKind::Until { condition, max }),
                    (Some(condition), Some(max)) => Some(LoopKind::While { condition, max }),
                    _ => None,
                }
            }
            _ => {
                let found = if present.is_empty() { "none" } else { "several" };
                let fault = place.fault(format!("a loop needs one of `count`, `until`, `while`, found {found}"));
                self.fault(fault);
                None
            }
        };
        if present == ["count"]
            && let Some(item) = table.get("max")
        {
            let fault = item.place().fault("`max` bounds `until` and `while` loops; a counted loop has its `count`");
            self.fault(fault);
        }
        let mut inner = scope.clone();
        let name = match table.text("var") {
            Some((name, place)) => {
                if self.is_taken(name, scope) {
                    let fault = place.fault(format!("`{name}` already has a meaning here"));
                    self.fault(fault.with_help("choose another name for the loop's variable"));
                }
                name.to_owned()
            }
            // Not an identifier: no expression can name it.
            None => "(iteration)".to_owned(),
        };
        let slot = inner.define(name, Type::Int);
        // The body is read whatever is wrong with the loop's own keys, which end this last.
        let before = table.tables("before").into_iter().filter_map(|step| self.step(step, &inner)).collect();
        let body = self.body(table, &inner);
        if table.get("step").is_none() && table.get("loop").is_none() {
            let fault = place.fault("the loop has no body: no `[[loop.step]]` and no `[[loop.loop]]`");
            self.fault(fault);
        }
        Some(HostStep::Loop(Box::new(LoopStep { place, kind: kind?, before, body, slot })))
    }

    /// A condition on device memory: an expression, or `{buffer, index, eq}` with another comparison for
    /// `eq`.
    fn condition(&mut self, item: Item<'_>, key: &str, scope: &Scope) -> Option<Expr> {
        const COMPARISONS: [(&str, &str); 6] =
            [("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")];
        let place = item.place();
        let Some(table) = item.table() else {
            if item.text().is_none() {
                let message = format!("`{key}` must be a condition in quotes or a table, found {}", item.described());
                let fault = place.fault(message).with_help("`{buffer = \"changed\", index = 0, eq = 0}`");
                self.fault(fault);
                return None;
            }
            return self.integer(item, scope, &format!("`{key}`"));
        };
        check(&schema::CONDITION, item, &format!("`{key}`"), self.faults);
        let present: Vec<_> = COMPARISONS.into_iter().filter(|(name, _)| table.get(name).is_some()).collect();
        let [(name, symbol)] = present[..] else {
            let message = format!("`{key}` needs one comparison, found {}", present.len());
            self.fault(place.fault(message).with_help("one of `eq`, `ne`, `lt`, `le`, `gt`, `ge`"));
            return None;
        };
        let buffer = self.buffer_at(table, "buffer")?;
        let written = |item: Item<'_>| match (item.number(), item.text()) {
            (Some(value), _) => Some(value.to_string()),
            // In parentheses, as it becomes part of a longer expression.
            (None, text) => text.map(|text| format!("({text})")),
        };
        let index = table.get("index").map_or_else(|| Some("0".to_owned()), written)?;
        let value = written(table.get(name)?)?;
        let text = format!("@{}[{index}] {symbol} {value}", self.buffers[buffer].name);
        match Expr::compile(&text, &place, scope) {
            Ok(expr) => Some(expr),
            Err(fault) => {
                self.fault(fault);
                None
            }
        }
    }

    fn launch(&mut self, table: TomlTable<'_>, scope: &Scope) -> Option<LaunchStep> {
        let inner = self.names.with_extents(scope);
        let grid = self.extent(table, "grid", scope);
        let block = self.extent(table, "block", scope);
        let shared = self.integer_at(table, "shared", &inner);
        let regs = self.integer_at(table, "regs", &inner);
        let carveout_percent = self.integer_at(table, "carveout_percent", &inner);
        let cluster = if table.get("cluster").is_some() { self.extent(table, "cluster", &inner) } else { None };
        let order = self.order(table);
        let (name, place) = table.text("kernel")?;
        let (module, kernel) = match self.programs.called(name, &place) {
            Ok(found) => found,
            Err(fault) => {
                fault.into_iter().for_each(|fault| self.fault(fault));
                for item in table.get("args").and_then(Item::list).unwrap_or_default() {
                    self.arg(item, None, &inner);
                }
                return None;
            }
        };
        let list = table.get("args")?;
        let items = list.list()?;
        if items.len() != kernel.params.len() {
            let shown = |p: &Param| format!(".{} {}", bare_type(p), parameter(&p.name));
            let form: Vec<String> = kernel.params.iter().map(shown).collect();
            let (wanted, plural) = (form.len(), if form.len() == 1 { "" } else { "s" });
            let message = format!("kernel `{name}` takes {wanted} argument{plural}, found {}", items.len());
            self.fault(list.place().fault(message).with_help(format!("its parameters are {}", form.join(", "))));
        }
        let (given, mut args) = (items.len(), Vec::new());
        for (number, item) in items.into_iter().enumerate() {
            args.extend(self.arg(item, kernel.params.get(number), &inner).map(|arg| (arg, item.place())));
        }
        // One that could not be read has its own fault, and those after it belong to other parameters.
        if args.len() == given {
            self.check_texture_objects(&kernel, &args);
        }
        let args = args.into_iter().map(|(arg, _)| arg).collect();
        let place = table.place();
        let communicates =
            self.facts.iter().find(|fact| Arc::ptr_eq(&fact.kernel, &kernel)).map(|fact| fact.communicates);
        // All of it was read, so that every fault is told at once.
        let (grid, block) = (grid?, block?);
        Some(LaunchStep {
            place,
            kernel,
            module,
            grid,
            block,
            shared,
            regs,
            carveout_percent,
            cluster,
            args,
            communicates,
            undo: None,
            order,
        })
    }

    /// One to three sizes.
    fn extent(&mut self, table: TomlTable<'_>, key: &str, scope: &Scope) -> Option<Vec<Expr>> {
        let item = table.get(key)?;
        let items = item.list().unwrap_or_else(|| vec![item]);
        if items.is_empty() || items.len() > 3 {
            let fault = item.place().fault(format!("`{key}` has 1 to 3 sizes (x, y, z), found {}", items.len()));
            self.fault(fault);
            return None;
        }
        let what = format!("a size of `{key}`");
        let sizes: Vec<_> = items.into_iter().map(|item| self.integer(item, scope, &what)).collect();
        sizes.into_iter().collect()
    }
}
