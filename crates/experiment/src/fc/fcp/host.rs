//! The host of an initiator: its requests, as commands under way.

use crate::block::{Commands, Request, Requests, UnderWay, BLOCK_BYTES};
use crate::request_counters::RequestCounters;
use storage::fc::fcp::{Command, Data, Ended, Port};
use storage::fc::nport::Event;
use storage::scsi::status;
use units::Time;
use wire::fc::{routing, FcId, Frame, FrameType};
use wire::iscsi::Payload;

/// An application with requests for the disk of one target.
pub struct Host {
    requests: Requests,
    commands: Commands,
    /// Requests that may be under way.
    depth: usize,
    under_way: usize,
    stopped: bool,
    /// The target, once it was logged in.
    target: Option<FcId>,
    /// Requests done.
    pub counters: RequestCounters,
}

impl Host {
    /// A host whose requests come from `requests`, at most `depth` at a time.
    pub fn new(requests: Requests, depth: usize) -> Host {
        Host {
            requests,
            commands: Commands::default(),
            depth,
            under_way: 0,
            stopped: false,
            target: None,
            counters: RequestCounters::default(),
        }
    }

    /// The application starts.
    pub fn start(&mut self, now: Time) {
        self.requests.start(now, self.depth);
    }

    /// It has no more requests.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Returns true if no request is under way, and none comes any more.
    pub fn is_done(&self) -> bool {
        self.under_way == 0 && (self.stopped || self.requests.is_over())
    }

    /// Returns the time of the next request, unless it waits for others to be done.
    pub fn poll_timeout(&self) -> Time {
        if self.may_issue() {
            self.requests.poll_timeout()
        } else {
            Time::NEVER
        }
    }

    /// A frame leaves the initiator's `port`. With a command its time in the queue is over; the time of an attempt that
    /// failed is the network's, which caused it.
    pub fn note_sent(&mut self, now: Time, port: &Port, frame: &Frame) {
        let header = &frame.header;
        if header.kind != FrameType::FCP || header.r_ctl != routing::UNSOLICITED_COMMAND {
            return;
        }
        let command = port.initiator().and_then(|initiator| initiator.command_of(header.ox_id));
        if let Some(under_way) = command.and_then(|id| self.commands.get(id)) {
            under_way.sent.get_or_insert(now);
        }
    }

    /// The disk was at command `id` for `ns`.
    pub fn note_disk(&mut self, id: u64, ns: u64) {
        if let Some(under_way) = self.commands.get(id) {
            under_way.disk_ns = ns;
        }
    }

    /// Takes what the initiator's `port` has, and hands it the requests that are due; returns true if there was
    /// anything.
    pub fn advance(&mut self, now: Time, port: &mut Port) -> bool {
        let mut moved = false;
        while let Some(event) = port.poll_event() {
            if let Event::PeerUp(peer) = event {
                self.target = self.target.or(peer.target.then_some(peer.id));
            }
        }
        while let Some(ended) = port.poll_completion() {
            self.complete(now, &ended);
            moved = true;
        }
        while self.may_issue() {
            let Some(wanted) = self.requests.poll(now) else { break };
            self.submit(now, wanted, port);
            moved = true;
        }
        moved
    }

    fn may_issue(&self) -> bool {
        !self.stopped && self.target.is_some() && self.under_way < self.depth
    }

    fn submit(&mut self, now: Time, wanted: Request, port: &mut Port) {
        let Request { due, read, block, blocks, place } = wanted;
        let mut cdb = [0; 16];
        // READ (16), WRITE (16).
        cdb[0] = if read { 0x88 } else { 0x8a };
        cdb[2..10].copy_from_slice(&block.to_be_bytes());
        cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
        let bytes = blocks * BLOCK_BYTES;
        let data = if read { Data::Read(bytes) } else { Data::Write(Payload::Zeros(bytes)) };
        let Some(target) = self.target else { return };
        if let Some(id) = port.submit(Command { target, lun: 0, cdb, data }, now.0) {
            self.under_way += 1;
            self.commands.insert(id, UnderWay { due, read, bytes, place, sent: None, disk_ns: 0 });
        }
    }

    fn complete(&mut self, now: Time, (id, result): &Ended) {
        let Some(was) = self.commands.remove(*id) else { return };
        self.under_way -= 1;
        self.requests.handle_done(now, was.place);
        if !result.as_ref().is_ok_and(|completion| completion.status == status::GOOD) {
            self.counters.failed += 1;
            return;
        }
        let sent = was.sent.unwrap_or(now);
        let (queue, rest) = (sent.since(was.due).0, now.since(sent).0);
        self.counters.record(was.read, u64::from(was.bytes), [queue, rest.saturating_sub(was.disk_ns), was.disk_ns]);
    }
}
