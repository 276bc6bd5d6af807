//! Series: what flows and links look like at every interval, as columns that Python takes over without a copy.

use congestion::INFINITE_SSTHRESH;
use link::{Link, Packet};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::{Rate, Span, Time};

/// Columns of the flow series; row i of every column belongs to one sample of one flow.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSeries {
    /// s since the start of the run
    pub time_s: Vec<f64>,
    /// index of the flow
    pub flow: Vec<i32>,
    /// segments
    pub cwnd_packets: Vec<u32>,
    /// segments; None: there is no threshold yet
    pub ssthresh_packets: Vec<Option<u32>>,
    /// s; NaN before the first sample
    #[serde(serialize_with = "with_nulls", deserialize_with = "with_nan")]
    pub srtt_s: Vec<f64>,
    /// payload bytes sent and not acknowledged
    pub in_flight_bytes: Vec<u64>,
    /// payload bit/s delivered in order since the sample before
    pub goodput_bps: Vec<f64>,
    /// segments sent again since the start
    pub retransmitted_segments: Vec<u64>,
    /// duplicate ACKs at the sender since the start; empty where a backend does not know them
    pub duplicate_acks: Vec<u64>,
    /// age of the oldest message not delivered, s; 0 for bulk
    pub lag_s: Vec<f64>,
    /// bytes issued and not delivered; 0 for bulk
    pub lag_bytes: Vec<u64>,
    /// The other direction, if any flow of the run has data both ways: as many rows, 0 for flows without such data.
    /// Not part of its JSON: only the simulator has such flows.
    #[serde(skip)]
    pub reverse: ReverseSeries,
    /// UDT's part, if any flow of the run is over UDT: as many rows. Not part of its JSON either.
    #[serde(skip)]
    pub udt: UdtSeries,
}

/// Columns that only flows over UDT have.
#[derive(Debug, Default)]
pub struct UdtSeries {
    /// Rate at which full IP packets go out, bit/s; NaN for a flow over TCP
    pub sending_rate_bps: Vec<f64>,
    /// packets reported lost that wait to be sent again
    pub lost_packets: Vec<u64>,
}

impl UdtSeries {
    /// Adds a row for each flow that was sampled; None: it is over TCP.
    pub fn sample(&mut self, sample: Option<UdtSample>) {
        self.sending_rate_bps.push(sample.map_or(f64::NAN, |sample| sample.sending_rate.0 as f64));
        self.lost_packets.push(sample.map_or(0, |sample| sample.lost_packets));
    }
}

/// Columns of the data that the other end of a connection sends.
#[derive(Debug, Default)]
pub struct ReverseSeries {
    /// segments
    pub cwnd_packets: Vec<u32>,
    /// payload bytes sent and not acknowledged
    pub in_flight_bytes: Vec<u64>,
    /// payload bit/s delivered in order since the sample before
    pub goodput_bps: Vec<f64>,
    /// segments sent again since the start
    pub retransmitted_segments: Vec<u64>,
}

/// The values of a flow at one time in the series.
pub struct FlowRow {
    /// Since the start of the run.
    pub time: Time,
    /// Index of the flow.
    pub flow: usize,
    /// Segments.
    pub cwnd_packets: u32,
    /// Segments; None: there is no threshold yet.
    pub ssthresh_packets: Option<u32>,
    /// None before the first sample.
    pub srtt: Option<Span>,
    /// Payload sent and not acknowledged, bytes.
    pub in_flight_bytes: u64,
    /// Payload bit/s delivered in order since the sample before.
    pub goodput_bps: f64,
    /// Segments sent again since the start.
    pub retransmitted_segments: u64,
    /// Duplicate ACKs at the sender since the start; None where the backend does not know them.
    pub duplicate_acks: Option<u64>,
    /// Age of the oldest message not delivered; zero for bulk.
    pub lag: Span,
    /// Bytes issued and not delivered; 0 for bulk.
    pub lag_bytes: u64,
}

