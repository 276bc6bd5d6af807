//! Addresses in link services, from one region's to the other's (RFC 4172, 7.2 and 7.3).
//!
//! The sending gateway replaces an address by a code for it, and adds the port's name where neither of the session's
//! ports is meant. The receiving gateway replaces the code by the address in its region.

use bytes::{BufMut, Bytes, BytesMut};
use wire::fc::els::Command;
use wire::fc::{FcId, Wwn};
use wire::WireError;

/// Code: the frame's sender.
const SOURCE: FcId = FcId::new(1);
/// Code: the frame's receiver.
const DESTINATION: FcId = FcId::new(2);
/// Code: the port whose name is given.
const NAMED: FcId = FcId::new(3);

/// Codes that a field may have, and the place of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The sender.
    Source,
    /// The receiver.
    Destination,
    /// Either of them.
    EndPoint,
    /// Any port; the name of a third one is added behind the payload.
    Any,
    /// Always by name, added behind the payload.
    Added,
    /// By the name at this place of the payload; 0 = no address.
    NameAt(usize),
}

/// A field of 3 bytes.
struct Field {
    at: usize,
    kind: Kind,
}

/// The addresses of a link service.
struct Layout {
    /// Bytes of the payload at least.
    least: usize,
    fields: &'static [Field],
    /// Place of an address that is set to 0.
    cleared: Option<usize>,
}

const fn field(at: usize, kind: Kind) -> Field {
    Field { at, kind }
}

/// The layout of a request or accept; None where no address is translated.
fn layout(command: Command, accept: bool) -> Option<Layout> {
    const SENDER: &[Field] = &[field(5, Kind::Source)];
    const ADISC: &[Field] = &[field(25, Kind::Source)];
    const FARP_REPLY: &[Field] = &[field(5, Kind::Destination), field(9, Kind::Source)];
    const FARP_REQ: &[Field] = &[field(5, Kind::NameAt(12)), field(9, Kind::NameAt(28))];
    const END_POINT: &[Field] = &[field(5, Kind::EndPoint)];
    const ANY: &[Field] = &[field(5, Kind::Any)];
    const EXCHANGE: &[Field] = &[field(9, Kind::Any), field(13, Kind::Any)];
    const LOOP: &[Field] = &[field(5, Kind::Added)];
    let (least, fields, cleared) = match (command, accept) {
        (Command::ABTX | Command::RRQ | Command::RSI, false) => (12, END_POINT, None),
        (Command::ADISC, _) => (28, ADISC, Some(5)),
        (Command::FARP_REPLY, false) => (76, FARP_REPLY, None),
        (Command::FARP_REQ, false) => (76, FARP_REQ, None),
        (Command::LOGO, false) => (16, SENDER, None),
        (Command::REC | Command::RES | Command::RSS, false) => (12, ANY, None),
        (Command::RLS, false) => (8, ANY, None),
        (Command::REC | Command::RES, true) => (24, EXCHANGE, None),
        (Command::SRL, false) => (8, LOOP, None),
        _ => return None,
    };
    Some(Layout { least, fields, cleared })
}

impl Layout {
    /// Fields whose names are added behind the payload.
    fn added(&self) -> usize {
        self.fields.iter().filter(|field| matches!(field.kind, Kind::Any | Kind::Added)).count()
    }

    fn check(&self, payload: &[u8], more: usize) -> Result<(), Fault> {
        require(payload, self.least + more)
    }
}

/// Reason for which addresses could not be translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// This gateway knows no port of the address.
    UnknownAddress(FcId),
    /// This gateway knows no port of the name.
    UnknownName(Wwn),
    /// The payload is not as the link service's.
    Malformed(WireError),
}

fn require(payload: &[u8], needed: usize) -> Result<(), Fault> {
    if payload.len() < needed {
        let part = "link service with addresses";
        return Err(Fault::Malformed(WireError::Truncated { part, needed, available: payload.len() }));
    }
    Ok(())
}

