//! Directives that bound the launches of a kernel and its registers; accesses to its parameters.

use std::sync::Arc;

use durawarp::kernel::launch::{Binding, Launch, ParamBlock};
use durawarp::kernel::memory::{AddressMap, Medium};
use durawarp::kernel::ptx;

/// What keeps a kernel with these directives from being launched with this grid and block.
fn refused(directives: &str, grid: [u32; 3], block: [u32; 3]) -> Vec<String> {
    let text = format!(".version 8.0 .visible .entry k(.param .u64 a) {directives} {{ ret; }}");
    let module = ptx::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}"));
    let kernel = &module.kernels[0];
    let mut map = AddressMap::default();
    let a = map.allocate("a", 16, Medium::Dram);
    let params = ParamBlock::new(kernel).u64(a).finish();
    let binding = Binding {
        grid,
        block,
        dynamic_shared: 0,
        params: &params,
        globals: &[],
        const_bank: None,
        textures: &[],
        surfaces: &[],
        registers: None,
        cluster: None,
        addresses: Arc::new(map),
    };
    let errors = Launch::bind(&module, kernel, &binding).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_launch_has_the_block_that_its_kernel_asks_for() {
    let other = |block: &str, required: &str| {
        vec![format!("the block {block} is not that of `.reqntid`, which kernel `k` asks for: {required}")]
    };
    assert_eq!(refused(".reqntid 64", [1, 1, 1], [64, 1, 1]), [""; 0]);
    assert_eq!(refused(".reqntid 64", [1, 1, 1], [32, 1, 1]), other("[32, 1, 1]", "[64, 1, 1]"));
    assert_eq!(refused(".reqntid 8, 8", [1, 1, 1], [8, 8, 1]), [""; 0]);
    assert_eq!(refused(".reqntid 8, 8", [1, 1, 1], [64, 1, 1]), other("[64, 1, 1]", "[8, 8, 1]"));
    assert_eq!(refused(".reqntid 64", [1, 1, 1], [65, 1, 1]), other("[65, 1, 1]", "[64, 1, 1]"));
}

#[test]
fn a_launch_has_at_most_the_threads_that_its_kernel_allows() {
    let most = |block: &str, most: u32| vec![format!("the block {block} must have 1 to {most} threads")];
    assert_eq!(refused(".maxntid 64", [1, 1, 1], [64, 1, 1]), [""; 0]);
    assert_eq!(refused(".maxntid 64", [1, 1, 1], [65, 1, 1]), most("[65, 1, 1]", 64));
    // The product counts, not each extent.
    assert_eq!(refused(".maxntid 8, 8", [1, 1, 1], [64, 1, 1]), [""; 0]);
    assert_eq!(refused(".maxntid 8, 8", [1, 1, 1], [8, 9, 1]), most("[8, 9, 1]", 64));
    assert_eq!(refused(".maxntid 4096", [1, 1, 1], [1025, 1, 1]), most("[1025, 1, 1]", 1024));
}

#[test]
fn directives_that_make_no_sense_are_faults() {
    let fault = |directives: &str| {
        let text = format!(".version 8.0 .visible .entry k() {directives} {{ ret; }}");
        ptx::parse("k.ptx", &text).err().map_or_else(String::new, |faults| faults.0[0].to_string())
    };
    assert!(fault(".maxntid 64 .reqntid 64").contains("1:46: `.maxntid` and `.reqntid` exclude each other"));
    assert!(fault(".reqntid 0").contains("1:34: `.reqntid` takes 1 to 3 numbers, each at least 1"));
    assert!(fault(".maxntid 1, 2, 3, 4").contains("`.maxntid` takes 1 to 3 numbers, each at least 1"));
    assert!(fault(".maxnreg 0").contains("`.maxnreg` takes one number from 1 to 65535"));
    assert!(fault(".maxntidd 64").contains("directive `.maxntidd` is not supported"));
}

#[test]
fn a_grid_consists_of_whole_clusters() {
    assert_eq!(refused(".reqnctapercluster 2, 1, 1", [4, 3, 1], [32, 1, 1]), [""; 0]);
    let told = "the grid [3, 1, 1] is no multiple of the clusters of kernel `k`: [2, 1, 1]";
    assert_eq!(refused(".reqnctapercluster 2", [3, 1, 1], [32, 1, 1]), [told]);
    assert_eq!(refused(".reqnctapercluster 1", [3, 1, 1], [32, 1, 1]), [""; 0]);
}

