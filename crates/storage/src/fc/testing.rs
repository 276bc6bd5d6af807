//! Service parameters of the hosts that tests log in.

use wire::fc::els::Command;
use wire::fc::{Login, Wwn};

/// Parameters of a host, of which `name` makes the names.
pub(super) fn login(command: Command, name: u64) -> Login {
    Login {
        command: command.0,
        buffer_credits: 8,
        receive_bytes: 2048,
        fabric_port: false,
        further_addresses: command != Command::PLOGI,
        r_a_tov_ms: None,
        e_d_tov_ms: 2000,
        port: Wwn(0x2000_0000_0000_0000 | name),
        node: Wwn(0x1000_0000_0000_0000 | name),
        class3: true,
        sequential_delivery: false,
    }
}
