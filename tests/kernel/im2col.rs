//! Pixels (`im2col`) and rows (`gather4`, `scatter4`) of tensors on the functional driver: values beside
//! loops of the test's own and beside what a card printed, a convolution, what is refused, what is a fault.
//! `tests/kernel/ptx/im2col.ptx` is run on the timed machine by `tests/machine/im2col.rs`, too.

use durawarp::kernel::ptx;
use durawarp::kernel::tensor_map::{Fill, PixelBox, Swizzle, TensorElem, TensorMap};

use crate::clusters::{Arg, launch_of};
use crate::ptx_common::Ran;
use crate::tensors::{dense, pattern, ran, shown};

const KERNELS: &str = include_str!("ptx/im2col.ptx");

/// A tensor as dense as can be, whose copies have pixels: `channels` of each, in steps of `steps`.
fn pixels(elem: TensorElem, sizes: &[u32], channels: u32, steps: u32, im2col: PixelBox) -> TensorMap {
    let mut map = TensorMap { im2col: Some(im2col), ..dense(elem, 0, sizes, &vec![1; sizes.len()]) };
    map.box_sizes[0] = channels;
    map.steps[1..sizes.len() - 1].fill(steps);
    map
}

/// Runs `body` with `map` of the input and of the output.
fn both(input: &[u8], output: u32, map: TensorMap, body: &str) -> Ran {
    let maps = move |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
    ran(input, output as usize, &maps, body)
}

fn braces(list: &[i32]) -> String {
    format!("{{{}}}", list.iter().map(i32::to_string).collect::<Vec<_>>().join(", "))
}

/// Loads `bytes` bytes by an instruction, and waits.
fn load(instruction: &str, bytes: u32) -> String {
    format!(
        "@!q1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\n@!q1 {instruction};\n\
         W: mbarrier.try_wait.parity.shared.b64 p1, [bar], 0; @!p1 bra W;\n"
    )
}

/// `im2col` of map `a` from `first` on.
fn load_pixels(first: &[i32], offsets: &[i32], bytes: u32) -> String {
    let at = format!("[tile], [a, {}], [bar], {}", braces(first), braces(offsets));
    let form = format!("cp.async.bulk.tensor.{}d.shared::cta.global.im2col.mbarrier::complete_tx::bytes", first.len());
    load(&format!("{form} {at}"), bytes)
}

/// All pixels of a tensor in the order of a convolution, as loops have them: coordinates W, H, D, N of the
/// filter.
fn filters(map: &TensorMap, n: usize) -> Vec<[i64; 4]> {
    let im2col = map.im2col.unwrap();
    let along = |d: usize| -> Vec<i64> {
        if d + 1 < n {
            let end = i64::from(map.sizes[d]) + i64::from(im2col.upper[d - 1]);
            (i64::from(im2col.lower[d - 1])..end).step_by(map.steps[d] as usize).collect()
        } else {
            vec![0]
        }
    };
    let mut all = Vec::new();
    for image in 0..i64::from(map.sizes[n - 1]) {
        for slice in along(3) {
            for row in along(2) {
                all.extend(along(1).into_iter().map(|column| [column, row, slice, image]));
            }
        }
    }
    all
}

/// Where the element of a channel lies of a pixel of [`filters`], with offsets; none outside.
fn element(map: &TensorMap, n: usize, at: [i64; 4], offsets: &[i32], channel: i64) -> Option<usize> {
    let mut coordinates = [channel, 0, 0, 0, 0];
    for d in 1..n - 1 {
        coordinates[d] = at[d - 1] + i64::from(offsets[d - 1]);
    }
    coordinates[n - 1] = at[3];
    (0..n).try_fold(0, |address, d| {
        let stride = if d == 0 { u64::from(map.elem.bytes()) } else { map.strides[d - 1] };
        let inside = (0..i64::from(map.sizes[d])).contains(&coordinates[d]);
        inside.then(|| address + coordinates[d] as usize * stride as usize)
    })
}

