//! Packets that a reflector answers, and those that it does not.

use path_test::reflector::{Arrival, Reflector, ReflectorClock, ReflectorConfig, Refusal, SESSIONS_MAX};
use path_test::session::{train_packet, verify_tlvs};
use path_test::stamp::{verify_base, ErrorEstimate, Key, Reply, Request, TimeFormat, AUTHENTICATED_BYTES, OPEN_BYTES};
use path_test::stamp_tlv as tlv;
use proptest::prelude::*;
use std::net::SocketAddr;

const NOW_NS: u64 = 1_800_000_000_000_000_000;
const CLOCK: ReflectorClock =
    ReflectorClock { now_ns: NOW_NS, error_ns: 5000, is_synchronized: true, is_hardware: false };

fn key() -> Key {
    Key::new(b"a key of thirty-two octets or so")
}

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

fn request(sequence: u32, bytes: usize, key: Option<&Key>) -> Vec<u8> {
    let error = ErrorEstimate::of(1000, false, TimeFormat::Ntp);
    let request = Request { sequence, timestamp: TimeFormat::Ntp.encode(NOW_NS - 30_000_000), error, ssid: 9 };
    let mut packet = vec![0; bytes];
    request.encode(&mut packet, key);
    packet
}

fn ask(reflector: &mut Reflector, port: u16, packet: &[u8]) -> Result<Vec<u8>, Refusal> {
    let arrival = Arrival { peer: peer(port), packet, ttl: Some(57), traffic_class: 0xb9, at_ns: NOW_NS - 10_000 };
    let mut reply = vec![];
    reflector.handle_packet(&arrival, CLOCK, &mut reply).map(|_| reply)
}

fn flags(reply: &[u8], base: usize) -> Vec<(u8, u8)> {
    tlv::places(reply, base).map(|(place, _)| (place.kind, reply[place.at])).collect()
}

#[test]
fn a_reply_has_the_requests_fields_and_length() {
    let mut reflector = Reflector::new(ReflectorConfig::default());
    for bytes in [OPEN_BYTES, 41, 300] {
        let reply = ask(&mut reflector, 5000, &{
            let mut packet = request(3, OPEN_BYTES.max(bytes), None);
            packet.truncate(bytes);
            packet
        });
        let reply = reply.unwrap();
        assert_eq!(reply.len(), bytes);
        let fields = Reply::decode(&reply, false).unwrap();
        assert_eq!((fields.sequence, fields.sender_sequence, fields.sender_ttl), (3, 3, 57));
        assert_eq!(TimeFormat::Ntp.decode(fields.received, NOW_NS), NOW_NS - 10_000);
        assert_eq!(TimeFormat::Ntp.decode(fields.timestamp, NOW_NS), NOW_NS);
        assert_eq!(fields.ssid, if bytes < OPEN_BYTES { 0 } else { 9 });
    }
    assert_eq!(ask(&mut reflector, 5000, &[0; 40]), Err(Refusal::TooShort));
    assert_eq!(reflector.counts().replies, 3);
}

#[test]
fn reflectors_do_not_answer_each_other() {
    for (key, format) in [(None, TimeFormat::Ntp), (None, TimeFormat::Ptp), (Some(key()), TimeFormat::Ntp)] {
        let mut reflector = Reflector::new(ReflectorConfig { key: key.clone(), ..ReflectorConfig::default() });
        let error = ErrorEstimate::of(1000, false, format);
        let timestamp = format.encode(NOW_NS - 30_000_000);
        let mut packet = vec![0; 300];
        Request { sequence: 3, timestamp, error, ssid: 9 }.encode(&mut packet, key.as_ref());
        let reply = ask(&mut reflector, 862, &packet).unwrap();
        assert_eq!(ask(&mut reflector, 862, &reply), Err(Refusal::IsReply));
        assert_eq!((reflector.counts().replies, reflector.counts().are_replies), (1, 1));
    }
}

#[test]
fn replies_are_numbered_by_session_and_the_number_of_sessions_is_bounded() {
    let mut reflector = Reflector::new(ReflectorConfig { is_stateful: true, ..ReflectorConfig::default() });
    let number = |reflector: &mut Reflector, port: u16, sequence: u32| {
        let reply = ask(reflector, port, &request(sequence, OPEN_BYTES, None)).unwrap();
        Reply::decode(&reply, false).unwrap().sequence
    };
    assert_eq!([0, 1, 5].map(|sequence| number(&mut reflector, 1, sequence)), [0, 1, 2]);
    assert_eq!(number(&mut reflector, 2, 5), 0);
    for port in 10..10 + SESSIONS_MAX as u16 {
        number(&mut reflector, port, 0);
    }
    assert_eq!(number(&mut reflector, 60_000, 77), 77, "answered as without state");
}

#[test]
fn a_packet_without_the_key_has_no_answer() {
    let mut reflector = Reflector::new(ReflectorConfig { key: Some(key()), ..ReflectorConfig::default() });
    let right = request(1, AUTHENTICATED_BYTES, Some(&key()));
    let reply = ask(&mut reflector, 1, &right).unwrap();
    assert!(verify_base(&reply, &key()));
    for at in 0..AUTHENTICATED_BYTES {
        let mut wrong = right.clone();
        wrong[at] ^= 1;
        assert_eq!(ask(&mut reflector, 1, &wrong), Err(Refusal::WrongHmac), "octet {at}");
    }
    assert_eq!(ask(&mut reflector, 1, &request(1, OPEN_BYTES, None)), Err(Refusal::TooShort));
}

