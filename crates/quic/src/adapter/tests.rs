use super::*;

const MTU: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A sender whose packets and ACKs the test chooses; RTT 40 ms.
struct Sender {
    adapter: Adapter,
    in_flight: u64,
}

impl Sender {
    /// The handshake is over at 40 ms.
    fn new(name: &str) -> Sender {
        let algorithm = congestion::find(name).expect("built in");
        let cc = Controller::new(&algorithm, &Default::default()).expect("default parameters");
        let mut sender = Sender { adapter: Adapter::new(cc, MTU as u16), in_flight: 0 };
        sender.send(0, 1);
        sender.acknowledge(40, 0, 1);
        sender
    }

    fn send(&mut self, ms: u64, packets: u64) {
        self.adapter.handle_sent(ms * MS, packets * MTU);
        self.in_flight += packets * MTU;
    }

    /// Packets sent at `sent` are acknowledged; what belongs to the ACK may follow.
    fn begin_ack(&mut self, ms: u64, sent: u64, packets: u64) {
        for _ in 0..packets {
            self.adapter.handle_acked(ms * MS, sent * MS, MTU);
            self.in_flight -= MTU;
        }
        self.adapter.handle_end_acks(self.in_flight, false);
    }

    fn acknowledge(&mut self, ms: u64, sent: u64, packets: u64) {
        self.begin_ack(ms, sent, packets);
        self.adapter.finish_ack();
    }

    fn lose(&mut self, ms: u64, sent: u64, packets: u64, persistent: bool) {
        self.in_flight -= packets * MTU;
        self.adapter.handle_congestion(ms * MS, sent * MS, persistent, packets * MTU);
        self.adapter.finish_ack();
    }

    fn sock(&self) -> &CcSock {
        self.adapter.sock()
    }
}

#[test]
fn a_window_of_segments_grows_by_what_is_delivered() {
    let mut sender = Sender::new("reno");
    assert_eq!(sender.sock().snd_cwnd, 10, "the handshake's ACK raises nothing");
    sender.send(50, 10);
    assert_eq!(sender.sock().packets_out, 10);
    sender.acknowledge(90, 50, 4);
    sender.acknowledge(91, 50, 6);
    let s = sender.sock();
    assert_eq!((s.snd_cwnd, s.packets_out, s.delivered), (20, 0, 11));
    assert_eq!((s.srtt_us >> 3, s.min_rtt_us), (40_125, 40_000));
    assert_eq!(sender.adapter.window_bytes(), 20 * MTU);
}

#[test]
fn losses_of_one_round_trip_are_one_episode() {
    let mut sender = Sender::new("reno");
    sender.send(50, 10);
    sender.send(60, 10);
    sender.begin_ack(90, 50, 2);
    // Shown by the ACK that is not finished yet: it raises no window before.
    sender.lose(90, 50, 3, false);
    assert_eq!((sender.sock().prior_cwnd, sender.sock().snd_ssthresh), (10, 5));
    assert_eq!(sender.sock().ca_state, CaState::Recovery as u8);
    sender.begin_ack(95, 50, 5);
    sender.lose(95, 60, 1, false);
    assert_eq!((sender.sock().snd_ssthresh, sender.sock().lost), (5, 4), "the same episode");
    sender.send(96, 1);
    sender.acknowledge(100, 60, 9);
    assert_eq!(sender.sock().ca_state, CaState::Recovery as u8, "sent before it");
    sender.acknowledge(136, 96, 1);
    assert_eq!(sender.sock().ca_state, CaState::Open as u8);
    assert_eq!(sender.sock().snd_cwnd, 5, "PRR ends at ssthresh");
    sender.send(140, 5);
    sender.begin_ack(180, 140, 4);
    sender.lose(180, 140, 1, false);
    assert_eq!(sender.sock().snd_ssthresh, 2, "another episode");
}

#[test]
fn a_loss_from_before_the_last_reduction_is_none_of_the_next() {
    let mut sender = Sender::new("reno");
    sender.send(50, 10);
    sender.begin_ack(90, 50, 2);
    sender.lose(90, 50, 1, false);
    sender.send(91, 1);
    sender.acknowledge(131, 91, 1);
    assert_eq!(sender.sock().ca_state, CaState::Open as u8);
    let before = sender.sock().snd_ssthresh;
    sender.lose(132, 50, 7, false);
    assert_eq!((sender.sock().ca_state, sender.sock().snd_ssthresh), (CaState::Open as u8, before));
}

