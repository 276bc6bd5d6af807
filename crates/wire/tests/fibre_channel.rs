//! Fibre Channel, its encapsulations and FCoE: what is emitted parses back; other bytes are refused and do no harm.

use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::encapsulation::{EncapsulationHeader, EncapsulationProtocol, TimeStamp, ENCAPSULATED_BYTES_MAX};
use wire::ethernet::{EthernetHeader, ETHERTYPE_FCOE};
use wire::fc::ct::CtHeader;
use wire::fc::els::{self, AffectedPorts, ChangeRegistration, Request, Scope};
use wire::fc::fcp::{self, Residual, TaskAttribute, TaskManagement};
use wire::fc::name_server::{self, Query, QueryScope, TypeMap};
use wire::fc::{frame_control, BasicAccept, BasicReject, Eof, FcId, Frame, FrameHeader, FrameType, Login, Sof, Wwn};
use wire::ifcp::{AddressMode, Bind, BindStatus, DeviceFrame, SessionMessage};
use wire::iscsi::Payload;
use wire::{fcip, fcoe, fip, ifcp};

const SOFS: [Sof; 8] = [
    Sof::Fabric,
    Sof::Initiate4,
    Sof::Initiate2,
    Sof::Initiate3,
    Sof::Normal4,
    Sof::Normal2,
    Sof::Normal3,
    Sof::Connect4,
];
const EOFS: [Eof; 8] = [
    Eof::Normal,
    Eof::Terminate,
    Eof::RemoveTerminate,
    Eof::DeactivateTerminate,
    Eof::NormalInvalid,
    Eof::DeactivateTerminateInvalid,
    Eof::RemoveTerminateInvalid,
    Eof::Abort,
];

fn id() -> impl Strategy<Value = FcId> + Clone {
    any::<u32>().prop_map(FcId::new)
}

fn name() -> impl Strategy<Value = Wwn> + Clone {
    any::<u64>().prop_map(Wwn)
}

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..=most).prop_map(Bytes::from)
}

prop_compose! {
    fn header()(
        (r_ctl, d_id, cs_ctl, s_id, kind) in (any::<u8>(), id(), any::<u8>(), id(), any::<u8>()),
        (f_ctl, seq_id, df_ctl, seq_cnt) in (0u32..1 << 24, any::<u8>(), any::<u8>(), any::<u16>()),
        (ox_id, rx_id, parameter) in (any::<u16>(), any::<u16>(), any::<u32>()),
    ) -> FrameHeader {
        let kind = FrameType(kind);
        FrameHeader { r_ctl, d_id, cs_ctl, s_id, kind, f_ctl, seq_id, df_ctl, seq_cnt, ox_id, rx_id, parameter }
    }
}

/// Frames whose F_CTL has the fill bytes of their payload, as a received frame has.
fn frame(sofs: &'static [Sof], eofs: &'static [Eof]) -> impl Strategy<Value = Frame> {
    let payload = prop_oneof![bytes(2112).prop_map(Payload::Bytes), (0u32..=2112).prop_map(Payload::Zeros)];
    (prop::sample::select(sofs), header(), payload, prop::sample::select(eofs)).prop_map(
        |(sof, mut header, payload, eof)| {
            let fill = payload.len().wrapping_neg() % 4;
            header.f_ctl = header.f_ctl & !frame_control::FILL_MASK | fill as u32;
            Frame { sof, header, payload, eof }
        },
    )
}

prop_compose! {
    fn login()(
        command in prop::sample::select(vec![2u8, 3, 4, 0x50, 0x51]),
        (buffer_credits, receive_bytes) in (any::<u16>(), 256u16..=2112),
        (e_d_tov_ms, r_a_tov) in any::<(u32, u32)>(),
        (fabric_port, further, class3, sequential_delivery) in any::<(bool, bool, bool, bool)>(),
        (port, node) in (name(), name()),
    ) -> Login {
        let further_addresses = further && (fabric_port || command == 4 || command == 0x51);
        Login {
            command, buffer_credits, receive_bytes, fabric_port, further_addresses, e_d_tov_ms, port, node, class3,
            sequential_delivery, r_a_tov_ms: fabric_port.then_some(r_a_tov),
        }
    }
}

