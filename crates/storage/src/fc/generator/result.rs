//! The end of a load: the sender says how many frames it sent, and the receiver answers with what came.

use super::receiver::{Receiver, Report};
use super::stamp::LOAD_TYPE;
use bytes::{BufMut, Bytes, BytesMut};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader};

const ASKS: [u8; 4] = *b"eFCQ";
const TELLS: [u8; 4] = *b"eFCR";
/// Parts of a thousand below which the latencies of a result lie.
pub const RESULT_PER_MILLE: [u64; 5] = [500, 900, 990, 999, 1000];

/// A load's result at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadResult {
    /// Counts, with all frames that the sender sent.
    pub report: Report,
    /// Mean latency, ns.
    pub latency_mean_ns: u64,
    /// Latencies that so many of [`RESULT_PER_MILLE`] do not exceed, ns: within 0.4 %, the last one exact.
    pub latency_ns: [u64; RESULT_PER_MILLE.len()],
}

impl LoadResult {
    /// The result of a receiver, to which a sender sent `sent` frames; None: that is not known, and frames behind the
    /// last one that came count for nothing.
    pub fn of(receiver: &Receiver, sent: Option<u64>) -> LoadResult {
        let mut report = receiver.report();
        if let Some(sent) = sent {
            report.lost = sent.saturating_sub(report.received);
        }
        let latency = receiver.latency();
        let mut latency_ns = [0; RESULT_PER_MILLE.len()];
        for (place, value) in latency_ns.iter_mut().zip(latency.quantiles(&RESULT_PER_MILLE)) {
            *place = value;
        }
        LoadResult { report, latency_mean_ns: latency.mean().unwrap_or(0.0).round() as u64, latency_ns }
    }

    fn numbers(&self) -> [u64; NUMBERS] {
        let report = &self.report;
        let [a, b, c, d, e] = self.latency_ns;
        [
            report.received,
            report.payload_bytes,
            report.lost,
            report.duplicates,
            report.out_of_order,
            report.too_late,
            report.from_the_future,
            report.span_ns,
            self.latency_mean_ns,
            a,
            b,
            c,
            d,
            e,
        ]
    }
}

const NUMBERS: usize = 14;

/// A message at the end of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndOfLoad {
    /// The sender asks for the result of the load with a number, of which it sent so many frames.
    Asks {
        /// The load's number.
        load: u32,
        /// Frames sent.
        sent: u64,
    },
    /// The receiver tells it.
    Tells {
        /// The load's number.
        load: u32,
        /// The result.
        result: LoadResult,
    },
}

impl EndOfLoad {
    /// The message as a frame. Order within a session puts it behind the load's frames.
    pub fn frame(&self, from: FcId, to: FcId) -> Frame {
        let mut payload = BytesMut::new();
        match self {
            EndOfLoad::Asks { load, sent } => {
                payload.put_slice(&ASKS);
                payload.put_u32(*load);
                payload.put_u64(*sent);
            }
            EndOfLoad::Tells { load, result } => {
                payload.put_slice(&TELLS);
                payload.put_u32(*load);
                result.numbers().into_iter().for_each(|number| payload.put_u64(number));
            }
        }
        let header = FrameHeader {
            r_ctl: routing::UNSOLICITED_CONTROL,
            d_id: to,
            s_id: from,
            kind: LOAD_TYPE,
            f_ctl: frame_control::FIRST_SEQUENCE | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
            ..FrameHeader::default()
        };
        Frame::class3(header, payload.freeze())
    }

    /// The message of a frame; None when it is none.
    pub fn of(frame: &Frame) -> Option<EndOfLoad> {
        if frame.header.kind != LOAD_TYPE || frame.header.r_ctl != routing::UNSOLICITED_CONTROL {
            return None;
        }
        let payload: Bytes = frame.payload.to_bytes();
        let load = u32::from_be_bytes(payload.get(4..8)?.try_into().ok()?);
        let number = |place: usize| {
            let at = 8 + place * 8;
            Some(u64::from_be_bytes(payload.get(at..at + 8)?.try_into().ok()?))
        };
        match payload.get(..4)?.try_into().ok()? {
            ASKS => Some(EndOfLoad::Asks { load, sent: number(0)? }),
            TELLS => {
                let mut numbers = [0; NUMBERS];
                for (place, value) in numbers.iter_mut().enumerate() {
                    *value = number(place)?;
                }
                let [received, payload_bytes, lost, duplicates, out_of_order, too_late, from_the_future, span_ns, ..] =
                    numbers;
                let report = Report {
                    received,
                    payload_bytes,
                    lost,
                    duplicates,
                    out_of_order,
                    too_late,
                    foreign: 0,
                    from_the_future,
                    span_ns,
                };
                let [.., mean, a, b, c, d, e] = numbers;
                let result = LoadResult { report, latency_mean_ns: mean, latency_ns: [a, b, c, d, e] };
                Some(EndOfLoad::Tells { load, result })
            }
            _ => None,
        }
    }
}
