//! One connection of a tunnel: its state and the messages that wait for it (RFC 3821, 5.6: an FCIP data engine).

use super::flows::FlowKey;
use super::keep_alive::KEEP_ALIVE_MS_MIN;
use bytes::BytesMut;
use std::collections::VecDeque;
use wire::encapsulation::TimeStamp;
use wire::fc::Frame;
use wire::fcip::{Message, SpecialFrame};

/// Progress of a connection.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// The special frame was sent, its echo is missing.
    WaitsForEcho(SpecialFrame),
    /// The peer's special frame is missing.
    WaitsForSpecial,
    /// Frames go through.
    Open,
    /// The caller closes it when what waits has been sent.
    Closing,
}

/// A message that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub message: Message,
    pub bytes: usize,
    /// Direction of the exchange, of frames of classes 2, 3 and 4.
    pub flow: Option<FlowKey>,
    /// Time after which it must not leave any more.
    pub deadline_ns: u64,
}

/// A connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub state: State,
    /// Classes that it is for; 0 = all.
    pub usage_flags: u8,
    /// Number of its usage in the settings, where this end opens it.
    pub usage: Option<usize>,
    /// Number of the peer's end, where the peer opened it.
    pub entity: Option<u64>,
    /// Bytes that came and are no whole message yet.
    pub stream: BytesMut,
    pub waiting: VecDeque<Waiting>,
    pub waiting_bytes: usize,
    /// Time by which the special frame has to come.
    pub special_deadline_ns: u64,
    /// Time between keep-alives; None without.
    keep_alive_ns: Option<u64>,
    pub sent_ns: u64,
    pub received_ns: u64,
    /// An answer to a keep-alive waits: one will do for all.
    pub answer_waits: bool,
}

impl Connection {
    pub fn new(state: State, now_ns: u64, special_frame_ms: u32) -> Connection {
        Connection {
            state,
            usage_flags: 0,
            usage: None,
            entity: None,
            stream: BytesMut::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            special_deadline_ns: now_ns.saturating_add(u64::from(special_frame_ms) * 1_000_000),
            keep_alive_ns: None,
            sent_ns: now_ns,
            received_ns: now_ns,
            answer_waits: false,
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    /// Opens the connection with what its special frame says.
    pub fn open(&mut self, special: &SpecialFrame, now_ns: u64) {
        self.state = State::Open;
        self.usage_flags = special.usage_flags;
        (self.sent_ns, self.received_ns) = (now_ns, now_ns);
        let ms = special.keep_alive_ms;
        self.keep_alive_ns = (ms > 0).then(|| u64::from(ms.max(KEEP_ALIVE_MS_MIN)) * 1_000_000);
    }

    /// Puts a message at the end of those that wait.
    pub fn push(&mut self, message: Message, flow: Option<FlowKey>, deadline_ns: u64) {
        let bytes = message.bytes();
        self.waiting_bytes += bytes;
        self.waiting.push_back(Waiting { message, bytes, flow, deadline_ns });
    }

    /// Puts a frame that belongs to no exchange of others at the end.
    pub fn push_own(&mut self, frame: Frame, time: TimeStamp) {
        self.push(Message::Frame(frame, time), None, u64::MAX);
    }

    /// Takes the first message that waits.
    pub fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.waiting_bytes -= first.bytes;
        Some(first)
    }

    /// Time at which a keep-alive is due. None while something waits: that shows life when the connection takes it.
    pub fn keep_alive_due_ns(&self) -> Option<u64> {
        let period = self.keep_alive_ns.filter(|_| self.is_open() && self.waiting.is_empty())?;
        Some(self.sent_ns.saturating_add(period))
    }

    /// Time at which the connection is given up.
    pub fn given_up_ns(&self) -> Option<u64> {
        match self.state {
            State::WaitsForEcho(_) | State::WaitsForSpecial => Some(self.special_deadline_ns),
            State::Open => self.keep_alive_ns.map(|period| self.received_ns.saturating_add(2 * period)),
            State::Closing => None,
        }
    }
}
