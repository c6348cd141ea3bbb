//! The names that expressions may use, by where the expression stands: parameters, sizes of graphs, lengths
//! of buffers, extents of a launch, indices, buffers to read.
//!
//! Invariant: a frame of variables is laid out once; each scope is a part of it, so a slot means one variable
//! wherever it is used.

use std::sync::Arc;

use super::buffers::{Buffer, Param};
use super::element::type_of;
use super::instrument::THREAD_VARIABLES;
use crate::expr::{Readable, Scope, Type, Variable};

/// The layout of a frame: the slot of each variable, and the scopes that may name it.
///
/// Parameters, then graph sizes, `grid.*` and `block.*`, lengths of buffers, `idx`, `i`, `j`, then loop
/// variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    params: Vec<Variable>,
    graphs: Vec<Variable>,
    extents: Vec<Variable>,
    lens: Vec<Variable>,
    indices: Vec<Variable>,
    threads: Vec<Variable>,
    readable: Arc<[Readable]>,
    slots: u16,
}

impl Names {
    /// Lays out a frame.
    pub(crate) fn new(params: &[Param], graphs: &[String], buffers: &[Buffer]) -> Self {
        let mut all = Scope::default();
        let mut group = |names: Vec<(String, Type)>| -> Vec<Variable> {
            let first = all.variables.len();
            for (name, ty) in names {
                all.define(name, ty);
            }
            all.variables[first..].to_vec()
        };
        let ints = |names: Vec<String>| names.into_iter().map(|name| (name, Type::Int)).collect::<Vec<_>>();
        let params = group(params.iter().map(|p| (p.name.clone(), p.value.ty())).collect());
        let graphs = group(ints(graphs.iter().flat_map(|g| [format!("{g}.nodes"), format!("{g}.edges")]).collect()));
        let extent = |name: &str| ["x", "y", "z"].map(|axis| format!("{name}.{axis}"));
        let extents = group(ints(extent("grid").into_iter().chain(extent("block")).collect()));
        let lens = group(ints(buffers.iter().map(|b| format!("len({})", b.name)).collect()));
        let indices = group(ints(["idx", "i", "j"].map(str::to_owned).to_vec()));
        // Threads' own frames have these where a host program's has its loops.
        let slots = all.slots;
        let first = all.variables.len();
        for name in THREAD_VARIABLES {
            all.define(name, Type::Int);
        }
        let threads = all.variables[first..].to_vec();
        let mut readable = Vec::new();
        for (number, buffer) in buffers.iter().enumerate() {
            let mut add = |name: String, field: usize, ty| {
                readable.push(Readable { name, buffer: number as u16, field: field as u16, ty });
            };
            if !buffer.is_structured() {
                add(buffer.name.clone(), 0, Some(type_of(buffer.fields[0].elem)));
                continue;
            }
            add(buffer.name.clone(), 0, None);
            for (at, field) in buffer.fields.iter().enumerate() {
                add(format!("{}.{}", buffer.name, field.name), at, Some(type_of(field.elem)));
            }
        }
        Names { params, graphs, extents, lens, indices, threads, readable: readable.into(), slots }
    }

    fn scope(&self, groups: &[&[Variable]]) -> Scope {
        Scope { variables: groups.concat(), slots: self.slots, buffers: self.readable.clone(), ..Scope::default() }
    }

    /// Sizes of graphs: parameters only.
    pub(crate) fn in_graph(&self) -> Scope {
        self.scope(&[&self.params])
    }

    /// Lengths of buffers.
    pub(crate) fn in_len(&self) -> Scope {
        self.scope(&[&self.params, &self.graphs, &self.extents])
    }

    /// Initial values; `indexed` where an expression gives the value of each element.
    pub(crate) fn in_init(&self, indexed: bool) -> Scope {
        let indices: &[Variable] = if indexed { &self.indices } else { &[] };
        self.scope(&[&self.params, &self.graphs, &self.extents, &self.lens, indices])
    }

    /// Host steps, outside loops. Grid and block cannot name `grid.*`; the rest of a launch can.
    pub(crate) fn in_steps(&self) -> Scope {
        Scope { device_reads: true, ..self.scope(&[&self.params, &self.graphs, &self.lens]) }
    }

    /// `scope` with the launch's own `grid.*` and `block.*`.
    pub(crate) fn with_extents(&self, scope: &Scope) -> Scope {
        let mut scope = scope.clone();
        scope.variables.extend_from_slice(&self.extents);
        scope
    }

    /// Checks and expectations; `idx` where an expression gives the value of each element.
    pub(crate) fn in_verify(&self, indexed: bool) -> Scope {
        let indices: &[Variable] = if indexed { &self.indices[..1] } else { &[] };
        let scope = self.scope(&[&self.params, &self.graphs, &self.extents, &self.lens, indices]);
        Scope { element_reads: true, ..scope }
    }

    /// Where an element of a buffer, `idx`, is logged.
    pub(crate) fn in_log(&self) -> Scope {
        self.scope(&[&self.params, &self.graphs, &self.lens, &self.indices[..1]])
    }

    /// What each thread of an instrumented kernel computes; `r` where it has several elements.
    pub(crate) fn in_thread(&self, repeated: bool) -> Scope {
        let shown = &self.threads[..self.threads.len() - usize::from(!repeated)];
        let scope = self.scope(&[&self.params, &self.graphs, &self.lens, shown]);
        Scope { slots: self.slots + self.threads.len() as u16, ..scope }
    }

    /// Slots of `tid.x` to `nctaid.z` and `r`, one after the other, after those of the host.
    pub(crate) fn threads(&self) -> std::ops::Range<usize> {
        self.slots()..self.slots() + self.threads.len()
    }

    /// Slots of every variable but loops' and sums'.
    pub(crate) fn slots(&self) -> usize {
        usize::from(self.slots)
    }

    /// Slot of a parameter.
    pub(crate) fn param(&self, number: usize) -> usize {
        usize::from(self.params[number].slot)
    }

    /// Slots of a graph's `nodes` and `edges`.
    pub(crate) fn graph(&self, number: usize) -> [usize; 2] {
        [0, 1].map(|i| usize::from(self.graphs[2 * number + i].slot))
    }

    /// Slots of `grid.x`, `.y`, `.z`, `block.x`, `.y`, `.z`.
    pub(crate) fn extents(&self) -> [usize; 6] {
        [0, 1, 2, 3, 4, 5].map(|i| usize::from(self.extents[i].slot))
    }

    /// Slot of a buffer's length.
    pub(crate) fn len(&self, buffer: usize) -> usize {
        usize::from(self.lens[buffer].slot)
    }

    /// Slots of `idx`, `i`, `j`.
    pub(crate) fn indices(&self) -> [usize; 3] {
        [0, 1, 2].map(|i| usize::from(self.indices[i].slot))
    }

    /// Names of buffers and their fields, for messages.
    pub(crate) fn buffer_names(&self) -> impl Iterator<Item = &str> {
        self.readable.iter().map(|buffer| buffer.name.as_str()).filter(|name| !name.contains('.'))
    }

    /// The buffer or field called `name`.
    pub(crate) fn find(&self, name: &str) -> Option<&Readable> {
        self.readable.iter().find(|readable| readable.name == name)
    }
}
