//! Keys of a login and how the values of both sides become one (RFC 7143, section 13).

/// A side's preference for digests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Digest {
    /// None alone.
    Off,
    /// None if the other side takes it, else CRC32C.
    #[default]
    Allowed,
    /// CRC32C if the other side takes it, else none.
    Preferred,
    /// CRC32C alone.
    Required,
}

impl Digest {
    fn offer(self) -> &'static str {
        match self {
            Digest::Off => "None",
            Digest::Allowed => "None,CRC32C",
            Digest::Preferred => "CRC32C,None",
            Digest::Required => "CRC32C",
        }
    }

    fn takes(self, value: &str) -> bool {
        match value {
            "None" => self != Digest::Required,
            "CRC32C" => self != Digest::Off,
            _ => false,
        }
    }
}

/// The settings of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// CRC32C over headers.
    pub header_digest: Digest,
    /// CRC32C over data.
    pub data_digest: Digest,
    /// Connections of a session, 1 to 65535; the smaller wins.
    pub max_connections: u32,
    /// Nothing but immediate data before an R2T; true if either side says so.
    pub initial_r2t: bool,
    /// Data may ride on the command; true if both sides say so.
    pub immediate_data: bool,
    /// Longest data segment that this side takes, bytes, 512 to 2^24 - 1; each side declares its own.
    pub max_recv_bytes: u32,
    /// Most data of one R2T or of one sequence of Data-In, bytes, 512 to 2^24 - 1; the smaller wins.
    pub max_burst_bytes: u32,
    /// Most unsolicited data, bytes, 512 to the burst; the smaller wins.
    pub first_burst_bytes: u32,
    /// Least time before a lost connection is made anew, s, 0 to 3600; the larger wins.
    pub time_to_wait_s: u32,
    /// Time for which a lost connection's commands are kept, s, 0 to 3600; the smaller wins.
    pub time_to_retain_s: u32,
    /// R2Ts outstanding per command, 1 to 65535; the smaller wins.
    pub max_outstanding_r2t: u32,
}

impl Default for Settings {
    /// Settings for a fast network: as much unsolicited data as allowed, and bursts of large transfers.
    fn default() -> Settings {
        Settings {
            header_digest: Digest::Allowed,
            data_digest: Digest::Allowed,
            max_connections: 8,
            initial_r2t: false,
            immediate_data: true,
            max_recv_bytes: 262_144,
            max_burst_bytes: 1_048_576,
            first_burst_bytes: 262_144,
            time_to_wait_s: 2,
            time_to_retain_s: 0,
            max_outstanding_r2t: 8,
        }
    }
}

impl Settings {
    /// The same within the ranges of the RFC.
    pub fn within_ranges(self) -> Settings {
        let mut values = self.values();
        for (value, key) in values.iter_mut().zip(&KEYS) {
            if let Rule::Min(least, most) | Rule::Max(least, most) | Rule::Declare(least, most) = key.rule {
                *value = (*value).clamp(least, most);
            }
        }
        let mut settings = Settings {
            max_connections: values[MAX_CONNECTIONS],
            max_recv_bytes: values[MAX_RECV],
            max_burst_bytes: values[MAX_BURST],
            first_burst_bytes: values[FIRST_BURST],
            time_to_wait_s: values[TIME_TO_WAIT],
            time_to_retain_s: values[TIME_TO_RETAIN],
            max_outstanding_r2t: values[MAX_R2T],
            ..self
        };
        settings.first_burst_bytes = settings.first_burst_bytes.min(settings.max_burst_bytes);
        settings
    }

    fn values(&self) -> [u32; COUNT] {
        [
            0,
            0,
            self.max_connections,
            u32::from(self.initial_r2t),
            u32::from(self.immediate_data),
            self.max_recv_bytes,
            self.max_burst_bytes,
            self.first_burst_bytes,
            self.time_to_wait_s,
            self.time_to_retain_s,
            self.max_outstanding_r2t,
            1,
            1,
            0,
        ]
    }

    fn digest(&self, key: usize) -> Digest {
        if key == HEADER_DIGEST {
            self.header_digest
        } else {
            self.data_digest
        }
    }
}

