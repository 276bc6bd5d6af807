//! Counters of the Fibre Channel frames over a connection between gateways.

use crate::message_times::MessageTimes;
use units::Time;

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
            times: MessageTimes::new(from),
            port_stalls: CreditStalls::default(),
            gateway_stalls: CreditStalls::default(),
        }
    }
    /// Payload that arrived within the measured interval, bytes.
    pub fn measured_bytes(&self) -> u64 {
        self.delivered_bytes - self.delivered_bytes_at_warmup
    }
}