fn wrong(field: &'static str, value: u64) -> Fault {
    Fault::Malformed(WireError::Malformed { field, value })
}

fn id_at(bytes: &[u8], at: usize) -> FcId {
    FcId::of(bytes[at], bytes[at + 1], bytes[at + 2])
}

fn put_id(bytes: &mut [u8], at: usize, id: FcId) {
    bytes[at..at + 3].copy_from_slice(&id.to_bytes());
}

fn name_in(bytes: &[u8], at: usize) -> Wwn {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    Wwn(u64::from_be_bytes(value))
}

/// Name at a place of a payload; None when the payload ends before.
pub(super) fn name_at(payload: &[u8], at: usize) -> Option<Wwn> {
    (payload.len() >= at + 8).then(|| name_in(payload, at))
}

/// The ports of a frame, as this region addresses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndPoints {
    /// The frame's sender.
    pub source: FcId,
    /// The frame's receiver.
    pub destination: FcId,
}

/// The payload as it goes to the other gateway; None when it goes unchanged and without the SPC flag.
pub(super) fn outbound(
    command: Command,
    accept: bool,
    payload: &Bytes,
    ends: EndPoints,
    name_of: impl Fn(FcId) -> Option<Wwn>,
) -> Result<Option<Bytes>, Fault> {
    if is_exempt(command, payload) {
        return Ok(None);
    }
    if command == Command::TPRLO {
        return augment_pages(payload, name_of).map(Some);
    }
    let Some(layout) = layout(command, accept) else { return Ok(Some(payload.clone())) };
    layout.check(payload, 0)?;
    let mut bytes = BytesMut::from(&payload[..]);
    let mut names: Vec<Option<Wwn>> = Vec::new();
    for field in layout.fields {
        let id = id_at(payload, field.at);
        let end = match id {
            id if id == ends.source => Some(SOURCE),
            id if id == ends.destination => Some(DESTINATION),
            _ => None,
        };
        let code = match (field.kind, end) {
            (Kind::Source, _) => SOURCE,
            (Kind::Destination, _) => DESTINATION,
            (Kind::NameAt(_), _) if id == FcId::NONE => FcId::NONE,
            (Kind::NameAt(_), _) => NAMED,
            (Kind::EndPoint, Some(code)) => code,
            (Kind::EndPoint, None) => return Err(Fault::UnknownAddress(id)),
            (Kind::Any, Some(code)) => {
                names.push(None);
                code
            }
            (Kind::Any, None) | (Kind::Added, _) => {
                names.push(Some(name_of(id).ok_or(Fault::UnknownAddress(id))?));
                NAMED
            }
        };
        put_id(&mut bytes, field.at, code);
    }
    if let Some(at) = layout.cleared {
        put_id(&mut bytes, at, FcId::NONE);
    }
    if names.iter().any(Option::is_some) {
        // Both names of two fields are added, and one that is not needed is 0 (RFC 4172, 7.3.1.9).
        names.iter().for_each(|name| bytes.put_u64(name.map_or(0, |name| name.0)));
    }
    Ok(Some(bytes.freeze()))
}

