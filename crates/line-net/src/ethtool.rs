//! An interface's speed, as its driver tells it (SIOCETHTOOL, linux/ethtool.h).

use crate::interface::Request;
use std::io;

const ETHTOOL_GSET: u32 = 1;
/// Speeds that a driver gives for one that it does not know: of 16 bits and of 32.
const UNKNOWN: [u32; 3] = [0, 0xffff, 0xffff_ffff];

/// `struct ethtool_cmd`.
#[repr(C)]
#[derive(Default)]
struct Settings {
    cmd: u32,
    supported: u32,
    advertising: u32,
    speed: u16,
    small: [u8; 8],
    maxtxpkt: [u32; 2],
    speed_hi: u16,
    tp: [u8; 2],
    lp_advertising: u32,
    reserved: [u32; 2],
}

/// The speed, bit/s; None where the driver does not know it.
pub(crate) fn rate_bps(interface: &str) -> io::Result<Option<u64>> {
    let mut settings = Settings { cmd: ETHTOOL_GSET, ..Settings::default() };
    let mut request = Request::of(interface)?;
    request.set_data(std::ptr::from_mut(&mut settings).cast());
    // The pointer names a structure of the size that the command has, which lives until the call returns.
    match request.ask(libc::SIOCETHTOOL) {
        Ok(_) => {}
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => return Ok(None),
        Err(error) => return Err(error),
    }
    let megabits = u32::from(settings.speed_hi) << 16 | u32::from(settings.speed);
    Ok((!UNKNOWN.contains(&megabits)).then_some(u64::from(megabits) * 1_000_000))
}
