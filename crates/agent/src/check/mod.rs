//! The host as it is: kernel, rights, limits, clock, resources, ways to other hosts.

mod clock;
mod disk;
mod interface;
mod programs;
mod route;
mod sysctls;

pub use programs::DISK;

use crate::error::AgentError;
use crate::rights;
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

/// Keys of the request `check`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    #[serde(default)]
    towards: Vec<IpAddr>,
    #[serde(default)]
    folder: Option<String>,
    /// Commands of programs, each with the argument to which it says its version.
    #[serde(default)]
    programs: Option<BTreeMap<String, Option<String>>>,
}

/// Numbers of capabilities (include/uapi/linux/capability.h).
const NET_ADMIN: u32 = 12;
const SYS_NICE: u32 = 23;
const BPF: u32 = 39;

/// Inode of the first user namespace (PROC_USER_INIT_INO, include/linux/proc_ns.h): capabilities in any other are not
/// the machine's.
const FIRST_USER_NAMESPACE: u64 = 0xEFFF_FFFD;

/// First kernel whose controls may end with the process that registered them (BPF_F_LINK of a struct_ops map).
const LINKS: (u32, u32) = (6, 4);

/// Returns the answer to `check`. What this host does not tell is absent.
///
/// # Errors
/// None at present: a part that cannot be had is absent, or says why.
pub fn answer(check: &Check) -> Result<Value, AgentError> {
    let capabilities = rights::effective_capabilities();
    let has = |number: u32| capabilities >> number & 1 == 1;
    let first_namespace = has_first_user_namespace();
    let mut answer = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "machine": std::env::consts::ARCH,
        "kernel": release(),
        "hostname": rustix::system::uname().nodename().to_string_lossy(),
        "uid": rustix::process::geteuid().as_raw(),
        "capabilities": {
            "net_admin": has(NET_ADMIN),
            "bpf": first_namespace && (has(BPF) || has(rights::SYS_ADMIN)),
            "sys_admin": has(rights::SYS_ADMIN),
            "sys_nice": has(SYS_NICE),
        },
        "first_user_namespace": first_namespace,
        "btf": Path::new("/sys/kernel/btf/vmlinux").exists(),
        "linked_controls": has_links(),
        "congestion_controls": {
            "available": words("net.ipv4.tcp_available_congestion_control"),
            "allowed": words("net.ipv4.tcp_allowed_congestion_control"),
            "default": words("net.ipv4.tcp_congestion_control").first(),
        },
        "limits": {
            "tcp_rmem": numbers("net.ipv4.tcp_rmem"),
            "tcp_wmem": numbers("net.ipv4.tcp_wmem"),
            "tcp_mem": numbers("net.ipv4.tcp_mem"),
            "rmem_max": numbers("net.core.rmem_max").first(),
            "wmem_max": numbers("net.core.wmem_max").first(),
        },
        "sysctls": sysctls::answer(),
        "clock": clock::answer(),
        "cores": std::thread::available_parallelism().map(usize::from).ok(),
        "load": loads(),
        "memory_bytes": memory("MemTotal:"),
        "memory_available_bytes": memory("MemAvailable:"),
        "routes": check.towards.iter().map(|&address| way(address)).collect::<Vec<_>>(),
    });
    if let (Some(folder), Value::Object(answer)) = (&check.folder, &mut answer) {
        answer.insert("disk".to_owned(), disk::answer(folder));
    }
    if let (Some(wanted), Value::Object(answer)) = (&check.programs, &mut answer) {
        answer.insert("programs".to_owned(), programs::answer(wanted));
    }
    remove_nulls(&mut answer);
    Ok(answer)
}

/// Release of the running kernel, such as 6.1.0-18-amd64.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns true if a control may be registered by a link, which ends with its process.
pub fn has_links() -> bool {
    let release = release();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= LINKS
}

fn has_first_user_namespace() -> bool {
    rustix::fs::stat("/proc/self/ns/user").is_ok_and(|about| about.st_ino == FIRST_USER_NAMESPACE)
}

/// The words of a sysctl; none where there is no such sysctl.
fn words(name: &str) -> Vec<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

fn numbers(name: &str) -> Vec<u64> {
    words(name).iter().filter_map(|word| word.parse().ok()).collect()
}

fn loads() -> Vec<f64> {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).filter_map(|word| word.parse().ok()).collect()
}

/// A line of /proc/meminfo, bytes.
fn memory(name: &str) -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// The way to `address`: its interface, and what that is.
fn way(address: IpAddr) -> Value {
    let route = match route::towards(address) {
        Ok(route) => route,
        Err(error) => return json!({"towards": address, "error": error.to_string()}),
    };
    let mut way = json!({
        "towards": address,
        "interface": route.interface,
        "source": route.source,
        "gateway": route.gateway,
        "route_mtu": route.mtu,
    });
    if let (Value::Object(way), Value::Object(about)) = (&mut way, interface::answer(&route.interface)) {
        way.extend(about);
    }
    way
}

/// Takes out what is null: absent is the form for what is not known.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(members) => members.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}
