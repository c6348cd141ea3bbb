//! From a document that was checked against the schema to a [`Manifest`]: parameters, profiles, graphs,
//! buffers.
//!
//! The document may still be wrong: what the schema check reported is skipped here without a second message,
//! what only a reader can see (unknown names, wrong expressions) is reported here. A file here reads a
//! section: `steps`, `args` (of launches), `variables`, `checks`, `conditions`, `instrument`; [`Reader`] is
//! what they share.

mod args;
mod checks;
mod conditions;
pub(crate) mod instrument;
mod kernel_names;
mod reader;
mod steps;
mod streams;
mod tensor;
mod variables;

use super::expr::{Expr, Scope, Type, Value};
use super::manifest::Manifest;
use crate::manifest::buffers::{
    Buffer, Field, Graph, GraphKind, GraphPart, Init, LoadedTree, Param, Profile, Role, Space, SurfaceForm,
    TextureForm, param_value,
};
use crate::manifest::element::{elem_of, type_of};
use crate::manifest::names::Names;
use crate::manifest::source::Programs;
use durawarp_base::diagnostic::Diagnostics;
use durawarp_base::document::{Item, Place, TomlTable};
use reader::{Reader, unknown};

/// The only version of the format so far.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// Reads a whole manifest. What comes back is complete only if no fault was pushed.
pub(crate) fn manifest(root: TomlTable<'_>, programs: &Programs, faults: &mut Diagnostics) -> Manifest {
    if let Some(item) = root.get("schema")
        && let Some(Value::Int(version)) = item.number()
        && version != SCHEMA_VERSION
    {
        faults.push(item.place().fault(format!("schema {version} is not known: this program reads {SCHEMA_VERSION}")));
    }
    // Names first: no expression can be compiled before all names are known.
    let params = params(root, faults);
    let profiles = profiles(root, &params, faults);
    let buffers = buffer_forms(root, faults);
    let graph_names: Vec<String> = keys(root, "graph");
    clashes(root, faults);
    let names = Names::new(&params, &graph_names, &buffers);
    let (texture_objects, facts, events) = (Vec::new(), Vec::new(), Vec::new());
    let mut reader = Reader { programs, names, buffers, texture_objects, facts, events, faults };
    let graphs = reader.graphs(root);
    reader.buffer_contents(root, &graph_names);
    reader.kernel_facts(root);
    let steps = reader.steps(root);
    let checks = reader.checks(root);
    let expectations = reader.expectations(root, &profiles);
    let instrument = reader.instrument(root, &steps);
    let recovery = reader.recovery(root);
    // After everything that has arguments: a texture may be an object that an argument passes, not a name.
    reader.bound_by_name();
    reader.check_events();
    let conditions = reader.conditions(root);
    let text = |key| root.text(key).map_or_else(String::new, |(text, _)| text.to_owned());
    let seed = root.get("seed").and_then(Item::number).map_or(1, |value| value.bits());
    let Reader { names, buffers, .. } = reader;
    Manifest {
        name: text("name"),
        description: text("description"),
        seed,
        params,
        profiles,
        graphs,
        buffers,
        steps,
        checks,
        expectations,
        instrument,
        recovery,
        conditions,
        names,
    }
}

fn keys(root: TomlTable<'_>, key: &str) -> Vec<String> {
    let table = root.table(key);
    table.map_or_else(Vec::new, |table| table.entries().map(|(name, ..)| name.to_owned()).collect())
}

/// Names share one space: a parameter, a graph and a buffer cannot be called alike, nor like a name of the
/// language.
fn clashes(root: TomlTable<'_>, faults: &mut Diagnostics) {
    const RESERVED: [&str; 5] = ["idx", "i", "j", "grid", "block"];
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (key, noun) in [("params", "parameter"), ("graph", "graph"), ("buffer", "buffer")] {
        let Some(table) = root.table(key) else { continue };
        for (name, place, _) in table.entries() {
            if RESERVED.contains(&name) {
                faults.push(place.fault(format!("a {noun} cannot be called `{name}`: expressions give it a meaning")));
            } else if let Some((_, other)) = seen.iter().find(|(other, _)| *other == name) {
                faults
                    .push(place.fault(format!("a {noun} cannot be called `{name}`: there is a {other} of that name")));
            }
            seen.push((name, noun));
        }
    }
}

