//! Growth of queues that hold as much as is in flight: by a quarter, not by doubling, because memory per packet counts.
//! A queue that was longer once gives room back: where flows are many, each has its longest queues at another time.

use std::collections::VecDeque;

/// Room that the first growth makes at least.
const LEAST: usize = 8;
/// Room that is not worth giving back.
const KEPT: usize = 32;
const KEPT_IN_LIST: usize = 1024;

/// Makes room for `more` elements in `queue`. A grown queue has at most a quarter more room than it needs.
#[inline]
pub fn reserve<T>(queue: &mut VecDeque<T>, more: usize) {
    if queue.capacity() - queue.len() < more {
        grow(queue, more);
    }
}

#[cold]
fn grow<T>(queue: &mut VecDeque<T>, more: usize) {
    queue.reserve_exact(more.max(queue.capacity() / 4).max(LEAST));
}

/// Gives half of the room back if more than three quarters of that in `queue` are free. To be called when it is about
/// as long as it gets, or it grows again soon.
#[inline]
pub fn fit<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > (4 * queue.len()).max(KEPT) {
        shrink(queue);
    }
}

/// As [`fit`], of a list that is filled anew each time: down to half.
#[inline]
pub fn fit_list<T>(list: &mut Vec<T>) {
    if list.capacity() > (4 * list.len()).max(KEPT_IN_LIST) {
        list.shrink_to(list.capacity() / 2);
    }
}

#[cold]
fn shrink<T>(queue: &mut VecDeque<T>) {
    queue.shrink_to(queue.capacity() / 2);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_at_most_a_quarter_more_than_what_is_in_it() {
        let mut queue = VecDeque::new();
        for count in 1..=10_000 {
            reserve(&mut queue, 1);
            queue.push_back(count);
            assert!(queue.capacity() <= count + (count / 4).max(LEAST), "{} for {count}", queue.capacity());
        }
    }

    #[test]
    fn a_queue_that_was_long_gives_room_back() {
        let mut queue: VecDeque<u32> = (0..1_000).collect();
        queue.drain(..980);
        fit(&mut queue);
        assert!(queue.capacity() <= 500 && queue.iter().copied().eq(980..1_000), "{}", queue.capacity());
    }
}
