//! QUIC (RFC 9000, by quinn) under the congestion controls of `congestion/`: the same C file that the simulator runs.
//!
//! [`Control`] is a control as quinn takes one. [`QuicListener`] and [`connect`] make streams of bytes for threads that
//! block: one connection each, with TLS 1.3 between ends that know each other's certificate.
//!
//! **Invariant: a control sees in QUIC what Linux's TCP would show it, as far as QUIC has it; docs/design/quic.md says
//! where it has not.**

mod adapter;
mod bursts;
mod connect;
mod control;
mod error;
mod pinned;
mod runtime;
mod settings;
mod socket;
mod stream;
mod tls;

pub use connect::{connect, QuicListener};
pub use control::{Control, Shown};
pub use error::QuicError;
pub use pinned::PinnedCertificate;
pub use runtime::settle;
pub use settings::Settings;
pub use stream::{Facts, QuicHandle, QuicReader, QuicStream, QuicWriter};
