//! IPv4 packets that a router cannot forward: the ICMP message to their sender (RFC 792, RFC 1191), or fragments (RFC
//! 791).

use crate::segment::sum_of;
use std::net::Ipv4Addr;

/// IP protocol number of ICMP.
pub(crate) const ICMP: u8 = 1;

/// Largest message about a packet, bytes: it quotes as much of the packet as fits (RFC 1812, 4.3.2.3).
const MOST: usize = 576;
/// IPv4 header without options, bytes.
const HEADER: usize = 20;
/// ICMP header of a message about a packet, bytes.
const ICMP_HEADER: usize = 8;
/// Types of messages about a packet, about which there is none (RFC 1812, 4.3.2.7): destination unreachable, source
/// quench, redirect, time exceeded, parameter problem.
const ABOUT_PACKETS: [u8; 5] = [3, 4, 5, 11, 12];
/// Precedence "internetwork control" in the type of service (RFC 1812, 4.3.2.5).
const INTERNETWORK_CONTROL: u8 = 0xc0;
/// Time to live of a router's own packets (RFC 1700, "IP time to live parameter").
const OWN_TTL: u8 = 64;
/// "Do not fragment", "more fragments" and the offset, in their 16 bits (RFC 791, 3.1).
const DO_NOT_FRAGMENT: u16 = 0x4000;
const MORE: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Reason that a packet goes no further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Problem {
    /// Its time to live is used up: type 11, code 0; of ICMPv6 type 3, code 0.
    TimeExceeded,
    /// The next link takes packets up to this many bytes, and it must not be fragmented: type 3, code 4; of
    /// ICMPv6 type 2, code 0.
    TooBig(u32),
}

/// Returns the message of the router `from` to the sender of `packet`, an IPv4 packet as it came; None where there is
/// to be none.
pub(crate) fn message(packet: &[u8], problem: Problem, from: Ipv4Addr, id: u16) -> Option<Vec<u8>> {
    let header = header_of(packet)?;
    let source = Ipv4Addr::new(packet[12], packet[13], packet[14], packet[15]);
    let destination = Ipv4Addr::new(packet[16], packet[17], packet[18], packet[19]);
    let single = !source.is_unspecified() && !source.is_multicast() && !source.is_broadcast() && !source.is_loopback();
    let about_many = destination.is_multicast() || destination.is_broadcast();
    let later = fragment_of(packet) & OFFSET != 0;
    let about_itself = packet[9] == ICMP && packet.get(header).is_none_or(|kind| ABOUT_PACKETS.contains(kind));
    if !single || about_many || later || about_itself {
        return None;
    }
    let quoted = &packet[..packet.len().min(MOST - HEADER - ICMP_HEADER)];
    let length = HEADER + ICMP_HEADER + quoted.len();
    let (kind, code, mtu) = match problem {
        Problem::TimeExceeded => (11, 0, 0),
        Problem::TooBig(mtu) => (3, 4, u16::try_from(mtu).unwrap_or(u16::MAX)),
    };
    let mut made = Vec::with_capacity(length);
    made.extend([0x45, INTERNETWORK_CONTROL | packet[1] & 0x1e]);
    made.extend((length as u16).to_be_bytes());
    made.extend(id.to_be_bytes());
    made.extend([0, 0, OWN_TTL, ICMP, 0, 0]);
    made.extend(from.octets());
    made.extend(source.octets());
    made.extend([kind, code, 0, 0, 0, 0]);
    made.extend(mtu.to_be_bytes());
    made.extend(quoted);
    write_sum(&mut made[..HEADER], 10);
    write_sum(&mut made[HEADER..], 2);
    Some(made)
}

/// Returns true if no router may fragment `packet`: none does that with IPv6 (RFC 8200, 5).
pub(crate) fn is_whole_only(packet: &[u8]) -> bool {
    packet.len() < HEADER || packet[0] >> 4 != 4 || fragment_of(packet) & DO_NOT_FRAGMENT != 0
}

/// Returns the fragments of `packet` for a link that takes `mtu` bytes; empty where there is no room for 8 bytes of
/// payload.
pub(crate) fn fragments(packet: &[u8], mtu: usize) -> Vec<Vec<u8>> {
    let Some(header) = header_of(packet) else { return vec![] };
    let room = mtu.saturating_sub(header) & !7;
    if room == 0 {
        return vec![];
    }
    let (own, payload) = (fragment_of(packet), &packet[header..]);
    let cut = |(index, piece): (usize, &[u8])| {
        let mut made = packet[..header].to_vec();
        let is_last = (index + 1) * room >= payload.len();
        let more = if is_last { own & MORE } else { MORE };
        let offset = usize::from(own & OFFSET) + index * room / 8;
        made[2..4].copy_from_slice(&((header + piece.len()) as u16).to_be_bytes());
        made[6..8].copy_from_slice(&(more | offset as u16 & OFFSET).to_be_bytes());
        if index > 0 {
            blank_first_only(&mut made[HEADER..]);
        }
        write_sum(&mut made, 10);
        made.extend(piece);
        made
    };
    payload.chunks(room).enumerate().map(cut).collect()
}

/// Overwrites the options that only the first fragment carries with "no operation", by which the header keeps its
/// length (RFC 791, 3.1: the flag "copied").
fn blank_first_only(options: &mut [u8]) {
    let mut at = 0;
    while at < options.len() && options[at] != 0 {
        let bytes = match options.get(at + 1) {
            _ if options[at] == 1 => 1,
            Some(&bytes) if bytes >= 2 && at + usize::from(bytes) <= options.len() => usize::from(bytes),
            _ => return,
        };
        if options[at] & 0x80 == 0 {
            options[at..at + bytes].fill(1);
        }
        at += bytes;
    }
}

