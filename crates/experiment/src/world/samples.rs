//! Values of flows at the times of the series, noted by each end in its own turn until all have noted them.

use crate::flow::Flow;
use crate::series::{FlowRow, FlowSeries};
use crate::side::Side;
use crate::transport::Transport;
use units::{Span, Time};

/// Values of a sender at one time.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    /// It has opened its connection.
    is_open: bool,
    cwnd_packets: u32,
    ssthresh_packets: Option<u32>,
    srtt: Option<Span>,
    in_flight_bytes: u64,
    retransmitted_segments: u64,
    duplicate_acks: u64,
    lag: (Span, u64),
}

const CLOSED: Noted = Noted {
    is_open: false,
    cwnd_packets: 0,
    ssthresh_packets: None,
    srtt: None,
    in_flight_bytes: 0,
    retransmitted_segments: 0,
    duplicate_acks: 0,
    lag: (Span::ZERO, 0),
};

impl Noted {
    /// Those of `flow`, whose connection is open, with the age and the bytes of what it has not delivered.
    #[inline]
    pub fn of<T: Transport>(flow: &Flow<T>, lag: (Span, u64)) -> Noted {
        let (sample, counts) = (flow.sender.sample(), flow.sender_counts());
        Noted {
            is_open: true,
            cwnd_packets: sample.cwnd_packets,
            ssthresh_packets: sample.ssthresh_packets,
            srtt: sample.srtt,
            in_flight_bytes: sample.in_flight_bytes,
            retransmitted_segments: counts.0,
            duplicate_acks: counts.1,
            lag,
        }
    }

    /// The row of flow `index` at `time`; `new_bytes` have come to its receiver in the `interval` before.
    #[inline]
    pub fn row(&self, (time, index): (Time, usize), new_bytes: u64, interval: Span) -> FlowRow {
        FlowRow {
            time,
            flow: index,
            cwnd_packets: self.cwnd_packets,
            ssthresh_packets: self.ssthresh_packets,
            srtt: self.srtt,
            in_flight_bytes: self.in_flight_bytes,
            goodput_bps: goodput_bps(new_bytes, interval),
            retransmitted_segments: self.retransmitted_segments,
            duplicate_acks: Some(self.duplicate_acks),
            lag: self.lag.0,
            lag_bytes: self.lag.1,
        }
    }
}

/// Rate of `bytes` in an interval, bit/s.
#[inline]
pub(super) fn goodput_bps(bytes: u64, interval: Span) -> f64 {
    bytes as f64 * 8.0 / interval.as_secs_f64()
}

/// Samples of `flows` flows that wait for being written: flows have their turns in this order.
#[derive(Default)]
pub struct Samples {
    flows: usize,
    /// By sample and flow.
    senders: Vec<Noted>,
    /// By sample and flow: what the receiver has got, bytes.
    received: Vec<u64>,
}

impl Samples {
    pub fn new(flows: usize) -> Samples {
        Samples { flows, ..Samples::default() }
    }

    /// An end of flow `index` notes sample `nth`; the sender knows whether it `is_open`.
    pub fn note<T: Transport>(
        &mut self,
        now: Time,
        (index, side): (usize, Side),
        nth: usize,
        (flow, is_open): (&Flow<T>, bool),
    ) {
        let place = nth * self.flows + index;
        if self.received.len() <= place {
            self.received.resize((nth + 1) * self.flows, 0);
            self.senders.resize((nth + 1) * self.flows, CLOSED);
        }
        match side {
            Side::Receiver => self.received[place] = flow.received(Side::Receiver),
            Side::Sender if !is_open => self.senders[place] = CLOSED,
            Side::Sender => {
                // Of a bulk flow that is zero, wherever the other end is; those of other flows are one process.
                let lag = flow.workload.lag(now, flow.received(Side::Receiver));
                self.senders[place] = Noted::of(flow, lag);
            }
        }
    }

    /// Adds sample `nth`, which is at `time`, to `series`.
    pub fn write<T>(&self, (time, nth): (Time, usize), interval: Span, flows: &mut [Flow<T>], series: &mut FlowSeries) {
        let places = nth * self.flows..(nth + 1) * self.flows;
        let all = self.senders[places.clone()].iter().zip(&self.received[places]);
        for (index, (flow, (sender, &received))) in flows.iter_mut().zip(all).enumerate() {
            if !sender.is_open {
                continue;
            }
            let since = std::mem::replace(&mut flow.received_at_sample[Side::Receiver as usize], received);
            series.push(sender.row((time, index), received - since, interval));
        }
    }
}