#[test]
fn pixels_of_three_to_five_dimensions_are_those_of_loops() {
    let input = pattern(1 << 17);
    let sizes = [20u32, 7, 5, 4, 3];
    for (elem, channels) in [(TensorElem::U8, 16), (TensorElem::F16, 8), (TensorElem::U32, 12)] {
        let row = channels * elem.bytes();
        for (steps, lower, upper) in [(1, 0, 0), (1, -1, -1), (2, -2, 1), (3, 1, -1)] {
            for n in 3..=5 {
                // The last size that is taken is the number of images.
                let corners = |corner| if n == 5 { [corner, 0, corner] } else { [corner, corner, 0] };
                let im2col = PixelBox { pixels: 19, lower: corners(lower), upper: corners(upper) };
                let map = pixels(elem, &sizes[..n], channels, steps, im2col);
                let all = filters(&map, n);
                for (start, channel, offsets) in [(0, 0, [0, 0, 0]), (all.len() / 2, 4, [2, 1, 1]), (1, -3, [0, 4, 2])]
                {
                    let at = all[start].map(|at| at as i32);
                    let mut first = vec![channel];
                    first.extend(&at[..n - 2]);
                    first.push(at[3]);
                    let (offsets, bytes) = (&offsets[..n - 2], 19 * row);
                    let shown_bytes = bytes.next_multiple_of(128);
                    let body = load_pixels(&first, offsets, bytes) + &shown(shown_bytes);
                    let ran = both(&input, shown_bytes, map, &body);
                    ran.result.as_ref().unwrap_or_else(|fault| panic!("{elem:?} {n} {first:?}: {fault}"));
                    let size = elem.bytes() as usize;
                    let expected: Vec<u8> = (start..start + 19)
                        .flat_map(|number| (0..channels).map(move |c| (number, i64::from(channel) + i64::from(c))))
                        .map(|(number, c)| element(&map, n, *all.get(number)?, offsets, c))
                        .flat_map(|from| (0..size).map(move |byte| from.map(|from| from + byte)))
                        .map(|from| from.map_or(0, |from| input[from]))
                        .collect();
                    let what = format!("{elem:?} {n} dimensions, steps of {steps}, {first:?} + {offsets:?}");
                    assert_eq!(ran.output[..bytes as usize], expected, "{what}");
                }
            }
        }
    }
}

/// The examples of Triton's tutorial on `im2col`, which have the words that a card has loaded: images of 4 x
/// 4 pixels whose channels are 1, 2, 3 and so on, loads of 16 pixels of 32 channels of singles.
#[test]
fn pixels_are_those_that_a_card_has_loaded() {
    let input: Vec<u8> =
        (1..=32).flat_map(|pixel| [pixel as f32; 32]).flat_map(|channel| channel.to_le_bytes()).collect();
    let loaded = |corner: i16, [w, h]: [i32; 2], offset: i32| -> Vec<u32> {
        let im2col = PixelBox { pixels: 16, lower: [corner; 3], upper: [corner; 3] };
        let map = TensorMap { swizzle: Swizzle::B128, ..pixels(TensorElem::F32, &[32, 4, 4, 2], 32, 1, im2col) };
        let body = load_pixels(&[0, w, h, 0], &[offset; 2], 2048) + &shown(2048);
        let ran = both(&input, 2048, map, &body);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        ran.u32s().chunks_exact(32).map(|channels| f32::from_bits(channels[0]) as u32).collect()
    };
    assert_eq!(loaded(0, [0, 0], 0), (1..=16).collect::<Vec<_>>());
    assert_eq!(loaded(-1, [-1, -1], 0), [0, 0, 0, 0, 0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11]);
    assert_eq!(loaded(-1, [-1, -1], 1), (1..=16).collect::<Vec<_>>());
    assert_eq!(loaded(0, [3, 1], 0), (8..=23).collect::<Vec<_>>());
    assert_eq!(loaded(-1, [2, 1], 0), [7, 0, 9, 10, 11, 0, 0, 0, 0, 0, 17, 18, 19, 0, 21, 22]);
}