/// The payload as it goes to the port: of a frame with the SPC flag.
pub(super) fn inbound(
    command: Command,
    accept: bool,
    payload: &Bytes,
    ends: EndPoints,
    id_of: impl Fn(Wwn) -> Option<FcId>,
) -> Result<Bytes, Fault> {
    if command == Command::TPRLO {
        return restore_pages(payload, id_of);
    }
    let Some(layout) = layout(command, accept) else { return Ok(payload.clone()) };
    layout.check(payload, 0)?;
    let is_added = |field: &Field| matches!(field.kind, Kind::Any | Kind::Added) && id_at(payload, field.at) == NAMED;
    let added = if layout.fields.iter().any(is_added) { 8 * layout.added() } else { 0 };
    layout.check(payload, added)?;
    let mut next_name = payload.len() - added;
    let mut bytes = BytesMut::from(&payload[..next_name]);
    for field in layout.fields {
        let code = id_at(payload, field.at);
        let at = match field.kind {
            Kind::NameAt(at) => at,
            Kind::Any | Kind::Added if added > 0 => {
                next_name += 8;
                next_name - 8
            }
            _ => 0,
        };
        let allowed = match field.kind {
            Kind::Source => code == SOURCE,
            Kind::Destination => code == DESTINATION,
            Kind::EndPoint => code == SOURCE || code == DESTINATION,
            Kind::Any => code == SOURCE || code == DESTINATION || code == NAMED,
            Kind::Added => code == NAMED,
            Kind::NameAt(_) => code == NAMED || code == FcId::NONE,
        };
        if !allowed {
            return Err(wrong("address translation type", u64::from(code.value())));
        }
        let id = match code {
            SOURCE => ends.source,
            DESTINATION => ends.destination,
            NAMED => {
                let name = name_in(payload, at);
                id_of(name).ok_or(Fault::UnknownName(name))?
            }
            none => none,
        };
        put_id(&mut bytes, field.at, id);
    }
    Ok(bytes.freeze())
}

/// Bytes of a page of TPRLO, and of one with a name behind it.
const PAGE: usize = 16;
/// Bytes of a page with the third party's name behind it.
pub(super) const AUGMENTED_PAGE: usize = 24;
/// Flag of a page: the third party's address is valid (bit 18 of RFC 4172, figure 23).
const THIRD_PARTY_VALID: u8 = 0x20;
/// Flag of a page: all image pairs of all ports end (bit 19).
const GLOBAL_LOGOUT: u8 = 0x10;

/// True for a request or accept of which RFC 4172 says that it goes as it is: SRL of all loops, and TPRLO of all ports.
pub(super) fn is_exempt(command: Command, payload: &[u8]) -> bool {
    match command {
        Command::SRL => payload.get(4) == Some(&0),
        Command::TPRLO => {
            payload.get(6).is_some_and(|flags| flags & THIRD_PARTY_VALID == 0 && flags & GLOBAL_LOGOUT != 0)
        }
        _ => false,
    }
}

/// The pages of TPRLO or its accept, each of `bytes`. Word 0 gives their number, as pages of 16 bytes (RFC 4172,
/// 7.3.1.17 leaves word 0 as it was).
fn pages(payload: &[u8], bytes: usize) -> Result<impl Iterator<Item = &[u8]>, Fault> {
    require(payload, 4 + bytes)?;
    let length = usize::from(u16::from_be_bytes([payload[2], payload[3]]));
    if usize::from(payload[1]) != PAGE || length < 4 + PAGE || !(length - 4).is_multiple_of(PAGE) {
        return Err(wrong("TPRLO payload length", length as u64));
    }
    let count = (length - 4) / PAGE;
    require(payload, 4 + count * bytes)?;
    Ok(payload[4..4 + count * bytes].chunks_exact(bytes))
}

fn augment_pages(payload: &[u8], name_of: impl Fn(FcId) -> Option<Wwn>) -> Result<Bytes, Fault> {
    let mut bytes = BytesMut::from(payload.get(..4).unwrap_or_default());
    for page in pages(payload, PAGE)? {
        let id = id_at(page, 13);
        let valid = page[2] & THIRD_PARTY_VALID != 0;
        let name = if valid { name_of(id).ok_or(Fault::UnknownAddress(id))? } else { Wwn(0) };
        bytes.put_slice(&page[..13]);
        bytes.put_slice(&if valid { NAMED } else { FcId::NONE }.to_bytes());
        bytes.put_u64(name.0);
    }
    Ok(bytes.freeze())
}

