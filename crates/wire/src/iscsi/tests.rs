use super::*;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use std::io::IoSlice;

const PLAIN: Framing = Framing { header_digest: false, data_digest: false, max_data_bytes: 1 << 20 };
const DIGESTS: Framing = Framing { header_digest: true, data_digest: true, ..PLAIN };

fn bytes_of(framing: &Framing, pdu: &Pdu) -> BytesMut {
    let mut bytes = BytesMut::new();
    framing.encode(pdu, &mut bytes);
    bytes
}

fn command() -> Pdu {
    let header = ScsiCommand { last: true, ..ScsiCommand::default() };
    Pdu::new(header)
}

#[test]
fn the_read_of_the_rfc_has_its_digest() {
    // RFC 3720, B.4: "An iSCSI - SCSI Read (10) Command PDU", whose CRC is 56 3a 96 d9 as bytes.
    let bytes: [u8; 48] = [
        0x01, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0x14, 0, 0, 0,
        0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0, 0,
    ];
    let header = Header::parse(&bytes);
    let Header::ScsiCommand(command) = header else { panic!("{header:?}") };
    assert!(command.read && !command.write && command.last);
    assert_eq!(
        (command.itt, command.expected_length, command.cmd_sn, command.exp_stat_sn),
        (0x1400_0000, 1024, 20, 24)
    );
    let wire = bytes_of(&DIGESTS, &Pdu::new(command));
    assert_eq!(&wire[..48], &bytes);
    assert_eq!(&wire[48..], &[0x56, 0x3a, 0x96, 0xd9]);
}

#[test]
fn a_wrong_digest_of_the_header_ends_the_stream_and_of_the_data_marks_the_pdu() {
    let pdu = Pdu::with(DataOut::default(), Payload::from(b"abcde".to_vec()));
    let mut header = bytes_of(&DIGESTS, &pdu);
    header[20] ^= 1;
    let error = DIGESTS.decode(&mut header).unwrap_err();
    assert!(error.to_string().contains("would be right"), "{error}");
    let mut data = bytes_of(&DIGESTS, &pdu);
    let at = data.len() - 9;
    data[at] ^= 1;
    assert!(!DIGESTS.decode(&mut data).unwrap().unwrap().intact);
    assert!(DIGESTS.decode(&mut bytes_of(&DIGESTS, &pdu)).unwrap().unwrap().intact);
}

#[test]
fn too_long_a_segment_is_refused_by_its_header_alone() {
    let limit = Framing { max_data_bytes: 100, ..PLAIN };
    let mut bytes = bytes_of(&PLAIN, &Pdu::with(NopOut::default(), Payload::Zeros(101)));
    bytes.truncate(BHS_BYTES);
    let error = limit.decode(&mut bytes).unwrap_err().to_string();
    assert!(error.contains("NopOut") && error.contains("101") && error.contains("100"), "{error}");
}

#[test]
fn a_segment_beyond_the_header_segments_is_refused() {
    let mut pdu = command();
    pdu.ahs.push(Ahs { kind: 1, bytes: vec![0, 1, 2, 3] });
    let mut bytes = bytes_of(&PLAIN, &pdu);
    bytes[49] = 200;
    assert!(matches!(PLAIN.decode(&mut bytes), Err(IscsiError::Ahs { needed: 204, available: 8 })));
}

#[test]
fn text_errors_say_what_would_be_right() {
    for (bytes, part) in [
        (&b"InitialR2T"[..], "key=value"),
        (b"=Yes\0", "1 to 63 letters"),
        (b"a b=Yes\0", "1 to 63 letters"),
        (b"Key=\xff\xfe\0", "UTF-8"),
    ] {
        let error = Text::parse(bytes).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let text = Text::parse(b"A=1\0\0B=\0C=x=y").unwrap();
    assert_eq!(text.pairs().collect::<Vec<_>>(), [("A", "1"), ("B", ""), ("C", "x=y")]);
}

#[test]
fn serial_numbers_wrap() {
    assert!(serial_before(0xffff_fffe, 1) && !serial_before(1, 0xffff_fffe) && !serial_before(5, 5));
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..5000).prop_map(Payload::from),
        (0u32..5000).prop_map(Payload::Zeros)
    ]
}

