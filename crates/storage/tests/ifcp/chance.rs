//! Two and three gateways under faults that chance picks: a frame comes once, whole and in order, or not at all.

use super::net::{data, els_answer, login, name, settings, Net, Random, S};
use bytes::Bytes;
use std::collections::BTreeMap;
use storage::fc::fabric::PortKey;
use wire::fc::els::{self, Command, Logout, Request};
use wire::fc::{routing, FcId, Frame, FrameType};
use wire::ifcp::AddressMode;

/// Hosts at sites, and what they sent and got.
struct Hosts {
    net: Net,
    hosts: Vec<(usize, u64, FcId)>,
    next: u64,
    /// Last number that came, by sender and receiver.
    last: BTreeMap<(u64, u64), u64>,
    came: u64,
}

/// The content of a frame of a number.
fn content(number: u64, from: u64, to: u64) -> Vec<u8> {
    let mut random = Random(number);
    let length = random.below(2000);
    let mut bytes = [number, from, to].map(u64::to_be_bytes).concat();
    bytes.extend((0..length).map(|_| random.next() as u8));
    bytes
}

impl Hosts {
    fn new(mode: AddressMode, sites: usize, seed: u64) -> Hosts {
        let mut net = Net::new(vec![settings(mode); sites]);
        net.random = Random(seed);
        let places: Vec<(usize, u64)> =
            (0..sites).flat_map(|site| (0..2).map(move |n| (site, (2 * site + n + 1) as u64))).collect();
        let hosts: Vec<_> = places.into_iter().map(|(site, host)| (site, host, net.attach(site, host))).collect();
        net.join(&hosts);
        Hosts { net, hosts, next: 0, last: BTreeMap::new(), came: 0 }
    }

    /// Two hosts of different sites, and the address of the second at the first's, if it is presented.
    fn pick(&mut self) -> ((usize, u64, FcId), u64, Option<FcId>) {
        let from = self.hosts[self.net.random.below(self.hosts.len())];
        let others: Vec<_> = self.hosts.iter().filter(|host| host.0 != from.0).copied().collect();
        let to = others[self.net.random.below(others.len())].1;
        (from, to, self.id_of(from.0, to))
    }

    fn id_of(&self, site: usize, host: u64) -> Option<FcId> {
        let mut entries = self.net.sites[site].fabric.entries();
        entries.find(|(_, entry)| entry.port == name(host)).map(|(id, _)| id)
    }

    fn log_in(&mut self) {
        let (from, _, Some(id)) = self.pick() else { return };
        let plogi = Request::Login(login(Command::PLOGI, from.1)).to_bytes();
        self.net.send(from.0, PortKey(from.1 as u32), from.2, id, plogi);
    }

    fn log_out(&mut self) {
        let (from, _, Some(id)) = self.pick() else { return };
        let logout = Request::Logout(Logout { id: from.2, port: name(from.1) });
        self.net.send(from.0, PortKey(from.1 as u32), from.2, id, logout.to_bytes());
    }

    /// Stops the TCP connections of a site, or lets them go on.
    fn stick(&mut self) {
        let site = self.net.random.below(self.net.sites.len());
        self.net.sites[site].stuck = !self.net.sites[site].stuck;
    }

    fn send(&mut self) {
        let (from, to, Some(id)) = self.pick() else { return };
        self.next += 1;
        let payload = content(self.next, from.1, to);
        self.net.send_frame(from.0, PortKey(from.1 as u32), data(from.2, id, self.next as u16, 0, &payload));
    }

    /// Lets the hosts look at what they got: logins are accepted, data is compared with what was sent.
    fn serve(&mut self) {
        for site in 0..self.net.sites.len() {
            for (port, frame) in std::mem::take(&mut self.net.sites[site].got) {
                let host = u64::from(port.0);
                let own = self.hosts.iter().find(|other| other.1 == host).expect("a host").2;
                assert_eq!(frame.header.d_id, own);
                if frame.header.kind == FrameType::FCP {
                    self.check(site, host, &frame);
                } else if frame.header.r_ctl == routing::ELS_REQUEST {
                    self.accept(site, port, &frame);
                }
            }
        }
    }

