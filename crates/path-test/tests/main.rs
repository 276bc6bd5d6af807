//! Tests of the crate, one binary: estimators over an exact model of a path.

mod estimators;
mod exact_line;
