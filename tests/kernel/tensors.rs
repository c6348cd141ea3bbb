//! Copies of tiles of tensors on the functional driver: values beside statements of the test's own, what is refused, what
//! is a fault. The layout of swizzled tiles is stated as the CUDA programming guide draws it, by rows and units.

use super::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::tensor_map::{Fill, Swizzle, TensorElem, TensorMap};

/// A tensor of this many elements of each dimension, as dense as can be with rows at multiples of 16 bytes, and boxes.
pub(crate) fn dense(elem: TensorElem, address: u64, sizes: &[u32], box_sizes: &[u32]) -> TensorMap {
    let mut map = TensorMap {
        dimensions: sizes.len() as u8,
        elem,
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
        address,
        strides: [0; 4],
        sizes: [1; 5],
        box_sizes: [1; 5],
        steps: [1; 5],
        im2col: None,
    };
    map.sizes[..sizes.len()].copy_from_slice(sizes);
    map.box_sizes[..sizes.len()].copy_from_slice(box_sizes);
    let mut bytes = u64::from(sizes[0] * elem.bytes()).next_multiple_of(16);
    for (stride, &size) in map.strides[..sizes.len() - 1].iter_mut().zip(&sizes[1..]) {
        *stride = bytes;
        bytes *= u64::from(size);
    }
    map
}

/// A kernel of 32 threads: `a` and `b` are the generic addresses of both maps, `tile` and `bar` those of shared memory, `%q1`
/// says that a thread is not the first. What `body` leaves in the first `bytes` bytes of shared memory goes to `out`, where
/// there is room for it.
pub(crate) fn ran(input: &[u8], output: usize, maps: &dyn Fn([u64; 2]) -> Vec<TensorMap>, body: &str) -> Ran {
    let text = format!(
        ".version 8.7 .target sm_90 .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output,\n\
         .param .align 64 .b8 map_a[128], .param .align 64 .b8 map_b[128]) {{\n\
         .shared .align 1024 .b8 shared_tile[4096]; .shared .align 8 .b64 shared_bar;\n\
         .reg .b64 in, out, a, b, d<9>; .reg .b32 t, tile, bar, r<20>; .reg .pred q<4>, p<9>;\n\
         ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; setp.ne.u32 q1, t, 0;\n\
         mov.b64 a, map_a; cvta.param.u64 a, a; mov.b64 b, map_b; cvta.param.u64 b, b;\n\
         mov.u32 tile, shared_tile; mov.u32 bar, shared_bar; @!q1 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;\n\
         {body}\nret; }}"
    );
    run_text(&text, &Setup { input, output, shape: (1, 32), maps, ..Setup::default() })
}

/// Loads the tile of map `a` at these coordinates, and waits. `bytes` are what its barrier must count.
fn load(at: &[i32], bytes: u32) -> String {
    let list: Vec<String> = at.iter().map(i32::to_string).collect();
    format!(
        "@!q1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\n\
         @!q1 cp.async.bulk.tensor.{}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [a, {{{}}}], [bar];\n\
         W: mbarrier.try_wait.parity.shared.b64 p1, [bar], 0; @!p1 bra W;\n",
        at.len(),
        list.join(", ")
    )
}

/// Shared memory to `out`, bytes of a multiple of 128.
pub(crate) fn shown(bytes: u32) -> String {
    format!(
        "shl.b32 r1, t, 2;\nL: add.u32 r2, tile, r1; ld.shared.u32 r3, [r2]; cvt.u64.u32 d1, r1; add.u64 d1, out, d1;\n\
         st.global.u32 [d1], r3; add.u32 r1, r1, 128; setp.lt.u32 p2, r1, {bytes}; @p2 bra L;"
    )
}

pub(crate) fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8 | 1).collect()
}

