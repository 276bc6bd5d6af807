//! A gateway that is told to stop, with exchanges under way between two sites.

use super::node::{Node, Received};
use super::two_sites::{joined, Sites};
use bytes::Bytes;
use std::time::Duration;
use storage_net::gateway::Gateway;
use units::Span;
use wire::fc::els::Command;
use wire::fc::{frame_control, routing, FcId, Frame, FrameHeader, FrameType};
use wire::fip::Operation;

/// A command of SCSI with a number, or the response to it.
fn scsi(from: &Node, to: FcId, ox_id: u16, is_response: bool) -> Frame {
    let begin = frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE;
    let end = frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE;
    let (r_ctl, f_ctl) =
        if is_response { (routing::COMMAND_STATUS, end) } else { (routing::UNSOLICITED_COMMAND, begin) };
    let header =
        FrameHeader { r_ctl, d_id: to, s_id: from.id, kind: FrameType::FCP, f_ctl, ox_id, ..FrameHeader::default() };
    Frame::class3(header, Bytes::from_static(&[0; 32]))
}

/// Waits for LOGO of the other site's port and then for the end of the virtual link, or for RSCN.
fn notices(node: &Node) -> Vec<&'static str> {
    let mut notices = Vec::new();
    loop {
        match node.receive() {
            Received::Fip(message) if message.operation == Operation::ClearVirtualLinks => notices.push("clear"),
            Received::Fip(_) => continue,
            Received::Fc(frame) if frame.header.kind == FrameType::FCP => panic!("{frame:?}"),
            Received::Fc(frame) => match Command::of(&frame.payload.to_bytes()) {
                Ok(Command::LOGO) => notices.push("logout"),
                Ok(Command::RSCN) => notices.push("state change"),
                _ => continue,
            },
        }
        if notices.len() == 2 {
            return notices;
        }
    }
}

fn log_until_end(gateway: &Gateway) -> String {
    let mut log = String::new();
    while gateway.is_running() {
        std::thread::park_timeout(Duration::from_millis(5));
        log += &gateway.drain_log().join("\n");
    }
    log + &gateway.drain_log().join("\n")
}

#[test]
fn a_command_under_way_ends_before_the_gateway_does_and_none_begins() {
    let sites = Sites::new("ifcp-drain");
    let (here, there) = (sites.gateway_with(1, Span::from_secs(600)), sites.gateway(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, first_there) = joined([&here, &there], [&mut first, &mut second]);
    second.register_for_changes();
    assert!(first.send(&scsi(&first, second_here, 1, false)));
    assert_eq!(second.data_frame().header.ox_id, 1);
    assert_eq!(here.status().exchanges, 1);
    here.begin_stop();
    // Commands go on to be sent until one is refused: the gateway has heard of its stop by then.
    let mut passed = Vec::new();
    for ox_id in 2.. {
        assert!(first.send(&scsi(&first, second_here, ox_id, false)));
        std::thread::park_timeout(Duration::from_millis(1));
        let status = here.status();
        if status.fabric.refused_exchanges > 0 {
            passed.extend(2..ox_id + 1 - status.fabric.refused_exchanges as u16);
            break;
        }
    }
    assert!(here.is_running());
    for ox_id in [1].into_iter().chain(passed) {
        if ox_id > 1 {
            assert_eq!(second.data_frame().header.ox_id, ox_id);
        }
        assert!(second.send(&scsi(&second, first_there, ox_id, true)));
        let response = first.data_frame();
        assert_eq!((response.header.r_ctl, response.header.ox_id), (routing::COMMAND_STATUS, ox_id));
    }
    let log = log_until_end(&here);
    assert!(log.contains("stops; exchanges under way: ") && !log.contains("did not end in time"), "{log}");
    assert!(log.contains("ended: this gateway stops"), "{log}");
    assert_eq!(notices(&first), ["logout", "clear"]);
    assert_eq!(notices(&second), ["logout", "state change"]);
    assert_eq!(there.status().ifcp.stale + there.status().ifcp.refused, 0);
}

#[test]
fn a_command_that_does_not_end_is_waited_for_no_longer_than_the_bound() {
    let sites = Sites::new("ifcp-bound");
    let (here, there) = (sites.gateway_with(1, Span::from_millis(200)), sites.gateway(2));
    let (mut first, mut second) = (sites.node(1), sites.node(2));
    let (second_here, _) = joined([&here, &there], [&mut first, &mut second]);
    assert!(first.send(&scsi(&first, second_here, 1, false)));
    assert_eq!(second.data_frame().header.ox_id, 1);
    here.begin_stop();
    let log = log_until_end(&here);
    assert!(log.contains("exchanges that did not end in time: 1"), "{log}");
    assert_eq!(notices(&first), ["logout", "clear"]);
}
