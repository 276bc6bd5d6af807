//! Link services from one region's addresses to the other's (RFC 4172, section 7).

use super::net::{els_answer, els_request, name, settings, Net};
use bytes::Bytes;
use storage::fc::fabric::PortKey;
use wire::fc::els::{Command, Reject};
use wire::fc::{routing, FcId, Frame, FrameType, Sof};
use wire::ifcp::AddressMode;

/// Addresses of the ports in a region: of the sender's host 1, the receiver's host 2, and a third, host 3.
#[derive(Clone, Copy)]
struct Ids {
    a: FcId,
    b: FcId,
    c: FcId,
}

/// Sites of the hosts 1, 2 and 3, of which 1 is logged in at 2. A fourth host makes the addresses differ.
struct Regions {
    net: Net,
    first: Ids,
    second: Ids,
}

fn regions(mode: AddressMode) -> Regions {
    let mut net = Net::new(vec![settings(mode); 3]);
    let hosts = [(0, 1, net.attach(0, 1)), (1, 2, net.attach(1, 2)), (2, 3, net.attach(2, 3))];
    net.attach(1, 4);
    net.join(&hosts);
    net.log_in(hosts[0], hosts[1]);
    let first = Ids { a: hosts[0].2, b: net.alias(0, 2), c: net.alias(0, 3) };
    let second = Ids { a: net.alias(1, 1), b: hosts[1].2, c: net.alias(1, 3) };
    Regions { net, first, second }
}

impl Regions {
    /// Sends a request from host 1, and returns the payload that host 2 gets.
    fn request(&mut self, kind: FrameType, payload: Vec<u8>) -> Frame {
        let mut frame = els_request(self.first.a, self.first.b, 0x21, Bytes::from(payload));
        if kind == FrameType::FCP {
            (frame.header.kind, frame.header.r_ctl) = (kind, routing::FC4_REQUEST);
        }
        self.net.send_frame(0, PortKey(1), frame);
        self.net.run();
        self.net.take(1, PortKey(2))
    }

    /// Sends an accept from host 2, and returns the payload that host 1 gets.
    fn accept(&mut self, request: &Frame, payload: Vec<u8>) -> Bytes {
        let mut frame = els_answer(request, Bytes::from(payload));
        if request.header.kind == FrameType::FCP {
            (frame.header.kind, frame.header.r_ctl) = (request.header.kind, routing::FC4_REPLY);
        }
        self.net.send_frame(1, PortKey(2), frame);
        self.net.run();
        let got = self.net.take(0, PortKey(1));
        assert_eq!((got.header.s_id, got.header.d_id, got.header.ox_id), (self.first.b, self.first.a, 0x21));
        got.payload.to_bytes()
    }
}

/// A payload with a command, an address at each place, and other bytes that show when they are moved.
fn payload(code: u8, length: usize, addresses: &[(usize, FcId)]) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..length).map(|at| 0x80 | at as u8).collect();
    bytes[..4].copy_from_slice(&[code, 0, 0, 0]);
    for (at, id) in addresses {
        bytes[*at..at + 3].copy_from_slice(&id.to_bytes());
    }
    bytes
}

fn with_names(mut bytes: Vec<u8>, names: &[(usize, u64)]) -> Vec<u8> {
    for (at, host) in names {
        bytes[*at..at + 8].copy_from_slice(&name(*host).0.to_be_bytes());
    }
    bytes
}

