//! An interface under test: one stream out, any number in.

use crate::boot;
use crate::clock::{self, FrameClock};
use crate::counters;
use crate::error::LineError;
use crate::ethtool;
use crate::frame::Frame;
use crate::interface::{self, Interface};
use crate::method::Method;
use crate::socket::get;
use crate::way::Way;
use bytes::{Bytes, BytesMut};
use line_test::{
    mac_text, Description, Kind, Mac, Message, Now, Outcome, Report, Responder, Row, Sender, Stamp, StreamSpec,
    ETHERTYPE, FCS_BYTES, HEADER_BYTES, VLAN_TAG_BYTES,
};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use serde::Serialize;
use std::io;
use units::Span;
use wire::ethernet::EthernetHeader;

/// Frames that are put before they are handed over: the more, the longer the first has its stamp.
const BATCH: usize = 32;
/// Time to the next frame below which the processor spins: a wake-up takes some 50 us and more.
const SPIN_NS: u64 = 150_000;
/// Longest wait without a look at what the caller and the counters say, ns.
const LOOK_NS: u64 = 50_000_000;
/// Time between two questions who is there, ns.
const HELLO_NS: u64 = 200_000_000;
/// Lines that wait to be taken.
const LOG_MAX: usize = 100;
const BROADCAST: Mac = [0xff; 6];

/// Settings of a port.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinePortConfig {
    /// Name of the interface.
    pub interface: String,
    /// Method by which frames pass; None: the best that the interface takes.
    pub method: Option<Method>,
    /// The port's address; None: the interface's.
    pub address: Option<Mac>,
    /// Virtual LAN of all frames; None: no tag.
    pub vlan: Option<u16>,
}

/// A port's properties.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PortInfo {
    /// Name of the interface.
    pub interface: String,
    /// The port's address.
    pub address: String,
    /// Method by which frames pass.
    pub method: &'static str,
    /// Reason of that.
    pub reason: String,
    /// Largest frame without header and check sequence, bytes.
    pub mtu_bytes: u32,
    /// The interface's rate, bit/s; None: its driver does not tell.
    pub rate_bps: Option<u64>,
}

/// A port.
#[derive(Debug)]
pub struct LinePort {
    interface: Interface,
    address: Mac,
    vlan: Option<u16>,
    way: Way,
    reason: String,
    boot: u64,
    responder: Responder,
    sender: Option<Sender>,
    /// The stream's longest frame, and where its stamp is.
    template: (Bytes, usize),
    has_carrier: bool,
    /// The interface's drops when the port was opened, and when the stream began.
    drops_at_open: (u64, u64),
    drops_at_start: u64,
    /// Drops of the ring that the log has told.
    drops_told: u64,
    log: Vec<String>,
    looked_ns: u64,
    found: Vec<(Mac, Description)>,
}

impl LinePort {
    /// Opens an interface.
    ///
    /// # Errors
    /// It is not there, no Ethernet or down; the process may not (CAP_NET_RAW), or the method is not to be had.
    pub fn open(config: LinePortConfig) -> io::Result<LinePort> {
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {}", config.interface, text_of(&error)));
        let interface = Interface::of(&config.interface).map_err(named)?;
        let address = config.address.unwrap_or(interface.address);
        let (way, reason) = Way::open(&interface, address, config.vlan.is_some(), config.method).map_err(named)?;
        let boot = boot::number();
        let description = Description {
            interface: interface.name.clone(),
            method: way.method().name().into(),
            mtu_bytes: interface.mtu_bytes,
            is_busy: false,
            boot,
        };
        let drops_at_open = counters::drops(&interface.name).unwrap_or((0, 0));
        Ok(LinePort {
            interface,
            address,
            vlan: config.vlan,
            way,
            reason,
            boot,
            responder: Responder::new(description),
            sender: None,
            template: (Bytes::new(), 0),
            has_carrier: true,
            drops_at_open,
            drops_at_start: 0,
            drops_told: 0,
            log: vec![],
            looked_ns: 0,
            found: vec![],
        })
    }

    /// The port's properties.
    ///
    /// # Errors
    /// The interface went away.
    pub fn info(&self) -> io::Result<PortInfo> {
        Ok(PortInfo {
            interface: self.interface.name.clone(),
            address: mac_text(self.address),
            method: self.way.method().name(),
            reason: self.reason.clone(),
            mtu_bytes: self.interface.mtu_bytes,
            rate_bps: ethtool::rate_bps(&self.interface.name)?,
        })
    }

