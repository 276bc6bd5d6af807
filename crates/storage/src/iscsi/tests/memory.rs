//! The bound on memory, held against the bytes that the target really keeps: every segment that is handed to it counts
//! as long as somebody has a part of it.

use super::*;
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use wire::iscsi::{NopOut, NO_TAG};

/// A buffer that is counted until its last part is dropped.
struct CountedBuffer(Vec<u8>, Arc<AtomicU64>);

impl AsRef<[u8]> for CountedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for CountedBuffer {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}

/// Bytes that wait at a socket, above which no more PDUs are made.
const SOCKET_BYTES: u64 = 16_384;
const KIB: u32 = 1024;

struct Peer {
    initiator: Initiator,
    at_target: Option<ConnectionId>,
    /// Polled from the target and not sent.
    socket: VecDeque<(Pdu, u64)>,
    /// Takes what the target sends.
    reads: bool,
    /// Sends what it has.
    writes: bool,
    events: Vec<Event>,
}

struct Peers {
    now: Time,
    target: Target,
    peers: Vec<Peer>,
    work: VecDeque<Work>,
    kept: Arc<AtomicU64>,
    limit: u64,
}

/// A bound for small loads.
pub(super) fn memory(limit_bytes: u64) -> MemoryConfig {
    let (buffer_bytes, small_bytes) = (4096, 16_384);
    let (usual_bytes, largest_bytes) = (128 << 10, 1 << 20);
    let stall = Span::from_secs(10);
    MemoryConfig {
        limit_bytes: Some(limit_bytes),
        connections: 12,
        buffer_bytes,
        small_bytes,
        usual_bytes,
        largest_bytes,
        stall,
    }
}

impl Peers {
    fn new(limit: u64, window: u32) -> Peers {
        let config = TargetConfig { memory: memory(limit), window, ..TargetConfig::new(NAME) };
        let (peers, work, kept) = Default::default();
        Peers { now: Time(0), target: Target::new(config, device()), peers, work, kept, limit }
    }

    fn join(&mut self, change: impl Fn(&mut InitiatorConfig)) -> usize {
        let number = self.peers.len();
        let mut config = InitiatorConfig::new(&format!("iqn.2026-01.example:{number}"), Some(NAME));
        change(&mut config);
        let (at_target, socket, events) = Default::default();
        let initiator = Initiator::new(config);
        self.peers.push(Peer { initiator, at_target, socket, reads: true, writes: true, events });
        while self.peers[number].events.is_empty() {
            self.step(number);
        }
        number
    }