#[test]
fn pixels_are_swizzled_as_rows_are_and_filled_with_nan() {
    let input = pattern(1 << 14);
    for (swizzle, channels, place) in [
        (Swizzle::B64, 16, (|y, x| x ^ (y / 2 % 4)) as fn(usize, usize) -> usize),
        (Swizzle::B32, 8, |y, x| x ^ (y / 4 % 2)),
    ] {
        let im2col = PixelBox { pixels: 24, lower: [-1; 3], upper: [-1; 3] };
        let map = pixels(TensorElem::F32, &[24, 6, 5, 3], channels, 1, im2col);
        let map = TensorMap { swizzle, fill: Fill::Nan, ..map };
        let bytes = 24 * 4 * channels;
        let ran = both(&input, bytes, map, &(load_pixels(&[4, -1, 2, 0], &[2, 2], bytes) + &shown(bytes)));
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        let all = filters(&map, 4);
        let start = all.iter().position(|at| *at == [-1, 2, 0, 0]).unwrap();
        for (y, at) in all[start..start + 24].iter().enumerate() {
            for unit in 0..channels as usize / 4 {
                let found = &ran.output[(y * channels as usize / 4 + place(y, unit)) * 16..][..16];
                match element(&map, 4, *at, &[2, 2], 4 + 4 * unit as i64) {
                    Some(from) => assert_eq!(found, &input[from..from + 16], "{swizzle:?} pixel {y} unit {unit}"),
                    None => assert!(f32::from_bits(u32::from_le_bytes(found[..4].try_into().unwrap())).is_nan()),
                }
            }
        }
    }
}

#[test]
fn stores_and_reductions_of_pixels_leave_out_what_is_outside() {
    let input = pattern(1 << 13);
    let im2col = PixelBox { pixels: 14, lower: [-1, -1, 0], upper: [0, 1, 0] };
    let map = pixels(TensorElem::U32, &[8, 4, 3, 2], 8, 1, im2col);
    let bytes = 8 * 4 * 3 * 2 * 4;
    let store = "fence.proxy.async.shared::cta;\n\
                 @!q1 cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [b, {0, 1, -1, 0}], [tile];\n\
                 @!q1 cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group [b, {0, -1, 0, 1}], [tile];\n\
                 @!q1 cp.async.bulk.commit_group; @!q1 cp.async.bulk.wait_group 0;";
    let ran = both(&input, bytes, map, &(load_pixels(&[0, -1, -1, 0], &[2, 1], 14 * 32) + store));
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    let all = filters(&map, 4);
    let of = |at: [i64; 4]| all.iter().position(|other| *other == at).unwrap();
    let mut expected = vec![0u32; bytes as usize / 4];
    for (start, adds) in [(of([1, -1, 0, 0]), false), (of([-1, 0, 0, 1]), true)] {
        for pixel in 0..14 {
            for c in 0..8 {
                let Some(to) = element(&map, 4, all[start + pixel], &[0, 0], c) else { continue };
                let word = element(&map, 4, all[pixel], &[2, 1], c)
                    .map_or(0, |from| u32::from_le_bytes(input[from..from + 4].try_into().unwrap()));
                let old = if adds { expected[to / 4] } else { 0 };
                expected[to / 4] = old.wrapping_add(word);
            }
        }
    }
    assert_eq!(ran.u32s(), expected);
    assert!(expected.iter().filter(|word| **word != 0).count() > 30);
}

#[test]
fn four_rows_are_gathered_from_anywhere_and_scattered_anywhere() {
    let input = pattern(4096);
    for (swizzle, rows) in [(Swizzle::None, [7, 2, 9, 2]), (Swizzle::B64, [0, 10, -1, 9])] {
        let map = TensorMap { swizzle, ..dense(TensorElem::U32, 0, &[20, 10], &[16, 1]) };
        let at = |column: i32, rows: [i32; 4]| braces(&[column].into_iter().chain(rows).collect::<Vec<_>>());
        let form = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes";
        let gather = load(&format!("{form} [tile], [a, {}], [bar]", at(6, rows)), 256);
        // The first and the third row are one: the later one is there, and both are added.
        let to = [3, 8, 3, 12];
        let store = format!(
            "fence.proxy.async.shared::cta;\n\
             @!q1 cp.async.bulk.tensor.2d.tile::scatter4.global.shared::cta.bulk_group [b, {0}], [tile];\n\
             @!q1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile::scatter4.bulk_group [b, {0}], [tile];\n\
             @!q1 cp.async.bulk.commit_group; @!q1 cp.async.bulk.wait_group 0;",
            at(-2, to)
        );
        let ran = both(&input, 800, map, &(gather + &store));
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        let word = |row: i32, column: i32| match (0..10).contains(&row) && column < 20 {
            true => u32::from_le_bytes(input[(row * 80 + column * 4) as usize..][..4].try_into().unwrap()),
            false => 0,
        };
        let mut expected = vec![0u32; 200];
        for adds in [false, true] {
            for (from, to) in rows.into_iter().zip(to) {
                for column in 0..14 {
                    let Some(old) = expected.get_mut((to * 20 + column) as usize) else { continue };
                    *old = word(from, column + 8).wrapping_add(if adds { *old } else { 0 });
                }
            }
        }
        assert_eq!(ran.u32s(), expected, "{swizzle:?}");
    }
}