#[test]
fn tlvs_are_filled_in_or_marked() {
    let mut reflector = Reflector::new(ReflectorConfig::default());
    let mut packet = request(1, OPEN_BYTES, None);
    tlv::push(&mut packet, tlv::TIMESTAMP_INFORMATION, &[0; 4]);
    tlv::push(&mut packet, tlv::CLASS_OF_SERVICE, &[0xb8, 0, 0, 0]);
    tlv::push(&mut packet, 200, b"whatever");
    tlv::push(&mut packet, tlv::REPLY_CONTROL, &[0; 12]);
    tlv::push(&mut packet, tlv::EXTRA_PADDING, &[0; 10]);
    let reply = ask(&mut reflector, 1, &packet).unwrap();
    let (known, unknown) = (0, tlv::UNRECOGNIZED);
    assert_eq!(flags(&reply, OPEN_BYTES), [(3, known), (4, known), (200, unknown), (12, unknown), (1, known)]);
    assert_eq!(reply[48..52], [tlv::SOURCE_NTP, tlv::METHOD_SOFTWARE, tlv::SOURCE_NTP, tlv::METHOD_SOFTWARE]);
    // It arrived with DSCP 46 and ECN 1 (RFC 8972, 4.4).
    assert_eq!(reply[56..58], [0xb8 | 46 >> 4, (46 & 15) << 4 | 1 << 2]);
    let mut long = request(1, OPEN_BYTES, None);
    long.extend_from_slice(&[0x80, 200, 0, 99, 1, 2]);
    let reply = ask(&mut reflector, 1, &long).unwrap();
    assert_eq!(flags(&reply, OPEN_BYTES), [(200, tlv::UNRECOGNIZED | tlv::MALFORMED)]);
    let mut wrong = request(1, OPEN_BYTES, None);
    tlv::push(&mut wrong, tlv::TIMESTAMP_INFORMATION, &[0; 5]);
    assert_eq!(flags(&ask(&mut reflector, 1, &wrong).unwrap(), OPEN_BYTES), [(3, tlv::MALFORMED)]);
}

#[test]
fn a_wrong_hmac_of_tlvs_marks_all_of_them() {
    let mut reflector = Reflector::new(ReflectorConfig { key: Some(key()), ..ReflectorConfig::default() });
    let mut unsigned = request(1, AUTHENTICATED_BYTES, Some(&key()));
    tlv::push(&mut unsigned, tlv::TIMESTAMP_INFORMATION, &[0; 4]);
    let mut signed = unsigned.clone();
    let at = signed.len();
    tlv::push(&mut signed, tlv::HMAC, &[0; 16]);
    let mut wrong = signed.clone();
    tlv::sign(&mut signed, AUTHENTICATED_BYTES, at, &key());
    let reply = ask(&mut reflector, 1, &signed).unwrap();
    assert_eq!(flags(&reply, AUTHENTICATED_BYTES), [(3, 0), (8, 0)]);
    assert!(verify_tlvs(&reply, Some(&key())), "what the reflector filled in is signed anew");
    for packet in [&mut unsigned, &mut wrong] {
        let reply = ask(&mut reflector, 1, packet).unwrap();
        assert!(flags(&reply, AUTHENTICATED_BYTES).iter().all(|(_, flags)| *flags == tlv::INTEGRITY));
        assert_eq!(reply[AUTHENTICATED_BYTES + 4..AUTHENTICATED_BYTES + 8], [0; 4], "and nothing is filled in");
    }
}

#[test]
fn a_reply_is_shorter_where_it_is_asked_for_and_allowed() {
    let error = ErrorEstimate::of(1000, false, TimeFormat::Ntp);
    let request = Request { sequence: 4, timestamp: 5, error, ssid: 6 };
    for key in [None, Some(key())] {
        let mut packet = vec![];
        train_packet(&request, key.as_ref(), 1472, &mut packet);
        assert_eq!(packet.len(), 1472);
        let base = if key.is_some() { AUTHENTICATED_BYTES } else { OPEN_BYTES };
        let config = |short_replies| ReflectorConfig { key: key.clone(), short_replies, ..ReflectorConfig::default() };
        let short = ask(&mut Reflector::new(config(true)), 1, &packet).unwrap();
        assert_eq!(short.len(), base + 16 + if key.is_some() { 20 } else { 0 });
        assert!(verify_tlvs(&short, key.as_ref()));
        assert_eq!(flags(&short, base)[0], (tlv::REPLY_CONTROL, 0));
        let whole = ask(&mut Reflector::new(config(false)), 1, &packet).unwrap();
        assert_eq!((whole.len(), flags(&whole, base)[0]), (1472, (tlv::REPLY_CONTROL, tlv::UNRECOGNIZED)));
    }
    let mut packet = vec![];
    train_packet(&request, None, OPEN_BYTES + 5, &mut packet);
    assert_eq!(packet.len(), OPEN_BYTES + 5, "no room to ask: padding alone");
}

proptest! {
    #[test]
    fn no_reply_is_longer_than_its_packet(
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        kinds in proptest::collection::vec((prop_oneof![Just(1u8), Just(3), Just(4), Just(8), Just(12), any::<u8>()],
            proptest::collection::vec(any::<u8>(), 0..40)), 0..8),
        signed: bool,
        short_replies: bool,
    ) {
        let key = signed.then(key);
        let mut packet = request(1, if signed { AUTHENTICATED_BYTES } else { OPEN_BYTES }, key.as_ref());
        for (kind, value) in kinds {
            tlv::push(&mut packet, kind, &value);
        }
        let mut reflector = Reflector::new(ReflectorConfig { key, short_replies, is_stateful: true });
        for packet in [&packet, &bytes, &[&packet[..], &bytes].concat()] {
            if let Ok(reply) = ask(&mut reflector, 1, packet) {
                prop_assert!(reply.len() <= packet.len());
                prop_assert!(short_replies || reply.len() == packet.len());
            }
        }
    }
}