/// The elements of a box, one by one in the order of shared memory; `None` where the tensor has none.
fn elements(map: &TensorMap, at: &[i32]) -> Vec<Option<usize>> {
    let n = at.len();
    let counts: Vec<u32> =
        (0..n).map(|d| if d == 0 { map.box_sizes[0] } else { map.box_sizes[d].div_ceil(map.steps[d]) }).collect();
    let total: u32 = counts.iter().product();
    (0..total)
        .map(|number| {
            let (mut rest, mut offset) = (number, 0);
            for d in 0..n {
                let step = if d == 0 { 1 } else { map.steps[d] };
                let coordinate = i64::from(at[d]) + i64::from(rest % counts[d] * step);
                rest /= counts[d];
                if coordinate < 0 || coordinate >= i64::from(map.sizes[d]) {
                    return None;
                }
                offset += coordinate as u64 * if d == 0 { u64::from(map.elem.bytes()) } else { map.strides[d - 1] };
            }
            Some(offset as usize)
        })
        .collect()
}

#[test]
fn a_tile_of_one_to_five_dimensions_has_the_elements_of_its_box_and_zeros_outside() {
    let sizes = [21, 9, 5, 4, 3];
    let boxes = [16, 4, 2, 2, 2];
    let corners: [&[i32]; 6] =
        [&[0; 5], &[3, 1, 1, 1, 1], &[-5, -2, -1, -1, -1], &[17, 7, 4, 3, 2], &[21, 0, 0, 0, 0], &[8, 8, 0, 2, 1]];
    for (elem, size) in [(TensorElem::U8, 1), (TensorElem::F16, 2), (TensorElem::S32, 4), (TensorElem::U64, 8)] {
        for n in 1..=5 {
            let input = pattern(1 << 18);
            for at in corners {
                let (at, map) = (&at[..n], dense(elem, 0, &sizes[..n], &boxes[..n]));
                let bytes = (16 * boxes[1..n].iter().product::<u32>().max(1)) * size;
                let maps = |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
                let shown_bytes = bytes.next_multiple_of(128);
                let ran = ran(&input, shown_bytes as usize, &maps, &(load(at, bytes) + &shown(shown_bytes)));
                ran.result.as_ref().unwrap_or_else(|fault| panic!("{elem:?} {n} {at:?}: {fault}"));
                let expected: Vec<u8> = elements(&map, at)
                    .into_iter()
                    .flat_map(|from| (0..size as usize).map(move |byte| from.map(|from| from + byte)))
                    .map(|from| from.map_or(0, |from| input[from]))
                    .collect();
                assert_eq!(expected.len(), bytes as usize);
                assert_eq!(ran.output[..bytes as usize], expected, "{elem:?} {n} dimensions at {at:?}");
            }
        }
    }
}

#[test]
fn steps_leave_elements_out_and_nan_is_what_fills() {
    let input = pattern(8192);
    let map = TensorMap { fill: Fill::Nan, steps: [1, 3, 1, 1, 1], ..dense(TensorElem::F32, 0, &[16, 20], &[8, 7]) };
    let maps = |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
    // Rows 15, 18 and 21, of which the last is outside; 8 elements of each from the 12th of 16 on.
    let ran = ran(&input, 128, &maps, &(load(&[12, 15], 96) + &shown(128)));
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    for (number, value) in ran.u32s()[..24].iter().enumerate() {
        let (row, column) = ([15, 18, 21][number / 8], 12 + number % 8);
        match row < 20 && column < 16 {
            true => assert_eq!(value.to_le_bytes(), input[row * 64 + column * 4..][..4], "{number}"),
            false => assert!(f32::from_bits(*value).is_nan(), "{number}"),
        }
    }
}

/// Unit `x` of 16 bytes of row `y`, where rows are as long as the swizzle's span.
#[test]
fn swizzled_tiles_are_those_that_the_programming_guide_draws() {
    let input = pattern(65536);
    for (swizzle, words, place) in [
        (Swizzle::B128, 32, (|y, x| x ^ (y % 8)) as fn(usize, usize) -> usize),
        (Swizzle::B64, 16, |y, x| x ^ (y / 2 % 4)),
        (Swizzle::B32, 8, |y, x| x ^ (y / 4 % 2)),
    ] {
        let map = TensorMap { swizzle, ..dense(TensorElem::U32, 0, &[64, 64], &[words, 24]) };
        let maps = |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
        let bytes = words * 4 * 24;
        // From a column that is no multiple of a unit on.
        let ran = ran(&input, bytes as usize, &maps, &(load(&[5, 2], bytes) + &shown(bytes)));
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        let units = words as usize / 4;
        for y in 0..24 {
            for x in 0..units {
                let found = &ran.output[(y * units + place(y, x)) * 16..][..16];
                assert_eq!(found, &input[(y + 2) * 256 + (5 + 4 * x) * 4..][..16], "{swizzle:?} row {y} unit {x}");
            }
        }
    }
}

