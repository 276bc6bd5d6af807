//! Checks a path test's place in a run.

use super::network::check_route;
use crate::error::RunError;
use crate::path_test_spec::PathTestSpec;
use spec::RunSpec;

/// The links of a path test of `spec`, there and back.
pub fn check_path_test(spec: &RunSpec, at: &PathTestSpec) -> Result<[Vec<usize>; 2], RunError> {
    let wrong = |text: &str| RunError::Spec(format!("path test: {text}"));
    let first = spec.flows.first();
    let route = at.route.clone().or_else(|| first.map(|flow| flow.route.clone()));
    let back = at.return_route.clone().or_else(|| first.map(|flow| flow.return_route.clone()));
    let (Some(route), Some(back)) = (route, back) else {
        return Err(wrong("route and return_route are needed in a run without flows"));
    };
    for (key, links) in [("route", &route), ("return_route", &back)] {
        let end = |place: Option<&usize>| place.and_then(|&link| spec.links.get(link));
        let (Some(first), Some(last)) = (end(links.first()), end(links.last())) else {
            return Err(wrong(&format!("{key} = {links:?}: has to name links of the run, at least one")));
        };
        check_route("path test", key, links, first.from, last.to, &spec.links)?;
    }
    Ok([route, back])
}

/// The run ended before its path test.
pub fn path_test_takes_longer(spec: &RunSpec) -> RunError {
    RunError::Spec(format!("duration_ns = {}: the path test takes longer", spec.duration_ns))
}
