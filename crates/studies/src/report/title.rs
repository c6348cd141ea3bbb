//! What a run or a figure is of, in a line.

use durawarp_simulation::outcome::Outcome;

/// Workload, profile and machine: the title of a figure whose groups are schemes.
pub(super) fn subject(outcome: &Outcome) -> String {
    let text = |key: &str| outcome.workload[key].as_str().unwrap_or("?");
    format!("{} ({}) on {}", text("workload"), text("profile"), outcome.machine.name)
}

/// Version, machine and profile: the small line below a figure.
pub(super) fn origin(outcome: &Outcome) -> String {
    let profile = outcome.workload["profile"].as_str();
    origin_of(&outcome.version, &outcome.machine.name, profile)
}

/// The same, of a version, a machine or several, and a profile if there is one.
pub(crate) fn origin_of(version: &str, machine: &str, profile: Option<&str>) -> String {
    let profile = profile.map_or_else(String::new, |profile| format!(", profile {profile}"));
    format!("durawarp {version}, machine {machine}{profile}")
}

/// Workload, profile, parameters, machine and scheme of a run.
pub(super) fn title(outcome: &Outcome) -> String {
    let text = |key: &str| outcome.workload[key].as_str().unwrap_or("?").to_owned();
    let params = outcome.workload["params"].as_object().into_iter().flatten();
    let params: Vec<String> = params.map(|(name, value)| format!("{name}={}", plain(value))).collect();
    let params = if params.is_empty() { String::new() } else { format!(", {}", params.join(" ")) };
    let machine = &outcome.machine.name;
    format!("{} ({}{params}) on {machine}, scheme {}", text("workload"), text("profile"), outcome.scheme_name())
}

/// A value without quotes.
pub(super) fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
