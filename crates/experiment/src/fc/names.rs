//! Names and addresses of ports and gateways.

use wire::fc::{FcId, Wwn};

/// Domains of the near and the far gateway.
const DOMAINS: [u8; 2] = [1, 2];

/// Names and address of an N_Port.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Name of the port.
    pub port: Wwn,
    /// Name of its node.
    pub node: Wwn,
    /// Address, whose domain is that of the port's gateway.
    pub id: FcId,
}

/// Returns the names and addresses of the ports of pair `number`, by side.
pub fn of_pair(number: usize) -> [Names; 2] {
    /// Names of ports and of nodes: registered, of an organisation that is none.
    const PORT: u64 = 0x2000_0000_0000_0000;
    const NODE: u64 = 0x1000_0000_0000_0000;
    DOMAINS.map(|domain| {
        // A fabric has 65,280 addresses of ports. Each pair is a zone of its own, so that it may share them with
        // others.
        let low = 0x100 + (number % 0xff00) as u32;
        let own = u64::from(domain) << 32 | number as u64;
        Names { port: Wwn(PORT | own), node: Wwn(NODE | own), id: FcId::new(u32::from(domain) << 16 | low) }
    })
}

/// Returns the name of the gateway, as a switch, of `domain`.
pub fn of_gateway(domain: u8) -> Wwn {
    Wwn(0x1000_0000_0000_fa00 | u64::from(domain))
}

/// Returns the names of the gateways, by side.
pub fn of_gateways() -> [Wwn; 2] {
    DOMAINS.map(of_gateway)
}