    fn counted(&self, data: Vec<u8>) -> Payload {
        self.kept.fetch_add(data.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(CountedBuffer(data, Arc::clone(&self.kept))).into()
    }

    fn check(&self) {
        let (kept, taken) = (self.kept.load(Ordering::Relaxed), self.target.memory_bytes());
        assert!(kept <= self.limit, "{kept} bytes are kept, {} may be", self.limit);
        assert!(taken <= self.limit, "{taken} bytes are taken, {} may be", self.limit);
    }

    fn perform(&mut self, index: usize) -> bool {
        self.work.extend(std::iter::from_fn(|| self.target.poll_work()));
        let Some(work) = self.work.remove(index % self.work.len().max(1)) else { return false };
        let outcome = match &work.op {
            crate::scsi::Op::Read { blocks, .. } => Outcome::Data(self.counted(vec![7; (blocks * BLOCK) as usize])),
            _ => Outcome::Done,
        };
        // Its data goes when it is done.
        let id = work.id;
        drop(work);
        self.target.handle_work(id, outcome);
        self.check();
        true
    }

    /// Moves a peer by one PDU in each direction; false: nothing to move.
    fn step(&mut self, index: usize) -> bool {
        let mut peer = std::mem::replace(&mut self.peers[index], Peer::nobody());
        let any = self.exchange(&mut peer);
        self.peers[index] = peer;
        self.check();
        any
    }

    fn exchange(&mut self, peer: &mut Peer) -> bool {
        let mut any = false;
        if peer.initiator.poll_connect().is_some() {
            peer.at_target = Some(self.target.open(self.now, "127.0.0.1:3260", [7; 17]));
            peer.initiator.handle_connected(self.now, 0);
            any = true;
        }
        peer.events.extend(std::iter::from_fn(|| peer.initiator.poll_event()));
        let Some(id) = peer.at_target else { return any };
        let waits: u64 = peer.socket.iter().map(|(_, length)| length).sum();
        if waits < SOCKET_BYTES {
            if let Some(out) = self.target.poll_pdu(id) {
                let length = out.framing.length(&out.pdu) as u64;
                peer.socket.push_back((out.pdu, length));
                any = true;
            }
        }
        if peer.initiator.poll_close(0).is_some() || self.target.poll_close(id).is_some() {
            peer.socket.clear();
            peer.at_target = None;
            self.target.handle_closed(id);
            peer.initiator.handle_closed(self.now, 0, "closed");
            return true;
        }
        if peer.reads {
            if let Some((pdu, length)) = peer.socket.pop_front() {
                let data = Bytes::copy_from_slice(&pdu.data.to_bytes());
                let pdu = Pdu { data: data.into(), ..pdu };
                self.target.handle_sent(self.now, id, length);
                peer.initiator.handle_pdu(self.now, 0, pdu);
                any = true;
            }
        }
        if peer.writes && self.target.takes_input(id) {
            if let Some(out) = peer.initiator.poll_pdu(0) {
                self.arrive(id, out.pdu);
                any = true;
            }
        }
        any
    }

    /// A PDU comes, with data that takes memory from its header on.
    fn arrive(&mut self, id: ConnectionId, mut pdu: Pdu) {
        match self.target.handle_head(id, &pdu.header, pdu.data.len() as u32) {
            Ok(true) => {
                if !pdu.data.is_empty() {
                    pdu.data = self.counted(pdu.data.to_bytes().to_vec());
                }
                self.check();
                self.target.handle_pdu(self.now, id, pdu);
            }
            Ok(false) => {}
            Err(why) => self.target.close(id, &why),
        }
        self.check();
    }

    /// Until nothing goes further.
    fn settle(&mut self) {
        loop {
            let mut any = false;
            for index in 0..self.peers.len() {
                any |= self.step(index);
                any |= self.perform(0);
            }
            if !any {
                return;
            }
        }
    }

    fn wait(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.now += Span::from_millis(200);
            self.target.handle_timeout(self.now);
            self.settle();
        }
    }

    fn read(&mut self, index: usize, bytes: u32) {
        let command = Command { lun: 0, cdb: cdb(0x88, 0, bytes / BLOCK), data: Data::Read(bytes) };
        self.peers[index].initiator.submit(command);
    }

    fn write(&mut self, index: usize, bytes: u32) {
        let command = Command { lun: 0, cdb: cdb(0x8a, 0, bytes / BLOCK), data: Data::Write(Payload::Zeros(bytes)) };
        self.peers[index].initiator.submit(command);
    }

    fn outstanding(&self, index: usize) -> usize {
        self.peers[index].initiator.outstanding()
    }
}

impl Peer {
    fn nobody() -> Peer {
        let (at_target, socket, events) = Default::default();
        Peer { initiator: Initiator::new(initiator()), at_target, socket, reads: false, writes: false, events }
    }
}

/// The least with which commands of 1 MiB and 12 connections go.
const LEAST: u64 = 12 * 36_864 + (4 << 20);

/// So many peers that take nothing of what they ask for, and somebody else, who comes when they have all that they can
/// get.
fn among_stopped(count: usize, bytes: u32) -> (Peers, usize) {
    let mut crowd = Peers::new(LEAST, 32);
    for _ in 0..count {
        let index = crowd.join(|_| ());
        crowd.peers[index].reads = false;
        (0..32).for_each(|_| crowd.read(index, bytes));
    }
    crowd.settle();
    let other = crowd.join(|_| ());
    (crowd, other)
}

