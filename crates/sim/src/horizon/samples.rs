//! Samples of hosts at times that are known before: each process takes its own in its turns, so that no horizon ends
//! at one.

use crate::network::{Hosts, Network};
use crate::routes::{Routed, Train};
use link::Packet;
use units::Time;

impl<P: Packet + Routed + Train> Network<P> {
    /// All hosts of `process` note the sample at `at`; returns the time of their next one.
    #[inline]
    pub(super) fn note_sample<H: Hosts<P>>(&mut self, hosts: &mut H, process: u32, at: u64) -> u64 {
        let state = self.ahead_mut();
        let (first, interval) = (state.samples.first, state.samples.interval());
        let of_it = &mut state.processes[process as usize];
        for &inbox in &of_it.inboxes {
            hosts.note_sample(state.plan.host_of(inbox), Time(at), ((at - first) / interval) as usize);
        }
        of_it.next_sample = at.saturating_add(interval);
        of_it.next_sample
    }

    /// All hosts note the samples before `bound` that they have not noted: nothing has happened to them since.
    pub(super) fn note_all_samples<H: Hosts<P>>(&mut self, hosts: &mut H, bound: u64) {
        if self.ahead().samples.first >= bound {
            return;
        }
        for process in 0..self.ahead().processes.len() as u32 {
            let mut sample = self.ahead().processes[process as usize].next_sample;
            while sample < bound {
                sample = self.note_sample(hosts, process, sample);
            }
        }
    }

    /// Counts the samples that have been reached as events.
    pub(super) fn count_samples(&mut self) {
        let state = self.ahead_mut();
        let count = state.samples.count(state.samples.uncounted, state.reached);
        if count > 0 {
            state.samples.uncounted = state.samples.uncounted.saturating_add(count * state.samples.interval());
            let counts = state.part.as_ref().is_none_or(|part| part.worker == 0);
            self.events += if counts { count } else { 0 };
        }
    }

    /// Writes the samples that have been reached, if they are `least` or more.
    pub(super) fn write_samples<H: Hosts<P>>(&mut self, hosts: &mut H, least: u64) {
        let state = self.ahead();
        let (first, reached) = (state.samples.first, state.reached);
        let count = state.samples.count(first, reached);
        if count < least {
            return;
        }
        self.note_all_samples(hosts, reached);
        self.pass_all_last();
        hosts.write_samples(Time(first), count as usize, self);
        let samples = &mut self.ahead_mut().samples;
        samples.first = first.saturating_add(count * samples.interval());
    }

    /// Takes the timer of samples from the queue, where processes take them.
    pub(super) fn load_samples(&mut self) {
        let Some((timer, _)) = self.ahead().samples.timer else { return };
        let source = self.timer_source(timer);
        let Network { horizons: Some(state), queue, .. } = self else { return };
        // Late links are as of the horizon, and where the run may end, processes have turns in several parts.
        if state.plan.has_late || state.work.watches {
            return;
        }
        let due = queue.due(source).0;
        queue.schedule(source, Time::NEVER);
        (state.samples.first, state.samples.uncounted) = (due, due);
        state.processes.iter_mut().for_each(|process| process.next_sample = due);
    }

    /// Puts the timer of samples back into the queue.
    pub(super) fn unload_samples(&mut self) {
        let Some((timer, _)) = self.ahead().samples.timer else { return };
        let source = self.timer_source(timer);
        let Network { horizons: Some(state), queue, .. } = self else { return };
        if state.samples.first == u64::MAX {
            return;
        }
        queue.schedule(source, Time(state.samples.first));
        (state.samples.first, state.samples.uncounted) = (u64::MAX, u64::MAX);
        state.processes.iter_mut().for_each(|process| process.next_sample = u64::MAX);
    }
}
