//! Hostile peers and broken files, some seconds of it. `fuzz/` runs the same for hours.

use super::ALL;

/// Inputs per function: some seconds in a debug build.
const ROUNDS: u64 = 3000;

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Lines of each format, to be cut and joined.
const PIECES: [&str; 12] = [
    "128166372003061629,hm,1,Read,383496192,32768,113736\n",
    "0,20941264,8192,W,0.551706\n",
    "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 0 4096\n",
    "  8,0    1        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n",
    "1000 0 128 8 1\n",
    "0.009 0 1024 16 0\n",
    "R 34 8 5.123\n",
    "disksim_disk A { Model = B, Scheduler = disksim_ioqueue { Scheduling policy = 1 } }\n",
    "dm_disk B { Block count = 100, Number of data surfaces = 2 }\n",
    "instantiate [ a, b ] as A\n",
    "HeaderDigest=CRC32C\0MaxBurstLength=512\0InitialR2T=No\0",
    "source other.diskspecs\n",
];

fn drawn(random: &mut Random, text: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..random.next() % 24 + 1 {
        if text && !random.next().is_multiple_of(4) {
            let piece = PIECES[random.next() as usize % PIECES.len()].as_bytes();
            let cut = if random.next().is_multiple_of(8) { random.next() as usize % piece.len() } else { piece.len() };
            bytes.extend_from_slice(&piece[..cut]);
        } else {
            // Small numbers mean more than large ones.
            let mask = if random.next().is_multiple_of(2) { 0xff } else { 0x0f };
            bytes.extend((0..random.next() % 24).map(|_| random.next() as u8 & mask));
        }
    }
    bytes
}

fn hold(name: &str) {
    let (_, function) = ALL.iter().find(|(known, _)| *known == name).expect("a function");
    let mut random = Random(4711);
    let text = matches!(name, "text" | "trace" | "disksim");
    for round in 0..ROUNDS {
        let bytes = drawn(&mut random, text);
        let done = std::panic::catch_unwind(|| function(&bytes));
        assert!(done.is_ok(), "{name}, round {round}: {bytes:?}");
    }
}

#[test]
fn any_bytes_in_any_pieces_are_pdus_or_an_error() {
    hold("wire");
}

#[test]
fn any_text_leaves_settings_within_their_ranges() {
    hold("text");
}

#[test]
fn any_trace_is_requests_in_order_or_an_error() {
    hold("trace");
}

#[test]
fn any_disk_description_is_a_drive_or_an_error() {
    hold("disksim");
}

#[test]
fn arbitrary_peers_do_not_disturb_others() {
    hold("target");
}

#[test]
fn a_damaged_line_ends_in_a_status_or_a_failure_for_every_command() {
    hold("session");
}

#[test]
fn any_bytes_are_fibre_channel_or_an_error() {
    hold("fc-fields");
}

#[test]
fn messages_of_tunnels_are_the_same_in_any_pieces() {
    hold("fc-streams");
}

#[test]
fn arbitrary_ethernet_frames_leave_a_forwarder_that_serves() {
    hold("fc-forwarder");
}

#[test]
fn arbitrary_frames_leave_no_command_without_an_end() {
    hold("fc-nport");
}

#[test]
fn arbitrary_gateways_cost_their_own_connections_alone() {
    hold("ifcp");
}

#[test]
fn arbitrary_bytes_cost_a_tunnel_their_own_connection_alone() {
    hold("fcip");
}

#[test]
fn arbitrary_name_servers_leave_a_bounded_client() {
    hold("isns");
}

/// Over several connections a command may come before one with a smaller number; its unsolicited data came to a
/// command that was not there yet, was dropped, and was waited for without end.
#[test]
fn unsolicited_data_is_kept_for_an_early_command() {
    ALL[5].1(&[201, 42, 14, 242, 184, 234, 33, 54, 25, 68, 98, 201, 121, 67, 25, 56]);
    // Two connections, unsolicited data that is not immediate, twelve commands, a line without a fault.
    ALL[5].1(&[0b1100_0001]);
}

/// A LogoutResponse that nobody had asked for, while a second connection was still to be made: that one was waited for
/// to be closed without end (found by libFuzzer).
#[test]
fn an_unrequested_logout_loses_no_command() {
    ALL[5].1(
        b"\
          \x41\x00\x00\x00\x00\xd3\x00\x00\xd3\x00\x00\x00\x00\x00\x00\x00\xd3\x00\x00\xd3\x00\x00\x00\x00\
          \xd3\x00\x00\xd3\x00\x00\xd3\x00\x00\x00\x00\xd3\x00\x00\xd3\xb1\xf3\xd3\x2a\x87\x87\x87\x87\xe4\
          \x25\x23\x00\xd3\x00\x00\x00\xd3\x00\x00\xd3\x00\x00\xd3\x00\x00\x00\x00\xd3\x00\x00\xd3\xb1\xf3\
          \xd3\x01\xb1\xb1\xd3\x01\xf3\xd3\x00\x00\xd3\x00\x00\xd3\x00\x00\xd3\x00\x00\x00\x00\xd3\x00\x00\
          \xd3\xd3\xb1\xb1\xb1\xd3\x01\xf3\x01\xf3",
    );
}
