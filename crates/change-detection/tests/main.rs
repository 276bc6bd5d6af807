//! Tests of change detection.

mod arrival;
mod cause;
mod detector;
mod series;
