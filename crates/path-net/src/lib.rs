//! Path tests on real sockets: UDP with the kernel's time stamps and TTL, ICMP errors of routers, a STAMP reflector.
//!
//! **Invariant: what a test decides is decided in `path-test`; here packets leave when they are due and come back with
//! the time at which the kernel saw them.**

mod address;
mod clock;
mod error;
mod reflect;
mod sessions;
mod socket;
mod test;
mod train_driver;

pub use address::resolve;
pub use clock::{clock_quality, monotonic_ns, unix_ns, ClockQuality};
pub use error::PathError;
pub use reflect::ReflectorServer;
pub use sessions::{SessionOptions, Sessions};
pub use socket::PAYLOAD_MAX;
pub use test::{parse_key, run_estimator, run_stamp, run_test, test_names, time_format, StampResult};
pub use train_driver::{TrainDriver, TRAIN_PACKETS_MAX};
