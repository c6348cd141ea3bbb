//! Tensor maps that a program makes, and maps in global memory, on the functional driver: every field, beside maps that were
//! made whole; what is refused, and what is a fault. `tests/kernel/ptx/tensor_maps.ptx` is run on the timed machine by
//! `tests/machine/tensor_maps.rs`, too.

use durawarp::kernel::ptx;
use durawarp::kernel::tensor_map::{Fill, Swizzle, TensorElem, TensorMap};

use crate::clusters::{Arg, launch_of};
use crate::ptx_common::{Ran, Setup, run_text};

const KERNELS: &str = include_str!("ptx/tensor_maps.ptx");

#[test]
fn a_kernel_finds_its_map_in_a_list_and_makes_another_of_it() {
    // 4 tensors of 16 rows of 32 words; the map of CTA i begins at row 4 i.
    let ctas = 4u32;
    let tensors: Vec<u32> = (0..32 * 64u32).map(|word| word.wrapping_mul(2_654_435_761)).collect();
    let (made, sums) = (vec![0; 32 * ctas as usize], vec![0; 32 * ctas as usize]);
    let map = TensorMap {
        dimensions: 2,
        elem: TensorElem::U32,
        swizzle: Swizzle::None,
        fill: Fill::Zeros,
        address: 0,
        strides: [128, 0, 0, 0],
        sizes: [32, 4, 1, 1, 1],
        box_sizes: [32, 4, 1, 1, 1],
        steps: [1; 5],
        im2col: None,
    };
    let maps = (0..ctas).map(|cta| TensorMap { address: 512 * u64::from(cta), ..map }).collect();
    let args = [Arg::Maps(2, maps), Arg::Words(&made), Arg::Words(&tensors), Arg::Words(&sums), Arg::Number(2)];
    let found = launch_of(KERNELS, "grouped", [[ctas, 1, 1], [0; 3], [32, 1, 1]], 0, &args).unwrap();
    for (thread, &sum) in found[3].iter().enumerate() {
        let (cta, column) = (thread / 32, thread % 32);
        let first = (0..4).map(|row| tensors[(4 * cta + row) * 32 + column]);
        let second = (0..4).map(|row| if row < 2 { tensors[(4 * cta + 2 + row) * 32 + column] } else { 0 });
        let expected = first.chain(second).fold(0u32, |sum, word| sum.wrapping_mul(31).wrapping_add(word));
        assert_eq!(sum, expected, "thread {thread}");
    }
}

/// A kernel of a warp that makes a map of 128 zeros in shared memory by `changes` (its address is `map`, `in` is that of
/// the input), puts it into global memory behind the input, loads the tile at `at` and stores its first `bytes` bytes.
fn made(input: &[u8], changes: &str, at: &[i32], bytes: u32) -> Ran {
    let list: Vec<String> = at.iter().map(i32::to_string).collect();
    let text = format!(
        ".version 8.7 .target sm_90a .address_size 64 .visible .entry k(.param .u64 input, .param .u64 output) {{\n\
         .shared .align 1024 .b8 shared_tile[4096]; .shared .align 128 .b8 shared_map[128]; .shared .align 8 .b64 shared_bar;\n\
         .reg .b64 in, out, there, d<9>; .reg .b32 t, tile, bar, map, r<20>; .reg .pred q1, p<9>;\n\
         ld.param.u64 in, [input]; ld.param.u64 out, [output]; mov.u32 t, %tid.x; setp.ne.u32 q1, t, 0;\n\
         mov.u32 tile, shared_tile; mov.u32 bar, shared_bar; mov.u32 map, shared_map; add.u64 there, out, {bytes};\n\
         shl.b32 r1, t, 2; add.u32 r2, map, r1; st.shared.u32 [r2], 0; bar.warp.sync -1; @q1 bra READY;\n\
         mbarrier.init.shared.b64 [bar], 1;\n\
         {changes}\n\
         READY: bar.warp.sync -1;\n\
         tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [there], [map], 128;\n\
         fence.proxy.tensormap::generic.acquire.gpu [there], 128;\n\
         @!q1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};\n\
         @!q1 cp.async.bulk.tensor.{}d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [there, {{{}}}], [bar];\n\
         W: mbarrier.try_wait.parity.shared.b64 p1, [bar], 0; @!p1 bra W;\n\
         L: add.u32 r2, tile, r1; ld.shared.u32 r3, [r2]; cvt.u64.u32 d1, r1; add.u64 d1, out, d1;\n\
         st.global.u32 [d1], r3; add.u32 r1, r1, 128; setp.lt.u32 p2, r1, {bytes}; @p2 bra L;\nret; }}",
        at.len(),
        list.join(", "),
    );
    run_text(&text, &Setup { input, output: bytes as usize + 128, shape: (1, 32), ..Setup::default() })
}

