//! From a flow's transport to TCP settings and a congestion controller.

use crate::error::RunError;
use congestion::{Algorithm, Controller};
use spec::TransportSpec;
use std::collections::BTreeMap;
use std::path::Path;
use tcp::config::{Config, Reader, WSCALE_MAX};
use units::{Rate, Size, Span};

/// Algorithms of a run; each user's file is compiled once.
#[derive(Default)]
pub struct Algorithms {
    compiled: BTreeMap<String, Algorithm>,
}

impl Algorithms {
    /// A controller for `transport`.
    ///
    /// # Errors
    /// [`RunError::Congestion`]: a user's file cannot be compiled, or does not have such parameters; in a valid run
    /// nothing else.
    pub fn controller(&mut self, flow: &str, transport: &TransportSpec) -> Result<Controller, RunError> {
        let mut algorithm = self.find(&transport.congestion_control)?;
        if is_file(&transport.congestion_control) {
            algorithm = algorithm.for_flow(&format!("flow {flow}"), 0);
        }
        Controller::new(&algorithm, &transport.parameters).map_err(|e| {
            RunError::Congestion(format!("flow {flow}: congestion control {}: {e}", transport.congestion_control))
        })
    }

    fn find(&mut self, name: &str) -> Result<Algorithm, RunError> {
        if !is_file(name) {
            return congestion::find(name).ok_or_else(|| {
                let known: Vec<_> = congestion::builtin().iter().map(Algorithm::name).collect();
                let known = known.join(", ");
                RunError::Congestion(format!(
                    "congestion control {name:?} is not known: one of {known}, or the path of a .c file"
                ))
            });
        }
        if let Some(algorithm) = self.compiled.get(name) {
            return Ok(algorithm.clone());
        }
        let algorithm = congestion::compile(Path::new(name)).map_err(|e| RunError::Congestion(e.to_string()))?;
        self.compiled.insert(name.to_owned(), algorithm.clone());
        Ok(algorithm)
    }
}

/// The congestion control of this name is a user's file.
fn is_file(name: &str) -> bool {
    name.ends_with(".c")
}

/// TCP settings of `transport`.
pub fn tcp_config(transport: &TransportSpec) -> Config {
    let TransportSpec {
        // The controller's, what comes after the endpoint, and that of another transport.
        congestion_control: _,
        parameters: _,
        recovery,
        lost_retransmissions,
        cwnd_validation,
        count,
        nagle,
        initial_cwnd,
        initial_ssthresh,
        window_bytes,
        window_scaling,
        window_bound,
        window_scale,
        receive_autotuning,
        receive_buffers,
        send_buffer_bytes,
        mtu_bytes,
        ipv6,
        timestamps,
        delayed_ack,
        sack_compression,
        quickack_segments,
        ecn,
        pacing,
        tso_autosizing,
        max_pacing_bps,
        slow_start_after_idle,
        rto_min_ns,
        rto_max_ns,
        reordering,
        max_reordering,
        undo,
        limited_transmit,
        frto,
        fast_retransmit,
        cwnd_clamp,
        send_overhead: _,
        udt: _,
    } = *transport;
    Config {
        mtu: mtu_bytes,
        ipv6,
        recovery: recovery.into(),
        lost_retransmissions: lost_retransmissions.into(),
        cwnd_validation,
        count: count.into(),
        nagle,
        initial_cwnd,
        initial_ssthresh,
        timestamps,
        window_scaling,
        window_scale_max: if window_bound { WSCALE_MAX } else { WSCALE_MAX + 1 },
        window_scale,
        receive_window: Size(window_bytes),
        receive_autotuning,
        receive_buffers: receive_buffers.into(),
        send_buffer: send_buffer_bytes.map(Size),
        delayed_ack,
        sack_compression,
        quickack_segments,
        ecn,
        pacing,
        tso_autosizing,
        max_pacing: max_pacing_bps.map(Rate),
        slow_start_after_idle,
        rto_min: Span(rto_min_ns),
        rto_max: Span(rto_max_ns),
        reordering,
        max_reordering,
        undo,
        limited_transmit,
        reader: Reader::Immediate,
        cwnd_clamp,
        frto,
        fast_retransmit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_transport_is_that_of_an_endpoint() {
        let (ours, theirs) = (tcp_config(&TransportSpec::default()), Config::default());
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    }
}
