//! Workload folders for tests, kernels for them, and faults without the folder's path.

use std::path::PathBuf;

use durawarp::diagnostic::Diagnostics;
use durawarp::workload::{Choice, Resolved, Workload};

/// `add`: a[i] += by for i < n. `take`: one thread, *left -= 1, and *sum += *left.
#[allow(dead_code, reason = "each test file uses a part of this one")]
pub(crate) const ADD_AND_TAKE: &str = "
.version 6.0
.target sm_60
.address_size 64
.visible .entry add(.param .u64 a, .param .u32 by, .param .u32 n)
{
    .reg .pred %p; .reg .u32 %r<6>; .reg .u64 %d<4>;
    ld.param.u64 %d0, [a];
    ld.param.u32 %r0, [by];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1;
    @%p ret;
    mul.wide.u32 %d1, %r2, 4;
    add.u64 %d0, %d0, %d1;
    ld.global.u32 %r5, [%d0];
    add.u32 %r5, %r5, %r0;
    st.global.u32 [%d0], %r5;
    ret;
}
.visible .entry take(.param .u64 left, .param .u64 sum)
{
    .reg .u32 %r<3>; .reg .u64 %d<2>;
    ld.param.u64 %d0, [left];
    ld.param.u64 %d1, [sum];
    ld.global.u32 %r0, [%d0];
    sub.u32 %r0, %r0, 1;
    st.global.u32 [%d0], %r0;
    ld.global.u32 %r1, [%d1];
    add.u32 %r1, %r1, %r0;
    st.global.u32 [%d1], %r1;
    ret;
}
";

/// A folder with these files, new for each test.
pub(crate) fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("workload-{test}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, content) in files {
        std::fs::write(folder.join(name), content).unwrap();
    }
    folder
}

/// The workload in a folder.
#[allow(dead_code, reason = "each test file uses a part of this one")]
pub(crate) fn load(folder: &std::path::Path) -> Result<Workload, String> {
    Workload::load(&folder.display().to_string()).map_err(|faults| shown(folder, &faults))
}

/// The workload in a folder with its default profile.
#[allow(dead_code, reason = "each test file uses a part of this one")]
pub(crate) fn resolve(folder: &std::path::Path) -> Result<Resolved, String> {
    load(folder)?.resolve(&Choice::default()).map_err(|faults| shown(folder, &faults))
}

/// Faults as text, `line:column: message`, without the path of the test's folder.
pub(crate) fn shown(folder: &std::path::Path, faults: &Diagnostics) -> String {
    let manifest = format!("{}:", folder.join("workload.toml").display());
    faults.to_string().replace(&manifest, "").replace(&folder.display().to_string(), "FOLDER")
}
