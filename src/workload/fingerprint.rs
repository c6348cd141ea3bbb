//! Everything that a resolved workload's run and its verdict follow from, as bytes to hash.
//!
//! Invariant: two resolved workloads that feed the same bytes have the same outcomes on every machine. Contents of buffers
//! are fed as they lie in memory, so files and graphs that they came from need not be; files that checks compare with are.

use super::Resolved;
use super::manifest::CheckKind;

/// Feeds the workload, part by part, each with its name.
pub(super) fn feed(resolved: &Resolved, take: &mut dyn FnMut(&str, &[u8])) {
    let plan = &resolved.plan;
    let manifest = plan.folder.read(plan.folder.manifest());
    take("manifest", &manifest.unwrap_or_default());
    for (file, text) in &plan.programs.texts {
        take("file", file.as_bytes());
        take("ptx", text.as_bytes());
    }
    take("profile", plan.profile.as_bytes());
    take("altered", &[u8::from(plan.altered)]);
    take("seed", &plan.seed.to_le_bytes());
    plan.frame.iter().for_each(|value| take("value", &value.to_le_bytes()));
    take("instrument", serde_json::to_string(&plan.settings).unwrap_or_default().as_bytes());
    for (form, buffer) in plan.manifest.buffers.iter().zip(&plan.buffers) {
        take("buffer", form.name.as_bytes());
        take("address", &buffer.address.to_le_bytes());
        take("bytes", &buffer.bytes.to_le_bytes());
        if let Some(content) = buffer.kept() {
            take("content", content);
        }
    }
    for address in plan.globals.iter().flatten() {
        take("variable", &address.to_le_bytes());
    }
    for bank in plan.const_banks.iter().flatten() {
        take("constants", bank);
    }
    for check in &plan.manifest.checks {
        if let CheckKind::File { file, .. } = &check.kind {
            take("expected", &plan.folder.read(file).unwrap_or_default());
        }
    }
}