    /// The receivers that answer within a time; one with an address ends the wait.
    ///
    /// # Errors
    /// The interface failed, or `stop` returned true.
    pub fn find(
        &mut self,
        to: Option<Mac>,
        within: Span,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<(Mac, Description)>, LineError> {
        self.found.clear();
        let end_ns = clock::now().steady_ns.saturating_add(within.0);
        loop {
            let now = clock::now();
            let is_found = to.is_some_and(|to| self.found.iter().any(|(address, _)| *address == to));
            if is_found || now.steady_ns >= end_ns {
                let is_asked = |(address, _): &(Mac, Description)| to.is_none_or(|to| to == *address);
                return Ok(self.found.drain(..).filter(is_asked).collect());
            }
            let hello = Message::Hello.frame(self.address, to.unwrap_or(BROADCAST), self.vlan, 0, now.day_ns);
            self.way.send_message(&hello);
            self.turn(end_ns.min(now.steady_ns + HELLO_NS), stop)?;
        }
    }

    /// Answers others, for a time.
    ///
    /// # Errors
    /// The interface failed, or `stop` returned true.
    pub fn serve(&mut self, span: Span, stop: &mut dyn FnMut() -> bool) -> Result<(), LineError> {
        let end_ns = clock::now().steady_ns.saturating_add(span.0);
        while clock::now().steady_ns < end_ns {
            self.turn(end_ns, stop)?;
        }
        Ok(())
    }

    /// The streams that came: sender, number, counts, whether it is over.
    pub fn streams(&self) -> Vec<(Mac, u32, Report, bool)> {
        self.responder.streams(clock::now().day_ns)
    }

    /// Begins to send a stream.
    ///
    /// # Errors
    /// The stream cannot be, or the interface has no room for its ring.
    pub fn start(&mut self, spec: StreamSpec) -> Result<(), LineError> {
        let now = clock::now();
        let sender = Sender::new(spec, self.address, self.interface.mtu_bytes, self.vlan, self.boot, now)?;
        let tag_bytes = if self.vlan.is_some() { VLAN_TAG_BYTES } else { 0 };
        let mut longest = BytesMut::with_capacity(sender.largest_bytes() as usize);
        let header = EthernetHeader { destination: sender.to(), source: self.address, vlan: sender.vlan() };
        header.encode(ETHERTYPE, &mut longest);
        // The pattern is laid over a frame without a tag.
        let pattern = sender.pattern_bytes(sender.largest_bytes() as usize - FCS_BYTES - tag_bytes);
        longest.extend_from_slice(&pattern[HEADER_BYTES..]);
        self.template = (longest.freeze(), HEADER_BYTES + tag_bytes);
        self.way.prepare(&self.template.0, self.template.1)?;
        self.drops_at_start = counters::drops(&self.interface.name).map_or(0, |(_, sending)| sending);
        self.sender = Some(sender);
        Ok(())
    }

    /// Sends the stream for a time at most; true when it is over, with the receiver's answer or without.
    ///
    /// # Errors
    /// The interface failed, or `stop` returned true: the stream is as it was, and may go on.
    pub fn run(&mut self, span: Span, stop: &mut dyn FnMut() -> bool) -> Result<bool, LineError> {
        let end_ns = clock::now().steady_ns.saturating_add(span.0);
        loop {
            if self.sender.as_ref().is_none_or(Sender::is_done) {
                return Ok(true);
            }
            if clock::now().steady_ns >= end_ns {
                return Ok(false);
            }
            self.turn(end_ns, stop)?;
        }
    }

    /// Sends no more of the stream: what it was so far is still asked for.
    pub fn end(&mut self, reason: &str) {
        if let Some(sender) = &mut self.sender {
            sender.end(reason, clock::now());
        }
    }

    /// Rows of the stream's series since the last call.
    pub fn take_rows(&mut self) -> Vec<Row> {
        self.sender.as_mut().map(Sender::take_rows).unwrap_or_default()
    }

    /// Result of the stream so far; None: none was begun.
    pub fn outcome(&self) -> Option<Outcome> {
        self.sender.as_ref().map(Sender::outcome)
    }

    /// Takes what happened since the last call, a line each.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// One look at frames, messages, counters and the caller; then sends what is due, or waits for it.
    fn turn(&mut self, end_ns: u64, stop: &mut dyn FnMut() -> bool) -> Result<(), LineError> {
        let frame_clock = FrameClock::new();
        let now = frame_clock.now();
        if now.steady_ns >= self.looked_ns + LOOK_NS {
            self.looked_ns = now.steady_ns;
            if stop() {
                return Err(LineError::Stopped);
            }
            self.count_drops();
            self.look_for_carrier()?;
        }
        let came = self.receive(now);
        while let Some(frame) = self.responder.poll_frame(self.address, self.vlan, clock::now().day_ns) {
            self.way.send_message(&frame);
        }
        while let Some(frame) = self.sender.as_mut().and_then(|sender| sender.poll_message(clock::now())) {
            self.way.send_message(&frame);
        }
        let sent = self.send(frame_clock)?;
        if came == 0 && sent == 0 {
            self.wait(end_ns)?;
        }
        Ok(())
    }

    /// Sends the frames that are due, a batch at most; returns their number.
    fn send(&mut self, frame_clock: FrameClock) -> io::Result<usize> {
        let Some(sender) = &mut self.sender else { return Ok(0) };
        let tag_bytes = if self.vlan.is_some() { VLAN_TAG_BYTES } else { 0 };
        let mut sent = 0;
        let mut stamped_ns = 0;
        // Also without room the stream comes to its end.
        sender.handle_timeout(frame_clock.now());
        while sent < BATCH && self.way.has_room() {
            let now = frame_clock.now();
            let Some(mut due) = sender.poll_due(now) else { break };
            // The size has the tag; the pattern goes behind it.
            due.bytes -= tag_bytes;
            self.way.put(&due, tag_bytes);
            if sent == 0 {
                stamped_ns = now.steady_ns;
            }
            sent += 1;
        }
        if sent > 0 {
            self.way.flush()?;
            sender.handle_hold(frame_clock.now().steady_ns - stamped_ns);
        } else if !self.way.has_room() {
            self.way.flush()?;
        }
        Ok(sent)
    }

    /// Takes a portion of the frames that came; returns their number.
    fn receive(&mut self, now: Now) -> usize {
        let LinePort { way, responder, sender, found, address, vlan, .. } = self;
        way.receive(|frame: Frame<'_>| {
            let Some((header, content)) = frame.bytes.split_at_checked(HEADER_BYTES) else { return };
            let (to, from) = (&header[..6], &header[6..12]);
            let id = |tag: u16| tag & 0xfff;
            if (to != address && to != BROADCAST) || frame.tag.map(id) != vlan.map(id) {
                return;
            }
            let from: Mac = from.try_into().expect("six bytes");
            let tag_bytes = if frame.tag.is_some() { VLAN_TAG_BYTES } else { 0 };
            // A message begins with a stamp of its kind; most frames are none.
            if content.get(1).is_some_and(|kind| kind & 15 == 2) {
                let stamp = Stamp::decode(content).filter(|stamp| stamp.kind == Kind::Message);
                match stamp.as_ref().and_then(|stamp| Message::decode(stamp, content)) {
                    Some(Message::Here(description)) if !found.iter().any(|(known, _)| *known == from) => {
                        found.push((from, description));
                        return;
                    }
                    Some(message @ (Message::Begun { .. } | Message::Tell(_))) => {
                        if let (Some(sender), Some(stamp)) = (sender.as_mut(), stamp) {
                            sender.handle_message(from, &stamp, &message, frame.at_ns, now);
                        }
                        return;
                    }
                    _ => {}
                }
            }
            responder.handle_frame(from, content, tag_bytes, frame.at_ns);
        })
    }

