//! Line tests on real Ethernet interfaces: raw frames in and out, around the cores of `line-test`.
//!
//! A [`LinePort`] has one interface. It sends one stream at a time, and counts and answers streams of others. Frames
//! pass by rings that the kernel shares (packet(7)), or by AF_XDP where the interface's driver takes that.

mod boot;
mod clock;
mod counters;
mod ethtool;
mod interface;
mod packet_mmap;
mod port;
mod socket;
mod way;

pub use port::{LinePort, LinePortConfig, PortInfo};
pub use way::Method;

/// What ends a call early.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The system refused something.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The stream cannot be.
    #[error("{0}")]
    Spec(#[from] line_test::WrongSpec),
    /// The caller told it to.
    #[error("told to stop")]
    Stopped,
}
