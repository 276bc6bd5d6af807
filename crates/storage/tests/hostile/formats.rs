//! Readers: PDUs, texts of negotiations, traces, DiskSim's files.

use super::input::Input;
use bytes::BytesMut;
use storage::iscsi::{Negotiation, Settings};
use storage::{Format, TraceReader};
use wire::iscsi::{Framing, Text};

/// Any bytes give PDUs, a wish for more, or an error; the same in whatever pieces they come; what came is emitted and
/// read as the same value again.
pub fn wire(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let framing = Framing {
        header_digest: flags & 1 != 0,
        data_digest: flags & 2 != 0,
        max_data_bytes: if flags & 4 != 0 { 64 } else { 8192 },
    };
    let step = usize::from(input.u8()) + 1;
    let rest = input.bytes(usize::MAX);
    let mut whole = BytesMut::from(rest);
    let mut pieces = BytesMut::new();
    let mut come = rest.chunks(step);
    loop {
        let at_once = framing.decode(&mut whole);
        let mut by_pieces = framing.decode(&mut pieces);
        while matches!(by_pieces, Ok(None)) {
            let Some(more) = come.next() else { break };
            pieces.extend_from_slice(more);
            by_pieces = framing.decode(&mut pieces);
        }
        assert_eq!(format!("{at_once:?}"), format!("{by_pieces:?}"), "whole and in pieces");
        let Ok(Some(received)) = at_once else { return };
        let mut again = BytesMut::new();
        framing.encode(&received.pdu, &mut again);
        assert_eq!(again.len(), framing.length(&received.pdu));
        let second = framing.decode(&mut again).expect("what was emitted is read").expect("whole");
        assert!(second.intact && again.is_empty());
        assert_eq!(second.pdu, received.pdu);
    }
}

/// Any text is pairs or an error, and any pairs leave values within their ranges.
pub fn text(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let Ok(text) = Text::parse(input.bytes(usize::MAX)) else { return };
    let again = Text::parse(&text.emit().to_bytes()).expect("what was emitted is read");
    assert_eq!(again, text);
    let own = Settings { initial_r2t: flags & 1 != 0, immediate_data: flags & 2 != 0, ..Settings::default() };
    let mut negotiation = Negotiation::new(own, flags & 4 != 0);
    if flags & 8 != 0 {
        negotiation.offers();
    }
    for (key, value) in text.pairs() {
        if negotiation.handle(key, value).is_err() {
            return;
        }
    }
    let negotiated = negotiation.negotiated();
    // RFC 7143, 13: ranges of each.
    assert!((512..1 << 24).contains(&negotiated.max_burst_bytes), "{negotiated:?}");
    assert!((512..1 << 24).contains(&negotiated.first_burst_bytes), "{negotiated:?}");
    assert!((512..1 << 24).contains(&negotiated.max_send_bytes), "{negotiated:?}");
    assert!(negotiated.max_outstanding_r2t >= 1 && negotiated.max_connections >= 1, "{negotiated:?}");
}

/// Any bytes are requests in the order of their arrival, up to the end or the first error.
pub fn trace(bytes: &[u8]) {
    const FORMATS: [Option<Format>; 13] = [
        None,
        Some(Format::Alibaba),
        Some(Format::Fiu),
        Some(Format::Systor),
        Some(Format::Tencent),
        Some(Format::Blkparse),
        Some(Format::Disksim),
        Some(Format::DisksimValidate),
        Some(Format::Fio),
        Some(Format::HpSrt),
        Some(Format::Mqsim),
        Some(Format::Msr),
        Some(Format::Spc),
    ];
    let mut input = Input::new(bytes);
    let format = input.pick(&FORMATS);
    let rest = input.bytes(usize::MAX);
    let Ok(reader) = TraceReader::new("any", format, rest) else { return };
    let mut last = 0;
    let mut count = 0;
    for request in reader {
        let Ok(request) = request else { break };
        assert!(request.arrival_ns >= last, "{} after {last}", request.arrival_ns);
        last = request.arrival_ns;
        count += 1;
    }
    assert!(count <= rest.len(), "{count} requests of {} bytes", rest.len());
}

/// Any text is a drive or an error; files that it names are not there, or are the text itself.
pub fn disksim(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let itself = input.u8() & 1 != 0;
    let Ok(text) = std::str::from_utf8(input.bytes(usize::MAX)) else { return };
    let mut open = |name: &str, _: &str| {
        if itself {
            Ok((name.to_owned(), text.to_owned()))
        } else {
            Err("not there".to_owned())
        }
    };
    if let Err(error) = storage::disk::from_disksim_text("any", text, None, &mut open) {
        assert!(!error.to_string().is_empty());
    }
}
