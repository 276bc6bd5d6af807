//! Bytes of what two gateways send each other over a connection: the simulator moves lengths, and a capture bytes.

use super::names;
use super::unit::Unit;
use crate::side::Side;
use bytes::BytesMut;
use spec::FcProtocolSpec;
use std::collections::BTreeMap;
use std::ops::Range;
use storage::fc::fcip::Settings as TunnelSettings;
use storage::fc::ifcp::{has_special_accept, is_special};
use units::Time;
use wire::encapsulation::TimeStamp;
use wire::fc::els::Command;
use wire::fc::{routing, Frame, FrameType, CRC_BYTES};
use wire::fcip::{self, SpecialFrame};
use wire::ifcp::{self, AddressMode, Bind, BindStatus, DeviceFrame, SessionMessage, VERSION};
use wire::iscsi::Payload;

/// Ports have the same addresses at both gateways.
const MODE: AddressMode = AddressMode::Transparent;

/// Encodes the units of a connection.
pub struct Encoder(Protocol);

enum Protocol {
    Ifcp {
        bind: Bind,
        /// By side: link services that its port asked for by their exchanges, where the gateways act on the accept.
        asked: [BTreeMap<u16, Command>; 2],
    },
    Fcip(SpecialFrame),
}

impl Encoder {
    /// Of connection `number` of its group, which with iFCP is that of the pair `number`.
    pub fn new(protocol: FcProtocolSpec, number: usize) -> Encoder {
        Encoder(match protocol {
            FcProtocolSpec::Ifcp => {
                let [source, destination] = names::of_pair(number).map(|names| names.port);
                // A session ends with its connection: nobody asks for signs of life.
                let bind = Bind { liveness_s: 0, mode: MODE, version: VERSION, user: 1, source, destination };
                Protocol::Ifcp { bind, asked: Default::default() }
            }
            FcProtocolSpec::Fcip => {
                let [source, destination] = names::of_gateways();
                let TunnelSettings { entity, .. } = TunnelSettings::new(source, destination);
                Protocol::Fcip(SpecialFrame {
                    changed: false,
                    source,
                    entity,
                    // Different for each connection; there is nobody who should not guess it.
                    nonce: number as u64 + 1,
                    usage_flags: SpecialFrame::CLASS_3,
                    usage_code: 0,
                    destination,
                    keep_alive_ms: 0,
                })
            }
        })
    }

    /// Appends the bytes of `unit`, which `side` sends at `now`; returns the place of zeros among them.
    pub fn encode(&mut self, now: Time, side: Side, unit: &Unit, into: &mut BytesMut) -> Range<usize> {
        let start = into.len();
        let frame = match (&mut self.0, unit) {
            (Protocol::Ifcp { bind, .. }, Unit::Open) => {
                ifcp::Message::Session(SessionMessage::Bind(*bind), TimeStamp::NONE).encode(into);
                None
            }
            (Protocol::Ifcp { bind, .. }, Unit::Opened) => {
                let (bind, status) = (*bind, BindStatus::Success);
                let response = SessionMessage::BindResponse { bind, status, handle: 1 };
                ifcp::Message::Session(response, TimeStamp::NONE).encode(into);
                None
            }
            (Protocol::Ifcp { asked, .. }, Unit::Frame(_, carried)) => {
                let (frame, time) = (carried.frame.clone(), stamp(carried.entered));
                let (special, accepted) = treatment(asked, side, &frame);
                ifcp::Message::Device(DeviceFrame { frame, mode: MODE, special, accepted, time }).encode(into);
                Some(&carried.frame)
            }
            (Protocol::Fcip(special), Unit::Open | Unit::Opened) => {
                fcip::Message::Special(*special, stamp(now)).encode(into);
                None
            }
            (Protocol::Fcip(_), Unit::Frame(_, carried)) => {
                fcip::Message::Frame(carried.frame.clone(), stamp(carried.entered)).encode(into);
                Some(&carried.frame)
            }
        };
        match frame.map(|frame| &frame.payload) {
            Some(Payload::Zeros(length)) => {
                // Behind the payload: fill bytes, CRC, delimiter word.
                let end = into.len() - start - CRC_BYTES - 4 - (length.wrapping_neg() % 4) as usize;
                end - *length as usize..end
            }
            _ => 0..0,
        }
    }
}

/// The time stamp of a simulated time. Captures begin with the run at 1970, time stamps at 1900.
fn stamp(time: Time) -> TimeStamp {
    const NS_FROM_1900: u64 = 2_208_988_800 * 1_000_000_000;
    TimeStamp::from_ns(NS_FROM_1900 + time.0)
}

/// Returns true for a link service on which the other gateway acts, and the command that it accepts, if any.
fn treatment(asked: &mut [BTreeMap<u16, Command>; 2], side: Side, frame: &Frame) -> (bool, Option<Command>) {
    let header = &frame.header;
    if header.kind != FrameType::ELS {
        return (false, None);
    }
    let Ok(command) = Command::of(&frame.payload.to_bytes()) else { return (false, None) };
    if header.r_ctl == routing::ELS_REQUEST {
        if has_special_accept(command, MODE) {
            asked[side as usize].insert(header.ox_id, command);
        }
        return (is_special(header.kind, command, MODE), None);
    }
    let accepted = asked[side.other() as usize].remove(&header.ox_id).filter(|_| command == Command::LS_ACC);
    (accepted.is_some(), accepted)
}
