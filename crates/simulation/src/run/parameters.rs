//! The parameters of a machine as an outcome has them: value and owner.

use std::collections::BTreeMap;

use crate::outcome::Parameter;
use durawarp_base::spec::Key;

/// Every parameter of a machine, with its value and source.
pub(super) fn parameters(
    tables: &[(&str, &'static [Key])],
    values: &serde_json::Value,
    sources: &BTreeMap<String, String>,
) -> BTreeMap<String, Parameter> {
    let mut parameters = BTreeMap::new();
    for (table, keys) in tables {
        for key in *keys {
            let name = format!("{table}.{}", key.name);
            let source = sources.get(&name).cloned().unwrap_or_default();
            parameters.insert(name, Parameter { value: values[*table][key.name].clone(), source });
        }
    }
    parameters
}
