//! State of a connection.

use super::output::PeerKey;
use super::session::SessionKey;
use std::collections::VecDeque;
use wire::encapsulation::encapsulated_bytes;
use wire::ifcp::{DeviceFrame, Message};

/// Stage of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// TCP is being set up.
    Connecting,
    /// No session uses it.
    Unbound,
    /// CBIND went out, for a session.
    Binding,
    /// CBIND went out, and the peer's for the same pair won.
    Yielded,
    /// Frames of a session go over it.
    Open,
    /// The session ended here; the peer's UNBIND is to come.
    Released,
    /// UNBIND went out.
    Unbinding,
}

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub peer: PeerKey,
    /// This gateway opened it.
    pub outgoing: bool,
    pub phase: Phase,
    /// Time at which TCP was up, ns.
    pub since_ns: Option<u64>,
    /// Its session; always there in the phases `Binding` and `Open`.
    pub session: Option<SessionKey>,
    /// The responder's name for it, from the last CBIND.
    pub handle: u16,
    /// Messages that control the session; they go before frames.
    pub control: VecDeque<Message>,
    /// Frames that wait for room.
    pub frames: VecDeque<DeviceFrame>,
    /// Bytes of the frames as they will go.
    pub frame_bytes: usize,
    /// The caller knows that there is something to send.
    pub is_announced: bool,
}

impl Connection {
    pub fn new(peer: PeerKey, outgoing: bool) -> Connection {
        Connection {
            peer,
            outgoing,
            phase: if outgoing { Phase::Connecting } else { Phase::Unbound },
            since_ns: None,
            session: None,
            handle: 0,
            control: VecDeque::new(),
            frames: VecDeque::new(),
            frame_bytes: 0,
            is_announced: false,
        }
    }

    /// True for TCP connections that are up.
    pub fn is_up(&self) -> bool {
        self.phase != Phase::Connecting
    }

    pub fn push_frame(&mut self, device: DeviceFrame) {
        self.frame_bytes += encapsulated_bytes(&device.frame);
        self.frames.push_back(device);
    }

    pub fn pop_frame(&mut self) -> Option<DeviceFrame> {
        let device = self.frames.pop_front()?;
        self.frame_bytes -= encapsulated_bytes(&device.frame);
        Some(device)
    }

    /// Throws away the frames that wait.
    pub fn clear_frames(&mut self) {
        self.frames.clear();
        self.frame_bytes = 0;
    }
}