impl FlowSeries {
    /// Adds a row.
    pub fn push(&mut self, row: FlowRow) {
        self.time_s.push(row.time.as_secs_f64());
        self.flow.push(row.flow as i32);
        self.cwnd_packets.push(row.cwnd_packets);
        self.ssthresh_packets.push(row.ssthresh_packets);
        self.srtt_s.push(row.srtt.map_or(f64::NAN, Span::as_secs_f64));
        self.in_flight_bytes.push(row.in_flight_bytes);
        self.goodput_bps.push(row.goodput_bps);
        self.retransmitted_segments.push(row.retransmitted_segments);
        self.duplicate_acks.extend(row.duplicate_acks);
        self.lag_s.push(row.lag.as_secs_f64());
        self.lag_bytes.push(row.lag_bytes);
    }
}

impl FlowSeries {
    /// Takes the first rows off, `rows` at most.
    pub fn take_rows(&mut self, rows: usize) -> FlowSeries {
        fn first<T>(column: &mut Vec<T>, rows: usize) -> Vec<T> {
            let rest = column.split_off(rows.min(column.len()));
            std::mem::replace(column, rest)
        }
        FlowSeries {
            time_s: first(&mut self.time_s, rows),
            flow: first(&mut self.flow, rows),
            cwnd_packets: first(&mut self.cwnd_packets, rows),
            ssthresh_packets: first(&mut self.ssthresh_packets, rows),
            srtt_s: first(&mut self.srtt_s, rows),
            in_flight_bytes: first(&mut self.in_flight_bytes, rows),
            goodput_bps: first(&mut self.goodput_bps, rows),
            retransmitted_segments: first(&mut self.retransmitted_segments, rows),
            duplicate_acks: first(&mut self.duplicate_acks, rows),
            lag_s: first(&mut self.lag_s, rows),
            lag_bytes: first(&mut self.lag_bytes, rows),
            reverse: ReverseSeries::default(),
            udt: UdtSeries::default(),
        }
    }

    /// Adds the rows of `more` behind its own. False, and nothing is added, when its columns are not equally long.
    pub fn append(&mut self, more: FlowSeries) -> bool {
        let rows = more.time_s.len();
        let lengths = [
            more.flow.len(),
            more.cwnd_packets.len(),
            more.ssthresh_packets.len(),
            more.srtt_s.len(),
            more.in_flight_bytes.len(),
            more.goodput_bps.len(),
            more.retransmitted_segments.len(),
            more.lag_s.len(),
            more.lag_bytes.len(),
        ];
        let duplicates = more.duplicate_acks.len();
        if lengths.iter().any(|&length| length != rows) || (duplicates != 0 && duplicates != rows) {
            return false;
        }
        self.time_s.extend(more.time_s);
        self.flow.extend(more.flow);
        self.cwnd_packets.extend(more.cwnd_packets);
        self.ssthresh_packets.extend(more.ssthresh_packets);
        self.srtt_s.extend(more.srtt_s);
        self.in_flight_bytes.extend(more.in_flight_bytes);
        self.goodput_bps.extend(more.goodput_bps);
        self.retransmitted_segments.extend(more.retransmitted_segments);
        self.duplicate_acks.extend(more.duplicate_acks);
        self.lag_s.extend(more.lag_s);
        self.lag_bytes.extend(more.lag_bytes);
        true
    }
}

