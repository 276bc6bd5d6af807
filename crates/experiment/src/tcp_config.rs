//! From a flow's stack to TCP settings and a congestion controller.

use crate::error::RunError;
use crate::spec::StackSpec;
use congestion::{Algorithm, Controller};
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
    /// A controller for `stack`.
    ///
    /// # Errors
    /// [`RunError::Congestion`]: a user's file cannot be compiled, or does not have such parameters; in a valid run nothing else.
    pub fn controller(&mut self, flow: &str, stack: &StackSpec) -> Result<Controller, RunError> {
        let algorithm = self.find(&stack.congestion)?;
        Controller::new(&algorithm, &stack.parameters)
            .map_err(|e| RunError::Congestion(format!("flow {flow}: stack {}: {e}", stack.congestion)))
    }

    fn find(&mut self, name: &str) -> Result<Algorithm, RunError> {
        if !name.ends_with(".c") {
            return congestion::find(name).ok_or_else(|| {
                let known: Vec<_> = congestion::builtin().iter().map(Algorithm::name).collect();
                let known = known.join(", ");
                RunError::Congestion(format!("stack {name:?} is not known: one of {known}, or the path of a .c file"))
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

/// TCP settings of a valid run's `stack`.
pub fn tcp_config(stack: &StackSpec) -> Config {
    let recovery = recovery(&stack.recovery).expect("a valid run's recovery has a name");
    Config {
        mtu: stack.mtu_bytes,
        recovery,
        initial_cwnd: stack.initial_cwnd,
        initial_ssthresh: stack.initial_ssthresh,
        timestamps: stack.timestamps,
        window_scaling: stack.window_scaling,
        window_scale_max: if stack.window_bound { WSCALE_MAX } else { WSCALE_MAX + 1 },
        window_scale: stack.window_scale,
        receive_window: Size(stack.window_bytes),
        receive_autotuning: stack.receive_autotuning,
        send_buffer: stack.send_buffer_bytes.map(Size),
        delayed_ack: stack.delayed_ack,
        sack_compression: stack.sack_compression,
        quickack_segments: stack.quickack_segments,
        ecn: stack.ecn,
        pacing: stack.pacing,
        slow_start_after_idle: stack.slow_start_after_idle,
        rto_min: Span(stack.rto_min_ns),
        rto_max: Span(stack.rto_max_ns),
        reordering: stack.reordering,
        max_reordering: stack.max_reordering,
        undo: stack.undo,
        limited_transmit: stack.limited_transmit,
        reader: Reader::Immediate,
        cwnd_clamp: stack.cwnd_clamp,
        frto: stack.frto,
        fast_retransmit: stack.fast_retransmit,
    }
}
