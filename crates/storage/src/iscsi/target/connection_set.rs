//! A set of connections, of which there is mostly one.

use super::connection_id::ConnectionId;
use std::collections::BTreeSet;

/// Connections in the order of their numbers. A set of one needs no memory of its own: most PDUs come and go alone.
#[derive(Debug, Default)]
pub(super) struct ConnectionSet {
    /// The smallest number.
    first: Option<ConnectionId>,
    /// The larger ones.
    others: BTreeSet<ConnectionId>,
}

impl ConnectionSet {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(super) fn insert(&mut self, id: ConnectionId) {
        match self.first {
            None => self.first = Some(id),
            Some(first) if first == id => {}
            Some(first) => {
                self.first = Some(first.min(id));
                self.others.insert(first.max(id));
            }
        }
    }

    pub(super) fn remove(&mut self, id: ConnectionId) {
        if self.first == Some(id) {
            self.first = self.others.pop_first();
        } else {
            self.others.remove(&id);
        }
    }

    #[inline]
    pub(super) fn pop_first(&mut self) -> Option<ConnectionId> {
        std::mem::replace(&mut self.first, self.others.pop_first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_of_connections_is_a_set(changes in prop::collection::vec((0u8..3, 0u64..6), 0..60)) {
            let (mut set, mut plain) = (ConnectionSet::default(), BTreeSet::new());
            for (change, id) in changes {
                match change {
                    0 => {
                        set.insert(id);
                        plain.insert(id);
                    }
                    1 => {
                        set.remove(id);
                        plain.remove(&id);
                    }
                    _ => prop_assert_eq!(set.pop_first(), plain.pop_first()),
                }
                prop_assert_eq!(set.is_empty(), plain.is_empty());
            }
        }
    }
}