/// Replaces a field of the map at `map`.
fn replace(field: &str, width: u32, operands: &str) -> String {
    format!("tensormap.replace.tile.{field}.shared::cta.b1024.b{width} [map], {operands};\n")
}

/// All fields of a tensor of 24 x 10 x 3 halves, rows of 64 bytes, slices of 704, in boxes of 16 x 7 x 2, of which every
/// third row is copied.
fn all_fields() -> String {
    let listed = |field: &str, values: &[u32]| -> String {
        values.iter().enumerate().map(|(number, value)| replace(field, 32, &format!("{number}, {value}"))).collect()
    };
    [
        replace("global_address", 64, "in"),
        "mov.u32 r5, 2;\n".to_owned() + &replace("rank", 32, "r5"),
        listed("global_dim", &[24, 10, 3]),
        listed("box_dim", &[16, 7, 2]),
        listed("element_stride", &[1, 3, 1]),
        replace("global_stride", 64, "0, 64"),
        "mov.u64 d5, 704;\n".to_owned() + &replace("global_stride", 64, "1, d5"),
        replace("elemtype", 32, "6"),
        replace("interleave_layout", 32, "0"),
        replace("swizzle_mode", 32, "1"),
        replace("swizzle_atomicity", 32, "0"),
        replace("fill_mode", 32, "1"),
    ]
    .concat()
}