impl FlowSeries {
    /// The series of a run of whose flows each of `parts` has some: at each time, in the order of the flows.
    pub fn joined(parts: &[&FlowSeries]) -> FlowSeries {
        let rows = |part: usize| (0..parts[part].time_s.len()).map(move |row| (part, row));
        let mut order: Vec<_> = (0..parts.len()).flat_map(rows).collect();
        let key = |&(part, row): &(usize, usize)| (parts[part].time_s[row], parts[part].flow[row]);
        order.sort_by(|one, other| {
            let ((time, flow), (other_time, other_flow)) = (key(one), key(other));
            time.total_cmp(&other_time).then(flow.cmp(&other_flow))
        });
        FlowSeries {
            time_s: gathered(&order, |part| &parts[part].time_s),
            flow: gathered(&order, |part| &parts[part].flow),
            cwnd_packets: gathered(&order, |part| &parts[part].cwnd_packets),
            ssthresh_packets: gathered(&order, |part| &parts[part].ssthresh_packets),
            srtt_s: gathered(&order, |part| &parts[part].srtt_s),
            in_flight_bytes: gathered(&order, |part| &parts[part].in_flight_bytes),
            goodput_bps: gathered(&order, |part| &parts[part].goodput_bps),
            retransmitted_segments: gathered(&order, |part| &parts[part].retransmitted_segments),
            duplicate_acks: gathered(&order, |part| &parts[part].duplicate_acks),
            lag_s: gathered(&order, |part| &parts[part].lag_s),
            lag_bytes: gathered(&order, |part| &parts[part].lag_bytes),
            reverse: ReverseSeries {
                cwnd_packets: gathered(&order, |part| &parts[part].reverse.cwnd_packets),
                in_flight_bytes: gathered(&order, |part| &parts[part].reverse.in_flight_bytes),
                goodput_bps: gathered(&order, |part| &parts[part].reverse.goodput_bps),
                retransmitted_segments: gathered(&order, |part| &parts[part].reverse.retransmitted_segments),
            },
            udt: UdtSeries {
                sending_rate_bps: gathered(&order, |part| &parts[part].udt.sending_rate_bps),
                lost_packets: gathered(&order, |part| &parts[part].udt.lost_packets),
            },
        }
    }
}

/// A column in the `order` of (part, row); empty where a part has none.
fn gathered<'a, T: Copy + 'a>(order: &[(usize, usize)], column: impl Fn(usize) -> &'a Vec<T>) -> Vec<T> {
    order.iter().filter_map(|&(part, row)| column(part).get(row).copied()).collect()
}

/// NaN as null, since JSON has no NaN.
fn with_nulls<S: Serializer>(values: &[f64], into: S) -> Result<S::Ok, S::Error> {
    into.collect_seq(values.iter().map(|value| Some(*value).filter(|value| !value.is_nan())))
}

/// Null as NaN.
fn with_nan<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    Ok(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect())
}

/// A slow-start threshold out of a sender's state, in segments; None: there is none yet.
pub fn ssthresh(packets: u32) -> Option<u32> {
    (packets != INFINITE_SSTHRESH).then_some(packets)
}

/// The values of a sender in the series.
#[derive(Clone, Copy, Debug, Default)]
pub struct SenderSample {
    /// Segments; for a transport without a window its limit of data in flight.
    pub cwnd_packets: u32,
    /// Segments; None: there is no threshold.
    pub ssthresh_packets: Option<u32>,
    /// None before the first sample.
    pub srtt: Option<Span>,
    /// Payload sent and not acknowledged, bytes.
    pub in_flight_bytes: u64,
    /// Values that only a sender of UDT has.
    pub udt: Option<UdtSample>,
}

/// The values of a sender of UDT beyond those of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdtSample {
    /// Rate at which full IP packets go out.
    pub sending_rate: Rate,
    /// Packets reported lost that wait to be sent again.
    pub lost_packets: u64,
}

impl ReverseSeries {
    /// Adds a row for a connection: its other end, the bits per second that arrived of it, the segments that it has
    /// sent again so far; None: it sends nothing.
    pub fn sample(&mut self, sender: Option<(SenderSample, f64, u64)>) {
        self.cwnd_packets.push(sender.map_or(0, |(sample, ..)| sample.cwnd_packets));
        self.in_flight_bytes.push(sender.map_or(0, |(sample, ..)| sample.in_flight_bytes));
        self.goodput_bps.push(sender.map_or(0.0, |(_, bits, _)| bits));
        self.retransmitted_segments.push(sender.map_or(0, |(.., again)| again));
    }
}

/// Links between one that is sampled and that whose memory is fetched meanwhile.
const SAMPLED_SOON: usize = 4;

/// Columns of the link series.
#[derive(Clone, Debug, Default)]
pub struct LinkSeries {
    /// s since the start of the run
    pub time_s: Vec<f64>,
    /// index of the link
    pub link: Vec<i32>,
    /// packets waiting
    pub queue_packets: Vec<u64>,
    /// bytes waiting
    pub queue_bytes: Vec<u64>,
    /// packets dropped since the start, all reasons
    pub dropped_packets: Vec<u64>,
    /// bytes delivered since the start
    pub delivered_bytes: Vec<u64>,
}

