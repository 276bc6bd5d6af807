//! Changes in the measurements of a path: its benchmark, its daily pattern, and when its level has left them.
//!
//! **Invariant: a detector sees one sample at a time, with its time as an argument, and its state is data that a restart
//! goes on from.**
