//! Sysctls of TCP: those that a scenario may want otherwise.

use crate::sysctl;
use std::collections::BTreeMap;
use std::fs;

/// Folder of those of IPv4, which hold for TCP over IPv6 too.
const FOLDER: &str = "/proc/sys/net/ipv4";

/// Returns the values of all net.ipv4.tcp_... that this process can read, by name.
pub fn answer() -> BTreeMap<String, String> {
    let Ok(listed) = fs::read_dir(FOLDER) else { return BTreeMap::new() };
    let names = listed.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names
        // The key of TCP Fast Open is a secret.
        .filter(|name| name.starts_with("tcp_") && !name.ends_with("_key"))
        .map(|name| format!("net.ipv4.{name}"))
        .filter_map(|name| sysctl::read(&name).ok().map(|value| (name, value)))
        .collect()
}
