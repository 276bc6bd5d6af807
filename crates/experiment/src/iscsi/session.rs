//! A session: what its cores, its disk and its source of requests do for each other.

use crate::block::{Backing, Commands, Request, Requests, UnderWay, BLOCK_BYTES};
use crate::framed_stream::FramedStream;
use crate::node::{Ends, Node, NodeCounters};
use crate::request_counters::RequestCounters;
use crate::side::Side;
use crate::transport::Transport;
use std::ops::Range;
use storage::iscsi::initiator::{Command, Completion, Data, Event};
use storage::iscsi::{ConnectionId, Initiator, Target};
use storage::scsi::status;
use units::Time;
use wire::iscsi::{Header, Payload, Pdu};

/// Address of the target's portal, which nothing reads.
const PORTAL: &str = "127.0.0.1:3260";

/// Bytes that TCP has not sent yet above which no further PDU is handed over. A target has to be able to put a status
/// in front of the data that it has not begun to send, as it does on a socket; and this is more than an ACK lets go at
/// once.
const UNSENT_BYTES: u64 = 256 << 10;

/// Phase of a connection at the initiator's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Down,
    Connecting,
    Up,
}

/// A connection of the session.
#[derive(Default)]
struct Connection {
    phase: Phase,
    /// True after a first connection: the next one is made of fresh endpoints.
    used: bool,
    /// The target's number of the one that was lost, until the target hears of the next.
    lost: Option<ConnectionId>,
    /// The target's number of it.
    id: Option<ConnectionId>,
    /// From the initiator, to it.
    streams: [FramedStream<Pdu>; 2],
    /// By side: true if the core there may have PDUs for it.
    wants: [bool; 2],
    counters: RequestCounters,
}

impl Connection {
    /// Returns true if the end at `side` has been opened.
    #[inline]
    fn is_open(&self, side: Side) -> bool {
        match side {
            Side::Sender => self.phase == Phase::Up,
            Side::Receiver => self.id.is_some(),
        }
    }

    /// The TCP connection is no more, as far as the initiator's end knows.
    fn end(&mut self) {
        self.phase = Phase::Down;
        self.streams = Default::default();
        self.lost = self.id.take().or(self.lost);
    }
}

/// A session and what it is used for.
pub struct Session {
    /// Flow of the first connection; the others follow.
    first: usize,
    initiator: Initiator,
    target: Target,
    backing: Backing,
    requests: Requests,
    commands: Commands,
    /// Requests that may be under way.
    depth: usize,
    under_way: usize,
    connections: Vec<Connection>,
    /// Flows that are to connect again.
    reconnects: Vec<usize>,
    /// Ends of connections whose TCP has something new to send.
    pumps: Vec<(usize, Side)>,
    /// Time to which its timer is set: its deadline or before.
    armed: Time,
    /// True if its deadline may have moved.
    moved: bool,
    /// No request is issued any more.
    stopped: bool,
    /// Time at which all requests were done, and no more came.
    done_at: Option<Time>,
    /// Number of times that the session was lost; the first time and its reason.
    losses: u64,
    lost: Option<(Time, String)>,
    /// Time at which attempts to reconnect were given up.
    given_up: Option<Time>,
}

impl Session {
    /// Over the flows from `first` on, `connections` of them; at most `depth` requests are under way.
    pub(super) fn new(
        first: usize,
        connections: usize,
        initiator: Initiator,
        target: Target,
        backing: Backing,
        requests: Requests,
        depth: usize,
    ) -> Session {
        Session {
            first,
            initiator,
            target,
            backing,
            requests,
            commands: Commands::default(),
            depth,
            under_way: 0,
            connections: (0..connections).map(|_| Connection::default()).collect(),
            reconnects: vec![],
            pumps: vec![],
            armed: Time::NEVER,
            moved: false,
            stopped: false,
            done_at: None,
            losses: 0,
            lost: None,
            given_up: None,
        }
    }

    /// The flows that are its connections.
    pub fn flows(&self) -> Range<usize> {
        self.first..self.first + self.connections.len()
    }