impl LinkSeries {
    /// The series of a run of which `parts` have the same rows, each the values of those links that `part_of` gives it.
    pub fn joined(parts: &[&LinkSeries], part_of: impl Fn(usize) -> usize) -> LinkSeries {
        let order: Vec<_> = (0..).zip(&parts[0].link).map(|(row, &link)| (part_of(link as usize), row)).collect();
        LinkSeries {
            time_s: gathered(&order, |part| &parts[part].time_s),
            link: gathered(&order, |part| &parts[part].link),
            queue_packets: gathered(&order, |part| &parts[part].queue_packets),
            queue_bytes: gathered(&order, |part| &parts[part].queue_bytes),
            dropped_packets: gathered(&order, |part| &parts[part].dropped_packets),
            delivered_bytes: gathered(&order, |part| &parts[part].delivered_bytes),
        }
    }

    /// Adds a row for each of `links` at each of `times`, which are in s since the start of the run, too.
    pub fn sample<P: Packet>(&mut self, times: &[(f64, Time)], links: &mut [Link<P>]) {
        let count = links.len();
        for &(time_s, _) in times {
            self.time_s.extend(std::iter::repeat_n(time_s, count));
            self.link.extend(0..count as i32);
        }
        let (first, rows) = (self.queue_packets.len(), times.len() * count);
        fn added<T: Copy + Default>(column: &mut Vec<T>, first: usize, rows: usize) -> &mut [T] {
            column.resize(first + rows, T::default());
            &mut column[first..]
        }
        let queue_packets = added(&mut self.queue_packets, first, rows);
        let queue_bytes = added(&mut self.queue_bytes, first, rows);
        let dropped_packets = added(&mut self.dropped_packets, first, rows);
        let delivered_bytes = added(&mut self.delivered_bytes, first, rows);
        // Link by link: what each has fetched into the cache then gives several rows.
        for index in 0..count {
            for (ahead, next) in [(2 * SAMPLED_SOON, false), (SAMPLED_SOON, true)] {
                if let Some(link) = links.get(index + ahead) {
                    link.prefetch_sample(next);
                }
            }
            for (nth, &(_, now)) in times.iter().enumerate() {
                let (sample, row) = (links[index].sample(now), nth * count + index);
                queue_packets[row] = sample.queue_packets;
                queue_bytes[row] = sample.queue_bytes;
                dropped_packets[row] = sample.dropped_packets;
                delivered_bytes[row] = sample.delivered_bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time: Time) -> FlowRow {
        let srtt = (time > Time::ZERO).then_some(Span::from_millis(3));
        FlowRow {
            time,
            flow: 1,
            cwnd_packets: 10,
            ssthresh_packets: None,
            srtt,
            in_flight_bytes: 5,
            goodput_bps: 1.5,
            retransmitted_segments: 0,
            duplicate_acks: None,
            lag: Span::ZERO,
            lag_bytes: 0,
        }
    }

    #[test]
    fn a_series_in_pieces_of_json_is_the_same_series() {
        let (mut series, mut back) = (FlowSeries::default(), FlowSeries::default());
        (0..5).for_each(|ms| series.push(row(Time::ZERO + Span::from_millis(ms))));
        let mut pieces = vec![];
        while !series.time_s.is_empty() {
            pieces.push(serde_json::to_string(&series.take_rows(2)).unwrap());
        }
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|piece| back.append(serde_json::from_str(piece).unwrap())));
        assert_eq!(back.time_s, [0.0, 0.001, 0.002, 0.003, 0.004]);
        assert!(back.srtt_s[0].is_nan() && back.srtt_s[1] == 0.003);
        assert_eq!((back.ssthresh_packets, back.duplicate_acks.len()), (vec![None; 5], 0));
    }

    #[test]
    fn columns_of_different_lengths_are_refused() {
        let mut more = FlowSeries::default();
        more.push(row(Time::ZERO));
        more.lag_bytes.push(1);
        let mut series = FlowSeries::default();
        assert!(!series.append(more) && series.time_s.is_empty());
    }
}
