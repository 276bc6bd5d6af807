//! The sending end of a line: one stream, from its announcement to the receiver's last answer.

use crate::clock::{Clock, ClockEstimate};
use crate::ethernet::{Mac, FCS_BYTES, HEADER_BYTES, LINE_OVERHEAD_BYTES, VLAN_TAG_BYTES};
use crate::message::{Answer, Message};
use crate::mix::Mix;
use crate::report::{Report, Window};
use crate::schedule::Schedule;
use crate::spec::{StreamSpec, WrongSpec};
use crate::stamp::{Kind, Stamp, STAMP_BYTES};
use bytes::Bytes;
use serde::Serialize;
use units::{Rate, Span};

/// A frame that leaves this long after its time counts as late, ns.
const LATE_NS: u64 = 100_000;
/// Time between two tries of a message, ns.
const RETRY_NS: u64 = 100_000_000;
/// Tries before a receiver counts as absent.
const TRIES_MAX: u32 = 30;
/// Time between questions without a series, ns: for the clock's offset.
const ASK_NS: u64 = 1_000_000_000;

/// Time between two looks at what is due while there is no carrier, ns.
const NO_CARRIER_NS: u64 = 10_000_000;

/// A time by two clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Time that no one sets, ns: frames are due by it.
    pub steady_ns: u64,
    /// Time since 1970, ns: stamps have it.
    pub day_ns: u64,
}

/// A frame of the stream to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// Bytes without the check sequence.
    pub bytes: usize,
    /// Its stamp.
    pub stamp: [u8; STAMP_BYTES],
}

/// Counts of a sender. Frames of the ramp are in none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Sent {
    /// Frames sent.
    pub frames: u64,
    /// Their bytes with check sequences.
    pub bytes: u64,
    /// Time that the schedule gave them, ns.
    pub span_ns: u64,
    /// Frames that left more than 0.1 ms after their time.
    pub late_frames: u64,
    /// The latest, ns.
    pub late_max_ns: u64,
    /// Frames that were not sent in their time and left out: what the generator could not do.
    pub left_out_frames: u64,
    /// Frames that were due while the interface had no carrier, and were not sent: the line's fault.
    pub no_carrier_frames: u64,
    /// Longest time between a frame's stamp and the return of the call that handed it to the interface, ns: what its
    /// latency may be too long by.
    pub hold_max_ns: u64,
    /// Mean of the same over all calls, ns.
    pub hold_mean_ns: u64,
    /// Frames that the interface says that it dropped instead of sending.
    pub interface_drops: u64,
}

/// A row of the series: counts since the row before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// Time since the stream's begin without its ramp, ns.
    pub time_ns: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames that came; after an answer that did not come, since the last one that did.
    pub received: u64,
    /// Frames lost, of those up to the highest number that came; below 0 when late ones came.
    pub lost: i64,
    /// Wrong bits.
    pub bit_errors: u64,
    /// Frames with one.
    pub errored_frames: u64,
    /// Frames sent late.
    pub late_frames: u64,
    /// Frames left out by the generator.
    pub left_out_frames: u64,
    /// Frames that were due without a carrier.
    pub no_carrier_frames: u64,
    /// Smallest latency, ns.
    pub latency_min_ns: Option<i64>,
    /// Mean latency, ns.
    pub latency_mean_ns: Option<i64>,
    /// Largest latency, ns.
    pub latency_max_ns: Option<i64>,
    /// The receiver answered.
    pub is_answered: bool,
}

/// The result of a stream.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Outcome {
    /// The sender's counts.
    pub sent: Sent,
    /// The receiver's; None: it did not answer.
    pub received: Option<Report>,
    /// The receiver's clock; None: it did not answer.
    pub clock: Option<ClockEstimate>,
    /// Reason of an early end.
    pub ended: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Announcing { tries: u32, next_ns: u64 },
    Sending,
    Draining { until_ns: u64 },
    Asking { tries: u32, next_ns: u64 },
    Done,
}

