//! A part of an experiment that is given by its name or as a value: a machine, a scheme, a workload.
//!
//! Here, because any [`Scheme`] is such a value, which only the crate of that trait can say.

use std::sync::Arc;

use super::Scheme;

/// A part of a recipe: by name or path, or as a value that the caller has.
#[derive(Debug, Clone)]
pub enum Part<T> {
    /// A built-in name, or a path.
    Named(String),
    /// The part itself.
    Value(Box<T>),
}

impl<T> From<&str> for Part<T> {
    fn from(name: &str) -> Self {
        Part::Named(name.to_owned())
    }
}

impl<T> From<String> for Part<T> {
    fn from(name: String) -> Self {
        Part::Named(name)
    }
}

impl<T> From<&String> for Part<T> {
    fn from(name: &String) -> Self {
        Part::Named(name.clone())
    }
}

impl<S: Scheme + 'static, T: From<Arc<dyn Scheme>>> From<S> for Part<T> {
    fn from(scheme: S) -> Self {
        let scheme: Arc<dyn Scheme> = Arc::new(scheme);
        scheme.into()
    }
}

impl<T: From<Arc<dyn Scheme>>> From<Arc<dyn Scheme>> for Part<T> {
    fn from(scheme: Arc<dyn Scheme>) -> Self {
        Part::Value(Box::new(scheme.into()))
    }
}

impl<T: Clone> Part<T> {
    /// The value, or what a name stands for.
    ///
    /// # Errors
    /// Of `by_name`.
    pub fn load<E>(&self, by_name: impl FnOnce(&str) -> Result<T, E>) -> Result<T, E> {
        match self {
            Part::Named(name) => by_name(name),
            Part::Value(value) => Ok((**value).clone()),
        }
    }

    /// The name or path, if it is one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Part::Named(name) => Some(name),
            Part::Value(_) => None,
        }
    }
}