/// Pages of TPRLO: each with its flags and the third party.
fn tprlo(code: u8, pages: &[(u8, FcId)]) -> Vec<u8> {
    let length = (4 + 16 * pages.len()) as u16;
    let mut bytes = vec![code, 0x10, (length >> 8) as u8, length as u8];
    for (flags, id) in pages {
        bytes.extend([0x08, 0, *flags, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
        bytes.extend(id.to_bytes());
    }
    bytes
}

type Write = fn(Ids) -> Vec<u8>;

/// Requests of table 11 as host 1 writes them, and as host 2 reads them with the addresses of its own region.
fn requests() -> Vec<(Command, Write)> {
    vec![
        (Command::ABTX, |ids| payload(0x06, 12, &[(5, ids.a)])),
        (Command::ABTX, |ids| payload(0x06, 44, &[(5, ids.b)])),
        (Command::FARP_REPLY, |ids| payload(0x55, 76, &[(5, ids.b), (9, ids.a)])),
        (Command::FARP_REQ, |ids| with_names(payload(0x54, 76, &[(5, ids.a), (9, ids.c)]), &[(12, 1), (28, 3)])),
        (Command::FARP_REQ, |ids| with_names(payload(0x54, 76, &[(5, ids.a), (9, FcId::NONE)]), &[(12, 1)])),
        (Command::REC, |ids| payload(0x13, 12, &[(5, ids.a)])),
        (Command::REC, |ids| payload(0x13, 12, &[(5, ids.b)])),
        (Command::REC, |ids| payload(0x13, 12, &[(5, ids.c)])),
        (Command::RES, |ids| payload(0x08, 44, &[(5, ids.a)])),
        (Command::RES, |ids| payload(0x08, 44, &[(5, ids.c)])),
        (Command::RLS, |ids| payload(0x0f, 8, &[(5, ids.b)])),
        (Command::RLS, |ids| payload(0x0f, 8, &[(5, ids.c)])),
        (Command::RSS, |ids| payload(0x09, 12, &[(5, ids.a)])),
        (Command::RSS, |ids| payload(0x09, 12, &[(5, ids.c)])),
        (Command::RRQ, |ids| payload(0x12, 12, &[(5, ids.a)])),
        (Command::RRQ, |ids| payload(0x12, 44, &[(5, ids.b)])),
        (Command::RSI, |ids| payload(0x0a, 12, &[(5, ids.a)])),
        (Command::TPRLO, |ids| tprlo(0x24, &[(0x20, ids.c)])),
        (Command::TPRLO, |ids| tprlo(0x24, &[(0x20, ids.a), (0, FcId::NONE), (0x20, ids.c)])),
        // All ports: it goes as it is.
        (Command::TPRLO, |_| tprlo(0x24, &[(0x10, FcId::new(0x12_3456))])),
        // All loops: it goes as it is.
        (Command::SRL, |_| vec![0x7b, 0, 0, 0, 0, 0x12, 0x34, 0x56]),
        (Command::SRL, |ids| {
            let id = ids.c.to_bytes();
            vec![0x7b, 0, 0, 0, 1, id[0], id[1], id[2]]
        }),
    ]
}

#[test]
fn requests_carry_the_receivers_addresses() {
    let mut regions = regions(AddressMode::Translation);
    let (first, second) = (regions.first, regions.second);
    assert!(first.b != second.b && first.c != second.c, "the test cannot tell addresses of the regions apart");
    for (number, (command, write)) in requests().into_iter().enumerate() {
        let got = regions.request(FrameType::ELS, write(first));
        assert_eq!(got.payload.to_bytes(), write(second), "{command:?}, case {number}");
        assert_eq!((got.header.s_id, got.header.d_id), (second.a, second.b));
    }
    assert_eq!(regions.net.sites[1].gateway.counters().refused, 0);
}

#[test]
fn accepts_carry_the_originators_addresses() {
    type Case = (FrameType, Write, Write);
    let rec: Write = |ids| payload(0x13, 12, &[(5, ids.a)]);
    let res: Write = |ids| payload(0x08, 44, &[(5, ids.a)]);
    let page: Write = |ids| tprlo(0x24, &[(0x20, ids.c)]);
    let cases: Vec<Case> = vec![
        (FrameType::ELS, rec, |ids| payload(0x02, 24, &[(9, ids.a), (13, ids.b)])),
        (FrameType::ELS, rec, |ids| payload(0x02, 24, &[(9, ids.c), (13, ids.b)])),
        (FrameType::ELS, rec, |ids| payload(0x02, 24, &[(9, ids.a), (13, ids.c)])),
        (FrameType::FCP, rec, |ids| payload(0x02, 24, &[(9, ids.b), (13, ids.a)])),
        (FrameType::ELS, res, |ids| payload(0x02, 200, &[(9, ids.a), (13, ids.b)])),
        (FrameType::ELS, res, |ids| payload(0x02, 200, &[(9, ids.c), (13, ids.b)])),
        (FrameType::ELS, page, |ids| tprlo(0x02, &[(0x20, ids.c), (0, FcId::NONE)])),
        // A reject goes as it is.
        (FrameType::ELS, rec, |_| Reject { reason: Reject::UNABLE, explanation: 0 }.to_bytes().to_vec()),
    ];
    let mut regions = regions(AddressMode::Translation);
    let (first, second) = (regions.first, regions.second);
    for (number, (kind, request, accept)) in cases.into_iter().enumerate() {
        let got = regions.request(kind, request(first));
        assert_eq!(got.payload.to_bytes(), request(second));
        assert_eq!(regions.accept(&got, accept(second)), accept(first), "case {number}");
    }
    assert_eq!(regions.net.sites[0].gateway.counters().refused, 0);
}

#[test]
fn a_discovery_loses_its_hard_address() {
    let mut regions = regions(AddressMode::Translation);
    let (first, second) = (regions.first, regions.second);
    let adisc = |code, id, hard, host| with_names(payload(code, 28, &[(5, hard), (25, id)]), &[(8, host)]);
    let got = regions.request(FrameType::ELS, adisc(0x52, first.a, FcId::new(0xe8), 1));
    assert_eq!(got.payload.to_bytes(), adisc(0x52, second.a, FcId::NONE, 1));
    let accept = regions.accept(&got, adisc(0x02, second.b, FcId::new(0xe8), 2));
    assert_eq!(accept, adisc(0x02, first.b, FcId::NONE, 2));
}

#[test]
fn an_unknown_address_is_rejected_by_the_senders_gateway() {
    let mut regions = regions(AddressMode::Translation);
    let (a, b) = (regions.first.a, regions.first.b);
    let unknown = FcId::new(0x12_3456);
    let cases = [
        payload(0x13, 12, &[(5, unknown)]),
        payload(0x06, 12, &[(5, unknown)]),
        payload(0x0f, 8, &[(5, unknown)]),
        tprlo(0x24, &[(0x20, unknown)]),
    ];
    let reject = Reject { reason: Reject::PROTOCOL_ERROR, explanation: Reject::INVALID_PORT_ID };
    for case in cases {
        regions.net.send_frame(0, PortKey(1), els_request(a, b, 3, Bytes::from(case)));
        regions.net.run();
        let got = regions.net.take(0, PortKey(1));
        assert_eq!((got.header.s_id, got.header.r_ctl), (b, routing::ELS_REPLY));
        assert_eq!(got.payload.to_bytes(), reject.to_bytes());
    }
    assert!(regions.net.sites[1].got.is_empty());
}

#[test]
fn a_name_that_the_receivers_gateway_does_not_know_is_rejected() {
    let mut regions = regions(AddressMode::Translation);
    let (a, b, c) = (regions.first.a, regions.first.b, regions.first.c);
    regions.net.forget_ports_of(1, 2);
    regions.net.send_frame(0, PortKey(1), els_request(a, b, 3, Bytes::from(payload(0x13, 12, &[(5, c)]))));
    regions.net.run();
    let reject = Reject { reason: Reject::PROTOCOL_ERROR, explanation: Reject::INVALID_PORT_ID };
    assert_eq!(regions.net.take(0, PortKey(1)).payload.to_bytes(), reject.to_bytes());
    let line = format!("peer 0: refused: a link service names the unknown port {}", name(3));
    assert!(regions.net.lines_of(1).contains(&line));
}

#[test]
fn a_long_request_goes_in_frames_of_whole_pages() {
    let mut regions = regions(AddressMode::Translation);
    let (first, second) = (regions.first, regions.second);
    let many = |c: FcId| tprlo(0x24, &[(0x20, c); 120]);
    let got = regions.request(FrameType::ELS, many(first.c));
    assert_eq!(got.payload.to_bytes(), many(second.c));
    let sent = regions.net.sites[0].gateway.sessions().next().unwrap().counters;
    // PLOGI, and 120 pages of 24 bytes at 85 in a frame of 2048.
    assert_eq!(sent.sent_frames, 3);
}

#[test]
fn link_services_without_addresses_pass_and_unknown_ones_do_not() {
    let mut regions = regions(AddressMode::Translation);
    let first = regions.first;
    for code in [0x0d, 0x10, 0x0c, 0x0b, 0x50, 0x20, 0x21, 0x0e, 0x78, 0x14, 0x11] {
        let sent = payload(code, 20, &[(5, first.a)]);
        let got = regions.request(FrameType::ELS, sent.clone());
        assert_eq!(got.payload.to_bytes(), sent);
    }
    let sent = payload(0x99, 20, &[(5, first.a)]);
    regions.net.send(0, PortKey(1), first.a, first.b, Bytes::from(sent));
    regions.net.run();
    let reject = Reject { reason: Reject::NOT_SUPPORTED, explanation: Reject::NO_EXPLANATION };
    assert_eq!(regions.net.take(0, PortKey(1)).payload.to_bytes(), reject.to_bytes());
    assert!(regions.net.sites[1].got.is_empty());
}

#[test]
fn transparent_addresses_cross_as_they_are() {
    let mut regions = regions(AddressMode::Transparent);
    let (first, second) = (regions.first, regions.second);
    assert_eq!((first.a, first.b, first.c), (second.a, second.b, second.c));
    let mut sent: Vec<Vec<u8>> = requests().into_iter().map(|(_, write)| write(first)).collect();
    sent.push(payload(0x99, 20, &[(5, FcId::new(0x12_3456))]));
    sent.push(payload(0x52, 28, &[(5, FcId::new(0xe8)), (25, first.a)]));
    for payload in sent {
        assert_eq!(regions.request(FrameType::ELS, payload.clone()).payload.to_bytes(), payload);
    }
    let rec = regions.request(FrameType::ELS, payload(0x13, 12, &[(5, first.a)]));
    let accept = payload(0x02, 24, &[(9, first.a), (13, first.b)]);
    assert_eq!(regions.accept(&rec, accept.clone()), accept);
}

#[test]
fn switches_and_class_2_stay_at_home() {
    let mut regions = regions(AddressMode::Translation);
    let Ids { a, b, .. } = regions.first;
    let now_ns = regions.net.now_ns;
    let good = super::net::data(a, b, 1, 0, b"data");
    for sof in [Sof::Fabric, Sof::Initiate2, Sof::Normal2, Sof::Initiate4, Sof::Normal4, Sof::Connect4] {
        regions.net.sites[0].gateway.handle_frame(Frame { sof, ..good.clone() }, now_ns);
    }
    let mut internal = good.clone();
    internal.header.kind = FrameType::ILS;
    regions.net.sites[0].gateway.handle_frame(internal, now_ns);
    regions.net.run();
    assert!(regions.net.sites[1].got.is_empty());
    assert_eq!(regions.net.sites[0].gateway.counters().local_malformed, 7);
    regions.net.send_frame(0, PortKey(1), good.clone());
    regions.net.run();
    assert_eq!(regions.net.take(1, PortKey(2)).payload, good.payload);
}