/// The counts that the last row had.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    sent: Sent,
    received: u64,
    lost: u64,
    bit_errors: u64,
    errored_frames: u64,
}

/// The sending end, for one stream.
#[derive(Debug)]
pub struct Sender {
    spec: StreamSpec,
    mix: Mix,
    own: Mac,
    vlan: Option<u16>,
    boot: u64,
    state: State,
    schedule: Schedule,
    /// Steady time at which the counted part begins, ns.
    begin_ns: u64,
    ramp_frames: u64,
    /// Mean time of a frame on the line, ps: for frames that were left out.
    mean_line_ps: u64,
    sent: Sent,
    hold_sum_ns: u128,
    holds: u64,
    clock: Clock,
    /// Number of the last question, its steady time, and the counts at it.
    question: u64,
    asked: Option<(u64, Sent)>,
    next_ask_ns: u64,
    retry_ns: u64,
    before: Before,
    rows: Vec<Row>,
    received: Option<Report>,
    /// The receiver said that it is busy.
    is_refused: bool,
    has_carrier: bool,
    /// Steady time of the last look at what is due, ns.
    looked_ns: u64,
    /// Time of the schedule without a carrier, ns.
    no_carrier_ns: u64,
    ended: Option<String>,
}

impl Sender {
    /// A sender at an interface with an address, an MTU and a tag, on a machine with a number of its start.
    ///
    /// # Errors
    /// The stream cannot be.
    pub fn new(
        spec: StreamSpec,
        own: Mac,
        mtu_bytes: u32,
        vlan: Option<u16>,
        boot: u64,
        now: Now,
    ) -> Result<Sender, WrongSpec> {
        spec.check(mtu_bytes, vlan.is_some())?;
        let mix = Mix::new(&spec.sizes).map_err(WrongSpec)?;
        let vlan = vlan.map(|vlan| vlan & 0xfff | u16::from(spec.pcp.unwrap_or(0)) << 13);
        let round = spec.sizes.iter().map(|(_, weight)| u64::from(*weight)).sum::<u64>();
        let line_bytes = spec
            .sizes
            .iter()
            .map(|(bytes, weight)| (u64::from(*bytes) + LINE_OVERHEAD_BYTES) * u64::from(*weight))
            .sum::<u64>();
        let mean_line_ps = u128::from(line_bytes) * 8_000_000_000_000 / u128::from(round) / u128::from(spec.rate_bps);
        let schedule = Schedule::new(Rate(spec.rate_bps), Span(spec.ramp_ns), now.steady_ns);
        Ok(Sender {
            mix,
            own,
            vlan,
            boot,
            state: State::Announcing { tries: 0, next_ns: now.steady_ns },
            schedule,
            begin_ns: 0,
            ramp_frames: 0,
            mean_line_ps: (mean_line_ps as u64).max(1),
            sent: Sent::default(),
            hold_sum_ns: 0,
            holds: 0,
            clock: Clock::default(),
            question: 0,
            asked: None,
            next_ask_ns: 0,
            retry_ns: 0,
            before: Before::default(),
            rows: vec![],
            received: None,
            is_refused: false,
            has_carrier: true,
            looked_ns: now.steady_ns,
            no_carrier_ns: 0,
            ended: None,
            spec,
        })
    }

    /// Address of the receiver.
    pub fn to(&self) -> Mac {
        self.spec.to
    }

    /// The tag of the stream's frames, with its priority.
    pub fn vlan(&self) -> Option<u16> {
        self.vlan
    }

    /// Largest frame, bytes with its check sequence.
    pub fn largest_bytes(&self) -> u32 {
        self.mix.largest()
    }

    /// Bytes of the stream's pattern from the frame's first address on.
    pub fn pattern_bytes(&self, length: usize) -> Vec<u8> {
        self.spec.payload.bytes(length)
    }

