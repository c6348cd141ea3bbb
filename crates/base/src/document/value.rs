//! A number of a document: an integer or a float, kept apart.

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `i64`.
    Int,
    /// `f64`.
    Float,
}

/// A value of either kind.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// An integer.
    Int(i64),
    Float(f64),
}

impl Value {
    #[inline]
    pub fn ty(self) -> Type {
        match self {
            Value::Int(_) => Type::Int,
            Value::Float(_) => Type::Float,
        }
    }

    #[inline]
    pub fn bits(self) -> u64 {
        match self {
            Value::Int(value) => value as u64,
            Value::Float(value) => value.to_bits(),
        }
    }

    #[inline]
    pub fn of_bits(bits: u64, ty: Type) -> Self {
        match ty {
            Type::Int => Value::Int(bits as i64),
            Type::Float => Value::Float(f64::from_bits(bits)),
        }
    }

    /// The value as a float, rounded to the nearest.
    #[inline]
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Int(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value:?}"),
        }
    }
}