/// A convolution by `im2col` beside its definition.
#[test]
fn a_convolution_by_pixels_is_the_sum_that_defines_it() {
    let ([width, height, images], results) = ([9usize, 7, 3], 8);
    let x: Vec<u32> = (0..8 * width * height * images).map(|i| (i as u32).wrapping_mul(2_654_435_761) >> 20).collect();
    for (filter, stride, dilation, pad) in [(3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 2, 0), (3, 2, 2, 2), (1, 3, 1, 0)] {
        let reach = (filter - 1) * dilation;
        let [q, p] = [width, height].map(|size| (size + 2 * pad - reach - 1) / stride + 1);
        let weights: Vec<u32> = (0..filter * filter * 8 * results).map(|i| (i as u32 * 7919) % 101).collect();
        let total = q * p * images;
        // The last filter ends where the padded tensor does, or before.
        let lower = -(pad as i16);
        let im2col = PixelBox { pixels: 16, lower: [lower; 3], upper: [pad as i16 - reach as i16; 3] };
        let sizes = [8, width as u32, height as u32, images as u32];
        let map = pixels(TensorElem::U32, &sizes, 8, stride as u32, im2col);
        let zeros = vec![0; total * results];
        let number = |number: usize| Arg::Number(number as u32);
        let text = with_buffer_of("convolve");
        let args = [
            Arg::Words(&x),
            Arg::Map(0, map),
            Arg::Words(&weights),
            Arg::Words(&zeros),
            number(q),
            number(p),
            number(total),
            number(filter),
            number(stride),
            number(dilation),
            number(pad),
        ];
        let shape = [[total.div_ceil(16) as u32, 1, 1], [0; 3], [128, 1, 1]];
        let found = launch_of(&text, "convolve", shape, 0, &args).unwrap();
        let mut expected = zeros.clone();
        for (number, sums) in expected.chunks_exact_mut(results).enumerate() {
            let (column, row, image) = (number % q, number / q % p, number / q / p);
            for r in 0..filter {
                for s in 0..filter {
                    // Outside of the image there are zeros.
                    let at = |place: usize, tap: usize, size: usize| {
                        (place * stride + tap * dilation).checked_sub(pad).filter(|at| *at < size)
                    };
                    let (Some(w), Some(h)) = (at(column, s, width), at(row, r, height)) else { continue };
                    for c in 0..8 {
                        let value = x[((image * height + h) * width + w) * 8 + c];
                        for (co, sum) in sums.iter_mut().enumerate() {
                            let weight = weights[((r * filter + s) * 8 + c) * results + co];
                            *sum = sum.wrapping_add(value.wrapping_mul(weight));
                        }
                    }
                }
            }
        }
        let words = &found[2];
        assert_eq!(*words, expected, "filter {filter}, stride {stride}, dilation {dilation}, padding {pad}");
    }
}

