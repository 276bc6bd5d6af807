//! Watching connections that are there, for `diagnosis`: sock_diag(7), without a byte of load.

use super::diag::{Diag, SocketEntry};
use crate::clock;
use diagnosis::{Flow, Sample};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use units::Span;

/// A look goes over all connections of a host: between two is at least this many times the processor time of one, so
/// that they take 5 % of a processor at most.
const RESTS: u64 = 19;

/// Longest sleep, so that a stop is noticed.
const NAP: Span = Span::from_millis(100);

/// `SO_MAX_PACING_RATE` and pacing rate where there is none (net/ipv4/tcp.c, net/core/sock.c); 32 bits from older
/// programs' setsockopt.
const UNPACED: [u64; 2] = [u64::MAX, u32::MAX as u64];

/// Connections to be watched; each condition that is there holds.
#[derive(Clone, Debug, Default)]
pub struct FlowSelection {
    /// At either end.
    pub port: Option<u16>,
    /// Address of the far end.
    pub peer: Option<IpAddr>,
    /// A process that has the socket open.
    pub pid: Option<u32>,
}

/// Watches the connections of one namespace.
pub struct FlowWatch {
    diags: Vec<Diag>,
    selection: FlowSelection,
    inodes: BTreeSet<u32>,
    flows: BTreeMap<u64, Flow>,
    /// Connections seen that are not of the selection.
    strangers: BTreeSet<u64>,
    began_ns: u64,
    cost_ns: u64,
    looks: u64,
}

impl FlowWatch {
    /// Of the namespace whose file is `namespace`, None: this thread's.
    ///
    /// # Errors
    /// The kernel's, with sock_diag or with the files of the process (not the user's own, or none of that number).
    pub fn open(namespace: Option<&str>, selection: FlowSelection) -> io::Result<FlowWatch> {
        let v4 = Diag::open(namespace, Ipv4Addr::UNSPECIFIED.into())?;
        let v6 = Diag::open(namespace, Ipv6Addr::UNSPECIFIED.into())?;
        let inodes = selection.pid.map(inodes_of).transpose()?.unwrap_or_default();
        Ok(FlowWatch {
            diags: vec![v4, v6],
            selection,
            inodes,
            flows: BTreeMap::new(),
            strangers: BTreeSet::new(),
            began_ns: clock::monotonic_ns(),
            cost_ns: 0,
            looks: 0,
        })
    }

    /// Looks every `interval` until `seconds` have passed or `stop` returns true.
    ///
    /// # Errors
    /// The kernel's.
    pub fn watch(&mut self, time: Span, interval: Span, stop: &mut dyn FnMut() -> bool) -> io::Result<()> {
        let end_ns = clock::monotonic_ns() + time.0;
        loop {
            let began_ns = clock::monotonic_ns();
            let used_ns = self.cost_ns;
            self.look()?;
            let now_ns = clock::monotonic_ns();
            let due_ns = (began_ns + interval.0).max(now_ns + RESTS * (self.cost_ns - used_ns));
            if now_ns >= end_ns {
                return Ok(());
            }
            while clock::monotonic_ns() < due_ns.min(end_ns) {
                if stop() {
                    return Ok(());
                }
                clock::nap(NAP.min(Span(due_ns.min(end_ns).saturating_sub(clock::monotonic_ns()))));
            }
        }
    }

