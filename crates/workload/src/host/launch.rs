//! From a launch step to a bound launch: extents, shared memory, arguments as bytes, textures, surfaces.

use super::tensor::tensor_map;
use super::view::{Interrupt, View};
use crate::expr::{Expr, Value};
use crate::manifest::buffers::{Buffer, BufferStart};
use crate::manifest::element::{elem_name, store};
use crate::manifest::instrument::Generated;
use crate::manifest::steps::{Arg, LaunchStep};
use durawarp_base::diagnostic::Diagnostics;
use durawarp_kernel::cluster::MAX_CLUSTER;
use durawarp_kernel::ir::Elem;
use durawarp_kernel::launch::{Binding, Launch, Surface, Texture};
use durawarp_kernel::tensor_map::MAP_BYTES;

/// Largest extents of a grid and of a block (CUDA, compute capability 6.0), and threads of a block.
const MAX_GRID: [i64; 3] = [0x7fff_ffff, 65_535, 65_535];
const MAX_BLOCK: [i64; 3] = [1024, 1024, 64];
const MAX_THREADS: u32 = 1024;
/// Most dynamic shared memory of a CTA in bytes, whatever the machine.
const MAX_SHARED: i64 = 1 << 20;
/// Most registers a thread can have.
const MAX_REGISTERS: i64 = 255;

impl View {
    /// Evaluates and binds a launch.
    pub(crate) fn launch(&mut self, step: &LaunchStep) -> Result<Launch, Interrupt> {
        let grid = self.extents(&step.grid, "grid", MAX_GRID)?;
        let block = self.extents(&step.block, "block", MAX_BLOCK)?;
        let threads: u32 = block.iter().product();
        if threads > MAX_THREADS {
            let place = step.block[0].place();
            let message = format!("a block has at most {MAX_THREADS} threads, this one has {threads}");
            return Err(place.fault(message).into());
        }
        // From here on expressions may name the extents.
        self.define_extents(grid, block);
        let shared = self.bounded(step.shared.as_ref(), "`shared`", 0, MAX_SHARED)?.unwrap_or(0);
        let registers = self.bounded(step.regs.as_ref(), "`regs`", 1, MAX_REGISTERS)?;
        let carveout_percent = self.bounded(step.carveout_percent.as_ref(), "`carveout_percent`", 0, 100)?;
        let cluster = match &step.cluster {
            Some(sizes) => Some(self.extents(sizes, "cluster", [i64::from(MAX_CLUSTER); 3])?),
            None => None,
        };
        let mut params = vec![0; step.kernel.param_bytes as usize];
        for (arg, param) in step.args.iter().zip(&step.kernel.params) {
            self.argument(arg, &mut params[param.offset as usize..])?;
        }
        let (textures, surfaces) = (self.textures(step)?, self.surfaces(step)?);
        let plan = &self.plan;
        let binding = Binding {
            grid,
            block,
            dynamic_shared: shared,
            params: &params,
            globals: &plan.globals[step.module],
            const_bank: plan.const_banks[step.module].as_deref(),
            textures: &textures,
            surfaces: &surfaces,
            registers,
            cluster,
            addresses: plan.addresses.clone(),
        };
        let bound = Launch::bind(&plan.programs.modules[step.module], &step.kernel, &binding).map_err(|errors| {
            let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
            step.place.fault(messages.join("; "))
        })?;
        let flags = step.undo.as_ref().filter(|undo| undo.mode.by_cta()).map(|undo| {
            let first = self.address(undo.flag, 0);
            first..first + self.plan.buffers[undo.flag].bytes
        });
        // What the text of a kernel does not say.
        let (stream, programmatic) = (step.order.stream, step.order.programmatic);
        Ok(Launch { communicates: step.communicates, flags, carveout_percent, stream, programmatic, ..bound })
    }

    /// Threads and shared memory of a launch where they depend on neither loop variables nor the device:
    /// grid, block and dynamic shared memory.
    pub(crate) fn fixed_extents(&mut self, step: &LaunchStep) -> Option<([u32; 3], [u32; 3], u32)> {
        let first_loop_slot = self.plan.manifest.names.slots();
        let dynamic = |expr: &Expr| expr.reads_device() || expr.names_from(first_loop_slot);
        if step.grid.iter().chain(&step.block).chain(&step.shared).any(dynamic) {
            return None;
        }
        let grid = self.extents(&step.grid, "grid", MAX_GRID).ok()?;
        let block = self.extents(&step.block, "block", MAX_BLOCK).ok()?;
        self.define_extents(grid, block);
        let shared = self.bounded(step.shared.as_ref(), "`shared`", 0, MAX_SHARED).ok()?;
        Some((grid, block, shared.unwrap_or(0)))
    }

