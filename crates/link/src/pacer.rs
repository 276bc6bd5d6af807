//! Pacers: each spaces the departures of several hold buffers at the rate of the link behind them.
//!
//! A hold buffer asks for one grant at a time, when its oldest packet may leave. So buffers with a backlog alternate
//! packet by packet, and a pacer with a backlogged buffer is never idle.

use crate::config::MAX_RATE;
use crate::framing::Framing;
use crate::serializer::Serializer;
use units::Rate;

/// The number of a pacer among [`Pacers`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PacerId(u32);

/// The pacers of a network. The network owns them and hands them to its links.
#[derive(Default)]
pub struct Pacers(Vec<Pacer>);

struct Pacer {
    transmitter: Serializer,
    /// Hold buffers that hold packets.
    backlogged: u64,
}

impl Pacers {
    /// Adds a pacer of `rate`.
    ///
    /// # Panics
    /// When `rate` is zero or above [`crate::MAX_RATE`]; beyond 2^32 pacers.
    pub fn add(&mut self, rate: Rate) -> PacerId {
        check(rate);
        let id = PacerId(u32::try_from(self.0.len()).expect("fewer than 2^32 pacers"));
        self.0.push(Pacer { transmitter: Serializer::new(rate, Framing::default()), backlogged: 0 });
        id
    }

    /// Grants from now on are spaced at `rate`.
    pub(crate) fn set_rate(&mut self, id: PacerId, rate: Rate) {
        check(rate);
        self.get(id).transmitter.set_rate(rate);
    }

    /// Grants the next departure from `now` on to a packet of `bytes`; returns its time.
    pub(crate) fn grant(&mut self, id: PacerId, now: u64, bytes: u32) -> u64 {
        let transmitter = &mut self.get(id).transmitter;
        let departure = now.max(transmitter.free_at());
        transmitter.send(departure, bytes);
        departure
    }

    /// Returns whether a hold buffer of this pacer holds packets.
    pub(crate) fn is_backlogged(&self, id: PacerId) -> bool {
        self.0[id.0 as usize].backlogged > 0
    }

    /// A hold buffer begins to hold packets.
    pub(crate) fn add_backlogged(&mut self, id: PacerId) {
        self.get(id).backlogged += 1;
    }

    /// The last held packet of a hold buffer has left.
    pub(crate) fn remove_backlogged(&mut self, id: PacerId) {
        self.get(id).backlogged -= 1;
    }

    fn get(&mut self, id: PacerId) -> &mut Pacer {
        &mut self.0[id.0 as usize]
    }
}

fn check(rate: Rate) {
    assert!((1..=MAX_RATE.0).contains(&rate.0), "rate = {rate}: must be from 1 bit/s to 2^62 bit/s");
}