/// The offsets lie behind the mask of CTAs: a load to three of four CTAs.
#[test]
fn pixels_go_to_several_ctas_of_a_cluster() {
    let x: Vec<u32> = (0..4 * 6 * 5 * 2).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect();
    let im2col = PixelBox { pixels: 8, lower: [-1; 3], upper: [-1; 3] };
    let map = pixels(TensorElem::U32, &[4, 6, 5, 2], 4, 1, im2col);
    let text = ".version 8.7 .target sm_90a .address_size 64\n\
        .visible .entry k(.param .u64 x, .param .align 64 .b8 map[128], .param .u64 out) {\n\
        .reg .b64 d<6>; .reg .b32 r<9>; .reg .b16 h<4>; .reg .pred p<4>;\n\
        .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar;\n\
        mov.b64 d1, map; cvta.param.u64 d1, d1; ld.param.u64 d2, [out]; mov.u32 r1, %cluster_ctarank;\n\
        mov.u32 r2, tile; mov.u32 r3, bar; mov.u32 r4, %tid.x; setp.ne.u32 p1, r4, 0;\n\
        shl.b32 r5, r4, 2; add.u32 r6, r2, r5; st.shared.u32 [r6], 7; @p1 bra READY;\n\
        mbarrier.init.shared.b64 [r3], 1; mbarrier.arrive.expect_tx.shared.b64 _, [r3], 128;\n\
        READY: barrier.cluster.arrive; barrier.cluster.wait; setp.ne.u32 p2, r1, 1; or.pred p2, p1, p2; @p2 bra WAIT;\n\
        mov.u16 h1, 2; mov.u16 h2, 1; mov.u16 h3, 11;\n\
        cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster \
        [r2], [d1, {0, 3, -1, 0}], [r3], {h1, h2}, h3;\n\
        WAIT: setp.eq.u32 p3, r1, 2; @p3 bra DONE;\n\
        L: mbarrier.try_wait.parity.shared.b64 p3, [r3], 0; @!p3 bra L;\n\
        DONE: ld.shared.u32 r7, [r6]; mad.lo.u32 r8, r1, 32, r4; mul.wide.u32 d3, r8, 4; add.u64 d3, d2, d3;\n\
        st.global.u32 [d3], r7; barrier.cluster.arrive; barrier.cluster.wait; ret; }";
    let zeros = vec![0; 128];
    let args = [Arg::Words(&x), Arg::Map(0, map), Arg::Words(&zeros)];
    let found = launch_of(text, "k", [[4, 1, 1], [4, 1, 1], [32, 1, 1]], 0, &args).unwrap();
    let all = filters(&map, 4);
    let start = all.iter().position(|at| *at == [3, -1, 0, 0]).unwrap();
    for (number, words) in found[1].chunks_exact(4).enumerate() {
        let (rank, pixel) = (number / 8, number % 8);
        for (c, &word) in words.iter().enumerate() {
            let from = element(&map, 4, all[start + pixel], &[2, 1], c as i64);
            let expected = if rank == 2 { 7 } else { from.map_or(0, |from| x[from / 4]) };
            assert_eq!(word, expected, "CTA {rank}, pixel {pixel}");
        }
    }
}

/// The kernels, one of which has its tensor's buffer as the first parameter.
fn with_buffer_of(kernel: &str) -> String {
    KERNELS.replace(&format!(".entry {kernel}("), &format!(".entry {kernel}(.param .u64 tensor, "))
}