    /// Takes a sample of each connection.
    ///
    /// # Errors
    /// The kernel's.
    pub fn look(&mut self) -> io::Result<()> {
        let cpu_ns = clock::thread_cpu_ns();
        let at_us = (clock::monotonic_ns() - self.began_ns) / 1000;
        let mut seen = vec![];
        for diag in &mut self.diags {
            match diag.connections() {
                Ok(entries) => seen.extend(entries.into_iter().map(|entry| (entry, false))),
                // A kernel without IPv6 has no such table.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => continue,
                Err(error) => return Err(error),
            }
            seen.extend(diag.gone()?.into_iter().map(|entry| (entry, true)));
        }
        self.learn_inodes(&seen)?;
        for (entry, ended) in seen {
            if !self.is_selected(&entry, ended) {
                self.strangers.insert(entry.cookie);
                continue;
            }
            let flow = self.flows.entry(entry.cookie).or_insert_with(|| Flow {
                local: at(entry.local, entry.local_port),
                remote: at(entry.remote, entry.remote_port),
                ..Flow::default()
            });
            if !entry.congestion_control.is_empty() {
                flow.congestion_control.clone_from(&entry.congestion_control);
            }
            flow.ended |= ended;
            // The last word of a connection that closed comes without its buffers, and with its queues dropped.
            if !ended {
                flow.samples.push(sample(&entry, at_us));
            }
        }
        self.cost_ns += clock::thread_cpu_ns() - cpu_ns;
        self.looks += 1;
        Ok(())
    }

    /// Returns a flow per connection seen.
    pub fn into_flows(self) -> Vec<Flow> {
        self.flows.into_values().collect()
    }

    /// Looks taken, and the processor time of all of them, ns.
    pub fn cost(&self) -> (u64, u64) {
        (self.looks, self.cost_ns)
    }

    fn is_selected(&self, entry: &SocketEntry, ended: bool) -> bool {
        let FlowSelection { port, peer, pid } = &self.selection;
        let known = self.flows.contains_key(&entry.cookie);
        port.is_none_or(|port| entry.local_port == port || entry.remote_port == port)
            && peer.is_none_or(|peer| entry.remote.to_canonical() == peer.to_canonical())
            && (pid.is_none() || known || self.inodes.contains(&entry.inode))
            && (known || !ended)
    }