    /// Returns the time of the next call of [`Session::handle_timeout`]; an earlier call does no harm.
    fn poll_timeout(&self) -> Time {
        let requests = if self.may_issue() { self.requests.poll_timeout() } else { Time::NEVER };
        let cores = [self.initiator.poll_timeout(), self.target.poll_timeout()];
        cores.into_iter().flatten().fold(requests.min(self.backing.poll_timeout()), Time::min)
    }

    fn may_issue(&self) -> bool {
        !self.stopped && self.under_way < self.depth
    }

    /// Opens a connection's end, or takes the PDUs that have come whole, and what follows from them.
    #[inline(never)]
    fn take<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) {
        if self.connect(now, index, side, ends) | self.deliver(now, index, side, ends) {
            self.advance(now, ends);
        }
    }

    /// Opens a connection's end if it is established; returns true if it just was.
    fn connect<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) -> bool {
        let flow = self.first + index;
        let connection = &mut self.connections[index];
        match side {
            Side::Sender if connection.phase == Phase::Connecting && ends.end(flow, Side::Sender).was_established() => {
                connection.phase = Phase::Up;
                self.initiator.handle_connected(now, index);
                true
            }
            // The remains of a lost connection there are not the next one.
            Side::Receiver
                if connection.phase != Phase::Down
                    && connection.id.is_none()
                    && ends.end(flow, Side::Receiver).was_established() =>
            {
                if let Some(lost) = connection.lost.take() {
                    self.target.handle_closed(lost);
                }
                connection.id = Some(self.target.open(now, PORTAL, Default::default()));
                true
            }
            _ => false,
        }
    }

    /// Hands on the PDUs that have come whole; returns whether there were any.
    fn deliver<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) -> bool {
        let flow = self.first + index;
        let connection = &mut self.connections[index];
        let mut any = false;
        match side {
            Side::Sender => {
                let received = ends.end(flow, Side::Sender).bytes_received();
                while let Some(pdu) = connection.streams[Side::Receiver as usize].pop(received) {
                    self.initiator.handle_pdu(now, index, pdu);
                    any = true;
                }
            }
            Side::Receiver => {
                let Some(id) = connection.id else { return false };
                let received = ends.end(flow, Side::Receiver).bytes_received();
                let stream = &mut connection.streams[Side::Sender as usize];
                while stream.peek(received).is_some() && self.target.takes_input(id) {
                    let Some(pdu) = stream.pop(received) else { break };
                    self.target.handle_pdu(now, id, pdu);
                    any = true;
                }
            }
        }
        any
    }

    /// Goes on until nothing more happens at this time.
    fn advance<T: Transport>(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        loop {
            self.backing.handle_timeout(now);
            let mut any = self.close(now, ends);
            while let Some(work) = self.target.poll_work() {
                let command = self.initiator.command_of(work.itt);
                self.backing.handle_work(now, work.id, &work.op, command);
            }
            while let Some(finished) = self.backing.poll_finished() {
                if let Some(under_way) = finished.command.and_then(|id| self.commands.get(id)) {
                    under_way.disk_ns = finished.done.since(finished.began).0;
                }
                self.target.handle_work(finished.work, finished.outcome);
                any = true;
            }
            while let Some(event) = self.initiator.poll_event() {
                self.handle_event(now, event);
                any = true;
            }
            while self.may_issue() {
                let Some(wanted) = self.requests.poll(now) else { break };
                self.submit(wanted);
                any = true;
            }
            if !any {
                break;
            }
        }
        self.moved = true;
        self.note_end(now);
        while let Some(index) = self.initiator.poll_connect() {
            let connection = &mut self.connections[index];
            connection.phase = Phase::Connecting;
            if std::mem::replace(&mut connection.used, true) {
                self.reconnects.push(self.first + index);
            } else {
                ends.end(self.first + index, Side::Sender).connect(now);
            }
            self.pumps.push((self.first + index, Side::Sender));
        }
        while let Some(id) = self.target.poll_ready() {
            if let Some(connection) = self.connections.iter_mut().find(|connection| connection.id == Some(id)) {
                connection.wants[Side::Receiver as usize] = true;
            }
        }
        for index in 0..self.connections.len() {
            self.connections[index].wants[Side::Sender as usize] |= self.initiator.has_output(index);
            self.fill(now, index, Side::Sender, ends);
            self.fill(now, index, Side::Receiver, ends);
        }
    }

    /// Closes the connections that either core wants closed; returns true if there were any.
    fn close<T: Transport>(&mut self, now: Time, ends: &mut Ends<'_, T>) -> bool {
        let mut any = false;
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let flow = self.first + index;
            if let Some(why) = self.initiator.poll_close(index).map(str::to_owned) {
                ends.end(flow, Side::Sender).abort(now);
                connection.end();
                self.initiator.handle_closed(now, index, &why);
                any = true;
            }
            if !self.target.has_closing() {
                continue;
            }
            for id in [&mut connection.id, &mut connection.lost] {
                if let Some(closed) = id.filter(|&id| self.target.poll_close(id).is_some()) {
                    // The initiator finds that out by its pings: its end receives nothing more.
                    ends.end(flow, Side::Receiver).abort(now);
                    self.target.handle_closed(closed);
                    *id = None;
                    any = true;
                }
            }
        }
        any
    }

    fn submit(&mut self, wanted: Request) {
        let mut cdb = [0; 16];
        // READ (16), WRITE (16).
        cdb[0] = if wanted.read { 0x88 } else { 0x8a };
        cdb[2..10].copy_from_slice(&wanted.block.to_be_bytes());
        cdb[10..14].copy_from_slice(&wanted.blocks.to_be_bytes());
        let bytes = wanted.blocks * BLOCK_BYTES;
        let data = if wanted.read { Data::Read(bytes) } else { Data::Write(Payload::Zeros(bytes)) };
        let id = self.initiator.submit(Command { lun: 0, cdb, data });
        self.under_way += 1;
        let Request { due, read, place, .. } = wanted;
        self.commands.insert(id, UnderWay { due, read, bytes, place, sent: None, disk_ns: 0 });
    }

    fn handle_event(&mut self, now: Time, event: Event) {
        match event {
            Event::Done(id, completion) => self.complete(now, id, &completion),
            Event::Lost(why) => {
                self.losses += 1;
                self.lost.get_or_insert((now, why));
            }
            Event::Failed(why) => {
                self.losses += 1;
                self.lost.get_or_insert((now, why));
                self.given_up = Some(now);
                self.stopped = true;
            }
            Event::Up(_) | Event::Joined(_) | Event::Managed(..) | Event::Targets(_) | Event::LoggedOut => {}
        }
    }

    fn complete(&mut self, now: Time, id: u64, completion: &Completion) {
        let Some(was) = self.commands.remove(id) else { return };
        self.under_way -= 1;
        self.requests.handle_done(now, was.place);
        let counters = &mut self.connections[completion.connection].counters;
        if completion.status != status::GOOD {
            counters.failed += 1;
            return;
        }
        let sent = was.sent.unwrap_or(now);
        let (queue, rest) = (sent.since(was.due).0, now.since(sent).0);
        counters.record(was.read, u64::from(was.bytes), [queue, rest.saturating_sub(was.disk_ns), was.disk_ns]);
    }

    fn note_end(&mut self, now: Time) {
        if self.done_at.is_none() && self.under_way == 0 && (self.stopped || self.requests.is_over()) {
            self.done_at = Some(now);
        }
    }

    /// Hands PDUs of an end of a connection to TCP as long as there are some and there is room.
    #[inline]
    fn fill<T: Transport>(&mut self, now: Time, index: usize, side: Side, ends: &mut Ends<'_, T>) {
        let connection = &self.connections[index];
        let stream = &connection.streams[side as usize];
        let end = ends.end(self.first + index, side);
        if stream.waits() || connection.wants[side as usize] && stream.has_room(end, UNSENT_BYTES) {
            self.fill_stream(now, index, side, end);
        }
    }

    #[inline(never)]
    fn fill_stream<T: Transport>(&mut self, now: Time, index: usize, side: Side, end: &mut T) {
        let connection = &mut self.connections[index];
        let stream = &mut connection.streams[side as usize];
        while connection.wants[side as usize] && stream.has_room(end, UNSENT_BYTES) {
            let out = match side {
                Side::Sender => self.initiator.poll_pdu(index),
                Side::Receiver => connection.id.and_then(|id| self.target.poll_pdu(id)),
            };
            let Some(out) = out else {
                connection.wants[side as usize] = false;
                break;
            };
            if let Header::ScsiCommand(command) = &out.pdu.header {
                let under_way = self.initiator.command_of(command.itt).and_then(|id| self.commands.get(id));
                if let Some(under_way) = under_way {
                    // The first loss, since the network causes its cost.
                    under_way.sent.get_or_insert(now);
                }
            }
            stream.push(out.framing.length(&out.pdu) as u64, out.pdu);
        }
        if stream.write(now, end) {
            self.pumps.push((self.first + index, side));
        }
    }
}

