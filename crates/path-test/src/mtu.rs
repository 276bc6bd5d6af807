//! The path's MTU by probe packets that no router may fragment (PLPMTUD for datagrams, RFC 8899): a size counts as
//! passing when a packet of it was answered, and as too big when none of several was while smaller ones were. A "packet
//! too big" message proposes the next size and proves nothing (RFC 8899, 4.6).

use crate::estimate::{Cost, Estimate, Estimator, Next, Outcome};
use crate::train::{Train, TrainReport};
use core::net::IpAddr;
use serde::Deserialize;

/// Packets of one size that are lost before it counts as too big (RFC 8899, 5.1.2: MAX_PROBES).
const MOST_PROBES: u32 = 3;
/// Smallest packet that every path carries, bytes (RFC 8899, 5.1.2: MIN_PLPMTU of IPv4, RFC 791).
const LEAST_BYTES: u32 = 68;
/// Times that sizes which passed may stop to pass before the measurement ends.
const MOST_RESTARTS: u32 = 3;
/// Rest between two packets, ns.
const REST_NS: u64 = 10_000_000;
/// MTUs in use, bytes (RFC 1191, table 7-1; tunnels over 1500; jumbo frames): searched first.
const COMMON: [u32; 17] =
    [576, 1006, 1280, 1360, 1400, 1420, 1438, 1450, 1462, 1476, 1480, 1492, 1500, 4352, 8950, 9000, 9216];

/// Bounds of the search.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Name of the test.
    pub test: String,
    /// Size that is expected to pass, from the IP header on, bytes (RFC 8899, 5.1.2: BASE_PLPMTU; 1280 over IPv6).
    pub base_bytes: u32,
    /// Largest size of interest, bytes: the MTU of the sender's own interface.
    pub packet_bytes: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { test: "mtu".to_owned(), base_bytes: 1200, packet_bytes: 9216 }
    }
}

/// The search.
pub struct Mtu {
    settings: Settings,
    /// Largest size that passed; none: not yet, or no longer.
    passed: Option<u32>,
    /// Least size that did not pass.
    too_big: u32,
    /// Size of the packet on its way.
    probed: u32,
    /// Packets of this size that were lost.
    lost: u32,
    /// The packet on its way shows whether the size that passed still does.
    confirming: bool,
    /// Size that was lost, to be taken as too big if the confirmation comes.
    suspected: Option<u32>,
    restarts: u32,
    /// Size that a router proposed and that was not probed.
    proposed: Option<u32>,
    /// The router that told the least MTU, and this.
    told: Option<(IpAddr, u32)>,
    /// Messages that made no sense.
    ignored: u32,
    /// Sizes that were lost without a message.
    silent: bool,
    /// Sizes that the sender's own interface did not take.
    own_limit: bool,
    refused: Option<String>,
    over: bool,
    next_ns: u64,
    began_ns: Option<u64>,
    cost: Cost,
}

impl Mtu {
    /// A search by `settings`.
    ///
    /// # Errors
    /// The setting that does not fit, in a line.
    pub fn new(settings: Settings) -> Result<Mtu, String> {
        let Settings { base_bytes, packet_bytes, .. } = settings;
        if !(LEAST_BYTES..=65_535).contains(&base_bytes) {
            return Err(format!("base_bytes = {base_bytes}: {LEAST_BYTES} to 65535"));
        }
        if !(base_bytes..=65_535).contains(&packet_bytes) {
            return Err(format!("packet_bytes = {packet_bytes}: {base_bytes} (base_bytes) to 65535"));
        }
        Ok(Mtu {
            passed: None,
            too_big: packet_bytes + 1,
            probed: base_bytes,
            lost: 0,
            confirming: false,
            suspected: None,
            restarts: 0,
            proposed: None,
            told: None,
            ignored: 0,
            silent: false,
            own_limit: false,
            refused: None,
            over: false,
            next_ns: 0,
            began_ns: None,
            cost: Cost::default(),
            settings,
        })
    }