    /// Reports what is wrong with a launch, as far as it does not depend on loop variables and the device.
    pub(crate) fn check_launch(&mut self, step: &LaunchStep, faults: &mut Diagnostics) {
        let first_loop_slot = self.plan.manifest.names.slots();
        let dynamic = |expr: &Expr| expr.reads_device() || expr.names_from(first_loop_slot);
        let mut sound = true;
        for (sizes, what, most) in [(&step.grid, "grid", MAX_GRID), (&step.block, "block", MAX_BLOCK)] {
            for (axis, expr) in sizes.iter().enumerate().filter(|(_, expr)| !dynamic(expr)) {
                if let Err(Interrupt::Fault(fault)) = self.extent(expr, what, most[axis]) {
                    faults.push(*fault);
                    sound = false;
                }
            }
        }
        let static_extents = !step.grid.iter().chain(&step.block).any(dynamic);
        // The rest may name the extents, so it has a meaning only if they have.
        let checkable = sound && static_extents && !step.exprs().any(dynamic);
        if checkable && let Err(Interrupt::Fault(fault)) = self.launch(step) {
            faults.push(*fault);
        }
    }

    fn define_extents(&mut self, grid: [u32; 3], block: [u32; 3]) {
        let slots = self.plan.manifest.names.extents();
        for (slot, size) in slots.into_iter().zip(grid.into_iter().chain(block)) {
            self.frame[slot] = u64::from(size);
        }
    }

    fn extents(&mut self, exprs: &[Expr], what: &str, most: [i64; 3]) -> Result<[u32; 3], Interrupt> {
        let mut sizes = [1; 3];
        for (axis, expr) in exprs.iter().enumerate() {
            sizes[axis] = self.extent(expr, what, most[axis])?;
        }
        Ok(sizes)
    }

    fn extent(&mut self, expr: &Expr, what: &str, most: i64) -> Result<u32, Interrupt> {
        let size = self.integer(expr, "a size")?;
        if size < 1 || size > most {
            let message = format!("a size of `{what}` must be 1 to {most} here, `{}` is {size}", expr.text());
            return Err(expr.place().fault(message).into());
        }
        Ok(size as u32)
    }

    fn bounded(&mut self, expr: Option<&Expr>, what: &str, least: i64, most: i64) -> Result<Option<u32>, Interrupt> {
        let Some(expr) = expr else { return Ok(None) };
        let value = self.integer(expr, what)?;
        if value < least || value > most {
            return Err(expr.place().fault(format!("{what} must be {least} to {most}, found {value}")).into());
        }
        Ok(Some(value as u32))
    }

    /// Writes an argument at the start of `to`.
    fn argument(&mut self, arg: &Arg, to: &mut [u8]) -> Result<(), Interrupt> {
        match arg {
            Arg::Address { to: span, bytes } => {
                let address = self.address_at(span, bytes.as_ref())?;
                to[..8].copy_from_slice(&address.to_le_bytes());
            }
            Arg::Number { value, elem } => {
                let number = self.value(value)?;
                number_bytes(*elem, number, to).map_err(|error| value.place().fault(error))?;
            }
            Arg::Generated(generated) => {
                let address = |number: usize| self.address(number, 0);
                let value = match *generated {
                    Generated::Home(buffer) => address(buffer),
                    Generated::Shift(from, to) => address(to).wrapping_sub(address(from)),
                    Generated::Flag(buffer) => address(buffer) + 4 * self.flags,
                };
                to[..8].copy_from_slice(&value.to_le_bytes());
            }
            // Fetches name their texture; the object's own value is not looked at.
            Arg::Texture(buffer) => to[..8].copy_from_slice(&self.address(*buffer, 0).to_le_bytes()),
            Arg::Tensor(form) => to[..MAP_BYTES].copy_from_slice(&tensor_map(self, form)?.encode()),
            Arg::Struct(parts) => {
                for (offset, part) in parts {
                    self.argument(part, &mut to[*offset as usize..])?;
                }
            }
        }
        Ok(())
    }

