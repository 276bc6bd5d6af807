//! Packets on their way: to a link where several inputs meet, and to a host.

use super::arrival::Arrival;
use super::buckets::Buckets;
use super::ties::Ties;
use std::collections::VecDeque;

/// Packets on their way to a merged link.
pub(super) struct Arrivals<P> {
    pub list: Vec<Arrival<P>>,
    /// Key of the last one, while they are in order.
    last: (u64, u64),
    is_sorted: bool,
}

impl<P> Default for Arrivals<P> {
    fn default() -> Arrivals<P> {
        Arrivals { list: vec![], last: (0, 0), is_sorted: true }
    }
}

impl<P> Arrivals<P> {
    #[inline]
    pub fn push(&mut self, arrival: Arrival<P>) {
        let key = arrival.key();
        self.is_sorted &= key >= self.last;
        self.last = key;
        self.list.push(arrival);
    }

    /// As [`Arrivals::push`] of all `arrivals`, which are in order.
    #[inline]
    pub fn push_run(&mut self, arrivals: impl Iterator<Item = Arrival<P>>) {
        let first = self.list.len();
        self.list.extend(arrivals);
        let run = &self.list[first..];
        debug_assert!(run.is_sorted_by_key(Arrival::key), "packets leave a link in order");
        if let (Some(first), Some(last)) = (run.first(), run.last()) {
            self.is_sorted &= first.key() >= self.last;
            self.last = last.key();
        }
    }

    /// Puts all into `list`, which is empty.
    pub fn hand_over(&mut self, list: &mut Vec<Arrival<P>>) {
        debug_assert!(list.is_empty(), "what was handed over before is taken");
        std::mem::swap(&mut self.list, list);
        (self.last, self.is_sorted) = ((0, 0), true);
    }

    /// Takes what another worker has sorted and handed over; leaves the room for it. Both lists are in order.
    pub fn merge(&mut self, list: &mut Vec<Arrival<P>>, scratch: &mut Buckets<P>)
    where
        P: Copy,
    {
        debug_assert!(self.is_sorted, "each sorts before all meet");
        if self.list.is_empty() {
            std::mem::swap(&mut self.list, list);
        } else {
            scratch.merge(&mut self.list, list);
        }
        list.clear();
        self.last = self.list.last().map_or((0, 0), Arrival::key);
    }

    /// Takes all.
    pub fn take(&mut self) -> impl Iterator<Item = Arrival<P>> {
        std::mem::take(self).list.into_iter()
    }

    /// Puts them in the order (time, cause); those of one input keep theirs.
    pub fn sort(&mut self, scratch: &mut Buckets<P>)
    where
        P: Copy,
    {
        if !self.is_sorted {
            scratch.sort(&mut self.list);
            self.is_sorted = true;
            self.last = self.list.last().map_or((0, 0), Arrival::key);
        }
    }
}

/// Packets on their way to a host.
pub(super) struct Inbox<P> {
    /// With the times of their arrival.
    pub queue: VecDeque<(u64, P)>,
    /// Of these, at the end: packets on their way to the last link ([`Place::Last`]), with their times there.
    pub before: usize,
    /// Order of packets of a link that delivers several at one time, and not to this host alone.
    pub ties: Option<Box<Ties>>,
}

impl<P> Default for Inbox<P> {
    fn default() -> Inbox<P> {
        Inbox { queue: VecDeque::new(), before: 0, ties: None }
    }
}

impl<P> Inbox<P> {
    /// Those on their way to the last link, in two pieces.
    pub fn take_before(&mut self) -> [&mut [(u64, P)]; 2] {
        let first = self.queue.len() - std::mem::take(&mut self.before);
        let (front, back) = self.queue.as_mut_slices();
        if first < front.len() {
            [&mut front[first..], back]
        } else {
            let first = first - front.len();
            [&mut [], &mut back[first..]]
        }
    }
}