pub(crate) fn params(root: TomlTable<'_>, faults: &mut Diagnostics) -> Vec<Param> {
    let Some(table) = root.table("params") else {
        return Vec::new();
    };
    let mut params = Vec::new();
    for (name, _, item) in table.entries() {
        let value = item.number().unwrap_or(Value::Int(0));
        if matches!(value, Value::Float(value) if !value.is_finite()) {
            faults.push(item.place().fault(format!("parameter `{name}` must be a finite number")));
        }
        params.push(Param { name: name.to_owned(), value });
    }
    params
}

pub(crate) fn profiles(root: TomlTable<'_>, params: &[Param], faults: &mut Diagnostics) -> Vec<Profile> {
    let Some(table) = root.table("profile") else {
        return Vec::new();
    };
    let mut profiles = Vec::new();
    for (name, _, item) in table.entries() {
        let Some(overrides) = item.table() else { continue };
        let mut values = Vec::new();
        for (param, place, item) in overrides.entries() {
            let Some(number) = params.iter().position(|p| p.name == param) else {
                let valid = params.iter().map(|p| p.name.as_str());
                faults.push(unknown("parameter", param, &place, valid));
                continue;
            };
            let Some(value) = item.number() else { continue };
            match param_value(&params[number], value) {
                Ok(value) => values.push((number, value)),
                Err(message) => faults.push(item.place().fault(message)),
            }
        }
        profiles.push(Profile { name: name.to_owned(), values });
    }
    profiles
}

/// Names, element types, spaces and roles: what expressions need to know before any is compiled.
fn buffer_forms(root: TomlTable<'_>, faults: &mut Diagnostics) -> Vec<Buffer> {
    let Some(table) = root.table("buffer") else {
        return Vec::new();
    };
    let mut buffers = Vec::new();
    for (name, place, item) in table.entries() {
        let Some(table) = item.table() else { continue };
        let (fields, stride) = fields(name, table, faults);
        let word = |key| table.text(key).map_or("", |(word, _)| word);
        // A word that is none of these was reported by the schema check.
        let space = match word("space") {
            "pm" => Space::Pm,
            "const" => Space::Const,
            "texture" => Space::Texture,
            _ => Space::Dram,
        };
        let role = match word("role") {
            "input" => Role::Input,
            "output" => Role::Output,
            "scratch" => Role::Scratch,
            "undo_log" => Role::UndoLog,
            "tx_flag" => Role::TxFlag,
            _ => Role::Data,
        };
        let symbol = table.text("symbol").map(|(name, place)| (name.to_owned(), place));
        let header = table.place();
        for (key, wanted) in [("symbol", Space::Const), ("texture", Space::Texture)] {
            if let Some(item) = table.get(key)
                && space != wanted
            {
                let wanted = key.replace("symbol", "const");
                faults.push(item.place().fault(format!("`{key}` belongs to a buffer in space `{wanted}`")));
            }
        }
        if let Some(item) = table.get("surface")
            && !matches!(space, Space::Dram | Space::Pm)
        {
            faults.push(item.place().fault("`surface` belongs to a buffer in space `dram` or `pm`"));
        }
        if space == Space::Texture && table.get("texture").is_none() {
            faults.push(header.fault(format!("buffer `{name}` in space `texture` lacks the key `texture`")));
        }
        // What takes expressions is filled in by `buffer_contents`, when all names are known.
        buffers.push(Buffer {
            name: name.to_owned(),
            place,
            fields,
            stride,
            len: None,
            space,
            role,
            of: None,
            symbol,
            texture: None,
            surface: None,
            guard: None,
            padding: None,
        });
    }
    buffers
}

