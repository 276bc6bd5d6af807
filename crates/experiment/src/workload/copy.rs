//! A copy of files over several connections: chunks of files from one queue, messages at its beginning and its end, and
//! the rates of its ends.
//!
//! Data is packets of the connections. Messages are round trips of the first connection, and what the ends read, hash
//! and write are times: a piece is there when the sender could have read it and the hashes that it waits for have come.

use super::sending_end::{SendingEnd, BLOCK_BYTES};
use crate::message_times::MessageTimes;
use link::random::{stream_seed, Random};
use spec::{CopySpec, FilesSpec, ALL_CHANGED_PPM};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use units::{Rate, Size, Span, Time};

/// The files of a flow, and their way to the far side.
pub struct FileCopy {
    spec: CopySpec,
    /// Connections of a job.
    streams: usize,
    /// Time for which the sender reads ahead: a chunk for each stream.
    ahead: Span,
    jobs: Vec<Job>,
    lanes: Vec<Lane>,
    /// From a file's first piece to its last byte written.
    pub file_times: MessageTimes,
}

/// Next step of a lane.
pub(super) enum Next {
    /// Nothing for now: something else has to happen first.
    Idle,
    /// Nothing before a time.
    Wait(Time),
    /// It sends so many bytes.
    Send(u64),
    /// The queue of its job is empty: the lanes of it have nothing more to write.
    End(usize),
}

#[derive(Default)]
struct Lane {
    /// On their way, oldest first.
    pieces: VecDeque<Piece>,
    sent_bytes: u64,
}

/// One copy of the file set.
struct Job {
    phase: Phase,
    /// Round trip of the first connection, when it was made.
    round_trip: Span,
    queue: Queue,
    /// Drawn, and to be sent when its time has come.
    waiting: Option<Piece>,
    /// Time at which the sender has read all pieces drawn so far.
    read_by: Time,
    /// Time at which the receiver's hashes of them are at the sender.
    hashed_by: Time,
    /// Files of which something is on its way or to be sent.
    files: BTreeMap<u64, OpenFile>,
    /// Time at which the receiver has written everything that arrived.
    written_by: Time,
    /// Files that are whole at the far side.
    files_done: u64,
    /// Their data, bytes.
    bytes_done: u64,
    finished_at: Option<Time>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No connection of it was made.
    Closed,
    /// Messages go to and fro.
    Begins(Time),
    /// The queue has pieces.
    Sends,
    /// Its queue is empty.
    Sent,
}

#[derive(Clone, Copy)]
struct Piece {
    file: u64,
    /// Data of the file that it stands for, bytes.
    data: u64,
    /// The same, where the destination does not have it.
    changed: u64,
    /// Bytes of the connection.
    sent: u64,
    /// The file's last one.
    is_last: bool,
    /// First byte behind it in its lane.
    end: u64,
}

/// A file that is not whole at the far side.
struct OpenFile {
    begun: Time,
    bytes: u64,
    /// Pieces drawn that have not arrived.
    pieces: u64,
    /// Its last piece was drawn.
    is_drawn: bool,
}

impl FileCopy {
    /// A copy of `lanes` connections as `spec` says, measured from `from` on; `name` tells its random streams from
    /// others of the run with seed `seed`.
    pub fn new(spec: &CopySpec, lanes: usize, seed: u64, name: &str, from: Time) -> FileCopy {
        let jobs = (spec.jobs.max(1) as usize).min(lanes);
        let largest = spec.files.iter().map(|files| spec.chunk_of(files.max_bytes)).max().unwrap_or(1);
        FileCopy {
            spec: spec.clone(),
            streams: lanes / jobs,
            ahead: time_of(largest.saturating_mul((lanes / jobs) as u64), spec.pace_bps()),
            jobs: (0..jobs).map(|job| Job::new(Queue::new(spec, seed, name, job))).collect(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            file_times: MessageTimes::new(from),
        }
    }

    /// The lanes of a job.
    pub fn lanes_of(&self, job: usize) -> Range<usize> {
        job * self.streams..(job + 1) * self.streams
    }

    /// Its jobs.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Files that are whole at the far side, and their data.
    pub fn done(&self) -> (u64, u64) {
        self.jobs.iter().fold((0, 0), |(files, bytes), job| (files + job.files_done, bytes + job.bytes_done))
    }

    /// The end of each job: the sender knows that everything is written; None: it did not come to that.
    pub fn finished(&self) -> impl ExactSizeIterator<Item = Option<Time>> + '_ {
        self.jobs.iter().map(|job| job.finished_at)
    }