    /// Reads the process' files again where a connection is new.
    fn learn_inodes(&mut self, seen: &[(SocketEntry, bool)]) -> io::Result<()> {
        let Some(pid) = self.selection.pid else { return Ok(()) };
        let is_new = |cookie: &u64| !self.flows.contains_key(cookie) && !self.strangers.contains(cookie);
        if self.looks > 0 && seen.iter().any(|(entry, _)| is_new(&entry.cookie)) {
            match inodes_of(pid) {
                Ok(inodes) => self.inodes = inodes,
                // It has ended; its connections may live on.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn at(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address.to_canonical(), port).to_string()
}

/// Inodes of the sockets that a process has open.
fn inodes_of(pid: u32) -> io::Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(PathBuf::from(format!("/proc/{pid}/fd")))? {
        // One that was closed meanwhile has no target any more.
        let Ok(target) = entry.and_then(|entry| fs::read_link(entry.path())) else { continue };
        let inode = |text: &str| text.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u32>().ok();
        found.extend(target.to_str().and_then(inode));
    }
    Ok(found)
}

fn sample(entry: &SocketEntry, at_us: u64) -> Sample {
    let info = &entry.info;
    let raw = info.raw();
    let told = |rate: u64| (!UNPACED.contains(&rate)).then(|| rate.saturating_mul(8));
    let known = |us: u32| (us > 0).then_some(u64::from(us));
    Sample {
        at_us,
        ca_state: raw.ca_state,
        cwnd_packets: raw.snd_cwnd.into(),
        ssthresh_packets: (raw.snd_ssthresh < i32::MAX as u32).then_some(raw.snd_ssthresh.into()),
        mss_bytes: raw.snd_mss.into(),
        srtt_us: known(raw.rtt_us),
        min_rtt_us: info.min_rtt_us(),
        unacked: raw.unacked.into(),
        sacked: raw.sacked.into(),
        lost: raw.lost.into(),
        retrans: raw.retrans.into(),
        total_retrans: raw.total_retrans.into(),
        timeouts: info.timeouts(),
        probes: raw.probes.into(),
        bytes_acked: raw.bytes_acked,
        bytes_received: raw.bytes_received,
        bytes_sent: info.bytes_sent(),
        bytes_retrans: info.bytes_retrans(),
        delivered: info.delivered(),
        delivered_ce: info.delivered_ce(),
        segs_in: raw.segs_in.into(),
        data_segs_in: raw.data_segs_in.into(),
        out_of_order: info.out_of_order(),
        reordering_seen: info.reordering_seen(),
        duplicates: info.duplicates(),
        notsent_bytes: raw.notsent_bytes.into(),
        unacknowledged_bytes: entry.unacknowledged,
        unread_bytes: entry.unread,
        delivery_rate_bps: raw.delivery_rate.saturating_mul(8),
        app_limited: info.is_app_limited(),
        pacing_rate_bps: told(raw.pacing_rate),
        max_pacing_rate_bps: told(raw.max_pacing_rate),
        bbr_bandwidth_bps: entry.bbr_bandwidth_bps,
        busy_us: info.busy_us(),
        rwnd_limited_us: info.rwnd_limited_us(),
        sndbuf_limited_us: info.sndbuf_limited_us(),
        snd_wnd_bytes: info.snd_wnd(),
        rcv_wnd_bytes: info.rcv_wnd_on_the_wire(),
        rcv_space_bytes: raw.rcv_space.into(),
        rcv_rtt_us: known(raw.rcv_rtt_us),
        send_buffer_bytes: entry.buffers.0,
        receive_buffer_bytes: entry.buffers.1,
        send_memory_bytes: entry.memory.0,
        receive_memory_bytes: entry.memory.1,
        last_data_sent_ms: raw.last_data_sent_ms.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{able, Namespace};
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn watched_are_the_connections_of_the_selection_alone() {
        if !able("sock_diag") {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link set lo up");
        let within = |work: fn() -> io::Result<TcpListener>| crate::namespace::within(&namespace.path, work);
        let listener = within(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = || TcpStream::connect(("127.0.0.1", port));
        let mut near = crate::namespace::within(&namespace.path, connect).unwrap().unwrap();
        let (_far, _) = listener.accept().unwrap();
        near.write_all(&[0; 1000]).unwrap();
        let near_port = near.local_addr().unwrap().port();
        let seen = |selection: FlowSelection| {
            let mut watch = FlowWatch::open(Some(&namespace.path), selection).unwrap();
            // On a busy machine samples come late.
            watch.watch(Span::from_millis(50), Span::from_millis(1), &mut || false).unwrap();
            watch.into_flows()
        };
        let by_port = |port| seen(FlowSelection { port: Some(port), ..FlowSelection::default() });
        assert_eq!(by_port(near_port).len(), 2, "both ends are of this namespace");
        assert!(by_port(if port == 9 { 10 } else { 9 }).is_empty());
        let flows = seen(FlowSelection { pid: Some(std::process::id()), ..FlowSelection::default() });
        assert_eq!(flows.len(), 2);
        let sender = flows.iter().find(|flow| flow.local == format!("127.0.0.1:{near_port}")).unwrap();
        assert_eq!(sender.remote, format!("127.0.0.1:{port}"));
        assert!(sender.samples.len() >= 2 && !sender.congestion_control.is_empty(), "{sender:?}");
        let (last, unread) = (sender.samples.last().unwrap(), |flow: &Flow| flow.samples.last().unwrap().unread_bytes);
        assert!(last.bytes_acked == 1001 && last.busy_us.is_some() && last.send_buffer_bytes > 0, "{last:?}");
        assert_eq!(flows.iter().map(unread).max(), Some(1000));
        let none = FlowSelection { peer: Some(Ipv4Addr::new(192, 0, 2, 1).into()), ..FlowSelection::default() };
        assert!(seen(none).is_empty());
        let nobody = FlowSelection { pid: Some(u32::MAX / 2), ..FlowSelection::default() };
        let error = FlowWatch::open(Some(&namespace.path), nobody).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
