//! The allocator of the binary and of every bench, so that both measure the same program.
//!
//! Not part of the library: who uses that chooses for itself.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
