//! Sysctls of the network, by name.

use crate::error::AgentError;
use std::fs;

/// Path of a sysctl of the network; its name is the request's, and leads nowhere else.
fn path(name: &str) -> Result<String, AgentError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.starts_with("net.") || !name.chars().all(is_plain) || name.split('.').any(str::is_empty) {
        return Err(AgentError::input(format_args!("sysctls: {name}: a name such as net.ipv4.tcp_rmem")));
    }
    Ok(format!("/proc/sys/{}", name.replace('.', "/")))
}

/// The value in one form: words with one space between them.
pub fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads one.
///
/// # Errors
/// There is none of this name.
pub fn read(name: &str) -> Result<String, AgentError> {
    let text = fs::read_to_string(path(name)?);
    text.map(|text| normal(&text)).map_err(|error| AgentError::kernel(name, error))
}

/// Sets one.
///
/// # Errors
/// The kernel refuses the value, or this process.
pub fn write(name: &str, value: &str) -> Result<(), AgentError> {
    fs::write(path(name)?, value).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => {
            AgentError::rights(format_args!("{name} = {value}: only root may: sysctl -w {name}=\"{value}\""))
        }
        _ => AgentError::kernel(&format!("{name} = {value}"), error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_the_network_and_nowhere_else() {
        for wrong in ["kernel.panic", "net", "net..x", "net./etc/passwd", "net.ipv4/../../x", "../net.x", "net.ipv4."] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
        assert_eq!(path("net.ipv4.tcp_rmem").unwrap(), "/proc/sys/net/ipv4/tcp_rmem");
        assert_eq!(read("net.ipv4.tcp_rmem").unwrap().split(' ').count(), 3);
    }
}
