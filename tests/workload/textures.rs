//! Textures: bound by the name of a `.texref` variable, or as texture objects to parameters of a launch.

use crate::workload_common::{folder, load, resolve};
use durawarp::kernel::functional::Limits;
use durawarp::run::Experiment;
use durawarp::workload::Resolved;

/// `by_object`: to[tid] = texel tid of the texture `object`. `by_name`: the same of the texture `fixed`.
const KERNELS: &str = "
.version 6.0
.target sm_60
.address_size 64
.global .texref fixed;
.visible .entry by_object(.param .u64 object, .param .u64 to)
{
    .reg .b32 %r<6>; .reg .b64 %d<4>;
    ld.param.u64 %d0, [object];
    ld.param.u64 %d1, [to];
    mov.u32 %r0, %tid.x;
    tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%d0, {%r0}];
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r1;
    ret;
}
.visible .entry by_name(.param .u64 to)
{
    .reg .b32 %r<6>; .reg .b64 %d<4>;
    ld.param.u64 %d1, [to];
    mov.u32 %r0, %tid.x;
    tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [fixed, {%r0}];
    mul.wide.u32 %d2, %r0, 4;
    add.u64 %d1, %d1, %d2;
    st.global.u32 [%d1], %r1;
    ret;
}
";

const BUFFERS: &str = r#"schema = 1
name = "textures"
description = "d"
isa = { kind = "ptx", file = "kernel.ptx" }
[buffer.one]
type = "u32"
len = 4
space = "texture"
texture = { width = 4 }
init = { kind = "iota" }
[buffer.two]
type = "u32"
len = 4
space = "texture"
texture = { width = 4, name = "fixed" }
init = { kind = "iota", start = 100 }
[buffer.plain]
type = "u32"
len = 4
[buffer.out]
type = "u32"
len = 16
role = "output"
"#;

/// A launch with these arguments.
fn step(kernel: &str, args: &str) -> String {
    format!("[[step]]\nkernel = \"{kernel}\"\ngrid = 1\nblock = 4\nargs = [{args}]\n")
}

fn made(test: &str, steps: &str) -> Result<Resolved, String> {
    resolve(&folder(test, &[("workload.toml", &format!("{BUFFERS}{steps}")), ("kernel.ptx", KERNELS)]))
}

/// Four launches: each object, the fixed texture, and an object behind a swap.
fn program() -> String {
    let of = |texture: &str, at: u32| step("by_object", &format!("{{ texture = \"{texture}\" }}, \"&out + {at}\""));
    let swap = "[[step]]\nswap = [\"one\", \"two\"]\n";
    format!("{}{}{}{swap}{}", of("one", 0), of("two", 4), step("by_name", "\"&out + 8\""), of("one", 12))
}

#[test]
fn each_launch_fetches_from_the_objects_that_it_is_given() {
    let resolved = made("texture-objects", &program()).unwrap_or_else(|faults| panic!("{faults}"));
    let run = resolved.run_functional(&Limits::default()).unwrap();
    let bytes = resolved.dump("out", run.memory(), run.bindings()).unwrap();
    let found: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(found, [0, 1, 2, 3, 100, 101, 102, 103, 100, 101, 102, 103, 100, 101, 102, 103]);
}

#[test]
fn texture_objects_run_on_the_timed_machine() {
    let folder =
        folder("texture-timed", &[("workload.toml", &format!("{BUFFERS}{}", program())), ("kernel.ptx", KERNELS)]);
    let outcome = Experiment::of(load(&folder).unwrap()).run().unwrap_or_else(|faults| panic!("{faults}"));
    let verification = outcome.verification.unwrap_or_else(|| panic!("{:?}", outcome.end));
    assert!(verification.passed, "{:?}", verification.failures);
}

#[test]
fn objects_that_are_none_are_faults() {
    let fault = |test: &str, steps: &str| made(test, steps).map(|_| ()).unwrap_err();
    let sound = step("by_object", "{ texture = \"one\" }, \"&out\"");
    let after = |kernel: &str, args: &str| format!("{sound}{}", step(kernel, args));
    for (test, steps, expected) in [
        (
            "texture-space",
            after("by_object", "{ texture = \"plain\" }, \"&out\""),
            "33:21: buffer `plain` is not in space `texture` (`space = \"texture\"` with its `texture = {width = ..}`)",
        ),
        (
            "texture-name",
            after("by_object", "{ texture = \"oen\" }, \"&out\""),
            "33:21: there is no buffer `oen` (did you mean `one`?)",
        ),
        (
            "texture-parameter",
            after("by_object", "{ texture = \"one\" }, { texture = \"one\" }"),
            "33:30: kernel `by_object` does not fetch from a texture by parameter `to` (it fetches by `object`)",
        ),
        (
            "texture-part",
            after("by_object", "{ struct = [{ texture = \"one\" }] }, \"&out\""),
            "33:21: a texture object is no part of a structure (kernels fetch by parameters of their own)",
        ),
        (
            "texture-number",
            after("by_object", "7, \"&out\""),
            "29:1: kernel `by_object` fetches from texture `object` (bind its parameter by `{texture = \"BUFFER\"}`, a \
             buffer in space `texture`)",
        ),
        (
            "texture-unbound",
            step("by_name", "\"&out\""),
            "9:11: there is no texture `one` (declared: `object`, `fixed`)",
        ),
    ] {
        assert_eq!(fault(test, &steps), expected);
    }
}