/// Registers of a thread of a kernel with 64 values alive at once.
fn registers(directives: &str) -> u32 {
    let loads: String = (0..64).map(|i| format!("ld.global.u32 %r{i}, [%a+{}];\n", 4 * i)).collect();
    let stores: String = (0..64).map(|i| format!("st.global.u32 [%a+{}], %r{i};\n", 256 + 4 * i)).collect();
    let text = format!(
        ".version 8.0 .visible .entry k(.param .u64 a) {directives} {{ .reg .b32 %r<64>; .reg .b64 %a;\n\
         ld.param.u64 %a, [a];\n{loads}{stores}ret; }}"
    );
    ptx::parse("k.ptx", &text).unwrap_or_else(|faults| panic!("{faults}")).kernels[0].registers_per_thread
}

#[test]
fn registers_are_no_more_than_directives_allow() {
    let all = registers("");
    assert!(all > 64, "{all}");
    // As an H200 does with a kernel of 72 registers.
    assert_eq!(registers(".maxntid 1024"), 64);
    assert_eq!(registers(".maxntid 256"), all);
    assert_eq!(registers(".maxntid 256 .minnctapersm 4"), 64);
    assert_eq!(registers(".maxntid 100 .minnctapersm 9"), 56);
    assert_eq!(registers(".maxnreg 40"), 40);
    // 65,536 registers for 8 CTAs of 256 threads: 32 each; for 5, 51.2, of which ptxas uses 48.
    assert_eq!(registers(".maxntid 256 .minnctapersm 8"), 32);
    assert_eq!(registers(".maxntid 256 .minnctapersm 5"), 48);
    assert_eq!(registers(".reqntid 16, 16 .minnctapersm 8"), 32);
    assert_eq!(registers(".maxntid 256 .minnctapersm 8 .maxnreg 24"), 24);
    assert_eq!(registers(".minnctapersm 8"), all, "without the size of a CTA it means nothing");
}

/// The first fault of a kernel that begins with `body`.
fn fault(body: &str) -> String {
    let text = format!(
        ".version 8.0 .const .align 4 .b32 c[4];\n\
         .func f(.param .align 8 .b8 s[12]) {{ .reg .b32 %r; .reg .b64 %d;\nld.param.b32 %r, [s+8];\nret; }}\n\
         .visible .entry k(.param .u64 a, .param .align 4 .b8 s[12], .param .u64 o) {{ .reg .b32 %r<9>; .reg .b64 %d<9>;\n\
         {body}\nret; }}"
    );
    ptx::parse("k.ptx", &text).err().map_or_else(String::new, |faults| faults.0[0].to_string())
}

#[test]
fn an_access_to_a_parameter_lies_within_it_and_is_aligned() {
    let sound = [
        "ld.param.u64 %d1, [o];",
        "ld.param.u32 %r1, [o+4];",
        "ld.param.u32 %r1, [s+8];",
        "ld.param.v2.u32 {%r1, %r2}, [a];",
        "ld.param.u64 %d1, [s];",
    ];
    for body in sound {
        assert_eq!(fault(body), "", "{body}");
    }
    let exceeds =
        |bytes, offset: i32, of| format!("{bytes} bytes at offset {offset} exceed the {of} bytes of the parameter");
    let crooked =
        |bytes, offset: i32| format!("{bytes} bytes at offset {offset} of the parameter are not aligned to their size");
    let cases = [
        ("ld.param.u32 %r1, [o+64];", exceeds(4, 64, 8)),
        ("ld.param.u64 %d1, [o+4];", exceeds(8, 4, 8)),
        ("ld.param.u32 %r1, [o+-4];", exceeds(4, -4, 8)),
        // Within the block of all parameters, and in the next one.
        ("ld.param.u64 %d1, [a+8];", exceeds(8, 8, 8)),
        ("ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [a];", exceeds(16, 0, 8)),
        ("ld.param.u32 %r1, [o+2];", crooked(4, 2)),
        ("ld.param.u64 %d1, [s+4];", crooked(8, 4)),
        ("ld.param.v2.u32 {%r1, %r2}, [s+4];", crooked(8, 4)),
        ("{ .param .align 8 .b8 x[12]; st.param.b64 [x+8], %d1; call f, (x); }", exceeds(8, 8, 12)),
        ("{ .param .align 8 .b8 x[12]; st.param.b64 [x+4], %d1; call f, (x); }", crooked(8, 4)),
        ("{ .param .align 8 .b8 x[12]; st.param.v2.b32 [x+4], {%r1, %r2}; call f, (x); }", crooked(8, 4)),
    ];
    for (body, expected) in cases {
        let found = fault(body);
        assert!(found.contains(&expected), "{body}: {found}");
        let column = body.find(" [").map_or(0, |at| at + 2);
        assert!(found.contains(&format!("k.ptx:6:{column}")), "{body}: {found}");
    }
}