    /// True when the stream is over, with or without an answer.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Sends no more frames: the receiver is asked for its counts.
    pub fn end(&mut self, reason: &str, now: Now) {
        match self.state {
            State::Announcing { .. } => self.state = State::Done,
            State::Sending => self.drain(now),
            State::Draining { .. } | State::Asking { .. } | State::Done => return,
        }
        self.ended = Some(reason.to_owned());
    }

    fn drain(&mut self, now: Now) {
        self.sent.span_ns = self.schedule.next_ns().saturating_sub(self.begin_ns);
        self.state = State::Draining { until_ns: now.steady_ns + self.spec.drain_ns };
    }

    /// Takes the number of frames that the interface dropped since the stream began.
    pub fn set_interface_drops(&mut self, frames: u64) {
        self.sent.interface_drops = frames;
    }

    /// Takes the time between a frame's stamp and its hand-over, ns.
    pub fn handle_hold(&mut self, hold_ns: u64) {
        self.sent.hold_max_ns = self.sent.hold_max_ns.max(hold_ns);
        self.hold_sum_ns += u128::from(hold_ns);
        self.holds += 1;
    }

    /// Takes a message of the receiver, which came at a time since 1970.
    pub fn handle_message(&mut self, from: Mac, stamp: &Stamp, message: &Message, at_ns: u64, now: Now) {
        if from != self.spec.to || stamp.stream != self.spec.stream {
            return;
        }
        match message {
            Message::Begun { asked_ns, came_ns, boot } => {
                self.clock.handle_sample(*asked_ns, *came_ns, stamp.sent_ns, at_ns);
                if *boot == self.boot && self.boot != 0 {
                    self.clock.set_same();
                }
                if matches!(self.state, State::Announcing { .. }) {
                    self.schedule = Schedule::new(Rate(self.spec.rate_bps), Span(self.spec.ramp_ns), now.steady_ns);
                    self.begin_ns = now.steady_ns + self.spec.ramp_ns;
                    self.next_ask_ns = self.begin_ns + self.ask_ns();
                    self.state = State::Sending;
                }
            }
            Message::Tell(answer) => {
                self.clock.handle_sample(answer.asked_ns, answer.came_ns, stamp.sent_ns, at_ns);
                self.handle_answer(answer);
            }
            Message::Busy => self.is_refused = true,
            Message::Hello | Message::Here(_) | Message::Begin { .. } | Message::Ask { .. } => {}
        }
    }

    fn handle_answer(&mut self, answer: &Answer) {
        if answer.number != self.question {
            return;
        }
        if let Some((asked_ns, sent)) = self.asked.take() {
            self.add_row(asked_ns, sent, Some((&answer.report, &answer.window)));
        }
        self.received = Some(answer.report.clone());
        if matches!(self.state, State::Asking { .. }) {
            self.state = State::Done;
        }
    }

    fn add_row(&mut self, asked_ns: u64, sent: Sent, answer: Option<(&Report, &Window)>) {
        if self.spec.series_ns.is_none() {
            return;
        }
        let before = self.before;
        let mut row = Row {
            time_ns: asked_ns.saturating_sub(self.begin_ns),
            sent: sent.frames - before.sent.frames,
            received: 0,
            lost: 0,
            bit_errors: 0,
            errored_frames: 0,
            late_frames: sent.late_frames - before.sent.late_frames,
            left_out_frames: sent.left_out_frames - before.sent.left_out_frames,
            no_carrier_frames: sent.no_carrier_frames - before.sent.no_carrier_frames,
            latency_min_ns: None,
            latency_mean_ns: None,
            latency_max_ns: None,
            is_answered: answer.is_some(),
        };
        self.before.sent = sent;
        if let Some((report, window)) = answer {
            row.received = report.frames.saturating_sub(before.received);
            row.lost = report.lost.wrapping_sub(before.lost) as i64;
            row.bit_errors = report.bit_errors.saturating_sub(before.bit_errors);
            row.errored_frames = report.errored_frames.saturating_sub(before.errored_frames);
            if window.frames > 0 {
                let offset_ns = self.clock.estimate().map_or(0, |clock| clock.offset_ns);
                row.latency_min_ns = Some(window.latency_min_ns.saturating_sub(offset_ns));
                let mean_ns = i128::from(window.latency_sum_ns) / i128::from(window.frames);
                row.latency_mean_ns = Some((mean_ns as i64).saturating_sub(offset_ns));
                row.latency_max_ns = Some(window.latency_max_ns.saturating_sub(offset_ns));
            }
            (self.before.received, self.before.lost) = (report.frames, report.lost);
            (self.before.bit_errors, self.before.errored_frames) = (report.bit_errors, report.errored_frames);
        }
        self.rows.push(row);
    }

