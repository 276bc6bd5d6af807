//! The transport under a flow: the two ends of a connection, and the way of their segments across the network.

use crate::capture::Capture;
use crate::error::RunError;
use crate::packet::Packet;
use crate::sender_command::Preparation;
use crate::series::SenderSample;
use crate::workload::SendingEnd;
use spec::FlowSpec;
use tcp::{CwndReduction, Stats, Train};
use units::Time;

/// An end of a connection, without I/O: segments and time go in by `handle_*`, segments and deadlines come out by
/// `poll_*`. A new transport is one more type that has this; packets pass without a dynamic call.
pub trait Transport: SendingEnd {
    /// The unit that the two ends send each other.
    type Segment: Copy + Default;
    /// Keeps segments while their packets cross the network.
    type Pool: SegmentPool<Segment = Self::Segment>;

    /// Begins to connect.
    fn connect(&mut self, now: Time);
    /// Ends the connection at once.
    fn abort(&mut self, now: Time);
    /// `segment` has come.
    fn handle_segment(&mut self, now: Time, segment: &Self::Segment);
    /// Segments of `packets` come in a row, those of the common case; returns how many were taken. `send` gets the
    /// first packet of what is to be sent on the route that starts at `hop`, with its time and the number of packets.
    /// Stops before `until` and before [`Transport::poll_timeout`]. It may take none at any time.
    #[inline]
    fn handle_run(
        &mut self,
        _pool: &mut Self::Pool,
        _packets: &[(u64, Packet)],
        _until: Time,
        _hop: u32,
        _send: impl FnMut(Time, Packet, u32),
    ) -> usize {
        0
    }
    /// The time `now` of [`Transport::poll_timeout`] has come, and behind it each further one before `until`. `send`
    /// gets the first packet of what is to be sent by this end, `source`, on the route that starts at `hop`, with its
    /// time and the number of packets. Returns the time of the last one and their number. None, and nothing is done:
    /// they come one by one.
    #[inline]
    fn handle_timer_run(
        &mut self,
        _pool: &mut Self::Pool,
        _now: Time,
        _until: Time,
        (_hop, _source): (u32, u32),
        _send: impl FnMut(Time, Packet, u32),
    ) -> Option<(Time, u64)> {
        None
    }
    /// The time of [`Transport::poll_timeout`] has come, or an earlier one.
    fn handle_timeout(&mut self, now: Time);
    /// Puts the first segment to be sent into `segment`; [`SegmentPool::pack`] packs those that follow, too.
    fn poll_train(&mut self, now: Time, segment: &mut Self::Segment) -> Train;
    /// Begins to fetch the memory beside itself that the next segment needs.
    #[inline]
    fn prefetch(&self) {}
    /// Parts of itself that a run of packets needs, at the sender and at the receiver: places and lengths, bytes.
    const PARTS_OF_RUNS: [&'static [(usize, usize)]; 2] = [&[(0, 512)]; 2];
    /// Returns true if [`Transport::poll_train`] would find nothing and change nothing. May be false at any time.
    fn is_idle(&self) -> bool;
    /// Returns the latest time for a call of [`Transport::handle_timeout`].
    fn poll_timeout(&self) -> Time;
    /// Payload that came in order, bytes.
    fn bytes_received(&self) -> u64;
    /// The application has read `bytes` of it: they fill the receive window no more. A transport that reads at once
    /// does nothing.
    fn read(&mut self, _now: Time, _bytes: u64) {}
    /// Bytes written that were never sent.
    fn bytes_unsent(&self) -> u64;
    /// Returns true if there ever was a connection.
    fn was_established(&self) -> bool;
    /// Returns true if the connection is over or was given up.
    fn is_closed(&self) -> bool;

    /// Returns this end's counters.
    fn stats(&self) -> &Stats;
    /// Returns the sending side's values for the series.
    fn sample(&self) -> SenderSample;
    /// Prepares for a move that comes; returns the window that it gave up. None: it does nothing about moves.
    fn prepare(&mut self, _now: Time, _preparation: &Preparation) -> Option<CwndReduction> {
        None
    }
    /// The sender takes back the window that it gave up.
    fn restore(&mut self, _now: Time) {}
    /// Notes `count` segments from `segment` on in a capture of connection `flow`. A transport whose headers no format
    /// knows has none.
    fn capture(_to: &mut Capture, _now: Time, _flow: usize, _from_sender: bool, _segment: &Self::Segment, _count: u32) {
    }
}

/// Segments in flight: a packet is a token of 16 bytes, and its segment waits here.
pub trait SegmentPool {
    /// The segment that is kept.
    type Segment;

    /// A pool for packets of sources `0..sources`.
    fn new(sources: usize) -> Self;
    /// `source` sends over IPv6. A pool whose segments say so themselves does nothing.
    fn use_ipv6(&mut self, _source: u32) {}
    /// Packs `segment` of `source` and those that follow it, `count` in all, on the route that starts at `hop`; returns
    /// the packet of the first. Those of the others follow it ([`sim::Train`]).
    fn pack(&mut self, segment: &Self::Segment, hop: u32, source: u32, count: u32) -> Packet;
    /// Unpacks `packet` into `segment` and forgets the stored header.
    fn unpack(&mut self, packet: Packet, segment: &mut Self::Segment);
    /// Begins to fetch what is stored of `source`, or, with `next`, what that leads to.
    #[inline]
    fn prefetch(&self, _source: u32, _next: bool) {}
    /// The same for what `source` sends next.
    #[inline]
    fn prefetch_room(&self, _source: u32, _next: bool) {}
    /// Returns true if `packet`, which was unpacked last, is of the present connection of its source.
    fn is_current(&mut self, packet: Packet) -> bool;
    /// Forgets the stored header of a lost packet.
    fn discard(&mut self, packet: Packet);
    /// `source` sends from here on for another connection.
    fn begin_connection(&mut self, source: u32);
}

/// Makes the two ends of connections.
pub trait TransportMaker {
    /// The transport that it makes.
    type Transport: Transport;

    /// The sending and the receiving end of `flow`.
    ///
    /// # Errors
    /// [`RunError`]: a file that the flow names cannot be used.
    fn make(&mut self, flow: &FlowSpec, now: Time) -> Result<[Self::Transport; 2], RunError>;
}
