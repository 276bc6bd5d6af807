//! LTEST: that a session lives (RFC 4172, 5.2.2.4 and 6.3).

use super::connection::Phase;
use super::event::{EndReason, Refusal};
use super::output::{ConnectionKey, Pair};
use super::session::{Liveness, SessionKey};
use super::timers::Timer;
use super::Gateway;
use wire::ifcp::SessionMessage;

const NS_PER_S: u64 = 1_000_000_000;

impl Gateway {
    /// Begins the tests that the peer asked for, every `asked_s`, and to expect those that this gateway asked for.
    pub(super) fn begin_tests(&mut self, key: SessionKey, asked_s: u16, now_ns: u64) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.heard_ns = now_ns;
        session.tests = (asked_s > 0).then_some(Liveness { interval_s: asked_s, count: 0 });
        let expected_s = self.settings.liveness_s;
        session.expected = (expected_s > 0).then_some(Liveness { interval_s: expected_s, count: 0 });
        if expected_s > 0 {
            self.timers.set(Timer::Silence(key), now_ns + patience_ns(expected_s));
        }
        self.send_test(key, now_ns);
    }

    /// Sends a test. It goes before the frames that wait: it tells of the connection, and they may wait long.
    pub(super) fn send_test(&mut self, key: SessionKey, now_ns: u64) {
        let time = self.stamp(now_ns);
        let Some(session) = self.sessions.get_mut(&key) else { return };
        let (Some(tests), Some(connection)) = (&mut session.tests, session.connection) else { return };
        let Liveness { interval_s, count } = *tests;
        tests.count = count.wrapping_add(1);
        let Pair { local, remote } = session.pair;
        let (source, destination) = if session.bound_here { (local, remote) } else { (remote, local) };
        self.timers.set(Timer::Test(key), now_ns + u64::from(interval_s) * NS_PER_S);
        // A connection without room keeps one test at most: those after it would tell nothing more.
        let waits = self.connections.get(&connection).is_some_and(|own| !own.control.is_empty());
        if count > 0 && waits {
            if let Some(tests) = self.sessions.get_mut(&key).and_then(|session| session.tests.as_mut()) {
                tests.count = count;
            }
            return;
        }
        let test = SessionMessage::LivenessTest { interval_s, count, source, destination };
        self.send_control(connection, test, time, now_ns);
    }

    /// Takes a test, with the names of the CBIND's source and destination.
    pub(super) fn handle_test(
        &mut self,
        connection: ConnectionKey,
        interval_s: u16,
        count: u32,
        names: Pair,
        now_ns: u64,
    ) {
        let key = self.connections.get(&connection).filter(|own| own.phase == Phase::Open).and_then(|own| own.session);
        let Some((key, session)) = key.and_then(|key| self.sessions.get_mut(&key).map(|session| (key, session))) else {
            self.refuse(connection, Refusal::NotBound);
            return;
        };
        let Pair { local, remote } = session.pair;
        let expected_names = if session.bound_here { (local, remote) } else { (remote, local) };
        let right = session.expected.is_some_and(|expected| {
            (interval_s, count) == (expected.interval_s, expected.count)
                && (names.local, names.remote) == expected_names
        });
        if !right {
            self.refuse(connection, Refusal::Unexpected);
            self.end_session(key, EndReason::WrongTest, now_ns);
            return;
        }
        session.heard_ns = now_ns;
        if let Some(expected) = &mut session.expected {
            expected.count = count.wrapping_add(1);
        }
    }

    /// Ends a session of which nothing was heard for twice the interval.
    ///
    /// Frames count as signs of life: tests wait behind them in the sender's TCP, so that a connection under load would
    /// seem dead.
    pub(super) fn check_silence(&mut self, key: SessionKey, now_ns: u64) {
        let Some(session) = self.sessions.get(&key) else { return };
        let Some(expected) = session.expected else { return };
        let due_ns = session.heard_ns + patience_ns(expected.interval_s);
        if due_ns > now_ns {
            self.timers.set(Timer::Silence(key), due_ns);
            return;
        }
        let (peer, connection) = (session.peer, session.connection);
        if let Some(connection) = connection {
            self.drop_connection(connection, EndReason::Silent, now_ns);
        }
        self.drop_unbound(peer, EndReason::Silent, now_ns);
    }
}

/// Longest time without a sign of life, ns.
fn patience_ns(interval_s: u16) -> u64 {
    2 * u64::from(interval_s) * NS_PER_S
}