    fn ask_ns(&self) -> u64 {
        self.spec.series_ns.unwrap_or(ASK_NS)
    }

    /// The next message as a frame without check sequence, when one is due.
    pub fn poll_message(&mut self, now: Now) -> Option<Bytes> {
        let steady_ns = now.steady_ns;
        let message = match &mut self.state {
            State::Announcing { tries, next_ns } if *next_ns <= steady_ns => {
                if *tries == TRIES_MAX {
                    self.state = State::Done;
                    let busy = "the receiver is busy with another stream";
                    self.ended = Some(if self.is_refused { busy } else { "the receiver did not answer" }.into());
                    return None;
                }
                (*tries, *next_ns) = (*tries + 1, steady_ns + RETRY_NS);
                Message::Begin { largest_bytes: self.mix.largest() }
            }
            State::Sending if self.next_ask_ns <= steady_ns => {
                if let Some((asked_ns, sent)) = self.asked.take() {
                    self.add_row(asked_ns, sent, None);
                }
                self.question += 1;
                self.asked = Some((steady_ns, self.sent));
                // Questions that a sleeping machine missed are not asked.
                let behind = (steady_ns - self.next_ask_ns) / self.ask_ns();
                self.next_ask_ns += (behind + 1) * self.ask_ns();
                self.retry_ns = steady_ns + RETRY_NS;
                Message::Ask { number: self.question, sent: None }
            }
            State::Sending | State::Draining { .. } if self.asked.is_some() && self.retry_ns <= steady_ns => {
                self.retry_ns = steady_ns + RETRY_NS;
                Message::Ask { number: self.question, sent: None }
            }
            State::Draining { until_ns } if *until_ns <= steady_ns => {
                if let Some((asked_ns, sent)) = self.asked.take() {
                    self.add_row(asked_ns, sent, None);
                }
                self.question += 1;
                self.asked = Some((self.begin_ns + self.sent.span_ns, self.sent));
                self.state = State::Asking { tries: 1, next_ns: steady_ns + RETRY_NS };
                Message::Ask { number: self.question, sent: Some(self.sent.frames) }
            }
            State::Asking { tries, next_ns } if *next_ns <= steady_ns => {
                if *tries == TRIES_MAX {
                    self.state = State::Done;
                    self.received = None;
                    let why = "the receiver did not answer at the end";
                    self.ended = Some(self.ended.take().map_or(why.into(), |ended| format!("{ended}; {why}")));
                    if let Some((asked_ns, sent)) = self.asked.take() {
                        self.add_row(asked_ns, sent, None);
                    }
                    return None;
                }
                (*tries, *next_ns) = (*tries + 1, steady_ns + RETRY_NS);
                Message::Ask { number: self.question, sent: Some(self.sent.frames) }
            }
            _ => return None,
        };
        Some(message.frame(self.own, self.spec.to, self.vlan, self.spec.stream, now.day_ns))
    }

    /// Takes whether the interface has a carrier. Without one no frame is sent: what is due is counted.
    pub fn set_carrier(&mut self, has_carrier: bool, now: Now) {
        // Until now it was as it was.
        self.handle_timeout(now);
        self.has_carrier = has_carrier;
    }

