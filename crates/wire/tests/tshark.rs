//! Wireshark's own reader takes what we write, where it is installed.

use std::process::Command;
use wire::pcapng::Writer;
use wire::{tcp_flags, Conversation, SegmentFields};

const ACK: u8 = tcp_flags::ACK;
const SYN: u8 = tcp_flags::SYN;

/// A connection with a lost segment: SYNs, three segments of which the second is lost, duplicate ACKs with SACK, the
/// retransmission, across the wrap of the sequence numbers.
fn capture() -> Vec<u8> {
    let mut talk = Conversation::new(1);
    (talk.client_isn, talk.server_isn) = (u32::MAX - 2000, 77);
    let mut writer = Writer::new(Vec::new()).unwrap();
    let mut now = 0;
    let mut put = |from_client: bool, segment: SegmentFields| {
        now += 10_000_123;
        let headers = talk.headers(from_client, &segment, &[]);
        let bytes = headers.len() as u32 + segment.payload_bytes;
        writer.write_packet(now, &headers, bytes).unwrap();
    };
    let base = SegmentFields { flags: ACK, window_bytes: 1 << 20, timestamps: Some((1, 1)), ..Default::default() };
    let offer =
        SegmentFields { mss: Some(1460), window_scale: Some(10), sack_permitted: true, window_bytes: 65_535, ..base };
    put(true, SegmentFields { flags: SYN, ..offer });
    put(false, SegmentFields { flags: SYN | ACK, ack: 1, ..offer });
    put(true, SegmentFields { seq: 1, ack: 1, ..base });
    for n in [0u64, 1, 2, 3, 4] {
        put(true, SegmentFields { seq: 1 + 1448 * n, ack: 1, payload_bytes: 1448, ..base });
    }
    put(false, SegmentFields { seq: 1, ack: 1449, ..base });
    for last in [4345, 5793, 7241] {
        let sacks = [(2897, last), (0, 0), (0, 0), (0, 0)];
        put(false, SegmentFields { seq: 1, ack: 1449, sack_count: 1, sacks, ..base });
    }
    put(true, SegmentFields { seq: 1449, ack: 1, payload_bytes: 1448, ..base });
    put(false, SegmentFields { seq: 1, ack: 7241, ..base });
    writer.finish().unwrap()
}

#[test]
fn tshark_reads_a_capture_and_counts_as_we_do() {
    if Command::new("tshark").arg("--version").output().is_err() {
        return crate::skip::skipped("tshark is not installed (Debian package tshark)");
    }
    let path = std::env::temp_dir().join(format!("elephan-wire-{}.pcapng", std::process::id()));
    std::fs::write(&path, capture()).unwrap();
    let fields = ["frame.time_relative", "tcp.len", "tcp.window_size", "tcp.analysis.retransmission"];
    let more = ["tcp.analysis.duplicate_ack", "tcp.checksum.status", "ip.checksum.status", "_ws.malformed"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(&path).args(["-T", "fields", "-E", "separator=|", "-n"]);
    command.args(["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]);
    for field in fields.iter().chain(&more) {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('|').collect()).collect();
    assert_eq!(rows.len(), 14, "{text}");
    let count = |column: usize| rows.iter().filter(|row| !row[column].is_empty()).count();
    assert_eq!(count(3), 1, "retransmissions in\n{text}");
    assert_eq!(count(4), 3, "duplicate ACKs in\n{text}");
    assert_eq!(count(7), 0, "malformed packets in\n{text}");
    assert_eq!(rows[1][0], "0.010000123");
    assert!(rows[2..].iter().all(|row| row[2] == "1048576"), "windows in\n{text}");
    // 1 = good. Where payload is missing tshark cannot say (2 = unverified).
    assert!(rows.iter().all(|row| row[6] == "1"), "IP checksums in\n{text}");
    assert!(rows.iter().all(|row| row[5] == if row[1] == "0" { "1" } else { "2" }), "TCP checksums in\n{text}");
}
