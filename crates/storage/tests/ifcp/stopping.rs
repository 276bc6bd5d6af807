//! A gateway that is told to stop: no exchange begins, those under way end, sessions are unbound.

use super::net::{els_request, login, name, settings, two_sites};
use bytes::Bytes;
use storage::fc::fabric::PortKey;
use wire::fc::els::{Command, Reject, Request};
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType};
use wire::ifcp::AddressMode;

/// A frame of SCSI: a command of the originator, or the response to it.
fn scsi(r_ctl: u8, s_id: FcId, d_id: FcId, ox_id: u16) -> Frame {
    let f_ctl = match r_ctl {
        routing::UNSOLICITED_COMMAND => {
            frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE
        }
        routing::COMMAND_STATUS => {
            frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE
        }
        _ => frame_control::EXCHANGE_RESPONDER | frame_control::END_SEQUENCE,
    };
    let header = FrameHeader { r_ctl, d_id, s_id, kind: FrameType::FCP, f_ctl, ox_id, ..FrameHeader::default() };
    Frame::class3(header, Bytes::from_static(&[0; 32]))
}

#[test]
fn an_exchange_under_way_ends_while_a_new_one_is_refused() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    net.log_in(a, b);
    let (to_b, to_a) = (net.alias(0, 2), net.alias(1, 1));
    let command = |ox_id| scsi(routing::UNSOLICITED_COMMAND, a.2, to_b, ox_id);
    net.sites[0].fabric.handle_frame(PortKey(1), command(1));
    net.run();
    assert_eq!(net.take(1, PortKey(2)).header.ox_id, 1);
    assert_eq!((net.sites[0].fabric.exchanges(), net.sites[1].fabric.exchanges()), (1, 1));
    net.sites[0].fabric.drain();
    net.sites[0].fabric.handle_frame(PortKey(1), command(2));
    net.run();
    assert!(net.sites[1].got.is_empty(), "a command passed");
    // Data and response of the first one pass, in the other direction too.
    for r_ctl in [routing::SOLICITED_DATA, routing::COMMAND_STATUS] {
        assert_eq!(net.sites[0].fabric.exchanges(), 1);
        net.sites[1].fabric.handle_frame(PortKey(2), scsi(r_ctl, b.2, to_a, 1));
        net.run();
        assert_eq!(net.take(0, PortKey(1)).header.r_ctl, r_ctl);
    }
    assert_eq!((net.sites[0].fabric.exchanges(), net.sites[1].fabric.exchanges()), (0, 0));
    // A link service of either side is busy.
    let discover = els_request(a.2, to_b, 0x21, Request::Login(login(Command::PLOGI, 1)).to_bytes());
    net.sites[0].fabric.handle_frame(PortKey(1), discover);
    net.run();
    let busy = Reject { reason: Reject::LOGICAL_BUSY, explanation: Reject::NO_EXPLANATION };
    assert_eq!(Reject::parse(&net.take(0, PortKey(1)).payload.to_bytes()), Ok(busy));
    let discover = els_request(b.2, to_a, 0x22, Request::Login(login(Command::PLOGI, 2)).to_bytes());
    net.sites[1].fabric.handle_frame(PortKey(2), discover);
    net.run();
    assert_eq!(Reject::parse(&net.take(1, PortKey(2)).payload.to_bytes()), Ok(busy));
    assert_eq!(net.sites[0].fabric.counters().refused_exchanges, 3);
}

#[test]
fn exchanges_of_a_port_that_is_gone_are_not_waited_for() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    net.log_in(a, b);
    let to_b = net.alias(0, 2);
    net.sites[0].fabric.handle_frame(PortKey(1), scsi(routing::UNSOLICITED_COMMAND, a.2, to_b, 1));
    net.run();
    assert_eq!((net.sites[0].fabric.exchanges(), net.sites[1].fabric.exchanges()), (1, 1));
    net.sites[0].fabric.detach(PortKey(1));
    net.run();
    // At the other site the LOGO ends it.
    assert_eq!((net.sites[0].fabric.exchanges(), net.sites[1].fabric.exchanges()), (0, 0));
}

#[test]
fn a_gateway_that_stops_unbinds_its_sessions_and_takes_none() {
    let (mut net, [a, b]) = two_sites(settings(AddressMode::Translation), settings(AddressMode::Translation));
    net.log_in(a, b);
    let now_ns = net.now_ns;
    net.sites[0].gateway.stop(now_ns);
    assert!(net.sites[0].gateway.is_unbinding());
    net.run();
    assert!(!net.sites[0].gateway.is_unbinding());
    assert_eq!((net.open(0).len(), net.open(1).len()), (0, 0));
    let ended = |why| format!("session of {} with {}: ended: {why}", name(2), name(1));
    assert!(net.lines_of(1).iter().any(|line| line.ends_with(&ended("the peer ended it"))), "{:?}", net.lines_of(1));
    for (site, port) in [(0, PortKey(1)), (1, PortKey(2))] {
        let logout = net.take(site, port).payload.to_bytes();
        assert_eq!(Command::of(&logout), Ok(Command::LOGO));
    }
    let to_a = net.alias(1, 1);
    net.send(1, PortKey(2), b.2, to_a, Request::Login(login(Command::PLOGI, 2)).to_bytes());
    net.run();
    let refused = Reject { reason: Reject::UNABLE, explanation: Reject::INSUFFICIENT_RESOURCES };
    assert_eq!(Reject::parse(&net.take(1, PortKey(2)).payload.to_bytes()), Ok(refused));
    assert!(net.open(0).is_empty());
}