/// The negotiated parameters. Data comes in order within a sequence and from sequence to sequence (DataPDUInOrder and
/// DataSequenceInOrder are Yes, since this side always says so), and the error recovery level is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Negotiated {
    /// CRC32C over headers.
    pub header_digest: bool,
    /// CRC32C over data.
    pub data_digest: bool,
    /// Connections of the session.
    pub max_connections: u32,
    /// Nothing but immediate data before an R2T.
    pub initial_r2t: bool,
    /// Data may ride on the command.
    pub immediate_data: bool,
    /// Longest data segment that this side takes, bytes.
    pub max_recv_bytes: u32,
    /// Longest data segment that the other side takes, bytes.
    pub max_send_bytes: u32,
    /// Most data of a sequence, bytes.
    pub max_burst_bytes: u32,
    /// Most unsolicited data, bytes.
    pub first_burst_bytes: u32,
    /// Least time before a lost connection is made anew, s.
    pub time_to_wait_s: u32,
    /// Time for which a lost connection's commands are kept, s.
    pub time_to_retain_s: u32,
    /// R2Ts outstanding per command.
    pub max_outstanding_r2t: u32,
}

impl Negotiated {
    /// Most data of a command that may come before it is asked for, where this side takes segments of `max_recv_bytes`,
    /// bytes.
    pub fn unsolicited_bytes(&self, max_recv_bytes: u32) -> u32 {
        match (self.initial_r2t, self.immediate_data) {
            (false, _) => self.first_burst_bytes,
            (true, true) => self.first_burst_bytes.min(max_recv_bytes),
            (true, false) => 0,
        }
    }
}

/// The rule by which two values become one (RFC 7143, 6.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The first of the offered that the other side takes.
    List,
    Or,
    And,
    Min(u32, u32),
    Max(u32, u32),
    /// Each side says its own.
    Declare(u32, u32),
}

struct Key {
    name: &'static str,
    rule: Rule,
    /// Defaults of RFC 7143.
    default: u32,
    /// Of the whole session: said on its first connection, and not in a discovery session.
    session: bool,
}

const COUNT: usize = 14;
const HEADER_DIGEST: usize = 0;
const DATA_DIGEST: usize = 1;
const MAX_CONNECTIONS: usize = 2;
const INITIAL_R2T: usize = 3;
const IMMEDIATE_DATA: usize = 4;
const MAX_RECV: usize = 5;
const MAX_BURST: usize = 6;
const FIRST_BURST: usize = 7;
const TIME_TO_WAIT: usize = 8;
const TIME_TO_RETAIN: usize = 9;
const MAX_R2T: usize = 10;

const SEGMENT: u32 = (1 << 24) - 1;

const fn key(name: &'static str, rule: Rule, default: u32, session: bool) -> Key {
    Key { name, rule, default, session }
}

const KEYS: [Key; COUNT] = [
    key("HeaderDigest", Rule::List, 0, false),
    key("DataDigest", Rule::List, 0, false),
    key("MaxConnections", Rule::Min(1, 65_535), 1, true),
    key("InitialR2T", Rule::Or, 1, true),
    key("ImmediateData", Rule::And, 1, true),
    key("MaxRecvDataSegmentLength", Rule::Declare(512, SEGMENT), 8192, false),
    key("MaxBurstLength", Rule::Min(512, SEGMENT), 262_144, true),
    key("FirstBurstLength", Rule::Min(512, SEGMENT), 65_536, true),
    key("DefaultTime2Wait", Rule::Max(0, 3600), 2, true),
    key("DefaultTime2Retain", Rule::Min(0, 3600), 20, true),
    key("MaxOutstandingR2T", Rule::Min(1, 65_535), 1, true),
    key("DataPDUInOrder", Rule::Or, 1, true),
    key("DataSequenceInOrder", Rule::Or, 1, true),
    key("ErrorRecoveryLevel", Rule::Min(0, 2), 0, true),
];

/// One side's part in a negotiation.
#[derive(Clone, Debug)]
pub struct Negotiation {
    own: Settings,
    values: [u32; COUNT],
    /// Limits of the other side.
    send: u32,
    /// This side's own segment was declared.
    declared: bool,
    /// Offered by this side and not answered yet, a bit each.
    open: u32,
    /// Said by the other side, and taken.
    said: u32,
    discovery: bool,
    leading: bool,
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

fn boolean(text: &str) -> Option<u32> {
    match text {
        "Yes" => Some(1),
        "No" => Some(0),
        _ => None,
    }
}

fn shown(rule: Rule, value: u32) -> String {
    match rule {
        Rule::Or | Rule::And => (if value == 1 { "Yes" } else { "No" }).to_owned(),
        Rule::List => (if value == 1 { "CRC32C" } else { "None" }).to_owned(),
        _ => value.to_string(),
    }
}

impl Negotiation {
    /// A negotiation of a session's first connection.
    pub fn new(own: Settings, discovery: bool) -> Negotiation {
        let values = std::array::from_fn(|index| KEYS[index].default);
        let own = own.within_ranges();
        Negotiation {
            own,
            values,
            send: KEYS[MAX_RECV].default,
            declared: false,
            open: 0,
            said: 0,
            discovery,
            leading: true,
        }
    }

