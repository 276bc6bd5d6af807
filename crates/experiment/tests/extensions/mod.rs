//! A second one of everything that there is room for: docs/design refers to these files.

mod echo;
mod proxy;
mod queue_probe;
mod stop_and_wait;
