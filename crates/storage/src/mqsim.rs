//! The text format of the MQSim project (Tavakkol et al., FAST 2018): one request per line.
//!
//! `arrival-ns device LBA sectors kind`, separated by white space; LBA in sectors of 512 bytes, kind 1 = read, 0 = write.

use crate::{Kind, Request, TraceError, SECTOR_BYTES};
use std::io::BufRead;

/// Characters of a bad line that an error shows.
const SHOWN: usize = 100;

const SHAPE: &str = "five numbers: arrival in ns, device, LBA in 512 B sectors, size in sectors, 1 (read) or 0 (write)";

/// Reads requests one by one, in constant memory; ends after the first error.
pub struct MqsimReader<R> {
    name: String,
    from: R,
    buffer: String,
    line: u64,
    last_arrival: u64,
    failed: bool,
}

impl<R: BufRead> MqsimReader<R> {
    /// A reader; `name` is what errors call the trace.
    pub fn new(name: &str, from: R) -> MqsimReader<R> {
        let name = name.to_owned();
        MqsimReader { name, from, buffer: String::new(), line: 0, last_arrival: 0, failed: false }
    }

    fn request(&self) -> Result<Request, String> {
        let mut fields = [""; 5];
        let mut count = 0;
        for field in self.buffer.split_ascii_whitespace() {
            if count < fields.len() {
                fields[count] = field;
            }
            count += 1;
        }
        if count != fields.len() {
            let cut = if count < fields.len() { " (is the file cut off?)" } else { "" };
            return Err(format!("{SHAPE}; there are {count}{cut}"));
        }
        let number = |index: usize, what: &str, most: u64| {
            let digits = fields[index].bytes().all(|b| b.is_ascii_digit());
            let value = if digits { fields[index].parse::<u64>().ok() } else { None };
            value.filter(|&v| v <= most).ok_or_else(|| format!("{what}, 0 to {most}, as field {}", index + 1))
        };
        let arrival_ns = number(0, "an arrival time in ns", u64::MAX)?;
        if arrival_ns < self.last_arrival {
            let before = self.last_arrival;
            return Err(format!(
                "an arrival at {before} ns or later, as on the line before: sort the trace by arrival"
            ));
        }
        let device = number(1, "a device number", u64::from(u32::MAX))? as u32;
        let lba = number(2, "a sector number", u64::MAX / u64::from(SECTOR_BYTES))?;
        let sectors = number(3, "a size in sectors", u64::from(u32::MAX / SECTOR_BYTES))? as u32;
        if sectors == 0 {
            return Err("a size of at least 1 sector as field 4".to_owned());
        }
        let kind = match fields[4] {
            "0" => Kind::Write,
            "1" => Kind::Read,
            _ => return Err("1 (read) or 0 (write) as field 5".to_owned()),
        };
        Ok(Request { arrival_ns, device, lba, bytes: sectors * SECTOR_BYTES, kind })
    }
}

impl<R: BufRead> Iterator for MqsimReader<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        self.buffer.clear();
        self.line += 1;
        match self.from.read_line(&mut self.buffer) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(source) => {
                self.failed = true;
                return Some(Err(TraceError::Read { name: self.name.clone(), line: Some(self.line), source }));
            }
        }
        let request = self.request();
        Some(match request {
            Ok(request) => {
                self.last_arrival = request.arrival_ns;
                Ok(request)
            }
            Err(expected) => {
                self.failed = true;
                let text = self.buffer.trim_end_matches(['\n', '\r']).chars().take(SHOWN).collect();
                Err(TraceError::Line { name: self.name.clone(), line: self.line, text, expected })
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kind, Request, Trace};

    /// The first lines of tpcc-small.trace (MQSim project, MIT).
    const SAMPLE: &str = "938513000 4 264719034 16 0\n938828000 3 197570570 16 0\n938944000 13 93230992 32 1\n";

    fn read(text: &str) -> Result<Trace, String> {
        Trace::read("t.trace", "mqsim", text.as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_real_sample() {
        let trace = read(SAMPLE).unwrap();
        let first = Request { arrival_ns: 938_513_000, device: 4, lba: 264_719_034, bytes: 8192, kind: Kind::Write };
        assert_eq!(trace.requests[0], first);
        assert_eq!(trace.requests[2].kind, Kind::Read);
        assert_eq!(trace.span_ns(), 431_000);
    }

    #[test]
    fn line_ends_of_other_systems_and_a_missing_last_one() {
        let text = SAMPLE.replace('\n', "\r\n");
        assert_eq!(read(&text).unwrap(), read(SAMPLE).unwrap());
        assert_eq!(read(SAMPLE.trim_end()).unwrap(), read(SAMPLE).unwrap());
    }

    #[test]
    fn errors_name_file_line_text_and_what_would_be_right() {
        for (bad, parts) in [
            ("1 2 3 4\n", &["t.trace, line 4", "\"1 2 3 4\"", "five numbers", "there are 4", "cut off"][..]),
            ("938944001 4 2 16 0 7\n", &["there are 6"]),
            ("\n", &["line 4", "there are 0"]),
            ("938944001 4 2 16 2\n", &["1 (read) or 0 (write)"]),
            ("938944001 4 2 0 0\n", &["at least 1 sector"]),
            ("938944001 4 2 8388608 0\n", &["size in sectors, 0 to 8388607"]),
            ("938944001 -4 2 16 0\n", &["device number"]),
            ("938944001 +4 2 16 0\n", &["device number"]),
            ("938944001.5 4 2 16 0\n", &["arrival time in ns"]),
            ("938943999 4 2 16 0\n", &["938944000 ns or later", "sort"]),
            ("938944001 4 99999999999999999999 16 0\n", &["sector number"]),
        ] {
            let error = read(&format!("{SAMPLE}{bad}")).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{bad:?} gives {error:?}, without {part:?}");
            }
        }
    }

    #[test]
    fn no_request_is_an_error_and_so_are_bytes_that_are_no_text() {
        assert!(read("").unwrap_err().contains("no request"));
        let error = Trace::read("t", "mqsim", &b"1 2 3 4 0\n\xff\xfe\n"[..]).unwrap_err().to_string();
        assert!(error.contains("t, line 2"), "{error}");
        let error = Trace::read("t", "srt", &b""[..]).unwrap_err().to_string();
        assert!(error.contains("\"srt\"") && error.contains("mqsim"), "{error}");
        let error = crate::open("/nowhere/x.trace", "mqsim").unwrap_err().to_string();
        assert!(error.contains("/nowhere/x.trace"), "{error}");
    }
}
