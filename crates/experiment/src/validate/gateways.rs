//! Nodes that are Fibre Channel gateways.

use crate::error::RunError;
use spec::RunSpec;

/// Checks the gateways of `run`.
pub fn check(run: &RunSpec) -> Result<(), RunError> {
    for (index, gateway) in run.gateways.iter().enumerate() {
        let Some(name) = run.nodes.get(gateway.node) else {
            let (node, nodes) = (gateway.node, run.nodes.len());
            return Err(RunError::Spec(format!("gateways: node {node} does not exist, there are {nodes}")));
        };
        let wrong = |text: String| Err(RunError::Spec(format!("gateway {name}: {text}")));
        if run.gateways[..index].iter().any(|other| other.node == gateway.node) {
            return wrong("two gateways: one for each node".into());
        }
        if gateway.rate_bps == 0 {
            return wrong("rate = 0: above zero".into());
        }
        if !(1..=u32::from(u16::MAX)).contains(&gateway.credits) {
            return wrong(format!("credits = {}: 1 to 65535", gateway.credits));
        }
        if gateway.buffer_bytes == 0 {
            return wrong("buffer = 0: above zero".into());
        }
    }
    Ok(())
}
