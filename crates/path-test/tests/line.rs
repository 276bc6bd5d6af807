//! A path of links and routers, played to an estimator without queues but those that a test asks for.

use path_test::estimate::{Estimator, Next, Outcome};
use path_test::train::{RouterReply, Train, TrainPacket, TrainReport};
use std::net::{IpAddr, Ipv4Addr};

/// A link and the router or far end behind it.
#[derive(Clone)]
pub struct Link {
    pub rate_bps: u64,
    pub delay_ns: u64,
    pub mtu_bytes: u32,
    /// The router behind it answers by ICMP.
    pub answers: bool,
    /// Of how many of its messages one comes; 1: all.
    pub one_in: u64,
    /// MTU that it tells in place of the next link's.
    pub tells: Option<u32>,
    /// Tells of packets that are too big.
    pub tells_too_big: bool,
}

impl Link {
    pub fn new(rate_bps: u64, delay_ns: u64) -> Link {
        Link { rate_bps, delay_ns, mtu_bytes: 9000, answers: true, one_in: 1, tells: None, tells_too_big: true }
    }
}

/// The path.
pub struct Path {
    pub links: Vec<Link>,
    /// Bytes of an ICMP message at most.
    pub quote: u32,
    /// Share of packets that wait in a queue, in 16ths, and the longest wait.
    pub waits: (u64, u64),
    /// One packet in so many is lost; 0: none.
    pub loses_one_in: u64,
    /// Lead of the far end's clock, ns, and its rate above the sender's, 10^-9.
    pub far_clock: (i64, i64),
    /// Called before each train with its number.
    pub change: fn(&mut Vec<Link>, u64),
    /// Rounds time stamps down to this.
    pub step_ns: u64,
    random: u64,
    trains: u64,
}

impl Path {
    pub fn new(links: Vec<Link>) -> Path {
        let change = |_: &mut Vec<Link>, _| ();
        Path {
            links,
            quote: 576,
            waits: (0, 0),
            loses_one_in: 0,
            far_clock: (123_456_789_000, 0),
            change,
            step_ns: 1,
            random: 0x9e37_79b9_7f4a_7c15,
            trains: 0,
        }
    }

    /// Numbers below `most`, by xorshift.
    fn below(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % most.max(1)
    }

    fn crossed_ns(&mut self, link: usize, bytes: u32) -> u64 {
        let Link { rate_bps, delay_ns, .. } = self.links[link];
        let (share, longest) = self.waits;
        let wait = if self.below(16) < share { self.below(longest) } else { 0 };
        delay_ns + u64::from(bytes) * 8_000_000_000 / rate_bps + wait
    }

    fn back_ns(&mut self, from: usize, bytes: u32) -> u64 {
        (0..=from).rev().map(|link| self.crossed_ns(link, bytes)).sum()
    }

    fn packet(&mut self, train: &Train, sent_ns: u64) -> TrainPacket {
        let mut packet = TrainPacket { sent_ns, ..TrainPacket::default() };
        if self.loses_one_in > 0 && self.below(self.loses_one_in) == 0 {
            return packet;
        }
        let (mut at, bytes, last) = (sent_ns, train.packet_bytes, self.links.len() - 1);
        for link in 0..=last {
            at += self.crossed_ns(link, bytes);
            let expired = train.ttl as usize == link + 1;
            if link == last {
                let (ahead, faster) = self.far_clock;
                let clock = at as i64 + ahead + (i128::from(at) * i128::from(faster) / 1_000_000_000) as i64;
                packet.received_ns = Some(clock as u64 / self.step_ns * self.step_ns);
                packet.returned_ns = Some((at + self.back_ns(link, bytes)) / self.step_ns * self.step_ns);
                return packet;
            }
            let next = self.links[link + 1].mtu_bytes;
            let too_big = bytes > next && train.do_not_fragment;
            if !expired && !too_big {
                continue;
            }
            let router = self.links[link].clone();
            let silent = if expired { !router.answers } else { !router.tells_too_big };
            if silent || self.below(router.one_in) != 0 {
                return packet;
            }
            let at_ns = (at + self.back_ns(link, self.quote.min(bytes + 28))) / self.step_ns * self.step_ns;
            let (icmp_type, icmp_code) = if expired { (11, 0) } else { (3, 4) };
            let mtu_bytes = (!expired).then_some(router.tells.unwrap_or(next));
            let address = address(link);
            packet.router = Some(RouterReply { address, icmp_type, icmp_code, mtu_bytes, at_ns });
            return packet;
        }
        unreachable!("the last link ends at the far end")
    }

    /// Plays it to `estimator` until that is done.
    pub fn play(&mut self, estimator: &mut dyn Estimator) -> Outcome {
        let mut now_ns = 1_000_000_000;
        loop {
            assert!(self.trains < 100_000, "it never ends");
            match estimator.poll_next(now_ns) {
                Next::Done(outcome) => return outcome,
                Next::Send { at_ns, train } => {
                    (self.change)(&mut self.links, self.trains);
                    self.trains += 1;
                    now_ns = now_ns.max(at_ns);
                    let packets: Vec<_> =
                        train.offsets_ns.iter().map(|offset| self.packet(&train, now_ns + offset)).collect();
                    now_ns += train.offsets_ns.last().copied().unwrap_or(0) + 1_000_000_000;
                    estimator.handle_report(now_ns, &TrainReport { packets, stamp_step_ns: self.step_ns, late: 0 });
                }
            }
        }
    }
}

/// Address of the router behind link `link`.
pub fn address(link: usize) -> IpAddr {
    Ipv4Addr::new(198, 19, 0, link as u8 + 1).into()
}

/// The estimate of a quantity: value, low, high.
pub fn found(outcome: &Outcome, quantity: &str) -> Option<(f64, f64, f64)> {
    let of = outcome.estimates.iter().find(|estimate| estimate.quantity == quantity)?;
    Some((of.value, of.low, of.high))
}