#[test]
fn persistent_congestion_is_a_time_out() {
    let mut sender = Sender::new("reno");
    sender.send(50, 10);
    sender.send(2_000, 1);
    sender.begin_ack(2_040, 2_000, 1);
    sender.lose(2_040, 50, 10, true);
    let s = sender.sock();
    // One, and one more for the packet that the ACK delivers.
    assert_eq!((s.ca_state, s.snd_cwnd, s.snd_ssthresh), (CaState::Loss as u8, 2, 5));
    sender.send(2_041, 2);
    sender.acknowledge(2_081, 2_041, 2);
    assert_eq!((sender.sock().ca_state, sender.sock().snd_cwnd), (CaState::Open as u8, 4), "slow start");
}

#[test]
fn a_congestion_mark_reduces_once() {
    let mut sender = Sender::new("reno");
    sender.send(50, 10);
    sender.begin_ack(90, 50, 5);
    sender.adapter.handle_congestion(90 * MS, 50 * MS, false, 0);
    sender.adapter.finish_ack();
    let s = sender.sock();
    assert_eq!((s.ca_state, s.snd_ssthresh, s.delivered_ce, s.lost), (CaState::Cwr as u8, 5, 5, 0));
    sender.begin_ack(91, 50, 5);
    sender.adapter.handle_congestion(91 * MS, 50 * MS, false, 0);
    sender.adapter.finish_ack();
    assert_eq!(sender.sock().snd_ssthresh, 5);
}

#[test]
fn an_idle_hour_takes_the_window_back() {
    let mut sender = Sender::new("reno");
    for round in 1..=4 {
        sender.send(50 * round, u64::from(sender.sock().snd_cwnd));
        let packets = sender.in_flight / MTU;
        sender.acknowledge(50 * round + 40, 50 * round, packets);
    }
    assert_eq!(sender.sock().snd_cwnd, 160);
    sender.send(3_600_000, 1);
    let s = sender.sock();
    assert_eq!((s.snd_cwnd, s.snd_ssthresh), (INITIAL_WINDOW, INFINITE_SSTHRESH));
}

#[test]
fn acks_alone_are_not_in_flight() {
    let mut sender = Sender::new("bbr");
    for ms in 50..90 {
        sender.adapter.handle_sent(ms * MS, 40);
    }
    assert_eq!(sender.sock().packets_out, 0);
    assert!(!sender.adapter.is_held(0));
}

#[test]
fn larger_packets_keep_the_bytes() {
    let mut sender = Sender::new("reno");
    for mtu in [1_300, 1_700, 2_300, 4_000, 7_000] {
        sender.adapter.handle_mtu(mtu);
    }
    assert_eq!((sender.sock().snd_cwnd, sender.sock().mss_cache), (1, 7_000));
    sender.adapter.handle_mtu(1_000);
    assert_eq!(sender.sock().snd_cwnd, 10);
}

#[test]
fn a_limit_holds_packets_back_and_the_window_down() {
    let mut sender = Sender::new("reno");
    // 100 packets per second, and ten at once.
    sender.adapter.set_limit(100 * MTU);
    assert!(!sender.adapter.is_held(0));
    sender.send(50, 10);
    assert!(sender.adapter.is_held(0));
    // Two more packets are allowed every 20 ms. quinn sends until it is told to stop.
    let mut sent = 10;
    let mut oldest = 50;
    for ms in (90..=1_000).step_by(20) {
        let packets = if oldest == 50 { 10 } else { 2 };
        sender.acknowledge(ms, oldest, packets.min(sender.in_flight / MTU));
        oldest = ms;
        while !sender.adapter.is_held(0) {
            sender.send(ms, 1);
            sent += 1;
        }
    }
    assert!((95..=115).contains(&sent), "{sent}");
    // The window was not the limit.
    assert!(sender.sock().snd_cwnd <= 20, "{}", sender.sock().snd_cwnd);
}

#[test]
fn bbr_sees_the_rate_at_which_the_path_delivers() {
    let mut sender = Sender::new("bbr");
    // One packet per ms goes, and one arrives: 1 MB/s.
    for ms in 50..2_000 {
        sender.send(ms, 1);
        if ms >= 90 {
            sender.acknowledge(ms, ms - 40, 1);
        }
    }
    let rate = sender.sock().pacing_rate;
    assert!((700_000..=3_000_000).contains(&rate), "{rate} bytes/s");
    assert_eq!(sender.sock().min_rtt_us, 40_000);
}
