//! CUDA's names for clang (`workloads/include/clang`) beside NVIDIA's own: one source that calls them all, compiled by clang
//! and by NVRTC, stores the same bits. Math functions in software are in `clang_math`.

use crate::kernels::Device;

/// Elements of each buffer.
const LEN: usize = 2048;

/// Buffers of each type in order, with small and large numbers of both signs.
fn contents() -> Vec<Vec<u8>> {
    let number = |k: usize| (k * 7919 % 1013) as i64;
    let each = |bytes: &dyn Fn(i64) -> Vec<u8>| (0..LEN).flat_map(|k| bytes(number(k))).collect();
    vec![
        each(&|n| ((n - 500) * 3_333_331).to_le_bytes()[..4].to_vec()),
        each(&|n| (n * 3_333_331 + 12).to_le_bytes()[..4].to_vec()),
        each(&|n| ((n - 500) * 33_311_234_567_812).to_le_bytes().to_vec()),
        each(&|n| (n * 33_311_234_567_812 + 5).to_le_bytes().to_vec()),
        each(&|n| (n as f32 * 0.37 + 0.1).to_le_bytes().to_vec()),
        each(&|n| (n as f64 * 0.37 + 0.1).to_le_bytes().to_vec()),
    ]
}

/// The buffers that a kernel leaves.
fn stored(file: &str, text: &str, kernel: &str, threads: u32) -> Vec<Vec<u8>> {
    let contents = contents();
    let (mut d, addresses) = Device::new(file, text, [8 * LEN; 6]);
    for (address, bytes) in addresses.iter().zip(&contents) {
        d.memory.write(*address, bytes).unwrap();
    }
    let pointers = if kernel == "loads" { &addresses[..1] } else { &addresses[..] };
    let params = pointers.iter().fold(d.block(kernel), |block, address| block.u64(*address)).finish();
    d.run(kernel, [1, 1, 1], [threads, 1, 1], 0, &params);
    addresses.iter().map(|address| d.memory.read(*address, 8 * LEN).unwrap().to_vec()).collect()
}

#[test]
fn every_name_does_what_nvidia_s_does() {
    let kernels = [
        ("atomics", 1),
        ("atomics_block", 1),
        ("atomics_system", 1),
        ("loads", 1),
        ("warps", 32),
        ("integers", 30),
        ("rounded_rn", 30),
        ("rounded_rz", 30),
        ("rounded_rd", 30),
        ("rounded_ru", 30),
        ("floats", 30),
        ("halves", 30),
    ];
    let mut wrong = Vec::new();
    for (kernel, threads) in kernels {
        let ours = stored("names.clang.ptx", include_str!("ptx/names.clang.ptx"), kernel, threads);
        let theirs = stored("names.nvrtc.ptx", include_str!("ptx/names.nvrtc.ptx"), kernel, threads);
        let mut changed = 0;
        for (buffer, (ours, theirs)) in ["i", "u", "l", "q", "f", "d"].iter().zip(ours.iter().zip(&theirs)) {
            let size = if "iuf".contains(buffer) { 4 } else { 8 };
            let words = ours.chunks(size).zip(theirs.chunks(size)).enumerate();
            wrong.extend(
                words
                    .filter(|(_, (a, b))| a != b)
                    .map(|(at, (a, b))| format!("{kernel}: {buffer}[{at}]: {a:x?}, not {b:x?}")),
            );
        }
        for (bytes, before) in theirs.iter().zip(contents()) {
            changed += bytes.iter().zip(&before).filter(|(a, b)| a != b).count();
        }
        assert!(changed > 100, "{kernel} stored {changed} bytes");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
