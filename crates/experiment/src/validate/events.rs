//! Events.

use super::network::{check_chain, check_route, hold_buffer_problem};
use crate::error::RunError;
use spec::{ActionSpec, EventSpec, RunSpec, WhenSpec};

/// Checks the indices and routes of an event.
pub fn check(spec: &EventSpec, run: &RunSpec) -> Result<(), RunError> {
    let (links, flows, background) = (run.links.len(), run.flows.len(), run.background.len());
    let within = |what: &str, index: usize, count: usize| {
        if index < count {
            return Ok(());
        }
        Err(RunError::Spec(format!("events: {what} {index} does not exist, there are {count}")))
    };
    if let WhenSpec::FlowReaches { flow, .. } = spec.when {
        within("flow", flow, flows)?;
    }
    if let Some(link) = spec.action.link() {
        within("link", link, links)?;
        let changed = &run.links[link];
        if changed.batching.is_some() {
            return Err(RunError::Spec(format!("events: link {}: its batching goes with no change", changed.name)));
        }
        return Ok(());
    }
    if let ActionSpec::Move { mitigation: Some(mitigation), .. }
    | ActionSpec::MoveBackground { mitigation: Some(mitigation), .. } = &spec.action
    {
        if let Some(problem) =
            mitigation.hold_buffer.as_ref().and_then(|hold_buffer| hold_buffer_problem(hold_buffer, &run.links))
        {
            return Err(RunError::Spec(format!("events: {problem}")));
        }
    }
    match &spec.action {
        ActionSpec::BackgroundOn { source } | ActionSpec::BackgroundOff { source } => {
            within("background source", *source, background)
        }
        ActionSpec::Move { flows: moved, route, return_route, .. } => moved.iter().try_for_each(|&index| {
            within("flow", index, flows)?;
            let flow = &run.flows[index];
            let what = format!("events: move of flow {}", flow.name);
            if let Some(route) = route {
                check_route(&what, "route", route, flow.source, flow.destination, &run.links)?;
            }
            match return_route {
                Some(back) => check_route(&what, "return_route", back, flow.destination, flow.source, &run.links),
                None => Ok(()),
            }
        }),
        ActionSpec::MoveBackground { sources, route, .. } => sources.iter().try_for_each(|&index| {
            within("background source", index, background)?;
            let source = &run.background[index];
            let what = format!("events: move of background {}", source.name);
            check_chain(&what, "route", &source.route, &run.links)?;
            let ends = (run.links[source.route[0]].from, run.links[source.route[source.route.len() - 1]].to);
            check_route(&what, "route", route, ends.0, ends.1, &run.links)
        }),
        _ => Ok(()),
    }
}
