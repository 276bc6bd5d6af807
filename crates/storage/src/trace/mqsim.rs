//! The text format of the MQSim project (Tavakkol et al., FAST 2018): one request per line.
//!
//! `arrival-ns device LBA sectors kind`, separated by white space; LBA in sectors of 512 bytes, kind 1 = read, 0 =
//! write.

use super::fields::{columns, sectors, whole, MAX_LBA};
use super::lines::LineFormat;
use super::request::{Kind, Request};

const SHAPE: &str = "five numbers: arrival in ns, device, LBA in 512 B sectors, size in sectors, 1 (read) or 0 (write)";

#[derive(Default)]
pub struct Mqsim {
    last_arrival: u64,
}

impl LineFormat for Mqsim {
    fn line(&mut self, text: &str) -> Result<Option<Request>, String> {
        let [arrival, device, lba, size, kind] =
            columns(text).map_err(|count| format!("{SHAPE}; there are {count}"))?;
        let arrival_ns = whole(arrival, "an arrival time in ns", u64::MAX)?;
        if arrival_ns < self.last_arrival {
            let before = self.last_arrival;
            return Err(format!(
                "an arrival at {before} ns or later, as on the line before: sort the trace by arrival"
            ));
        }
        let device = whole(device, "a device number", u64::from(u32::MAX))? as u32;
        let lba = whole(lba, "a sector number", MAX_LBA)?;
        let bytes = sectors(size)?;
        let kind = match kind {
            "0" => Kind::Write,
            "1" => Kind::Read,
            _ => return Err("1 (read) or 0 (write) as field 5".to_owned()),
        };
        self.last_arrival = arrival_ns;
        Ok(Some(Request { arrival_ns, device, lba, bytes, kind, response_ns: None }))
    }
}