    fn passes(&mut self) {
        self.lost = 0;
        if self.confirming {
            self.confirming = false;
            if let Some(size) = self.suspected.take() {
                self.is_too_big(size);
            }
        } else {
            self.passed = Some(self.passed.map_or(self.probed, |passed| passed.max(self.probed)));
        }
        self.choose();
    }

    fn is_too_big(&mut self, size: u32) {
        self.too_big = self.too_big.min(size);
    }

    /// The packet was lost, without a message.
    fn is_lost(&mut self) {
        self.lost += 1;
        if self.lost < MOST_PROBES {
            return;
        }
        self.lost = 0;
        match self.passed {
            // No size has passed: a smaller one may.
            None => {
                self.silent |= self.probed > LEAST_BYTES;
                self.is_too_big(self.probed);
                self.choose();
            }
            // The path may have died, or carry less than before (RFC 8899, 4.3: black holes).
            Some(_) if self.confirming => self.restart(),
            Some(passed) => {
                self.silent = true;
                self.suspected = Some(self.probed);
                self.confirming = true;
                self.probed = passed;
            }
        }
    }

    fn restart(&mut self) {
        let passed = self.passed.take().unwrap_or(0);
        self.restarts += 1;
        (self.confirming, self.suspected, self.proposed) = (false, None, None);
        self.too_big = self.settings.packet_bytes + 1;
        self.probed = self.settings.base_bytes.min(passed);
        if self.restarts > MOST_RESTARTS {
            self.refuse(format!("packets of {passed} bytes passed and no longer do, {MOST_RESTARTS} times over"));
        }
    }

    fn refuse(&mut self, why: String) {
        self.refused = Some(why);
        self.over = true;
    }

    /// The sender's own interface takes no packet of this size.
    fn is_not_sent(&mut self) {
        self.own_limit = true;
        self.lost = 0;
        if self.confirming {
            self.restart();
        } else {
            self.is_too_big(self.probed);
            self.choose();
        }
    }

    /// A router says that the next link takes `mtu` bytes.
    fn is_told(&mut self, router: IpAddr, mtu: Option<u32>) {
        let least = if router.is_ipv4() { LEAST_BYTES } else { 1280 };
        // A message about a size that it says passes, or about none (RFC 1191, 5: routers of old), proposes nothing.
        let usable = mtu.filter(|&mtu| mtu >= least && mtu < self.probed);
        if let Some(mtu) = usable {
            if self.told.is_none_or(|(_, before)| mtu < before) {
                self.told = Some((router, mtu));
            }
            // A size that has passed needs no proposal.
            self.proposed = Some(mtu).filter(|&mtu| self.passed.is_none_or(|passed| mtu > passed));
        } else {
            self.ignored += 1;
        }
        if self.confirming {
            // The size that passed is too big now.
            self.restart();
            return;
        }
        // It did not pass, whatever the message is worth; one that is forged ends at a size that is probed, too.
        self.lost += 1;
        if usable.is_some() || self.lost >= MOST_PROBES {
            self.lost = 0;
            self.is_too_big(self.probed);
            self.choose();
        }
    }

    /// Chooses the next size between what passed and what is too big.
    fn choose(&mut self) {
        let Some(passed) = self.passed else {
            let next = self.proposed.take().filter(|&mtu| mtu < self.too_big);
            let smaller = COMMON.into_iter().rev().find(|&size| size < self.too_big);
            if self.too_big <= LEAST_BYTES {
                let base = self.settings.base_bytes;
                let tried = format!("no packet came, of {base} down to {LEAST_BYTES} bytes: there is no path");
                self.refuse(tried);
            } else {
                self.probed = next.or(smaller).unwrap_or(LEAST_BYTES);
            }
            return;
        };
        if self.too_big - passed <= 1 {
            self.over = true;
            return;
        }
        let between = |size: u32| size > passed && size < self.too_big;
        if let Some(mtu) = self.proposed.take().filter(|&mtu| between(mtu)) {
            self.probed = mtu;
            return;
        }
        // All at once first; after a size in use, one byte more, which mostly shows that it was that.
        let untried = self.too_big == self.settings.packet_bytes + 1;
        let was_told = self.told.is_some_and(|(_, mtu)| mtu == passed);
        let common: Vec<u32> = COMMON.into_iter().filter(|&size| between(size)).collect();
        self.probed = if untried {
            self.settings.packet_bytes
        } else if was_told {
            passed + 1
        } else if let Some(&middle) = common.get(common.len() / 2) {
            middle
        } else if COMMON.contains(&passed) {
            passed + 1
        } else {
            passed + (self.too_big - passed) / 2
        };
    }

