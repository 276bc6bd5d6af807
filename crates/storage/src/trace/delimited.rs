//! Traces whose lines are delimited fields, read by a [`ColumnMap`]; and the maps of four public collections.

use super::column_map::{Column, ColumnMap, Delimiter};
use super::fields::{decimal_ns, whole};
use super::format::MINOR_BITS;
use super::lines::LineFormat;
use super::request::{Kind, Request, SECTOR_BYTES};
use units::NS_PER_S;

const COMMA: Option<Delimiter> = Some(Delimiter::Character(','));
const NS_PER_US: u32 = 1_000;

/// Alibaba's block traces (Li et al., IISWC 2020): `device_id,opcode,offset,length,timestamp`, bytes and us.
pub const ALIBABA: ColumnMap = ColumnMap::new(
    &[
        Column::Device,
        Column::Operation { read: None },
        Column::Offset { unit: 1 },
        Column::Size { unit: 1 },
        Column::Time { unit_ns: NS_PER_US },
    ],
    COMMA,
);

/// Tencent's block storage traces (Zhang et al., USENIX ATC 2020): `Timestamp,Offset,Size,IOType,VolumeID`, s and
/// sectors; 0 is a read.
pub const TENCENT: ColumnMap = ColumnMap::new(
    &[
        Column::Time { unit_ns: NS_PER_S as u32 },
        Column::Offset { unit: SECTOR_BYTES },
        Column::Size { unit: SECTOR_BYTES },
        Column::Operation { read: Some(0) },
        Column::Device,
    ],
    COMMA,
);

/// The virtual desktops of SYSTOR '17 (Lee et al.): `Timestamp,Response,IOType,LUN,Offset,Size`, s and bytes.
pub const SYSTOR: ColumnMap = ColumnMap::new(
    &[
        Column::Time { unit_ns: NS_PER_S as u32 },
        Column::Response { unit_ns: NS_PER_S as u32 },
        Column::Operation { read: None },
        Column::Device,
        Column::Offset { unit: 1 },
        Column::Size { unit: 1 },
    ],
    COMMA,
);

/// Florida International University's (Koller and Rangaswami, FAST 2010): `ts pid process lba size op major minor
/// md5`, ns and sectors.
pub const FIU: ColumnMap = ColumnMap::new(
    &[
        Column::Time { unit_ns: 1 },
        Column::Ignored,
        Column::Ignored,
        Column::Offset { unit: SECTOR_BYTES },
        Column::Size { unit: SECTOR_BYTES },
        Column::Operation { read: None },
        Column::Major,
        Column::Minor,
    ],
    Some(Delimiter::WhiteSpace),
);

/// Reads lines by a map of their columns.
pub struct Delimited {
    map: ColumnMap,
    /// None until the first line with fields.
    delimiter: Option<Delimiter>,
    first_line_read: bool,
}

/// The fields of a line that were read so far.
#[derive(Default)]
struct Fields {
    arrival_ns: u64,
    response_ns: Option<u64>,
    device: u32,
    major: u32,
    minor: Option<u32>,
    /// None: an operation without data, or none recorded.
    kind: Option<Kind>,
    offset_bytes: u64,
    size_bytes: u64,
}

impl Delimited {
    pub fn new(map: ColumnMap) -> Delimited {
        Delimited { map, delimiter: map.delimiter(), first_line_read: false }
    }
}

