//! Formats of packets, by the RFCs' own figures, and hostile bytes.

use path_test::stamp::{verify_base, ErrorEstimate, Key, Reply, Request, TimeFormat, AUTHENTICATED_BYTES, OPEN_BYTES};
use path_test::stamp_tlv as tlv;
use proptest::prelude::*;

const ERROR: ErrorEstimate =
    ErrorEstimate { synchronized: true, format: TimeFormat::Ntp, scale: 0x15, multiplier: 0x77 };

fn reply() -> Reply {
    Reply {
        sequence: 0x0102_0304,
        timestamp: 0x1112_1314_1516_1718,
        error: ERROR,
        ssid: 0x2122,
        received: 0x3132_3334_3536_3738,
        sender_sequence: 0x4142_4344,
        sender_timestamp: 0x5152_5354_5556_5758,
        sender_error: ERROR,
        sender_ttl: 61,
    }
}

#[test]
fn a_request_stands_as_in_figures_2_and_4_of_rfc_8762() {
    let request = Request { sequence: 7, timestamp: 0x1112_1314_1516_1718, error: ERROR, ssid: 0x2122 };
    let mut open = [0xff; OPEN_BYTES];
    request.encode(&mut open, None);
    assert_eq!(open[..4], [0, 0, 0, 7]);
    assert_eq!(open[4..12], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
    assert_eq!(open[12..16], [0x95, 0x77, 0x21, 0x22]);
    assert_eq!(open[16..], [0; 28]);
    let key = Key::new(b"0123456789abcdef");
    let mut signed = [0xff; AUTHENTICATED_BYTES];
    request.encode(&mut signed, Some(&key));
    assert_eq!((&signed[..4], &signed[4..16]), (&[0, 0, 0, 7][..], &[0; 12][..]));
    assert_eq!(signed[16..28], [0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x95, 0x77, 0x21, 0x22]);
    assert_eq!(signed[28..96], [0; 68]);
    assert!(verify_base(&signed, &key));
    assert_eq!(Request::decode(&open, false), Some(request));
    assert_eq!(Request::decode(&signed, true), Some(request));
}

#[test]
fn a_reply_stands_as_in_figures_5_and_6_of_rfc_8762() {
    let mut open = [0xff; OPEN_BYTES];
    reply().encode(&mut open, None);
    assert_eq!(open[14..24], [0x21, 0x22, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38]);
    assert_eq!(open[24..28], [0x41, 0x42, 0x43, 0x44]);
    assert_eq!(open[36..44], [0x95, 0x77, 0, 0, 61, 0, 0, 0]);
    let key = Key::new(b"0123456789abcdef");
    let mut signed = [0xff; AUTHENTICATED_BYTES];
    reply().encode(&mut signed, Some(&key));
    assert_eq!(signed[28..40], [0, 0, 0, 0, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38]);
    assert_eq!(signed[48..52], [0x41, 0x42, 0x43, 0x44]);
    assert_eq!(signed[64..82], [0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x95, 0x77, 0, 0, 0, 0, 0, 0, 61, 0]);
    // TWAMP's has 41 octets (RFC 5357, 4.2.1), which are the first of these.
    let mut short = [0xff; 41];
    reply().encode(&mut short, None);
    assert_eq!(short[..], open[..41]);
    assert_eq!(Reply::decode(&short, false), Some(reply()));
    assert_eq!(Reply::decode(&short[..40], false), None);
}

#[test]
fn hmac_is_that_of_rfc_4231_truncated() {
    // RFC 4231, 4.3: the second test case.
    let signed = Key::new(b"Jefe").sign(&[b"what do ya want ", b"for nothing?"]);
    assert_eq!(signed[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
    assert!(!Key::new(b"Jefe").verify(&[b"what do ya want for nothing?"], &signed[..8]), "all of it is needed");
    assert!(Key::new(b"Jefe").verify(&[b"what do ya want for nothing?"], &signed));
}

#[test]
fn times_pass_the_end_of_an_era() {
    // NTP's first era ends on 7 February 2036, at 06:28:16 UTC (RFC 5905, 6).
    let end_s = 2_085_978_496_u64;
    let bits = TimeFormat::Ntp.encode(end_s * 1_000_000_000 + 5);
    assert_eq!(bits >> 32, 0);
    assert_eq!(TimeFormat::Ntp.decode(bits, (end_s - 3) * 1_000_000_000), end_s * 1_000_000_000 + 5);
}

proptest! {
    #[test]
    fn times_go_through_both_forms(ns in 0u64..18_000_000_000_000_000_000, near_s in -1_000_000_000i64..1_000_000_000) {
        let near = ns.saturating_add_signed(near_s * 1_000_000_000);
        for format in [TimeFormat::Ntp, TimeFormat::Ptp] {
            prop_assert_eq!(format.decode(format.encode(ns), near), ns);
        }
    }

    #[test]
    fn an_error_is_never_told_smaller_than_it_is(error_ns in 0u64..1_000_000_000_000) {
        let told = ErrorEstimate::of(error_ns, true, TimeFormat::Ntp);
        prop_assert!(told.multiplier > 0);
        prop_assert!(told.error_ns() + 1 >= error_ns, "{:?}", told);
        prop_assert!(told.error_ns() <= error_ns + error_ns / 64 + 2, "{:?}", told);
        prop_assert_eq!(ErrorEstimate::decode(told.encode()), told);
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), from in 0usize..120) {
        let key = Key::new(b"0123456789abcdef");
        for authenticated in [false, true] {
            let _ = Request::decode(&bytes, authenticated);
            let _ = Reply::decode(&bytes, authenticated);
            let _ = tlv::verify(&bytes, from, Some(&key), authenticated);
        }
        prop_assert!(!verify_base(&bytes, &key));
        let mut end = from;
        for (place, fits) in tlv::places(&bytes, from) {
            prop_assert!(place.at >= end && (!fits || place.end() <= bytes.len()));
            end = if fits { place.end() } else { bytes.len() };
        }
    }
}