    fn outcome(&self, now_ns: u64) -> Outcome {
        let mut cost = self.cost;
        cost.seconds = now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)) as f64 / 1e9;
        let mut outcome = Outcome { estimates: vec![], refused: self.refused.clone(), notes: vec![], cost };
        if let (None, Some(passed)) = (&self.refused, self.passed) {
            let value = f64::from(passed);
            outcome.estimates.push(Estimate { quantity: "path_mtu_bytes", value, low: value, high: value });
            if passed == self.settings.packet_bytes {
                outcome.notes.push(format!("packets of {passed} bytes, the most that were asked for, pass"));
            }
            if self.own_limit {
                outcome.notes.push("larger packets than the sender's interface takes were not sent".to_owned());
            }
        }
        if let Some((router, mtu)) = self.told {
            let found = if self.passed == Some(mtu) { "as found" } else { "which is not what was found" };
            outcome.notes.push(format!("{router} told that its next link takes {mtu} bytes, {found}"));
        }
        if self.silent && self.passed.is_some() {
            outcome.notes.push(
                "larger packets were lost without a message: hosts that wait for one lose connections (RFC 2923, 2.1)"
                    .to_owned(),
            );
        }
        if self.ignored > 0 {
            let count = self.ignored;
            outcome.notes.push(format!("{count} messages \"packet too big\" told no smaller size: not followed"));
        }
        if self.restarts > 0 {
            let count = self.restarts;
            outcome.notes.push(format!("sizes that had passed were lost, and the search began anew, {count} times"));
        }
        outcome
    }
}

/// Returns true for a "packet too big" of either protocol.
fn is_too_big_message(address: &IpAddr, icmp_type: u8, icmp_code: u8) -> bool {
    if address.is_ipv4() {
        (icmp_type, icmp_code) == (3, 4)
    } else {
        icmp_type == 2
    }
}

impl Estimator for Mtu {
    fn poll_next(&mut self, now_ns: u64) -> Next {
        self.began_ns.get_or_insert(now_ns);
        if self.over {
            return Next::Done(self.outcome(now_ns));
        }
        let train = Train { do_not_fragment: true, ..Train::even(1, self.probed, 0) };
        Next::Send { at_ns: self.next_ns.max(now_ns), train }
    }

    fn handle_report(&mut self, now_ns: u64, report: &TrainReport) {
        if self.over {
            return;
        }
        self.next_ns = now_ns.saturating_add(REST_NS);
        let Some(packet) = report.packets.first() else {
            return self.is_not_sent();
        };
        self.cost.packets += 1;
        self.cost.bytes += u64::from(self.probed);
        if packet.received_ns.is_some() || packet.returned_ns.is_some() {
            return self.passes();
        }
        match &packet.router {
            // The sender's own kernel did not let it go: at no time after it was sent.
            Some(reply) if reply.mtu_bytes.is_none() && reply.at_ns == packet.sent_ns => self.is_not_sent(),
            Some(reply) if is_too_big_message(&reply.address, reply.icmp_type, reply.icmp_code) => {
                self.is_told(reply.address, reply.mtu_bytes);
            }
            // Port unreachable: it was there.
            Some(reply)
                if (reply.icmp_type, reply.icmp_code) == if reply.address.is_ipv4() { (3, 3) } else { (1, 4) } =>
            {
                self.passes();
            }
            _ => self.is_lost(),
        }
    }
}
