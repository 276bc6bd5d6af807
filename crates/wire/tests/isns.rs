//! iSNS messages: what is written is read again, in any pieces; any bytes are messages or an error.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use wire::fc::{FcId, Wwn};
use wire::isns::{
    flags, Assembler, Attribute, Function, IpAddress, Message, Pdu, Status, Tag, MESSAGE_BYTES_MAX,
    PDU_PAYLOAD_BYTES_MAX,
};

fn message(attributes: Vec<Attribute>) -> Message {
    Message {
        function: Function::QUERY.response(),
        flags: flags::SERVER,
        transaction: 9,
        status: Some(Status(0)),
        attributes,
    }
}

fn encoded(message: &Message) -> BytesMut {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes);
    bytes
}

#[test]
fn the_first_example_has_the_bytes_of_the_rfc() {
    let source = Attribute::wwn(Tag::PORT_NAME, Wwn(0x2000_0000_0000_0001));
    let wanted = vec![Attribute::wanted(Tag::PORT_ID)];
    let query = Message::request(Function::QUERY, 3, source, vec![Attribute::wanted(Tag::PORT_NAME)], wanted);
    #[rustfmt::skip]
    let expected = [
        0, 1, 0, 2, 0, 40, 0x8c, 0, 0, 3, 0, 0,
        0, 0, 0, 64, 0, 0, 0, 8, 0x20, 0, 0, 0, 0, 0, 0, 1,
        0, 0, 0, 64, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 65, 0, 0, 0, 0,
    ];
    assert_eq!(encoded(&query)[..], expected);
}

#[test]
fn values_are_those_that_were_written() {
    assert_eq!(Attribute::fc_id(Tag::PORT_ID, FcId::of(1, 2, 3)).as_fc_id(), Some(FcId::of(1, 2, 3)));
    assert_eq!(Attribute::wwn(Tag::PORT_NAME, Wwn(7)).as_wwn(), Some(Wwn(7)));
    let address = IpAddress::of_v4([192, 0, 2, 1]);
    assert_eq!(Attribute::address(Tag::PORTAL_ADDRESS, address).as_address(), Some(address));
    assert_eq!(address.to_string(), "192.0.2.1");
    for text in ["", "a", "abc", "abcd"] {
        let attribute = Attribute::text(Tag::ENTITY, text);
        assert_eq!(attribute.as_text(), Some(text));
        // At least one zero ends it.
        assert!(attribute.value.len() > text.len() && attribute.value.len().is_multiple_of(4));
    }
    let long = Attribute::text(Tag::ENTITY, &"\u{e9}".repeat(200));
    assert_eq!((long.value.len(), long.as_text().map(str::len)), (256, Some(254)));
    // A value of another length is none.
    assert_eq!(Attribute::word(Tag::PORT_NAME, 1).as_wwn(), None);
    assert_eq!(Attribute::wanted(Tag::PORT_ID).as_word(), None);
}

#[test]
fn a_long_message_goes_in_several_pdus() {
    let long = message(vec![Attribute::bytes(Tag(257), &vec![7; 150_000])]);
    let mut stream = encoded(&long);
    let mut pdus = Vec::new();
    while let Some(pdu) = Pdu::decode(&mut stream).unwrap() {
        pdus.push(pdu);
    }
    let marks: Vec<(u16, u16)> =
        pdus.iter().map(|pdu| (pdu.sequence, pdu.flags & (flags::FIRST | flags::LAST))).collect();
    assert_eq!(marks, [(0, flags::FIRST), (1, 0), (2, flags::LAST)]);
    assert!(pdus.iter().all(|pdu| pdu.payload.len() <= PDU_PAYLOAD_BYTES_MAX));
}

fn pdu(sequence: u16, marks: u16, payload_bytes: usize) -> Pdu {
    let payload = Bytes::from(vec![0; payload_bytes]);
    Pdu { function: Function::QUERY.response(), flags: flags::SERVER | marks, transaction: 1, sequence, payload }
}

fn assembled(pdus: &[Pdu]) -> Result<Option<Message>, wire::WireError> {
    let mut assembler = Assembler::default();
    let mut bytes = BytesMut::new();
    pdus.iter().for_each(|pdu| pdu.encode(&mut bytes));
    assembler.push(&bytes);
    assembler.next_message()
}

#[test]
fn a_message_with_a_missing_piece_or_without_end_is_refused() {
    let (first, last) = (flags::FIRST, flags::LAST);
    assert!(matches!(assembled(&[pdu(0, first, 4), pdu(1, last, 8)]), Ok(Some(_))));
    assert_eq!(assembled(&[pdu(0, first, 4)]), Ok(None));
    for wrong in [
        vec![pdu(1, last, 4)],
        vec![pdu(1, first | last, 4)],
        vec![pdu(0, first, 4), pdu(2, last, 4)],
        vec![pdu(0, first, 4), pdu(0, first, 4)],
        vec![pdu(0, first, 4), Pdu { transaction: 2, ..pdu(1, last, 4) }],
        vec![pdu(0, first, 4), Pdu { function: Function::QUERY, ..pdu(1, last, 4) }],
        // A response without a status.
        vec![pdu(0, first | last, 0)],
        vec![Pdu { flags: flags::AUTHENTICATED, ..pdu(0, first | last, 4) }],
    ] {
        assert!(assembled(&wrong).is_err(), "{wrong:?}");
    }
    let count = MESSAGE_BYTES_MAX / PDU_PAYLOAD_BYTES_MAX + 1;
    let endless: Vec<Pdu> = (0..=count)
        .map(|number| pdu(number as u16, if number == 0 { first } else { 0 }, PDU_PAYLOAD_BYTES_MAX))
        .collect();
    assert!(assembled(&endless).is_err());
}

fn attribute() -> impl Strategy<Value = Attribute> {
    let value = prop::collection::vec(any::<u8>(), 0..40);
    (1..2000_u32, value).prop_map(|(tag, value)| Attribute::bytes(Tag(tag), &value))
}

proptest! {
    #[test]
    fn messages_in_any_pieces_are_read_again(
        attributes in prop::collection::vec(attribute(), 0..40),
        long in 0..200_000_usize,
        cut in 1..70_000_usize,
    ) {
        let mut attributes = attributes;
        attributes.push(Attribute::bytes(Tag(300), &vec![1; long]));
        let messages = [message(attributes), message(vec![Attribute::DELIMITER])];
        let mut bytes = encoded(&messages[0]);
        bytes.extend_from_slice(&encoded(&messages[1]));
        let mut assembler = Assembler::default();
        let mut read = Vec::new();
        for piece in bytes.chunks(cut) {
            assembler.push(piece);
            while let Some(message) = assembler.next_message().unwrap() {
                read.push(message);
            }
        }
        prop_assert_eq!(&read[..], &messages[..]);
    }

    #[test]
    fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400), framed: bool) {
        let mut assembler = Assembler::default();
        if framed {
            let length = (bytes.len() / 4 * 4) as u16;
            for half in [1, 0x8002, length, 0x4c00, 7, 0] {
                assembler.push(&u16::to_be_bytes(half));
            }
        }
        assembler.push(&bytes);
        while let Ok(Some(message)) = assembler.next_message() {
            prop_assert!(message.attributes.len() * 8 <= bytes.len() + 12);
        }
    }
}