/// The fields of a buffer's elements, laid out as C would, and the bytes of an element.
fn fields(buffer: &str, table: TomlTable<'_>, faults: &mut Diagnostics) -> (Vec<Field>, u64) {
    let elem = |word: Option<(&str, Place)>| word.and_then(|(word, _)| elem_of(word));
    match (table.get("type"), table.get("fields")) {
        (Some(_), Some(fields)) => {
            faults.push(fields.place().fault(format!("buffer `{buffer}` has both `type` and `fields`")));
        }
        (None, None) => {
            let fault = table.place().fault(format!("buffer `{buffer}` lacks the key `type`"));
            faults.push(fault.with_help("an element type such as \"f32\", or `fields` for structures"));
        }
        _ => {}
    }
    let mut out: Vec<Field> = Vec::new();
    let (mut end, mut align) = (0, 1);
    for field in table.tables("fields") {
        let (Some((name, place)), Some(elem)) = (field.text("name"), elem(field.text("type"))) else {
            continue;
        };
        if out.iter().any(|other| other.name == name) {
            faults.push(place.fault(format!("buffer `{buffer}` already has a field `{name}`")));
        }
        let bytes = u64::from(elem.bytes());
        let offset = u64::next_multiple_of(end, bytes);
        end = offset + bytes;
        align = bytes.max(align);
        out.push(Field { name: name.to_owned(), elem, offset, init: Init::Zero });
    }
    // Plain elements are structures of one field without a name.
    if out.is_empty() {
        let elem = elem(table.text("type")).unwrap_or(durawarp_kernel::ir::Elem::U32);
        let field = Field { name: String::new(), elem, offset: 0, init: Init::Zero };
        return (vec![field], u64::from(elem.bytes()));
    }
    (out, end.next_multiple_of(align))
}

