//! Tensor maps as arguments: by themselves, in a structure, from an element of a buffer on, behind a swap; what is no map.

use crate::workload_common::{folder, resolve};
use durawarp::kernel::functional::Limits;
use durawarp::workload::Resolved;

/// out[tid] = word tid of the tile at (0, 0) of a map: of the parameter, or of the one 64 bytes into a structure.
fn kernels() -> String {
    let body = |map: &str, out: &str| {
        format!(
            "{{ .shared .align 128 .b8 tile[128]; .shared .align 8 .b64 bar; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;\n\
             mov.b64 %d0, {map}; cvta.param.u64 %d0, %d0; {out} mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar;\n\
             setp.ne.u32 %p1, %r0, 0; @%p1 bra W; mbarrier.init.shared.b64 [%r2], 1; mov.u32 %r3, 0;\n\
             mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;\n\
             cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%d0, {{%r3, %r3}}], [%r2];\n\
             W: bar.sync 0; V: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra V;\n\
             shl.b32 %r4, %r0, 2; add.u32 %r1, %r1, %r4; ld.shared.u32 %r5, [%r1]; cvt.u64.u32 %d2, %r4; add.u64 %d1, %d1, %d2;\n\
             st.global.u32 [%d1], %r5; ret; }}\n"
        )
    };
    format!(
        ".version 8.6 .target sm_90 .address_size 64\n\
         .visible .entry by_itself(.param .align 64 .b8 map[128], .param .u64 out)\n{}\
         .visible .entry in_structure(.param .align 64 .b8 both[192])\n{}",
        body("map", "ld.param.u64 %d1, [out];"),
        body("both+64", "ld.param.u64 %d1, [both];")
    )
}

const BUFFERS: &str = r#"schema = 1
name = "tensors"
description = "d"
isa = { kind = "ptx", file = "kernel.ptx" }
[params]
N = 8
[buffer.a]
type = "u32"
len = 64
init = { kind = "iota" }
[buffer.b]
type = "u32"
len = 64
init = { kind = "iota", start = 100 }
[buffer.chars]
type = "i8"
len = 64
[buffer.out]
type = "u32"
len = 16
role = "output"
"#;

fn step(kernel: &str, args: &str) -> String {
    format!("[[step]]\nkernel = \"{kernel}\"\ngrid = 1\nblock = 16\nargs = [{args}]\n")
}

fn made(test: &str, steps: &str) -> Result<Resolved, String> {
    resolve(&folder(test, &[("workload.toml", &format!("{BUFFERS}{steps}")), ("kernel.ptx", &kernels())]))
}

