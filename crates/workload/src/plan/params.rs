//! The values of parameters: the manifest's, a profile's, the user's.

use crate::expr::Value;
use crate::manifest::buffers::{Param, Profile, param_value};
use durawarp_base::diagnostic::{Diagnostic, Diagnostics};

/// The parameters of a manifest and its profiles.
pub(crate) struct Parameters<'a> {
    /// What the workload is called.
    pub(crate) workload: &'a str,
    pub(crate) params: &'a [Param],
    pub(crate) profiles: &'a [Profile],
}

impl Parameters<'_> {
    /// The value of each parameter, in manifest order. Of three layers a later one counts: the manifest's
    /// values, the profile's, the user's.
    pub(crate) fn values(&self, profile: &str, overrides: &[(String, String)], faults: &mut Diagnostics) -> Vec<Value> {
        let mut values: Vec<Value> = self.params.iter().map(|param| param.value).collect();
        match self.profiles.iter().find(|p| p.name == profile) {
            Some(found) => found.values.iter().for_each(|(number, value)| values[*number] = *value),
            None if profile == "default" => {}
            None => {
                let mut names: Vec<&str> = self.profiles.iter().map(|p| p.name.as_str()).collect();
                if !names.contains(&"default") {
                    names.push("default");
                }
                let message = format!("workload `{}` has no profile `{profile}`", self.workload);
                let fault = Diagnostic::nowhere("", message);
                let all = || Some(format!("profiles: {}", names.join(", ")));
                faults.push(fault.with_nearest_or(profile, names.iter().copied(), all));
            }
        }
        for (name, text) in overrides {
            let shown = format!("--set params.{name}={text}");
            let Some(number) = self.params.iter().position(|param| param.name == *name) else {
                let message = format!("workload `{}` has no parameter `{name}`", self.workload);
                let valid: Vec<&str> = self.params.iter().map(|param| param.name.as_str()).collect();
                let fault = Diagnostic::nowhere(&shown, message);
                let all = || Some(format!("parameters: {}", valid.join(", ")));
                faults.push(fault.with_nearest_or(name, valid.iter().copied(), all));
                continue;
            };
            // A number takes the form that the manifest gives the parameter.
            match number_of(text).and_then(|value| param_value(&self.params[number], value)) {
                Ok(value) => values[number] = value,
                Err(message) => faults.push(Diagnostic::nowhere(&shown, message)),
            }
        }
        values
    }
}

fn number_of(text: &str) -> Result<Value, String> {
    let digits: String = text.trim().chars().filter(|c| *c != '_').collect();
    if let Ok(value) = digits.parse() {
        return Ok(Value::Int(value));
    }
    if let Some(Ok(value)) = digits.strip_prefix("0x").map(|hex| i64::from_str_radix(hex, 16)) {
        return Ok(Value::Int(value));
    }
    digits.parse().map(Value::Float).map_err(|_| format!("`{text}` is not a number"))
}
