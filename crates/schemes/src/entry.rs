//! An entry of the catalogue: a scheme as it is by default and, where it has parameters, what they are and
//! how it is built from others.
//!
//! A scheme with parameters declares them by [`spec!`](durawarp_base::spec!), keeps their defaults with
//! sources in a TOML file beside its code (a scheme file: see `config`), and says what must hold among them.
//! Invariant: the defaults are complete and sound; a scheme whose are not ends the program when the catalogue
//! is first asked, in any test. Files and overrides are read by `config`, not here.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use durawarp_base::document::parameters_of;
use durawarp_base::spec::{Key, Spec};
use durawarp_persist::Scheme;

/// What is wrong with values together, each being valid by itself: the key to blame, and why.
pub type Faults = Vec<(&'static str, String)>;

type Build = Box<dyn Fn(&Map<String, Value>) -> Result<Arc<dyn Scheme>, Faults> + Send + Sync>;

/// A scheme, and how to have it otherwise.
#[derive(Debug)]
pub struct Entry {
    /// With its default parameters.
    pub scheme: Arc<dyn Scheme>,
    /// What can be changed about it.
    pub parameters: Option<Parameters>,
}

/// The parameters of a scheme.
pub struct Parameters {
    /// Every key.
    pub keys: &'static [Key],
    /// Their defaults with sources, as a scheme file.
    pub defaults: &'static str,
    /// The same on machines of CPU cores, where they differ.
    pub on_cores: Option<&'static str>,
    build: Build,
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters").field("keys", &self.keys.len()).finish_non_exhaustive()
    }
}

impl Entry {
    /// A scheme without parameters.
    pub fn fixed(scheme: impl Scheme + 'static) -> Self {
        Entry { scheme: Arc::new(scheme), parameters: None }
    }

    /// A scheme with parameters `S`: the text of its defaults, what must hold among them, and how it is made
    /// of them.
    ///
    /// # Panics
    /// When the defaults are not complete and sound.
    pub fn parametrised<S: Spec + 'static>(
        defaults: &'static str,
        faults: fn(&S) -> Faults,
        make: fn(S) -> Arc<dyn Scheme>,
    ) -> Self {
        let build = move |values: &Map<String, Value>| {
            let spec: S = serde_json::from_value(Value::Object(values.clone())).map_err(|error| {
                // `config` has checked every value against its key: then the declaration contradicts itself.
                vec![(S::KEYS.first().map_or("", |key| key.name), error.to_string())]
            })?;
            let faults = faults(&spec);
            if faults.is_empty() { Ok(make(spec)) } else { Err(faults) }
        };
        let scheme = match build(&values_of::<S>(defaults)) {
            Ok(scheme) => scheme,
            Err(faults) => panic!("the defaults of a scheme are unsound: {faults:?}"),
        };
        Entry {
            scheme,
            parameters: Some(Parameters { keys: S::KEYS, defaults, on_cores: None, build: Box::new(build) }),
        }
    }

    /// With other defaults on machines of CPU cores.
    pub fn on_cores(self, defaults: &'static str) -> Self {
        let parameters = self.parameters.map(|parameters| Parameters { on_cores: Some(defaults), ..parameters });
        Entry { parameters, ..self }
    }

    /// The scheme's name.
    pub fn name(&self) -> &'static str {
        self.scheme.name()
    }

    /// What its table is called in files and overrides: its name with `_` for what a key cannot have.
    pub fn table(&self) -> String {
        self.name().replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    }
}

impl Parameters {
    /// The scheme with these values, one for every key.
    ///
    /// # Errors
    /// What does not go together.
    pub fn build(&self, values: &Map<String, Value>) -> Result<Arc<dyn Scheme>, Faults> {
        (self.build)(values)
    }
}

/// The values of a built-in scheme file, in the units of its keys, without their sources.
pub(super) fn values_of<S: Spec>(defaults: &str) -> Map<String, Value> {
    parameters_of(defaults, S::KEYS).unwrap_or_else(|faults| panic!("the defaults of a scheme: {faults}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agpm::parameters::{AgpmSpec, DEFAULTS};
    use crate::baseline::STORE_CLWB;

    fn entry(defaults: &'static str) -> Entry {
        Entry::parametrised(defaults, AgpmSpec::faults, |_| Arc::new(STORE_CLWB))
    }

    #[test]
    fn a_table_is_the_name_without_what_a_key_cannot_have() {
        assert_eq!(Entry::fixed(STORE_CLWB).table(), "store_clwb");
    }

    #[test]
    fn a_scheme_is_built_of_values_that_go_together() {
        let parameters = entry(DEFAULTS).parameters.unwrap();
        let mut values = values_of::<AgpmSpec>(DEFAULTS);
        assert_eq!(values.len(), parameters.keys.len());
        assert!(parameters.build(&values).is_ok());
        values.insert("entries".to_owned(), 33.into());
        assert_eq!(parameters.build(&values).unwrap_err()[0].0, "entries");
    }

    #[test]
    #[should_panic(expected = "unsound")]
    fn defaults_that_lack_a_key_are_a_defect() {
        entry("scheme = \"agpm\"\n[agpm]\nentries = 2\n");
    }
}
