//! Readers of Fibre Channel and of what carries it: frames, link services, the name server's requests, SCSI's units,
//! FCoE, FIP, iFCP, FCIP, iSNS.

use super::fc_frame;
use super::input::Input;
use bytes::{Bytes, BytesMut};
use std::fmt::Debug;
use wire::encapsulation::TimeStamp;
use wire::ethernet::EthernetHeader;
use wire::fc::els::{DiscoverAddress, ExchangeStatus, ProcessLogin, Request};
use wire::fc::name_server::{self, Query};
use wire::fc::{ct::CtHeader, fcp, BasicAccept, BasicReject, Eof, FcId, FrameHeader, Login, Sof};
use wire::ifcp::{AddressMode, DeviceFrame};
use wire::{fcip, fcoe, fip, ifcp, isns, WireError};

/// A value that was read is emitted and read as the same value again.
fn same<T: PartialEq + Debug>(value: &T, bytes: &Bytes, read: impl Fn(&Bytes) -> Result<T, WireError>) {
    let again = read(bytes).expect("what was emitted is read");
    assert_eq!(*value, again, "{bytes:?}");
}

/// Any bytes are a value of each reader, or an error.
pub fn fields(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.u8();
    let rest = Bytes::copy_from_slice(input.bytes(usize::MAX));
    match kind % 16 {
        0 => {
            let Ok(request) = Request::parse(&rest) else { return };
            same(&request, &request.to_bytes(), Request::parse);
        }
        1 => {
            let Ok((header, content)) = CtHeader::parse(&rest) else { return };
            let Ok(query) = Query::parse(&header, &content) else { return };
            // A request that elephan does not know is kept by its code alone.
            if !matches!(query, Query::Other(_)) {
                let read =
                    |bytes: &Bytes| CtHeader::parse(bytes).and_then(|(header, rest)| Query::parse(&header, &rest));
                same(&query, &query.to_bytes(), read);
            }
        }
        2 => {
            let Ok(command) = fcp::Command::parse(&rest) else { return };
            same(&command, &command.to_bytes(), fcp::Command::parse);
        }
        3 => {
            let Ok(response) = fcp::Response::parse(&rest) else { return };
            same(&response, &response.to_bytes(), fcp::Response::parse);
        }
        4 => {
            let Ok(ready) = fcp::TransferReady::parse(&rest) else { return };
            same(&ready, &ready.to_bytes(), |bytes| fcp::TransferReady::parse(bytes));
        }
        5 => {
            let Ok(header) = FrameHeader::parse(&rest) else { return };
            let again = FrameHeader::parse(&header.to_bytes()).expect("what was emitted is read");
            assert_eq!(header, again);
        }
        6 => {
            let Ok(login) = Login::parse(&rest) else { return };
            let again = Login::parse(&login.to_bytes()).expect("what was emitted is read");
            assert_eq!(login, again);
        }
        7 => {
            let Ok(message) = fip::Message::decode(&rest) else { return };
            let mut again = BytesMut::new();
            message.encode(&mut again);
            same(&message, &again.freeze(), fip::Message::decode);
        }
        8 => drop(fcoe::decode(&rest)),
        9 => drop(EthernetHeader::decode(&rest)),
        10 => drop((BasicAccept::parse(&rest), BasicReject::parse(&rest))),
        11 => drop((DiscoverAddress::parse(&rest), ExchangeStatus::parse(&rest), ProcessLogin::parse(&rest))),
        12 => {
            let Ok(ports) = name_server::parse_list_of_ports(&rest) else { return };
            assert!(ports.len() <= rest.len());
        }
        13 => {
            let Ok(ids) = name_server::parse_list_of_ids(&rest) else { return };
            assert!(ids.len() <= rest.len());
        }
        14 => {
            let mut assembler = isns::Assembler::default();
            assembler.push(&rest);
            while let Ok(Some(message)) = assembler.next_message() {
                let mut again = BytesMut::new();
                message.encode(&mut again);
                let mut other = isns::Assembler::default();
                other.push(&again);
                assert_eq!(other.next_message(), Ok(Some(message)));
            }
        }
        _ => {
            let (sof, eof) = (Sof::from_code(kind), Eof::from_code(kind.wrapping_mul(3)));
            let _ = (sof, eof, wire::fc::els::Reject::parse(&rest));
        }
    }
}

/// Messages of a stream, in whatever pieces they come, are the same; a damaged one is discarded, ends the stream, or
/// was damaged where nothing is checked.
pub fn streams(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let step = usize::from(input.u8()) + 1;
    let ids = [FcId::of(1, 1, 0), FcId::of(1, 1, 1), FcId::FABRIC_PORT];
    let mut stream = BytesMut::new();
    for _ in 0..input.u8() % 6 {
        let frame = fc_frame::frame(&mut input, &ids);
        let time = if input.u8() & 1 != 0 { TimeStamp::from_ns(u64::from(input.u32())) } else { TimeStamp::NONE };
        if flags & 1 == 0 {
            let special = input.u8() & 1 != 0;
            let mode = input.pick(&[AddressMode::Translation, AddressMode::Transparent]);
            ifcp::Message::Device(DeviceFrame { frame, mode, special, accepted: None, time }).encode(&mut stream);
        } else {
            fcip::Message::Frame(frame, time).encode(&mut stream);
        }
    }
    for _ in 0..input.u8() % 4 {
        let at = usize::from(input.u16());
        if let Some(byte) = stream.get_mut(at) {
            *byte ^= input.u8();
        }
    }
    if flags & 2 != 0 {
        stream.extend_from_slice(input.bytes(usize::MAX));
    }
    let read = |stream: &mut BytesMut| match flags & 1 {
        0 => format!("{:?}", ifcp::Message::decode(stream)),
        _ => format!("{:?}", fcip::Message::decode(stream)),
    };
    let mut whole = stream.clone();
    let mut pieces = BytesMut::new();
    let mut come = stream.chunks(step);
    loop {
        let at_once = read(&mut whole);
        let mut by_pieces = read(&mut pieces);
        while by_pieces == "Ok(None)" {
            let Some(more) = come.next() else { break };
            pieces.extend_from_slice(more);
            by_pieces = read(&mut pieces);
        }
        assert_eq!(at_once, by_pieces, "whole and in pieces");
        if at_once == "Ok(None)" || at_once.starts_with("Err") {
            return;
        }
    }
}
