//! Packets as a TUN device gives and takes them: behind a header that tells what segmentation and checksums are still
//! to do.
//!
//! A transport hands down up to 64 KB of a TCP connection as one packet and leaves it to the device to cut it into
//! segments (TSO). Here they are cut, so that the link model sees each segment as an IP packet of its own, as on a
//! line. Each gets the header that a network card would give it; checksums over payload stay undone and are marked so,
//! since no bit can flip here.

/// The header before a packet: struct virtio_net_hdr, ten bytes, in the machine's byte order (virtio 1.2, 5.1.6).
pub(crate) const PREFIX: usize = 10;

/// Largest IPv4 packet with its prefix, bytes.
pub(crate) const MOST: usize = PREFIX + 65_535;

/// Most headers of one packet with the prefix: IP and TCP, each with all options that they can have, bytes.
pub(crate) const HEADERS: usize = PREFIX + 60 + 60;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum field holds the sum of the pseudo-header; the rest is to be added.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_TCPV4 and VIRTIO_NET_HDR_GSO_TCPV6.
const TCP_SEGMENTS: u8 = 1;
const TCP_IPV6_SEGMENTS: u8 = 4;
/// Bytes of an IPv6 header.
const IPV6_HEADER: usize = 40;
/// VIRTIO_NET_HDR_GSO_ECN, a bit beside the type: the packet carries CWR.
const WITH_CWR: u8 = 0x80;
/// IP protocol number.
const TCP: u8 = 6;
/// IP protocol number.
const UDP: u8 = 17;
/// Offset of the checksum in the TCP header, bytes.
const TCP_CHECKSUM: usize = 16;
/// TCP flags that only the last of several segments carries: FIN and PSH.
const LAST_ONLY: u8 = 0x01 | 0x08;
/// The flag that only the first carries: CWR (RFC 3168, 6.1.2).
const FIRST_ONLY: u8 = 0x80;

/// The segments into which a packet is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// Bytes of the IP header.
    ip: u8,
    /// Bytes of both headers.
    headers: u16,
    /// Payload bytes of each segment but the last, which may have fewer. Zero: the packet stays whole.
    size: u16,
}

impl Cut {
    /// Returns the cut of `framed`, a prefix and a packet.
    pub fn of(framed: &[u8]) -> Cut {
        let whole = Cut { ip: 0, headers: 0, size: 0 };
        let (prefix, packet) = framed.split_at(PREFIX);
        let ip = match prefix[1] & !WITH_CWR {
            TCP_SEGMENTS if packet.len() >= 20 && packet[0] >> 4 == 4 && packet[9] == TCP => {
                usize::from(packet[0] & 15) * 4
            }
            // With extension headers it stays whole.
            TCP_IPV6_SEGMENTS if packet.len() >= IPV6_HEADER && packet[0] >> 4 == 6 && packet[6] == TCP => IPV6_HEADER,
            _ => return whole,
        };
        let Some(&offset) = packet.get(ip + 12) else { return whole };
        let headers = ip + usize::from(offset >> 4) * 4;
        let size = u16::from_ne_bytes([prefix[4], prefix[5]]);
        if ip < 20 || headers < ip + 20 || size == 0 || packet.len() <= headers + usize::from(size) {
            return whole;
        }
        Cut { ip: ip as u8, headers: headers as u16, size }
    }

    /// Into how many packets `framed` is cut.
    pub fn parts(&self, framed: &[u8]) -> u16 {
        if self.size == 0 {
            return 1;
        }
        // At most 65,535 bytes in segments of at least one: fits 16 bits.
        (framed.len() - PREFIX - usize::from(self.headers)).div_ceil(usize::from(self.size)) as u16
    }

    /// Bytes of the IP packet that is part `part`.
    pub fn bytes(&self, framed: &[u8], part: u16) -> u32 {
        if self.size == 0 {
            return (framed.len() - PREFIX) as u32;
        }
        let (from, to) = self.payload(framed, part, 1);
        (usize::from(self.headers) + to - from) as u32
    }

