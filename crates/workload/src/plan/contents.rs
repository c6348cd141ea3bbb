//! Initial contents of a plan's buffers: generated, from files, or from the user's input files; textures,
//! surfaces and constant banks on top of them.

use std::path::PathBuf;

use super::allocation::Allocation;
use super::stage::Stage;
use crate::data::data_file::input_bytes;
use crate::data::generate::{Generation, part_len, scatter};
use crate::expr::Expr;
use crate::manifest::buffers::{Buffer, Init, Space, SurfaceForm, TextureForm};
use crate::manifest::source::Programs;
use durawarp_base::diagnostic::Diagnostic;
use durawarp_base::document::Place;
use durawarp_kernel::ir::Module;
use durawarp_kernel::launch::{Surface, Texture};

impl Stage<'_> {
    pub(crate) fn generation<'g>(&'g self, frame: &'g [u64]) -> Generation<'g> {
        Generation {
            folder: self.folder,
            seeds: self.seeds,
            frame,
            indices: self.manifest.names.indices(),
            graphs: &self.graphs,
        }
    }

    /// Contents of all buffers; their addresses come later.
    pub(crate) fn contents(&mut self, lens: &[u64], inputs: &[(String, PathBuf)]) -> Vec<Allocation> {
        for (at, (name, path)) in inputs.iter().enumerate() {
            let shown = format!("--input {name}={}", path.display());
            if inputs[..at].iter().any(|(other, _)| other == name) {
                self.faults.push(Diagnostic::nowhere(&shown, format!("buffer `{name}` has two inputs")));
            }
            if !self.manifest.buffers.iter().any(|buffer| buffer.name == *name) {
                let message = format!("workload `{}` has no buffer `{name}`", self.manifest.name);
                let fault = Diagnostic::nowhere(&shown, message);
                self.faults.push(fault.with_nearest_or(name, self.manifest.names.buffer_names(), || None));
            }
        }
        let mut out = Vec::new();
        for (buffer, len) in self.manifest.buffers.iter().zip(lens) {
            let content = self.content(buffer, *len, inputs);
            out.push(self.keep(content).unwrap_or_else(|| Allocation::zeros(0, buffer.stride)));
        }
        out
    }

    fn content(&mut self, buffer: &Buffer, len: u64, inputs: &[(String, PathBuf)]) -> Result<Allocation, Diagnostic> {
        let bytes = (len * buffer.stride) as usize;
        let mut content: Vec<u8> = Vec::new();
        // A length may be more than the host has: a fault that names the buffer, not an abort.
        if content.try_reserve_exact(bytes).is_err() {
            let place = buffer.len.as_ref().map_or(&buffer.place, Expr::place);
            return Err(place.fault(format!("buffer `{}`: this host cannot allocate {bytes} bytes", buffer.name)));
        }
        if let Some((name, path)) = inputs.iter().find(|(name, _)| *name == buffer.name) {
            let data = input_bytes(path, buffer)?;
            if data.len() != bytes {
                let (found, wanted) = (data.len() as u64 / buffer.stride, len);
                let shown = format!("--input {name}={}", path.display());
                let message = format!("the file holds {found} elements, buffer `{name}` has {wanted}");
                return Err(Diagnostic::nowhere(&shown, message));
            }
            return Ok(Allocation::new(len, data));
        }
        if buffer.fields.iter().all(|field| matches!(field.init, Init::Zero)) {
            return Ok(Allocation::zeros(len, buffer.stride));
        }
        let generation = self.generation(&self.frame);
        for field in &buffer.fields {
            // A field that is all of an element needs no zeros to be put into.
            let is_appended =
                u64::from(field.elem.bytes()) == buffer.stride && !matches!(field.init, Init::File { .. });
            if !is_appended {
                content.resize(bytes, 0);
            }
            if let Init::File { file, place } = &field.init {
                let data = generation.file(file, place, field.elem)?;
                let copied = scatter(&data, field, buffer.stride, &mut content);
                copied.map_err(|error| place.fault(format!("`{file}` is {error}")))?;
            } else {
                if let Init::Graph { graph, part, place } = &field.init {
                    let found = part_len(&self.graphs[*graph], *part);
                    if found != len {
                        let message = format!("this part of the graph has {found} elements, the buffer {len}");
                        return Err(place.fault(message).with_help("leave `len` out: the graph gives it"));
                    }
                }
                generation.fill(&buffer.name, &buffer.place, field, [len, buffer.stride], &mut content)?;
            }
        }
        Ok(Allocation::new(len, content))
    }

    /// A size of a texture or surface: 1 if it is not given.
    fn size(&mut self, expr: Option<&Expr>, what: &str) -> Result<u32, Diagnostic> {
        let Some(expr) = expr else { return Ok(1) };
        let found = expr.integer(&mut self.frame, what)?;
        let fits = u32::try_from(found).ok().filter(|size| *size > 0);
        fits.ok_or_else(|| expr.place().fault(format!("{what} must be 1 to 2^32 - 1, found {found}")))
    }

    fn channels(&mut self, expr: Option<&Expr>, place: &Place) -> Result<u32, Diagnostic> {
        match self.size(expr, "`channels`")? {
            channels @ (1 | 2 | 4) => Ok(channels),
            other => Err(place.fault(format!("a texel has 1, 2 or 4 channels, not {other}"))),
        }
    }

    /// Surfaces on the buffers that have one.
    pub(crate) fn surfaces(&mut self, buffers: &mut [Allocation]) {
        let manifest = self.manifest;
        for (buffer, allocation) in manifest.buffers.iter().zip(buffers) {
            if let Some(form) = &buffer.surface {
                let made = self.surface(form, buffer.stride, allocation.bytes);
                allocation.surface = self.keep(made);
            }
        }
    }

    fn surface(&mut self, form: &SurfaceForm, stride: u64, bytes: u64) -> Result<Surface, Diagnostic> {
        let width = self.size(Some(&form.width), "`width`")?;
        let height = self.size(form.height.as_ref(), "`height`")?;
        let depth = self.size(form.depth.as_ref(), "`depth`")?;
        let element = u64::from(self.channels(form.channels.as_ref(), &form.place)?) * stride;
        let row = u64::from(width) * element;
        let pitch = match &form.pitch {
            Some(pitch) => u64::from(self.size(Some(pitch), "`pitch`")?),
            None => row,
        };
        let fits = |surface: &Surface| pitch >= row && pitch.is_multiple_of(stride) && surface.bytes() <= bytes;
        let surface = u32::try_from(pitch).ok().map(|pitch| Surface {
            address: 0,
            width,
            height,
            depth,
            pitch,
            element: element as u32,
        });
        surface.filter(fits).ok_or_else(|| {
            form.place.fault(format!(
                "{width} by {height} by {depth} elements of {element} bytes with a pitch of {pitch} do not fit the \
                 buffer's {bytes} bytes"
            ))
        })
    }

    /// Textures on the buffers that have one.
    pub(crate) fn textures(&mut self, buffers: &mut [Allocation]) {
        let manifest = self.manifest;
        for (buffer, allocation) in manifest.buffers.iter().zip(buffers) {
            if let Some(form) = &buffer.texture {
                let made = self.texture(form, buffer, allocation.len);
                allocation.texture = self.keep(made);
            }
        }
    }

    fn texture(&mut self, form: &TextureForm, buffer: &Buffer, len: u64) -> Result<Texture, Diagnostic> {
        let width = self.size(Some(&form.width), "`width`")?;
        let height = self.size(form.height.as_ref(), "`height`")?;
        let depth = self.size(form.depth.as_ref(), "`depth`")?;
        let channels = self.channels(form.channels.as_ref(), &form.place)?;
        let texel = u64::from(channels) * buffer.stride;
        let row = u64::from(width) * texel;
        let pitch = match &form.pitch {
            Some(pitch) => u64::from(self.size(Some(pitch), "`pitch`")?),
            None => row,
        };
        // The last row ends with its texels, not with the pitch.
        let rows = u64::from(height) * u64::from(depth);
        let needed = pitch.saturating_mul(rows - 1).saturating_add(row);
        if pitch < row || pitch % buffer.stride != 0 || needed > len * buffer.stride {
            let message = format!(
                "{width} by {height} by {depth} texels of {texel} bytes with a pitch of {pitch} do not fit the buffer's {} \
                 bytes",
                len * buffer.stride
            );
            return Err(form.place.fault(message));
        }
        Ok(Texture {
            address: 0,
            width,
            height,
            depth,
            pitch: pitch as u32,
            channels: channels as u8,
            elem: buffer.fields[0].elem,
            normalized_read: form.normalized,
        })
    }

    /// The modules' constant banks with the content of `const` buffers in them; `None` where there is none.
    pub(crate) fn const_banks(
        &mut self,
        programs: &Programs,
        buffers: &[Allocation],
        globals: &[Vec<u64>],
    ) -> Vec<Option<Vec<u8>>> {
        let manifest = self.manifest;
        let bank_of = |(module, addresses): (&Module, &Vec<u64>)| {
            let mut bank = module.const_bank.clone();
            for relocation in &module.const_relocations {
                let address = addresses[relocation.index as usize].wrapping_add_signed(relocation.addend);
                bank[relocation.at as usize..][..8].copy_from_slice(&address.to_le_bytes());
            }
            (bank, false)
        };
        let mut banks: Vec<(Vec<u8>, bool)> = programs.modules.iter().zip(globals).map(bank_of).collect();
        for (buffer, allocation) in manifest.buffers.iter().zip(buffers).filter(|(b, _)| b.space == Space::Const) {
            let symbol = buffer.symbol.as_ref().map_or(&buffer.name, |(symbol, _)| symbol);
            // Several modules may have a constant of this name, each in a bank of its own.
            for (module, (bank, filled)) in programs.modules.iter().zip(&mut banks) {
                for var in module.consts.iter().filter(|var| var.name == *symbol) {
                    let (start, room, bytes) = (var.offset as usize, var.bytes as usize, allocation.bytes as usize);
                    if bytes > room {
                        let message =
                            format!("buffer `{}` has {bytes} bytes, the kernel's `{symbol}` {room}", buffer.name);
                        self.faults.push(buffer.place.fault(message));
                        continue;
                    }
                    bank.resize(bank.len().max(start + room), 0);
                    bank[start..start + bytes].copy_from_slice(&allocation.initial());
                    *filled = true;
                }
            }
        }
        banks.into_iter().map(|(bank, filled)| filled.then_some(bank)).collect()
    }
}
