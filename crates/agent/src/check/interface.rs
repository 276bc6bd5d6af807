//! Properties of a network interface: MTU, line rate, offloads, by ioctl(2) in the agent's own namespace.

use rustix::net::{socket, AddressFamily, SocketType};
use serde_json::{json, Map, Value};
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

/// Commands of SIOCETHTOOL (include/uapi/linux/ethtool.h), and the name of what they tell.
const OFFLOADS: [(u32, &str); 5] = [
    (0x0000_0014, "rx_checksum"),
    (0x0000_0016, "tx_checksum"),
    (0x0000_001e, "tso"),
    (0x0000_0023, "gso"),
    (0x0000_002b, "gro"),
];

/// ETHTOOL_GSET, and ETHTOOL_GFLAGS with its bit for LRO.
const GSET: u32 = 0x0000_0001;
const GFLAGS: u32 = 0x0000_0025;
const FLAG_LRO: u32 = 1 << 15;

/// ETHTOOL_GCOALESCE, with the words of its structure, and those of its fields: time and packets of an interrupt for
/// what arrives, and whether the driver changes them by itself.
const GCOALESCE: u32 = 0x0000_000e;
const COALESCE_WORDS: usize = 23;
const RX_USECS: usize = 1;
const RX_FRAMES: usize = 2;
const RX_ADAPTIVE: usize = 10;

/// ETHTOOL_GRINGPARAM, the words of its structure, and that of the packets that the receive ring holds.
const GRINGPARAM: u32 = 0x0000_0010;
const RING_WORDS: usize = 9;
const RX_PENDING: usize = 5;

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Returns `mtu_bytes`, `rate_bps`, `offloads`, `coalescing`, `ring_packets` and `driver` of an interface, as far as
/// its driver tells.
pub fn answer(name: &str) -> Value {
    let mut about = Map::new();
    let Ok(asks) = socket(AddressFamily::INET, SocketType::DGRAM, None) else { return Value::Object(about) };
    if let Some(mtu) = mtu(&asks, name) {
        about.insert("mtu_bytes".into(), json!(mtu));
    }
    if let Some(rate) = rate_bps(&asks, name) {
        about.insert("rate_bps".into(), json!(rate));
    }
    let mut offloads: Map<_, _> = OFFLOADS
        .iter()
        .filter_map(|&(command, what)| Some((what.to_owned(), json!(ethtool_value(&asks, name, command)? != 0))))
        .collect();
    if let Some(flags) = ethtool_value(&asks, name, GFLAGS) {
        offloads.insert("lro".into(), json!(flags & FLAG_LRO != 0));
    }
    about.insert("offloads".into(), Value::Object(offloads));
    let mut coalescing = [0; COALESCE_WORDS];
    coalescing[0] = GCOALESCE;
    if ethtool(&asks, name, &mut coalescing).is_some() {
        let [us, packets] = [coalescing[RX_USECS], coalescing[RX_FRAMES]];
        about.insert(
            "coalescing".into(),
            json!({"us": us, "packets": packets, "adaptive": coalescing[RX_ADAPTIVE] != 0}),
        );
    }
    let mut ring = [0; RING_WORDS];
    ring[0] = GRINGPARAM;
    if ethtool(&asks, name, &mut ring).is_some() {
        about.insert("ring_packets".into(), json!(ring[RX_PENDING]));
    }
    if let Ok(driver) = fs::read_link(format!("/sys/class/net/{name}/device/driver")) {
        about.insert("driver".into(), json!(driver.file_name().map(|name| name.to_string_lossy())));
    }
    Value::Object(about)
}

/// A request about interface `name`; None when the name is too long.
fn request(name: &str) -> Option<libc::ifreq> {
    // SAFETY: all zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return None;
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Some(request)
}

fn mtu(asks: &OwnedFd, name: &str) -> Option<u32> {
    let mut request = request(name)?;
    // SAFETY: the request is valid to read and to write.
    if unsafe { libc::ioctl(asks.as_raw_fd(), libc::SIOCGIFMTU as _, &mut request) } != 0 {
        return None;
    }
    // SAFETY: the kernel has filled the MTU.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

/// Asks the driver; `data` begins with the command and is as long as the command's structure.
fn ethtool(asks: &OwnedFd, name: &str, data: &mut [u32]) -> Option<()> {
    let mut request = request(name)?;
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: request and data are valid, and the command's structure is no longer than `data`.
    let failed = unsafe { libc::ioctl(asks.as_raw_fd(), SIOCETHTOOL as _, &mut request) };
    (failed == 0).then_some(())
}

fn ethtool_value(asks: &OwnedFd, name: &str, command: u32) -> Option<u32> {
    let mut data = [command, 0];
    ethtool(asks, name, &mut data)?;
    Some(data[1])
}

/// Line rate, bit/s; None where the device has none (loopback, a pair of virtual ones may) or does not tell.
fn rate_bps(asks: &OwnedFd, name: &str) -> Option<u64> {
    // struct ethtool_cmd: 44 bytes; the speed in Mbit/s in the low half of byte 12 on and of byte 28 on.
    let mut data = [0u32; 11];
    data[0] = GSET;
    ethtool(asks, name, &mut data)?;
    let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let half = |at: usize| u32::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
    let mbps = half(28) << 16 | half(12);
    // SPEED_UNKNOWN is all ones; an older driver has 0 or 65535 for it.
    (mbps != u32::MAX && mbps != 0 && mbps != 0xffff).then_some(u64::from(mbps) * 1_000_000)
}
