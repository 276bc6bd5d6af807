//! Rate control: the time between two packets and the most of them in flight, by version.

use crate::config::{Config, Version};
use crate::period::Feedback;
use crate::udt2003::Udt2003;
use crate::udt4::Udt4;
use units::Time;

/// Rate control of one of the versions.
#[derive(Clone, Debug)]
pub(crate) enum RateControl {
    Udt2003(Udt2003),
    Udt4(Udt4),
}

impl RateControl {
    pub(crate) fn new(config: &Config, now: Time) -> RateControl {
        match config.version {
            Version::Udt2003 => RateControl::Udt2003(Udt2003::new(config)),
            Version::Udt4 => RateControl::Udt4(Udt4::new(config, now)),
        }
    }

    /// Time between two packets, ps; above zero.
    #[inline]
    pub(crate) fn period_ps(&self) -> u64 {
        match self {
            RateControl::Udt2003(control) => control.period_ps(),
            RateControl::Udt4(control) => control.period_ps(),
        }
    }

    /// Packets in flight at most.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        match self {
            RateControl::Udt2003(control) => control.window(),
            RateControl::Udt4(control) => control.window(),
        }
    }

    /// Returns true if the rate has not been set yet.
    pub(crate) fn is_in_slow_start(&self) -> bool {
        match self {
            RateControl::Udt2003(control) => control.is_in_slow_start(),
            RateControl::Udt4(control) => control.is_in_slow_start(),
        }
    }

    /// An acknowledgment with news has come.
    pub(crate) fn handle_ack(&mut self, now: Time, feedback: &Feedback) {
        match self {
            RateControl::Udt2003(control) => control.handle_ack(feedback),
            RateControl::Udt4(control) => control.handle_ack(now, feedback),
        }
    }

    /// A loss report has come; `first` is the least number in it, `current` the largest that was sent. Returns true if
    /// the loss begins a new episode.
    pub(crate) fn handle_loss(&mut self, first: u64, current: u64) -> bool {
        match self {
            RateControl::Udt2003(control) => control.handle_loss(first, current),
            RateControl::Udt4(control) => control.handle_loss(first, current),
        }
    }

    /// Nothing was heard of the receiver for long.
    pub(crate) fn handle_timeout(&mut self) {
        if let RateControl::Udt4(control) = self {
            control.handle_timeout();
        }
    }

    /// Returns true if sending has to pause for a SYN after the next packet; the next call returns false.
    pub(crate) fn take_pause(&mut self) -> bool {
        match self {
            RateControl::Udt2003(control) => control.take_pause(),
            RateControl::Udt4(_) => false,
        }
    }
}
