//! The division of a run among workers: who moves which process and which link.

use super::plan::{Place, Plan, Walk};
use super::processes::Processes;
use crate::groups::Groups;
use std::collections::BTreeMap;

/// The division of a network with horizons among workers. Both ends of a route are one worker's; a link where packets
/// of several processes meet is one worker's with all merged links before and behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    workers: usize,
    /// By process.
    of_process: Vec<usize>,
    /// By link.
    of_link: Vec<usize>,
    /// By position on a route.
    of_position: Vec<usize>,
}

impl Shards {
    /// Among `workers`, or fewer where there are not as many groups of processes without a common route.
    pub(super) fn new(plan: &Plan, walks: &[Walk], of: &Processes, workers: usize) -> Shards {
        let processes = of.count();
        let mut groups = Groups::new(processes);
        let mut components = Groups::new(plan.places.len());
        let is_merged = |&&link: &&u32| plan.places[link as usize] == Place::Merged;
        for walk in walks {
            groups.join(walk.sender, of.of_host[walk.host as usize]);
            let mut merged = walk.links.iter().filter(is_merged);
            if let Some(&first) = merged.next() {
                merged.for_each(|&link| components.join(first, link));
            }
        }
        // A group's weight is its routes.
        let mut weights = BTreeMap::new();
        for walk in walks {
            *weights.entry(groups.first(walk.sender)).or_insert(0) += 1;
        }
        // One worker has all that late links have handed over ahead, and all numbers of packets at one time.
        let is_plain = !plan.has_late && !plan.counts_ties.contains(&true);
        let workers = if is_plain { workers.min(weights.len()).max(1) } else { 1 };
        let of_group = dealt(&weights, workers);
        let worker_of = |process: u32| of_group.get(&groups.first(process)).copied().unwrap_or(0);
        let of_process: Vec<_> = (0..processes as u32).map(worker_of).collect();
        let mut users: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for walk in walks {
            if let Some(&link) = walk.links.iter().find(is_merged) {
                let of_it = users.entry(components.first(link)).or_insert_with(|| vec![0; workers]);
                of_it[of_process[walk.sender as usize]] += 1;
            }
        }
        let of_component = owners(&users, workers);
        let mut of_link = vec![0; plan.places.len()];
        let mut of_position = vec![];
        for walk in walks {
            let worker = of_process[walk.sender as usize];
            let (mut owner, mut is_careful) = (worker, false);
            for &link in &walk.links {
                owner = match plan.places[link as usize] {
                    Place::Merged => of_component[&components.first(link)],
                    // A careful link in front passes its packets on itself.
                    Place::Last(_) if !is_careful => worker,
                    Place::Direct => worker,
                    Place::Fused | Place::Last(_) => owner,
                };
                is_careful = plan.is_careful[link as usize];
                of_link[link as usize] = owner;
            }
            of_position.extend((0..=walk.links.len()).map(|_| worker));
        }
        Shards { workers, of_process, of_link, of_position }
    }

    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// The worker that moves `process`; the first, if it has neither hosts nor timers.
    pub fn of_process(&self, process: u32) -> usize {
        self.of_process.get(process as usize).copied().unwrap_or(0)
    }

    /// The worker whose `link` has its packets and counters.
    pub fn of_link(&self, link: usize) -> usize {
        self.of_link[link]
    }

    /// The worker with both ends of the route that has this `position`.
    #[inline]
    pub(super) fn of_position(&self, position: u32) -> usize {
        self.of_position[position as usize]
    }
}

/// Deals things with weights to workers: the heaviest first, each to who has least.
fn dealt(weights: &BTreeMap<u32, u64>, workers: usize) -> BTreeMap<u32, usize> {
    let mut order: Vec<_> = weights.iter().map(|(&of, &weight)| (std::cmp::Reverse(weight), of)).collect();
    order.sort_unstable();
    let mut loads = vec![0; workers];
    let mut dealt = BTreeMap::new();
    for (std::cmp::Reverse(weight), of) in order {
        let least = (0..workers).min_by_key(|&worker| loads[worker]).unwrap_or(0);
        loads[least] += weight;
        dealt.insert(of, least);
    }
    dealt
}

/// The owner of each component of merged links; `users`: its routes by worker. One that a single worker uses is that
/// worker's; the others are dealt.
fn owners(users: &BTreeMap<u32, Vec<u64>>, workers: usize) -> BTreeMap<u32, usize> {
    let mut owners = BTreeMap::new();
    let mut shared = BTreeMap::new();
    for (&component, of) in users {
        let mut with_routes = (0..workers).filter(|&worker| of[worker] > 0);
        match (with_routes.next(), with_routes.next()) {
            (Some(only), None) => _ = owners.insert(component, only),
            _ => _ = shared.insert(component, of.iter().sum()),
        }
    }
    owners.extend(dealt(&shared, workers));
    owners
}
