//! The meaning of each field of a delimited trace: a format that needs no reader of its own.

use super::request::SECTOR_BYTES;
use units::NS_PER_S;

/// Most fields that a map names. The longest public format, FIU's, has nine.
const COLUMNS_MAX: usize = 16;

/// Largest unit of an offset or a size, bytes: above any block size of a disk.
const UNIT_BYTES_MAX: u32 = 1 << 20;

/// Meaning of a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// Not read.
    Ignored,
    /// Arrival, in units of `unit_ns`.
    Time { unit_ns: u32 },
    /// Time from arrival to completion, in units of `unit_ns`.
    Response { unit_ns: u32 },
    /// Number of the device.
    Device,
    /// Linux's major number of the device.
    Major,
    /// Linux's minor number of the device.
    Minor,
    /// Read or write: a word, or `read` and the other digit of 0 and 1.
    Operation { read: Option<u8> },
    /// Place of the first byte, in units of `unit` bytes.
    Offset { unit: u32 },
    /// Amount of data, in units of `unit` bytes.
    Size { unit: u32 },
}

/// Text between two fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delimiter {
    /// One character.
    Character(char),
    /// Any amount of white space.
    WhiteSpace,
}

/// The fields of a line, in order. Further fields of a line are ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColumnMap {
    columns: [Column; COLUMNS_MAX],
    count: usize,
    delimiter: Option<Delimiter>,
}

impl ColumnMap {
    /// A map of `columns`; `delimiter` None: decided by the first line.
    pub(super) const fn new(columns: &[Column], delimiter: Option<Delimiter>) -> ColumnMap {
        let mut map = ColumnMap { columns: [Column::Ignored; COLUMNS_MAX], count: columns.len(), delimiter };
        let mut index = 0;
        while index < columns.len() {
            map.columns[index] = columns[index];
            index += 1;
        }
        map
    }

    /// Parses names of columns, separated by commas: `time:UNIT` (`ns`, `100ns`, `us`, `ms`, `s`), `response:UNIT`,
    /// `device`, `major`, `minor`, `op` (or `op:0=read`, `op:1=read`), `offset:UNIT` and `size:UNIT` (`B`, `sectors`
    /// or a number of bytes such as `4096B`; bytes when absent), and `-` for a field that is not read. Times and
    /// offsets, sizes and operations are required.
    ///
    /// # Errors
    /// A description of the expected columns, with the wrong one.
    pub fn parse(text: &str) -> Result<ColumnMap, String> {
        let mut columns = Vec::new();
        for name in text.split(',').map(str::trim) {
            let column = column(name).map_err(|expected| format!("{expected}, not {name:?}"))?;
            if column != Column::Ignored && columns.iter().any(|other| same_kind(*other, column)) {
                return Err(format!("each column once; {name:?} stands twice"));
            }
            columns.push(column);
        }
        if columns.len() > COLUMNS_MAX {
            return Err(format!("at most {COLUMNS_MAX} columns, not {}", columns.len()));
        }
        let has = |test: fn(&Column) -> bool| columns.iter().any(test);
        let required: [(&str, bool); 4] = [
            ("time", has(|c| matches!(c, Column::Time { .. }))),
            ("op", has(|c| matches!(c, Column::Operation { .. }))),
            ("offset", has(|c| matches!(c, Column::Offset { .. }))),
            ("size", has(|c| matches!(c, Column::Size { .. }))),
        ];
        if let Some((name, _)) = required.iter().find(|(_, present)| !present) {
            return Err(format!("a column {name}"));
        }
        if has(|c| *c == Column::Major) != has(|c| *c == Column::Minor) {
            return Err("major and minor together".to_owned());
        }
        if has(|c| *c == Column::Device) && has(|c| *c == Column::Major) {
            return Err("either device, or major and minor".to_owned());
        }
        Ok(ColumnMap::new(&columns, None))
    }

    pub(super) fn columns(&self) -> &[Column] {
        &self.columns[..self.count]
    }

    pub(super) fn delimiter(&self) -> Option<Delimiter> {
        self.delimiter
    }
}

/// Returns whether two columns have the same meaning, whatever their units.
fn same_kind(one: Column, other: Column) -> bool {
    std::mem::discriminant(&one) == std::mem::discriminant(&other)
}

/// The column that `name` names. Err: what would be right.
fn column(name: &str) -> Result<Column, String> {
    let (kind, unit) = name.split_once(':').map_or((name, None), |(kind, unit)| (kind.trim(), Some(unit.trim())));
    match (kind, unit) {
        ("-", None) => Ok(Column::Ignored),
        ("device", None) => Ok(Column::Device),
        ("major", None) => Ok(Column::Major),
        ("minor", None) => Ok(Column::Minor),
        ("time", Some(unit)) => Ok(Column::Time { unit_ns: unit_ns(unit)? }),
        ("response", Some(unit)) => Ok(Column::Response { unit_ns: unit_ns(unit)? }),
        ("time" | "response", None) => Err(format!("{kind} with its unit, such as {kind}:us")),
        ("op", None) => Ok(Column::Operation { read: None }),
        ("op", Some("0=read" | "1=write")) => Ok(Column::Operation { read: Some(0) }),
        ("op", Some("1=read" | "0=write")) => Ok(Column::Operation { read: Some(1) }),
        ("op", Some(_)) => Err("op, op:0=read or op:1=read".to_owned()),
        ("offset", unit) => Ok(Column::Offset { unit: unit_bytes(unit)? }),
        ("size", unit) => Ok(Column::Size { unit: unit_bytes(unit)? }),
        _ => Err("time:UNIT, op, offset:UNIT, size:UNIT, device, major, minor, response:UNIT or -".to_owned()),
    }
}

fn unit_ns(unit: &str) -> Result<u32, String> {
    match unit {
        "ns" => Ok(1),
        "100ns" => Ok(100),
        "us" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(NS_PER_S as u32),
        _ => Err("a unit of time: ns, 100ns, us, ms or s".to_owned()),
    }
}

fn unit_bytes(unit: Option<&str>) -> Result<u32, String> {
    match unit {
        None | Some("B") => Ok(1),
        Some("sectors") => Ok(SECTOR_BYTES),
        Some(text) => {
            let bytes = text.strip_suffix('B').and_then(|digits| digits.parse::<u32>().ok());
            bytes
                .filter(|bytes| (1..=UNIT_BYTES_MAX).contains(bytes))
                .ok_or_else(|| format!("a unit of data: B, sectors or 1B to {UNIT_BYTES_MAX}B"))
        }
    }
}