impl<T: Transport> Node<T> for Session {
    fn flows(&self) -> Range<usize> {
        self.flows()
    }

    fn start(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        self.requests.start(now, self.depth);
        self.advance(now, ends);
    }

    fn stop(&mut self, now: Time) {
        self.stopped = true;
        self.note_end(now);
    }

    fn handle_arrival(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) -> bool {
        let index = flow - self.first;
        // Sending makes room for the target to receive.
        self.fill(now, index, side, ends);
        let connection = &self.connections[index];
        let incoming = &connection.streams[side.other() as usize];
        // Most segments end no PDU.
        if !connection.is_open(side) || incoming.peek(ends.end(flow, side).bytes_received()).is_some() {
            self.take(now, index, side, ends);
        }
        self.moved || !self.pumps.is_empty()
    }

    fn handle_sent(&mut self, now: Time, flow: usize, side: Side, ends: &mut Ends<'_, T>) {
        self.fill(now, flow - self.first, side, ends);
    }

    fn handle_transport_timeout(&mut self, now: Time, flow: usize, ends: &mut Ends<'_, T>) {
        let index = flow - self.first;
        let connection = &mut self.connections[index];
        if connection.phase != Phase::Down && ends.end(flow, Side::Sender).is_closed() {
            let why = if connection.phase == Phase::Connecting { "no answer to a SYN" } else { "TCP gave up" };
            connection.end();
            self.initiator.handle_closed(now, index, why);
            self.advance(now, ends);
        }
    }

