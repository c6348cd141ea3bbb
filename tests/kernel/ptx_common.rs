//! What the PTX tests share: a device with two buffers that runs the first kernel of a text.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use durawarp::kernel::functional::{Counts, Limits, RunError, run};
use durawarp::kernel::launch::{Binding, Launch, ParamBlock, Surface, Texture};
use durawarp::kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp::kernel::ptx;
use durawarp::kernel::tensor_map::TensorMap;

/// What a run needs besides the text.
pub(crate) struct Setup<'a> {
    /// Bytes of the first parameter's buffer.
    pub(crate) input: &'a [u8],
    /// Size of the second parameter's buffer.
    pub(crate) output: usize,
    /// CTAs and threads of a CTA, in x.
    pub(crate) shape: (u32, u32),
    /// Lanes of a warp.
    pub(crate) warp_size: u32,
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u32,
    /// Value of a third parameter, if the kernel has one.
    pub(crate) extra: u32,
    /// Makes maps of tensors in the two buffers, which are the parameters behind theirs.
    pub(crate) maps: &'a dyn Fn([u64; 2]) -> Vec<TensorMap>,
    /// SMs of another machine, which gives other values to what only a machine knows.
    pub(crate) other_machine_sms: Option<u32>,
    /// Makes textures on the input buffer.
    pub(crate) textures: &'a dyn Fn(u64) -> Vec<(String, Texture)>,
    /// Makes surfaces on the output buffer.
    pub(crate) surfaces: &'a dyn Fn(u64) -> Vec<(String, Surface)>,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Setup {
            input: &[],
            output: 8,
            shape: (1, 1),
            warp_size: 32,
            shared: 0,
            extra: 0,
            maps: &|_| Vec::new(),
            other_machine_sms: None,
            textures: &|_| Vec::new(),
            surfaces: &|_| Vec::new(),
        }
    }
}

/// How a run ended, and the buffers after it.
pub(crate) struct Ran {
    pub(crate) result: Result<Counts, RunError>,
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) addresses: [u64; 2],
    pub(crate) launch: Launch,
}

impl Ran {
    pub(crate) fn u32s(&self) -> Vec<u32> {
        self.output.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    }

    pub(crate) fn u64s(&self) -> Vec<u64> {
        self.output.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
    }
}

/// Runs the first kernel of `text`, whose parameters are the input buffer, the output buffer, maps, and perhaps a
/// `.u32`.
pub(crate) fn run_text(text: &str, setup: &Setup<'_>) -> Ran {
    let text = &if text.contains(".version") { text.to_owned() } else { format!(".version 8.0 {text}") };
    let module = ptx::parse("test.ptx", text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let kernel = module.kernels[0].clone();
    let mut map = AddressMap::default();
    let input = map.allocate("input", setup.input.len().max(16) as u64, Medium::Dram);
    let output = map.allocate("output", setup.output as u64, Medium::Nvm);
    let globals: Vec<u64> = module.globals.iter().map(|v| map.allocate(&v.name, v.bytes, Medium::Dram)).collect();
    let mut memory = FlatMemory::new(&map);
    memory.write(input, setup.input).unwrap();
    for (i, &address) in globals.iter().enumerate() {
        memory.write(address, &module.initial_bytes(i, &globals)).unwrap();
    }
    let mut block = ParamBlock::new(&kernel);
    if !kernel.params.is_empty() {
        block = block.u64(input).u64(output);
    }
    let maps = (setup.maps)([input, output]);
    for map in &maps {
        block = block.bytes(&map.encode());
    }
    if kernel.params.len() > 2 + maps.len() {
        block = block.u32(setup.extra);
    }
    let binding = Binding {
        grid: [setup.shape.0, 1, 1],
        block: [setup.shape.1, 1, 1],
        dynamic_shared: setup.shared,
        params: &block.finish(),
        globals: &globals,
        const_bank: None,
        textures: &(setup.textures)(input),
        surfaces: &(setup.surfaces)(output),
        registers: None,
        cluster: None,
        addresses: Arc::new(map),
    };
    let launch = Launch::bind(&module, &kernel, &binding).unwrap();
    let Setup { warp_size, other_machine_sms, .. } = *setup;
    let limits = Limits { warp_instructions: 1_000_000, warp_size, other_machine_sms, ..Limits::default() };
    let result = run(&launch, &mut memory, &limits);
    Ran {
        result,
        input: memory.read(input, setup.input.len()).unwrap().to_vec(),
        output: memory.read(output, setup.output).unwrap().to_vec(),
        addresses: [input, output],
        launch,
    }
}