    /// One of a further connection: what concerns the session stays as it was negotiated.
    pub fn joining(own: Settings, negotiated: &Negotiated) -> Negotiation {
        let mut joining = Negotiation { leading: false, ..Negotiation::new(own, false) };
        joining.values[MAX_CONNECTIONS] = negotiated.max_connections;
        joining.values[INITIAL_R2T] = u32::from(negotiated.initial_r2t);
        joining.values[IMMEDIATE_DATA] = u32::from(negotiated.immediate_data);
        joining.values[MAX_BURST] = negotiated.max_burst_bytes;
        joining.values[FIRST_BURST] = negotiated.first_burst_bytes;
        joining.values[TIME_TO_WAIT] = negotiated.time_to_wait_s;
        joining.values[TIME_TO_RETAIN] = negotiated.time_to_retain_s;
        joining.values[MAX_R2T] = negotiated.max_outstanding_r2t;
        joining
    }

    /// This side's offer: every key that concerns the connection.
    pub fn offers(&mut self) -> Vec<(&'static str, String)> {
        let own = self.own.values();
        let mut offers = Vec::new();
        for (index, key) in KEYS.iter().enumerate() {
            if key.session && (self.discovery || !self.leading) {
                continue;
            }
            let value = match key.rule {
                Rule::List => self.own.digest(index).offer().to_owned(),
                rule => shown(rule, own[index]),
            };
            if let Rule::Declare(..) = key.rule {
                self.declared = true;
                self.values[index] = own[index];
            } else {
                self.open |= 1 << index;
            }
            offers.push((key.name, value));
        }
        offers
    }

    /// Keys offered that were not answered.
    pub fn unanswered(&self) -> Option<&'static str> {
        (0..COUNT).find(|index| self.open >> index & 1 == 1).map(|index| KEYS[index].name)
    }

    /// A pair that came: an answer to an offer of this side, or an offer, whose answers are returned.
    ///
    /// # Errors
    /// An answer that does not go with the offer, or a key that was settled before, in words.
    pub fn handle(&mut self, name: &str, value: &str) -> Result<Vec<(&'static str, String)>, String> {
        let Some(index) = KEYS.iter().position(|key| key.name == name) else {
            return Ok(match name {
                // Of the RFC before, and obsolete: no markers (RFC 7143, 13.25).
                "IFMarker" => vec![("IFMarker", "No".to_owned())],
                "OFMarker" => vec![("OFMarker", "No".to_owned())],
                _ => vec![],
            });
        };
        let bit = 1 << index;
        if self.said & bit != 0 {
            // A key that is settled twice ends the login (RFC 7143, 6.3).
            return Err(format!("{name}={value}: a login settles each key once"));
        }
        if self.open & bit != 0 {
            (self.open, self.said) = (self.open & !bit, self.said | bit);
            return self.answer(index, value).map(|()| Vec::new());
        }
        let answers = self.offer(index, value);
        if answers.iter().all(|(_, answer)| answer != "Reject") {
            self.said |= bit;
        }
        Ok(answers)
    }