    /// Returns the range of the payload of `count` parts from `part` on in `framed`.
    pub fn payload(&self, framed: &[u8], part: u16, count: u16) -> (usize, usize) {
        let (begin, size) = (PREFIX + usize::from(self.headers), usize::from(self.size));
        (begin + usize::from(part) * size, (begin + (usize::from(part) + usize::from(count)) * size).min(framed.len()))
    }

    /// Writes prefix and headers of parts `part` to `part + count` of `framed` as one packet into `into`; how many
    /// bytes. More than one part is a packet that the receiver's transport takes as joined by its network card.
    pub fn write_headers(
        &self,
        framed: &[u8],
        part: u16,
        count: u16,
        change: HeaderChange,
        into: &mut [u8; HEADERS],
    ) -> usize {
        let (ip, headers, size) = (usize::from(self.ip), usize::from(self.headers), usize::from(self.size));
        let (from, to) = self.payload(framed, part, count);
        let end = PREFIX + headers;
        into[..end].copy_from_slice(&framed[..end]);
        let (prefix, packet) = into[..end].split_at_mut(PREFIX);

        let length = headers + to - from;
        let is_ipv6 = packet[0] >> 4 == 6;
        if is_ipv6 {
            packet[4..6].copy_from_slice(&((length - ip) as u16).to_be_bytes());
            change.apply(packet);
        } else {
            packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(part);
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            if change.ce {
                packet[1] |= 3;
            }
            packet[8] = change.ttl;
            packet[10..12].fill(0);
            let sum = !sum_of(&packet[..ip]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
        }

        let pseudo = pseudo_sum(packet, length - ip);
        let tcp = &mut packet[ip..];
        let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(u32::from(part) * size as u32);
        tcp[4..8].copy_from_slice(&seq.to_be_bytes());
        if part > 0 {
            tcp[13] &= !FIRST_ONLY;
        }
        if to < framed.len() {
            tcp[13] &= !LAST_ONLY;
        }
        tcp[TCP_CHECKSUM..TCP_CHECKSUM + 2].copy_from_slice(&pseudo.to_be_bytes());

        prefix[0] = NEEDS_CHECKSUM;
        let segments = if is_ipv6 { TCP_IPV6_SEGMENTS } else { TCP_SEGMENTS };
        let (kind, header_bytes, segment_bytes) =
            if count > 1 { (segments, self.headers, self.size) } else { (0, 0, 0) };
        prefix[1] = kind | if count > 1 && tcp[13] & FIRST_ONLY != 0 { WITH_CWR } else { 0 };
        prefix[2..4].copy_from_slice(&header_bytes.to_ne_bytes());
        prefix[4..6].copy_from_slice(&segment_bytes.to_ne_bytes());
        prefix[6..8].copy_from_slice(&u16::from(self.ip).to_ne_bytes());
        prefix[8..10].copy_from_slice(&(TCP_CHECKSUM as u16).to_ne_bytes());
        end
    }

    /// Returns true if the packet stays whole.
    pub fn is_whole(&self) -> bool {
        self.size == 0
    }
}

/// One's complement sum of 16-bit words, folded (RFC 1071).
pub(crate) fn sum_of(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    folded(bytes.chunks(2).map(word).sum())
}

pub(crate) fn folded(mut total: u32) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

/// Sum of TCP's pseudo-header (RFC 9293, 3.1; RFC 8200, 8.1) of a packet whose TCP header and payload have `bytes`.
fn pseudo_sum(packet: &[u8], bytes: usize) -> u16 {
    let addresses = if packet[0] >> 4 == 6 { &packet[8..IPV6_HEADER] } else { &packet[12..20] };
    folded(u32::from(sum_of(addresses)) + u32::from(TCP) + bytes as u32)
}

/// Changes that queues and routers made in an IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HeaderChange {
    /// A queue has marked it "congestion experienced".
    pub ce: bool,
    /// Time to live, or hop limit, after all routers.
    pub ttl: u8,
}

