//! Fibre Channel frames that a receiver looks closer at: right in most fields, wrong in some.

use super::input::Input;
use bytes::Bytes;
use wire::fc::els::{
    self, AffectedPorts, ChangeRegistration, Command, DiscoverAddress, ExchangeName, Logout, Request, Scope,
};
use wire::fc::name_server::{Query, QueryScope, TypeMap};
use wire::fc::{fcp, frame_control, routing, FcId, Frame, FrameHeader, FrameType, Login, Sof, Wwn};

/// Codes of link services that are answered, translated or refused.
const SERVICES: [u8; 26] = [
    0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0e, 0x0f, 0x10, 0x12, 0x13, 0x20, 0x21, 0x24, 0x50, 0x51,
    0x52, 0x54, 0x55, 0x61, 0x62, 0x78, 0x7b,
];
/// R_CTL and type of frames that somebody takes.
const KINDS: [(u8, FrameType); 12] = [
    (routing::ELS_REQUEST, FrameType::ELS),
    (routing::ELS_REQUEST, FrameType::ELS),
    (routing::ELS_REPLY, FrameType::ELS),
    (routing::UNSOLICITED_CONTROL, FrameType::CT),
    (routing::SOLICITED_CONTROL, FrameType::CT),
    (routing::UNSOLICITED_COMMAND, FrameType::FCP),
    (routing::SOLICITED_DATA, FrameType::FCP),
    (routing::DATA_DESCRIPTOR, FrameType::FCP),
    (routing::COMMAND_STATUS, FrameType::FCP),
    (routing::ABORT_SEQUENCE, FrameType::BASIC),
    (routing::BASIC_ACCEPT, FrameType::BASIC),
    (routing::BASIC_REJECT, FrameType::BASIC),
];
/// F_CTL of a whole request, a whole reply, a part of each, and a transfer of initiative.
const CONTROLS: [u32; 6] = [
    frame_control::FIRST_SEQUENCE | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE,
    frame_control::EXCHANGE_RESPONDER | frame_control::LAST_SEQUENCE | frame_control::END_SEQUENCE,
    frame_control::FIRST_SEQUENCE,
    frame_control::EXCHANGE_RESPONDER | frame_control::RELATIVE_OFFSET,
    frame_control::EXCHANGE_RESPONDER | frame_control::END_SEQUENCE | frame_control::SEQUENCE_INITIATIVE,
    frame_control::END_SEQUENCE | frame_control::RELATIVE_OFFSET | frame_control::SEQUENCE_INITIATIVE,
];

/// Name of the port of a host.
pub fn port_name(host: u8) -> Wwn {
    Wwn(0x2000_0000_0000_0000 | u64::from(host))
}

/// Service parameters of a host, of which `host` makes the names.
pub fn login(command: Command, host: u8) -> Login {
    Login {
        command: command.0,
        buffer_credits: 8,
        receive_bytes: 2048,
        fabric_port: false,
        further_addresses: command != Command::PLOGI,
        r_a_tov_ms: None,
        e_d_tov_ms: 2000,
        port: port_name(host),
        node: Wwn(0x1000_0000_0000_0000 | u64::from(host)),
        class3: true,
        sequential_delivery: false,
    }
}

fn any_login(input: &mut Input<'_>) -> Login {
    let command = input.pick(&[Command::PLOGI, Command::FLOGI, Command::FDISC, Command::PDISC]);
    let mut login = login(command, input.u8() & 3);
    if input.u8() & 7 == 0 {
        let sizes = [0, 64, 256, 2112, u16::MAX];
        (login.buffer_credits, login.receive_bytes) = (u16::from(input.u8()), input.pick(&sizes));
        (login.class3, login.fabric_port) = (input.u8() & 1 != 0, input.u8() & 1 != 0);
        (login.e_d_tov_ms, login.node) = (input.u32(), Wwn(u64::from(input.u8())));
    }
    login
}

fn any_link_service(input: &mut Input<'_>, ids: &[FcId]) -> Bytes {
    let exchange = |input: &mut Input<'_>| ExchangeName {
        originator: input.pick(ids),
        ox_id: u16::from(input.u8()),
        rx_id: input.pick(&[u16::MAX, 0, 1]),
    };
    match input.u8() % 12 {
        0 | 1 => Request::Login(any_login(input)).to_bytes(),
        2 => Request::Logout(Logout { id: input.pick(ids), port: port_name(input.u8() & 3) }).to_bytes(),
        3 => Request::DiscoverAddress(DiscoverAddress {
            hard: FcId::NONE,
            id: input.pick(ids),
            port: port_name(input.u8() & 3),
            node: Wwn(u64::from(input.u8())),
        })
        .to_bytes(),
        4 => Request::ReinstateRecoveryQualifier(exchange(input)).to_bytes(),
        5 => Request::ReadExchangeConcise(exchange(input)).to_bytes(),
        6 => Request::Register(input.pick(&[ChangeRegistration::Full, ChangeRegistration::Clear])).to_bytes(),
        7 => {
            let scopes = [Scope::Port, Scope::Area, Scope::Domain, Scope::Fabric];
            let page = |input: &mut Input<'_>| AffectedPorts {
                event: input.u8() & 15,
                scope: input.pick(&scopes),
                id: input.pick(ids),
            };
            Request::StateChange((0..input.u8() % 4).map(|_| page(input)).collect()).to_bytes()
        }
        8 => els::accept(),
        9 => Bytes::copy_from_slice(&els::accept_login(&any_login(input))),
        10 => Request::Echo(Bytes::copy_from_slice(input.bytes(32))).to_bytes(),
        _ => {
            let mut bytes = vec![input.pick(&SERVICES), 0, 0, 0];
            bytes.extend_from_slice(input.bytes(120));
            for at in [5, 9, 13, 25] {
                if bytes.len() > at + 3 && input.u8() & 1 != 0 {
                    bytes[at..at + 3].copy_from_slice(&input.pick(ids).to_bytes());
                }
            }
            Bytes::from(bytes)
        }
    }
}