impl LineFormat for Delimited {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(None);
        }
        let delimiter = *self.delimiter.get_or_insert_with(|| delimiter_of(text));
        let is_first = !std::mem::replace(&mut self.first_line_read, true);
        let fields = match delimiter {
            Delimiter::Character(character) => read_fields(self.map.columns(), text.split(character).map(str::trim)),
            Delimiter::WhiteSpace => read_fields(self.map.columns(), text.split_ascii_whitespace()),
        };
        // A first line in which no field begins with a digit holds the names of the columns.
        let fields = match fields {
            Err(_) if is_first && is_heading(text, delimiter) => return Ok(None),
            other => other?,
        };
        let Some(kind) = fields.kind.filter(|_| fields.size_bytes > 0) else {
            return Ok(None);
        };
        let bytes = u32::try_from(fields.size_bytes).map_err(|_| format!("a size of at most {} bytes", u32::MAX))?;
        let device = match fields.minor {
            Some(minor) => fields.major << MINOR_BITS | minor,
            None => fields.device,
        };
        Ok(Some(Request {
            arrival_ns: fields.arrival_ns,
            device,
            lba: fields.offset_bytes / u64::from(SECTOR_BYTES),
            bytes,
            kind,
            response_ns: fields.response_ns,
        }))
    }
}

/// The delimiter of a text's first line.
fn delimiter_of(line: &str) -> Delimiter {
    let character = [',', ';', '|'].into_iter().find(|&character| line.contains(character));
    character.map_or(Delimiter::WhiteSpace, Delimiter::Character)
}

/// Returns whether no field of `line` begins as a number does.
fn is_heading(line: &str, delimiter: Delimiter) -> bool {
    let is_word = |field: &str| !field.trim_start().starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    match delimiter {
        Delimiter::Character(character) => line.split(character).all(is_word),
        Delimiter::WhiteSpace => line.split_ascii_whitespace().all(is_word),
    }
}

fn read_fields<'a>(columns: &[Column], mut texts: impl Iterator<Item = &'a str>) -> Result<Fields, String> {
    let mut fields = Fields::default();
    for (index, &column) in columns.iter().enumerate() {
        let Some(text) = texts.next() else {
            return Err(format!("{} fields; there are {index}", columns.len()));
        };
        let number = |what: &str, most: u64| whole(text, &format!("{what} as field {}", index + 1), most);
        let time =
            |what: &str, unit_ns: u32| decimal_ns(text, &format!("{what} as field {}", index + 1), u64::from(unit_ns));
        match column {
            Column::Ignored => {}
            Column::Time { unit_ns } => fields.arrival_ns = time("a time", unit_ns)?,
            // Absent for a request that never completed.
            Column::Response { .. } if text.is_empty() => {}
            Column::Response { unit_ns } => fields.response_ns = Some(time("a response time", unit_ns)?),
            Column::Device => fields.device = number("a device's number", u64::from(u32::MAX))? as u32,
            Column::Major => fields.major = number("a major number", (1 << (32 - MINOR_BITS)) - 1)? as u32,
            Column::Minor => fields.minor = Some(number("a minor number", (1 << MINOR_BITS) - 1)? as u32),
            Column::Operation { read } => fields.kind = operation(text, read, index)?,
            Column::Offset { unit } => {
                fields.offset_bytes = number("an offset", u64::MAX / u64::from(unit))? * u64::from(unit);
            }
            Column::Size { unit } => {
                fields.size_bytes = number("a size", u64::from(u32::MAX / unit))? * u64::from(unit);
            }
        }
    }
    Ok(fields)
}

/// Read or write; None where the field is empty.
fn operation(text: &str, read: Option<u8>, index: usize) -> Result<Option<Kind>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    match read {
        Some(read) => match text {
            "0" | "1" => Ok(Some(if text == if read == 0 { "0" } else { "1" } { Kind::Read } else { Kind::Write })),
            _ => Err(format!("0 or 1 as field {}, not {text:?}", index + 1)),
        },
        None if ["r", "read"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Ok(Some(Kind::Read)),
        None if ["w", "write"].iter().any(|word| text.eq_ignore_ascii_case(word)) => Ok(Some(Kind::Write)),
        None if matches!(text, "0" | "1") => {
            Err(format!("R or W as field {}, not {text:?}; op:0=read or op:1=read gives numbers a meaning", index + 1))
        }
        None => Err(format!("R or W as field {}, not {text:?}", index + 1)),
    }
}
