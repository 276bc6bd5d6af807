//! Events that an end tells while it runs.

use serde::{Deserialize, Serialize};

/// Something that has happened at one end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The end that listens can be connected to.
    Listening {
        /// Port of TCP, or UDP for QUIC.
        port: u16,
    },
    /// Both ends have met.
    Connected {
        /// Data streams.
        streams: u32,
        /// Round trip of the first exchange, s.
        rtt_s: f64,
        /// Bytes that the receiver has from earlier attempts, durable.
        resumed_bytes: u64,
    },
    /// Sender: the sources so far.
    Scanned {
        /// Regular files.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// True if nothing more comes.
        complete: bool,
    },
    /// Now and then.
    Progress {
        /// Since the beginning of this attempt, s.
        now_s: f64,
        /// Regular files that are done, and of how many so far.
        files_done: u64,
        /// See `files_done`.
        files_total: u64,
        /// Bytes of the sources that are at the destination: sent, found there, holes.
        bytes_done: u64,
        /// Bytes of the sources so far.
        bytes_total: u64,
        /// Of `bytes_done`: synced at the receiver, with the journal.
        durable_bytes: u64,
        /// Sender: bytes of files, holes included, that this attempt has to send, as far as the receiver has compared.
        wanted_bytes: u64,
        /// Bytes of file data that went over the path in this attempt.
        sent_bytes: u64,
        /// Bytes that did not have to: unchanged, equal chunks, resumed, holes.
        reused_bytes: u64,
        /// The open data streams, in order.
        streams: Vec<StreamProgress>,
    },
    /// A file was left out, and the copy goes on.
    Fault(crate::report::FileFault),
    /// Something that the user should know and that is no fault.
    Note {
        /// One line.
        text: String,
    },
    /// At the end: connections to the port that did not show the token of this copy. They do not change the copy.
    Refused {
        /// Their number.
        connections: u64,
    },
    /// A stream was lost and is made again, or a chunk came damaged and is sent again.
    Retry {
        /// Reason, in one line.
        reason: String,
    },
}

/// One data stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamProgress {
    /// Bytes of data that it sent.
    pub sent_bytes: u64,
    /// Smoothed RTT, s; absent where the transport does not tell.
    pub rtt_s: Option<f64>,
    /// Window, bytes.
    pub window_bytes: Option<u64>,
    /// Packets sent again.
    pub retransmitted: Option<u64>,
    /// True if it may send (`Steering::streams`).
    pub active: bool,
}
