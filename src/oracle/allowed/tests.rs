//! Tests of the allowed states.
