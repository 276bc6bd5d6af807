//! Tests of the crate, one binary.

mod own_file;
mod streams;
mod virtual_path;
mod virtual_tests;
