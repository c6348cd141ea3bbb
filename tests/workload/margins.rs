//! What lies around buffers: guards, in which an access is a fault that names its buffer, and padding, in which it is none.

use crate::workload_common::{ADD_AND_TAKE, folder, resolve};
use durawarp::kernel::functional::Limits;
use durawarp::workload::Resolved;

/// `poke`: one thread stores 7 at `to + by`.
const POKE: &str = "
.visible .entry poke(.param .u64 to, .param .u64 by, .param .u32 unused)
{
    .reg .pred %p; .reg .u32 %r<2>; .reg .u64 %d<2>;
    mov.u32 %r0, %tid.x;
    setp.ne.u32 %p, %r0, 0;
    @%p ret;
    ld.param.u64 %d0, [to];
    ld.param.u64 %d1, [by];
    add.u64 %d0, %d0, %d1;
    mov.u32 %r1, 7;
    st.global.u32 [%d0], %r1;
    ret;
}
";

/// A kernel on `a` (4 elements: 0, 1, 2, 3) with `args`; `b` (10, 10, 10, 10) lies behind it. `keys` are those of `a`.
fn made(test: &str, keys: &str, kernel: &str, args: &str) -> Resolved {
    let manifest = format!(
        r#"schema = 1
name = "margins"
description = "d"
isa = {{ kind = "ptx", file = "kernel.ptx" }}
[buffer.a]
type = "u32"
len = 4
init = {{ kind = "iota" }}
{keys}
[buffer.b]
type = "u32"
len = 4
init = {{ kind = "const", value = 10 }}
[[step]]
kernel = "{kernel}"
grid = 1
block = 256
args = {args}
"#
    );
    let kernels = format!("{ADD_AND_TAKE}{POKE}");
    let files = [("workload.toml", manifest.as_str()), ("kernel.ptx", kernels.as_str())];
    resolve(&folder(test, &files)).unwrap_or_else(|faults| panic!("{test}: {faults}"))
}

/// Final contents of `a` and `b`, or where the fault says that the access lies.
fn run(test: &str, keys: &str, kernel: &str, args: &str) -> Result<[Vec<u32>; 2], String> {
    let resolved = made(test, keys, kernel, args);
    let run = resolved.run_functional(&Limits::default()).map_err(|error| {
        let text = error.to_string();
        text.rsplit_once("out of bounds ").map_or(text.clone(), |(_, hint)| hint.to_owned())
    })?;
    let content = |name: &str| {
        let bytes = resolved.dump(name, run.memory(), run.bindings()).unwrap();
        bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
    };
    Ok(["a", "b"].map(content))
}

#[test]
fn a_guard_makes_an_access_far_outside_a_fault_that_names_the_buffer() {
    let poke = |test: &str, keys: &str, by: i64| run(test, keys, "poke", &format!(r#"["&a", {{ i64 = {by} }}, 0]"#));
    // Without one only 256 bytes between buffers are unallocated: byte 512 is the first of `b`.
    let past = |bytes: u64| Err(format!("({bytes} bytes past the end of `a`, which has 16 bytes)"));
    assert_eq!(poke("guard-none", "", 16), past(0));
    assert_eq!(poke("guard-into-b", "", 512), Ok([vec![0, 1, 2, 3], vec![7, 10, 10, 10]]));
    assert_eq!(poke("guard", "guard = 4096", 512), past(496));
    assert_eq!(poke("guard-end", "guard = 4096", 16 + 4092), past(4092));
    // 16 bytes, twice the guard, and up to a multiple of 256.
    assert_eq!(poke("guard-beyond", "guard = 4096", 8448), Ok([vec![0, 1, 2, 3], vec![7, 10, 10, 10]]));
    assert_eq!(poke("guard-before", "guard = 4096", -8), Err("(8 bytes before `a`)".to_owned()));
}

#[test]
fn accesses_in_padding_change_no_buffer_and_those_beyond_it_are_faults() {
    let add = |test: &str, args: &str| run(test, "padding = 1", "add", args);
    // Six elements from the one in front of `a` on.
    assert_eq!(add("padding", r#"["&a + bytes(-4)", 1, 6]"#), Ok([vec![1, 2, 3, 4], vec![10; 4]]));
    let beyond = "(4 bytes past the end of `a`, which has 16 bytes and 4 of padding)";
    assert_eq!(add("padding-past", r#"["&a + 4", 1, 2]"#), Err(beyond.to_owned()));
}

#[test]
fn offsets_of_addresses_count_elements_or_bytes() {
    for (test, address) in [("elements", "&a + 2"), ("bytes", "&a + bytes(8)"), ("both", "&a + 1 + bytes(2 * (1 + 1))")]
    {
        let args = format!(r#"["{address}", 5, 1]"#);
        assert_eq!(run(test, "", "add", &args), Ok([vec![0, 1, 7, 3], vec![10; 4]]), "{address}");
    }
}
