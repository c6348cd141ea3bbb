//! PTX on the functional driver: what is read, what each instruction does, and what is refused.

mod ptx_common;

mod bounds;
mod bulk;
mod calls;
mod check;
mod clang_math;
mod clang_names;
mod clusters;
mod compiled_halves;
mod divergence;
mod faults;
mod floats;
mod half;
mod im2col;
mod instructions;
mod kernels;
mod launch_control;
mod matrix;
mod measured;
mod memory;
mod multicast;
mod persist_barriers;
mod products;
mod recursion;
mod sparse;
mod surfaces;
mod syntax;
mod tcgen05;
mod tensor_maps;
mod tensors;
mod totals;
mod vectors;
mod video;
mod wgmma;
mod wmma;