    /// An address in a buffer or its padding, or the one after it.
    pub(super) fn address_at(&mut self, span: &BufferStart, bytes: Option<&Expr>) -> Result<u64, Interrupt> {
        let index = span.index.as_ref().map_or(Ok(0), |index| self.integer(index, "an offset in elements"))?;
        let more = bytes.map_or(Ok(0), |bytes| self.integer(bytes, "an offset in bytes"))?;
        let (form, allocation) = (&self.plan.manifest.buffers[span.buffer], self.bindings.of(span.buffer));
        let allocation = &self.plan.buffers[allocation];
        let padding = self.plan.addresses.below(allocation.address).map_or((0, 0), |range| (range.front, range.behind));
        let offset = i128::from(index) * i128::from(form.stride) + i128::from(more);
        let inside = -i128::from(padding.0)..=i128::from(allocation.bytes + padding.1);
        if inside.contains(&offset) {
            return Ok(allocation.address.wrapping_add_signed(offset as i64));
        }
        let fault = match (&span.index, bytes) {
            (_, Some(bytes)) => bytes
                .place()
                .fault(format!("byte {offset} is outside the {} bytes of `{}`", allocation.bytes, form.name)),
            (at, None) => {
                let place = at.as_ref().map_or(&form.place, Expr::place);
                place.fault(format!("index {index} is outside the {} elements of `{}`", allocation.len, form.name))
            }
        };
        Err(fault.into())
    }

    /// The textures a kernel fetches from, by their names.
    fn textures(&self, step: &LaunchStep) -> Result<Vec<(String, Texture)>, Interrupt> {
        let object = |name: &str| {
            let parameter = step.kernel.params.iter().position(|param| param.name == name)?;
            match step.args.get(parameter) {
                Some(Arg::Texture(buffer)) => Some(*buffer),
                _ => None,
            }
        };
        let bound = |name: &String| {
            let is = |form: &Buffer| form.texture.as_ref().is_some_and(|texture| texture.name == *name);
            let number = object(name).or_else(|| self.plan.manifest.buffers.iter().position(is));
            let texture = number.and_then(|number| self.plan.buffers[self.bindings.of(number)].texture.clone());
            texture.map(|texture| (name.clone(), texture)).ok_or_else(|| {
                let fault = step.place.fault(format!("kernel `{}` fetches from texture `{name}`", step.kernel.name));
                let parameter = step.kernel.params.iter().any(|param| param.name == *name);
                Interrupt::from(fault.with_help(match parameter {
                    true => "bind its parameter by `{texture = \"BUFFER\"}`, a buffer in space `texture`",
                    false => "bind it with a buffer in space `texture`",
                }))
            })
        };
        step.kernel.textures.iter().map(bound).collect()
    }

    /// The surfaces a kernel uses, by their names.
    fn surfaces(&self, step: &LaunchStep) -> Result<Vec<(String, Surface)>, Interrupt> {
        let bound = |name: &String| {
            let is = |form: &Buffer| {
                form.surface.as_ref().is_some_and(|surface| surface.names.iter().any(|(n, _)| n == name))
            };
            let number = self.plan.manifest.buffers.iter().position(is);
            let surface = number.and_then(|number| self.plan.buffers[self.bindings.of(number)].surface.clone());
            surface.map(|surface| (name.clone(), surface)).ok_or_else(|| {
                let fault = step.place.fault(format!("kernel `{}` uses surface `{name}`", step.kernel.name));
                Interrupt::from(fault.with_help("bind it with a buffer that has the key `surface`"))
            })
        };
        step.kernel.surfaces.iter().map(bound).collect()
    }
}

impl LaunchStep {
    /// Every expression of the launch but its extents.
    fn exprs(&self) -> impl Iterator<Item = &Expr> {
        fn of_arg(arg: &Arg) -> Vec<&Expr> {
            match arg {
                Arg::Address { to, bytes } => to.index.iter().chain(bytes).collect(),
                Arg::Number { value, .. } => vec![value],
                Arg::Generated(_) | Arg::Texture(_) => Vec::new(),
                Arg::Tensor(form) => form.exprs().collect(),
                Arg::Struct(parts) => parts.iter().flat_map(|(_, part)| of_arg(part)).collect(),
            }
        }
        let sizes = self.shared.iter().chain(&self.regs).chain(&self.carveout_percent);
        sizes.chain(self.cluster.iter().flatten()).chain(self.args.iter().flat_map(of_arg))
    }
}

/// Writes a number as an argument. PTX declares C's `int` as `.u32` or as `.s32`, so an integer parameter
/// takes what fits either.
fn number_bytes(elem: Elem, value: Value, to: &mut [u8]) -> Result<(), String> {
    let Value::Int(integer) = value else {
        return store(elem, value, to);
    };
    if matches!(elem, Elem::F32 | Elem::F64) {
        return store(elem, value, to);
    }
    let bits = 8 * elem.bytes();
    if bits < 64 && (integer < -(1 << (bits - 1)) || integer >= 1 << bits) {
        return Err(format!("{integer} does not fit the {bits} bits of a parameter of type {}", elem_name(elem)));
    }
    let bytes = elem.bytes() as usize;
    to[..bytes].copy_from_slice(&integer.to_le_bytes()[..bytes]);
    Ok(())
}