#[test]
fn stores_leave_out_what_is_outside_and_swizzle_as_loads_do() {
    let input = pattern(4096);
    for swizzle in [Swizzle::None, Swizzle::B64] {
        let map = TensorMap { swizzle, ..dense(TensorElem::U32, 0, &[20, 10], &[16, 8]) };
        let maps = |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
        let store = "fence.proxy.async.shared::cta;\n\
                     @!q1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [b, {r5, 4}], [tile];\n\
                     @!q1 cp.async.bulk.commit_group; @!q1 cp.async.bulk.wait_group 0;";
        let ran = ran(&input, 800, &maps, &(load(&[1, 1], 512) + "mov.b32 r5, -3;\n" + store));
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        // Element (x, y) of the tile is (x + 1, y + 1) of the input and (x - 3, y + 4) of the output.
        let words = ran.u32s();
        for row in 0..10 {
            for column in 0..20 {
                let word = u32::from_le_bytes(
                    input[(row - if row < 4 { 0 } else { 3 }) * 80 + (column + 4) % 20 * 4..][..4].try_into().unwrap(),
                );
                let inside = row >= 4 && column < 13;
                assert_eq!(words[row * 20 + column], if inside { word } else { 0 }, "{swizzle:?} {row} {column}");
            }
        }
    }
}

/// The type of a reduction is that of the tensor.
#[test]
fn reductions_are_of_the_tensors_type() {
    let two = |a: u32, b: u32| [a.to_le_bytes(), b.to_le_bytes()].concat();
    let (one, half) = (1f32.to_bits(), 0.5f32.to_bits());
    for (op, elem, old, with, expected) in [
        ("add", TensorElem::U32, two(7, u32::MAX), two(8, 2), two(15, 1)),
        ("add", TensorElem::F32, two(one, half), two(half, half), two(1.5f32.to_bits(), one)),
        ("add", TensorElem::F16, two(0x3c00_3c00, 0), two(0x3800_3c00, 0x3c00), two(0x3e00_4000, 0x3c00)),
        ("min", TensorElem::S32, two(5, u32::MAX), two(u32::MAX, 3), two(u32::MAX, u32::MAX)),
        ("max", TensorElem::U32, two(5, u32::MAX), two(u32::MAX, 3), two(u32::MAX, u32::MAX)),
        ("xor", TensorElem::U64, two(5, 6), two(3, 3), two(6, 5)),
        ("inc", TensorElem::U32, two(5, 2), two(5, 9), two(0, 3)),
    ] {
        let n = 16 / elem.bytes();
        let map = dense(elem, 0, &[n, 2], &[n, 1]);
        let maps = |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
        // The first row is loaded and combined with the second one of the same buffer.
        let input = [with.clone(), with, old.clone(), old].concat();
        let reduce = format!(
            "@!q1 cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group [a, {{0, 1}}], [tile];\n\
             @!q1 cp.async.bulk.commit_group; @!q1 cp.async.bulk.wait_group.read 0;"
        );
        let ran = ran(&input, 16, &maps, &(load(&[0, 0], 16) + &reduce));
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{op} {elem:?}: {fault}"));
        assert_eq!(ran.input[16..], [expected.clone(), expected].concat(), "{op} {elem:?}");
    }
}