    /// Looks for the carrier. When it goes, frames that wait in a ring go too: they would leave with an old stamp.
    fn look_for_carrier(&mut self) -> io::Result<()> {
        let had_carrier = self.has_carrier;
        self.has_carrier = interface::has_carrier(&self.interface.name)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {}", self.interface.name, text_of(&error))))?;
        if self.has_carrier != had_carrier && self.log.len() < LOG_MAX {
            let what = if self.has_carrier { "has a carrier again" } else { "has no carrier" };
            self.log.push(format!("{}: {what}", self.interface.name));
        }
        if let Some(sender) = &mut self.sender {
            if had_carrier && !self.has_carrier {
                self.way.prepare(&self.template.0, self.template.1)?;
            }
            sender.set_carrier(self.has_carrier, clock::now());
        }
        Ok(())
    }

    fn count_drops(&mut self) {
        let (receiving, sending) = counters::drops(&self.interface.name).unwrap_or(self.drops_at_open);
        let drops = self.way.drops();
        if drops > self.drops_told && self.log.len() < LOG_MAX {
            let more = drops - self.drops_told;
            self.log.push(format!("{}: the kernel dropped {more} frames for want of room", self.interface.name));
            self.drops_told = drops;
        }
        self.responder.set_drops(drops, receiving.saturating_sub(self.drops_at_open.0));
        if let Some(sender) = &mut self.sender {
            sender.set_interface_drops(sending.saturating_sub(self.drops_at_start));
        }
    }

    /// Waits until something is due or comes. A short time is spun away, so that a frame leaves at its time.
    fn wait(&self, end_ns: u64) -> io::Result<()> {
        let now_ns = clock::now().steady_ns;
        let due_ns = self.sender.as_ref().and_then(Sender::poll_timeout).unwrap_or(u64::MAX);
        let until_ns = due_ns.min(end_ns).min(now_ns + LOOK_NS);
        let Some(wait_ns) = until_ns.checked_sub(now_ns + SPIN_NS).filter(|wait_ns| *wait_ns > 0) else {
            std::hint::spin_loop();
            return Ok(());
        };
        let timeout = Timespec { tv_sec: (wait_ns / 1_000_000_000) as i64, tv_nsec: (wait_ns % 1_000_000_000) as i64 };
        match poll(&mut [PollFd::from_borrowed_fd(self.way.fd(), PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // An interface that went down leaves an error, with which the socket would be ready for ever.
        if let Ok(libc::ENETDOWN) = get(self.way.fd(), libc::SOL_SOCKET, libc::SO_ERROR, 0) {
            let _ = rustix::thread::nanosleep(&timeout);
        }
        Ok(())
    }
}

/// The system's error, in words.
fn text_of(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM) => "raw frames need CAP_NET_RAW (root, or a network namespace of one's own)".into(),
        Some(libc::ENODEV) => "no such interface".into(),
        _ => error.to_string(),
    }
}