fn any_query(input: &mut Input<'_>, ids: &[FcId]) -> Bytes {
    let id = input.pick(ids);
    let name = port_name(input.u8() & 3);
    let scope = QueryScope { domain: input.u8() & 1, area: input.u8() & 1 };
    let kind = input.pick(&[8, 0, 255]);
    let text = Bytes::copy_from_slice(input.bytes(20));
    match input.u8() % 16 {
        0 => Query::AllNext(id),
        1 => Query::PortNameOf(id),
        2 => Query::NodeNameOf(id),
        3 => Query::FeaturesOf(id),
        4 => Query::IdOfPort(name),
        5 => Query::IdsOfType { kind, scope },
        6 => Query::PortsOfType { kind, scope },
        7 => Query::IdsOfPortType { port_type: input.pick(&[1, 0x7f]), scope },
        8 => Query::RegisterPortName(id, name),
        9 => Query::RegisterNodeName(id, name),
        10 => Query::RegisterTypes(id, TypeMap::of(kind)),
        11 => Query::RegisterFeatures { id, features: input.u8(), kind },
        12 => Query::RegisterSymbolicPortName(id, text),
        13 => Query::RegisterSymbolicNodeName(name, text),
        14 => Query::Other(input.u16()),
        _ => return wire::fc::ct::CtHeader::name_server(0x172).accept(&text),
    }
    .to_bytes()
}

fn any_command(input: &mut Input<'_>) -> Bytes {
    let mut cdb = [0_u8; 16];
    cdb[0] = input.pick(&[0x00, 0x03, 0x12, 0x1a, 0x25, 0x28, 0x2a, 0x35, 0x42, 0x5f, 0x88, 0x89, 0x8a, 0x93, 0xa0]);
    (cdb[5], cdb[8]) = (input.u8(), input.u8());
    if input.u8() & 3 == 0 {
        let any = input.bytes(15);
        cdb[1..=any.len()].copy_from_slice(any);
    }
    let flags = input.u8();
    let managements = [
        fcp::TaskManagement::LunReset,
        fcp::TaskManagement::TargetReset,
        fcp::TaskManagement::AbortTaskSet,
        fcp::TaskManagement::ClearTaskSet,
        fcp::TaskManagement::ClearAca,
    ];
    let command = fcp::Command {
        lun: [0, flags >> 7, 0, 0, 0, 0, 0, 0],
        reference: 0,
        priority: 0,
        attribute: input.pick(&[fcp::TaskAttribute::Simple, fcp::TaskAttribute::Ordered, fcp::TaskAttribute::Aca]),
        management: (flags & 0x70 == 0x70).then(|| input.pick(&managements)),
        read: flags & 1 != 0,
        write: flags & 2 != 0,
        cdb: Bytes::copy_from_slice(&cdb),
        data_bytes: u32::from(input.u8()) * input.pick(&[512, 1, 4096]),
    };
    command.to_bytes()
}

fn payload(input: &mut Input<'_>, kind: FrameType, ids: &[FcId]) -> Bytes {
    if input.u8() & 7 == 0 {
        let length = usize::from(input.u16()) % 2200;
        let mut any = input.bytes(length).to_vec();
        if input.u8() & 1 != 0 {
            any.resize(length, 0x5a);
        }
        return Bytes::from(any);
    }
    let whole = match kind {
        FrameType::ELS => any_link_service(input, ids),
        FrameType::CT => any_query(input, ids),
        FrameType::FCP => match input.u8() % 4 {
            0 | 1 => any_command(input),
            2 => fcp::TransferReady { offset: u32::from(input.u8()) * 256, bytes: u32::from(input.u8()) * 256 }
                .to_bytes(),
            _ => Bytes::from(vec![0x5a; usize::from(input.u8()) * 8]),
        },
        _ => Bytes::copy_from_slice(input.bytes(16)),
    };
    match input.u8() {
        cut @ 0..8 => whole.slice(..whole.len().min(usize::from(cut))),
        _ => whole,
    }
}

/// A frame between ports of `ids`, which holds one at least.
pub fn frame(input: &mut Input<'_>, ids: &[FcId]) -> Frame {
    let (r_ctl, kind) = input.pick(&KINDS);
    let mut header = FrameHeader {
        r_ctl,
        kind,
        s_id: input.pick(ids),
        d_id: input.pick(ids),
        f_ctl: input.pick(&CONTROLS),
        ox_id: u16::from(input.u8() & 15),
        rx_id: input.pick(&[u16::MAX, u16::MAX, 0, 1, 2]),
        seq_id: input.u8() & 3,
        ..FrameHeader::default()
    };
    if input.u8() & 7 == 0 {
        (header.r_ctl, header.kind) = (input.u8(), FrameType(input.u8()));
        (header.f_ctl, header.seq_cnt) = (input.u32() & 0xff_ffff, u16::from(input.u8()));
        (header.parameter, header.df_ctl, header.cs_ctl) = (input.u32(), input.u8() & 0x33, input.u8());
    }
    if kind == FrameType::FCP && input.u8() & 1 != 0 {
        header.parameter = u32::from(input.u8()) * 256;
        header.seq_cnt = u16::from(input.u8() & 3);
    }
    let kind = header.kind;
    let mut frame = Frame::class3(header, payload(input, kind, ids));
    if input.u8() & 15 == 0 {
        frame.sof = input.pick(&[Sof::Initiate2, Sof::Normal2, Sof::Normal3, Sof::Fabric]);
    }
    frame
}