/// Bytes of the header of an IPv4 packet; None where it has none.
fn header_of(packet: &[u8]) -> Option<usize> {
    let header = usize::from(packet.first()? & 15) * 4;
    (packet[0] >> 4 == 4 && (HEADER..=packet.len()).contains(&header)).then_some(header)
}

fn fragment_of(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[6], packet[7]])
}

/// Writes the checksum of `bytes`, a header or a message, at `at`.
fn write_sum(bytes: &mut [u8], at: usize) {
    bytes[at..at + 2].fill(0);
    let sum = !sum_of(bytes);
    bytes[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::HeaderChange;

    const ROUTER: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 2);

    /// A UDP packet of `bytes` with `options` behind its header.
    fn udp(bytes: usize, flags: u16, options: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45 + (options.len() / 4) as u8, 0x2e];
        packet.extend((bytes as u16).to_be_bytes());
        packet.extend([0x12, 0x34]);
        packet.extend(flags.to_be_bytes());
        packet.extend([1, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        packet.extend(options);
        let header = packet.len();
        write_sum(&mut packet, 10);
        packet.extend((header..bytes).map(|at| at as u8));
        packet
    }

    fn word(bytes: &[u8], at: usize) -> u16 {
        u16::from_be_bytes([bytes[at], bytes[at + 1]])
    }

    #[test]
    fn a_message_is_sound_and_quotes_up_to_576_bytes() {
        for (bytes, quoted) in [(28, 28), (36, 36), (548, 548), (549, 548), (1500, 548)] {
            let packet = udp(bytes, 0, &[]);
            let message = message(&packet, Problem::TimeExceeded, ROUTER, 7).expect("a message");
            assert_eq!(usize::from(word(&message, 2)), message.len());
            assert_eq!((sum_of(&message[..20]), sum_of(&message[20..])), (0xffff, 0xffff));
            assert_eq!(message[12..16], ROUTER.octets());
            assert_eq!(message[16..20], [198, 18, 0, 1]);
            assert_eq!(message[8..10], [64, ICMP]);
            assert_eq!(message[1], 0xce, "internetwork control, the packet's type of service, no ECN (RFC 3168, 5)");
            assert_eq!(message[20..28], [11, 0, message[22], message[23], 0, 0, 0, 0]);
            assert_eq!(message[28..], packet[..quoted]);
        }
    }

    #[test]
    fn too_big_tells_the_next_links_mtu() {
        let message = message(&udp(1500, DO_NOT_FRAGMENT, &[]), Problem::TooBig(1400), ROUTER, 0).expect("a message");
        assert_eq!((message[20], message[21], word(&message, 24), word(&message, 26)), (3, 4, 0, 1400));
        assert_eq!(sum_of(&message[20..]), 0xffff);
    }

    #[test]
    fn there_is_no_message_about_messages_later_fragments_and_packets_for_many() {
        let about = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut packet = udp(100, 0, &[]);
            change(&mut packet);
            message(&packet, Problem::TimeExceeded, ROUTER, 0)
        };
        assert!(about(&|_| ()).is_some());
        for kind in 0..=255u8 {
            let answered = about(&|packet| (packet[9], packet[20]) = (ICMP, kind)).is_some();
            assert_eq!(answered, !ABOUT_PACKETS.contains(&kind), "type {kind}");
        }
        assert!(about(&|packet| packet[7] = 1).is_none(), "a later fragment");
        assert!(about(&|packet| packet[6] = 0x20).is_some(), "the first fragment");
        assert!(about(&|packet| packet[16] = 224).is_none(), "to a group");
        assert!(about(&|packet| packet[12..16].fill(0)).is_none(), "from nobody");
        assert!(about(&|packet| packet[0] = 0x44).is_none(), "no header");
        assert!(about(&|packet| packet.truncate(19)).is_none());
        assert!(about(&Vec::clear).is_none());
    }

    #[test]
    fn fragments_are_sound_and_together_the_packet() {
        // A security option, which is copied, behind a record route, which is not (RFC 791, 3.1).
        let options = [7, 7, 4, 0, 0, 0, 0, 130, 3, 9, 0, 0];
        for (bytes, mtu, flags) in [(1500, 576, 0), (1500, 1499, 0), (4000, 1400, MORE | 10), (100, 60, 0)] {
            let packet = udp(bytes, flags, &options);
            let made = fragments(&packet, mtu);
            assert!(made.len() > 1);
            let mut payload: Vec<u8> = vec![];
            for (index, fragment) in made.iter().enumerate() {
                assert!(fragment.len() <= mtu && usize::from(word(fragment, 2)) == fragment.len());
                assert_eq!(sum_of(&fragment[..32]), 0xffff);
                let field = word(fragment, 6);
                assert_eq!(usize::from(field & OFFSET), usize::from(flags & OFFSET) + payload.len() / 8);
                assert_eq!(field & MORE != 0, index + 1 < made.len() || flags & MORE != 0);
                assert_eq!(fragment[20], if index == 0 { 7 } else { 1 }, "record route");
                assert_eq!(fragment[27..30], [130, 3, 9]);
                payload.extend(&fragment[32..]);
            }
            assert_eq!(payload, packet[32..]);
        }
        assert!(fragments(&udp(100, 0, &[]), 27).is_empty());
        assert!(is_whole_only(&udp(100, DO_NOT_FRAGMENT, &[])) && !is_whole_only(&udp(100, MORE, &[])));
    }

    #[test]
    fn the_time_to_live_counts_down_under_a_right_checksum() {
        let mut packet = udp(100, 0, &[]);
        for ttl in (0..=255).rev() {
            HeaderChange { ce: false, ttl }.apply(&mut packet);
            assert_eq!((packet[8], sum_of(&packet[..20])), (ttl, 0xffff));
        }
    }
}