fn out(test: &str, steps: &str) -> Vec<u32> {
    let resolved = made(test, steps).unwrap_or_else(|faults| panic!("{test}: {faults}"));
    let run = resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{test}: {error}"));
    let bytes = resolved.dump("out", run.memory(), run.bindings()).unwrap();
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn a_map_is_of_what_its_keys_say() {
    // Tiles of 4 x 4 words: rows of 8 words, from element 8 on, every other row, of the other buffer behind a swap.
    let plain = "{ tensor_map = \"a\", sizes = [\"N\", \"N\"], box = [4, 4] }";
    let expected = |row: &dyn Fn(u32) -> u32| -> Vec<u32> {
        (0..4).flat_map(|y| (0..4).map(move |x| (y, x))).map(|(y, x)| row(y) + x).collect()
    };
    assert_eq!(out("tensor-plain", &step("by_itself", &format!("{plain}, \"&out\""))), expected(&|y| 8 * y));
    let second = "{ tensor_map = \"a\", index = \"N\", sizes = [8, 7], box = [4, 8], steps = [1, 2] }";
    assert_eq!(out("tensor-steps", &step("by_itself", &format!("{second}, \"&out\""))), expected(&|y| 8 + 16 * y));
    let strides = "{ tensor_map = \"a\", sizes = [4, 4], strides_bytes = 48, box = [4, 4] }";
    assert_eq!(out("tensor-strides", &step("by_itself", &format!("{strides}, \"&out\""))), expected(&|y| 12 * y));
    let swap = "[[step]]\nswap = [\"a\", \"b\"]\n";
    let swapped = format!("{swap}{}", step("in_structure", &format!("{{ struct = [\"&out\", {plain}] }}")));
    assert_eq!(out("tensor-swap", &swapped), expected(&|y| 100 + 8 * y));
}

#[test]
fn a_map_of_pixels_is_of_what_its_keys_say() {
    // 4 pixels of 4 words from pixel (0, 0) on, of 4 images of 2 pixels each: every other one, padded by one.
    let of = |corners: &str| {
        let map = format!("{{ tensor_map = \"a\", sizes = [8, 2, 4], channels = 4, pixels = 4, {corners} }}");
        let kernel = kernels().replace("cp.async.bulk.tensor.2d", "cp.async.bulk.tensor.3d");
        let kernel = kernel
            .replace("global.tile.", "global.im2col.")
            .replace("{%r3, %r3}], [%r2]", "{%r3, %r3, %r3}], [%r2], {0}");
        let steps = step("by_itself", &format!("{map}, \"&out\""));
        let test = format!("tensor-of-pixels-{}", corners.len());
        let files = [("workload.toml", format!("{BUFFERS}{steps}")), ("kernel.ptx", kernel)];
        let resolved = resolve(&folder(&test, &files.each_ref().map(|(name, text)| (*name, text.as_str()))))
            .unwrap_or_else(|faults| panic!("{corners}: {faults}"));
        let run = resolved.run_functional(&Limits::default()).unwrap_or_else(|error| panic!("{corners}: {error}"));
        let bytes = resolved.dump("out", run.memory(), run.bindings()).unwrap();
        let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        words.chunks_exact(4).map(|pixel| pixel[0]).collect::<Vec<_>>()
    };
    assert_eq!(of("steps = [1, 1, 1]"), [0, 8, 16, 24]);
    assert_eq!(of("upper_corner = \"0 - 1\""), [0, 16, 32, 48]);
    assert_eq!(of("lower_corner = [-1], steps = [1, 2, 1]"), [0, 0, 24, 0]);
}

#[test]
fn maps_that_the_driver_would_not_make_are_faults() {
    let fault =
        |test: &str, map: &str| made(test, &step("by_itself", &format!("{map}, \"&out\""))).map(|_| ()).unwrap_err();
    for (test, map, expected) in [
        (
            "tensor-key",
            "{ tensor_map = \"a\", size = 4, box = 4 }",
            "unknown key `size` in a tensor map (did you mean `sizes`?)",
        ),
        ("tensor-name", "{ tensor_map = \"c\", sizes = 4, box = 4 }", "there is no buffer `c` (declared: "),
        ("tensor-word", "{ tensor_map = \"a\", sizes = 4, box = 4, swizzle = \"16B\" }", "`swizzle`"),
        (
            "tensor-list",
            "{ tensor_map = \"a\", sizes = [4, 4], box = 4 }",
            "a tensor of 2 dimension(s) has 2 in `box`, not 1",
        ),
        (
            "tensor-six",
            "{ tensor_map = \"a\", sizes = [1, 1, 1, 1, 1, 1], box = 4 }",
            "1 to 5 dimensions, `sizes` has 6",
        ),
        ("tensor-type", "{ tensor_map = \"chars\", sizes = 16, box = 16 }", "`type` says of what type they are"),
        (
            "tensor-row",
            "{ tensor_map = \"a\", sizes = [8, 8], box = [3, 4] }",
            "a row of a box has 12 bytes, which is no multiple of 16",
        ),
        (
            "tensor-index",
            "{ tensor_map = \"a\", index = 1, sizes = [8, 4], box = [4, 4] }",
            "begins at a multiple of 16 bytes",
        ),
        (
            "tensor-end",
            "{ tensor_map = \"a\", sizes = [8, 9], box = [4, 4] }",
            "the tensor ends 32 bytes behind buffer `a`",
        ),
        ("tensor-part", "{ tensor_map = \"a\", sizes = 16 }", "needs `box`, or `channels` and `pixels`"),
        (
            "tensor-parts",
            "{ tensor_map = \"a\", sizes = 16, box = 16, upper_corner = 0 }",
            "a tensor map with `box` has no `upper_corner`",
        ),
        (
            "tensor-pixels",
            "{ tensor_map = \"a\", sizes = [4, 4, 4], pixels = 4 }",
            "a tensor map for `im2col` needs `channels`",
        ),
        (
            "tensor-pixels-2d",
            "{ tensor_map = \"a\", sizes = [4, 4], channels = 4, pixels = 4 }",
            "a tensor of pixels has 3 to 5 dimensions, `sizes` has 2",
        ),
        (
            "tensor-corners",
            "{ tensor_map = \"a\", sizes = [4, 4, 4], channels = 4, pixels = 4, lower_corner = [0, 0] }",
            "a tensor of 3 dimension(s) has 1 in `lower_corner`, not 2",
        ),
        (
            "tensor-corner",
            "{ tensor_map = \"a\", sizes = [4, 4, 4], channels = 4, pixels = 4, lower_corner = 40000 }",
            "a corner cannot be 40000",
        ),
        (
            "tensor-no-pixels",
            "{ tensor_map = \"a\", sizes = [4, 4, 4], channels = 4, pixels = 1025, upper_corner = -4 }",
            "a copy has 1 to 1024 pixels, not 1025; the box of pixels is empty in dimension 1",
        ),
        ("tensor-size", "{ tensor_map = \"a\", sizes = [8, \"0 - 1\"], box = [4, 4] }", "a size cannot be -1"),
    ] {
        let told = fault(test, map);
        assert!(told.contains(expected), "{test}: {told}");
    }
    let other = made("tensor-other", &step("in_structure", "{ tensor_map = \"a\", sizes = 8, box = 8 }"))
        .map(|_| ())
        .unwrap_err();
    assert!(other.contains("parameter `both` is a structure of 192 bytes, found a tensor map (128 bytes)"), "{other}");
}
