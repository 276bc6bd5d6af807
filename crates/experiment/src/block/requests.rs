//! Sources of a session's requests.

use super::postmark::Postmark;
use super::request::Request;
use link::random::Random;
use std::collections::VecDeque;
use storage::trace::{Kind, Player};
use units::{Span, Time};

/// Requests of one size: each place of the queue takes the next one a while after its last was done.
pub struct Mix {
    /// Share of reads, parts per million.
    pub reads_e6: u32,
    /// Blocks of a request.
    pub blocks: u32,
    /// Requests that the part of the unit in use has room for; above zero.
    pub places: u64,
    /// Anywhere, or one after the other.
    pub random: bool,
    /// Pause of a place between its requests.
    pub think: Span,
    /// Requests still to come; None: without end.
    pub left: Option<u64>,
    /// Draws places and kinds.
    pub stream: Random,
    /// Times at which places of the queue are free, ascending.
    free: VecDeque<Time>,
    next: u64,
}

/// Requests of a trace.
pub struct Traced {
    /// The next request and its time.
    pub player: Player,
    /// As recorded; else as fast as the queue lets.
    pub timed: bool,
    /// Start of the replay.
    began: Time,
    /// The latest time at which a place of the queue became free.
    freed: Time,
}

/// A source of requests.
pub enum Requests {
    /// Of one size.
    Mix(Mix),
    /// Of a trace.
    Trace(Traced),
    /// Of a file server.
    Postmark(Postmark),
}

impl Mix {
    /// A source with `left` requests to come.
    #[allow(clippy::too_many_arguments, reason = "the keys of the specification, one by one")]
    pub fn new(
        reads_e6: u32,
        blocks: u32,
        places: u64,
        random: bool,
        think: Span,
        left: Option<u64>,
        stream: Random,
    ) -> Mix {
        Mix { reads_e6, blocks, places, random, think, left, stream, free: VecDeque::new(), next: 0 }
    }
}

impl Traced {
    /// A replay.
    pub fn new(player: Player, timed: bool) -> Traced {
        Traced { player, timed, began: Time::ZERO, freed: Time::ZERO }
    }
}

impl Requests {
    /// The application starts; it may have `depth` requests under way.
    pub fn start(&mut self, now: Time, depth: usize) {
        match self {
            Requests::Mix(mix) => mix.free.extend(std::iter::repeat_n(now, depth)),
            Requests::Trace(traced) => (traced.began, traced.freed) = (now, now),
            Requests::Postmark(postmark) => postmark.start(now, depth),
        }
    }

    /// Returns the time of the next request; [`Time::NEVER`]: not before another one is done, or none comes any more.
    pub fn poll_timeout(&self) -> Time {
        match self {
            Requests::Mix(mix) if mix.left == Some(0) => Time::NEVER,
            Requests::Mix(mix) => mix.free.front().copied().unwrap_or(Time::NEVER),
            Requests::Trace(traced) => match traced.player.peek() {
                Some((at, _)) if traced.timed => traced.began + Span(at),
                Some(_) => traced.freed,
                None => Time::NEVER,
            },
            Requests::Postmark(postmark) => postmark.poll_timeout(),
        }
    }

    /// Returns true if no request comes any more.
    pub fn is_over(&self) -> bool {
        match self {
            Requests::Mix(mix) => mix.left == Some(0),
            Requests::Trace(traced) => traced.player.peek().is_none(),
            Requests::Postmark(postmark) => postmark.is_over(),
        }
    }

    /// The next request, if it is there by `now`. To be called while fewer than the queue's depth are under way.
    pub fn poll(&mut self, now: Time) -> Option<Request> {
        let due = self.poll_timeout();
        if due > now {
            return None;
        }
        match self {
            Requests::Mix(mix) => {
                mix.free.pop_front();
                if let Some(left) = &mut mix.left {
                    *left -= 1;
                }
                let place = if mix.random { mix.stream.below(mix.places) } else { mix.next % mix.places };
                mix.next += 1;
                let read = match mix.reads_e6 {
                    0 => false,
                    1_000_000.. => true,
                    share => mix.stream.below(1_000_000) < u64::from(share),
                };
                Some(Request { due, read, block: place * u64::from(mix.blocks), blocks: mix.blocks, place: 0 })
            }
            Requests::Trace(traced) => {
                let (_, request) = traced.player.peek()?;
                let read = request.kind == Kind::Read;
                // Checked when the trace was read: 16 MiB at most.
                let (block, blocks) = (request.lba, request.sectors() as u32);
                let wanted = Request { due, read, block, blocks, place: 0 };
                traced.player.advance();
                Some(wanted)
            }
            Requests::Postmark(postmark) => postmark.poll(now),
        }
    }

    /// A request of `place` is done: its place in the queue is free.
    pub fn handle_done(&mut self, now: Time, place: u32) {
        match self {
            Requests::Mix(mix) => mix.free.push_back(now + mix.think),
            Requests::Trace(traced) => traced.freed = now,
            Requests::Postmark(postmark) => postmark.handle_done(now, place),
        }
    }
}
