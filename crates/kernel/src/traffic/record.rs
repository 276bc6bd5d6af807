//! Words of two agents to each other over a connection of their own: records of 24 bytes, some with text behind them.
//!
//! Each connection between agents begins with a [`Preamble`]; the one of reports goes on with records, both ways.
//! Numbers are big-endian.

use crate::token::Token;

/// Bytes of a record, and of a preamble.
pub(crate) const BYTES: usize = 24;

/// Most bytes of a text behind a record: counters of 50,000 flows.
const MAX_TEXT: usize = 32 << 20;

/// Version of the records; both ends have the same.
const VERSION: u32 = 2;

/// Number of the connection of reports, among those of flows.
const REPORT: u32 = u32::MAX;

/// The connection that a preamble begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preamble {
    Report,
    Flow(u32),
}

impl Preamble {
    pub fn to_bytes(self, token: Token) -> [u8; BYTES] {
        let number = match self {
            Preamble::Report => REPORT,
            Preamble::Flow(flow) => flow,
        };
        let mut bytes = [0; BYTES];
        bytes[..16].copy_from_slice(&token.0);
        bytes[16..20].copy_from_slice(&number.to_be_bytes());
        bytes[20..].copy_from_slice(&VERSION.to_be_bytes());
        bytes
    }

    /// None when the token or the version is another. Takes the same time wherever they differ.
    pub fn parse(bytes: &[u8; BYTES], token: Token) -> Option<Preamble> {
        let wanted = Preamble::Flow(0).to_bytes(token);
        let differs = |range: std::ops::Range<usize>| range.fold(0, |sum, at| sum | (bytes[at] ^ wanted[at]));
        if std::hint::black_box(differs(0..16) | differs(20..24)) != 0 {
            return None;
        }
        Some(match word(bytes, 16) {
            REPORT => Preamble::Report,
            flow => Preamble::Flow(flow),
        })
    }
}

/// A record. Times are CLOCK_MONOTONIC, ns: of the receiving host, but for those that the sending one gets back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Record {
    /// To the receiver: answer with [`Record::Pong`].
    Ping { sent_ns: u64 },
    /// To the receiver: times at which the measured interval begins and the run ends.
    Times { warmup_ns: u64, end_ns: u64 },
    /// To the receiver: count now, the run has ended.
    Count,
    /// To the receiver: all is over; answer with [`Record::Bye`].
    Finish,
    /// The receiver's clock when the ping came.
    Pong { sent_ns: u64, at_ns: u64 },
    /// The connection of a flow has come.
    Came { flow: u32 },
    /// Payload of a flow that its receiver had taken by then.
    Delivered { flow: u32, bytes: u64, at_ns: u64 },
    /// Payload of a flow when the measured interval began.
    AtWarmup { flow: u32, bytes: u64 },
    /// A flow's connection is lost; the text says why.
    Lost { flow: u32, text: String },
    /// Counters at the run's end, JSON.
    Counters { text: String },
    /// The receiver gives up; the text says why.
    Failed { text: String },
    /// Nothing follows.
    Bye,
    /// To the receiver: the time at which the client of a flow's program begins there.
    Begin { flow: u32, at_ns: u64 },
    /// Connections of a flow's program live at the receiver, or none does any more.
    Talks { flow: u32, live: u64 },
    /// The client of a flow's program has ended well at the receiver.
    Ended { flow: u32, at_ns: u64 },
}

impl Record {
    /// Appends its bytes.
    pub fn write(&self, into: &mut Vec<u8>) {
        let (kind, flow, first, second, text) = match self {
            Record::Ping { sent_ns } => (1, 0, *sent_ns, 0, ""),
            Record::Times { warmup_ns, end_ns } => (2, 0, *warmup_ns, *end_ns, ""),
            Record::Count => (3, 0, 0, 0, ""),
            Record::Finish => (4, 0, 0, 0, ""),
            Record::Pong { sent_ns, at_ns } => (5, 0, *sent_ns, *at_ns, ""),
            Record::Came { flow } => (6, *flow, 0, 0, ""),
            Record::Delivered { flow, bytes, at_ns } => (7, *flow, *bytes, *at_ns, ""),
            Record::AtWarmup { flow, bytes } => (8, *flow, *bytes, 0, ""),
            Record::Lost { flow, text } => (9, *flow, 0, 0, text.as_str()),
            Record::Counters { text } => (10, 0, 0, 0, text.as_str()),
            Record::Failed { text } => (11, 0, 0, 0, text.as_str()),
            Record::Bye => (12, 0, 0, 0, ""),
            Record::Begin { flow, at_ns } => (13, *flow, *at_ns, 0, ""),
            Record::Talks { flow, live } => (14, *flow, *live, 0, ""),
            Record::Ended { flow, at_ns } => (15, *flow, *at_ns, 0, ""),
        };
        // Texts are the agent's own, far below the bound.
        let second = if text.is_empty() { second } else { text.len() as u64 };
        into.extend(u32::to_be_bytes(kind));
        into.extend(flow.to_be_bytes());
        into.extend(first.to_be_bytes());
        into.extend(second.to_be_bytes());
        into.extend(text.as_bytes());
    }