impl HeaderChange {
    /// Makes them in `packet`, and mends the checksum of an IPv4 header by the difference.
    pub fn apply(self, packet: &mut [u8]) {
        if packet[0] >> 4 == 6 {
            // The traffic class lies across two bytes (RFC 8200, 3); there is no checksum.
            packet[1] |= if self.ce { 0x30 } else { 0 };
            packet[7] = self.ttl;
            return;
        }
        if self.ce {
            set(packet, 1, packet[1] | 3);
        }
        if self.ttl != packet[8] {
            set(packet, 8, self.ttl);
        }
    }
}

/// Sets byte `at` of an IPv4 header and mends the header's checksum by the difference (RFC 1624, equation 3).
fn set(packet: &mut [u8], at: usize, value: u8) {
    let word = at & !1;
    let old = u16::from_be_bytes([packet[word], packet[word + 1]]);
    packet[at] = value;
    let new = u16::from_be_bytes([packet[word], packet[word + 1]]);
    let sum = u16::from_be_bytes([packet[10], packet[11]]);
    let mended = !folded(u32::from(!sum) + u32::from(!old) + u32::from(new));
    packet[10..12].copy_from_slice(&mended.to_be_bytes());
}

/// Protocol of an IPv4 packet, next header of an IPv6 packet.
fn protocol_of(packet: &[u8]) -> u8 {
    packet[if packet[0] >> 4 == 6 { 6 } else { 9 }]
}