impl Reader<'_> {
    /// The keys of `init = {kind = "bplus_tree"}`.
    pub(crate) fn loaded_tree(&mut self, table: TomlTable<'_>, scope: &Scope) -> Option<Box<LoadedTree>> {
        let mut size = |key| self.integer_at(table, key, scope);
        let sizes = [size("leaves"), size("fan"), size("order"), size("span")];
        let [Some(leaves), Some(fan), Some(order), Some(span)] = sizes else { return None };
        Some(Box::new(LoadedTree { sizes: [leaves, fan, order, span], place: table.place() }))
    }

    fn graphs(&mut self, root: TomlTable<'_>) -> Vec<Graph> {
        let Some(table) = root.table("graph") else {
            return Vec::new();
        };
        let scope = self.names.in_graph();
        let mut graphs = Vec::new();
        // What is skipped in this loop was reported by the schema check.
        for (name, place, item) in table.entries() {
            let Some(table) = item.table() else { continue };
            let mut size = |key: &str| self.integer_at(table, key, &scope);
            let kind = match table.text("kind").map_or("", |(kind, _)| kind) {
                kind @ ("rmat" | "uniform") => {
                    let (Some(nodes), Some(edges)) = (size("nodes"), size("edges")) else {
                        continue;
                    };
                    let mut share = |key: &str| table.get(key).and_then(|item| self.expr(item, &scope));
                    match kind {
                        "rmat" => GraphKind::Rmat { nodes, edges, quadrants: ["a", "b", "c"].map(&mut share) },
                        _ => GraphKind::Uniform { nodes, edges },
                    }
                }
                "road_grid" => {
                    let (Some(width), Some(height)) = (size("width"), size("height")) else {
                        continue;
                    };
                    GraphKind::RoadGrid { width, height }
                }
                "file" => {
                    let Some((file, place)) = table.text("file") else {
                        continue;
                    };
                    GraphKind::File { file: file.to_owned(), place }
                }
                _ => continue,
            };
            let max_weight = self.integer_at(table, "max_weight", &scope);
            graphs.push(Graph { name: name.to_owned(), place, kind, max_weight, seed: seed(table) });
        }
        graphs
    }

    /// Lengths and initial contents, now that every name is known.
    fn buffer_contents(&mut self, root: TomlTable<'_>, graphs: &[String]) {
        let Some(all) = root.table("buffer") else { return };
        for (name, _, item) in all.entries() {
            let Some(number) = self.buffers.iter().position(|buffer| buffer.name == name) else {
                continue;
            };
            let Some(table) = item.table() else { continue };
            let scope = self.names.in_len();
            self.buffers[number].len = self.integer_at(table, "len", &scope);
            self.buffers[number].texture = self.texture(table, name, &scope);
            self.buffers[number].surface = self.surface(table, name, &scope);
            self.margin(table, number);
            if let Some((of, place)) = table.text("of") {
                self.buffers[number].of = self.buffer(of, &place);
            }
            if !self.buffers[number].is_structured() {
                let elem = self.buffers[number].fields[0].elem;
                let init = table.get("init").and_then(|item| self.init(item, type_of(elem), graphs));
                self.buffers[number].fields[0].init = init.unwrap_or(Init::Zero);
            } else {
                if let Some(item) = table.get("init") {
                    let message = format!("buffer `{name}` has `fields`: each field has its own `init`");
                    self.fault(item.place().fault(message));
                }
                for (at, field) in table.tables("fields").into_iter().enumerate() {
                    let Some(elem) = self.buffers[number].fields.get(at).map(|field| field.elem) else {
                        break;
                    };
                    let init = field.get("init").and_then(|item| self.init(item, type_of(elem), graphs));
                    self.buffers[number].fields[at].init = init.unwrap_or(Init::Zero);
                }
            }
            // Only the content of a buffer with one field can say its length: several fields could disagree.
            let own = |init: &Init| matches!(init, Init::File { .. } | Init::Graph { .. });
            let known = self.buffers[number].fields.len() == 1 && own(&self.buffers[number].fields[0].init);
            if table.get("len").is_none() && !known {
                let fault = table.place().fault(format!("buffer `{name}` lacks the key `len`"));
                self.fault(fault.with_help("only buffers made from a file or a graph have a length of their own"));
            }
        }
    }

    /// What lies around a buffer.
    fn margin(&mut self, table: TomlTable<'_>, number: usize) {
        let scope = self.names.in_init(false);
        for key in ["guard", "padding"] {
            let Some(item) = table.get(key).filter(|_| self.buffers[number].space == Space::Const) else { continue };
            let fault = item.place().fault(format!("`{key}` means nothing in the constant bank, which has no address"));
            self.fault(fault);
        }
        self.buffers[number].guard = self.integer_at(table, "guard", &scope);
        self.buffers[number].padding = self.integer_at(table, "padding", &scope);
    }

    /// Constants, surfaces, and textures that are no objects, are bound by the names that the PTX gives them.
    fn bound_by_name(&mut self) {
        // A file that could not be read may have any name in it.
        if !self.programs.complete {
            return;
        }
        let modules = &self.programs.modules;
        let constants: Vec<&str> = modules.iter().flat_map(|m| &m.consts).map(|var| var.name.as_str()).collect();
        let kernels = modules.iter().flat_map(|module| &module.kernels);
        let textures: Vec<&str> = kernels.clone().flat_map(|kernel| &kernel.textures).map(String::as_str).collect();
        let surfaces: Vec<&str> = kernels.flat_map(|kernel| &kernel.surfaces).map(String::as_str).collect();
        let mut found = Vec::new();
        for (number, buffer) in self.buffers.iter().enumerate() {
            let (name, place) = match &buffer.symbol {
                Some((symbol, place)) => (symbol, place),
                None => (&buffer.name, &buffer.place),
            };
            if buffer.space == Space::Const && !constants.contains(&name.as_str()) {
                found.push(unknown("constant", name, place, constants.iter().copied()));
            }
            if let Some(form) = &buffer.texture
                && !self.texture_objects.contains(&number)
                && !textures.contains(&form.name.as_str())
            {
                found.push(unknown("texture", &form.name, &form.place, textures.iter().copied()));
            }
            for (name, place) in buffer.surface.iter().flat_map(|form| &form.names) {
                if !surfaces.contains(&name.as_str()) {
                    found.push(unknown("surface", name, place, surfaces.iter().copied()));
                }
            }
        }
        found.into_iter().for_each(|fault| self.fault(fault));
    }

    fn texture(&mut self, table: TomlTable<'_>, buffer: &str, scope: &Scope) -> Option<TextureForm> {
        let form = table.table("texture")?;
        let width = self.integer_at(form, "width", scope);
        let height = self.integer_at(form, "height", scope);
        let depth = self.integer_at(form, "depth", scope);
        let pitch = self.integer_at(form, "pitch", scope);
        let channels = self.integer_at(form, "channels", scope);
        let (name, place) = match form.text("name") {
            Some((name, place)) => (name.to_owned(), place),
            None => (buffer.to_owned(), form.place()),
        };
        let normalized = form.get("normalized").and_then(Item::boolean).unwrap_or(false);
        Some(TextureForm { name, place, width: width?, height, depth, pitch, channels, normalized })
    }

    fn surface(&mut self, table: TomlTable<'_>, buffer: &str, scope: &Scope) -> Option<SurfaceForm> {
        let form = table.table("surface")?;
        let width = self.integer_at(form, "width", scope);
        let height = self.integer_at(form, "height", scope);
        let depth = self.integer_at(form, "depth", scope);
        let pitch = self.integer_at(form, "pitch", scope);
        let channels = self.integer_at(form, "channels", scope);
        let names = match form.get("name") {
            None => vec![(buffer.to_owned(), form.place())],
            Some(item) => {
                let all = item.list().unwrap_or_else(|| vec![item]);
                all.into_iter().filter_map(|item| Some((item.text()?.to_owned(), item.place()))).collect()
            }
        };
        Some(SurfaceForm { names, place: form.place(), width: width?, height, depth, pitch, channels })
    }

    fn init(&mut self, item: Item<'_>, ty: Type, graphs: &[String]) -> Option<Init> {
        let table = item.table()?;
        let place = table.place();
        let scope = self.names.in_init(false);
        let seed = seed(table);
        Some(match table.text("kind")?.0 {
            "const" => Init::Const(self.value(table.get("value")?, &scope, ty)?),
            "iota" => {
                let mut part = |key| table.get(key).and_then(|item| self.value(item, &scope, ty));
                Init::Iota { start: part("start"), step: part("step") }
            }
            "uniform" => {
                // Both are read before the fault of one ends this, so that the faults of both are reported.
                let lo = self.value(table.get("lo")?, &scope, ty);
                let hi = self.value(table.get("hi")?, &scope, ty);
                Init::Uniform { lo: lo?, hi: hi?, seed }
            }
            "lcg" => Init::Lcg { modulo: self.integer_at(table, "modulo", &scope), seed },
            "expr" | "affine2d" => {
                let cols = self.integer_at(table, "cols", &scope);
                let mut scope = self.names.in_init(true);
                // `i` and `j` are the row and the column, which there are only with `cols`.
                if table.get("cols").is_none() {
                    scope.variables.retain(|v| v.name != "i" && v.name != "j");
                }
                Init::Expr { expr: self.value(table.get("expr")?, &scope, ty)?, cols }
            }
            "file" => {
                let (file, place) = table.text("file")?;
                Init::File { file: file.to_owned(), place }
            }
            "csr_graph" => {
                let (name, at) = table.text("graph")?;
                let Some(graph) = graphs.iter().position(|graph| graph == name) else {
                    let fault = unknown("graph", name, &at, graphs.iter().map(String::as_str));
                    self.fault(fault);
                    return None;
                };
                let part = match table.text("part")?.0 {
                    "row_ptr" => GraphPart::RowPtr,
                    "col" => GraphPart::Col,
                    "weight" => GraphPart::Weight,
                    "degree" => GraphPart::Degree,
                    _ => GraphPart::Source,
                };
                Init::Graph { graph, part, place }
            }
            "permutation" => Init::Permutation { seed, place },
            "chase" => {
                let stride = self.integer_at(table, "stride", &scope);
                let strided = table.text("order").is_some_and(|(order, _)| order == "stride");
                if strided != table.get("stride").is_some() {
                    self.fault(place.fault("`stride` and `order = \"stride\"` go together"));
                }
                Init::Chase { stride, seed, place }
            }
            "bplus_tree" => Init::BplusTree(self.loaded_tree(table, &scope)?),
            _ => return None,
        })
    }

    /// An expression for elements of kind `ty`: an integer may become a float, a float never an integer by
    /// itself.
    fn value(&mut self, item: Item<'_>, scope: &Scope, ty: Type) -> Option<Expr> {
        let expr = self.expr(item, scope)?;
        if ty == Type::Int && expr.ty() == Type::Float {
            self.fault(expr.not_an_integer("an element of an integer buffer"));
            return None;
        }
        Some(expr)
    }
}

fn seed(table: TomlTable<'_>) -> u64 {
    table.get("seed").and_then(Item::number).map_or(0, Value::bits)
}
