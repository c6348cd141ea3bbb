//! Half precision, surfaces and video instructions end to end: CUDA C compiled by NVRTC with the toolkit's `cuda_fp16.h`
//! and `cuda_bf16.h`, run by the functional driver, compared with Rust loops and a software float library.

use durawarp::kernel::launch::Surface;
use rustc_apfloat::ieee::{BFloat, Half, Single};
use rustc_apfloat::{Float, FloatConvert};

use crate::kernels::Device;

fn device<const N: usize>(buffers: [usize; N]) -> (Device, [u64; N]) {
    Device::new("halves.nvrtc.ptx", include_str!("ptx/halves.nvrtc.ptx"), buffers)
}

fn half<F: Float>(x: f32) -> F
where
    Single: FloatConvert<F>,
{
    Single::from_bits(u128::from(x.to_bits())).convert(&mut false).value
}

fn bits<F: Float>(x: F) -> u16 {
    x.to_bits() as u16
}

fn value<F: Float + FloatConvert<Single>>(bits: u16) -> f32 {
    let wide: Single = F::from_bits(u128::from(bits)).convert(&mut false).value;
    f32::from_bits(wide.to_bits() as u32)
}

fn write_u16s(device: &mut Device, address: u64, values: &[u16]) {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    device.memory.write(address, &bytes).unwrap();
}

fn read_u16s(device: &Device, address: u64, n: usize) -> Vec<u16> {
    let bytes = device.memory.read(address, 2 * n).unwrap();
    bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect()
}

#[test]
fn pairs_of_halves_are_multiplied_and_added_with_one_rounding() {
    let n = 100usize;
    let (mut d, [x, y]) = device([4 * n, 4 * n]);
    let values = |step: f32| (0..2 * n).map(|i| half::<Half>((i as f32 - 80.0) * step)).collect::<Vec<Half>>();
    let (xs, ys, a) = (values(0.37), values(-11.3), half::<Half>(0.7));
    write_u16s(&mut d, x, &xs.iter().copied().map(bits).collect::<Vec<u16>>());
    write_u16s(&mut d, y, &ys.iter().copied().map(bits).collect::<Vec<u16>>());
    let params = d.block("axpy").u64(x).u64(y).bytes(&bits(a).to_le_bytes()).u32(n as u32).finish();
    d.run("axpy", [2, 1, 1], [64, 1, 1], 0, &params);
    for (i, found) in read_u16s(&d, y, 2 * n).into_iter().enumerate() {
        assert_eq!(found, bits(a.mul_add(xs[i], ys[i]).value), "{i}");
    }
}

#[test]
fn exponentials_logarithms_comparisons_and_atomics_of_halves() {
    let n = 64usize;
    let (mut d, [x, y, total]) = device([4 * n, 2 * n, 4]);
    let xs: Vec<f32> = (0..n).map(|i| (i as f32 - 32.0) / 4.0).collect();
    d.memory.write_f32s(x, &xs).unwrap();
    let params = d.block("softplus").u64(x).u64(y).u64(total).u32(n as u32).finish();
    d.run("softplus", [1, 1, 1], [64, 1, 1], 0, &params);
    for (x, found) in xs.iter().zip(read_u16s(&d, y, n)) {
        let found = value::<Half>(found);
        // ln(1 + e^x), of which half precision sees nothing beside 1 when e^x is small; above 4 it is x.
        let wanted = if *x > 4.0 { *x } else { x.exp().ln_1p() };
        assert!((found - wanted).abs() <= 0.002 + 0.002 * wanted, "{x}: {found}, not {wanted}");
    }
    // Multiples of 1/16 below 128 are halves, in whichever order they are added.
    let sum: f32 = xs.iter().map(|x| (x * x).min(1.0)).sum();
    assert_eq!(read_u16s(&d, total, 1)[0], bits(half::<Half>(sum)));
}