/// Completes the checksum that a transport left to the device, and says so in the prefix.
pub(crate) fn complete_checksum(framed: &mut [u8]) {
    let (prefix, packet) = framed.split_at_mut(PREFIX);
    if prefix[0] & NEEDS_CHECKSUM == 0 {
        return;
    }
    let word = |at: usize| usize::from(u16::from_ne_bytes([prefix[at], prefix[at + 1]]));
    let (start, offset) = (word(6), word(8));
    if start + offset + 2 <= packet.len() {
        // The field holds the sum of the pseudo-header. UDP's zero stands for "none" (RFC 768).
        let sum = match !sum_of(&packet[start..]) {
            0 if protocol_of(packet) == UDP => 0xffff,
            sum => sum,
        };
        packet[start + offset..start + offset + 2].copy_from_slice(&sum.to_be_bytes());
    }
    prefix.fill(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: usize = 4000;
    const SIZE: usize = 1448;

    /// A packet of 4000 payload bytes as a transport hands it to a device, to be cut at 1448; all flags that segments
    /// treat differently are set.
    fn super_packet() -> Vec<u8> {
        let headers = 20 + 32;
        let mut framed = vec![NEEDS_CHECKSUM, TCP_SEGMENTS | WITH_CWR];
        for word in [headers as u16, SIZE as u16, 20, TCP_CHECKSUM as u16] {
            framed.extend(word.to_ne_bytes());
        }
        framed.extend([0x45, 2]);
        framed.extend(((headers + PAYLOAD) as u16).to_be_bytes());
        framed.extend([0xff, 0xff, 0x40, 0, 64, TCP, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
        framed.extend([0x13, 0x88, 0x27, 0x10, 0xff, 0xff, 0xff, 0x00, 1, 2, 3, 4, 0x80, 0x80 | 0x10 | 0x08 | 0x01]);
        framed.extend([0x01, 0xf5, 0, 0, 0, 0, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        let sum = !sum_of(&framed[PREFIX..PREFIX + 20]);
        framed[PREFIX + 10..PREFIX + 12].copy_from_slice(&sum.to_be_bytes());
        framed.extend((0..PAYLOAD).map(|i| (i * 7) as u8));
        framed
    }

    /// Completes the checksum of a packet as a receiver's network card does.
    fn finished(prefix: &[u8], packet: &mut [u8]) {
        assert_eq!(prefix[0], NEEDS_CHECKSUM);
        let start = usize::from(u16::from_ne_bytes([prefix[6], prefix[7]]));
        let at = start + usize::from(u16::from_ne_bytes([prefix[8], prefix[9]]));
        let sum = !sum_of(&packet[start..]);
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    fn part_of(framed: &[u8], part: u16, count: u16, ce: bool) -> (Vec<u8>, Vec<u8>) {
        let cut = Cut::of(framed);
        let mut headers = [0; HEADERS];
        let end = cut.write_headers(framed, part, count, HeaderChange { ce, ttl: 61 }, &mut headers);
        let (from, to) = cut.payload(framed, part, count);
        (headers[..PREFIX].to_vec(), [&headers[PREFIX..end], &framed[from..to]].concat())
    }

    /// Checks both checksums of a finished IPv4 and TCP packet.
    fn is_sound(packet: &[u8]) {
        assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
        assert_eq!(sum_of(&packet[..20]), 0xffff, "the IP header's checksum");
        let total = u32::from(pseudo_sum(packet, packet.len() - 20)) + u32::from(sum_of(&packet[20..]));
        assert_eq!(folded(total), 0xffff, "TCP's checksum");
    }

    #[test]
    fn segments_are_sound_packets_whose_payload_is_that_of_the_whole() {
        let framed = super_packet();
        let cut = Cut::of(&framed);
        assert_eq!(cut.parts(&framed), 3);
        let mut payload = vec![];
        for part in 0..3u16 {
            let (prefix, mut packet) = part_of(&framed, part, 1, false);
            finished(&prefix, &mut packet);
            is_sound(&packet);
            assert_eq!(prefix[1..6], [0; 5], "nothing is left to cut");
            assert_eq!(packet.len(), cut.bytes(&framed, part) as usize);
            let id = u16::from_be_bytes([packet[4], packet[5]]);
            let seq = u32::from_be_bytes([packet[24], packet[25], packet[26], packet[27]]);
            assert_eq!((id, seq), (0xffffu16.wrapping_add(part), 0xffff_ff00u32.wrapping_add(u32::from(part) * 1448)));
            let (first, last) = (part == 0, part == 2);
            let flags = 0x10 | if first { FIRST_ONLY } else { 0 } | if last { LAST_ONLY } else { 0 };
            assert_eq!(packet[33], flags, "part {part}");
            assert_eq!(packet[40..52], framed[PREFIX + 40..PREFIX + 52], "options are those of the whole");
            payload.extend_from_slice(&packet[52..]);
        }
        assert_eq!(payload, framed[PREFIX + 52..]);
    }

    /// The same as a packet of IPv6.
    fn ipv6_super_packet() -> Vec<u8> {
        let mut framed = super_packet();
        framed[1] = TCP_IPV6_SEGMENTS | WITH_CWR;
        framed[2..4].copy_from_slice(&(40u16 + 32).to_ne_bytes());
        framed[6..8].copy_from_slice(&40u16.to_ne_bytes());
        let mut header = vec![0x60, 0x20, 0, 0];
        header.extend(((32 + PAYLOAD) as u16).to_be_bytes());
        header.extend([TCP, 64]);
        header.extend([[0xfd; 16], [0xfe; 16]].concat());
        framed.splice(PREFIX..PREFIX + 20, header);
        framed
    }

    #[test]
    fn segments_of_ipv6_are_sound_packets_too() {
        let framed = ipv6_super_packet();
        let cut = Cut::of(&framed);
        assert_eq!((cut.parts(&framed), cut.bytes(&framed, 0)), (3, 40 + 32 + 1448));
        let mut payload = vec![];
        for (part, count) in [(0u16, 1), (1, 2)] {
            let (prefix, mut packet) = part_of(&framed, part, count, part == 0);
            finished(&prefix, &mut packet);
            assert_eq!(usize::from(u16::from_be_bytes([packet[4], packet[5]])), packet.len() - 40);
            let pseudo = u32::from(sum_of(&packet[8..40])) + u32::from(TCP) + (packet.len() - 40) as u32;
            assert_eq!(folded(pseudo + u32::from(sum_of(&packet[40..]))), 0xffff, "TCP's checksum");
            let seq = u32::from_be_bytes([packet[44], packet[45], packet[46], packet[47]]);
            assert_eq!(seq, 0xffff_ff00u32.wrapping_add(u32::from(part) * 1448));
            assert_eq!((packet[1], packet[7]), (if part == 0 { 0x30 } else { 0x20 }, 61));
            let first = part == 0;
            assert_eq!((prefix[1], packet[53]), if first { (0, 0x10 | FIRST_ONLY) } else { (4, 0x10 | LAST_ONLY) });
            payload.extend_from_slice(&packet[72..]);
        }
        assert_eq!(payload, framed[PREFIX + 72..]);
        for (at, wrong) in [(1, TCP_SEGMENTS), (PREFIX, 0x45), (PREFIX + 6, 17)] {
            let mut other = framed.clone();
            other[at] = wrong;
            assert!(Cut::of(&other).is_whole(), "byte {at}");
        }
    }

    #[test]
    fn joined_segments_say_how_they_are_to_be_counted() {
        let framed = super_packet();
        let (prefix, mut packet) = part_of(&framed, 0, 2, false);
        finished(&prefix, &mut packet);
        is_sound(&packet);
        assert_eq!((prefix[1], packet[33]), (TCP_SEGMENTS | WITH_CWR, 0x10 | FIRST_ONLY));
        assert_eq!(u16::from_ne_bytes([prefix[4], prefix[5]]), 1448);
        assert_eq!(packet.len(), 52 + 2 * 1448);
        let (_, all) = part_of(&framed, 0, 3, false);
        assert_eq!(all[33], framed[PREFIX + 33], "all together carry all flags");
        let (prefix, rest) = part_of(&framed, 1, 2, false);
        assert_eq!((prefix[1], rest[33]), (TCP_SEGMENTS, 0x10 | LAST_ONLY));
    }

    #[test]
    fn a_mark_changes_the_segment_and_keeps_the_header_right() {
        let framed = super_packet();
        let (prefix, mut packet) = part_of(&framed, 1, 1, true);
        finished(&prefix, &mut packet);
        is_sound(&packet);
        assert_eq!((packet[1] & 3, packet[8]), (3, 61));
        for id in 0..2000u16 {
            let mut whole = framed[PREFIX..PREFIX + 20].to_vec();
            whole[4..6].copy_from_slice(&id.to_be_bytes());
            whole[10..12].fill(0);
            let sum = !sum_of(&whole);
            whole[10..12].copy_from_slice(&sum.to_be_bytes());
            let ttl = id as u8;
            HeaderChange { ce: true, ttl }.apply(&mut whole);
            assert_eq!((whole[1] & 3, whole[8], sum_of(&whole)), (3, ttl, 0xffff));
        }
    }

    #[test]
    fn what_is_not_to_be_cut_stays_whole() {
        let framed = super_packet();
        let mut small = framed[..PREFIX + 52 + SIZE].to_vec();
        assert!(Cut::of(&small).is_whole(), "one segment's worth");
        assert_eq!((Cut::of(&small).parts(&small), Cut::of(&small).bytes(&small, 0)), (1, 52 + 1448));
        small[1] = 0;
        assert!(Cut::of(&small).is_whole());
        for (at, wrong) in [(1, 3), (PREFIX, 0x65), (PREFIX, 0x41), (PREFIX + 9, 17), (PREFIX + 32, 0x10)] {
            let mut other = framed.clone();
            other[at] = wrong;
            assert!(Cut::of(&other).is_whole(), "byte {at}");
        }
        assert!(Cut::of(&[0; PREFIX]).is_whole());
        assert!(Cut::of(&framed[..PREFIX + 25]).is_whole());
    }
}
