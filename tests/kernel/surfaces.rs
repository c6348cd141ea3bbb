//! Surfaces on the functional driver: where bytes go by geometry, what happens outside the bounds, and that loads see what
//! stores left (PTX ISA 9.7.11).

use crate::ptx_common::{Ran, Setup, run_text};
use durawarp::kernel::functional::RunError;
use durawarp::kernel::launch::Surface;

/// 3 elements of 4 bytes a row, rows 16 bytes apart, 2 rows a slice, 2 slices: 64 bytes, of which 4 after each row are
/// no part of it. It is the variable `s`, and what the parameter `output` points to.
fn surfaces(address: u64) -> Vec<(String, Surface)> {
    let surface = Surface { address, width: 3, height: 2, depth: 2, pitch: 16, element: 4 };
    vec![("s".to_owned(), surface.clone()), ("output".to_owned(), surface)]
}

fn ran(body: &str) -> Ran {
    let text = format!(
        ".version 8.0\n.global .surfref s;\n.entry k(.param .u64 input, .param .u64 output) {{\n\
         .reg .b64 %in, %out, %l<9>; .reg .b32 %r<20>; .reg .b16 %h<9>; .reg .pred %p<9>;\n\
         ld.param.u64 %in, [input]; ld.param.u64 %out, [output]; mov.u32 %r9, %tid.x;\n{body}\nret;\n}}\n"
    );
    run_text(&text, &Setup { input: &[0; 16], output: 64, shape: (1, 4), surfaces: &surfaces, ..Setup::default() })
}

/// The surface's words after `body`.
fn words(body: &str) -> Vec<u32> {
    let ran = ran(body);
    ran.result.as_ref().unwrap_or_else(|e| panic!("{body}: {e}"));
    ran.u32s()
}

/// Each of these words, zeros elsewhere.
fn at(words: &[(usize, u32)]) -> Vec<u32> {
    let mut all = vec![0; 16];
    words.iter().for_each(|(i, word)| all[*i] = *word);
    all
}

#[test]
fn coordinates_count_bytes_rows_and_slices() {
    assert_eq!(words("sust.b.1d.b32.trap [s, {8}], 7;"), at(&[(2, 7)]));
    assert_eq!(words("sust.b.1d.b32 [s, 4], 7;"), at(&[(1, 7)]), "a scalar, and no mode");
    assert_eq!(words("sust.b.2d.b32.trap [s, {8, 1}], 7;"), at(&[(6, 7)]));
    assert_eq!(words("sust.b.3d.b32.trap [s, {0, 1, 1, 99}], 7;"), at(&[(12, 7)]), "the fourth is ignored");
    assert_eq!(words("sust.b.a1d.b32.trap [s, {1, 4}], 7;"), at(&[(9, 7)]), "the layer comes first");
    assert_eq!(words("sust.b.a2d.b32.trap [s, {1, 8, 1, 99}], 7;"), at(&[(14, 7)]));
    // Vectors of registers.
    let flat = ".reg .v2 .b32 v; mov.v2.b32 v, {8, 1}; sust.b.2d.b32.trap [s, v], 7;";
    assert_eq!(words(flat), at(&[(6, 7)]));
    let deep =
        ".reg .v4 .b32 v; mov.v4.b32 v, {0, 1, 1, 99}; sust.b.3d.b32.trap [s, v], 7; suld.b.3d.b32.trap %r1, [s, v];
        mov.v4.b32 v, {1, 8, 1, 99}; sust.b.a2d.b32.trap [s, v], %r1;";
    assert_eq!(words(deep), at(&[(12, 7), (14, 7)]));
    // A thread each, and a guard.
    assert_eq!(
        words("setp.lt.u32 %p1, %r9, 3; mul.lo.u32 %r1, %r9, 4; @%p1 sust.b.2d.b32.trap [s, {%r1, 1}], %r9;"),
        at(&[(5, 1), (6, 2)])
    );
}

#[test]
fn accesses_have_the_size_of_their_type() {
    assert_eq!(words("mov.b16 %h1, 0x1234; sust.b.2d.b8.trap [s, {3, 0}], %h1;"), at(&[(0, 0x3400_0000)]));
    assert_eq!(words("mov.b16 %h1, 5; sust.b.1d.v2.b16.cg.trap [s, {4}], {%h1, 6};").len(), 16);
    assert_eq!(words("mov.b16 %h1, 5; sust.b.1d.v2.b16.trap [s, {4}], {%h1, 6};"), at(&[(1, 0x0006_0005)]));
    assert_eq!(words("sust.b.1d.b64.trap [s, {0}], 0x100000002;"), at(&[(0, 2), (1, 1)]));
    assert_eq!(words("sust.b.2d.v2.b32.wt.trap [s, {0, 1}], {%r9, 8};"), at(&[(4, 3), (5, 8)]), "the last lane wins");
    let narrow = "sust.b.1d.b32.trap [s, {0}], 0xfffefdfc; suld.b.1d.b8.trap %r1, [s, {2}];
        suld.b.1d.v2.b16.ca.trap {%h1, %h2}, [s, {0}]; mov.b32 %r2, {%h2, %h1};
        sust.b.1d.v2.b32.trap [s, {0}], {%r1, %r2};";
    assert_eq!(words(narrow), at(&[(0, 0xfe), (1, 0xfdfc_fffe)]));
    let wide =
        "sust.b.1d.b64.trap [s, {0}], 0x100000002; suld.b.1d.b64.cv.trap %l1, [s, {0}]; st.global.b64 [%out+56], %l1;";
    assert_eq!(words(wide), at(&[(0, 2), (1, 1), (14, 2), (15, 1)]));
}

