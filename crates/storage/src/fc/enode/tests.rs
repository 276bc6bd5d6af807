//! A node with its port, before forwarders with their fabrics: Ethernet frames between them take no time.

use super::{ENode, Event, Settings};
use crate::fc::fabric::{self, Assignments, Fabric};
use crate::fc::forwarder::{self, Forwarder};
use crate::fc::nport::{self, NPort, Role};
use bytes::Bytes;
use proptest::prelude::*;
use wire::ethernet::ETHERTYPE_FIP;
use wire::fc::Wwn;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const HOST: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const TAG: u16 = 3 << 13 | 100;

fn forwarder(number: u8, priority: u8, now_ns: u64) -> Forwarder {
    let fabric = Wwn(0x1000_0000_0000_0000 | u64::from(number));
    let settings = forwarder::Settings {
        vlan: Some(TAG),
        priority,
        ..forwarder::Settings::new([0x52, 0x54, 0, 0, 0xfc, number], fabric)
    };
    let fabric = Fabric::new(fabric::Settings::new(fabric, number).unwrap(), Assignments::default());
    Forwarder::new(settings, fabric, now_ns).unwrap()
}

/// One Ethernet with a node, its port, and forwarders.
struct Net {
    node: ENode,
    port: NPort,
    forwarders: Vec<Forwarder>,
    events: Vec<Event>,
    now_ns: u64,
}

impl Net {
    fn new(forwarders: Vec<Forwarder>) -> Net {
        let names = (Wwn(0x2000_0000_0000_0001), Wwn(0x1000_0000_0000_0001));
        let settings = Settings { mac: HOST, node: names.1, port: names.0, vlan: Some(TAG), fcoe_bytes_max: 2158 };
        let port = NPort::new(nport::Settings::new(names.0, names.1, Role::default()));
        Net { node: ENode::new(settings, 0), port, forwarders, events: Vec::new(), now_ns: 0 }
    }

    fn settle(&mut self) {
        loop {
            let mut moved = false;
            while let Some(frame) = self.port.poll_frame() {
                self.node.handle_frame(&frame);
            }
            while let Some(frame) = self.node.poll_transmit() {
                moved = true;
                self.forwarders.iter_mut().for_each(|one| one.handle_ethernet(&frame, self.now_ns));
            }
            for one in &mut self.forwarders {
                while let Some(frame) = one.poll_transmit() {
                    moved = true;
                    self.node.handle_ethernet(&frame, self.now_ns);
                }
            }
            while let Some(event) = self.node.poll_event() {
                moved = true;
                self.events.push(event);
                match event {
                    Event::Up { .. } => self.port.log_in(self.now_ns),
                    Event::Down { reason } => self.port.handle_link_down(reason),
                    Event::Granted(_) | Event::LoggedOut => {}
                }
            }
            while let Some(frame) = self.node.poll_frame() {
                moved = true;
                self.port.handle_frame(frame, self.now_ns);
            }
            if !moved && self.port.poll_timeout().is_none_or(|at_ns| at_ns > self.now_ns) {
                return;
            }
            self.port.handle_timeout(self.now_ns);
        }
    }

    fn run_for(&mut self, span_ns: u64) {
        let end_ns = self.now_ns + span_ns;
        loop {
            self.settle();
            let next = self.forwarders.iter().map(Forwarder::poll_timeout).min().unwrap_or(u64::MAX);
            let next = next.min(self.node.poll_timeout()).min(self.port.poll_timeout().unwrap_or(u64::MAX));
            if next > end_ns {
                break;
            }
            self.now_ns = self.now_ns.max(next);
            self.node.handle_timeout(self.now_ns);
            self.port.handle_timeout(self.now_ns);
            self.forwarders.iter_mut().for_each(|one| one.handle_timeout(self.now_ns));
        }
        self.now_ns = end_ns;
    }
}

#[test]
fn a_port_logs_in_by_way_of_its_node_and_keep_alives_hold_the_link() {
    let mut net = Net::new(vec![forwarder(1, 128, 0)]);
    net.run_for(S);
    assert!(net.port.is_online());
    // Longer than the patience with a node and with a port.
    net.run_for(600 * S);
    assert_eq!(net.forwarders[0].counters(), forwarder::Counters::default());
    assert_eq!(net.forwarders[0].fabric().logins(), 1);
    assert!(net.port.is_online() && net.events.len() == 2, "{:?}", net.events);
}

#[test]
fn the_forwarder_of_the_best_rank_is_chosen_and_another_when_it_is_silent() {
    let mut net = Net::new(vec![forwarder(1, 128, 0), forwarder(2, 7, 0), forwarder(3, 200, 0)]);
    net.run_for(S);
    assert_eq!(net.port.id().domain(), 2);
    net.forwarders.remove(1);
    net.run_for(60 * S);
    assert_eq!((net.port.is_online(), net.port.id().domain()), (true, 1));
    assert!(net.events.contains(&Event::Down { reason: "the forwarder is silent" }));
}

#[test]
fn a_cleared_link_is_made_again_and_a_restart_is_noticed_at_the_next_keep_alive() {
    let mut net = Net::new(vec![forwarder(1, 128, 0)]);
    net.run_for(S);
    net.forwarders[0].clear_all(net.now_ns);
    net.run_for(S);
    assert!(net.port.is_online() && net.events.len() == 5, "{:?}", net.events);
    net.forwarders[0] = forwarder(1, 128, net.now_ns);
    net.run_for(10 * S);
    assert!(net.port.is_online() && net.events.len() == 8, "{:?}", net.events);
    assert_eq!(net.forwarders[0].fabric().logins(), 1);
}

#[test]
fn a_logout_leaves_no_login() {
    let mut net = Net::new(vec![forwarder(1, 128, 0)]);
    net.run_for(S);
    net.port.log_out(net.now_ns);
    net.run_for(S);
    assert_eq!(net.events.last(), Some(&Event::LoggedOut));
    assert_eq!((net.forwarders[0].fabric().logins(), net.node.counters().no_link), (0, 0));
}

proptest! {
    /// FIP of anybody: no panic, and no frame for the port but of the own forwarder.
    #[test]
    fn hostile_frames_do_not_panic(
        messages in proptest::collection::vec(
            (any::<u16>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..80), any::<bool>()), 1..40)
    ) {
        let mut net = Net::new(vec![forwarder(1, 128, 0)]);
        net.run_for(S);
        for (code, subcode, content, is_own) in messages {
            let mut frame = HOST.to_vec();
            frame.extend(if is_own { [0x52, 0x54, 0, 0, 0xfc, 1] } else { [2; 6] });
            frame.extend([0x81, 0, 0, 100]);
            frame.extend(ETHERTYPE_FIP.to_be_bytes());
            let words = (content.len() / 4) as u16;
            frame.extend([0x10, 0, 0, (code % 5) as u8, 0, subcode % 3]);
            frame.extend(words.to_be_bytes());
            frame.extend([0x80, 7]);
            frame.extend(content);
            net.node.handle_ethernet(&Bytes::from(frame), net.now_ns);
            while net.node.poll_transmit().is_some() {}
        }
        net.run_for(60 * S);
        prop_assert!(net.port.is_online());
    }
}
