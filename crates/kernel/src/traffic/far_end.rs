//! The receiving end of a connection: a socket of this process, or another agent's that tells of it.

use super::record::BYTES;
use super::socket::Socket;
use serde::{Deserialize, Serialize};
use std::io;

/// Counters of a receiving end when the run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarCounters {
    /// Payload that its application had taken.
    pub bytes: u64,
    /// Segments with data that arrived; None where the kernel does not tell.
    pub data_segments: Option<u64>,
    /// Segments without data that it sent; None where the kernel does not tell.
    pub acks: Option<u64>,
}

impl FarCounters {
    /// Those of a socket of which `bytes` were taken.
    ///
    /// # Errors
    /// The kernel's.
    pub fn of(socket: &Socket, bytes: u64) -> io::Result<FarCounters> {
        let Some(info) = socket.info_if_told()? else { return Ok(FarCounters { bytes, ..FarCounters::default() }) };
        let raw = info.raw();
        let acks = u64::from(raw.segs_out.saturating_sub(raw.data_segs_out));
        Ok(FarCounters { bytes, data_segments: Some(raw.data_segs_in.into()), acks: Some(acks) })
    }
}

pub(crate) enum FarEnd {
    Local {
        /// Until the connection has come.
        listener: Option<Socket>,
        receiver: Option<Socket>,
    },
    Remote {
        /// Bytes that the connection shows first.
        preamble: [u8; BYTES],
        /// The other agent has taken the connection.
        came: bool,
        /// At the run's end.
        counters: Option<FarCounters>,
    },
}

impl FarEnd {
    /// Returns true once the connection has come to it.
    pub fn came(&self) -> bool {
        match self {
            FarEnd::Local { receiver, .. } => receiver.is_some(),
            FarEnd::Remote { came, .. } => *came,
        }
    }

    /// The listener, where it is here and waits.
    pub fn listener(&self) -> Option<&Socket> {
        match self {
            FarEnd::Local { listener, .. } => listener.as_ref(),
            FarEnd::Remote { .. } => None,
        }
    }

    /// The receiving socket, where it is here.
    pub fn socket(&self) -> Option<&Socket> {
        match self {
            FarEnd::Local { receiver, .. } => receiver.as_ref(),
            FarEnd::Remote { .. } => None,
        }
    }

    /// The connection has come, as `socket`: one per flow.
    pub fn accept(&mut self, socket: Socket) {
        *self = FarEnd::Local { listener: None, receiver: Some(socket) };
    }

    /// Closes it, where it is here.
    pub fn close(&mut self) {
        if let FarEnd::Local { receiver, .. } = self {
            *receiver = None;
        }
    }

    /// Nobody is there any more for a connection that comes.
    #[cfg(test)]
    pub fn close_listener(&mut self) {
        if let FarEnd::Local { listener, .. } = self {
            *listener = None;
        }
    }

    /// Its counters, `received` bytes having been taken; None if there never was a connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn counters(&self, received: u64) -> io::Result<Option<FarCounters>> {
        match self {
            FarEnd::Local { receiver, .. } => {
                receiver.as_ref().map(|socket| FarCounters::of(socket, received)).transpose()
            }
            FarEnd::Remote { counters, .. } => Ok(*counters),
        }
    }

    /// Segments and bytes that are no data of the flow: those of the preamble.
    pub fn preamble(&self) -> Option<&[u8; BYTES]> {
        match self {
            FarEnd::Local { .. } => None,
            FarEnd::Remote { preamble, .. } => Some(preamble),
        }
    }
}
