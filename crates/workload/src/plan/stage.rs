//! The plan in the making: parameters, graphs, extents of the first launch, lengths of buffers.

use durawarp_base::diagnostic::{Diagnostic, Diagnostics};
use std::path::PathBuf;

use super::params::Parameters;
use crate::data::data_file::input_bytes;
use crate::data::generate::part_len;
use crate::data::graph::Csr;
use crate::data::random::{Random, Seeds};
use crate::data::{graph, graph_file};
use crate::expr::Expr;
use crate::manifest::Manifest;
use crate::manifest::buffers::{Buffer, GraphKind, Init, SurfaceForm, TextureForm};
use crate::manifest::source::Folder;
use crate::manifest::steps::{HostStep, LaunchStep};
/// Largest buffer in bytes: the DRAM window ends 1 TiB after its start.
const MAX_BUFFER_BYTES: u64 = 1 << 39;

/// Why extents of the first launch have no value.
const NO_EXTENTS: &str = "no first launch has extents that are known before the run";

fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// The first launch of the host program, whose extents `grid.*` and `block.*` name.
fn first_launch(steps: &[HostStep]) -> Option<&LaunchStep> {
    steps.iter().find_map(|step| match step {
        HostStep::Launch(launch) => Some(&**launch),
        HostStep::Loop(inner) => first_launch(&inner.before).or_else(|| first_launch(&inner.body)),
        _ => None,
    })
}

/// When the extents of the first launch are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extents {
    /// From parameters alone.
    Early,
    /// From lengths of buffers, so no length may name them.
    Late,
    /// Only while the program runs; or the program has no launch.
    Never,
}

/// The plan in the making.
pub(crate) struct Stage<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) folder: &'a Folder,
    pub(crate) frame: Vec<u64>,
    pub(crate) seeds: Seeds,
    pub(crate) graphs: Vec<Csr>,
    pub(crate) faults: &'a mut Diagnostics,
}

