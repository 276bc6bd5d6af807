//! A second one of everything that there is room for: docs/design refers to these files.

#[path = "../common/mod.rs"]
mod common;
mod echo;
mod proxy;
mod queue_probe;
mod stop_and_wait;