#[test]
fn bfloat16_pairs_are_rounded_after_each_operation() {
    let n = 50usize;
    let (mut d, [x, y]) = device([2 * n, 4 * n]);
    let xs: Vec<u16> = (0..n).map(|i| bits(half::<BFloat>((i as f32 - 20.0) * 0.173))).collect();
    write_u16s(&mut d, x, &xs);
    let scale = 1.7f32;
    let params = d.block("normalize").u64(x).u64(y).bytes(&scale.to_le_bytes()).u32(n as u32).finish();
    d.run("normalize", [1, 1, 1], [64, 1, 1], 0, &params);
    let found = read_u16s(&d, y, 2 * n);
    for (i, &x) in xs.iter().enumerate() {
        let v = value::<BFloat>(x);
        let pair: [BFloat; 2] = [half(v * scale), half(v + scale)];
        let sum = pair.map(|p| (p + (p * p).value).value);
        let greater = (0..2).all(|k| sum[k] > pair[k]);
        for k in 0..2 {
            let fused = pair[k].mul_add(pair[k], sum[k]).value;
            let wanted = if greater { sum[k].max(pair[k]) } else { fused };
            let wanted = if !greater && wanted.is_negative() { 0 } else { bits(wanted) };
            assert_eq!(found[2 * i + k], wanted, "{i} {k}: {v}");
        }
    }
}

#[test]
fn surface_objects_are_read_and_written_in_rows() {
    let (width, height) = (20u32, 6u32);
    let (mut d, [from, to]) = device([128 * 6, 32 * 20]);
    let surface = |address, width, height, pitch| Surface { address, width, height, depth: 1, pitch, element: 4 };
    d.surfaces = vec![
        ("rotate_param_0".to_owned(), surface(from, width, height, 128)),
        ("rotate_param_1".to_owned(), surface(to, height, width, 32)),
    ];
    let texel = |x: u32, y: u32| (1000 * y + x) | 0xbeef_0000;
    for y in 0..height {
        for x in 0..width {
            d.memory.write(from + u64::from(128 * y + 4 * x), &texel(x, y).to_le_bytes()).unwrap();
        }
    }
    // Objects are handles: which number they are does not matter.
    let params = d.block("rotate").u64(7).u64(8).u32(width).u32(height).finish();
    d.run("rotate", [1, height, 1], [32, 1, 1], 0, &params);
    for y in 0..height {
        for x in 0..width {
            let found = d.memory.read(to + u64::from(32 * x + 4 * (height - 1 - y)), 4).unwrap().to_vec();
            assert_eq!(u32::from_le_bytes(found.try_into().unwrap()), texel(x, y), "({x}, {y})");
        }
    }
}

#[test]
fn bytes_and_shorts_in_words() {
    let n = 200usize;
    let (mut d, [a, b, out]) = device([4 * n; 3]);
    let words = |factor: u32| (0..n as u32).map(|i| (i + 1).wrapping_mul(factor)).collect::<Vec<u32>>();
    let (xs, ys) = (words(0x9e37_79b9), words(0x85eb_ca6b));
    for (address, words) in [(a, &xs), (b, &ys)] {
        let bytes: Vec<u8> = words.iter().flat_map(|v| v.to_le_bytes()).collect();
        d.memory.write(address, &bytes).unwrap();
    }
    let params = d.block("bytes").u64(a).u64(b).u64(out).u32(n as u32).finish();
    d.run("bytes", [7, 1, 1], [32, 1, 1], 0, &params);
    let found = d.memory.read(out, 4 * n).unwrap();
    for (i, found) in found.chunks_exact(4).enumerate() {
        let (x, y) = (xs[i], ys[i]);
        let (p, q) = (x.to_le_bytes(), y.to_le_bytes());
        let sad: u32 = (0..4).map(|k| u32::from(p[k].abs_diff(q[k]))).sum();
        // A byte of a and the lower half of b, signed; at least 0, at most 1000.
        let part = (i64::from(p[1]) + i64::from(y as i16)).clamp(0, 1000) as u32;
        let most = u32::from_le_bytes(std::array::from_fn(|k| p[k].max(q[k])));
        let shorts = [x as u16, (x >> 16) as u16].into_iter().zip([y as u16, (y >> 16) as u16]);
        let sad2: u32 = shorts.clone().map(|(s, t)| u32::from(s.abs_diff(t))).sum();
        let greater: [u32; 2] = {
            let mut both = shorts.map(|(s, t)| if (s as i16) > t as i16 { 0xffff } else { 0 });
            [both.next().unwrap(), both.next().unwrap()]
        };
        let wanted = (sad + i as u32)
            .wrapping_add(3 * part)
            .wrapping_add(most)
            .wrapping_add(sad2)
            .wrapping_add(greater[0] | greater[1] << 16);
        assert_eq!(u32::from_le_bytes(found.try_into().unwrap()), wanted, "{i}: {x:#x}, {y:#x}");
    }
}