#[test]
fn misuse_is_a_fault_at_its_place() {
    let map = dense(TensorElem::U32, 0, &[16, 4], &[8, 2]);
    let told = |map: TensorMap, inside: bool, body: &str| {
        let maps = move |[a, b]: [u64; 2]| vec![TensorMap { address: a, ..map }, TensorMap { address: b, ..map }];
        let ran = ran(&[1; 256], if inside { 256 } else { 64 }, &maps, body);
        ran.result.unwrap_err().to_string()
    };
    let load = |map: &str, to: &str| {
        format!(
            "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [{to}], [{map}, {{0, 0}}], [bar];"
        )
    };
    for (body, message) in [
        (load("in", "tile"), "what the address names is no tensor map: it begins with 01 01 01 01 01 01 01 01"),
        (load("in+32", "tile"), "is not aligned to its 64 bytes"),
        (load("d1", "tile"), "128-byte global access at 0x0 is out of bounds"),
        (
            "cvt.u64.u32 d2, tile; cvta.shared.u64 d2, d2; ".to_owned() + &load("d2", "tile"),
            "maps lie in kernel parameters, in constant and in global memory",
        ),
        (load("a+8", "tile"), "what the address names is no tensor map"),
        (load("a", "tile+64"), "shared access at 0x40 is not aligned to its 128 bytes"),
        (load("a", "tile+4096"), "64-byte shared access at 0x1000 is out of bounds"),
        (
            "cp.async.bulk.tensor.1d.shared::cta.global.mbarrier::complete_tx::bytes [tile], [a, r1], [bar];"
                .to_owned(),
            "a copy of 1 dimensions of a tensor that has 2",
        ),
        (
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group [a, {0, 0}], [tile];".to_owned(),
            "a tensor of s32 has no such reduction",
        ),
    ] {
        let signed = TensorMap { elem: TensorElem::S32, ..map };
        let told = told(signed, true, &body);
        assert!(told.contains(message), "{body}: {told}");
        assert!(told.contains("test.ptx:8:"), "its line: {told}");
    }
    let body = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [b, {0, 1}], [tile];";
    let told = told(map, false, body);
    assert!(told.contains("32-byte global access"), "the buffer is smaller than the tensor: {told}");
}

#[test]
fn forms_that_are_not_supported_are_refused_by_name() {
    let refused = |instruction: &str| {
        let text = format!(
            ".version 8.7 .target sm_90 .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; {instruction}; ret; }}"
        );
        durawarp::kernel::ptx::parse("k.ptx", &text).unwrap_err().to_string()
    };
    let load = "cp.async.bulk.tensor.3d.shared::cta.global";
    for (instruction, message) in [
        (
            format!("{load}.im2col::w.mbarrier::complete_tx::bytes [r1], [l1, {{r1, r2, r3}}], [r4], {{h1, h2}}"),
            "copies of tiles with `.im2col::w` are not supported",
        ),
        (
            format!("{load}.tile.mbarrier::complete_tx::bytes [r1], [l1, {{r1, r2}}], [r4]"),
            "expected 3 coordinate(s), found 2",
        ),
        (format!("{load}.tile.mbarrier::complete_tx::bytes [r1], [r2, {{r1, r2, r3}}], [r4]"), "map has 64 bits"),
        (format!("{load}.tile [r1], [l1, {{r1, r2, r3}}], [r4]"), "needs `.mbarrier::complete_tx::bytes`"),
        (format!("{load}.mbarrier::complete_tx::bytes [r1], [l1], [r4]"), "expected `[map, {coordinates}]`"),
        ("cp.async.bulk.tensor.shared::cta.global [r1], [l1, r1], [r4]".to_owned(), "needs `.1d` to `.5d`"),
        ("cp.async.bulk.tensor.1d.global.shared::cta [l1, r1], [r4]".to_owned(), "needs `.bulk_group`"),
        ("cp.reduce.async.bulk.tensor.1d.global.shared::cta.bulk_group [l1, r1], [r4]".to_owned(), "such as `.add`"),
        ("cp.async.bulk.prefetch.tensor.1d.L2 [l1, r1]".to_owned(), "needs `.L2.global`"),
    ] {
        let told = refused(&instruction);
        assert!(told.contains(message), "{instruction}: {told}");
    }
    let accepted = |instruction: &str| {
        let text = format!(
            ".version 8.7 .target sm_90 .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; {instruction}; ret; }}"
        );
        durawarp::kernel::ptx::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
    };
    accepted("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [l1, {r1, r2}]");
    accepted(
        "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [r1], [l1, {r1}], [r2], l2",
    );
}