fn request() -> impl Strategy<Value = Request> {
    let exchange = || {
        (id(), any::<u16>(), any::<u16>()).prop_map(|(originator, ox_id, rx_id)| els::ExchangeName {
            originator,
            ox_id,
            rx_id,
        })
    };
    let process = || {
        (any::<u8>(), any::<bool>(), 0u8..16, any::<u32>()).prop_map(|(kind, establish, response, parameters)| {
            els::ProcessLogin { kind, establish, response, parameters }
        })
    };
    let registrations = [ChangeRegistration::Fabric, ChangeRegistration::Ports, ChangeRegistration::Full];
    let scopes = [Scope::Port, Scope::Area, Scope::Domain, Scope::Fabric];
    let page = (0u8..16, prop::sample::select(scopes.to_vec()), id()).prop_map(|(event, scope, id)| AffectedPorts {
        event,
        scope,
        id,
    });
    prop_oneof![
        login().prop_filter("a request", |login| login.command != 2).prop_map(Request::Login),
        (id(), name()).prop_map(|(id, port)| Request::Logout(els::Logout { id, port })),
        process().prop_map(Request::ProcessLogin),
        process().prop_map(Request::ProcessLogout),
        (id(), name(), name(), id())
            .prop_map(|(hard, port, node, id)| Request::DiscoverAddress(els::DiscoverAddress { hard, port, node, id })),
        exchange().prop_map(Request::ReinstateRecoveryQualifier),
        exchange().prop_map(Request::ReadExchangeConcise),
        Just(Request::ReadTimeouts),
        bytes(64).prop_map(Request::Echo),
        prop::sample::select(registrations.to_vec()).prop_map(Request::Register),
        Just(Request::Register(ChangeRegistration::Clear)),
        vec(page, 0..40).prop_map(Request::StateChange),
        bytes(40).prop_map(|rest| Request::Other([&[0x79, 0, 0, 0][..], &rest].concat().into())),
    ]
}

fn query() -> impl Strategy<Value = Query> {
    let scope = || (any::<u8>(), any::<u8>()).prop_map(|(domain, area)| QueryScope { domain, area });
    prop_oneof![
        id().prop_map(Query::AllNext),
        id().prop_map(Query::PortNameOf),
        id().prop_map(Query::NodeNameOf),
        id().prop_map(Query::FeaturesOf),
        name().prop_map(Query::IdOfPort),
        (any::<u8>(), scope()).prop_map(|(kind, scope)| Query::IdsOfType { kind, scope }),
        (any::<u8>(), scope()).prop_map(|(kind, scope)| Query::PortsOfType { kind, scope }),
        (any::<u8>(), scope()).prop_map(|(port_type, scope)| Query::IdsOfPortType { port_type, scope }),
        (id(), name()).prop_map(|(id, name)| Query::RegisterPortName(id, name)),
        (id(), name()).prop_map(|(id, name)| Query::RegisterNodeName(id, name)),
        (id(), any::<u8>()).prop_map(|(id, kind)| Query::RegisterTypes(id, TypeMap::of(kind))),
        (id(), any::<u8>(), any::<u8>()).prop_map(|(id, features, kind)| Query::RegisterFeatures {
            id,
            features,
            kind
        }),
        (id(), bytes(255)).prop_map(|(id, text)| Query::RegisterSymbolicPortName(id, text)),
        (name(), bytes(255)).prop_map(|(node, text)| Query::RegisterSymbolicNodeName(node, text)),
        Just(Query::Other(0x0999)),
    ]
}

prop_compose! {
    fn command()(
        lun in any::<[u8; 8]>(),
        (reference, priority) in (any::<u8>(), 0u8..16),
        attribute in prop::sample::select(vec![
            TaskAttribute::Simple, TaskAttribute::HeadOfQueue, TaskAttribute::Ordered, TaskAttribute::Aca,
        ]),
        management in option::of(prop::sample::select(vec![
            TaskManagement::ClearAca, TaskManagement::TargetReset, TaskManagement::LunReset,
            TaskManagement::ClearTaskSet, TaskManagement::AbortTaskSet,
        ])),
        (read, write, data_bytes) in any::<(bool, bool, u32)>(),
        words in 4usize..=67,
        seed in any::<u8>(),
    ) -> fcp::Command {
        let cdb = Bytes::from(vec![seed; words * 4]);
        fcp::Command { lun, reference, priority, attribute, management, read, write, cdb, data_bytes }
    }
}

