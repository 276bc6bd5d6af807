//! The manager and its lightpaths.

use super::network::{check_chain, hold_buffer_problem};
use crate::error::RunError;
use crate::routes::between;
use spec::{ManagerSpec, RunSpec};

/// Checks `spec` as a manager of `run`, whose links and flows have been checked.
pub fn check(spec: &ManagerSpec, run: &RunSpec) -> Result<(), RunError> {
    let wrong = |text: String| Err(RunError::Spec(text));
    if spec.interval_ns == 0 || spec.lightpaths.is_empty() {
        return wrong("manager: an interval above zero and at least one lightpath".into());
    }
    if spec.priorities.len() != run.flows.len() {
        let (given, flows) = (spec.priorities.len(), run.flows.len());
        return wrong(format!("manager: priorities: {given} for {flows} flows"));
    }
    for path in &spec.lightpaths {
        check_chain(&format!("lightpath {}", path.name), "route", &path.route, &run.links)?;
        if path.capacity_bps == 0 {
            return wrong(format!("lightpath {}: capacity = 0: above zero", path.name));
        }
    }
    for of in &spec.mitigations {
        let count = spec.lightpaths.len();
        if of.lightpath >= count {
            return wrong(format!(
                "manager: mitigations: lightpath {} does not exist, there are {count}",
                of.lightpath
            ));
        }
        if let Some(problem) =
            of.mitigation.hold_buffer.as_ref().and_then(|hold_buffer| hold_buffer_problem(hold_buffer, &run.links))
        {
            return wrong(format!("manager: mitigations: {problem}"));
        }
        if let Some(link) = of.route.iter().copied().find(|&link| link >= run.links.len()) {
            return wrong(format!("manager: mitigations: link {link} does not exist, there are {}", run.links.len()));
        }
    }
    if spec.pareto_shape_e3 <= 1000 {
        return wrong(format!("manager: tail = {}: above 1", f64::from(spec.pareto_shape_e3) / 1e3));
    }
    let routes = || run.flows.iter().map(|flow| &flow.route).chain(run.short_flows.iter().map(|entry| &entry.route));
    for path in &spec.lightpaths {
        if !routes().any(|route| between(route, &path.route, &run.links).is_some()) {
            return wrong(format!("lightpath {}: no flow passes the routers that it joins", path.name));
        }
    }
    Ok(())
}