    fn accept(&mut self, site: usize, port: PortKey, frame: &Frame) {
        let payload = match frame.payload.to_bytes()[0] {
            code if code == Command::PLOGI.0 => els::accept_login(&login(Command::PLOGI, u64::from(port.0))).to_vec(),
            _ => els::accept().to_vec(),
        };
        self.net.send_frame(site, port, els_answer(frame, Bytes::from(payload)));
    }

    fn check(&mut self, site: usize, to: u64, frame: &Frame) {
        let payload = frame.payload.to_bytes();
        let word = |at: usize| u64::from_be_bytes(payload[at..at + 8].try_into().unwrap());
        let (number, from) = (word(0), word(8));
        assert_eq!(word(16), to, "a frame came to another port");
        assert_eq!(payload, content(number, from, to), "a frame was changed");
        if let Some(id) = self.id_of(site, from) {
            assert_eq!(frame.header.s_id, id, "a frame has another port's address");
        }
        let last = self.last.insert((from, to), number).unwrap_or(0);
        assert!(number > last, "{number} came after {last}, from {from} to {to}");
        self.came += 1;
    }

    fn settle(&mut self) {
        for _ in 0..20 {
            self.net.run();
            self.serve();
        }
    }

    /// Logs every pair in, and sends each 10 frames, which all come.
    fn all_is_well(&mut self) {
        for from in self.hosts.clone() {
            for to in self.hosts.clone().into_iter().filter(|to| to.0 != from.0) {
                let id = self.id_of(from.0, to.1).expect("a port of a peer that is up");
                let plogi = Request::Login(login(Command::PLOGI, from.1)).to_bytes();
                self.net.send(from.0, PortKey(from.1 as u32), from.2, id, plogi);
                self.settle();
                let before = self.came;
                for _ in 0..10 {
                    self.next += 1;
                    let payload = content(self.next, from.1, to.1);
                    let frame = data(from.2, id, self.next as u16, 0, &payload);
                    self.net.send_frame(from.0, PortKey(from.1 as u32), frame);
                }
                self.settle();
                assert_eq!(self.came, before + 10);
            }
        }
    }

    /// Leaves all hosts: no session is left, and no more deadlines than those of peers.
    fn leave(&mut self) {
        for (site, host, _) in self.hosts.clone() {
            self.net.detach(site, host);
        }
        self.net.run();
        self.net.wait(30 * S);
        for site in &self.net.sites {
            assert_eq!(site.gateway.sessions().count(), 0);
            assert!(site.gateway.connections() <= 4 * 2 * self.net.sites.len());
        }
    }
}

fn faults(mode: AddressMode, sites: usize, seed: u64) -> u64 {
    let mut hosts = Hosts::new(mode, sites, seed);
    for _ in 0..2000 {
        match hosts.net.random.below(44) {
            0..4 => hosts.log_in(),
            4..18 => hosts.send(),
            18..36 => {
                for _ in 0..hosts.net.random.below(8) {
                    hosts.net.carry(usize::MAX);
                }
                hosts.serve();
            }
            36 => hosts.net.cut(),
            37 => {
                let (a, b) = (hosts.net.random.below(sites), hosts.net.random.below(sites));
                hosts.net.down.insert((a, b));
            }
            38 => hosts.net.down.clear(),
            39 => hosts.log_out(),
            40..43 => hosts.stick(),
            _ => {
                let ns = hosts.net.random.next() % (3 * S);
                hosts.net.wait(ns);
                hosts.serve();
            }
        }
    }
    let under_faults = hosts.came;
    hosts.net.down.clear();
    hosts.net.sites.iter_mut().for_each(|site| site.stuck = false);
    hosts.settle();
    hosts.net.wait(30 * S);
    hosts.settle();
    hosts.all_is_well();
    hosts.leave();
    under_faults
}

#[test]
fn two_gateways_under_faults() {
    let came: u64 = (0..20).map(|seed| faults(AddressMode::Translation, 2, seed)).sum();
    assert!(came > 1000, "{came} frames came: too few to tell anything");
}

#[test]
fn three_gateways_under_faults() {
    let came: u64 = (100..120).map(|seed| faults(AddressMode::Translation, 3, seed)).sum();
    assert!(came > 1000, "{came} frames came: too few to tell anything");
}

#[test]
fn three_transparent_gateways_under_faults() {
    let came: u64 = (200..220).map(|seed| faults(AddressMode::Transparent, 3, seed)).sum();
    assert!(came > 1000, "{came} frames came: too few to tell anything");
}
