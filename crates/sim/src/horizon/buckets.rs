//! Sorting of what comes to a link from many sides: into buckets of time, then by insertion.
//!
//! Times of a horizon's packets are spread nearly evenly, since a link that they share has a rate: about one falls into
//! each bucket, and sorting costs a few ns per packet whatever their number. Where they are not, a stable sort takes
//! over.

use super::arrival::Arrival;

/// Steps of insertion per packet from which on times are not spread evenly.
const MANY_STEPS: usize = 16;
/// Fewer packets are inserted as they are.
const FEW: usize = 32;

/// Room for sorting, used again.
pub(super) struct Buckets<P> {
    /// By bucket: packets so far, then the place of the next one.
    places: Vec<u32>,
    sorted: Vec<Arrival<P>>,
}

impl<P> Default for Buckets<P> {
    fn default() -> Buckets<P> {
        Buckets { places: vec![], sorted: vec![] }
    }
}

impl<P: Copy> Buckets<P> {
    /// Puts `list` in the order (time, cause); those with equal keys keep theirs.
    pub fn sort(&mut self, list: &mut Vec<Arrival<P>>) {
        if list.len() > FEW {
            self.distribute(list);
        }
        if !insert_all(list) {
            list.sort_by_key(Arrival::key);
        }
    }

    /// Merges `other` into `list`; both are in order.
    pub fn merge(&mut self, list: &mut Vec<Arrival<P>>, other: &[Arrival<P>]) {
        self.sorted.clear();
        self.sorted.reserve(list.len() + other.len());
        let (mut at, mut from) = (0, 0);
        while let (Some(one), Some(two)) = (list.get(at), other.get(from)) {
            // Nobody can foresee which one is first: no branch.
            let second = two.key() < one.key();
            self.sorted.push(if second { *two } else { *one });
            at += usize::from(!second);
            from += usize::from(second);
        }
        self.sorted.extend_from_slice(&list[at..]);
        self.sorted.extend_from_slice(&other[from..]);
        std::mem::swap(list, &mut self.sorted);
    }

    /// Puts `list` in the order of buckets of time, as many as there are packets.
    fn distribute(&mut self, list: &mut Vec<Arrival<P>>) {
        let (first, last) = list.iter().fold((u64::MAX, 0), |(a, b), of| (a.min(of.at), b.max(of.at)));
        let shift = ((last - first) / list.len() as u64).checked_ilog2().map_or(0, |bits| bits + 1);
        let bucket = |arrival: &Arrival<P>| ((arrival.at - first) >> shift) as usize;
        self.places.clear();
        self.places.resize(((last - first) >> shift) as usize + 2, 0);
        for arrival in list.iter() {
            self.places[bucket(arrival) + 1] += 1;
        }
        let mut before = 0;
        for place in &mut self.places {
            before += *place;
            *place = before;
        }
        // The longest list so far leaves enough places; what is in them does not matter.
        if self.sorted.len() < list.len() {
            self.sorted.extend_from_slice(&list[self.sorted.len()..]);
        }
        for arrival in list.iter() {
            let place = &mut self.places[bucket(arrival)];
            self.sorted[*place as usize] = *arrival;
            *place += 1;
        }
        self.sorted.truncate(list.len());
        std::mem::swap(list, &mut self.sorted);
    }
}

/// Sorts `list`, which is nearly in order; returns false where it was not, and leaves some order then. Equal keys stay
/// as they were.
fn insert_all<P: Copy>(list: &mut [Arrival<P>]) -> bool {
    let key = Arrival::key;
    let mut steps = 0;
    for index in 1..list.len() {
        let arrival = list[index];
        if key(&list[index - 1]) <= key(&arrival) {
            continue;
        }
        let mut at = index;
        while at > 0 && key(&list[at - 1]) > key(&arrival) {
            list[at] = list[at - 1];
            at -= 1;
        }
        list[at] = arrival;
        steps += index - at;
        if steps > MANY_STEPS * list.len() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrivals(keys: &[(u64, u32)]) -> Vec<Arrival<usize>> {
        let arrival = |(packet, &(at, cause))| Arrival::delivered(at, (cause, 0), packet);
        keys.iter().enumerate().map(arrival).collect()
    }

    fn keys() -> impl Strategy<Value = Vec<(u64, u32)>> {
        let even = prop::collection::vec((0u64..5_000, 0u32..4), 0..400);
        let clustered = prop::collection::vec((prop_oneof![0u64..20, 1_000_000u64..1_000_050], 0u32..4), 0..400);
        prop_oneof![even, clustered]
    }

    proptest! {
        /// The order is that of a stable sort, however times are spread.
        #[test]
        fn agrees_with_a_stable_sort(keys in keys()) {
            let mut list = arrivals(&keys);
            let mut expected = list.clone();
            expected.sort_by_key(Arrival::key);
            Buckets::default().sort(&mut list);
            let packets = |list: &[Arrival<usize>]| list.iter().map(|arrival| arrival.packet).collect::<Vec<_>>();
            prop_assert_eq!(packets(&list), packets(&expected));
        }

        /// Two lists in order merge to what a stable sort gives of both.
        #[test]
        fn merges_as_a_stable_sort(one in keys(), two in keys()) {
            let (mut list, mut other) = (arrivals(&one), arrivals(&two));
            list.sort_by_key(Arrival::key);
            other.sort_by_key(Arrival::key);
            let mut expected = [list.clone(), other.clone()].concat();
            expected.sort_by_key(Arrival::key);
            Buckets::default().merge(&mut list, &other);
            let keys = |list: &[Arrival<usize>]| list.iter().map(Arrival::key).collect::<Vec<_>>();
            prop_assert_eq!(keys(&list), keys(&expected));
        }
    }
}