fn response() -> impl Strategy<Value = fcp::Response> {
    let residual = prop_oneof![
        Just(Residual::None),
        any::<u32>().prop_map(Residual::Under),
        any::<u32>().prop_map(Residual::Over)
    ];
    (any::<u8>(), residual, option::of(any::<u8>()), bytes(96))
        .prop_map(|(status, residual, code, sense)| fcp::Response { status, residual, code, sense })
}

fn session() -> impl Strategy<Value = SessionMessage> {
    let modes = vec![AddressMode::Translation, AddressMode::Transparent, AddressMode::Other(2)];
    let bind = (any::<u16>(), prop::sample::select(modes), any::<u8>(), any::<u32>(), name(), name()).prop_map(
        |(liveness_s, mode, version, user, source, destination)| Bind {
            liveness_s,
            mode,
            version,
            user,
            source,
            destination,
        },
    );
    let statuses = vec![
        BindStatus::Success,
        BindStatus::Unspecified,
        BindStatus::NoSuchDevice,
        BindStatus::SessionExists,
        BindStatus::LackOfResources,
        BindStatus::IncompatibleMode,
        BindStatus::IncorrectVersion,
        BindStatus::NotSynchronized,
    ];
    prop_oneof![
        bind.clone().prop_map(SessionMessage::Bind),
        (bind, prop::sample::select(statuses), any::<u16>())
            .prop_map(|(bind, status, handle)| SessionMessage::BindResponse { bind, status, handle }),
        (any::<u32>(), any::<u16>()).prop_map(|(user, handle)| SessionMessage::Unbind { user, handle }),
        any::<(u32, u16, u16)>().prop_map(|(user, handle, status)| SessionMessage::UnbindResponse {
            user,
            handle,
            status
        }),
        (any::<u16>(), any::<u32>(), name(), name()).prop_map(|(interval_s, count, source, destination)| {
            SessionMessage::LivenessTest { interval_s, count, source, destination }
        }),
    ]
}

fn ifcp_message() -> impl Strategy<Value = ifcp::Message> {
    const CARRIED: [Sof; 4] = [Sof::Initiate2, Sof::Normal2, Sof::Initiate3, Sof::Normal3];
    let device = (
        frame(&CARRIED, &[Eof::Normal, Eof::Terminate]),
        any::<bool>(),
        any::<bool>(),
        option::of(1u8..),
        any::<u64>(),
    );
    prop_oneof![
        device.prop_map(|(frame, transparent, special, accepted, time)| ifcp::Message::Device(DeviceFrame {
            frame,
            mode: if transparent { AddressMode::Transparent } else { AddressMode::Translation },
            special,
            accepted: accepted.map(els::Command),
            time: TimeStamp(time),
        })),
        (session(), any::<u64>()).prop_map(|(message, time)| ifcp::Message::Session(message, TimeStamp(time))),
    ]
}

fn fcip_message() -> impl Strategy<Value = fcip::Message> {
    let special = (any::<(bool, u64, u64, u8, u16, u32)>(), name(), name()).prop_map(
        |((changed, entity, nonce, usage_flags, usage_code, keep_alive_ms), source, destination)| fcip::SpecialFrame {
            changed,
            source,
            entity,
            nonce,
            usage_flags,
            usage_code,
            destination,
            keep_alive_ms,
        },
    );
    prop_oneof![
        (frame(&SOFS, &EOFS), any::<u64>()).prop_map(|(frame, time)| fcip::Message::Frame(frame, TimeStamp(time))),
        (special, any::<u64>()).prop_map(|(special, time)| fcip::Message::Special(special, TimeStamp(time))),
    ]
}

