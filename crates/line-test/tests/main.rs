//! A line test's promises, over a line that is a queue of frames.

mod hostile;
mod line;
mod promises;
