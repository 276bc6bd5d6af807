//! Tests of change detection.

mod cause;
mod detector;
mod series;
