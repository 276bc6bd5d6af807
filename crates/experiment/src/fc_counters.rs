//! Counters of the Fibre Channel frames over a connection between gateways.

use crate::message_times::MessageTimes;
use storage::fc::link::{End, Link};
use units::Time;
use wire::fc::Frame;

/// Waits of transmitters with a frame, a free line and no buffer-to-buffer credit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditStalls {
    /// Waits.
    pub count: u64,
    /// Time of them, ns. Range: a year of 500 ports.
    pub ns: u64,
}

impl CreditStalls {
    /// Adds those of another transmitter.
    pub fn add(&mut self, other: CreditStalls) {
        self.count += other.count;
        self.ns += other.ns;
    }
}

/// The frames of the pairs of N_Ports that a connection carries.
pub struct FcCounters {
    /// Frames that the generators had.
    pub generated: u64,
    /// Their payload, bytes.
    pub generated_bytes: u64,
    /// Frames that reached their N_Port.
    pub delivered: u64,
    /// Their payload, bytes.
    pub delivered_bytes: u64,
    /// Payload that had arrived when the measured interval began, bytes.
    pub delivered_bytes_at_warmup: u64,
    /// Frames that a gateway discarded, since they were under way for too long.
    pub stale: u64,
    /// Times from generation to the last bit at the receiving N_Port.
    pub times: MessageTimes,
    /// Waits of N_Ports for credits of their gateway.
    pub port_stalls: CreditStalls,
    /// Waits of gateways for credits of their N_Ports.
    pub gateway_stalls: CreditStalls,
}

impl FcCounters {
    /// None yet; the measured interval begins at `from`.
    pub fn new(from: Time) -> FcCounters {
        FcCounters {
            generated: 0,
            generated_bytes: 0,
            delivered: 0,
            delivered_bytes: 0,
            delivered_bytes_at_warmup: 0,
            stale: 0,
            times: MessageTimes::new(from),
            port_stalls: CreditStalls::default(),
            gateway_stalls: CreditStalls::default(),
        }
    }

    /// A frame that was sent at `issued` has come to its N_Port.
    pub(crate) fn deliver(&mut self, now: Time, frame: &Frame, issued: Time) {
        self.delivered += 1;
        self.delivered_bytes += frame.payload.len() as u64;
        self.times.record(issued, now);
    }

    /// Adds the waits for credits of links whose ends A are N_Ports.
    pub(crate) fn add_stalls<F>(&mut self, links: &[Link<F>]) {
        for link in links {
            for (end, stalls) in [(End::A, &mut self.port_stalls), (End::B, &mut self.gateway_stalls)] {
                let counters = link.counters(end);
                stalls.add(CreditStalls { count: counters.credit_stalls, ns: counters.stalled_ns });
            }
        }
    }

    /// Payload that arrived within the measured interval, bytes.
    pub fn measured_bytes(&self) -> u64 {
        self.delivered_bytes - self.delivered_bytes_at_warmup
    }
}
