//! Postmark's pattern of a file server (Katcher, TR3022, 1997) as block requests.
//!
//! A pool of small files, whose sizes are drawn evenly; transactions of two halves each: a file is created or deleted,
//! and a file is read whole or appended to, either with the same probability. A client goes through its transactions
//! one request after the other; as many clients run as the queue is deep. There is no cache: what a file system would
//! find in memory is asked for.

use super::backing::BLOCK_BYTES;
use super::request::Request;
use link::random::Random;
use std::collections::VecDeque;
use units::Time;

/// A file takes space in pieces of this size, bytes: a usual block of file systems.
pub const PIECE_BYTES: u64 = 4096;
const PIECE_BLOCKS: u64 = PIECE_BYTES / BLOCK_BYTES as u64;
/// Files that share a piece of metadata: inodes of 256 bytes (ext4's default).
const FILES_PER_PIECE: u64 = 16;

/// Number of a place for a file.
type Place = u32;

/// A read or write that a client does next.
#[derive(Clone, Copy, Debug)]
struct Step {
    read: bool,
    /// Pieces from the unit's beginning.
    piece: u64,
    pieces: u32,
}

#[derive(Default)]
struct Client {
    steps: VecDeque<Step>,
}

/// Files and who works on them.
pub struct Postmark {
    smallest: u64,
    largest: u64,
    /// Places that have a file, and its bytes.
    files: Vec<(Place, u64)>,
    empty: Vec<Place>,
    places: u64,
    /// Transactions still to come; None: without end.
    left: Option<u64>,
    stream: Random,
    clients: Vec<Client>,
    /// Clients that are at rest, and since when.
    ready: VecDeque<(Time, u32)>,
}

impl Postmark {
    /// Blocks of the unit that a pool of `files` needs: places for twice as many, and their metadata.
    pub fn blocks(files: u64, largest: u64) -> u64 {
        let places = 2 * files;
        (places.div_ceil(FILES_PER_PIECE) + places * largest.div_ceil(PIECE_BYTES)) * PIECE_BLOCKS
    }

    /// A pool of `files`, in the order of their places. `smallest` is not above `largest`.
    pub fn new(files: u32, smallest: u64, largest: u64, left: Option<u64>, mut stream: Random) -> Postmark {
        let pool = (0..files).map(|place| (place, smallest + stream.below(largest - smallest + 1))).collect();
        let empty = (files..2 * files).rev().collect();
        let (clients, ready) = Default::default();
        let places = u64::from(2 * files);
        Postmark { smallest, largest, files: pool, empty, places, left, stream, clients, ready }
    }

    /// As many clients start as the queue is deep.
    pub fn start(&mut self, now: Time, depth: usize) {
        self.clients.resize_with(depth, Client::default);
        self.ready.extend((0..depth as u32).map(|client| (now, client)));
    }

    /// Returns the time of the next request.
    pub fn poll_timeout(&self) -> Time {
        self.ready.front().map_or(Time::NEVER, |&(since, _)| since)
    }

    /// Returns true if no request comes any more.
    pub fn is_over(&self) -> bool {
        self.left == Some(0) && self.clients.iter().all(|client| client.steps.is_empty())
    }

    /// The next request, if a client has one.
    pub fn poll(&mut self, now: Time) -> Option<Request> {
        while let Some(&(due, number)) = self.ready.front() {
            if due > now {
                return None;
            }
            self.ready.pop_front();
            let client = number as usize;
            if self.clients[client].steps.is_empty() {
                match &mut self.left {
                    // This client is done.
                    Some(0) => continue,
                    Some(left) => *left -= 1,
                    None => {}
                }
                let mut steps = std::mem::take(&mut self.clients[client].steps);
                self.transact(&mut steps);
                self.clients[client].steps = steps;
            }
            let step = self.clients[client].steps.pop_front()?;
            let blocks = step.pieces * PIECE_BLOCKS as u32;
            return Some(Request { due, read: step.read, block: step.piece * PIECE_BLOCKS, blocks, place: number });
        }
        None
    }

    /// A client's request is done.
    pub fn handle_done(&mut self, now: Time, client: u32) {
        self.ready.push_back((now, client));
    }