    /// Leaves out what cannot be sent any more, and ends the stream when nothing is due any more. To be called before
    /// frames are polled, and when there is no room for one.
    #[inline]
    pub fn handle_timeout(&mut self, now: Now) {
        self.looked_ns = now.steady_ns;
        if self.state != State::Sending || self.schedule.next_ns() > now.steady_ns {
            return;
        }
        let end_ns = self.spec.duration_ns.map_or(u64::MAX, |duration_ns| self.begin_ns + duration_ns);
        if self.has_carrier {
            self.schedule.leave_out(now.steady_ns, end_ns);
            self.sent.left_out_frames = self.schedule.left_out_ns().saturating_mul(1000) / self.mean_line_ps;
        } else {
            self.no_carrier_ns += self.schedule.skip(now.steady_ns, end_ns);
            self.sent.no_carrier_frames = self.no_carrier_ns.saturating_mul(1000) / self.mean_line_ps;
        }
        let is_rising = self.schedule.is_rising();
        if !is_rising && (self.schedule.next_ns() >= end_ns || self.spec.frames == Some(self.sent.frames)) {
            self.drain(now);
        }
    }

    /// The next frame of the stream, when one is due. Poll only with room for it.
    #[inline]
    pub fn poll_due(&mut self, now: Now) -> Option<Due> {
        self.handle_timeout(now);
        if self.state != State::Sending || !self.has_carrier || self.schedule.next_ns() > now.steady_ns {
            return None;
        }
        let is_rising = self.schedule.is_rising();
        let (kind, sequence) = if is_rising { (Kind::Ramp, self.ramp_frames) } else { (Kind::Test, self.sent.frames) };
        let bytes = self.mix.size(sequence);
        let late_ns = self.schedule.take(bytes, now.steady_ns);
        if is_rising {
            self.ramp_frames += 1;
        } else {
            self.sent.frames += 1;
            self.sent.bytes += u64::from(bytes);
            self.sent.late_frames += u64::from(late_ns > LATE_NS);
            self.sent.late_max_ns = self.sent.late_max_ns.max(late_ns);
        }
        let pattern = self.spec.payload as u8;
        let length = bytes as usize - FCS_BYTES;
        let tag_bytes = if self.vlan.is_some() { VLAN_TAG_BYTES } else { 0 };
        let content_bytes = (length - HEADER_BYTES - tag_bytes) as u16;
        let stream = self.spec.stream;
        let stamp = Stamp { kind, pattern, content_bytes, stream, sequence, sent_ns: now.day_ns };
        Some(Due { bytes: length, stamp: stamp.encode() })
    }

    /// Steady time at which something is due next, ns; None: nothing will be.
    pub fn poll_timeout(&self) -> Option<u64> {
        let retry_ns = self.asked.map(|_| self.retry_ns);
        match self.state {
            State::Announcing { next_ns, .. } | State::Asking { next_ns, .. } => Some(next_ns),
            State::Sending if !self.has_carrier => {
                Some((self.looked_ns + NO_CARRIER_NS).min(self.next_ask_ns).min(retry_ns.unwrap_or(u64::MAX)))
            }
            State::Sending => Some(self.schedule.next_ns().min(self.next_ask_ns).min(retry_ns.unwrap_or(u64::MAX))),
            State::Draining { until_ns } => Some(until_ns.min(retry_ns.unwrap_or(u64::MAX))),
            State::Done => None,
        }
    }

    /// The rows since the last call.
    pub fn take_rows(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.rows)
    }

    /// The result so far.
    pub fn outcome(&self) -> Outcome {
        let clock = self.clock.estimate();
        let received = self.received.clone().map(|report| Report {
            latency_ns: report.latency_ns.map(|latency| latency.less(clock.map_or(0, |clock| clock.offset_ns))),
            ..report
        });
        let hold_mean_ns = (self.hold_sum_ns / u128::from(self.holds.max(1))) as u64;
        let sent = Sent { hold_mean_ns, ..self.sent };
        Outcome { sent, received, clock, ended: self.ended.clone() }
    }
}
