//! From a flow's transport to TCP settings and a congestion controller.

use crate::error::RunError;
use congestion::{Algorithm, Controller};
use spec::TransportSpec;
use std::collections::BTreeMap;
use std::path::Path;
use tcp::config::{Config, Reader, Recovery, WSCALE_MAX};
use units::{Size, Span};

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
        let algorithm = self.find(&transport.congestion_control)?;
        Controller::new(&algorithm, &transport.parameters).map_err(|e| {
            RunError::Congestion(format!("flow {flow}: congestion control {}: {e}", transport.congestion_control))
        })
    }

    fn find(&mut self, name: &str) -> Result<Algorithm, RunError> {
        if !name.ends_with(".c") {
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

/// The loss recovery of that name.
pub fn recovery(name: &str) -> Option<Recovery> {
    match name {
        "newreno" => Some(Recovery::NewReno),
        "sack" => Some(Recovery::Sack),
        "rack" => Some(Recovery::Rack),
        _ => None,
    }
}

/// TCP settings of a valid run's `transport`.
pub fn tcp_config(transport: &TransportSpec) -> Config {
    let recovery = recovery(&transport.recovery).expect("a valid run's recovery has a name");
    Config {
        mtu: transport.mtu_bytes,
        recovery,
        initial_cwnd: transport.initial_cwnd,
        initial_ssthresh: transport.initial_ssthresh,
        timestamps: transport.timestamps,
        window_scaling: transport.window_scaling,
        window_scale_max: if transport.window_bound { WSCALE_MAX } else { WSCALE_MAX + 1 },
        window_scale: transport.window_scale,
        receive_window: Size(transport.window_bytes),
        receive_autotuning: transport.receive_autotuning,
        send_buffer: transport.send_buffer_bytes.map(Size),
        delayed_ack: transport.delayed_ack,
        sack_compression: transport.sack_compression,
        quickack_segments: transport.quickack_segments,
        ecn: transport.ecn,
        pacing: transport.pacing,
        slow_start_after_idle: transport.slow_start_after_idle,
        rto_min: Span(transport.rto_min_ns),
        rto_max: Span(transport.rto_max_ns),
        reordering: transport.reordering,
        max_reordering: transport.max_reordering,
        undo: transport.undo,
        limited_transmit: transport.limited_transmit,
        reader: Reader::Immediate,
        cwnd_clamp: transport.cwnd_clamp,
        frto: transport.frto,
        fast_retransmit: transport.fast_retransmit,
    }
}