#[test]
fn usual_commands_proceed_beside_stalled_peers() {
    assert_eq!(memory(0).least_bytes(), LEAST);
    // Their commands are of usual size, or large.
    for bytes in [16 * KIB, 128 * KIB, 1024 * KIB] {
        let (mut crowd, other) = among_stopped(8, bytes);
        for _ in 0..20 {
            crowd.read(other, 16 * KIB);
            crowd.write(other, 64 * KIB);
        }
        crowd.settle();
        assert_eq!(crowd.outstanding(other), 0, "{bytes}");
        assert_eq!(crowd.target.connection_count(), 9, "nobody was cut");
    }
}

#[test]
fn a_waiting_command_gets_the_memory_of_a_stalled_peer() {
    let (mut crowd, other) = among_stopped(3, 1024 * KIB);
    crowd.read(other, 1024 * KIB);
    crowd.settle();
    assert_eq!(crowd.outstanding(other), 1);
    crowd.wait(Span::from_secs(9));
    assert_eq!((crowd.outstanding(other), crowd.target.connection_count()), (1, 4));
    crowd.wait(Span::from_secs(25));
    assert_eq!(crowd.outstanding(other), 0);
    let cut = 4 - crowd.target.connection_count();
    assert!((1..=3).contains(&cut), "{cut} of 3 were cut");
}

#[test]
fn a_slow_peer_stays_and_a_stalled_one_is_closed() {
    let mut crowd = Peers::new(LEAST + (4 << 20), 32);
    let slow = crowd.join(|_| ());
    crowd.peers[slow].reads = false;
    (0..32).for_each(|_| crowd.read(slow, 512 * KIB));
    for index in 1..8 {
        crowd.join(|_| ());
        (0..4).for_each(|_| crowd.write(index, 1 << 20));
        // The commands, what goes with them unsolicited, and a part of what the target asks for.
        (0..12).for_each(|_| _ = crowd.step(index));
        crowd.peers[index].writes = false;
    }
    crowd.settle();
    let other = crowd.join(|_| ());
    crowd.read(other, 1024 * KIB);
    for _ in 0..90 {
        // Takes 256 KiB per second.
        crowd.peers[slow].reads = true;
        crowd.step(slow);
        crowd.peers[slow].reads = false;
        crowd.wait(Span::from_secs(1));
    }
    assert_eq!(crowd.outstanding(other), 0);
    assert!(crowd.peers[slow].at_target.is_some());
    assert!((1..8).any(|index| crowd.peers[index].at_target.is_none()));
}

#[test]
fn memory_of_orphaned_operations_counts_until_they_end() {
    let mut crowd = Peers::new(8 << 20, 32);
    let nothing = crowd.target.memory_bytes();
    for _ in 0..20 {
        let index = crowd.join(|_| ());
        (0..4).for_each(|_| crowd.write(index, 256 * KIB));
        while crowd.step(index) {}
        crowd.work.extend(std::iter::from_fn(|| crowd.target.poll_work()));
        let id = crowd.peers[index].at_target.take().expect("it is connected");
        crowd.target.handle_closed(id);
        crowd.peers[index].initiator.handle_closed(crowd.now, 0, "gone");
        crowd.check();
    }
    // Those of the first: the others wait for them at the unit.
    let kept = crowd.kept.load(Ordering::Relaxed);
    assert_eq!((crowd.work.len(), kept), (4, 1 << 20));
    assert!(crowd.target.memory_bytes() - nothing >= kept);
    while crowd.perform(0) {}
    assert_eq!((crowd.target.memory_bytes(), crowd.kept.load(Ordering::Relaxed)), (nothing, 0));
}

