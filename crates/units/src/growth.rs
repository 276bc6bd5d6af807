//! Growth of queues that hold as much as is in flight: by a quarter, not by doubling, because memory per packet counts.
//! A list that was longer once gives room back.

use std::collections::VecDeque;

/// Room that the first growth makes at least.
const LEAST: usize = 8;
/// Room that is not worth giving back.
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

/// Gives half of the room back if more than three quarters of that in `list`, which is filled anew each time, are free.
#[inline]
pub fn fit_list<T>(list: &mut Vec<T>) {
    if list.capacity() > (4 * list.len()).max(KEPT_IN_LIST) {
        list.shrink_to(list.capacity() / 2);
    }
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
}
