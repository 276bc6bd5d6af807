//! The choice among waiting requests.

use std::fmt;
use std::str::FromStr;

/// An order of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheduler {
    /// As they came.
    #[default]
    Fcfs,
    /// Shortest seek first.
    Sstf,
    /// Up the cylinders and down again.
    Look,
    /// Up the cylinders, then from the lowest again.
    CLook,
    /// Shortest positioning time (seek and rotation) first.
    Sptf,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Scheduler; 5] =
        [Scheduler::Fcfs, Scheduler::Sstf, Scheduler::Look, Scheduler::CLook, Scheduler::Sptf];

    /// Its name for users.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Fcfs => "fcfs",
            Scheduler::Sstf => "sstf",
            Scheduler::Look => "look",
            Scheduler::CLook => "c-look",
            Scheduler::Sptf => "sptf",
        }
    }

    /// All names in one line.
    pub fn names() -> String {
        Scheduler::ALL.map(Scheduler::name).join(", ")
    }

    /// The order behind a number of DiskSim's "Scheduling policy"; by block number or by cylinder is one here. None:
    /// ageing and weighted orders, which are not modelled.
    pub fn of_disksim(policy: i64) -> Option<Scheduler> {
        match policy {
            1 => Some(Scheduler::Fcfs),
            2 | 5 => Some(Scheduler::Look),
            3 | 6 => Some(Scheduler::CLook),
            4 | 7 => Some(Scheduler::Sstf),
            8..=10 => Some(Scheduler::Sptf),
            _ => None,
        }
    }
}

impl FromStr for Scheduler {
    type Err = String;

    fn from_str(text: &str) -> Result<Scheduler, String> {
        let found = Scheduler::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| format!("scheduler {text:?} is unknown: use one of {}", Scheduler::names()))
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A queued request, as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// Its cylinder.
    pub cylinder: u32,
    /// Positioning time, ns; only for [`Scheduler::Sptf`].
    pub positioning_ns: u64,
}

/// The index of the request that goes next, of candidates in the order in which they came; ties go to the earlier.
/// `cylinder`: where the arm is; `up`: which way it goes, changed where [`Scheduler::Look`] turns.
pub fn choose(
    scheduler: Scheduler,
    cylinder: u32,
    up: &mut bool,
    candidates: impl Iterator<Item = Candidate> + Clone,
) -> Option<usize> {
    let numbered = candidates.enumerate();
    let by = |key: &dyn Fn(&Candidate) -> Option<u64>| {
        let keyed = numbered.clone().filter_map(|(index, candidate)| key(&candidate).map(|key| (key, index)));
        keyed.min().map(|(_, index)| index)
    };
    let ahead = |c: &Candidate| (c.cylinder >= cylinder).then(|| u64::from(c.cylinder - cylinder));
    let behind = |c: &Candidate| (c.cylinder <= cylinder).then(|| u64::from(cylinder - c.cylinder));
    match scheduler {
        Scheduler::Fcfs => numbered.clone().next().map(|(index, _)| index),
        Scheduler::Sstf => by(&|c| Some(u64::from(c.cylinder.abs_diff(cylinder)))),
        Scheduler::Sptf => by(&|c| Some(c.positioning_ns)),
        Scheduler::CLook => by(&ahead).or_else(|| by(&|c| Some(u64::from(c.cylinder)))),
        Scheduler::Look => {
            let found = if *up { by(&ahead) } else { by(&behind) };
            if found.is_some() {
                return found;
            }
            *up = !*up;
            if *up {
                by(&ahead)
            } else {
                by(&behind)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_order_takes_what_its_name_says() {
        let waiting = [(50, 9), (90, 5), (10, 7), (60, 8)];
        let candidates = waiting.iter().map(|&(cylinder, positioning_ns)| Candidate { cylinder, positioning_ns });
        let next = |scheduler, up: &mut bool| choose(scheduler, 55, up, candidates.clone()).unwrap();
        assert_eq!(next(Scheduler::Fcfs, &mut true), 0);
        assert_eq!(next(Scheduler::Sstf, &mut true), 0, "50 and 60 are as near: the earlier goes");
        assert_eq!(next(Scheduler::Sptf, &mut true), 1);
        assert_eq!(next(Scheduler::Look, &mut true), 3);
        assert_eq!(next(Scheduler::Look, &mut false), 0);
        assert_eq!(next(Scheduler::CLook, &mut true), 3);
        let mut up = true;
        assert_eq!(choose(Scheduler::Look, 95, &mut up, candidates.clone()), Some(1));
        assert!(!up, "it turned");
        assert_eq!(choose(Scheduler::CLook, 95, &mut up, candidates.clone()), Some(2));
        assert_eq!(choose(Scheduler::Fcfs, 0, &mut up, candidates.take(0)), None);
        assert!("elevator".parse::<Scheduler>().unwrap_err().contains("fcfs, sstf, look"));
    }
}
