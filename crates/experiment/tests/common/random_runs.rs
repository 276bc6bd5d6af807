//! Runs drawn from a number: lines, queues, losses, workloads, transports, moves, measurements. Most of them have
//! horizons.

#![allow(dead_code, reason = "each user takes its own part")]

use serde_json::{json, Value};
use spec::{RunSpec, TransportSpec, FORMAT};

const MS: u64 = 1_000_000;
/// Packets of 1500 bytes that pass the fastest line in a run, about.
const PACKETS: u64 = 8_000;

const CONTROLS: [&str; 14] = [
    "bbr",
    "bic",
    "compound",
    "cubic",
    "fast",
    "highspeed",
    "htcp",
    "illinois",
    "ledbat_plus_plus",
    "reno",
    "scalable",
    "storage_friendly",
    "vegas",
    "westwood",
];

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let once = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let twice = (once ^ (once >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        twice ^ (twice >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// A network: nodes, links, and the ways between those nodes that flows begin and end at.
struct Net {
    nodes: u64,
    links: Vec<Value>,
    /// By link: its nodes.
    ends: Vec<(u64, u64)>,
    /// Routes of flows, there and back.
    ways: Vec<(Vec<u64>, Vec<u64>)>,
    /// Lines side by side between the same routers: their links, there and back.
    parallel: Option<[[u64; 2]; 2]>,
    fastest_bps: u64,
}

impl Net {
    fn node(&mut self) -> u64 {
        self.nodes += 1;
        self.nodes - 1
    }

    /// Adds a line with both directions; returns its links.
    fn line(&mut self, draw: &mut Draw, from: u64, to: u64, style: &Style) -> [u64; 2] {
        let rate = style.rate(draw);
        let delay = style.delay(draw);
        [(from, to), (to, from)].map(|(from, to)| {
            let (rate, delay) = if draw.percent(80) { (rate, delay) } else { (style.rate(draw), style.delay(draw)) };
            self.fastest_bps = self.fastest_bps.max(rate);
            let number = self.links.len() as u64;
            self.links.push(link(draw, &format!("l{number}"), (from, to), (rate, delay), style));
            self.ends.push((from, to));
            number
        })
    }
}

/// The habits of one run: the same rates and delays make many events happen at one time.
struct Style {
    rates: Vec<u64>,
    delays: Vec<u64>,
    lossy: u64,
    /// Share of lines that decide late, and of events that change lines, percent.
    late: u64,
}

impl Style {
    fn drawn(draw: &mut Draw) -> Style {
        let any_rate = draw.between(1_000_000, 3_000_000_000);
        let rates = match draw.below(4) {
            0 => vec![1_000_000_000],
            1 => vec![100_000_000, 1_000_000_000, 10_000_000_000],
            2 => vec![any_rate, 155_520_000, 1_000_000_000],
            _ => vec![any_rate, any_rate / 2, 2_000_000, 100_000_000_000],
        };
        let any_delay = draw.below(30 * MS);
        let delays = match draw.below(4) {
            0 => vec![MS],
            1 => vec![0, MS, 10 * MS],
            2 => vec![any_delay, 5_000, 0],
            _ => vec![any_delay, any_delay / 7, 1, 20 * MS],
        };
        Style { rates, delays, lossy: draw.of(&[0, 10, 60]), late: draw.of(&[0, 0, 15, 60]) }
    }

    fn rate(&self, draw: &mut Draw) -> u64 {
        draw.of(&self.rates)
    }

    fn delay(&self, draw: &mut Draw) -> u64 {
        draw.of(&self.delays)
    }
}

fn link(draw: &mut Draw, name: &str, (from, to): (u64, u64), (rate, delay): (u64, u64), style: &Style) -> Value {
    let bytes = draw.of(&[10_000, 60_000, 400_000, 5_000_000]);
    let (limit_bytes, limit_packets) = match draw.below(5) {
        0 => (json!(null), json!(draw.between(2, 60))),
        1 => (json!(bytes), json!(draw.between(5, 500))),
        2 => (json!(null), json!(null)),
        _ => (json!(bytes), json!(null)),
    };
    let mut made = json!({
        "name": name, "from": from, "to": to, "rate_bps": rate, "delay_ns": delay, "jitter": null,
        "queue": {"kind": "drop_tail", "limit_bytes": limit_bytes, "limit_packets": limit_packets},
        "loss": if draw.percent(style.lossy) { loss(draw) } else { json!({"kind": "none"}) },
    });
    if draw.percent(20) {
        made["framing"] = json!({"header_bytes": draw.of(&[18, 38]), "min_frame_bytes": draw.of(&[0, 64]),
                                 "gap_bytes": draw.of(&[0, 20])});
    }
    if draw.percent(style.late) {
        decide_late(draw, &mut made, rate, bytes);
    }
    made
}

/// Makes `link` decide at the time of each packet.
fn decide_late(draw: &mut Draw, link: &mut Value, rate: u64, bytes: u64) {
    match draw.below(8) {
        0 | 1 => {
            let kind = draw.of(&["uniform", "normal", "exponential"]);
            let scale = draw.of(&[0, 1000, MS / 10, MS]);
            link["jitter"] = json!({"distribution": kind, "scale_ns": scale, "reordering": draw.percent(40)});
        }
        2 | 3 => {
            link["loss"] = json!({"kind": "none"});
            link["batching"] = json!({"max_bytes": draw.of(&[0, 9000, 65_536]), "wait_ns": draw.of(&[0, 1000, MS / 10]),
                                      "wait_packets": draw.of(&[json!(null), json!(10)])});
        }
        4 => link["policer"] = json!({"rate_bps": rate / 2 + 1, "burst_bytes": 30_000}),
        5 => {
            let low = bytes / 8 + 1;
            link["queue"] = json!({"kind": "red", "limit_bytes": bytes, "min_bytes": low, "max_bytes": 4 * low,
                                   "max_probability_ppm": 100_000, "weight_shift": draw.between(2, 9),
                                   "ecn": draw.percent(50)});
        }
        6 => {
            link["queue"] = json!({"kind": "codel", "limit_packets": 1000, "target_ns": 5 * MS,
                                   "interval_ns": 100 * MS, "ecn": draw.percent(50)});
        }
        _ => {
            link["queue"] = json!({"kind": "fq_codel", "limit_packets": draw.between(50, 1000), "flows": 64,
                                   "quantum_bytes": 1514, "target_ns": 5 * MS, "interval_ns": 100 * MS,
                                   "ecn": draw.percent(50)});
        }
    }
}

/// A change of one of `links`, unless it takes batches.
fn change(draw: &mut Draw, links: &[Value], style: &Style) -> Option<Value> {
    let link = draw.below(links.len() as u64);
    if !links[link as usize]["batching"].is_null() {
        return None;
    }
    Some(match draw.below(5) {
        0 => json!({"kind": "rate", "link": link, "rate_bps": style.rate(draw)}),
        1 => json!({"kind": "delay", "link": link, "delay_ns": style.delay(draw) + draw.of(&[0, MS])}),
        2 => json!({"kind": "loss", "link": link, "loss": loss(draw)}),
        3 => json!({"kind": "link_down", "link": link}),
        _ => json!({"kind": "link_up", "link": link}),
    })
}

fn loss(draw: &mut Draw) -> Value {
    let rare = draw.of(&[100_000_000u64, 1_000_000_000, 10_000_000_000, 50_000_000_000]);
    match draw.below(7) {
        0 | 1 => json!({"kind": "independent", "probability_e12": rare}),
        2 => json!({"kind": "gilbert_elliott", "good_to_bad_e12": rare, "bad_to_good_e12": 300_000_000_000u64,
                    "loss_good_e12": 0, "loss_bad_e12": 1_000_000_000_000u64}),
        3 => json!({"kind": "runs", "begins_e12": rare, "length": draw.between(1, 20)}),
        4 => json!({"kind": "every_nth", "n": draw.between(10, 2000)}),
        5 => json!({"kind": "bit_error_rate", "probability_e18": draw.of(&[1_000_000_000u64, 100_000_000_000])}),
        _ => {
            let mut packets: Vec<u64> = (0..draw.between(1, 30)).map(|_| draw.between(1, 3000)).collect();
            packets.sort_unstable();
            packets.dedup();
            json!({"kind": "list", "packets": packets})
        }
    }
}

/// A dumbbell or a parking lot of routers; hosts sit on routers, on lines of their own, or share lines.
fn network(draw: &mut Draw, flows: u64, style: &Style) -> Net {
    let mut net = Net { nodes: 0, links: vec![], ends: vec![], ways: vec![], parallel: None, fastest_bps: 0 };
    let routers = draw.of(&[2, 2, 2, 3, 4]);
    let routers: Vec<u64> = (0..routers).map(|_| net.node()).collect();
    let trunks: Vec<[u64; 2]> = routers.windows(2).map(|pair| net.line(draw, pair[0], pair[1], style)).collect();
    let parallel = draw.percent(25).then(|| net.line(draw, routers[0], routers[1], style));
    net.parallel = parallel.map(|line| [trunks[0], line]);
    // Lines into a router, which several flows may have.
    let mut access: Vec<(usize, [u64; 2])> = vec![];
    let direct = draw.of(&[0, 30, 100]);
    let shared = draw.of(&[0, 50, 90]);
    for _ in 0..flows {
        let (mut first, mut last) = (0, routers.len() - 1);
        if draw.percent(40) {
            first = draw.below(routers.len() as u64 - 1) as usize;
            last = draw.between(first as u64 + 1, routers.len() as u64 - 1) as usize;
        }
        let mut forward: Vec<u64> = (first..last).map(|trunk| trunks[trunk][0]).collect();
        let mut back: Vec<u64> = (first..last).rev().map(|trunk| trunks[trunk][1]).collect();
        if let Some(other) = parallel.filter(|_| first == 0 && draw.percent(40)) {
            forward[0] = other[0];
            if draw.percent(70) {
                let end = back.len() - 1;
                back[end] = other[1];
            }
        }
        for (router, at_begin) in [(first, true), (last, false)] {
            if draw.percent(direct) {
                continue;
            }
            let known: Vec<_> = access.iter().filter(|line| line.0 == router).map(|line| line.1).collect();
            let [into, out] = if !known.is_empty() && draw.percent(shared) {
                draw.of(&known)
            } else {
                let host = net.node();
                let line = net.line(draw, host, routers[router], style);
                access.push((router, line));
                line
            };
            if at_begin {
                forward.insert(0, into);
                back.push(out);
            } else {
                forward.push(out);
                back.insert(0, into);
            }
        }
        net.ways.push(if draw.percent(25) { (back, forward) } else { (forward, back) });
    }
    net
}

fn transport(draw: &mut Draw, duration: u64) -> Value {
    let mut made = serde_json::to_value(TransportSpec::default()).expect("plain data");
    // No draw, which would make others of all that follow.
    made["tso_autosizing"] = json!(!duration.is_multiple_of(3));
    made["congestion_control"] = json!(draw.of(&CONTROLS));
    made["window_bytes"] = json!(draw.of(&[64_000u64, 300_000, 4_000_000, 30_000_000]));
    made["mtu_bytes"] = json!(draw.of(&[576, 1500, 1500, 1500, 9000]));
    // Drawn apart: the rest of a run stays what it was.
    if made["mtu_bytes"] != 576 && Draw(draw.0).percent(40) {
        made["ipv6"] = json!(true);
    }
    let mut maybe = |draw: &mut Draw, share: u64, key: &str, value: Value| {
        if draw.percent(share) {
            made[key] = value;
        }
    };
    for key in ["timestamps", "delayed_ack", "sack_compression", "undo", "frto", "limited_transmit", "cwnd_validation"]
    {
        maybe(draw, 15, key, json!(false));
    }
    for key in ["pacing", "nagle", "receive_autotuning", "ecn"] {
        maybe(draw, 15, key, json!(true));
    }
    let recovery = draw.of(&["reno", "newreno", "sack", "rack"]);
    maybe(draw, 40, "recovery", json!(recovery));
    maybe(draw, 15, "count", json!("acks"));
    let few = draw.between(1, 40);
    maybe(draw, 30, "initial_cwnd", json!(few));
    maybe(draw, 15, "initial_ssthresh", json!(few * 2));
    maybe(draw, 15, "cwnd_clamp", json!(few + 2));
    let buffer = draw.of(&[20_000u64, 100_000, 1_000_000]);
    maybe(draw, 20, "send_buffer_bytes", json!(buffer));
    maybe(draw, 10, "slow_start_after_idle", json!(false));
    maybe(draw, 15, "rto_min_ns", json!(20 * MS));
    let quick = draw.below(20);
    maybe(draw, 15, "quickack_segments", json!(quick));
    let kind = draw.of(&["uniform", "normal", "exponential"]);
    let scale = draw.of(&[1000, 20_000, duration / 1000 + 1]);
    maybe(draw, 12, "send_overhead", json!({"distribution": kind, "scale_ns": scale}));
    made
}

fn workload(draw: &mut Draw, rate_bps: u64) -> Value {
    let bytes = draw.of(&[1u64, 1448, 100_000, 1_000_000, 5_000_000]);
    match draw.below(12) {
        0..=3 => json!({"kind": "bulk", "bytes": null}),
        4..=6 => json!({"kind": "bulk", "bytes": bytes + draw.below(5000)}),
        7 => json!({"kind": "bulk", "bytes": null, "buffer_bytes": draw.of(&[512, 2048, 65_536])}),
        8 => {
            let credits = draw.percent(40).then(|| draw.between(1, 50));
            json!({"kind": "constant_rate", "frame_bytes": draw.of(&[36, 512, 2112, 9000]),
                   "rate_bps": rate_bps * draw.between(1, 60) / 100 + 1, "credits": credits})
        }
        9 => replicate(draw, rate_bps),
        10 => iscsi(draw),
        _ => json!({"kind": "bulk", "bytes": bytes, "buffer_bytes": draw.of(&[2048, 20_000])}),
    }
}

fn replicate(draw: &mut Draw, rate_bps: u64) -> Value {
    let sizes = match draw.below(3) {
        0 => json!({"kind": "fixed", "bytes": draw.of(&[4096, 65_536])}),
        1 => json!({"kind": "mix", "sizes": [[4096, 3], [65_536, 1]]}),
        _ => json!({"kind": "lognormal", "median_bytes": 16_384, "sigma_e3": 1000}),
    };
    let arrivals = match draw.below(3) {
        0 => json!({"process": "constant"}),
        1 => json!({"process": "poisson"}),
        _ => json!({"process": "on_off", "on_ns": 20 * MS, "off_ns": 50 * MS, "pareto_shape_e3": null}),
    };
    let rate = rate_bps * draw.between(1, 60) / 100 + 1;
    let mut writes = json!({"rate_bps": rate, "header_bytes": 48, "sizes": sizes, "arrivals": arrivals});
    if let Some(active) = active(rate, 100 * MS) {
        writes["active"] = active;
    }
    json!({"kind": "replicate", "writes": writes})
}

/// Exact periods of up to half of `longest`, ns, of every fifth source. They are drawn from its rate, so that all else
/// is drawn as without them.
fn active(rate_bps: u64, longest: u64) -> Option<Value> {
    let mut draw = Draw(rate_bps);
    let is_periodic = draw.percent(20);
    let (on, off) = (draw.between(1, longest / 4), draw.between(1, longest / 4));
    is_periodic.then(|| json!({"on_ns": on, "off_ns": off, "phase_ns": draw.below(on + off)}))
}

fn iscsi(draw: &mut Draw) -> Value {
    json!({
        "kind": "iscsi", "initial_r2t": draw.percent(50), "immediate_data": draw.percent(50),
        "max_burst_bytes": 262_144, "first_burst_bytes": 65_536, "initiator_max_recv_bytes": 8192,
        "target_max_recv_bytes": 8192, "max_outstanding_r2t": draw.between(1, 3), "header_digest": draw.percent(30),
        "data_digest": draw.percent(30), "command_window": 128, "queue_depth": draw.of(&[1, 8, 32]),
        "allegiance": "round_robin",
        "disk": {"model": null, "drive": null, "scheduler": null, "count": 1, "stripe_bytes": 65_536,
                 "size_bytes": 1u64 << 40},
        "source": {"kind": "mix", "reads_e6": draw.of(&[0, 500_000, 1_000_000]),
                   "request_bytes": draw.of(&[4096, 65_536]), "random": draw.percent(50), "think_ns": 0,
                   "requests": if draw.percent(50) { json!(draw.between(1, 300)) } else { json!(null) },
                   "span_bytes": null},
    })
}

fn copy(draw: &mut Draw) -> Value {
    json!({
        "kind": "copy", "files": [{"count": draw.between(1, 30), "min_bytes": 1000, "max_bytes": 200_000}], "jobs": 1,
        "chunk_bytes": 1 << 16, "file_overhead_bytes": 100, "chunk_overhead_bytes": 10,
        "begin_round_trips": draw.below(3), "end_round_trips": draw.below(2), "changed_ppm": 1_000_000,
        "read_bps": null, "write_bps": draw.percent(30).then_some(50_000_000), "hash_bps": null,
        "limit_bps": draw.percent(30).then_some(80_000_000), "file_ns": draw.of(&[0, 100_000]),
    })
}

/// Flows over `net`, one after the other or several with one workload.
fn flows(draw: &mut Draw, net: &Net, (duration, rate_bps): (u64, u64)) -> Vec<Value> {
    let mut made: Vec<Value> = vec![];
    let ties = draw.percent(60);
    let plain = draw.percent(35);
    let unlike = draw.of(&[0, 100]);
    let usual = transport(draw, duration);
    let mut group = 0;
    while made.len() < net.ways.len() {
        let (route, return_route) = &net.ways[made.len()];
        let start = if ties { duration / 16 * draw.of(&[0, 0, 1, 4]) } else { draw.below(duration / 3) };
        let mut transport = if draw.percent(unlike) { transport(draw, duration) } else { usual.clone() };
        let mut workload = workload(draw, rate_bps / net.ways.len() as u64 + 1_000);
        if plain {
            workload = json!({"kind": "bulk", "bytes": if draw.percent(50) { json!(null) } else { json!(400_000) }});
        }
        let kind = workload["kind"].as_str().expect("every workload has a kind").to_owned();
        if !plain && kind != "iscsi" && draw.percent(12) {
            transport["udt"] = json!({"version": draw.of(&["udt4", "udt-2003"])});
        }
        let most = (net.ways.len() - made.len()) as u64;
        let mut count = 1;
        let mut distribution = "each";
        if !plain && kind != "iscsi" && draw.percent(25) {
            count = draw.between(1, 4).min(most);
            distribution = "striped";
            if transport["udt"].is_null() && kind == "bulk" && draw.percent(50) {
                workload = copy(draw);
            }
        }
        let stop = draw.percent(15).then(|| draw.between(duration / 2, duration));
        for index in 0..count {
            let name = if count == 1 { format!("f{group}") } else { format!("f{group}.{}", index + 1) };
            let mut flow = json!({
                "name": name, "group": group, "source": 0, "destination": 0, "route": route,
                "return_route": return_route, "transport": transport, "start_ns": start + index * draw.of(&[0, MS]),
                "stop_ns": stop, "workload": workload,
            });
            if distribution == "striped" {
                flow["distribution"] = json!(distribution);
            }
            (flow["source"], flow["destination"]) = ends(net, route);
            made.push(flow);
        }
        group += 1;
    }
    made
}

/// `route` over the other one of two lines side by side; the same where it passes neither.
fn beside(route: &[u64], lines: [[u64; 2]; 2]) -> Vec<u64> {
    let other = |&link: &u64| match (lines[0].iter().zip(&lines[1])).find(|(&a, &b)| a == link || b == link) {
        Some((&a, &b)) => a + b - link,
        None => link,
    };
    route.iter().map(other).collect()
}

/// A move of a flow or a background source to the other one of two lines, or back; None where `drawn` passes neither.
fn moved(draw: &mut Draw, lines: [[u64; 2]; 2], flows: &[Value], background: &[Value]) -> Option<Value> {
    let of_background = !background.is_empty() && draw.percent(30);
    let all = if of_background { background } else { flows };
    let index = draw.below(all.len() as u64);
    let mut way = |key: &str| {
        let route: Vec<u64> = serde_json::from_value(all[index as usize][key].clone()).ok()?;
        let other = beside(&route, lines);
        (other != route).then(|| if draw.percent(70) { other } else { route })
    };
    let route = way("route")?;
    if of_background {
        return Some(json!({"kind": "move_background", "sources": [index], "route": route}));
    }
    let back = way("return_route").filter(|_| draw.percent(50));
    let mut action = json!({"kind": "move", "flows": [index], "route": route, "return_route": back});
    if draw.percent(20) {
        action["mitigation"] = json!({"cwnd_reduction": {"delay_ns": draw.of(&[0, MS]), "lead_ns": draw.of(&[0, MS]),
            "cwnd_fraction_ppm": draw.of(&[json!(null), json!(500_000)]),
            "restore_ns": draw.of(&[json!(null), json!(2 * MS)])}});
    }
    Some(action)
}

/// A manager over a line beside another, quick to act.
fn manager(draw: &mut Draw, net: &Net, [_, light]: [[u64; 2]; 2], flows: usize, duration: u64) -> Value {
    let link = light[draw.below(2) as usize];
    json!({
        "interval_ns": duration / draw.between(5, 40), "sampling_rate": draw.of(&[1, 10]), "flow_table_size": 64,
        "inactive_timeout_ns": duration / 4, "rate_bps": 1_000_000, "volume_bytes": 10_000,
        "confidence_sigmas_e3": draw.of(&[0, 1000]), "return_rate_bps": 500_000, "min_dwell_time_ns": duration / 10,
        "lightpath_timeout_ns": duration / 8, "lightpaths_max": 1, "max_utilization_ppm": 900_000,
        "offload_weight_ppm": draw.of(&[0, 100_000]), "congestion_threshold_ppm": draw.of(&[10_000, 900_000]),
        "refuse": draw.percent(50), "observation_window_ns": duration / 8, "cc_beta_ppm": 700_000,
        "priorities": vec![0; flows],
        "lightpaths": [{"name": "light", "route": [link], "capacity_bps": net.links[link as usize]["rate_bps"],
                        "set_up_ns": duration / 20, "cost_bytes": 0}],
    })
}

fn ends(net: &Net, route: &[u64]) -> (Value, Value) {
    (json!(net.ends[route[0] as usize].0), json!(net.ends[route[route.len() - 1] as usize].1))
}

fn background(draw: &mut Draw, net: &Net, number: u64, duration: u64) -> Value {
    let (forward, back) = draw.of(&net.ways);
    let mut route = if draw.percent(50) { forward } else { back };
    if draw.percent(40) {
        // It enters and leaves in the middle.
        let from = draw.below(route.len() as u64) as usize;
        let to = draw.between(from as u64, route.len() as u64 - 1) as usize;
        route = route[from..=to].to_vec();
    }
    let bytes = draw.of(&[1, 40, 64, 576, 1500, 1500]);
    let most = bytes * 8 * PACKETS * 1_000_000_000 / duration;
    let rate = net.links[route[0] as usize]["rate_bps"].as_u64().expect("a rate").min(most);
    let mut made = json!({
        "name": format!("b{number}"), "route": route, "rate_bps": rate * draw.between(1, 120) / 100 + 1,
        "packet_bytes": bytes, "start_ns": draw.of(&[0, 0, duration / 5]), "stop_ns": null,
        "on_off_ns": null, "enabled": draw.percent(70),
    });
    if draw.percent(40) {
        made["on_off_ns"] = json!([draw.between(1, duration / 4), draw.between(1, duration / 4)]);
    }
    if let Some(active) = active(rate, duration) {
        made["active"] = active;
        made["codec"] = json!("g711");
    }
    if draw.percent(20) {
        made["stop_ns"] = json!(draw.between(duration / 4, duration));
    }
    if draw.percent(20) {
        made["packet_bytes"] = json!(1500);
        made["rate_bps"] = json!(rate.min(1500 * 8 * PACKETS * 1_000_000_000 / duration));
        made["frames"] = json!({"packets_bytes": [1500, 46, 500],
                                "framing": {"header_bytes": 18, "min_frame_bytes": 64, "gap_bytes": 20}});
    }
    made
}

/// Returns the run of `seed`.
pub fn random_run(seed: u64) -> RunSpec {
    let spec = random_value(seed);
    serde_json::from_value(spec.clone()).unwrap_or_else(|error| panic!("seed {seed}: {error}: {spec}"))
}

fn random_value(seed: u64) -> Value {
    let draw = &mut Draw(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let style = Style::drawn(draw);
    let count = match draw.below(4) {
        0 => 1,
        1 => 2,
        2 => draw.between(3, 8),
        _ => draw.between(9, 40),
    };
    let net = network(draw, count, &style);
    let packet_ns = 12_000 * 1_000_000_000 / net.fastest_bps.min(10_000_000_000);
    let duration = (PACKETS * packet_ns).clamp(30 * MS, 2000 * MS);
    let slowest = net.links.iter().filter_map(|link| link["rate_bps"].as_u64()).min().unwrap_or(1);
    let flows = flows(draw, &net, (duration, slowest));
    let sources = draw.of(&[0, 0, 1, 3]);
    let background: Vec<Value> = (0..sources).map(|number| background(draw, &net, number, duration)).collect();
    let mut events = vec![];
    if draw.percent(40) {
        for _ in 0..draw.between(1, 4) {
            let action = if !background.is_empty() && !draw.percent(style.late) {
                let kind = draw.of(&["background_on", "background_off"]);
                json!({"kind": kind, "source": draw.below(background.len() as u64)})
            } else {
                let changes = draw.percent(style.late);
                let Some(action) = changes.then(|| change(draw, &net.links, &style)).flatten() else { continue };
                action
            };
            let when = if draw.percent(30) {
                json!({"kind": "flow_reaches", "flow": draw.below(flows.len() as u64), "rate_bps": 1_000_000,
                       "window_ns": duration / 10})
            } else {
                json!({"kind": "at", "time_ns": draw.below(16) * duration / 16})
            };
            events.push(json!({"when": when, "action": action}));
        }
    }
    if let Some(lines) = net.parallel.filter(|_| draw.percent(60)) {
        for _ in 0..draw.between(1, 4) {
            if let Some(action) = moved(draw, lines, &flows, &background) {
                let when = json!({"kind": "at", "time_ns": draw.below(24) * duration / 24});
                events.push(json!({"when": when, "action": action}));
            }
        }
    }
    let mut windows = vec![];
    if draw.percent(25) {
        windows.push(json!({"name": "early", "from_ns": 0, "to_ns": duration / 3}));
        if !events.is_empty() {
            windows.push(json!({"name": "wake", "event": 0, "from_ns": draw.of(&[0, MS]), "to_ns": duration / 4 + MS}));
        }
    }
    let mut short_flows = vec![];
    if draw.percent(15) {
        let (route, return_route) = draw.of(&net.ways);
        let (source, destination) = ends(&net, &route);
        let sizes = if draw.percent(50) {
            json!({"kind": "lognormal", "median_bytes": 20_000, "sigma_e3": 1500})
        } else {
            json!({"kind": "pareto", "pareto_shape_e3": 1200, "min_bytes": 5000, "max_bytes": 1_000_000})
        };
        short_flows.push(json!({
            "name": "crowd", "source": source, "destination": destination, "route": route,
            "return_route": return_route, "transport": transport(draw, duration),
            "arrivals_per_ks": draw.between(10, 100) * 1000 * 1_000_000_000 / duration, "sizes": sizes, "start_ns": 0,
            "stop_ns": null,
        }));
    }
    // The last one: several samples within a lookahead.
    let intervals = [json!(null), json!(duration / 40), json!(duration / 7 + 1), json!(duration / 900 + 1)];
    let interval = draw.of(&intervals);
    let warmup = draw.of(&[0, 0, duration / 4]);
    let mut spec = json!({
        "format": FORMAT, "seed": draw.next(), "duration_ns": duration, "stop_when_done": draw.percent(40),
        "nodes": (0..net.nodes).map(|node| format!("n{node}")).collect::<Vec<_>>(), "links": net.links, "flows": &flows,
        "short_flows": &short_flows, "background": background, "events": events,
        "measure": {"series_interval_ns": interval, "warmup_ns": warmup, "pcap": null, "pcap_node": 0,
                    "pcap_packets": null, "windows": windows},
    });
    if draw.percent(15) {
        spec["measure"]["pcap"] = json!("captured.pcapng");
        spec["measure"]["pcap_node"] = flows[0][draw.of(&["source", "destination"])].clone();
        spec["measure"]["pcap_packets"] = draw.of(&[json!(null), json!(1000)]);
    }
    if let Some(lines) = net.parallel.filter(|_| draw.percent(40)) {
        let managed = manager(draw, &net, lines, flows.len(), duration);
        let joins = |route: &Value| {
            let passes = |link: &u64| net.ends[*link as usize].0;
            let ends = net.ends[managed["lightpaths"][0]["route"][0].as_u64().expect("a link") as usize];
            let route: Vec<u64> = serde_json::from_value(route.clone()).expect("links");
            let from = route.iter().position(|link| passes(link) == ends.0);
            let to = route.iter().position(|link| net.ends[*link as usize].1 == ends.1);
            from.zip(to).is_some_and(|(from, to)| from <= to)
        };
        if flows.iter().any(|flow| joins(&flow["route"])) {
            spec["manager"] = managed;
        }
    }
    if flows.len() == 1 && short_flows.is_empty() && draw.percent(30) {
        spec["flows"][0]["workload"] = json!({"kind": "bulk", "bytes": 50_000_000});
        spec["duration_ns"] = json!(duration * 3);
        spec["extrapolate"] = json!({"from_ns": 0, "interval_ns": 10 * MS, "first_packets": 2000,
                                     "most_packets": 20_000, "least_episodes": 5, "error_ppm": 50_000});
    }
    spec
}
