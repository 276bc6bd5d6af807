//! Two N_Ports behind two gateways, as the gateways see them.

use super::carried::Carried;
use crate::fc_counters::FcCounters;
use crate::fcp_counters::FcpCounters;
use crate::node::NodeCounters;
use crate::side::Side;
use units::Time;
use wire::fc::Frame;

/// Two N_Ports that send each other frames, one behind each gateway, with their links.
pub trait Ports {
    /// Returns the connection that carries its frames.
    fn connection(&self) -> usize;
    /// The run begins for its gateways; the connection is not open yet.
    fn begin(&mut self, _now: Time) {}
    /// The connection is open: frames can cross.
    fn open(&mut self, now: Time);
    /// The ports begin nothing new.
    fn stop(&mut self);
    /// Returns the time of the next call of [`Ports::work`].
    fn poll_timeout(&self) -> Time;
    /// Does what is due by `now` at ports and links, and counts the frames that ports send and receive. `arrived` gets
    /// the frames that come to either end of the port's link at a side; `at_gateway` takes those that come to the
    /// gateway at a side for the other port, which stay in their port's buffers there until [`Ports::release`].
    fn work(
        &mut self,
        now: Time,
        counters: &mut FcCounters,
        arrived: impl FnMut(Side, &Frame),
        at_gateway: impl FnMut(Side, Carried),
    );
    /// The buffer of a frame at the gateway at `side` is free: the port has a credit more.
    fn release(&mut self, now: Time, side: Side);
    /// Returns true if the gateway at `side` has room for a frame that came over the connection.
    fn has_room(&self, side: Side, frame: &Frame) -> bool;
    /// The gateway at `side` sends its port a frame, for which there is room.
    fn send(&mut self, now: Time, side: Side, carried: Carried);
    /// Returns true if all that was begun has ended, and nothing more comes.
    fn is_done(&self) -> bool;
    /// The measured interval begins.
    fn begin_measuring(&mut self) {}
    /// The run proper is over: adds its counters to those of its connection.
    fn finish(&mut self, counters: &mut FcpCounters);
    /// Returns the counters of a connection that carries ports of this kind.
    fn counters(of: FcpCounters) -> NodeCounters;
}