impl Stage<'_> {
    /// Ends with the faults so far, if there are any.
    pub(crate) fn sound(&mut self) -> Result<(), Diagnostics> {
        std::mem::take(self.faults).into_result(())
    }

    /// The value, or `None` and the fault kept.
    pub(crate) fn keep<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|fault| self.faults.push(fault)).ok()
    }

    /// Checks that buffers of these lengths fit into `most_bytes`.
    pub(crate) fn fits(&self, lens: &[u64], most_bytes: Option<u64>) -> Result<(), Diagnostic> {
        let bytes: u64 = self.manifest.buffers.iter().zip(lens).map(|(buffer, len)| len * buffer.stride).sum();
        let Some(most) = most_bytes.filter(|most| bytes > *most) else { return Ok(()) };
        let message = format!(
            "its buffers have {:.1} GiB together, and this host has {:.1} GiB of memory",
            gib(bytes),
            gib(most)
        );
        Err(Diagnostic::nowhere(&self.manifest.name, message)
            .with_help("choose a smaller profile, or smaller parameters"))
    }

    pub(crate) fn params(&mut self, profile: &str, overrides: &[(String, String)]) {
        let manifest = self.manifest;
        let Manifest { name, params, profiles, .. } = manifest;
        let values = Parameters { workload: name, params, profiles }.values(profile, overrides, self.faults);
        for (number, value) in values.into_iter().enumerate() {
            self.frame[manifest.names.param(number)] = value.bits();
        }
    }

    pub(crate) fn graphs(&mut self) {
        for number in 0..self.manifest.graphs.len() {
            let made = self.graph(number);
            if let Some(graph) = self.keep(made) {
                let [nodes, edges] = self.manifest.names.graph(number);
                self.frame[nodes] = graph.nodes();
                self.frame[edges] = graph.edges();
                self.graphs[number] = graph;
            }
        }
    }

    fn graph(&mut self, number: usize) -> Result<Csr, Diagnostic> {
        let form = &self.manifest.graphs[number];
        // The stream is named after the graph: other graphs do not change what is drawn here.
        let mut random = Random::new(self.seeds, form.seed, &format!("graph {}", form.name));
        let frame = &mut self.frame;
        let max_weight = match &form.max_weight {
            None => 1,
            Some(max) => match max.integer(frame, "`max_weight`")? {
                found @ 1..=0xffff_ffff => found as u32,
                found => {
                    return Err(max.place().fault(format!("`max_weight` must be 1 to 2^32 - 1, found {found}")));
                }
            },
        };
        match &form.kind {
            GraphKind::Rmat { nodes, edges, .. } | GraphKind::Uniform { nodes, edges } => {
                let sizes = graph::check_sizes(nodes.integer(frame, "`nodes`")?, edges.integer(frame, "`edges`")?);
                let (nodes, edges) = sizes.map_err(|error| form.place.fault(error))?;
                let GraphKind::Rmat { quadrants, .. } = &form.kind else {
                    return Ok(graph::uniform(nodes, edges, max_weight, random));
                };
                let mut shares = [0.57, 0.19, 0.19];
                for (share, given) in shares.iter_mut().zip(quadrants) {
                    if let Some(expr) = given {
                        *share = expr.value(frame)?.as_f64();
                    }
                }
                graph::rmat(nodes, edges, shares, max_weight, &mut random).map_err(|error| form.place.fault(error))
            }
            GraphKind::RoadGrid { width, height } => {
                let (w, h) = (width.integer(frame, "`width`")?, height.integer(frame, "`height`")?);
                let nodes = w.checked_mul(h).filter(|_| w > 0).unwrap_or(-1);
                let sizes = graph::check_sizes(nodes, nodes.saturating_mul(4));
                sizes.map_err(|error| form.place.fault(error))?;
                Ok(graph::road_grid(w as u64, h as u64, max_weight, &mut random))
            }
            GraphKind::File { file, place } => {
                let text = self.folder.read_text(file).map_err(|error| place.fault(error))?;
                graph_file::read(&text).map_err(|error| place.fault(format!("`{file}`: {error}")))
            }
        }
    }

    /// Extents of the first launch where parameters alone give them.
    pub(crate) fn extents_before_lengths(&mut self) -> Extents {
        let Some(launch) = first_launch(&self.manifest.steps) else {
            return Extents::Never;
        };
        let names = &self.manifest.names;
        let exprs = || launch.grid.iter().chain(&launch.block);
        if exprs().any(|expr| expr.reads_device() || expr.names_from(names.slots())) {
            return Extents::Never;
        }
        let lengths = 0..self.manifest.buffers.len();
        if lengths.into_iter().any(|buffer| exprs().any(|expr| expr.names(names.len(buffer)))) {
            return Extents::Late;
        }
        self.extents(launch);
        Extents::Early
    }

    pub(crate) fn extents_after_lengths(&mut self, extents: Extents) {
        if extents == Extents::Late
            && let Some(launch) = first_launch(&self.manifest.steps)
        {
            self.extents(launch);
        }
    }

    /// Faults in these are found again, and reported, when the steps are checked.
    fn extents(&mut self, launch: &LaunchStep) {
        let slots = self.manifest.names.extents();
        for (sizes, slots) in [(&launch.grid, &slots[..3]), (&launch.block, &slots[3..])] {
            for (axis, slot) in slots.iter().enumerate() {
                let size = sizes.get(axis).map_or(Ok(1), |expr| expr.integer(&mut self.frame, "a size"));
                self.frame[*slot] = size.unwrap_or(0) as u64;
            }
        }
    }

    /// An expression that names `grid.*` or `block.*` where they are not known.
    fn extents_fault(&self, expr: &Expr, known: bool, why: &str) -> Option<Diagnostic> {
        let slots = self.manifest.names.extents();
        let names = slots.iter().any(|slot| expr.names(*slot));
        (names && !known).then(|| expr.place().fault(format!("`grid` and `block` are not known here: {why}")))
    }

    /// Contents, checks and expectations name extents only if these have values before the run.
    pub(crate) fn extents_are_known(&mut self, extents: Extents) {
        let manifest = self.manifest;
        let fields = manifest.buffers.iter().flat_map(|buffer| &buffer.fields).flat_map(|field| field.init.exprs());
        let textures = manifest.buffers.iter().filter_map(|buffer| buffer.texture.as_ref());
        let surfaces = manifest.buffers.iter().filter_map(|buffer| buffer.surface.as_ref());
        let margins = manifest.buffers.iter().flat_map(|buffer| buffer.guard.iter().chain(&buffer.padding));
        let checks = manifest.checks.iter().flat_map(|check| check.exprs());
        let expectations = manifest.expectations.iter().map(|form| &form.value);
        let conditions = manifest.conditions.iter().map(|form| &form.holds);
        let all = fields.chain(textures.flat_map(TextureForm::exprs)).chain(margins).chain(checks).chain(expectations);
        for expr in all.chain(conditions).chain(surfaces.flat_map(SurfaceForm::exprs)) {
            let fault = self.extents_fault(expr, extents != Extents::Never, NO_EXTENTS);
            self.faults.0.extend(fault);
        }
    }

    pub(crate) fn lens(&mut self, extents: Extents, inputs: &[(String, PathBuf)]) -> Vec<u64> {
        let mut lens = Vec::new();
        for (number, buffer) in self.manifest.buffers.iter().enumerate() {
            let len = self.len(buffer, extents, inputs);
            let len = self.keep(len).unwrap_or(0);
            self.frame[self.manifest.names.len(number)] = len;
            lens.push(len);
        }
        lens
    }

    fn len(&mut self, buffer: &Buffer, extents: Extents, inputs: &[(String, PathBuf)]) -> Result<u64, Diagnostic> {
        let name = &buffer.name;
        // Without `len` the data says how long it is.
        let Some(expr) = &buffer.len else {
            return match &buffer.fields[0].init {
                Init::Graph { graph, part, .. } => Ok(part_len(&self.graphs[*graph], *part)),
                Init::File { file, place } => {
                    let elem = buffer.fields[0].elem;
                    let data = match inputs.iter().find(|(input, _)| input == name) {
                        Some((_, path)) => input_bytes(path, buffer)?,
                        None => self.generation(&self.frame).file(file, place, elem)?,
                    };
                    Ok(data.len() as u64 / u64::from(elem.bytes()))
                }
                _ => unreachable!("the reader demands a length"),
            };
        };
        let why = match extents {
            Extents::Late => "the first launch's depend on lengths of buffers",
            _ => NO_EXTENTS,
        };
        if let Some(fault) = self.extents_fault(expr, extents == Extents::Early, why) {
            return Err(fault);
        }
        let len = expr.integer(&mut self.frame, "`len`")?;
        let Ok(len) = u64::try_from(len) else {
            return Err(expr.place().fault(format!("buffer `{name}` has the negative length {len}")));
        };
        if len == 0 {
            return Err(expr.place().fault(format!("buffer `{name}` has no elements")));
        }
        match len.checked_mul(buffer.stride) {
            Some(bytes) if bytes <= MAX_BUFFER_BYTES => Ok(len),
            _ => Err(expr.place().fault(format!("buffer `{name}` with {len} elements is larger than 512 GiB"))),
        }
    }
}
