//! Trains back to back over loopback: the rate at which they leave and arrive, and what the reflector loses of them.
//! `cargo run --release -p path-net --example burst`

use path_net::{ReflectorServer, TrainDriver};
use path_test::reflector::ReflectorConfig;
use path_test::train::{Train, TrainPacket};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rate of packets between the first and the last of these times, bit/s.
fn rate_bps(times: impl Iterator<Item = u64> + Clone, packet_bytes: u32) -> f64 {
    let (first, last) = (times.clone().min().unwrap_or(0), times.clone().max().unwrap_or(0));
    let packets = times.count().saturating_sub(1);
    packets as f64 * f64::from(packet_bytes) * 8e9 / (last.saturating_sub(first).max(1)) as f64
}

fn main() {
    let config = ReflectorConfig { short_replies: true, ..ReflectorConfig::default() };
    let listen = "127.0.0.1:0".parse().expect("an address");
    let mut server = ReflectorServer::open(&[listen], config).expect("a socket");
    let towards = server.local()[0].to_string();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(|| stop.load(Ordering::Relaxed)).expect("it waits"));
        let mut driver = TrainDriver::open(&towards, None, 1_000_000_000).expect("a socket");
        for (packets, gap_ns) in [(100, 0), (1000, 0), (4000, 0), (1000, 2400), (1000, 12_000), (1000, 120_000)] {
            let report = driver.send(&Train::even(packets, 1500, gap_ns), &mut || false).expect("it goes");
            let sent = report.packets.iter().map(|packet| packet.sent_ns);
            let received = report.packets.iter().filter_map(|packet| packet.received_ns);
            let returned = |packet: &&TrainPacket| packet.returned_ns.is_some();
            println!(
                "{packets} packets of 1500 B, {gap_ns} ns apart: {:.2} Gbit/s left, {:.2} arrived, {} late, {} lost",
                rate_bps(sent, 1500) / 1e9,
                rate_bps(received, 1500) / 1e9,
                report.late,
                u64::from(packets) - report.packets.iter().filter(returned).count() as u64,
            );
        }
        stop.store(true, Ordering::Relaxed);
    });
}
