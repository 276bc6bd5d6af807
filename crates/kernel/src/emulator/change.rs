//! Changes of a network that is carried, asked for while it runs.

use experiment::{RunError, ValidRun};
use serde::Deserialize;
use spec::{ActionSpec, EventSpec, PolicerSpec, RunSpec, WhenSpec};

/// Changes that happen at one time, all or none of them; JSON from the Python front.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkChange {
    /// As those of events, without moves: rate, delay, loss and state of links, background sources on and off.
    pub actions: Vec<ActionSpec>,
    /// New policers.
    pub policers: Vec<PolicerChange>,
    /// New sizes of the largest packet.
    pub mtus: Vec<MtuChange>,
    /// New rates of background sources.
    pub background_rates: Vec<BackgroundRateChange>,
}

/// New policer of a link, its bucket full.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerChange {
    /// Index into the links of the spec.
    pub link: usize,
    /// The policer; null = none.
    pub policer: Option<PolicerSpec>,
}

/// New size of the largest packet that a link takes from a router.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MtuChange {
    /// Index into the links of the spec.
    pub link: usize,
    /// Bytes.
    pub mtu_bytes: u32,
}

/// New rate of a background source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackgroundRateChange {
    /// Index into the background sources of the spec.
    pub source: usize,
    /// Rate while it is on, bit/s.
    pub rate_bps: u64,
}

impl NetworkChange {
    /// Returns `spec` with this change.
    ///
    /// # Errors
    /// The part of the change that does not fit `spec`.
    pub fn applied_to(&self, spec: &RunSpec) -> Result<RunSpec, RunError> {
        // The checks of an event find wrong indices.
        let mut checked = spec.clone();
        let when = WhenSpec::At { time_ns: 0 };
        checked.events =
            self.actions.iter().map(|action| EventSpec { when: when.clone(), action: action.clone() }).collect();
        ValidRun::new(&checked)?;
        let mut changed = spec.clone();
        for action in &self.actions {
            match action {
                ActionSpec::Rate { link, rate_bps } => changed.links[*link].rate_bps = *rate_bps,
                ActionSpec::Delay { link, delay_ns } => changed.links[*link].delay_ns = *delay_ns,
                ActionSpec::Loss { link, loss } => changed.links[*link].loss = loss.clone(),
                ActionSpec::BackgroundOn { source } => changed.background[*source].enabled = true,
                ActionSpec::BackgroundOff { source } => changed.background[*source].enabled = false,
                ActionSpec::LinkDown { .. } | ActionSpec::LinkUp { .. } => {}
                ActionSpec::Move { .. } | ActionSpec::MoveBackground { .. } => {
                    return Err(wrong("a move needs its routes from the beginning: it is an event's".into()));
                }
            }
        }
        for change in &self.policers {
            let changed = known("link", &mut changed.links, change.link)?;
            if changed.batching.is_some() {
                return Err(wrong(format!("link {}: its batching goes with no change", changed.name)));
            }
            changed.policer.clone_from(&change.policer);
        }
        for change in &self.mtus {
            known("link", &mut changed.links, change.link)?.mtu_bytes = Some(change.mtu_bytes);
        }
        for change in &self.background_rates {
            known("background source", &mut changed.background, change.source)?.rate_bps = change.rate_bps;
        }
        ValidRun::new(&changed)?;
        Ok(changed)
    }
}

fn wrong(text: String) -> RunError {
    RunError::Spec(format!("change: {text}"))
}

fn known<'a, T>(what: &str, all: &'a mut [T], index: usize) -> Result<&'a mut T, RunError> {
    let count = all.len();
    all.get_mut(index).ok_or_else(|| wrong(format!("{what} {index} does not exist, there are {count}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Line;
    use serde_json::json;

    fn applied(change: serde_json::Value) -> Result<RunSpec, String> {
        let change: NetworkChange = serde_json::from_value(change).expect("a change");
        change.applied_to(&Line::new(1_000_000, 0, 1).spec()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_change_is_what_the_links_are_then() {
        let changed = applied(json!({
            "actions": [{"kind": "rate", "link": 0, "rate_bps": 5}, {"kind": "delay", "link": 1, "delay_ns": 6},
                        {"kind": "link_down", "link": 0}],
            "policers": [{"link": 1, "policer": {"rate_bps": 7, "burst_bytes": 8}}],
            "mtus": [{"link": 0, "mtu_bytes": 900}],
        }))
        .unwrap();
        let [forward, back] = &changed.links[..] else { panic!("two links") };
        assert_eq!((forward.rate_bps, forward.mtu_bytes, back.delay_ns), (5, Some(900), 6));
        assert_eq!(back.policer, Some(PolicerSpec { rate_bps: 7, burst_bytes: 8 }));
        assert!(forward.policer.is_none());
    }

    #[test]
    fn what_does_not_fit_is_refused_as_a_whole() {
        let refused = [
            (json!({"actions": [{"kind": "rate", "link": 2, "rate_bps": 5}]}), "link 2 does not exist, there are 2"),
            (json!({"actions": [{"kind": "rate", "link": 0, "rate_bps": 0}]}), "above zero"),
            (json!({"actions": [{"kind": "background_on", "source": 0}]}), "background source 0 does not exist"),
            (json!({"policers": [{"link": 9, "policer": null}]}), "link 9 does not exist, there are 2"),
            (json!({"policers": [{"link": 0, "policer": {"rate_bps": 0, "burst_bytes": 1}}]}), "policer.rate"),
            (json!({"mtus": [{"link": 5, "mtu_bytes": 1500}]}), "link 5 does not exist"),
            (json!({"background_rates": [{"source": 3, "rate_bps": 5}]}), "background source 3 does not exist"),
            (
                json!({"actions": [{"kind": "move", "flows": [], "route": null, "return_route": null}]}),
                "a move needs its routes",
            ),
        ];
        for (change, words) in refused {
            let error = applied(change).expect_err(words);
            assert!(error.contains(words), "{error}");
        }
    }
}
