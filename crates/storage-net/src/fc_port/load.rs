//! The load's two sides at a port: the one that it sends, and those that it receives.

use std::collections::BTreeMap;
use storage::fc::generator::WrongSettings;
use storage::fc::generator::{stamp_of, EndOfLoad, Generator, LoadResult, Receiver, Settings, Size, Stamp};
use units::{Rate, Span};
use wire::fc::{FcId, Frame};

/// Time that a sender may catch up: so long a scheduler keeps a process from a processor that others use.
const CATCH_UP_NS: u64 = 20_000_000;
/// Time between two questions for the result, ns, and the longest wait for it.
const ASK_NS: u64 = 1_000_000_000;
const ASKS_MAX: u32 = 10;
/// Senders of which results are kept.
const SENDERS_MAX: usize = 256;

/// A load to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadConfig {
    /// Rate of the port.
    pub rate: Rate,
    /// Share of it that frames take, with delimiters and fill words, per mille.
    pub share_per_mille: u32,
    /// Sizes of the frames.
    pub sizes: Vec<Size>,
    /// Duration.
    pub duration: Span,
    /// Number of the load, and seed of the order of sizes.
    pub number: u32,
}

/// A load that was sent, or is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    /// Frames that left.
    pub frames: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Time from the first to the last, ns.
    pub span_ns: u64,
    /// Time of the schedule that was left out because the way took no frame, ns.
    pub left_out_ns: u64,
    /// All is sent, and the receiver told its result or did not.
    pub is_done: bool,
    /// The receiver's result.
    pub result: Option<LoadResult>,
}

/// A load that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Address of the sender.
    pub from: FcId,
    /// The load's number.
    pub load: u32,
    /// Frames that the sender says it sent; None: it has not said so.
    pub sent: Option<u64>,
    /// Result so far.
    pub result: LoadResult,
}

#[derive(Debug)]
pub(super) struct Sender {
    to: FcId,
    load: u32,
    generator: Generator,
    start_ns: u64,
    end_ns: u64,
    last_ns: u64,
    asks: u32,
    ask_ns: u64,
    result: Option<LoadResult>,
    is_over: bool,
}

impl Sender {
    pub fn new(to: FcId, config: LoadConfig, now_ns: u64) -> Result<Sender, WrongSettings> {
        let settings = Settings {
            load: config.number,
            sizes: config.sizes,
            seed: u64::from(config.number),
            catch_up_ns: CATCH_UP_NS,
            ..Settings::of(config.rate, config.share_per_mille, 0)
        };
        Ok(Sender {
            to,
            load: config.number,
            generator: Generator::new(settings, now_ns)?,
            start_ns: now_ns,
            end_ns: now_ns.saturating_add(config.duration.0),
            last_ns: now_ns,
            asks: 0,
            ask_ns: 0,
            result: None,
            is_over: false,
        })
    }

    fn is_sending(&self) -> bool {
        !self.is_over && self.generator.poll_timeout().is_some_and(|next_ns| next_ns < self.end_ns)
    }

    fn is_done(&self) -> bool {
        !self.is_sending() && (self.result.is_some() || self.asks > ASKS_MAX)
    }

    /// Ends the sending now; the result is still asked for.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Time at which [`Sender::poll_frame`] has a frame, ns.
    pub fn poll_timeout(&self) -> u64 {
        match self.generator.poll_timeout() {
            Some(next_ns) if self.is_sending() => next_ns,
            _ if self.is_done() => u64::MAX,
            _ => self.ask_ns,
        }
    }

    /// The next frame, if one is due; `clock_ns` gives the time of the clock that both ends share.
    pub fn poll_frame(&mut self, from: FcId, now_ns: u64, clock_ns: impl Fn() -> u64) -> Option<Frame> {
        if now_ns >= self.end_ns {
            self.is_over = true;
        }
        if self.is_sending() {
            let due = self.generator.poll_frame(now_ns)?;
            self.last_ns = now_ns;
            let stamp = Stamp { sent_ns: clock_ns(), ..due.stamp };
            return Some(storage::fc::generator::load_frame(from, self.to, &stamp, due.payload_bytes));
        }
        if self.is_done() || now_ns < self.ask_ns {
            return None;
        }
        self.asks += 1;
        self.ask_ns = now_ns + ASK_NS;
        if self.asks > ASKS_MAX {
            return None;
        }
        Some(EndOfLoad::Asks { load: self.load, sent: self.generator.sent() }.frame(from, self.to))
    }

    fn handle_result(&mut self, from: FcId, load: u32, result: LoadResult) {
        if from == self.to && load == self.load {
            self.result = Some(result);
        }
    }

    pub fn sent(&self) -> Sent {
        Sent {
            frames: self.generator.sent(),
            payload_bytes: self.generator.payload_bytes(),
            span_ns: self.last_ns - self.start_ns,
            left_out_ns: self.generator.left_out_ns(),
            is_done: self.is_done(),
            result: self.result,
        }
    }
}

#[derive(Debug)]
struct Incoming {
    load: u32,
    receiver: Receiver,
    sent: Option<u64>,
}

/// Both sides.
#[derive(Debug, Default)]
pub(super) struct Load {
    pub sender: Option<Sender>,
    incoming: BTreeMap<FcId, Incoming>,
    /// Results of earlier loads of the same senders.
    earlier: Vec<Received>,
}

impl Load {
    /// Takes a frame that came; `clock_ns` is the time of the clock that both ends share. Returns an answer to it.
    pub fn handle_frame(&mut self, frame: &Frame, clock_ns: u64) -> Option<Frame> {
        let (from, own) = (frame.header.s_id, frame.header.d_id);
        if let Some(stamp) = stamp_of(frame) {
            let bytes = frame.payload.len();
            let incoming = self.incoming(from, stamp.load)?;
            incoming.receiver.handle_stamp(&stamp, bytes, clock_ns);
            return None;
        }
        match EndOfLoad::of(frame)? {
            EndOfLoad::Asks { load, sent } => {
                let incoming = self.incoming(from, load)?;
                incoming.sent = Some(sent);
                let result = LoadResult::of(&incoming.receiver, Some(sent));
                Some(EndOfLoad::Tells { load, result }.frame(own, from))
            }
            EndOfLoad::Tells { load, result } => {
                if let Some(sender) = &mut self.sender {
                    sender.handle_result(from, load, result);
                }
                None
            }
        }
    }

    /// Loads that came, the earliest of each sender first.
    pub fn received(&self) -> Vec<Received> {
        let running = self.incoming.iter().map(|(from, incoming)| received(*from, incoming));
        self.earlier.iter().copied().chain(running).collect()
    }

    fn incoming(&mut self, from: FcId, load: u32) -> Option<&mut Incoming> {
        let is_new = self.incoming.get(&from).is_none_or(|incoming| incoming.load != load);
        if is_new {
            if let Some(before) = self.incoming.remove(&from) {
                self.earlier.push(received(from, &before));
            }
            if self.incoming.len() + self.earlier.len() >= SENDERS_MAX {
                return None;
            }
            self.incoming.insert(from, Incoming { load, receiver: Receiver::new(load), sent: None });
        }
        self.incoming.get_mut(&from)
    }
}

fn received(from: FcId, incoming: &Incoming) -> Received {
    let Incoming { load, receiver, sent } = incoming;
    Received { from, load: *load, sent: *sent, result: LoadResult::of(receiver, *sent) }
}
