//! Numbers in groups, which grow together (union-find).

/// Numbers from 0, each in a group of its own until groups are joined.
pub struct Groups {
    /// By number: another one of its group with a lower number, or itself.
    parents: Vec<u32>,
}

impl Groups {
    /// `count` numbers.
    pub fn new(count: usize) -> Groups {
        Groups { parents: (0..count as u32).collect() }
    }

    /// The least number of the group of `of`.
    pub fn first(&self, mut of: u32) -> u32 {
        while self.parents[of as usize] != of {
            of = self.parents[of as usize];
        }
        of
    }

    /// Makes one group of those of `one` and `other`.
    pub fn join(&mut self, one: u32, other: u32) {
        let (one, other) = (self.first(one), self.first(other));
        self.parents[one.max(other) as usize] = one.min(other);
    }

    /// The group of each number, counted from 0 in the order of their first ones, and the number of groups.
    pub fn numbered(&self) -> (Vec<u32>, u32) {
        let mut groups = vec![0; self.parents.len()];
        let mut count = 0;
        for number in 0..self.parents.len() as u32 {
            let first = self.first(number);
            groups[number as usize] = if first == number {
                count += 1;
                count - 1
            } else {
                groups[first as usize]
            };
        }
        (groups, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_numbered_in_the_order_of_their_first_numbers() {
        let mut groups = Groups::new(6);
        for (one, other) in [(5, 3), (1, 4), (4, 5)] {
            groups.join(one, other);
        }
        assert_eq!(groups.numbered(), (vec![0, 1, 2, 1, 1, 1], 3));
    }
}