#[test]
fn copies_that_a_map_does_not_allow_are_faults() {
    let pixel_map = |n: usize| {
        let im2col = PixelBox { pixels: 4, lower: [-1; 3], upper: [-1; 3] };
        pixels(TensorElem::U32, &[4, 5, 6, 7, 8][..n], 4, 1, im2col)
    };
    let told = |map: TensorMap, instruction: &str| {
        let ran = both(&[1; 32768], 32768, map, &format!("{instruction};"));
        ran.result.unwrap_err().to_string()
    };
    let load = |n: usize, mode: &str, first: &[i32], offsets: &str| {
        let form = format!("cp.async.bulk.tensor.{n}d.shared::cta.global.{mode}.mbarrier::complete_tx::bytes");
        format!("{form} [tile], [a, {}], [bar]{offsets}", braces(first))
    };
    let box_map = dense(TensorElem::U32, 0, &[16, 4, 4], &[8, 2, 1]);
    let flat = dense(TensorElem::U32, 0, &[16, 4], &[8, 2]);
    for (map, instruction, message) in [
        (box_map, load(3, "im2col", &[0, 0, 0], ", {0}"), "a copy of pixels (`im2col`) by a map of boxes"),
        (pixel_map(3), load(3, "tile", &[0, 0, 0], ""), "a copy of a box or of rows by a map of pixels"),
        (pixel_map(4), load(3, "im2col", &[0, 0, 0], ", {0}"), "a copy of 3 dimensions of a tensor that has 4"),
        (flat, load(2, "tile::gather4", &[0, 1, 2, 3, 0], ""), "by a map whose boxes have 2 rows, not 1"),
        (
            pixel_map(4),
            load(4, "im2col", &[0, 4, 0, 0], ", {0, 0}"),
            "the first pixel lies at 4 of dimension 1, outside of the map's box of pixels: -1 to 3",
        ),
        (
            pixel_map(4),
            "cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [b, {0, 0, -2, 0}], [tile]"
                .to_owned(),
            "the first pixel lies at -2 of dimension 2",
        ),
        (
            pixel_map(4),
            load(4, "im2col", &[0, 0, 0, 0], ", {0, 256}"),
            "an offset of a tensor of 4 dimensions is 0 to 255, not 256",
        ),
        (
            pixel_map(5),
            load(5, "im2col", &[0, 0, 0, 0, 0], ", {0, 0, 32}"),
            "an offset of a tensor of 5 dimensions is 0 to 31, not 32",
        ),
    ] {
        let told = told(map, &instruction);
        assert!(told.contains(message) && told.contains("test.ptx:8:"), "{instruction}: {told}");
    }
    // An offset of a tensor of three dimensions may be what 16 bits have: all pixels are outside.
    let ran = both(&[1; 32768], 128, pixel_map(3), &(load_pixels(&[0, 0, 0], &[65535], 64) + &shown(128)));
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(ran.output[..64], [0; 64]);
}

#[test]
fn modes_that_a_copy_cannot_have_are_refused() {
    let read = |instruction: &str| {
        let text = format!(
            ".version 8.7 .target sm_100a .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; .reg .b16 h<5>; {instruction}; ret; }}"
        );
        ptx::parse("k.ptx", &text).err().map(|faults| faults.to_string()).unwrap_or_default()
    };
    let (load, store) = ("cp.async.bulk.tensor.3d.shared::cta.global", "cp.async.bulk.tensor.3d.global.shared::cta");
    let (to, at) = (".mbarrier::complete_tx::bytes [r1], ", "[l1, {r1, r2, r3}]");
    for (instruction, message) in [
        (format!("{load}.im2col{to}{at}, [r4]"), "takes 4 operands"),
        (format!("{load}.im2col{to}{at}, [r4], {{h1, h2}}"), "expected 1 offset(s), found 2"),
        (format!("{load}.im2col_no_offs{to}{at}, [r4]"), "`.tile`, `.tile::gather4` or `.im2col`"),
        (format!("{load}.tile::gather4{to}{at}, [r4]"), "four rows are those of `.2d`, not of `.3d`"),
        (
            format!("cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4{to}{at}, [r4]"),
            "expected 5 coordinate(s), found 3",
        ),
        (
            format!("cp.async.bulk.tensor.2d.shared::cta.global.im2col{to}[l1, {{r1, r2}}], [r4], {{h1}}"),
            "`im2col` has `.3d` to `.5d`, not `.2d`",
        ),
        (format!("{store}.im2col.bulk_group {at}, [r1]"), "`.im2col` is none of this copy's modes"),
        (format!("{store}.tile::gather4.bulk_group {at}, [r1]"), "`.tile`, `.tile::scatter4` or `.im2col_no_offs`"),
        (format!("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col_no_offs {at}"), "is none of this copy's modes"),
        (format!("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col {at}"), "takes 2 operands"),
        (format!("{load}.im2col::w::128{to}{at}, [r4], {{h1, h2}}"), "with `.im2col::w::128` are not supported"),
    ] {
        let told = read(&instruction);
        assert!(told.contains(message), "{instruction}: {told}");
    }
    for accepted in [
        "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col.L2::cache_hint [l1, {r1, r2, r3}], {h1}, l2",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [l1, {r1, r2, r3, r4, r5}]",
        "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint \
         [r1], [l1, {r1, r2, r3, r4, r5}], [r6], {h1, 2, h3}, h4, l2",
    ] {
        assert_eq!(read(accepted), "", "{accepted}");
    }
}
