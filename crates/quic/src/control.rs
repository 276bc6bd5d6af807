//! quinn's congestion controller over a C file of `congestion/`.

use crate::adapter::{Adapter, CLOCK_START_NS, INITIAL_WINDOW};
use congestion::{Algorithm, CaState, Controller, ParamError, INFINITE_SSTHRESH};
use quinn_proto::congestion::{Controller as QuinnController, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[allow(
    clippy::disallowed_types,
    reason = "quinn's trait names moments by it; the adapter gets times since the start"
)]
use std::time::Instant;

/// The congestion control of a connection: an algorithm and its parameters.
#[derive(Clone, Debug)]
pub struct Control {
    algorithm: Algorithm,
    values: BTreeMap<String, i64>,
    shown: Arc<Shown>,
}

/// State of the congestion control that other threads may read while it works.
#[derive(Debug, Default)]
pub struct Shown {
    /// Most bytes per second; 0: no limit.
    limit: AtomicU64,
    window: AtomicU64,
    ssthresh: AtomicU64,
    pacing_rate: AtomicU64,
    state: AtomicU8,
}

impl Shown {
    /// Congestion window, bytes; 0 before the first packet.
    pub fn window(&self) -> u64 {
        self.window.load(Ordering::Relaxed)
    }

    /// Slow start threshold, bytes; nothing before the first loss.
    pub fn ssthresh(&self) -> Option<u64> {
        Some(self.ssthresh.load(Ordering::Relaxed)).filter(|&bytes| bytes != 0)
    }

    /// The rate that the algorithm or, for one that sets none, Linux's rule gives, bytes/s; 0 before the first ACK.
    pub fn pacing_rate(&self) -> u64 {
        self.pacing_rate.load(Ordering::Relaxed)
    }

    /// Sends at most so many bytes of packets per second from now on; nothing: no limit.
    pub fn limit(&self, bytes_per_s: Option<u64>) {
        self.limit.store(bytes_per_s.map_or(0, |rate| rate.max(1)), Ordering::Relaxed);
    }

    /// Packets were lost and the window is being reduced.
    pub fn is_recovering(&self) -> bool {
        self.state.load(Ordering::Relaxed) >= CaState::Cwr as u8
    }
}

impl Control {
    /// `algorithm` with these values; the others have their defaults. Integers as the algorithm scales them.
    ///
    /// # Errors
    /// A name that the algorithm does not have, or a value outside its range.
    pub fn new(algorithm: &Algorithm, values: &BTreeMap<String, i64>) -> Result<Control, ParamError> {
        Controller::new(algorithm, values)?;
        let algorithm = algorithm.for_flow("a QUIC connection", CLOCK_START_NS / 1000);
        Ok(Control { algorithm, values: values.clone(), shown: Arc::default() })
    }

    /// Name of the algorithm.
    pub fn name(&self) -> &str {
        self.algorithm.name()
    }

    /// The same for one more connection, and its state.
    pub fn fresh(&self) -> (Control, Arc<Shown>) {
        let shown = Arc::new(Shown::default());
        (Control { shown: shown.clone(), ..self.clone() }, shown)
    }
}

impl ControllerFactory for Control {
    #[allow(clippy::disallowed_types, reason = "quinn's trait")]
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn QuinnController> {
        let cc = Controller::new(&self.algorithm, &self.values).expect("checked by Control::new");
        let adapter = Adapter::new(cc, current_mtu);
        Box::new(Connected { start: now, mtu: current_mtu, adapter: Mutex::new(adapter), shown: self.shown.clone() })
    }
}

/// The control at work on one connection.
struct Connected {
    #[allow(clippy::disallowed_types, reason = "quinn's trait")]
    start: Instant,
    mtu: u16,
    /// A lock, as an ACK is finished when quinn asks for the window; one thread at a time has the connection.
    adapter: Mutex<Adapter>,
    shown: Arc<Shown>,
}

impl Connected {
    fn adapter(&mut self) -> &mut Adapter {
        self.adapter.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, Adapter> {
        self.adapter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[allow(clippy::disallowed_types, reason = "quinn's trait")]
    fn ns(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.start).as_nanos()).unwrap_or(u64::MAX)
    }
}

#[allow(clippy::disallowed_types, reason = "quinn's trait")]
impl QuinnController for Connected {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.ns(now);
        self.adapter().handle_sent(now, bytes);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        let (now, sent) = (self.ns(now), self.ns(sent));
        self.adapter().handle_acked(now, sent, bytes);
    }

    fn on_end_acks(&mut self, _now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.adapter().handle_end_acks(in_flight, app_limited);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let (now, sent) = (self.ns(now), self.ns(sent));
        self.adapter().handle_congestion(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.adapter().handle_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        let mut adapter = self.locked();
        adapter.finish_ack();
        let window = adapter.window_bytes();
        let (s, shown) = (adapter.sock(), &self.shown);
        let ssthresh = if s.snd_ssthresh >= INFINITE_SSTHRESH { 0 } else { u64::from(s.snd_ssthresh) };
        shown.window.store(window, Ordering::Relaxed);
        shown.ssthresh.store(ssthresh * u64::from(s.mss_cache), Ordering::Relaxed);
        shown.pacing_rate.store(if s.pacing_rate == u64::MAX { 0 } else { s.pacing_rate }, Ordering::Relaxed);
        shown.state.store(s.ca_state, Ordering::Relaxed);
        let limit = self.shown.limit.load(Ordering::Relaxed);
        adapter.set_limit(if limit == 0 { u64::MAX } else { limit });
        adapter.answer()
    }

    fn metrics(&self) -> ControllerMetrics {
        let adapter = self.locked();
        let s = adapter.sock();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = adapter.window_bytes();
        metrics.ssthresh =
            (s.snd_ssthresh < INFINITE_SSTHRESH).then(|| u64::from(s.snd_ssthresh) * u64::from(s.mss_cache));
        metrics.pacing_rate = (s.pacing_rate != u64::MAX).then(|| s.pacing_rate.saturating_mul(8));
        metrics
    }

    fn clone_box(&self) -> Box<dyn QuinnController> {
        let adapter = self.locked().duplicate();
        let (start, mtu, shown) = (self.start, self.mtu, self.shown.clone());
        Box::new(Connected { start, mtu, adapter: Mutex::new(adapter), shown })
    }

    fn initial_window(&self) -> u64 {
        u64::from(INITIAL_WINDOW) * u64::from(self.mtu)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