#[test]
fn a_map_of_replaced_fields_is_that_of_its_values() {
    let input: Vec<u8> = (0..4096u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let bytes = 16 * 2 * 3 * 2;
    let at = [12i32, 5, 1];
    let ran = made(&input, &all_fields(), &at, bytes);
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    // Element (x, y, z) of the box in rows of 32 bytes, whose halves change places in every other group of four rows.
    for row in 0..6usize {
        let (y, z) = (at[1] as usize + row % 3 * 3, at[2] as usize + row / 3);
        for x in 0..16usize {
            let place = (row * 32 + 2 * x) ^ (((row / 4) & 1) * 16);
            let found = u16::from_le_bytes([ran.output[place], ran.output[place + 1]]);
            let column = at[0] as usize + x;
            match column < 24 && y < 10 && z < 3 {
                true => {
                    let from = z * 704 + y * 64 + column * 2;
                    assert_eq!(found.to_le_bytes(), input[from..from + 2], "row {row}, column {x}");
                }
                false => assert_eq!(found, 0x7fff, "row {row}, column {x}"),
            }
        }
    }
}

#[test]
fn fields_are_replaced_in_global_memory_and_by_generic_addresses_too() {
    let input: Vec<u8> = (0..4096u32).map(|i| (i % 251) as u8).collect();
    // The first row of the tensor's second slice, by an address that is replaced last.
    for change in [
        "cvt.u64.u32 d6, map; cvta.shared.u64 d6, d6; add.u64 d7, in, 704;\n\
         tensormap.replace.tile.global_address.b1024.b64 [d6], d7;\n",
        "add.u64 d7, in, 704; tensormap.replace.tile.global_address.shared::cta.b1024.b64 [shared_map], d7;\n",
    ] {
        let ran = made(&input, &(all_fields() + change), &[0, 0, 0], 192);
        ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(ran.output[..32], input[704..736], "{change}");
    }
    let after = "tensormap.replace.tile.fill_mode.global.b1024.b32 [there], 0;\n";
    let ran = made(&input, &(all_fields() + after), &[24, 0, 0], 192);
    ran.result.as_ref().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(ran.output[..2], [0xff, 0x7f], "the map in shared memory came over that in global memory");
}

#[test]
fn bytes_that_are_no_valid_map_are_told_with_what_is_wrong() {
    let told = |changes: &str| made(&[0; 4096], changes, &[0, 0, 0], 192).result.unwrap_err().to_string();
    assert!(told("").contains("what the address names is no tensor map: it begins with 00 00 00 00"), "{}", told(""));
    for (change, expected) in [
        (replace("rank", 32, "7"), "a tensor has 1 to 5 dimensions, not 8"),
        (replace("rank", 32, "1"), "a copy of 3 dimensions of a tensor that has 2"),
        (
            replace("element_stride", 32, "1, 9") + &replace("element_stride", 32, "2, 0"),
            "dimension 1 is copied in steps of 1 to 8 elements, not 9; dimension 2",
        ),
        (replace("global_stride", 64, "1, 700"), "the stride of dimension 2 is 700 bytes"),
        (replace("global_dim", 32, "0, 0"), "dimension 0 of the tensor has no element"),
        ("add.u64 d7, in, 8;\n".to_owned() + &replace("global_address", 64, "d7"), "begins at a multiple of 16 bytes"),
        (
            replace("swizzle_mode", 32, "0") + "st.shared.u8 [map+60], 9;\n",
            "a swizzle or a fill that is not known: 6, 9 and 1",
        ),
    ] {
        let told = told(&(all_fields() + &change));
        assert!(told.contains(expected), "{change}: {told}");
        assert!(told.contains("test.ptx:"), "its place: {told}");
    }
}

#[test]
fn what_a_map_cannot_have_here_is_refused() {
    let refused = |instruction: &str| {
        let text = format!(
            ".version 8.7 .target sm_90a .address_size 64 .entry k() {{ .reg .b32 r<9>; .reg .b64 l<3>; {instruction}; ret; }}"
        );
        ptx::parse("k.ptx", &text).err().map(|faults| faults.to_string()).unwrap_or_default()
    };
    let field = |field: &str, width: u32, operands: &str| {
        refused(&format!("tensormap.replace.tile.{field}.global.b1024.b{width} [l1], {operands}"))
    };
    for (told, expected) in [
        (field("elemtype", 32, "11"), "the value 11 of this field is not supported"),
        (field("elemtype", 32, "8"), "the value 8 of this field is not supported"),
        (field("interleave_layout", 32, "1"), "the value 1 of this field is not supported"),
        (field("swizzle_mode", 32, "4"), "the value 4 of this field is not supported"),
        (field("swizzle_atomicity", 32, "2"), "the value 2 of this field is not supported"),
        (field("fill_mode", 32, "r1"), "this field's value is an immediate"),
        (field("box_dim", 32, "5, r1"), "the field has numbers 0 to 4, not 5"),
        (field("global_stride", 64, "4, l2"), "the field has numbers 0 to 3, not 4"),
        (field("global_address", 32, "r1"), "on type .b32 is not supported"),
        (field("box_dim", 32, "r1"), "takes 3 operands"),
        (refused("tensormap.replace.tile.global.b1024.b32 [l1], r1"), "needs a field such as `.global_address`"),
        (refused("tensormap.replace.tile.rank.b1024.b32 [r1], r1"), "the address of a tensor map has 64 bits"),
        (
            refused(
                "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [l1], [r1], 64",
            ),
            "a tensor map has 128 bytes",
        ),
        (refused("tensormap.cp_fenceproxy.global.shared::cta.sync.aligned [l1], [r1], 128"), "with a scope"),
        (refused("tensormap.move [l1]"), "`tensormap` is `tensormap.replace`"),
    ] {
        assert!(told.contains(expected), "{expected}: {told}");
    }
}