    /// Returns true if a job has nothing more to send.
    pub(super) fn is_sent(&self, job: usize) -> bool {
        self.jobs[job].phase == Phase::Sent
    }

    /// `lane` may have room; `end` is its own. Bytes of [`Next::Send`] count as sent.
    pub(super) fn next(&mut self, now: Time, lane: usize, end: &impl SendingEnd) -> Next {
        let index = (lane / self.streams).min(self.jobs.len() - 1);
        let job = &mut self.jobs[index];
        if job.phase == Phase::Closed {
            if !end.is_established() {
                return Next::Idle;
            }
            job.begin(now, end.round_trip().unwrap_or(Span::ZERO), &self.spec);
        }
        match job.phase {
            Phase::Begins(from) if now < from => return Next::Wait(from),
            Phase::Begins(_) => job.phase = Phase::Sends,
            Phase::Closed | Phase::Sent => return Next::Idle,
            Phase::Sends => {}
        }
        if !end.is_established() || !end.has_room(BLOCK_BYTES) {
            return Next::Idle;
        }
        let Some(piece) = job.waiting.take().or_else(|| job.draw(now, &self.spec, self.ahead, &mut self.file_times))
        else {
            job.phase = Phase::Sent;
            job.finish(&self.spec);
            return Next::End(index);
        };
        let ready = job.compared_by();
        if ready > now {
            job.waiting = Some(piece);
            return Next::Wait(ready);
        }
        let of = &mut self.lanes[lane];
        of.sent_bytes += piece.sent;
        of.pieces.push_back(Piece { end: of.sent_bytes, ..piece });
        Next::Send(piece.sent)
    }

    /// `received` bytes have arrived in order over `lane`.
    pub(super) fn handle_delivered(&mut self, now: Time, lane: usize, received: u64) {
        let index = (lane / self.streams).min(self.jobs.len() - 1);
        let job = &mut self.jobs[index];
        while let Some(&piece) = self.lanes[lane].pieces.front().filter(|piece| piece.end <= received) {
            self.lanes[lane].pieces.pop_front();
            job.write(now, &piece, &self.spec, &mut self.file_times);
        }
        job.finish(&self.spec);
    }

    /// Nothing more is taken from the queues.
    pub(super) fn stop(&mut self) {
        for job in &mut self.jobs {
            job.phase = Phase::Sent;
        }
    }
}

impl Job {
    fn new(queue: Queue) -> Job {
        Job {
            phase: Phase::Closed,
            round_trip: Span::ZERO,
            queue,
            waiting: None,
            read_by: Time::ZERO,
            hashed_by: Time::ZERO,
            files: BTreeMap::new(),
            written_by: Time::ZERO,
            files_done: 0,
            bytes_done: 0,
            finished_at: None,
        }
    }

    /// The first connection was made.
    fn begin(&mut self, now: Time, round_trip: Span, spec: &CopySpec) {
        let from = now + Span(round_trip.0.saturating_mul(spec.begin_round_trips.into()));
        self.phase = Phase::Begins(from);
        self.round_trip = round_trip;
        self.read_by = from;
        // The receiver hashes what it has when it knows the files, and the hashes have half a round trip.
        self.hashed_by = if spec.changed_ppm < ALL_CHANGED_PPM { from + Span(round_trip.0 / 2) } else { from };
    }

    /// The next piece that is sent; those before it that are not are accounted for.
    fn draw(&mut self, now: Time, spec: &CopySpec, ahead: Span, file_times: &mut MessageTimes) -> Option<Piece> {
        loop {
            let (piece, is_first) = self.queue.draw(spec)?;
            // The ends work at the same time, and a buffer between them is soon full: the slower one is the pace.
            let read = time_of(piece.data, spec.read_bps);
            let limit = time_of(piece.changed, spec.limit_bps);
            let write = time_of(piece.changed, spec.write_bps) + Span(if is_first { spec.file_ns } else { 0 });
            self.read_by = self.read_by.max(Time(now.0.saturating_sub(ahead.0))) + read.max(limit).max(write);
            if spec.changed_ppm < ALL_CHANGED_PPM {
                self.hashed_by += time_of(piece.data, spec.hash_bps);
            }
            let file =
                self.files.entry(piece.file).or_insert(OpenFile { begun: now, bytes: 0, pieces: 0, is_drawn: false });
            file.bytes += piece.data;
            file.is_drawn |= piece.is_last;
            if piece.sent > 0 {
                file.pieces += 1;
                return Some(piece);
            }
            if piece.is_last && self.files[&piece.file].pieces == 0 {
                self.written_by = self.written_by.max(now).max(self.compared_by()) + Span(spec.file_ns);
                self.close(piece.file, file_times);
            }
        }
    }

