//! Bulk data over QUIC: goodput, window and processor time of both ends.
//!
//!     quic_bulk receive IP:PORT CERTIFICATE [STREAMS]
//!     quic_bulk send IP:PORT CERTIFICATE SECONDS CONTROL [STREAMS] [NAME=VALUE ...]
//!
//! The receiver writes its certificate (DER) to the file CERTIFICATE, which the sender reads. CONTROL is the name of a
//! built-in control or a C file. Each prints one line of JSON. Loopback: `quic_bulk receive 127.0.0.1:4433 c.der` and
//! `quic_bulk send 127.0.0.1:4433 c.der 10 cubic`.

use quic::{connect, Control, QuicHandle, QuicListener, Settings};
use rustix::time::{clock_gettime, ClockId};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const PIECE: usize = 1 << 20;
const SAMPLE: Duration = Duration::from_millis(20);
static STOP: AtomicBool = AtomicBool::new(false);
static BYTES: AtomicU64 = AtomicU64::new(0);

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn settings(control: &str, values: &BTreeMap<String, i64>) -> Result<Settings, Box<dyn Error>> {
    let algorithm = if control.ends_with(".c") {
        congestion::compile(Path::new(control))?
    } else {
        congestion::find(control).ok_or(format!("no control {control:?}"))?
    };
    Ok(Settings::new(Control::new(&algorithm, values)?))
}

fn receive(address: SocketAddr, file: &str, streams: usize) -> Result<(), Box<dyn Error>> {
    let made = rcgen::generate_simple_self_signed(vec!["elephan".into()])?;
    let (certificate, key) = (made.cert.der().to_vec(), made.signing_key.serialize_der());
    let port = address.port();
    let settings = settings("cubic", &BTreeMap::new())?;
    let listener = QuicListener::bind(address.ip(), port..=port, &certificate, &key, &settings)?;
    // Whole or not there.
    std::fs::write(format!("{file}.part"), &certificate)?;
    std::fs::rename(format!("{file}.part"), file)?;
    let accepted: Vec<_> =
        (0..streams).map(|_| listener.accept(Duration::from_secs(60), &STOP)).collect::<Result<_, _>>()?;
    let (began, cpu) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    let mut samples = vec![];
    thread::scope(|scope| {
        let mut reading = vec![];
        for mut stream in accepted {
            reading.push(scope.spawn(move || {
                let mut buf = vec![0; PIECE];
                while let Ok(read @ 1..) = stream.read(&mut buf) {
                    BYTES.fetch_add(read as u64, Ordering::Relaxed);
                }
            }));
        }
        while reading.iter().any(|thread| !thread.is_finished()) {
            let now = seconds(ClockId::Monotonic) - began;
            samples.push(format!("[{now:.4},{}]", BYTES.load(Ordering::Relaxed)));
            #[allow(clippy::disallowed_methods, reason = "a program, not a core")]
            thread::sleep(SAMPLE);
        }
    });
    let took = seconds(ClockId::Monotonic) - began;
    let cpu = seconds(ClockId::ProcessCPUTime) - cpu;
    let bytes = BYTES.load(Ordering::Relaxed);
    let rate = bytes as f64 * 8.0 / took;
    println!(
        "{{\"bytes\":{bytes},\"seconds\":{took:.4},\"goodput_bps\":{rate:.0},\"cpu_s\":{cpu:.4},\"samples\":[{}]}}",
        samples.join(",")
    );
    Ok(())
}

fn send(
    address: SocketAddr,
    file: &str,
    for_s: f64,
    settings: &Settings,
    streams: usize,
) -> Result<(), Box<dyn Error>> {
    let certificate = std::fs::read(file)?;
    let made: Vec<_> = (0..streams)
        .map(|_| connect(address, &certificate, settings, Duration::from_secs(20), &STOP))
        .collect::<Result<_, _>>()?;
    let handles: Vec<QuicHandle> = made.iter().map(|stream| stream.handle()).collect();
    let (began, cpu) = (seconds(ClockId::Monotonic), seconds(ClockId::ProcessCPUTime));
    let mut samples = vec![];
    thread::scope(|scope| {
        for stream in made {
            scope.spawn(move || {
                let data: Vec<u8> = (0..PIECE).map(|i| (i * 7 % 251) as u8).collect();
                let (_reader, mut writer) = stream.split();
                while !STOP.load(Ordering::Relaxed) && writer.write_all(&data).is_ok() {
                    BYTES.fetch_add(PIECE as u64, Ordering::Relaxed);
                }
                let _ = writer.finish();
            });
        }
        loop {
            let now = seconds(ClockId::Monotonic) - began;
            if now >= for_s {
                break;
            }
            let facts = handles[0].facts();
            samples.push(format!(
                "[{now:.4},{},{},{},{:.6}]",
                facts.window_bytes / u64::from(facts.payload_bytes),
                facts.lost_packets,
                facts.sent_packets,
                facts.rtt.as_secs_f64()
            ));
            #[allow(clippy::disallowed_methods, reason = "a program, not a core")]
            thread::sleep(SAMPLE);
        }
        STOP.store(true, Ordering::Relaxed);
    });
    let took = seconds(ClockId::Monotonic) - began;
    let cpu = seconds(ClockId::ProcessCPUTime) - cpu;
    let (mut sent, mut lost) = (0, 0);
    for handle in &handles {
        let facts = handle.facts();
        (sent, lost) = (sent + facts.sent_packets, lost + facts.lost_packets);
    }
    let payload = handles[0].facts().payload_bytes;
    println!(
        "{{\"seconds\":{took:.4},\"cpu_s\":{cpu:.4},\"sent_packets\":{sent},\"lost_packets\":{lost},\
         \"payload_bytes\":{payload},\"samples\":[{}]}}",
        samples.join(",")
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let count = |text: Option<&&str>| text.map_or(Ok(1), |text| text.parse());
    let result = match words[..] {
        ["receive", address, file, ref rest @ ..] => receive(address.parse()?, file, count(rest.first())?),
        ["send", address, file, for_s, control, ref rest @ ..] => {
            let (values, streams): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.contains('='));
            let mut given = BTreeMap::new();
            for value in values {
                let (name, number) = value.split_once('=').expect("partitioned by it");
                given.insert(name.to_owned(), number.parse()?);
            }
            send(address.parse()?, file, for_s.parse()?, &settings(control, &given)?, count(streams.first())?)
        }
        _ => Err("quic_bulk receive IP:PORT CERTIFICATE | send IP:PORT CERTIFICATE SECONDS CONTROL".into()),
    };
    quic::settle(Duration::from_secs(2));
    result
}