#[test]
fn stores_are_seen_by_loads_of_the_surface_and_of_memory() {
    let body = "st.global.u32 [%out+20], 40; suld.b.2d.b32.trap %r1, [s, {4, 1}]; add.u32 %r1, %r1, 2;
        sust.b.2d.b32.trap [s, {8, 1}], %r1; ld.global.u32 %r2, [%out+24]; st.global.u32 [%out], %r2;";
    assert_eq!(words(body), at(&[(0, 42), (5, 40), (6, 42)]));
}

#[test]
fn handles_are_variables_and_parameters_and_their_copies() {
    assert_eq!(words("sust.b.1d.b32.trap [%out, {4}], 7;"), at(&[(1, 7)]));
    assert_eq!(words("mov.b64 %l1, s; mov.u64 %l2, %l1; sust.b.1d.b32.trap [%l2, {4}], 7;"), at(&[(1, 7)]));
    assert_eq!(words("cvta.to.global.u64 %l1, %out; sust.b.1d.b32.trap [%l1, {4}], 7;"), at(&[(1, 7)]));
}

#[test]
fn queries_give_sizes_in_elements() {
    let body =
        "suq.width.b32 %r1, [s]; suq.height.b32 %r2, [%out]; suq.depth.b32 %r3, [s]; suq.array_size.b32 %r4, [s];
        st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};";
    assert_eq!(words(body), at(&[(0, 3), (1, 2), (2, 2), (3, 2)]));
}

#[test]
fn clamp_takes_the_nearest_place() {
    for (coordinates, word) in [("{-4, 0}", 0), ("{12, 0}", 2), ("{2000000000, 5}", 6), ("{4, -1}", 1)] {
        assert_eq!(words(&format!("sust.b.2d.b32.clamp [s, {coordinates}], 7;")), at(&[(word, 7)]), "{coordinates}");
    }
    // Eight bytes fit until byte 4 of the row; that is not aligned, byte 0 is.
    assert_eq!(words("sust.b.2d.b64.clamp [s, {-8, 9}], 0x100000002;"), at(&[(4, 2), (5, 1)]));
    // A layer is unsigned: -1 is far above.
    assert_eq!(words("sust.b.a1d.b32.clamp [s, {-1, 0}], 7;"), at(&[(8, 7)]));
    assert_eq!(
        words("sust.b.1d.b32.trap [s, {0}], 9; suld.b.1d.b32.clamp %r1, [s, {-100}]; st.global.u32 [%out+4], %r1;"),
        at(&[(0, 9), (1, 9)])
    );
}

#[test]
fn zero_drops_stores_and_loads_zeros() {
    for coordinates in ["{-1, 0}", "{12, 0}", "{9, 0}", "{0, 2}", "{0, -1}"] {
        assert_eq!(words(&format!("sust.b.2d.b32.zero [s, {coordinates}], 7;")), at(&[]), "{coordinates}");
        let load = format!("mov.u32 %r1, 5; suld.b.2d.b32.zero %r1, [s, {coordinates}]; st.global.u32 [%out], %r1;");
        assert_eq!(words(&load), at(&[]), "{coordinates}");
    }
    // Lane by lane: those within the bounds access; 4 bytes a thread from -4 on.
    let body =
        "mul.lo.u32 %r1, %r9, 4; sub.u32 %r1, %r1, 4; add.u32 %r2, %r9, 10; sust.b.2d.b32.zero [s, {%r1, 1}], %r2;";
    assert_eq!(words(body), at(&[(4, 11), (5, 12), (6, 13)]));
    let load = "sust.b.2d.v2.b32.trap [s, {0, 0}], {21, 22}; mul.lo.u32 %r1, %r9, 4; sub.u32 %r1, %r1, 4;
        suld.b.2d.b32.zero %r2, [s, {%r1, 0}]; mul.wide.u32 %l1, %r9, 4; add.u64 %l1, %out, %l1; st.global.u32 [%l1+32], %r2;";
    assert_eq!(words(load), at(&[(0, 21), (1, 22), (9, 21), (10, 22)]));
    // A guard leaves a lane's register alone, within the bounds and outside.
    let guarded =
        "setp.gt.u32 %p1, %r9, 1; mul.lo.u32 %r1, %r9, 4; mov.u32 %r2, 5; @%p1 suld.b.2d.b32.zero %r2, [s, {%r1, 1}];
        mul.wide.u32 %l1, %r9, 4; add.u64 %l1, %out, %l1; st.global.u32 [%l1], %r2;";
    assert_eq!(words(guarded), at(&[(0, 5), (1, 5)]));
    let guarded = "setp.gt.u32 %p1, %r9, 1; mul.lo.u32 %r1, %r9, 4; @!%p1 sust.b.2d.b32.zero [s, {%r1, 1}], 8;";
    assert_eq!(words(guarded), at(&[(4, 8), (5, 8)]));
}

#[test]
fn trap_is_a_fault_with_its_place_and_thread() {
    for (instruction, what) in [
        ("sust.b.2d.b32.trap [s, {%r1, 0}], 7", "coordinates outside the bounds of a surface"),
        ("suld.b.2d.b32.trap %r2, [s, {%r1, 0}]", "coordinates outside the bounds of a surface"),
        ("suld.b.2d.b64.trap %l1, [s, {4, 0}]", "not aligned"),
    ] {
        // Thread 3 alone is at byte 12.
        let body = format!("mul.lo.u32 %r1, %r9, 4;\n   {instruction};");
        let Err(RunError::Fault(fault)) = ran(&body).result else { panic!("{instruction} went well") };
        let text = fault.to_string();
        let thread = if what.starts_with('n') { 0 } else { 3 };
        assert!(text.starts_with(&format!("test.ptx:7:4: kernel `k`, CTA (0,0,0) thread ({thread},0,0): ")), "{text}");
        assert!(text.contains(what), "{text}");
    }
}