#[test]
fn unsolicited_data_is_reserved_until_memory_is_exhausted() {
    let mut crowd = Peers::new(8 << 20, 32);
    let bursts: Vec<u32> = (0..12)
        .map(|_| {
            let index = crowd.join(|_| ());
            let negotiated = *crowd.peers[index].initiator.negotiated();
            negotiated.unsolicited_bytes(262_144)
        })
        .collect();
    assert!(bursts.windows(2).all(|pair| pair[0] >= pair[1]), "{bursts:?}");
    assert!(bursts[0] >= 16_384 && bursts[11] == 0, "{bursts:?}");
    let reserved: u64 = bursts.iter().map(|&burst| 32 * u64::from(burst)).sum();
    assert!(reserved <= 4 << 20, "{reserved} bytes may come unsolicited");
    // All of it does come, at once, and nobody is turned away.
    for (index, burst) in bursts.into_iter().enumerate() {
        (0..32).for_each(|_| crowd.write(index, burst.max(4096)));
        crowd.peers[index].reads = false;
    }
    for _ in 0..200 {
        (0..12).for_each(|index| _ = crowd.step(index));
    }
    (0..12).for_each(|index| crowd.peers[index].reads = true);
    crowd.settle();
    assert!((0..12).all(|index| crowd.outstanding(index) == 0));
    assert_eq!(crowd.target.connection_count(), 12);
}

#[test]
fn pings_of_a_peer_that_does_not_read_are_limited() {
    let mut crowd = Peers::new(8 << 20, 4);
    let index = crowd.join(|config| config.settings.immediate_data = false);
    let id = crowd.peers[index].at_target.expect("it is connected");
    crowd.peers[index].reads = false;
    for itt in 0..2000 {
        let ping = NopOut { immediate: true, itt, ttt: NO_TAG, cmd_sn: 1, ..NopOut::default() };
        if crowd.target.takes_input(id) {
            crowd.arrive(id, Pdu::with(ping, Payload::Zeros(4096)));
        }
        crowd.step(index);
    }
    // The initiator's core does not know the answers: who sends them does not matter.
    while let Some(out) = crowd.target.poll_pdu(id) {
        crowd.target.handle_sent(crowd.now, id, out.framing.length(&out.pdu) as u64);
    }
    crowd.peers[index].socket.clear();
    assert_eq!(crowd.kept.load(Ordering::Relaxed), 0);
}

/// Commands of a peer: whether it reads, and units of data.
fn commands() -> impl Strategy<Value = Vec<(bool, u32)>> {
    prop::collection::vec((any::<bool>(), prop::sample::select(vec![1u32, 4, 16, 31, 64, 256])), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_load_is_served_within_any_bound(
        limit in 0u64..4, window in 1u32..40, seed: u64,
        peers in prop::collection::vec((any::<bool>(), any::<bool>(), 1u32..40, commands()), 1..8)) {
        let mut crowd = Peers::new(LEAST + (limit << 20), window);
        for (initial_r2t, immediate, burst, commands) in peers {
            let index = crowd.join(|config| {
                let settings = &mut config.settings;
                (settings.initial_r2t, settings.immediate_data) = (initial_r2t, immediate);
                (settings.first_burst_bytes, settings.max_burst_bytes) = (burst * 4096, 262_144);
                settings.max_recv_bytes = 8192;
            });
            for (reads, blocks) in commands {
                if reads { crowd.read(index, blocks * 4096) } else { crowd.write(index, blocks * 4096) }
            }
        }
        let mut random = seed | 1;
        for _ in 0..20_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let index = (random >> 8) as usize % (crowd.peers.len() + 1);
            if index == crowd.peers.len() { crowd.perform((random >> 32) as usize); } else { crowd.step(index); }
        }
        crowd.settle();
        for peer in &crowd.peers {
            prop_assert_eq!(peer.initiator.outstanding(), 0);
            let all_good = |event: &Event| match event {
                Event::Done(_, completion) => completion.status == status::GOOD,
                other => matches!(other, Event::Up(_)),
            };
            prop_assert!(peer.events.iter().all(all_good), "{:?}", peer.events);
        }
        prop_assert_eq!(crowd.kept.load(Ordering::Relaxed), 0);
        for index in 0..crowd.peers.len() {
            let id = crowd.peers[index].at_target.expect("it is connected");
            crowd.target.handle_closed(id);
        }
        prop_assert_eq!(crowd.target.memory_bytes(), 0);
    }
}