    fn handle_timeout(&mut self, now: Time, ends: &mut Ends<'_, T>) {
        self.armed = Time::NEVER;
        self.initiator.handle_timeout(now);
        self.target.handle_timeout(now);
        self.advance(now, ends);
    }

    fn poll_timer(&mut self) -> Option<Time> {
        if !std::mem::take(&mut self.moved) {
            return None;
        }
        // Early is harmless: a deadline that only moves back costs nothing.
        let due = self.poll_timeout();
        if due >= self.armed {
            return None;
        }
        self.armed = due;
        Some(due)
    }

    fn poll_pump(&mut self) -> Option<(usize, Side)> {
        self.pumps.pop()
    }

    fn poll_reconnect(&mut self) -> Option<usize> {
        self.reconnects.pop()
    }

    fn done_at(&self) -> Option<Time> {
        self.done_at
    }

    fn begin_measuring(&mut self) {
        self.connections.iter_mut().for_each(|connection| connection.counters = RequestCounters::default());
    }

    fn finish(&mut self, name: &str, notes: &mut Vec<String>) -> Vec<NodeCounters> {
        self.stopped = true;
        // The connections of a session are told apart by a number behind its name, which stands for no one of them.
        let name = if self.connections.len() > 1 { name.rsplit_once('.').map_or(name, |n| n.0) } else { name };
        if let Some((at, why)) = &self.lost {
            let times = if self.losses == 1 { "once".to_owned() } else { format!("{} times", self.losses) };
            let end = self.given_up.map_or_else(String::new, |at| format!("; given up at {:.3} s", at.as_secs_f64()));
            notes.push(format!(
                "flow {name}: the session was lost {times}, first at {:.3} s: {why}{end}",
                at.as_secs_f64()
            ));
        }
        let window = self.initiator.window_use();
        if window.is_limit() {
            notes.push(format!(
                "flow {name}: the command window of {}, not the queue depth of {}, was the limit: {} of {} requests \
                 waited for it (command_window)",
                window.width, self.depth, window.waited, window.submitted
            ));
        }
        let counters = self.connections.iter_mut().map(|connection| std::mem::take(&mut connection.counters));
        counters.map(|counters| NodeCounters::Requests(Box::new(counters))).collect()
    }
}
