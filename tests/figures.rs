//! Figures, looked at as XML.

#[path = "figures_samples/mod.rs"]
mod samples;

/// Writes every sample where it can be looked at.
#[test]
fn samples_are_drawn() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, figure) in samples::all() {
        let svg = figure.svg().unwrap_or_else(|error| panic!("{name}: {error}"));
        std::fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
        std::fs::write(folder.join(format!("{name}.csv")), figure.csv().unwrap()).unwrap();
    }
}