fn descriptor() -> impl Strategy<Value = fip::Descriptor> {
    use fip::Descriptor;
    let service = || {
        // Padding cannot be told from content: link services are whole words.
        (header(), vec(any::<[u8; 4]>(), 0..=200))
            .prop_map(|(header, words)| fip::LinkService { header, payload: words.concat().into() })
    };
    let map = || 0u32..1 << 24;
    prop_oneof![
        any::<u8>().prop_map(Descriptor::Priority),
        any::<[u8; 6]>().prop_map(Descriptor::Mac),
        map().prop_map(Descriptor::FcMap),
        name().prop_map(Descriptor::Name),
        (any::<u16>(), map(), name()).prop_map(|(id, fc_map, name)| Descriptor::Fabric { id, fc_map, name }),
        any::<u16>().prop_map(Descriptor::MaxFcoeBytes),
        service().prop_map(Descriptor::Flogi),
        service().prop_map(Descriptor::Fdisc),
        service().prop_map(Descriptor::Logo),
        service().prop_map(Descriptor::Elp),
        (any::<[u8; 6]>(), id(), name()).prop_map(|(mac, id, name)| Descriptor::Port { mac, id, name }),
        any::<(bool, u32)>().prop_map(|(off, ms)| Descriptor::KeepAlivePeriod { off, ms }),
        any::<[u8; 8]>().prop_map(Descriptor::Vendor),
        (0u16..4096).prop_map(Descriptor::Vlan),
    ]
}

fn encoded(encode: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut bytes = BytesMut::new();
    encode(&mut bytes);
    bytes
}

