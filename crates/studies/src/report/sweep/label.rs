//! What things of a sweep are called in its figures: values, series, metrics, the baseline.

use serde_json::Value;

use durawarp_simulation::sweep::Plan;
use durawarp_simulation::sweep::file::WORDS;
use durawarp_simulation::sweep::file::figure::Shown;
use durawarp_simulation::sweep::file::text_of;
use durawarp_simulation::sweep::metrics::Metric;

/// Names that need no key beside them.
const PLAIN: [&str; 4] = ["machine", "workload", "scheme", "profile"];

/// A value by itself: a file by its name alone.
pub(super) fn value(value: &Value) -> String {
    let text = text_of(value);
    let name = text.trim_end_matches('/').rsplit('/').next().unwrap_or(&text);
    let name = name.strip_suffix(".toml").unwrap_or(name);
    if name.is_empty() { text } else { name.to_owned() }
}

/// A value with its key, where its meaning does not follow from itself; empty where it does not apply.
pub(super) fn told(key: &str, of: &Value) -> String {
    match of {
        Value::Null => String::new(),
        _ if PLAIN.contains(&key) => value(of),
        _ => format!("{key}={}", value(of)),
    }
}

/// Values of several keys together, for legends: a key by the last part of its name.
pub(super) fn series(keys: &[String], values: &[Value]) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let short = |key: &str| {
        let own = last(key);
        if keys.iter().filter(|other| last(other) == own).count() == 1 { own } else { key.to_owned() }
    };
    let all: Vec<String> = keys.iter().zip(values).map(|(key, value)| told(&short(key), value)).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    if all.is_empty() && !keys.is_empty() { format!("no {}", keys.join(", ")) } else { all.join(" ") }
}

/// What stands below values of a key: nothing where they say it.
pub(super) fn axis(key: &str) -> &str {
    if PLAIN.contains(&key) && WORDS.contains(&key) { "" } else { key }
}

/// What the baseline is called.
pub(super) fn baseline(plan: &Plan) -> String {
    let keys = plan.file.baseline.iter().flat_map(|baseline| &baseline.keys);
    let told = keys.map(|(key, values)| values.iter().map(|value| told(key, value)).collect::<Vec<_>>().join("|"));
    told.collect::<Vec<_>>().join(" ")
}

/// Name and unit of a metric.
fn metric(metric: &Metric) -> (String, String) {
    let name = match metric.name.as_str() {
        "cycles" => "execution time",
        "time_ns" => "simulated time",
        "ipc" => "IPC",
        "warp_instructions" => "warp instructions",
        "persists.mean_ns" => "mean latency of a persist",
        "persists.p50_ns" => "median latency of a persist",
        "persists.p99_ns" => "99th percentile of the latency of a persist",
        "fences.sum_ns" => "time of warps at fences",
        "boundaries.sum_ns" => "time of CTAs and kernels at their ends",
        name => name,
    };
    let unit = if name == metric.unit || name.ends_with("_bytes") { "" } else { metric.unit.as_str() };
    (name.to_owned(), unit.to_owned())
}

/// Name and unit of what a figure shows.
pub(super) fn shown(shown: &Shown) -> (String, String) {
    match shown {
        Shown::Metric(of) => metric(of),
        Shown::Stalls => ("resident warp cycles".to_owned(), "%".to_owned()),
        Shown::Traffic => ("traffic of memory devices".to_owned(), "bytes".to_owned()),
        Shown::Persists => ("mean latency of a persist".to_owned(), "ns".to_owned()),
        Shown::Metrics(all) => match &all[..] {
            [only] => metric(only),
            [first, ..] => (first.unit.clone(), String::new()),
            [] => (String::new(), String::new()),
        },
        Shown::Latency(_) => ("latency".to_owned(), "ns".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_themselves_and_numbers_have_their_key() {
        let keys = ["scheme".to_owned(), "agpm.threshold_logs".to_owned()];
        assert_eq!(series(&keys, &["schemes/mine.toml".into(), 5.into()]), "mine threshold_logs=5");
        assert_eq!(series(&keys, &["base".into(), Value::Null]), "base");
        assert_eq!(series(&keys[1..], &[Value::Null]), "no agpm.threshold_logs");
        assert_eq!(series(&[], &[]), "");
        let two = ["l2.ways".to_owned(), "l1.ways".to_owned()];
        assert_eq!(series(&two, &[8.into(), 4.into()]), "l2.ways=8 l1.ways=4");
        assert_eq!(value(&"workloads/atax/".into()), "atax");
    }
}
