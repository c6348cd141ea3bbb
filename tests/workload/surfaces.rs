//! Surfaces of workloads: buffers that kernels store to and load from through `sust.b` and `suld.b`, on the machine under
//! every scheme, with the values of the functional run; and what is refused.

use crate::workload_common::{folder, load, shown};
use durawarp::run::Experiment;
use durawarp::schemes::catalogue;
use durawarp::workload::{Choice, Demands};

/// `fill`: each thread stores 4 * (its number) at x = 4 * tid, y = ctaid of `image`. `turn`: out[x][y] = image(x, y) by
/// a surface object, 0 where x is 6 or 7.
const PTX: &str = "
.version 7.0
.target sm_60
.address_size 64
.global .surfref image;
.visible .entry fill()
{
.reg .b32 %r<6>;
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r3, %r2, 6, %r1;
shl.b32 %r1, %r1, 2;
shl.b32 %r3, %r3, 2;
sust.b.2d.b32.trap [image, {%r1, %r2}], %r3;
ret;
}
.visible .entry turn(.param .u64 object, .param .u64 out)
{
.reg .b32 %r<8>; .reg .b64 %l<4>;
ld.param.u64 %l1, [object];
ld.param.u64 %l2, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
shl.b32 %r3, %r1, 2;
suld.b.2d.b32.zero %r4, [%l1, {%r3, %r2}];
suq.height.b32 %r5, [%l1];
mad.lo.u32 %r5, %r1, %r5, %r2;
mad.wide.u32 %l3, %r5, 4, %l2;
st.global.u32 [%l3], %r4;
ret;
}
";

/// Rows of 6 words, 8 words apart.
const MANIFEST: &str = r#"schema = 1
name = "turn"
description = "a picture through surfaces"
isa = { kind = "ptx", file = "kernel.ptx" }
[buffer.picture]
type = "u32"
len = 40
space = "pm"
surface = { width = 6, height = 5, pitch = 32, name = ["image", "object"] }
[buffer.out]
type = "u32"
len = 40
space = "pm"
role = "output"
[[step]]
kernel = "fill"
grid = 5
block = 6
args = []
[[step]]
kernel = "turn"
grid = 5
block = 8
args = [{ u64 = 0 }, "&out"]
[[verify]]
buffer = "out"
ref = { kind = "expr", expr = "(idx / 5 < 6) * (4 * (idx % 5 * 6 + idx / 5))" }
"#;

#[test]
fn every_scheme_gives_the_values_of_the_functional_run() {
    let folder = folder("surfaces", &[("workload.toml", MANIFEST), ("kernel.ptx", PTX)]);
    let workload = load(&folder).unwrap();
    for scheme in catalogue::all() {
        // Those that keep logs ask for an `[instrument]`.
        if scheme.logs() {
            continue;
        }
        let recipe = Experiment::of(&workload).scheme(scheme.name()).set("sm.count", 2);
        let outcome = recipe.run().unwrap_or_else(|faults| panic!("{}: {faults}", scheme.name()));
        assert!(outcome.verification.as_ref().is_some_and(|found| found.passed), "{}: {outcome:?}", scheme.name());
    }
}

/// Faults of the manifest after changes, each (old, new).
fn faults(test: &str, changes: &[(&str, &str)]) -> String {
    let mut text = MANIFEST.to_owned();
    for (old, new) in changes {
        assert!(text.contains(old), "{old}");
        text = text.replacen(old, new, 1);
    }
    let folder = folder(test, &[("workload.toml", &text), ("kernel.ptx", PTX)]);
    let found = load(&folder).and_then(|workload| {
        workload.resolve_under(&Choice::default(), Demands::default()).map_err(|faults| shown(&folder, &faults))
    });
    found.map(|_| String::new()).unwrap_or_else(|faults| faults)
}

#[test]
fn a_surface_that_does_not_fit_or_that_no_kernel_uses_is_refused() {
    assert_eq!(
        faults("surface-fits", &[("height = 5", "height = 6")]),
        "9:11: 6 by 6 by 1 elements of 4 bytes with a pitch of 32 do not fit the buffer's 160 bytes"
    );
    assert_eq!(
        faults("surface-pitch", &[("pitch = 32", "pitch = 20")]),
        "9:11: 6 by 5 by 1 elements of 4 bytes with a pitch of 20 do not fit the buffer's 160 bytes"
    );
    assert_eq!(
        faults("surface-name", &[("\"image\"", "\"imago\"")]),
        "9:56: there is no surface `imago` (did you mean `image`?)"
    );
    assert_eq!(
        faults("surface-key", &[("height = 5", "depths = 5")]),
        "9:24: unknown key `depths` in `surface` (did you mean `depth`?)"
    );
    let found = faults("surface-space", &[("space = \"pm\"\nsurface", "space = \"const\"\nsurface")]);
    assert!(found.contains("9:11: `surface` belongs to a buffer in space `dram` or `pm`"), "{found}");
}