fn pdu() -> impl Strategy<Value = Pdu> {
    let segment =
        (any::<u8>(), prop::collection::vec(any::<u8>(), 1..40)).prop_map(|(kind, bytes)| Ahs { kind, bytes });
    let opcode = prop::sample::select(vec![
        0u8, 1, 2, 3, 4, 5, 6, 0x10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x31, 0x32, 0x3f, 0x1c,
    ]);
    let header = (opcode, prop::array::uniform32(any::<u8>()), prop::array::uniform16(any::<u8>()));
    (header, prop::collection::vec(segment, 0..3), payload()).prop_map(|((opcode, a, b), ahs, data)| {
        let mut bytes = [0; BHS_BYTES];
        bytes[..32].copy_from_slice(&a);
        bytes[32..].copy_from_slice(&b);
        bytes[0] = bytes[0] & 0xc0 | opcode;
        bytes[4..8].fill(0);
        Pdu { header: Header::parse(&bytes), ahs, data }
    })
}

#[test]
fn data_that_comes_byte_by_byte_is_kept_in_large_pieces() {
    let mut rope = Rope::default();
    let buffer = Bytes::from((0..200_000_u32).map(|at| at as u8).collect::<Vec<u8>>());
    for at in 0..buffer.len() {
        rope.push(Payload::Bytes(buffer.slice(at..=at)));
    }
    assert!(rope.pieces().count() < 5);
    assert_eq!(rope.to_payload().to_bytes(), buffer);
    // Large ones stay where they are.
    let mut rope = Rope::default();
    for at in [0, 100_000] {
        rope.push(Payload::Bytes(buffer.slice(at..at + 100_000)));
    }
    assert_eq!(rope.pieces().count(), 2);
}

proptest! {
    #[test]
    fn what_is_emitted_parses_back(pdu in pdu(), digests: bool) {
        let framing = if digests { DIGESTS } else { PLAIN };
        let mut bytes = bytes_of(&framing, &pdu);
        prop_assert_eq!(bytes.len(), framing.length(&pdu));
        prop_assert_eq!(framing.needed(&bytes), bytes.len());
        bytes.extend_from_slice(b"rest");
        prop_assert_eq!(framing.decode(&mut bytes).unwrap().unwrap(), Received { pdu, intact: true });
        prop_assert_eq!(&bytes[..], b"rest");
    }

    #[test]
    fn any_bytes_give_a_pdu_or_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..600), header_digest: bool, data_digest: bool,
    ) {
        let framing = Framing { header_digest, data_digest, max_data_bytes: 300 };
        let mut bytes = BytesMut::from(&bytes[..]);
        while let Ok(Some(received)) = framing.decode(&mut bytes) {
            prop_assert!(received.pdu.data.len() <= 300);
            let _ = Text::parse(&received.pdu.data.to_bytes());
        }
    }

    #[test]
    fn part_of_a_pdu_waits_for_the_rest(pdu in pdu(), cut in 0usize..6000) {
        let whole = bytes_of(&DIGESTS, &pdu);
        let cut = cut % whole.len();
        let mut part = BytesMut::from(&whole[..cut]);
        prop_assert_eq!(DIGESTS.decode(&mut part).unwrap(), None);
        prop_assert_eq!(part.len(), cut);
        prop_assert!(DIGESTS.needed(&part) > cut);
    }

    #[test]
    fn text_round_trips(pairs in prop::collection::vec(("[A-Za-z][A-Za-z0-9.+@_-]{0,62}", "[^\0]{0,80}"), 0..8)) {
        let mut text = Text::default();
        for (key, value) in &pairs {
            text.push(key, value);
        }
        prop_assert_eq!(Text::parse(&text.emit().to_bytes()).unwrap(), text);
    }

    #[test]
    fn the_queue_gives_the_bytes_of_its_pdus_in_any_portions(
        pdus in prop::collection::vec(pdu(), 1..5), step in 1usize..4000,
    ) {
        let mut queue = Outgoing::default();
        let mut expected = BytesMut::new();
        for pdu in &pdus {
            queue.push(&DIGESTS, pdu);
            DIGESTS.encode(pdu, &mut expected);
        }
        let mut sent = Vec::new();
        while !queue.is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let count = queue.slices(&mut slices);
            let all: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.iter().copied()).take(step).collect();
            sent.extend_from_slice(&all);
            queue.consume(all.len());
        }
        prop_assert_eq!(&sent[..], &expected[..]);
    }

    #[test]
    fn a_rope_is_the_bytes_of_its_pieces(pieces in prop::collection::vec(payload(), 0..6), at in 0usize..20_000) {
        let mut rope = Rope::default();
        let mut all = Vec::new();
        for piece in &pieces {
            all.extend_from_slice(&piece.to_bytes());
            rope.push(piece.clone());
        }
        let head = rope.split_to(at);
        let at = at.min(all.len());
        prop_assert_eq!((head.len(), rope.len()), (at, all.len() - at));
        prop_assert_eq!(head.to_payload().to_bytes(), Bytes::copy_from_slice(&all[..at]));
        prop_assert_eq!(rope.to_payload().to_bytes(), Bytes::copy_from_slice(&all[at..]));
    }
}
