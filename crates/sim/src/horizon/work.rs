//! Work with which a run ends: what is left of it.

/// Orders events of one time: by their sources, then by their numbers among those of one source. As
/// [`Arrival::key`](super::arrival::Arrival::key) of what they send, with one more for what a link delivers.
pub fn order(source: u32, nth: u32) -> u64 {
    u64::from(source) << 32 | u64::from(nth) << 1
}

/// Work that is left.
#[derive(Default)]
pub(super) struct Work {
    /// By piece of work: the process that has to do it.
    pub of_piece: Vec<u32>,
    /// By process: pieces that are left.
    pub left: Vec<u32>,
    /// Processes with work left, and some that have done theirs.
    pub waiting: Vec<u32>,
    /// The last piece may be done in the present horizon.
    pub watches: bool,
    /// A process pauses when it has done all its work.
    pub pauses: bool,
    /// The process whose turn it is has just done so.
    pub has_paused: bool,
    /// Order of the latest event in which work was done, among those of its time.
    pub finished_in: u64,
}

impl Work {
    /// `of_piece`: the process of each piece of work; `count` processes.
    pub fn new(of_piece: Vec<u32>, count: usize) -> Work {
        let mut left = vec![0; count];
        for &process in &of_piece {
            left[process as usize] += 1;
        }
        let waiting = (0..).zip(&left).filter(|(_, &left)| left > 0).map(|(process, _)| process).collect();
        Work { of_piece, left, waiting, ..Work::default() }
    }

    /// `piece` was done in an event of `order`.
    pub fn finish(&mut self, piece: u32, order: u64) {
        let Some(&process) = self.of_piece.get(piece as usize) else { return };
        let left = &mut self.left[process as usize];
        *left -= 1;
        self.finished_in = order;
        self.has_paused |= self.pauses && *left == 0;
    }
}
