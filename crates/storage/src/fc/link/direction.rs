//! One direction of a link: a transmitter, the line, the credits that come back.

use super::settings::Settings;
use super::speed::LINE_OVERHEAD_BYTES;
use std::collections::VecDeque;

/// Bits of a byte times nanoseconds of a second.
const BIT_NS_PER_BYTE: u128 = 8 * 1_000_000_000;

/// Counters of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames that went on the line.
    pub frames: u64,
    /// Bytes of them: header, payload with padding, CRC.
    pub content_bytes: u64,
    /// Frames that had to wait for a credit although the line was free.
    pub credit_stalls: u64,
    /// Time of it, ns.
    pub stalled_ns: u64,
    /// Time in which the line carried frames, ns.
    pub busy_ns: u64,
    /// Most frames that waited at once.
    pub waiting_max: usize,
}

/// One direction.
#[derive(Clone, Debug)]
pub(super) struct Direction<F> {
    settings: Settings,
    /// Frames that have arrived, are on the line, and wait, in this order, with the bytes of their content: a frame
    /// stays in its place until the receiver takes it.
    frames: VecDeque<(F, usize)>,
    /// Frames that have arrived.
    arrived: usize,
    /// Times of arrival of the frames on the line.
    flying: VecDeque<u64>,
    /// Times at which credits come back.
    returning: VecDeque<u64>,
    credits: u16,
    /// Buffers of the receiver that frames fill.
    filled: u16,
    /// End of the frame on the line, ns, and the fraction of a nanosecond beyond it, in 1/rate.
    free_at: (u64, u128),
    /// Begin of the wait for a credit.
    stalled_since: Option<u64>,
    /// Time of the next event, ns; [`NEVER`]: none. Kept, since it is asked for far more often than it changes.
    next: u64,
    pub counters: Counters,
}

/// A time that does not come, ns.
const NEVER: u64 = u64::MAX;

impl<F> Direction<F> {
    pub fn new(settings: Settings) -> Direction<F> {
        Direction {
            settings,
            frames: VecDeque::new(),
            arrived: 0,
            flying: VecDeque::new(),
            returning: VecDeque::new(),
            credits: settings.credits,
            filled: 0,
            free_at: (0, 0),
            stalled_since: None,
            next: NEVER,
            counters: Counters::default(),
        }
    }

    #[inline]
    pub fn has_room(&self) -> bool {
        self.waiting() < self.settings.queue_frames
    }

    /// Frames that wait.
    #[inline]
    fn waiting(&self) -> usize {
        self.frames.len() - self.arrived - self.flying.len()
    }

    pub fn credits(&self) -> u16 {
        self.credits
    }

    /// Takes a frame to send; the caller looked for room.
    pub fn push(&mut self, frame: F, content_bytes: usize, now_ns: u64) {
        self.frames.push_back((frame, content_bytes));
        self.start(now_ns);
        self.counters.waiting_max = self.counters.waiting_max.max(self.waiting());
        self.update_next();
    }

    /// The receiver has emptied a buffer: R_RDY travels in the fill words between frames and takes no time of theirs.
    pub fn release(&mut self, now_ns: u64) {
        // A receiver that empties what it never got would make credits of nothing.
        if self.filled > 0 {
            self.filled -= 1;
            self.returning.push_back(now_ns + self.settings.delay_ns);
            self.update_next();
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<F> {
        self.arrived = self.arrived.checked_sub(1)?;
        self.frames.pop_front().map(|(frame, _)| frame)
    }

    /// Time of the next event.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        (self.next != NEVER).then_some(self.next)
    }

    #[inline]
    fn update_next(&mut self) {
        // Without a credit the line's end is an event as well, once: a stall begins.
        let looks = self.credits > 0 || self.stalled_since.is_none();
        let send = if self.waiting() > 0 && looks { self.free_at.0 } else { NEVER };
        let arrival = self.flying.front().copied().unwrap_or(NEVER);
        let credit = self.returning.front().copied().unwrap_or(NEVER);
        self.next = send.min(arrival).min(credit);
    }

    /// Does all that is due, each at its own time.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        if self.next <= now_ns {
            self.advance_due(now_ns);
        }
    }

    #[inline(never)]
    fn advance_due(&mut self, now_ns: u64) {
        while self.next <= now_ns && self.next != NEVER {
            self.step(self.next);
            self.update_next();
        }
    }

    fn step(&mut self, at: u64) {
        while self.returning.front().is_some_and(|due| *due <= at) {
            self.returning.pop_front();
            self.credits += 1;
        }
        while self.flying.front().is_some_and(|due| *due <= at) {
            self.flying.pop_front();
            self.filled += 1;
            self.arrived += 1;
        }
        if self.waiting() > 0 {
            self.start(at);
        }
    }

    /// Sends the next frame if the line is free and the receiver has room.
    fn start(&mut self, now_ns: u64) {
        self.note_stall(now_ns);
        if now_ns < self.free_at.0 || self.credits == 0 {
            return;
        }
        let Some(&(_, content_bytes)) = self.frames.get(self.arrived + self.flying.len()) else { return };
        if let Some(since) = self.stalled_since.take() {
            self.counters.stalled_ns += now_ns - since;
        }
        self.credits -= 1;
        let bytes = (content_bytes + LINE_OVERHEAD_BYTES) as u128;
        // Frames that follow each other keep the fraction, so that the rate holds over any number of them.
        let fraction = if self.free_at.0 == now_ns { self.free_at.1 } else { 0 };
        let sum = bytes * BIT_NS_PER_BYTE + fraction;
        let (time_ns, fraction) = divided(sum, self.settings.rate.0);
        self.free_at = (now_ns + time_ns, fraction);
        self.counters.frames += 1;
        self.counters.content_bytes += content_bytes as u64;
        self.counters.busy_ns += time_ns;
        self.flying.push_back(self.free_at.0 + self.settings.delay_ns);
    }

    /// A frame that could go but for a credit begins to wait.
    fn note_stall(&mut self, now_ns: u64) {
        let stalled = self.waiting() > 0 && self.credits == 0 && now_ns >= self.free_at.0;
        if stalled && self.stalled_since.is_none() {
            self.counters.credit_stalls += 1;
            self.stalled_since = Some(now_ns);
        }
    }
}

/// Quotient and remainder. A processor divides 64 bits at once, which the longest frame needs 45 of.
#[inline]
fn divided(sum: u128, rate: u64) -> (u64, u128) {
    match u64::try_from(sum) {
        Ok(sum) => (sum / rate, u128::from(sum % rate)),
        Err(_) => ((sum / u128::from(rate)) as u64, sum % u128::from(rate)),
    }
}
