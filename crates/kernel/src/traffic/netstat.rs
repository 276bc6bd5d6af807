//! A namespace's TCP counters: /proc/net/netstat, the lines "TcpExt:".

use super::proc_file;
use crate::namespace;
use std::fs::File;
use std::io;

/// The counters of one namespace, to be read as often as one likes.
pub(crate) struct Netstat(File);

/// Counters of the sender's recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recoveries {
    /// Loss recoveries entered without a time-out: TCPSackRecovery + TCPRenoRecovery.
    pub fast: u64,
    /// Tail loss probes sent: TCPLossProbes.
    pub probes: u64,
    /// Reductions undone: TCPFullUndo + TCPPartialUndo + TCPDSACKUndo + TCPLossUndo.
    pub undone: u64,
}

impl Netstat {
    /// Opens those of the namespace whose file is `namespace`.
    ///
    /// # Errors
    /// The namespace or its /proc cannot be entered or read.
    pub fn open(namespace: &str) -> io::Result<Netstat> {
        // Of the thread, not of the process: /proc/net would be the namespace of the process' first thread. An open
        // file stays in the namespace that it was opened in.
        namespace::within(namespace, || File::open("/proc/thread-self/net/netstat"))?.map(Netstat)
    }

    /// Reads them.
    ///
    /// # Errors
    /// Reading fails, or a counter is missing.
    pub fn read(&self) -> io::Result<Recoveries> {
        parse(&proc_file::text(&self.0)?)
    }
}

fn parse(text: &str) -> io::Result<Recoveries> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let sum = |wanted: &[&str]| {
        let found = names.split_whitespace().zip(values.split_whitespace()).filter(|(name, _)| wanted.contains(name));
        let numbers: Vec<u64> = found.filter_map(|(_, value)| value.parse().ok()).collect();
        if numbers.len() == wanted.len() {
            return Ok(numbers.iter().sum());
        }
        let text = format!("/proc/net/netstat has not all of {}", wanted.join(", "));
        Err(io::Error::new(io::ErrorKind::InvalidData, text))
    };
    Ok(Recoveries {
        fast: sum(&["TCPSackRecovery", "TCPRenoRecovery"])?,
        probes: sum(&["TCPLossProbes"])?,
        undone: sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"])?,
    })
}

impl Recoveries {
    /// Returns the increase since `earlier`.
    pub fn since(&self, earlier: &Recoveries) -> Recoveries {
        Recoveries {
            fast: self.fast - earlier.fast,
            probes: self.probes - earlier.probes,
            undone: self.undone - earlier.undone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_names_wherever_they_stand() {
        let text = "TcpExt: Other TCPLossUndo TCPFullUndo TCPSackRecovery TCPRenoRecovery TCPPartialUndo \
                    TCPLossProbes TCPDSACKUndo\n\
                    TcpExt: 99 1 2 4 8 16 32 64\nIpExt: TCPLossProbes\nIpExt: 7\n";
        assert_eq!(parse(text).unwrap(), Recoveries { fast: 12, probes: 32, undone: 83 });
    }

    #[test]
    fn a_counter_that_is_missing_is_an_error_not_a_zero() {
        let error = parse("TcpExt: TCPSackRecovery\nTcpExt: 1\n").unwrap_err();
        assert!(error.to_string().contains("TCPRenoRecovery"), "{error}");
    }

    #[test]
    fn this_kernel_has_all_of_them() {
        let text = std::fs::read_to_string("/proc/net/netstat").expect("Linux has it");
        parse(&text).unwrap();
    }
}