proptest! {
    #[test]
    fn a_frame_comes_back(frame in frame(&SOFS, &EOFS)) {
        let content = encoded(|into| frame.encode_content(into)).freeze();
        prop_assert_eq!(content.len(), frame.content_bytes());
        prop_assert_eq!(Frame::decode_content(frame.sof, &content, frame.eof).unwrap(), frame);
    }

    #[test]
    fn a_bit_that_turns_over_is_noticed(
        frame in frame(&SOFS, &EOFS), place in any::<prop::sample::Index>(), bit in 0u8..8,
    ) {
        let mut content = encoded(|into| frame.encode_content(into));
        let place = place.index(content.len());
        content[place] ^= 1 << bit;
        prop_assert!(Frame::decode_content(frame.sof, &content.freeze(), frame.eof).is_err());
    }

    #[test]
    fn a_request_comes_back(request in request()) {
        prop_assert_eq!(Request::parse(&request.to_bytes()).unwrap(), request);
    }

    #[test]
    fn replies_come_back(
        login in login(), reason in any::<(u8, u8)>(), half in any::<[u16; 4]>(), seq_id in option::of(any::<u8>()),
        ids in (id(), id()), words in any::<(u32, u32)>(),
    ) {
        prop_assert_eq!(Login::parse(&login.to_bytes()).unwrap(), login);
        let reject = els::Reject { reason: reason.0, explanation: reason.1 };
        prop_assert_eq!(els::Reject::parse(&reject.to_bytes()).unwrap(), reject);
        let [ox_id, rx_id, low_seq_cnt, high_seq_cnt] = half;
        let accept = BasicAccept { seq_id, ox_id, rx_id, low_seq_cnt, high_seq_cnt };
        prop_assert_eq!(BasicAccept::parse(&accept.to_bytes()).unwrap(), accept);
        let reject = BasicReject { reason: reason.0, explanation: reason.1, vendor: 7 };
        prop_assert_eq!(BasicReject::parse(&reject.to_bytes()).unwrap(), reject);
        let (transferred, status) = words;
        let state = els::ExchangeStatus { ox_id, rx_id, originator: ids.0, responder: ids.1, transferred, status };
        prop_assert_eq!(els::ExchangeStatus::parse(&state.to_bytes()).unwrap(), state);
    }

    #[test]
    fn a_query_comes_back(query in query()) {
        let (header, content) = CtHeader::parse(&query.to_bytes()).unwrap();
        prop_assert_eq!(Query::parse(&header, &content).unwrap(), query);
    }

    #[test]
    fn lists_of_the_name_server_come_back(ports in vec((id(), name()), 1..60)) {
        let content = name_server::list_of_ports(&ports);
        prop_assert_eq!(&name_server::parse_list_of_ports(&content).unwrap(), &ports);
        let ids: Vec<FcId> = ports.iter().map(|(id, _)| *id).collect();
        prop_assert_eq!(name_server::parse_list_of_ids(&name_server::list_of_ids(&ids)).unwrap(), ids);
        prop_assert!(name_server::parse_list_of_ports(&content[..content.len() - 1]).is_err());
    }

    #[test]
    fn information_units_come_back(command in command(), response in response(), ready in any::<(u32, u32)>()) {
        prop_assert_eq!(fcp::Command::parse(&command.to_bytes()).unwrap(), command);
        prop_assert_eq!(fcp::Response::parse(&response.to_bytes()).unwrap(), response);
        let ready = fcp::TransferReady { offset: ready.0, bytes: ready.1 };
        prop_assert_eq!(fcp::TransferReady::parse(&ready.to_bytes()).unwrap(), ready);
    }

    #[test]
    fn a_stream_of_ifcp_comes_back_however_it_is_cut(messages in vec(ifcp_message(), 1..4), cut in 1usize..200) {
        let all = encoded(|into| messages.iter().for_each(|message| message.encode(into)));
        let (mut stream, mut found) = (BytesMut::new(), Vec::new());
        for piece in all.chunks(cut) {
            stream.extend_from_slice(piece);
            while let Some(message) = ifcp::Message::decode(&mut stream).unwrap() {
                found.push(message.unwrap());
            }
        }
        prop_assert_eq!(found, messages);
        prop_assert!(stream.is_empty());
    }

    #[test]
    fn a_stream_of_fcip_comes_back_however_it_is_cut(messages in vec(fcip_message(), 1..4), cut in 1usize..200) {
        let all = encoded(|into| messages.iter().for_each(|message| message.encode(into)));
        let (mut stream, mut found) = (BytesMut::new(), Vec::new());
        for piece in all.chunks(cut) {
            stream.extend_from_slice(piece);
            while let Some(message) = fcip::Message::decode(&mut stream).unwrap() {
                found.push(message.unwrap());
            }
        }
        prop_assert_eq!(found, messages);
        prop_assert!(stream.is_empty());
    }

    #[test]
    fn fcoe_and_fip_come_back(
        frame in frame(&SOFS, &EOFS), macs in any::<([u8; 6], [u8; 6])>(), vlan in option::of(any::<u16>()),
        descriptors in vec(descriptor(), 0..8), flags in any::<u16>(), operation in 0usize..8,
    ) {
        let ethernet = EthernetHeader { destination: macs.0, source: macs.1, vlan };
        let bytes = encoded(|into| fcoe::encode(&ethernet, &frame, into)).freeze();
        prop_assert!(bytes.len() >= 60, "Ethernet's least without its checksum");
        let (header, kind, rest) = EthernetHeader::decode(&bytes).unwrap();
        prop_assert_eq!((header, kind), (ethernet, ETHERTYPE_FCOE));
        prop_assert_eq!(fcoe::decode(&rest).unwrap(), frame);
        let operation = [
            fip::Operation::Solicitation, fip::Operation::Advertisement, fip::Operation::LinkServiceRequest,
            fip::Operation::LinkServiceReply, fip::Operation::KeepAlive, fip::Operation::ClearVirtualLinks,
            fip::Operation::VlanRequest, fip::Operation::VlanNotification,
        ][operation];
        let message = fip::Message { operation, flags, descriptors };
        let mut bytes = encoded(|into| message.encode(into));
        bytes.extend_from_slice(&[0; 20]);
        prop_assert_eq!(fip::Message::decode(&bytes.freeze()).unwrap(), message);
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(
        bytes in bytes(400), sof in prop::sample::select(&SOFS[..]), zero in any::<bool>(),
    ) {
        let bytes = if zero { Bytes::from(vec![0; bytes.len()]) } else { bytes };
        let _ = Frame::decode_content(sof, &bytes, Eof::Normal);
        let _ = FrameHeader::parse(&bytes);
        let _ = Request::parse(&bytes);
        let _ = Login::parse(&bytes);
        let _ = els::Reject::parse(&bytes);
        let _ = fcp::Command::parse(&bytes);
        let _ = fcp::Response::parse(&bytes);
        let _ = fcp::TransferReady::parse(&bytes);
        let _ = name_server::parse_list_of_ports(&bytes);
        let _ = name_server::parse_list_of_ids(&bytes);
        let _ = fcoe::decode(&bytes);
        let _ = EthernetHeader::decode(&bytes);
        let _ = EncapsulationHeader::parse(&bytes);
        let _ = ifcp::Message::decode(&mut BytesMut::from(&bytes[..]));
        let _ = fcip::Message::decode(&mut BytesMut::from(&bytes[..]));
        if let Ok((header, content)) = CtHeader::parse(&bytes) {
            let _ = Query::parse(&header, &content);
        }
    }

    /// Past the checks of version and lengths: what only the first bytes of a message protect.
    #[test]
    fn a_damaged_message_gives_a_value_or_an_error(
        message in ifcp_message(), query in query(), request in request(), descriptors in vec(descriptor(), 1..6),
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), shorter in any::<prop::sample::Index>(),
    ) {
        let fip = fip::Message { operation: fip::Operation::Advertisement, flags: 0, descriptors };
        let damage = |mut bytes: BytesMut| {
            for (place, value) in &places {
                let place = place.index(bytes.len());
                bytes[place] = *value;
            }
            bytes.truncate(shorter.index(bytes.len() + 1));
            bytes
        };
        let _ = ifcp::Message::decode(&mut damage(encoded(|into| message.encode(into))));
        let _ = fip::Message::decode(&damage(encoded(|into| fip.encode(into))).freeze());
        let _ = Request::parse(&damage(BytesMut::from(&request.to_bytes()[..])).freeze());
        if let Ok((header, content)) = CtHeader::parse(&damage(BytesMut::from(&query.to_bytes()[..])).freeze()) {
            let _ = Query::parse(&header, &content);
        }
    }
}

