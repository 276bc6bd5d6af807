//! All requests of a trace as a timetable.

use super::replay::ReplaySchedule;
use super::request::Request;
use super::whole::Trace;

/// Plays the requests of a trace: time 0 is the arrival of the first. Times are scaled and rounds follow each other as
/// in a [`super::Replay`].
#[derive(Clone, Debug)]
pub struct Player {
    trace: Trace,
    rounds: ReplaySchedule,
    round: u64,
    next: usize,
}

impl Player {
    /// A player at the beginning. `time_scale_e6`: 1,000,000 plays as recorded, 2,000,000 half as fast.
    pub fn new(trace: Trace, time_scale_e6: u64, looped: bool) -> Player {
        let rounds = ReplaySchedule::new(trace.span_ns(), trace.requests.len() as u64, time_scale_e6, looped);
        Player { trace, rounds, round: 0, next: 0 }
    }

    /// Time at which the next request comes, ns since the start of the replay, with the request; None at the end.
    pub fn peek(&self) -> Option<(u64, &Request)> {
        let requests = &self.trace.requests;
        let (round, next) = match self.next < requests.len() {
            true => (self.round, self.next),
            false if self.rounds.period_ns > 0 => (self.round + 1, 0),
            false => return None,
        };
        let first = requests.first()?.arrival_ns;
        let request = requests.get(next)?;
        Some((self.rounds.at(round, request.arrival_ns - first), request))
    }

    /// Goes on behind that request.
    pub fn advance(&mut self) {
        if self.next >= self.trace.requests.len() {
            (self.round, self.next) = (self.round + 1, 0);
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Format, Kind};

    fn play(looped: bool, time_scale_e6: u64, n: usize) -> Vec<(u64, u64, Kind)> {
        let text = "1000 0 7 8 0\n1100 0 9 16 1\n1300 0 8 24 0\n";
        let trace = Trace::read("t", Some(Format::Mqsim), text.as_bytes()).unwrap();
        let mut player = Player::new(trace, time_scale_e6, looped);
        let mut seen = Vec::new();
        while seen.len() < n {
            let Some((at, request)) = player.peek() else { break };
            seen.push((at, request.lba, request.kind));
            player.advance();
        }
        seen
    }

    #[test]
    fn requests_come_as_recorded_and_a_loop_closes_with_the_mean_gap() {
        let first = play(false, 1_000_000, 9);
        assert_eq!(first.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>(), [(0, 7), (100, 9), (300, 8)]);
        assert!(first.iter().any(|r| r.2 == Kind::Read) && first.iter().any(|r| r.2 == Kind::Write));
        // Span 300, two gaps: mean 150, period 450.
        assert_eq!(play(true, 2_000_000, 5).iter().map(|r| r.0).collect::<Vec<_>>(), [0, 200, 600, 900, 1100]);
    }
}
