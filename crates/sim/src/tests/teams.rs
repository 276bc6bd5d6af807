//! Workers of a team give together what one worker gives alone.

use super::horizons::{case, prepared, run, take_samples, Case, Engine, Outcome};
use crate::{Progress, Shards, Team};
use proptest::prelude::*;
use std::sync::Arc;
use std::thread;
use units::Time;

/// Longest run, ns: with nothing to do it takes two barriers for each of its longest horizons.
const MOST_NS: u64 = 1_000_000;

/// Runs the part of `case` that is that of `worker` in `team`; returns what it sees.
fn work(case: &Case, team: &Arc<Team<super::Probe>>, worker: usize) -> (Outcome, Shards) {
    let (mut net, processes, mut script) = prepared(case);
    net.plan_horizons(processes.clone()).expect("it has horizons");
    take_samples(case, &mut net);
    let shards = net.shards(&processes, team.workers());
    net.join(Arc::clone(team), worker, shards.clone());
    script.is_here = (0..case.processes).map(|process| shards.of_process(process) == worker).collect();
    'run: for until in case.pauses.iter().copied().filter(|&pause| pause < case.end).chain([case.end]) {
        loop {
            match net.run_horizons(&mut script, Time(until), Time(case.end), 100) {
                Progress::ReachedEvents => {}
                Progress::ReachedTime => break,
                Progress::Stopped => break 'run,
            }
        }
    }
    (script.finished(net), shards)
}

/// Runs `case` by `workers`, or fewer where it has no more parts; None where it has no horizons.
fn run_together(case: &Case, workers: usize) -> Option<Outcome> {
    let (mut net, processes, _) = prepared(case);
    net.plan_horizons(processes.clone()).ok()?;
    let team = Arc::new(Team::new(net.shards(&processes, workers).workers(), thread::yield_now));
    let mut parts = thread::scope(|scope| {
        let threads: Vec<_> = (0..team.workers())
            .map(|worker| {
                scope.spawn({
                    let team = Arc::clone(&team);
                    move || work(case, &team, worker)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no worker panics")).collect::<Vec<_>>()
    });
    let shards = parts[0].1.clone();
    let mut all = Outcome { ended: parts[0].0.ended, next: Time::NEVER, ..Outcome::default() };
    let seen = |process: u32| parts[shards.of_process(process)].0.seen[process as usize].clone();
    all.seen = (0..case.processes).map(seen).collect();
    all.stats = (0..parts[0].0.stats.len()).map(|link| parts[shards.of_link(link)].0.stats[link]).collect();
    for index in 0..parts[0].0.samples.len() {
        let (at, _, rows) = &parts[0].0.samples[index];
        let lost = parts.iter().map(|part| part.0.samples[index].1).sum();
        let row = |link: usize| parts[shards.of_link(link)].0.samples[index].2[link];
        all.samples.push((*at, lost, (0..rows.len()).map(row).collect()));
    }
    for index in 0..parts[0].0.series.len() {
        let (at, states, rows) = &parts[0].0.series[index];
        let state = |process: usize| parts[shards.of_process(process as u32)].0.series[index].1[process];
        let row = |link: usize| parts[shards.of_link(link)].0.series[index].2[link];
        all.series.push((*at, (0..states.len()).map(state).collect(), (0..rows.len()).map(row).collect()));
    }
    for (part, _) in &mut parts {
        all.events += part.events;
        all.next = all.next.min(part.next);
        all.dropped.append(&mut part.dropped);
    }
    all.dropped.sort();
    Some(all)
}

/// `case` with `count` times the hosts and processes, which meet at the same links.
fn copies(case: &Case, count: u32) -> Case {
    let mut all = case.clone();
    all.end = all.end.min(MOST_NS);
    // Runs that several workers share move nothing, look at nobody else, and do not end with their work.
    all.paths.clear();
    all.looks.clear();
    all.work.clear();
    for copy in 1..count {
        let (hosts, processes) = (copy * case.process_of.len() as u32, copy * case.processes);
        let route = |(links, host, sender): &(Vec<usize>, u32, u32)| (links.clone(), host + hosts, sender + processes);
        all.routes.extend(case.routes.iter().map(route));
        all.process_of.extend(case.process_of.iter().map(|process| process + processes));
        all.timers.extend(case.timers.iter().map(|&(process, at)| (process + processes, at)));
    }
    all.processes *= count;
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Everything that one worker sees alone, two and three see together.
    #[test]
    fn workers_change_nothing(case in case()) {
        for workers in [2, 3] {
            let case = copies(&case, workers);
            let Ok(alone) = run(&case, Engine::Horizons) else { return Ok(()) };
            let found = run_together(&case, workers as usize).expect("it has horizons");
            let difference = found.lines().into_iter().zip(alone.lines()).find(|(found, alone)| found != alone);
            prop_assert_eq!(difference, None, "{} workers", workers);
            prop_assert_eq!(&found, &alone);
        }
    }
}
