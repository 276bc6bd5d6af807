//! Workloads of flows, and their progress at the far end: the same on every backend.

mod application;
mod copy;
mod generator;
mod messages;
mod order;
mod random_writes;
mod sending_end;
mod stripe;

pub use application::{Application, ConstantRate, Replicate, Share, Source, Workload};
pub use copy::FileCopy;
pub use generator::Generator;
pub use messages::{Messages, Peak};
pub use order::Order;
pub use random_writes::RandomWrites;
pub use sending_end::{SendingEnd, BLOCK_BYTES};
pub use stripe::{Lanes, Stripe};