    /// Time at which the sender knows of all pieces drawn so far whether they differ.
    fn compared_by(&self) -> Time {
        self.read_by.max(self.hashed_by)
    }

    /// `piece` has arrived.
    fn write(&mut self, now: Time, piece: &Piece, spec: &CopySpec, file_times: &mut MessageTimes) {
        self.written_by = self.written_by.max(now) + time_of(piece.changed, spec.write_bps);
        let file = self.files.get_mut(&piece.file).expect("a piece is of an open file");
        file.pieces -= 1;
        if file.is_drawn && file.pieces == 0 {
            self.written_by += Span(spec.file_ns);
            self.close(piece.file, file_times);
        }
    }

    /// A file is whole.
    fn close(&mut self, number: u64, file_times: &mut MessageTimes) {
        if let Some(file) = self.files.remove(&number) {
            file_times.record(file.begun, self.written_by);
            self.files_done += 1;
            self.bytes_done += file.bytes;
        }
    }

    fn finish(&mut self, spec: &CopySpec) {
        let is_whole = self.files.is_empty() && self.queue.left == 0;
        if self.phase == Phase::Sent && is_whole && self.finished_at.is_none() {
            let messages = Span(self.round_trip.0.saturating_mul(spec.end_round_trips.into()));
            self.finished_at = Some(self.written_by.max(self.compared_by()) + messages);
        }
    }
}

/// Files of a job that were not drawn yet, and the one that is being cut into pieces.
struct Queue {
    /// Number left, smallest and largest of each class.
    classes: Vec<FilesSpec>,
    /// Files left, over all classes.
    left: u64,
    number: u64,
    /// Bytes left of the file that is being cut, and of its chunks; None: the next one is drawn.
    current: Option<(u64, u64)>,
    /// A stream each for the files and for the chunks that changed.
    random: [Random; 2],
}

impl Queue {
    fn new(spec: &CopySpec, seed: u64, name: &str, job: usize) -> Queue {
        let random = |what: &str| Random::new(stream_seed(seed, &format!("workload/{name}/job{job}/{what}")));
        Queue {
            classes: spec.files.clone(),
            left: spec.count(),
            number: 0,
            current: None,
            random: [random("files"), random("changes")],
        }
    }

    /// The next piece, and true if it is the first of its file.
    fn draw(&mut self, spec: &CopySpec) -> Option<(Piece, bool)> {
        let is_first = self.current.is_none();
        let (left, chunk) = match self.current {
            Some(current) => current,
            None => self.draw_file().map(|size| (size, spec.chunk_of(size)))?,
        };
        let data = left.min(chunk);
        let is_last = data == left;
        self.current = (!is_last).then_some((left - data, chunk));
        let changed = spec.changed_ppm >= ALL_CHANGED_PPM
            || self.random[1].chance(spec.changed_ppm.into(), ALL_CHANGED_PPM.into());
        let changed = if changed { data } else { 0 };
        let mut sent = if is_first { spec.file_overhead_bytes } else { 0 };
        if changed > 0 {
            sent += changed + spec.chunk_overhead_bytes;
        }
        Some((Piece { file: self.number, data, changed, sent, is_last, end: 0 }, is_first))
    }

    /// The size of the next file.
    fn draw_file(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        let files = if let [only] = &mut self.classes[..] {
            only
        } else {
            let mut pick = self.random[0].below(self.left);
            let mut classes = self.classes.iter_mut();
            loop {
                let class = classes.next().expect("as many files are left as its classes have");
                if pick < class.count {
                    break class;
                }
                pick -= class.count;
            }
        };
        files.count -= 1;
        self.left -= 1;
        self.number += 1;
        let spread = files.max_bytes.saturating_sub(files.min_bytes);
        let more = if spread > 0 { self.random[0].below(spread + 1) } else { 0 };
        Some(files.min_bytes + more)
    }
}

/// Time that `bytes` take at a rate; none where there is no limit.
fn time_of(bytes: u64, rate_bps: Option<u64>) -> Span {
    rate_bps.map_or(Span::ZERO, |rate| Rate(rate.max(1)).time_for(Size(bytes)))
}
