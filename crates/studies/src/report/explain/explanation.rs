//! What a renderer of a scheme gives back.

use serde_json::Value;

/// An explanation.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// To be read.
    pub text: String,
    /// The same, and what was too much for it, as data.
    pub data: Value,
}
