//! A line test's promises, over a line that is a queue of frames.

mod line;
mod promises;
