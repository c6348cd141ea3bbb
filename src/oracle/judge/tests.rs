//! Tests of whole judgements.
