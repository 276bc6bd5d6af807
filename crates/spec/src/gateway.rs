//! Gateways between a Fibre Channel SAN and the IP network.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A node that is a gateway. Each pair of N_Ports of a flow that ends here has an N_Port of its own behind it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GatewaySpec {
    /// Index of the node.
    pub node: usize,
    /// Rate of the link to each N_Port without its line code, bit/s: 850 Mbit/s for 1GFC.
    pub rate_bps: u64,
    /// Propagation delay of that link, one way, ns.
    pub delay_ns: u64,
    /// Buffer-to-buffer credits of either end of that link: 1 to 65535.
    pub credits: u32,
    /// Bytes of encapsulated frames that TCP has not begun to send, per connection, from which on frames stay in the
    /// port's buffers. The same of frames that wait for a port's credit.
    pub buffer_bytes: u64,
}
