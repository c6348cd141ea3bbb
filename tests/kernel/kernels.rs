//! End to end: CUDA C samples compiled by clang and by NVRTC, run by the functional driver, compared with Rust loops.

use std::sync::Arc;

use durawarp::kernel::functional::{Counts, Limits, RunError, run};
use durawarp::kernel::ir::Module;
use durawarp::kernel::launch::{Binding, Launch, ParamBlock, Surface};
use durawarp::kernel::memory::{AddressMap, FlatMemory, Medium};
use durawarp::kernel::ptx;

const BASICS: [(&str, &str); 2] = [
    ("basics.clang.ptx", include_str!("ptx/basics.clang.ptx")),
    ("basics.nvrtc.ptx", include_str!("ptx/basics.nvrtc.ptx")),
];

/// A module, its memory and what was allocated in it.
pub(crate) struct Device {
    module: Module,
    map: AddressMap,
    pub(crate) memory: FlatMemory,
    globals: Vec<u64>,
    /// Surfaces by name, on these buffers.
    pub(crate) surfaces: Vec<(String, Surface)>,
}

impl Device {
    /// Allocates buffers of these sizes, and the module's variables; returns the buffers' addresses.
    pub(crate) fn new<const N: usize>(file: &str, text: &str, buffers: [usize; N]) -> (Device, [u64; N]) {
        let module = ptx::parse(file, text).unwrap_or_else(|faults| panic!("{faults}"));
        let mut map = AddressMap::default();
        let addresses = buffers.map(|bytes| map.allocate("buffer", bytes as u64, Medium::Dram));
        let globals: Vec<u64> = module.globals.iter().map(|v| map.allocate(&v.name, v.bytes, Medium::Dram)).collect();
        let mut memory = FlatMemory::new(&map);
        for (i, &address) in globals.iter().enumerate() {
            memory.write(address, &module.initial_bytes(i, &globals)).unwrap();
        }
        (Device { module, map, memory, globals, surfaces: Vec::new() }, addresses)
    }

    pub(crate) fn run(&mut self, kernel: &str, grid: [u32; 3], block: [u32; 3], shared: u32, params: &[u8]) -> Counts {
        self.try_run(kernel, grid, block, shared, params, 32).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The parameters of a kernel, to be filled in.
    pub(crate) fn block(&self, kernel: &str) -> ParamBlock<'_> {
        ParamBlock::new(self.module.kernel(kernel).expect("the kernel exists"))
    }

    fn try_run(
        &mut self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        params: &[u8],
        warp_size: u32,
    ) -> Result<Counts, RunError> {
        let kernel = self.module.kernel(kernel).expect("the kernel exists").clone();
        let binding = Binding {
            grid,
            block,
            dynamic_shared: shared,
            params,
            globals: &self.globals,
            const_bank: None,
            textures: &[],
            surfaces: &self.surfaces,
            registers: None,
            cluster: None,
            addresses: Arc::new(self.map.clone()),
        };
        let launch = Launch::bind(&self.module, &kernel, &binding).unwrap();
        let limits = Limits { warp_instructions: 50_000_000, warp_size, ..Limits::default() };
        run(&launch, &mut self.memory, &limits)
    }
}

fn params(device: &Device, kernel: &str, pointers: &[u64], n: u32) -> Vec<u8> {
    pointers.iter().fold(device.block(kernel), |block, &p| block.u64(p)).u32(n).finish()
}

#[test]
fn vecadd_adds_and_leaves_the_rest_alone() {
    for (file, text) in BASICS {
        let n = 1000;
        let (mut d, [a, b, c]) = Device::new(file, text, [4 * n, 4 * n, 4 * n + 64]);
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5).collect();
        let y: Vec<f32> = (0..n).map(|i| 1000.0 - i as f32).collect();
        d.memory.write_f32s(a, &x).unwrap();
        d.memory.write_f32s(b, &y).unwrap();
        let p = params(&d, "vecadd", &[a, b, c], n as u32);
        d.run("vecadd", [8, 1, 1], [128, 1, 1], 0, &p);
        let out = d.memory.read_f32s(c, n + 16).unwrap();
        for i in 0..n {
            assert_eq!(out[i], x[i] + y[i], "{file} {i}");
        }
        assert!(out[n..].iter().all(|&v| v == 0.0));
    }
}