    fn transact(&mut self, steps: &mut VecDeque<Step>) {
        // An empty pool forces a creation, a full one a deletion.
        let creates = self.stream.below(2) == 0 && !self.empty.is_empty() || self.files.is_empty();
        let place = if creates { self.empty.pop() } else { None };
        if let Some(place) = place {
            let bytes = self.smallest + self.stream.below(self.largest - self.smallest + 1);
            steps.push_back(self.data(place, 0, bytes, false));
            steps.push_back(self.metadata(place));
            self.files.push((place, bytes));
        } else {
            let index = self.stream.below(self.files.len() as u64) as usize;
            let (place, _) = self.files.swap_remove(index);
            steps.push_back(self.metadata(place));
            self.empty.push(place);
        }
        if self.files.is_empty() {
            return;
        }
        let index = self.stream.below(self.files.len() as u64) as usize;
        let (place, bytes) = self.files[index];
        let room = self.largest - bytes;
        if self.stream.below(2) == 0 || room == 0 {
            steps.push_back(self.data(place, 0, bytes, true));
        } else {
            let end = bytes + 1 + self.stream.below(room);
            // The last piece of the file is written again with what is added to it.
            steps.push_back(self.data(place, bytes, end, false));
            steps.push_back(self.metadata(place));
            self.files[index].1 = end;
        }
    }

    /// The pieces with a file's bytes from `from` to before `to`.
    fn data(&self, place: Place, from: u64, to: u64, read: bool) -> Step {
        let first = from / PIECE_BYTES;
        let start = self.places.div_ceil(FILES_PER_PIECE) + u64::from(place) * self.largest.div_ceil(PIECE_BYTES);
        Step { read, piece: start + first, pieces: (to.div_ceil(PIECE_BYTES) - first) as u32 }
    }

    fn metadata(&self, place: Place) -> Step {
        Step { read: false, piece: u64::from(place) / FILES_PER_PIECE, pieces: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(left: u64, depth: usize) -> Vec<Request> {
        let mut postmark = Postmark::new(50, 500, 10_000, Some(left), Random::new(7));
        postmark.start(Time::ZERO, depth);
        let mut all = Vec::new();
        while let Some(wanted) = postmark.poll(Time::ZERO) {
            all.push(wanted);
            postmark.handle_done(Time::ZERO, wanted.place);
        }
        assert!(postmark.is_over());
        all
    }

    #[test]
    fn transactions_read_and_write_small_files_within_their_places() {
        let all = play(10_000, 1);
        let blocks = Postmark::blocks(50, 10_000);
        // 100 places of three pieces, and seven pieces of metadata.
        assert_eq!(blocks, (100 * 3 + 7) * 8);
        assert!(all.iter().all(|w| w.block + u64::from(w.blocks) <= blocks && (8..=24).contains(&w.blocks)));
        // Per transaction: half a create (two writes), half a delete (one), half a read (one), half an append (two
        // writes).
        let reads = all.iter().filter(|w| w.read).count() as f64 / 10_000.0;
        let writes = all.iter().filter(|w| !w.read).count() as f64 / 10_000.0;
        assert!((0.48..0.56).contains(&reads) && (2.4..2.6).contains(&writes), "{reads} and {writes}");
        assert_eq!(play(10_000, 1), all, "the same seed, the same requests");
    }

    #[test]
    fn as_many_clients_as_the_queue_is_deep_take_turns() {
        let mut postmark = Postmark::new(50, 500, 10_000, None, Random::new(7));
        postmark.start(Time::ZERO, 4);
        let mut under_way: Vec<_> = std::iter::from_fn(|| postmark.poll(Time::ZERO)).collect();
        assert_eq!(under_way.iter().map(|w| w.place).collect::<Vec<_>>(), [0, 1, 2, 3]);
        postmark.handle_done(Time(5), under_way.remove(2).place);
        assert_eq!(postmark.poll(Time(4)), None);
        assert_eq!(postmark.poll(Time(5)).map(|w| (w.due, w.place)), Some((Time(5), 2)));
    }
}
