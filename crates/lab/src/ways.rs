//! The ways that events may give packets, made known to the network before it runs: links that packets may come to leave by another
//! way are then no longer handed packets ahead of time.

use crate::flow::Side;
use crate::spec::{ActionSpec, RunSpec};
use sim::{RouteId, Routes};

/// The ways of `flow` from `side`, in the order of the events that lead there; its first is not among them.
pub fn of_flow(run: &RunSpec, flow: usize, side: Side) -> impl Iterator<Item = &[usize]> {
    run.events.iter().filter_map(move |event| match &event.action {
        ActionSpec::Move { flows, route, return_route } if flows.contains(&flow) => {
            let links = if side == Side::Sender { route } else { return_route };
            links.as_deref()
        }
        _ => None,
    })
}

/// Makes the ways of `flow` known: `sides` are its routes from the sender and from the receiver.
pub fn add_of_flow(run: &RunSpec, flow: usize, sides: [RouteId; 2], routes: &mut Routes) {
    for (side, route) in [Side::Sender, Side::Receiver].into_iter().zip(sides) {
        for links in of_flow(run, flow, side) {
            routes.add_way(route, links);
        }
    }
}

/// Makes the ways of background source `source`, whose first is `route`, known.
pub fn add_of_background(run: &RunSpec, source: usize, route: RouteId, routes: &mut Routes) {
    for event in &run.events {
        match &event.action {
            ActionSpec::MoveBackground { sources, route: links } if sources.contains(&source) => {
                routes.add_way(route, links);
            }
            _ => {}
        }
    }
}