#[test]
fn gemm_with_tiles_in_shared_memory() {
    for (file, text) in BASICS {
        for warp_size in [32, 64] {
            let n = 48usize;
            let (mut d, [a, b, c]) = Device::new(file, text, [4 * n * n; 3]);
            let x: Vec<f32> = (0..n * n).map(|i| ((i * 7) % 13) as f32 - 5.0).collect();
            let y: Vec<f32> = (0..n * n).map(|i| ((i * 5) % 11) as f32 * 0.25).collect();
            d.memory.write_f32s(a, &x).unwrap();
            d.memory.write_f32s(b, &y).unwrap();
            let p = params(&d, "gemm", &[a, b, c], n as u32);
            d.try_run("gemm", [3, 3, 1], [16, 16, 1], 0, &p, warp_size).unwrap();
            let out = d.memory.read_f32s(c, n * n).unwrap();
            for row in 0..n {
                for column in 0..n {
                    let sum = (0..n).fold(0.0f32, |s, k| x[row * n + k].mul_add(y[k * n + column], s));
                    assert_eq!(out[row * n + column], sum, "{file} {row} {column}");
                }
            }
        }
    }
}

#[test]
fn reduction_with_barriers_shuffles_and_an_atomic() {
    for (file, text) in BASICS {
        let n = 5000usize;
        let (mut d, [input, out]) = Device::new(file, text, [4 * n, 4]);
        let x: Vec<i32> = (0..n as i32).map(|i| i * 31 % 1009 - 300).collect();
        d.memory.write_i32s(input, &x).unwrap();
        let p = params(&d, "reduce", &[input, out], n as u32);
        d.run("reduce", [4, 1, 1], [256, 1, 1], 1024, &p);
        assert_eq!(d.memory.read_i32s(out, 1).unwrap()[0], x.iter().sum::<i32>(), "{file}");
    }
}

#[test]
fn collatz_lanes_leave_their_loop_one_by_one() {
    for (file, text) in BASICS {
        for warp_size in [32, 64] {
            let n = 333usize;
            let (mut d, [input, out]) = Device::new(file, text, [4 * n, 4 * n]);
            let x: Vec<u32> = (1..=n as u32).collect();
            d.memory.write_u32s(input, &x).unwrap();
            let p = params(&d, "collatz", &[input, out], n as u32);
            d.try_run("collatz", [3, 1, 1], [128, 1, 1], 0, &p, warp_size).unwrap();
            let steps = |mut v: u32| {
                let mut steps = 0;
                while v != 1 {
                    v = if v % 2 == 1 { 3 * v + 1 } else { v / 2 };
                    steps += 1;
                }
                steps
            };
            let expected: Vec<u32> = x.iter().map(|&v| steps(v)).collect();
            assert_eq!(d.memory.read_u32s(out, n).unwrap(), expected, "{file}");
        }
    }
}

#[test]
fn structures_constants_local_memory_and_module_variables() {
    for (file, text) in BASICS {
        let n = 64usize;
        let (mut d, [input, out, shorts]) = Device::new(file, text, [64, 8 * n, 2 * n]);
        let bytes: Vec<u8> = (0..64).map(|i| (i * 37 + 11) as u8).collect();
        d.memory.write(input, &bytes).unwrap();
        let (scale, shift, flags) = (0.375f64, 3i32, [1u8, 2, 200, 255]);
        let mut pair = scale.to_le_bytes().to_vec();
        pair.extend(shift.to_le_bytes());
        pair.extend(flags);
        let kernel = d.module.kernel("mixed").unwrap().clone();
        let p = ParamBlock::new(&kernel).u64(input).u64(out).u64(shorts).bytes(&pair).finish();
        d.run("mixed", [2, 1, 1], [32, 1, 1], 0, &p);
        let (doubles, halves) = (d.memory.read_f64s(out, n).unwrap(), d.memory.read_u16s(shorts, n).unwrap());
        for i in 0..n {
            let local: Vec<i32> = (0..8).map(|k| i32::from(bytes[(i + k) % 64]) * (k as i32 + 1)).collect();
            let pick = local[usize::from(bytes[i] & 7)];
            let table = f64::from(1u32 << (i & 7));
            let expected = scale.mul_add(f64::from(pick), table) + f64::from(flags[i & 3]);
            assert_eq!(doubles[i], expected, "{file} {i}");
            assert_eq!(halves[i], (pick - ((i as i32) << shift)) as u16, "{file} {i}");
        }
        let counter = d.module.globals.iter().position(|g| g.name == "counter").unwrap();
        assert_eq!(d.memory.read_u32s(d.globals[counter], 1).unwrap(), [7], "{file}");
    }
}

#[test]
fn calls_of_functions_are_inlined() {
    for (file, text) in BASICS {
        let n = 100usize;
        let (mut d, [input, out]) = Device::new(file, text, [4 * n, 4 * n]);
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.01).collect();
        d.memory.write_f32s(input, &x).unwrap();
        let p = params(&d, "calls", &[input, out], n as u32);
        d.run("calls", [1, 1, 1], [128, 1, 1], 0, &p);
        let got = d.memory.read_f32s(out, n).unwrap();
        for i in 0..n {
            let poly = (0..i % 5).fold(0.0f32, |r, k| r.mul_add(x[i], 1.0 / (k as f32 + 1.0)));
            assert_eq!(got[i], if i % 3 != 0 { poly } else { x[i] }, "{file} {i}");
        }
    }
}
