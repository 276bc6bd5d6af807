//! Frames that an interface says that it dropped for want of room.

/// Overruns while receiving and drops while sending, since the interface was made (/proc/net/dev, of the thread's own
/// network namespace); None: it is not there any more.
pub(crate) fn drops(interface: &str) -> Option<(u64, u64)> {
    parse(&std::fs::read_to_string("/proc/thread-self/net/dev").ok()?, interface)
}

/// Eight columns of receiving and as many of sending: bytes, packets, errors, drops, overruns and others
/// (`dev_seq_printf_stats`). The drops of receiving are no measure: frames of a type that nobody wants are among them.
fn parse(text: &str, interface: &str) -> Option<(u64, u64)> {
    text.lines().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let columns: Vec<u64> = rest.split_whitespace().map_while(|column| column.parse().ok()).collect();
        (name.trim() == interface).then(|| Some((*columns.get(4)?, *columns.get(11)?)))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruns_and_drops_have_their_columns() {
        let text = "Inter-|   Receive          |  Transmit\n face |bytes packets errs drop\n\
                    eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth01: 0 0 0 7 8 0 0 0 0 0 0 9 0 0 0 0\n";
        assert_eq!(parse(text, "eth0"), Some((5, 12)));
        assert_eq!(parse(text, "eth01"), Some((8, 9)));
        assert_eq!(parse(text, "eth"), None);
    }
}
