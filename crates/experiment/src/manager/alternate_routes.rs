//! The routes of flows over lightpaths, with the hold buffers at moving routers in them.
//!
//! Each flow has a hold buffer of its own before each lightpath, where the operator lets moving routers keep packets
//! back: flows that are on the lightpath already do not wait for the one that comes. Buffers for one line let go in
//! turn ([`crate::hold_buffers`]).

use crate::hold_buffers::Lines;
use crate::routes;
use spec::{
    CwndReductionSpec, HoldBufferSpec, ManagerSpec, MitigationSpec, PathMitigationSpec, QueueDelaySpec, RunSpec,
};
use te::{AllowedMitigations, HoldConfig, Pacing, Plan};
use units::{Rate, Size, Span};

/// The route of a flow's data over a lightpath.
pub struct AlternateRoute {
    /// Its links.
    pub links: Vec<usize>,
    /// Elements that a packet passes: the links, and the hold buffer before the lightpath, if there is one.
    pub elements: Vec<usize>,
    hold_buffer: Option<usize>,
    /// Number of the line that paces its release.
    pub line: Option<usize>,
    /// Allowed mitigations.
    pub mitigation: Option<MitigationSpec>,
}

/// Gives flows their routes over lightpaths and the hold buffers in them.
pub struct AlternateRoutes<'a> {
    spec: &'a ManagerSpec,
    next: usize,
    lines: Lines,
}

impl<'a> AlternateRoutes<'a> {
    pub fn new(spec: &'a ManagerSpec, run: &RunSpec) -> AlternateRoutes<'a> {
        AlternateRoutes { spec, next: run.links.len() + routes::hold_buffers(run).count(), lines: Lines::default() }
    }

    /// The alternate route of a flow of `route` over `lightpath`: `links`, which leave `route` at its link `parts`.
    pub fn over(&mut self, route: &[usize], lightpath: usize, links: Vec<usize>, parts: usize) -> AlternateRoute {
        let is_its = |of: &&PathMitigationSpec| of.lightpath == lightpath && of.route == route;
        let mitigation = self.spec.mitigations.iter().find(is_its).map(|of| of.mitigation.clone());
        let mut elements = links.clone();
        let spec = mitigation.as_ref().and_then(|mitigation: &MitigationSpec| mitigation.hold_buffer.as_ref());
        let (hold_buffer, line) = (spec.map(|_| self.next), spec.map(|hold_buffer| self.lines.number(hold_buffer)));
        if let Some(hold_buffer) = hold_buffer {
            elements.insert(parts, hold_buffer);
            self.next += 1;
        }
        AlternateRoute { links, elements, hold_buffer, line, mitigation }
    }
}

impl AlternateRoute {
    /// The settings of its hold buffer, for the network.
    pub fn hold_buffer(&self) -> Option<&HoldBufferSpec> {
        self.mitigation.as_ref()?.hold_buffer.as_ref()
    }

    /// The link number of its hold buffer in the network.
    pub fn link(&self) -> Option<usize> {
        self.hold_buffer
    }

    /// Returns the highest release rate of its hold buffer.
    pub fn pace(&self) -> Option<Rate> {
        Some(Rate(self.hold_buffer()?.rate_bps))
    }

    /// Returns the window reduction of its sender, if `plan` has one.
    pub fn cwnd_reduction(&self, plan: &Plan) -> Option<&CwndReductionSpec> {
        self.mitigation.as_ref()?.cwnd_reduction.as_ref().filter(|_| plan.mitigation.reduces_cwnd())
    }

    /// Returns the allowed mitigations, given the `difference` of the paths' delays, the `wait` of a packet before a
    /// link and the `load` of other traffic on a line.
    pub fn means(
        &self,
        difference: Span,
        wait: impl Fn(&QueueDelaySpec) -> Span,
        load: impl Fn(usize) -> Option<Rate>,
    ) -> AllowedMitigations {
        let keeping = |hold_buffer: &HoldBufferSpec| HoldConfig {
            delay: hold_buffer.queues.iter().map(wait).fold(Span(hold_buffer.delay_ns), |sum, wait| sum + wait),
            line: Rate(hold_buffer.rate_bps),
            pacing: Pacing {
                pacer: self.line.unwrap_or(0),
                load: hold_buffer.line.and_then(&load),
                held_rate: Rate(0),
            },
            share_ppm: hold_buffer.share_ppm,
            buffer: hold_buffer.limit_bytes.map(Size),
        };
        let cwnd_reduction = self.mitigation.as_ref().and_then(|mitigation| mitigation.cwnd_reduction.as_ref());
        AllowedMitigations {
            delay_difference: difference,
            hold_buffer: self.hold_buffer().map(keeping),
            cwnd_reduction: cwnd_reduction.map(|cwnd_reduction| Span(cwnd_reduction.delay_ns)),
        }
    }
}