    /// A digest that this side cannot do without, and that was not agreed on.
    pub fn lacks(&self) -> Option<&'static str> {
        let lacks = |index: &usize| self.own.digest(*index) == Digest::Required && self.values[*index] == 0;
        [HEADER_DIGEST, DATA_DIGEST].into_iter().find(lacks).map(|index| KEYS[index].name)
    }

    /// Returns whether a key is one of those here, or an obsolete one that has its answer.
    pub fn knows(name: &str) -> bool {
        matches!(name, "IFMarker" | "OFMarker") || KEYS.iter().any(|key| key.name == name)
    }

    fn answer(&mut self, index: usize, value: &str) -> Result<(), String> {
        let (key, own) = (&KEYS[index], self.own.values()[index]);
        if matches!(value, "Irrelevant" | "NotUnderstood") {
            return Ok(());
        }
        let wrong = |right: String| Err(format!("{}={value} answers an offer: {right} would be right", key.name));
        let got = match key.rule {
            Rule::List => {
                if !self.own.digest(index).takes(value) {
                    return wrong(format!("one of {}", self.own.digest(index).offer()));
                }
                u32::from(value == "CRC32C")
            }
            Rule::Or | Rule::And => match boolean(value) {
                Some(got) if key.rule == Rule::Or && own == 1 && got == 0 => return wrong("Yes".to_owned()),
                Some(got) if key.rule == Rule::And && own == 0 && got == 1 => return wrong("No".to_owned()),
                Some(got) => got,
                None => return wrong("Yes or No".to_owned()),
            },
            Rule::Min(least, _) => match number(value) {
                Some(got) if (least..=own).contains(&got) => got,
                _ => return wrong(format!("{least} to {own}")),
            },
            Rule::Max(_, most) => match number(value) {
                Some(got) if (own..=most).contains(&got) => got,
                _ => return wrong(format!("{own} to {most}")),
            },
            Rule::Declare(..) => return Ok(()),
        };
        self.values[index] = got;
        Ok(())
    }

    fn offer(&mut self, index: usize, value: &str) -> Vec<(&'static str, String)> {
        let (key, own) = (&KEYS[index], self.own.values()[index]);
        let rejected = || vec![(key.name, "Reject".to_owned())];
        if key.session && self.discovery {
            return vec![(key.name, "Irrelevant".to_owned())];
        }
        if key.session && !self.leading {
            return rejected();
        }
        let result = match key.rule {
            Rule::List => match value.split(',').find(|value| self.own.digest(index).takes(value)) {
                Some(value) => u32::from(value == "CRC32C"),
                None => return rejected(),
            },
            Rule::Or => match boolean(value) {
                Some(offered) => offered | own,
                None => return rejected(),
            },
            Rule::And => match boolean(value) {
                Some(offered) => offered & own,
                None => return rejected(),
            },
            Rule::Min(least, most) | Rule::Max(least, most) | Rule::Declare(least, most) => {
                match number(value).filter(|offered| (least..=most).contains(offered)) {
                    Some(offered) if matches!(key.rule, Rule::Min(..)) => offered.min(own),
                    Some(offered) if matches!(key.rule, Rule::Max(..)) => offered.max(own),
                    Some(offered) => {
                        self.send = offered;
                        if self.declared {
                            return Vec::new();
                        }
                        self.declared = true;
                        self.values[index] = own;
                        return vec![(key.name, own.to_string())];
                    }
                    None => return rejected(),
                }
            }
        };
        self.values[index] = result;
        vec![(key.name, shown(key.rule, result))]
    }

    /// FirstBurstLength that this side wants, bytes; 0: no data is to come unsolicited.
    pub fn first_burst_bytes(&self) -> u32 {
        if self.own.initial_r2t && !self.own.immediate_data {
            return 0;
        }
        self.own.first_burst_bytes
    }

    /// Offers no more than so much unsolicited data of a command, bytes; 0: none.
    pub fn limit_unsolicited(&mut self, first_burst_bytes: u32) {
        if first_burst_bytes == 0 {
            (self.own.initial_r2t, self.own.immediate_data) = (true, false);
        } else {
            self.own.first_burst_bytes = self.own.first_burst_bytes.min(first_burst_bytes);
        }
    }

    /// The parameters in force.
    pub fn negotiated(&self) -> Negotiated {
        let values = &self.values;
        Negotiated {
            header_digest: values[HEADER_DIGEST] == 1,
            data_digest: values[DATA_DIGEST] == 1,
            max_connections: values[MAX_CONNECTIONS],
            initial_r2t: values[INITIAL_R2T] == 1,
            immediate_data: values[IMMEDIATE_DATA] == 1,
            // A key that was not declared is not asked for either: the default holds.
            max_recv_bytes: values[MAX_RECV],
            max_send_bytes: self.send,
            max_burst_bytes: values[MAX_BURST],
            first_burst_bytes: values[FIRST_BURST].min(values[MAX_BURST]),
            time_to_wait_s: values[TIME_TO_WAIT],
            time_to_retain_s: values[TIME_TO_RETAIN],
            max_outstanding_r2t: values[MAX_R2T],
        }
    }
}