    /// Takes the first record off `bytes`; None while it is not whole.
    ///
    /// # Errors
    /// The bytes are no record.
    pub fn parse(bytes: &[u8]) -> Result<Option<(Record, usize)>, String> {
        let Some(head) = bytes.first_chunk::<BYTES>() else { return Ok(None) };
        let (kind, flow, first, second) = (word(head, 0), word(head, 4), long(head, 8), long(head, 16));
        let has_text = matches!(kind, 9..=11);
        let length = if has_text { usize::try_from(second).unwrap_or(usize::MAX) } else { 0 };
        if length > MAX_TEXT {
            return Err(format!("a text of {length} bytes: at most {MAX_TEXT}"));
        }
        let Some(text) = bytes[BYTES..].get(..length) else { return Ok(None) };
        let text = || String::from_utf8_lossy(text).into_owned();
        let record = match kind {
            1 => Record::Ping { sent_ns: first },
            2 => Record::Times { warmup_ns: first, end_ns: second },
            3 => Record::Count,
            4 => Record::Finish,
            5 => Record::Pong { sent_ns: first, at_ns: second },
            6 => Record::Came { flow },
            7 => Record::Delivered { flow, bytes: first, at_ns: second },
            8 => Record::AtWarmup { flow, bytes: first },
            9 => Record::Lost { flow, text: text() },
            10 => Record::Counters { text: text() },
            11 => Record::Failed { text: text() },
            12 => Record::Bye,
            13 => Record::Begin { flow, at_ns: first },
            14 => Record::Talks { flow, live: first },
            15 => Record::Ended { flow, at_ns: first },
            other => return Err(format!("a record of kind {other}: there is none")),
        };
        Ok(Some((record, BYTES + length)))
    }
}

fn word(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8; BYTES], at: usize) -> u64 {
    u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Record> {
        let text = "{\"é\":1}".to_owned();
        vec![
            Record::Ping { sent_ns: 1 << 60 },
            Record::Times { warmup_ns: 5, end_ns: u64::MAX },
            Record::Count,
            Record::Finish,
            Record::Pong { sent_ns: 7, at_ns: 8 },
            Record::Came { flow: 3 },
            Record::Delivered { flow: 3, bytes: 1 << 50, at_ns: 9 },
            Record::AtWarmup { flow: 1, bytes: 2 },
            Record::Lost { flow: 4, text: text.clone() },
            Record::Counters { text: text.clone() },
            Record::Failed { text },
            Record::Bye,
        ]
    }

    #[test]
    fn records_come_back_one_after_another_however_they_are_cut() {
        let mut bytes = vec![];
        all().iter().for_each(|record| record.write(&mut bytes));
        let mut rest = &bytes[..];
        for wanted in all() {
            let (got, length) = Record::parse(rest).unwrap().unwrap();
            assert_eq!(got, wanted);
            for end in 0..length {
                assert_eq!(Record::parse(&rest[..end]), Ok(None), "{wanted:?} of {end} bytes");
            }
            rest = &rest[length..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn junk_is_refused_and_takes_no_memory() {
        assert!(Record::parse(&[0xff; 24]).is_err());
        let mut long = vec![];
        Record::Failed { text: "x".into() }.write(&mut long);
        long[16..24].copy_from_slice(&u64::MAX.to_be_bytes());
        assert!(Record::parse(&long).unwrap_err().contains("at most"));
    }

    #[test]
    fn a_preamble_is_taken_with_its_whole_token_only() {
        let token = Token(*b"0123456789abcdef");
        for preamble in [Preamble::Report, Preamble::Flow(0), Preamble::Flow(77)] {
            let bytes = preamble.to_bytes(token);
            assert_eq!(Preamble::parse(&bytes, token), Some(preamble));
            for at in (0..16).chain(20..24) {
                let mut wrong = bytes;
                wrong[at] ^= 1;
                assert_eq!(Preamble::parse(&wrong, token), None, "byte {at}");
            }
        }
        assert_eq!(format!("{token:?}"), "Token", "no log shows it");
    }
}