fn restore_pages(payload: &[u8], id_of: impl Fn(Wwn) -> Option<FcId>) -> Result<Bytes, Fault> {
    let mut bytes = BytesMut::from(payload.get(..4).unwrap_or_default());
    for page in pages(payload, AUGMENTED_PAGE)? {
        if page[2] & THIRD_PARTY_VALID == 0 {
            bytes.put_slice(&page[..PAGE]);
            continue;
        }
        let name = name_in(page, PAGE);
        bytes.put_slice(&page[..13]);
        bytes.put_slice(&id_of(name).ok_or(Fault::UnknownName(name))?.to_bytes());
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: EndPoints = EndPoints { source: FcId::new(0x01_0001), destination: FcId::new(0x01_0002) };
    const THIRD: FcId = FcId::new(0x01_0003);
    const NAME: Wwn = Wwn(0x2000_0000_0000_0033);

    fn sent(command: Command, accept: bool, payload: &[u8]) -> Result<Option<Bytes>, Fault> {
        let names = |id| (id == THIRD).then_some(NAME);
        outbound(command, accept, &Bytes::copy_from_slice(payload), ENDS, names)
    }

    #[test]
    fn ports_of_the_session_go_as_codes_and_others_by_name() {
        let rec = |id: FcId| [&[0x13, 0, 0, 0, 0xaa][..], &id.to_bytes(), &[1, 2, 3, 4]].concat();
        for (id, code) in [(ENDS.source, SOURCE), (ENDS.destination, DESTINATION)] {
            assert_eq!(sent(Command::REC, false, &rec(id)).unwrap().unwrap(), rec(code));
        }
        let named = [&rec(NAMED)[..], &NAME.0.to_be_bytes()].concat();
        assert_eq!(sent(Command::REC, false, &rec(THIRD)).unwrap().unwrap(), named);
        let unknown = FcId::new(0x01_0004);
        assert_eq!(sent(Command::REC, false, &rec(unknown)), Err(Fault::UnknownAddress(unknown)));
    }

    #[test]
    fn an_accept_with_one_name_has_zeros_for_the_other() {
        let accept = |first: FcId, second: FcId| {
            let ids = [&[2, 0, 0, 0, 1, 2, 3, 4, 0][..], &first.to_bytes(), &[0], &second.to_bytes()].concat();
            [&ids[..], &[9; 8]].concat()
        };
        let named = [&accept(NAMED, SOURCE)[..], &NAME.0.to_be_bytes(), &[0; 8]].concat();
        assert_eq!(sent(Command::REC, true, &accept(THIRD, ENDS.source)).unwrap().unwrap(), named);
        let bare = sent(Command::REC, true, &accept(ENDS.destination, ENDS.source)).unwrap().unwrap();
        assert_eq!(bare, accept(DESTINATION, SOURCE));
    }

    #[test]
    fn pages_of_tprlo_have_a_name_each_and_word_0_stays() {
        let page = |flags, id: FcId| [&[8, 0, flags, 0, 1, 1, 1, 1, 2, 2, 2, 2, 0][..], &id.to_bytes()].concat();
        let head = [0x24, 0x10, 0, 36];
        let payload = [&head[..], &page(0x20, THIRD), &page(0, ENDS.source)].concat();
        let augmented = [
            &head[..],
            &page(0x20, NAMED),
            &NAME.0.to_be_bytes(),
            // A page without a third party has zeros for address and name.
            &page(0, FcId::NONE),
            &[0; 8],
        ]
        .concat();
        assert_eq!(sent(Command::TPRLO, false, &payload).unwrap().unwrap(), augmented);
        // TPRLO of all ports goes as it is.
        let global = [&[0x24, 0x10, 0, 20][..], &page(0x10, THIRD)].concat();
        assert_eq!(sent(Command::TPRLO, false, &global), Ok(None));
    }

    #[test]
    fn codes_that_a_field_cannot_have_are_refused() {
        let payload = |code: u8| Bytes::from(vec![0x12, 0, 0, 0, 0, 0, 0, code, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        let read = |code| inbound(Command::RRQ, false, &payload(code), ENDS, |_| Some(THIRD));
        assert_eq!(id_at(&read(1).unwrap(), 5), ENDS.source);
        assert_eq!(id_at(&read(2).unwrap(), 5), ENDS.destination);
        for code in [0, 3, 4, 255] {
            assert_eq!(read(code), Err(wrong("address translation type", u64::from(code))));
        }
    }
}
