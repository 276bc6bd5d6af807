//! Programs over UDP, of whose payload the kernel has no count by socket: what the receiving one writes is counted.

use super::proc_file;
use crate::namespace;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Bytes that a process has written since a time, by the kernel's own count.
pub(crate) struct Written {
    /// Its /proc/PID/io, of all threads; readable until it has been waited for.
    io: File,
    /// Files of its words, which are no data.
    said: Vec<PathBuf>,
    before: u64,
    bytes: u64,
}

impl Written {
    /// Counts from now on, from `io`, a process' /proc/PID/io; what it writes to the files `said` does not count.
    ///
    /// # Errors
    /// The kernel's; there is no counter.
    pub fn since_now(io: File, said: Vec<PathBuf>) -> io::Result<Written> {
        let mut made = Written { io, said, before: 0, bytes: 0 };
        made.before = made.written()?;
        Ok(made)
    }

    fn written(&self) -> io::Result<u64> {
        // In this order, so that no word is taken for data.
        let all = written(&proc_file::text(&self.io)?)?;
        let sizes = self.said.iter().map(|file| std::fs::metadata(file).map(|found| found.len()));
        Ok(all.saturating_sub(sizes.sum::<io::Result<u64>>()?))
    }

    /// Reads the counter again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&mut self) -> io::Result<()> {
        // Of a word between the two readings a count would go back.
        self.bytes = self.bytes.max(self.written()?.saturating_sub(self.before));
        Ok(())
    }

    /// Bytes as of the latest look.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The field `wchar` of /proc/PID/io: bytes of write(2) and its kin. Packets are not in it: send(2) and sendmsg(2) do
/// not count (fs/read_write.c has add_wchar, net/socket.c has not).
fn written(text: &str) -> io::Result<u64> {
    let found = text.lines().find_map(|line| line.strip_prefix("wchar:"));
    found
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no wchar in it (CONFIG_TASK_XACCT)"))
}

/// The UDP sockets of one namespace.
pub(crate) struct UdpSockets(Vec<File>);

impl UdpSockets {
    /// Of the namespace whose file is `namespace`; None: this thread's.
    ///
    /// # Errors
    /// The namespace or its /proc cannot be entered or read.
    pub fn open(namespace: Option<&str>) -> io::Result<UdpSockets> {
        let open = || {
            let mut files = vec![File::open("/proc/thread-self/net/udp")?];
            // A kernel without IPv6 has no such table.
            files.extend(File::open("/proc/thread-self/net/udp6"));
            Ok(files)
        };
        match namespace {
            Some(namespace) => namespace::within(namespace, open)?,
            None => open(),
        }
        .map(UdpSockets)
    }

    /// Returns true if a socket is bound to `port`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn have(&self, port: u16) -> io::Result<bool> {
        for file in &self.0 {
            if has_port(&proc_file::text(file)?, port) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// A line of /proc/net/udp or udp6 begins with the slot and the local address, in hexadecimal (udp4_format_sock).
fn has_port(text: &str, port: u16) -> bool {
    let local = text.lines().filter_map(|line| line.split_whitespace().nth(1)?.split_once(':'));
    local.into_iter().any(|(_, number)| u16::from_str_radix(number, 16) == Ok(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::UdpSocket;

    #[test]
    fn bytes_that_are_written_count_and_neither_packets_nor_words_do() {
        let words = std::env::temp_dir().join(format!("elephan-written-{}", std::process::id()));
        let mut said = File::create(&words).unwrap();
        let io = File::open("/proc/thread-self/io").expect("the kernel counts (CONFIG_TASK_IO_ACCOUNTING)");
        let mut counted = Written::since_now(io, vec![words.clone()]).unwrap();
        said.write_all(&[0; 777]).unwrap();
        let mut null = File::create("/dev/null").unwrap();
        null.write_all(&[0; 12_345]).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        counted.look().unwrap();
        std::fs::remove_file(words).unwrap();
        assert_eq!(counted.bytes(), 12_345);
    }

    #[test]
    fn a_kernel_without_the_counter_is_an_error() {
        assert!(written("rchar: 1\n").unwrap_err().to_string().contains("CONFIG_TASK_XACCT"));
    }

    #[test]
    fn a_socket_is_found_by_its_port_and_not_by_its_peers() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let sockets = UdpSockets::open(None).unwrap();
        assert!(sockets.have(port).unwrap());
        drop(socket);
        assert!(!sockets.have(port).unwrap());
        if let Ok(socket) = UdpSocket::bind("[::1]:0") {
            assert!(sockets.have(socket.local_addr().unwrap().port()).unwrap());
        }
        let text = "  sl  local_address rem_address\n  10: 0100007F:0007 0100007F:0008 07\n";
        assert!(has_port(text, 7) && !has_port(text, 8));
    }
}
