//! Logical processes: who of the hosts and timers shares state without delay.

use units::Span;

/// The part of a timer's work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerScope {
    /// It touches one logical process alone.
    Process(u32),
    /// It looks at hosts and takes samples of links ([`link::Link::take_samples`]): the horizon ends at it.
    Samples,
    /// The same, but it fires at every such interval, and what it does can be left to [`crate::Hosts::note_sample`],
    /// by each process in its turn, and [`crate::Hosts::write_samples`]: no horizon ends at it where nothing else asks
    /// for that. Links have to be told ([`crate::Network::take_samples`]). Its number is above those of all timers that
    /// change what samples see; those above it change nothing of that, but may end the run. Timers of all send nothing.
    HostSamples(Span),
    /// It may look at everything: the horizon ends at it.
    All,
    /// The same, and it may end the run.
    AllAndEnds,
}

/// The division of a simulation into logical processes (Chandy and Misra 1979): hosts of one process may share state,
/// and hosts of different ones meet through links alone.
#[derive(Clone, Debug)]
pub struct Processes {
    /// By host: its process. Processes are numbered from 0.
    pub of_host: Vec<u32>,
    /// By timer of the network.
    pub of_timer: Vec<TimerScope>,
    /// First hop of each route, and the process that sends over it.
    pub senders: Vec<(u32, u32)>,
    /// Delays that links are given later ([`crate::Network::change_link`]): none is ever less than a link's first one
    /// and these.
    pub later_delays: Vec<(u32, Span)>,
    /// Timers of one process that look at another one as well; they are set when horizons are planned, and not again.
    /// For few events: in the ns of one all processes take turns event by event.
    pub looks: Vec<u32>,
    /// Sizes of the smallest and the largest packet, bytes.
    pub packet_bytes: [u32; 2],
    /// By piece of work ([`crate::Network::end_with_work`]): the process that does it.
    pub of_work: Vec<u32>,
}

impl Processes {
    /// Returns the number of processes.
    pub(crate) fn count(&self) -> usize {
        let of_timers = self.of_timer.iter().filter_map(|scope| match scope {
            TimerScope::Process(process) => Some(*process),
            _ => None,
        });
        let of_senders = self.senders.iter().map(|&(_, process)| process);
        let of_work = self.of_work.iter().copied();
        self.of_host
            .iter()
            .copied()
            .chain(of_timers)
            .chain(of_senders)
            .chain(of_work)
            .max()
            .map_or(0, |last| last as usize + 1)
    }
}
