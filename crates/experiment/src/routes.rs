//! The alternate routes that events may give packets, made known to the network before it runs: links that packets may
//! come to leave by another route are then no longer handed packets ahead of time.
//!
//! A move whose mitigation keeps packets back has a hold buffer: a link of its own after those of the specification, at
//! the router where the new route parts from the others of what is moved.

use crate::side::Side;
use sim::{RouteId, Routes};
use spec::{ActionSpec, HoldBufferSpec, LinkSpec, RunSpec};

/// The hold buffers of `run`, each with the index of its event; the i-th is link `run.links.len() + i`.
pub fn hold_buffers(run: &RunSpec) -> impl Iterator<Item = (usize, &HoldBufferSpec)> {
    run.events.iter().enumerate().filter_map(|(index, event)| {
        let mitigation = match &event.action {
            ActionSpec::Move { route: Some(_), mitigation, .. } | ActionSpec::MoveBackground { mitigation, .. } => {
                mitigation
            }
            _ => return None,
        };
        Some((index, mitigation.as_ref()?.hold_buffer.as_ref()?))
    })
}

/// The route of event `event`'s data with its hold buffer in it; None if it moves none.
pub fn of_event(run: &RunSpec, event: usize) -> Option<Vec<usize>> {
    let (mut elements, firsts): (_, Vec<&Vec<usize>>) = match &run.events[event].action {
        ActionSpec::Move { flows, route, .. } => {
            (route.clone()?, flows.iter().map(|&flow| &run.flows[flow].route).collect())
        }
        ActionSpec::MoveBackground { sources, route, .. } => {
            (route.clone(), sources.iter().map(|&source| &run.background[source].route).collect())
        }
        _ => return None,
    };
    if let Some(hold_buffer) = hold_buffers(run).position(|(index, _)| index == event) {
        // A move keeps its ends. If it leads back to the first route, the buffer stands where the other routes leave
        // that.
        let others = run.events.iter().filter_map(|event| match &event.action {
            ActionSpec::Move { route, .. } => route.as_ref(),
            ActionSpec::MoveBackground { route, .. } => Some(route),
            _ => None,
        });
        let common = |other: &Vec<usize>| elements.iter().zip(other).take_while(|(a, b)| a == b).count();
        let ends = |other: &&Vec<usize>| other.first() == elements.first() && **other != elements;
        let at = firsts.into_iter().chain(others).filter(ends).map(common).min().unwrap_or(0);
        elements.insert(at, run.links.len() + hold_buffer);
    }
    Some(elements)
}

/// The ways of `flow` from `side`, in the order of the events that lead there; its first is not among them.
pub fn of_flow(run: &RunSpec, flow: usize, side: Side) -> impl Iterator<Item = Vec<usize>> + '_ {
    run.events.iter().enumerate().filter_map(move |(index, event)| match &event.action {
        ActionSpec::Move { flows, return_route, .. } if flows.contains(&flow) => match side {
            Side::Sender => of_event(run, index),
            Side::Receiver => return_route.clone(),
        },
        _ => None,
    })
}

/// Makes the ways of `flow` known: `sides` are its routes from the sender and from the receiver.
pub fn add_of_flow(run: &RunSpec, flow: usize, sides: [RouteId; 2], routes: &mut Routes) {
    for (side, route) in [Side::Sender, Side::Receiver].into_iter().zip(sides) {
        for links in of_flow(run, flow, side) {
            routes.add_path(route, &links);
        }
    }
}

/// Makes the ways of background source `source`, whose first is `route`, known.
pub fn add_of_background(run: &RunSpec, source: usize, route: RouteId, routes: &mut Routes) {
    for (index, event) in run.events.iter().enumerate() {
        match &event.action {
            ActionSpec::MoveBackground { sources, .. } if sources.contains(&source) => {
                if let Some(links) = of_event(run, index) {
                    routes.add_path(route, &links);
                }
            }
            _ => {}
        }
    }
}

/// `route` with its first and last link between the routers that `lightpath` joins.
pub fn between<'a>(route: &'a [usize], lightpath: &[usize], links: &[LinkSpec]) -> Option<(&'a [usize], usize, usize)> {
    let (a, b) = (links[lightpath[0]].from, links[lightpath[lightpath.len() - 1]].to);
    let from = route.iter().position(|&link| links[link].from == a)?;
    let to = route.iter().position(|&link| links[link].to == b)?;
    (from <= to).then_some((route, from, to))
}
