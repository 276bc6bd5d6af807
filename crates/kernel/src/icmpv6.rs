//! IPv6 packets that a router cannot forward: the ICMPv6 message to their sender (RFC 4443). No router fragments them
//! (RFC 8200, 5).

use crate::icmp::Problem;
use crate::segment::{folded, sum_of};
use std::net::Ipv6Addr;

/// Next header number of ICMPv6.
const ICMPV6: u8 = 58;
/// Header of IPv6, bytes.
const HEADER: usize = 40;
/// Header of a message about a packet, bytes.
const ICMP_HEADER: usize = 8;
/// Largest message about a packet, bytes: the least MTU of IPv6 (RFC 4443, 2.4 c).
const MOST: usize = 1280;
/// Hop limit of a router's own packets (RFC 1700, "IP time to live parameter").
const OWN_HOP_LIMIT: u8 = 64;
/// Types below are error messages, about which there is none (RFC 4443, 2.1 and 2.4 e.1).
const FIRST_INFORMATIONAL: u8 = 128;
/// Redirect, about which there is none either (RFC 4443, 2.4 e.2).
const REDIRECT: u8 = 137;

/// Returns the message of the router `from` to the sender of `packet`, an IPv6 packet as it came; None where there is
/// to be none.
pub(crate) fn message(packet: &[u8], problem: Problem, from: Ipv6Addr) -> Option<Vec<u8>> {
    if packet.len() < HEADER || packet[0] >> 4 != 6 {
        return None;
    }
    let (source, destination) = (address(packet, 8), address(packet, 24));
    let single = !source.is_unspecified() && !source.is_multicast() && !source.is_loopback();
    // Of a group's packet its sender has to know the path's MTU (RFC 4443, 2.4 e.3).
    let about_many = destination.is_multicast() && !matches!(problem, Problem::TooBig(_));
    if !single || about_many || is_about_itself(packet) {
        return None;
    }
    let quoted = &packet[..packet.len().min(MOST - HEADER - ICMP_HEADER)];
    let length = ICMP_HEADER + quoted.len();
    let (kind, code, mtu) = match problem {
        Problem::TimeExceeded => (3, 0, 0),
        Problem::TooBig(mtu) => (2, 0, mtu),
    };
    let mut made = Vec::with_capacity(HEADER + length);
    made.extend([0x60, 0, 0, 0]);
    made.extend((length as u16).to_be_bytes());
    made.extend([ICMPV6, OWN_HOP_LIMIT]);
    made.extend(from.octets());
    made.extend(source.octets());
    made.extend([kind, code, 0, 0]);
    made.extend(mtu.to_be_bytes());
    made.extend(quoted);
    let sum = !checked_sum(&made);
    made[HEADER + 2..HEADER + 4].copy_from_slice(&sum.to_be_bytes());
    Some(made)
}

/// Sum of an ICMPv6 packet with its pseudo-header (RFC 8200, 8.1), which counts addresses, length and next header.
fn checked_sum(packet: &[u8]) -> u16 {
    let pseudo = u32::from(sum_of(&packet[8..HEADER])) + (packet.len() - HEADER) as u32 + u32::from(ICMPV6);
    folded(pseudo + u32::from(sum_of(&packet[HEADER..])))
}

/// The address at byte `at` of a packet.
fn address(packet: &[u8], at: usize) -> Ipv6Addr {
    Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|byte| packet[at + byte]))
}

/// Returns true if `packet` may be a message about a packet: one of them, or a fragment that does not tell.
fn is_about_itself(packet: &[u8]) -> bool {
    let (mut next, mut at) = (packet[6], HEADER);
    loop {
        let Some(header) = packet.get(at..) else { return next == ICMPV6 };
        match next {
            ICMPV6 => return header.first().is_none_or(|&kind| kind < FIRST_INFORMATIONAL || kind == REDIRECT),
            // Hop-by-hop options, routing, destination options: their length counts 8 bytes beyond the first 8.
            0 | 43 | 60 if header.len() >= 2 => (next, at) = (header[0], at + 8 * (1 + usize::from(header[1]))),
            // A fragment: its offset in the upper 13 bits of the second pair of bytes.
            44 if header.len() >= 8 => {
                if u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0 {
                    return header[0] == ICMPV6;
                }
                (next, at) = (header[0], at + 8);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 1, 2);

    /// A packet of `bytes` from 2001:2::1 to 2001:2::2 whose header is followed by `next`.
    fn packet(bytes: usize, next: u8) -> Vec<u8> {
        let mut made = vec![0x60, 0, 0, 0];
        made.extend(((bytes - HEADER) as u16).to_be_bytes());
        made.extend([next, 1]);
        for last in [1, 2] {
            made.extend(Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, last).octets());
        }
        made.extend((HEADER..bytes).map(|at| at as u8));
        made
    }

    #[test]
    fn a_message_is_sound_and_quotes_up_to_1280_bytes() {
        for (bytes, quoted) in [(40, 40), (48, 48), (1232, 1232), (1233, 1232), (1500, 1232)] {
            let about = packet(bytes, 17);
            for (problem, head) in
                [(Problem::TimeExceeded, [3, 0, 0, 0, 0, 0]), (Problem::TooBig(1400), [2, 0, 0, 0, 0x05, 0x78])]
            {
                let message = message(&about, problem, ROUTER).expect("a message");
                assert_eq!(usize::from(u16::from_be_bytes([message[4], message[5]])), message.len() - HEADER);
                assert_eq!(checked_sum(&message), 0xffff);
                assert_eq!((&message[8..24], &message[24..40]), (&ROUTER.octets()[..], &about[8..24]));
                assert_eq!(message[6..8], [ICMPV6, 64]);
                assert_eq!((&message[40..42], &message[44..48]), (&head[..2], &head[2..]));
                assert_eq!(message[48..], about[..quoted]);
            }
        }
    }

    #[test]
    fn there_is_no_message_about_messages_and_packets_for_many() {
        let about = |next, change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = packet(100, next);
            change(&mut packet);
            message(&packet, Problem::TimeExceeded, ROUTER).is_some()
        };
        assert!(about(17, &|_| ()));
        for kind in 0..=255u8 {
            assert_eq!(about(ICMPV6, &|packet| packet[40] = kind), kind >= 128 && kind != 137, "type {kind}");
            // Behind destination options of 16 bytes.
            let behind = |packet: &mut Vec<u8>| (packet[40], packet[41], packet[56]) = (ICMPV6, 1, kind);
            assert_eq!(about(60, &behind), kind >= 128 && kind != 137, "type {kind}");
        }
        assert!(about(44, &|packet| packet[40..44].copy_from_slice(&[17, 0, 0, 8])), "a later fragment of UDP");
        assert!(!about(44, &|packet| packet[40..44].copy_from_slice(&[ICMPV6, 0, 0, 8])), "one that does not tell");
        assert!(!about(17, &|packet| packet[24] = 0xff), "to a group");
        assert!(!about(17, &|packet| packet[8..24].fill(0)), "from nobody");
        assert!(!about(17, &|packet| packet[0] = 0x45) && !about(17, &|packet| packet.truncate(39)));
        let mut group = packet(100, 17);
        group[24] = 0xff;
        assert!(message(&group, Problem::TooBig(1280), ROUTER).is_some(), "a group's sender learns the MTU");
    }
}