#[test]
fn the_crc_is_that_of_ethernet_low_byte_first() {
    // The check value of CRC-32/ISO-HDLC: "123456789" gives 0xcbf43926.
    let payload = Bytes::from_static(b"123456789");
    let frame = Frame::class3(FrameHeader::default(), payload);
    let content = encoded(|into| frame.encode_content(into));
    let (before, crc) = content.split_at(content.len() - 4);
    assert_eq!(crc, crc32fast::hash(before).to_le_bytes());
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
}

#[test]
fn a_wrong_peer_is_refused_with_what_is_wrong() {
    let bind = SessionMessage::Unbind { user: 1, handle: 2 };
    let good = encoded(|into| ifcp::Message::Session(bind, TimeStamp::NONE).encode(into));
    let mut errors = Vec::new();
    for (place, part) in
        [(0, "complement of protocol"), (13, "complement of flags"), (27, "CRC of the FC encapsulation")]
    {
        let mut bytes = good.clone();
        bytes[place] ^= 1;
        let error = ifcp::Message::decode(&mut bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        errors.push(error);
    }
    let other = encoded(|into| {
        let frame = Frame::class3(FrameHeader::default(), Bytes::new());
        fcip::Message::Frame(frame, TimeStamp::NONE).encode(into);
    });
    let error = ifcp::Message::decode(&mut other.clone()).unwrap_err().to_string();
    assert!(error.contains("protocol of an iFCP frame = 1"), "{error}");
    let error = fcip::Message::decode(&mut good.clone()).unwrap_err().to_string();
    assert!(error.contains("FCIP"), "{error}");
}

#[test]
fn a_damaged_frame_is_left_out_and_the_stream_goes_on() {
    let frame = Frame::class3(FrameHeader::default(), Bytes::from_static(b"data"));
    let device =
        DeviceFrame { frame, mode: AddressMode::Transparent, special: false, accepted: None, time: TimeStamp::NONE };
    let mut stream = encoded(|into| ifcp::Message::Device(device.clone()).encode(into));
    let at = stream.len() - 12;
    stream[at] ^= 0x10;
    ifcp::Message::Device(device.clone()).encode(&mut stream);
    let damaged = ifcp::Message::decode(&mut stream).unwrap().unwrap().unwrap_err();
    assert!(damaged.reason.to_string().contains("FC CRC"), "{}", damaged.reason);
    assert_eq!(ifcp::Message::decode(&mut stream).unwrap().unwrap().unwrap(), ifcp::Message::Device(device));
}

#[test]
fn a_damaged_frame_costs_a_tunnel_the_frame_and_a_lost_end_the_connection() {
    let frame = Frame::class3(FrameHeader::default(), Bytes::from_static(b"data"));
    let message = fcip::Message::Frame(frame, TimeStamp::NONE);
    let good = encoded(|into| message.encode(into));
    let mut stream = good.clone();
    let at = stream.len() - 12;
    stream[at] ^= 0x10;
    stream.extend_from_slice(&good);
    let damaged = fcip::Message::decode(&mut stream).unwrap().unwrap().unwrap_err();
    assert!(damaged.reason.to_string().contains("FC CRC"), "{}", damaged.reason);
    assert_eq!(fcip::Message::decode(&mut stream).unwrap(), Some(Ok(message)));
    let mut lost = good;
    let at = lost.len() - 1;
    lost[at] ^= 1;
    assert!(fcip::Message::decode(&mut lost).unwrap_err().to_string().contains("EOF"));
}

#[test]
fn a_session_frame_that_is_none_is_left_out() {
    let unbind = SessionMessage::Unbind { user: 1, handle: 2 };
    let good = encoded(|into| ifcp::Message::Session(unbind, TimeStamp::NONE).encode(into));
    // R_CTL and type of the frame in it, with the CRC made right again.
    for (place, value) in [(32, 1), (40, 8)] {
        let mut bytes = good.clone();
        bytes[place] = value;
        let end = bytes.len() - 8;
        let sum = crc32fast::hash(&bytes[32..end]).to_le_bytes();
        bytes[end..end + 4].copy_from_slice(&sum);
        let left_out = ifcp::Message::decode(&mut bytes).unwrap().unwrap().unwrap_err();
        assert!(left_out.reason.to_string().contains("iFCP session frame"), "{}", left_out.reason);
    }
}

#[test]
fn time_stamps_are_those_of_sntp_and_know_their_wrap() {
    // RFC 3643, table 1.
    for (ns, fraction) in [(500_000_000u64, 0x8000_0000u64), (250_000_000, 0x4000_0000), (125_000_000, 0x2000_0000)] {
        assert_eq!(TimeStamp::from_ns(7_000_000_000 + ns).0, 7 << 32 | fraction);
    }
    let before = TimeStamp::from_ns(4_294_967_295_900_000_000);
    let after = TimeStamp::from_ns(100_000_000);
    assert!(before.difference_ns(after).abs_diff(200_000_000) <= 1);
    assert!(after.difference_ns(before).abs_diff(200_000_000) <= 1);
}

#[test]
fn names_and_addresses_are_written_as_people_write_them() {
    let name: Wwn = "20:00:00:1b:32:0a:0b:0c".parse().unwrap();
    assert_eq!(name, "0x2000001b320a0b0c".parse().unwrap());
    assert_eq!(name.to_string(), "20:00:00:1b:32:0a:0b:0c");
    assert_eq!(Wwn::of_mac(0x2000, [0, 0x1b, 0x32, 0x0a, 0x0b, 0x0c]), name);
    for text in
        ["", "20:00", "20:00:00:1b:32:0a:0b:0g", "2000001b320a0b0", "2:0:0:0:0:0:0:01b320a0b0c", "+000001b320a0b0c"]
    {
        let error = text.parse::<Wwn>().unwrap_err().to_string();
        assert!(error.contains("16 hexadecimal digits"), "{error}");
    }
    assert_eq!(FcId::of(1, 2, 3).to_string(), "010203");
    assert!(FcId::FABRIC_CONTROLLER.is_well_known() && !FcId::of(0xef, 0xff, 0xff).is_well_known());
}

#[test]
fn the_longest_frame_fits_into_the_length_field() {
    let frame = Frame::class3(FrameHeader::default(), Payload::Zeros(2112));
    let bytes = encoded(|into| fcip::Message::Frame(frame.clone(), TimeStamp::NONE).encode(into));
    assert_eq!(bytes.len(), ENCAPSULATED_BYTES_MAX);
    let header = EncapsulationHeader::parse(&bytes).unwrap();
    assert_eq!((header.protocol, header.bytes), (EncapsulationProtocol::Fcip, 2176));
    let decoded = fcip::Message::decode(&mut bytes.clone()).unwrap();
    assert_eq!(decoded, Some(Ok(fcip::Message::Frame(frame, TimeStamp::NONE))));
}
