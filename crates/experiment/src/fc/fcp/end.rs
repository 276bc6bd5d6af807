//! An N_Port with SCSI, its link, and the fabric that its gateway is to it.

use super::acceleration::Acceleration;
use crate::fc::carried::{Carried, GATEWAY, PORT};
use crate::fc::names::{self, Names};
use crate::fc_counters::FcCounters;
use std::collections::VecDeque;
use storage::fc::fabric::{Assignments, Entry, Fabric, Location, Output, PortKey, Settings as FabricSettings};
use storage::fc::fcp::Port;
use storage::fc::link::{End as LinkEnd, Link};
use units::Time;
use wire::fc::name_server::TypeMap;
use wire::fc::{Frame, FrameType};

/// The port's link to its fabric, which has one.
const KEY: PortKey = PortKey(0);

/// An N_Port and its side of a gateway.
pub struct End {
    /// The port.
    pub port: Port,
    /// Its link.
    pub link: Link<Carried>,
    fabric: Fabric,
    acceleration: Acceleration,
    /// Frames for the port that wait for the link.
    inbound: VecDeque<Carried>,
    /// Frames for the port from which on the gateway takes no more.
    buffer_frames: usize,
    /// Frames for the other port, in this one's buffers at the gateway.
    pub outbound: VecDeque<Carried>,
}

impl End {
    /// `port` before its login, which gives it the address of `own`; the gateway has room for `buffer_frames` frames
    /// for it, one at least.
    pub fn new(port: Port, link: Link<Carried>, own: Names, buffer_frames: usize, acceleration: Acceleration) -> End {
        let domain = own.id.domain();
        let settings = FabricSettings::new(names::of_gateway(domain), domain);
        let settings = settings.expect("domains of gateways are those of switches");
        let fabric = Fabric::new(settings, Assignments::from_list([(own.port, own.id)]));
        let (inbound, outbound) = Default::default();
        End { port, link, fabric, acceleration, inbound, buffer_frames: buffer_frames.max(1), outbound }
    }

    /// The port behind the other gateway is there from now on.
    pub fn present(&mut self, other: Names) {
        let types = TypeMap::of(FrameType::FCP.0);
        self.fabric.present_at(other.id, Entry { types, ..Entry::new(Location::Remote, other.port, other.node) });
    }

    /// Does what is due by `now` on the link and in the port. Frames that leave the port are shown to `leaving`, those
    /// that come to either end of its link to `arrived`. Returns true if anything moved.
    pub fn carry(
        &mut self,
        now: Time,
        counters: &mut FcCounters,
        mut leaving: impl FnMut(&Port, &Frame),
        mut arrived: impl FnMut(&Frame),
    ) -> bool {
        let mut moved = false;
        self.link.handle_timeout(now.0);
        if self.port.poll_timeout().is_some_and(|due| due <= now.0) {
            self.port.handle_timeout(now.0);
            moved = true;
        }
        while let Some(carried) = self.link.poll_frame(PORT) {
            self.link.handle_release(PORT, now.0);
            arrived(&carried.frame);
            if !carried.frame.header.s_id.is_well_known() {
                counters.deliver(now, &carried.frame, carried.issued);
            }
            self.port.handle_frame(carried.frame, now.0);
            moved = true;
        }
        while self.link.has_room(PORT) {
            let Some(frame) = self.port.poll_frame(now.0) else { break };
            if !frame.header.d_id.is_well_known() {
                counters.generated += 1;
                counters.generated_bytes += frame.payload.len() as u64;
            }
            leaving(&self.port, &frame);
            push(&mut self.link, PORT, now, Carried { issued: now, entered: now, frame });
            moved = true;
        }
        while let Some(carried) = self.link.poll_frame(GATEWAY) {
            moved = true;
            arrived(&carried.frame);
            if carried.frame.header.d_id.is_well_known() {
                self.link.handle_release(GATEWAY, now.0);
                self.fabric.handle_frame(KEY, carried.frame);
            } else if self.acceleration.handle_outbound(&carried.frame, &mut self.inbound) {
                self.link.handle_release(GATEWAY, now.0);
                // It was no frame from one port to the other.
                counters.generated -= 1;
                counters.generated_bytes -= carried.frame.payload.len() as u64;
            } else {
                self.outbound.push_back(carried);
            }
        }
        while let Some(frame) = self.acceleration.poll_ready() {
            counters.generated += 1;
            counters.generated_bytes += frame.payload.len() as u64;
            self.inbound.push_back(Carried { issued: now, entered: now, frame });
        }
        counters.stale += self.acceleration.take_discarded();
        while let Some(output) = self.fabric.poll_output() {
            if let Output::Attached(_, frame) = output {
                self.inbound.push_back(Carried { issued: now, entered: now, frame });
            }
        }
        self.fill(now);
        moved
    }

    /// Puts frames for the port on the link.
    fn fill(&mut self, now: Time) {
        while self.link.has_room(GATEWAY) {
            let Some(carried) = self.inbound.pop_front() else { break };
            push(&mut self.link, GATEWAY, now, carried);
        }
    }

    /// Returns true if the gateway has room for a further frame for the port.
    pub fn has_room(&self, frame: &Frame) -> bool {
        self.inbound.len() < self.buffer_frames && self.acceleration.has_room(frame)
    }

    /// The buffer of a frame of the port at the gateway is free.
    pub fn release(&mut self, now: Time) {
        self.link.handle_release(GATEWAY, now.0);
    }

    /// Sends the port a frame of the other one, for which there is room.
    pub fn send(&mut self, now: Time, carried: Carried) {
        self.inbound.extend(self.acceleration.handle_inbound(carried));
        self.fill(now);
    }

    /// Returns true if its gateway accelerates writes.
    pub fn is_accelerated(&self) -> bool {
        !matches!(self.acceleration, Acceleration::Off)
    }

    /// Returns the time of the next call of [`End::carry`], as far as it is known.
    pub fn poll_timeout(&self) -> Time {
        let times = [self.link.poll_timeout(), self.port.poll_timeout()];
        times.into_iter().flatten().min().map_or(Time::NEVER, Time)
    }
}

fn push(link: &mut Link<Carried>, from: LinkEnd, now: Time, carried: Carried) {
    let content = carried.frame.content_bytes();
    if link.handle_frame(from, carried, content, now.0).is_err() {
        unreachable!("there was room");
    }
}
