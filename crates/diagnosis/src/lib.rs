//! What limits a TCP flow, told from samples of its TCP_INFO, without I/O.
//!
//! **Invariant: a diagnosis names the counters that it rests on, and says when they do not decide.**

mod counters;
mod receiver;
mod sample;
mod sender;
mod verdict;

pub use counters::Counters;
pub use sample::{Flow, Sample};
pub use verdict::{Confidence, Diagnosis, Limit, Role};

/// Returns the diagnosis of a flow; None where nothing moved and nothing waits to.
pub fn diagnose(flow: &Flow) -> Option<Diagnosis> {
    let (first, last) = (flow.samples.first()?, flow.samples.last()?);
    let acked = last.bytes_acked.saturating_sub(first.bytes_acked);
    let received = last.bytes_received.saturating_sub(first.bytes_received);
    let elapsed_us = last.at_us.saturating_sub(first.at_us);
    let (waits, unread) = (last.unacknowledged_bytes > 0, last.unread_bytes > 0);
    if acked == 0 && received == 0 && !waits && !unread {
        return None;
    }
    let role = if acked >= received && (acked > 0 || waits) { Role::Sender } else { Role::Receiver };
    let bytes = acked.max(received);
    let mut goodput_bps = bytes as f64 * 8e6 / elapsed_us.max(1) as f64;
    let mut counters = None;
    let answer = match role {
        Role::Sender => {
            counters = Counters::of(flow);
            match &counters {
                Some(seen) => {
                    goodput_bps = seen.goodput_bps;
                    sender::limit_of(seen, &flow.congestion_control)
                }
                None => Err("seen too briefly".into()),
            }
        }
        Role::Receiver => receiver::limit_of(flow, goodput_bps),
    };
    let (limit, confidence, because) = match answer {
        Ok((limit, confidence, because)) => (Some(limit), Some(confidence), because),
        Err(why) => (None, None, why),
    };
    Some(Diagnosis { role, limit, confidence, because, bytes, goodput_bps, counters })
}

/// Returns the diagnosis of each flow that carried something, by its place in `flows`, those with most bytes first. Of a
/// connection with both ends among them the sender's is given, with what the receiver knows of its own window.
pub fn diagnose_all(flows: &[Flow]) -> Vec<(usize, Diagnosis)> {
    let mut found: Vec<(usize, Diagnosis)> =
        flows.iter().enumerate().filter_map(|(place, flow)| Some((place, diagnose(flow)?))).collect();
    let mut receivers = vec![];
    for place in 0..found.len() {
        let (here, sender) = &found[place];
        if sender.role == Role::Receiver {
            continue;
        }
        let is_far_end = |(there, far): &(usize, Diagnosis)| {
            let (near, peer) = (&flows[*here], &flows[*there]);
            far.role == Role::Receiver && peer.local == near.remote && peer.remote == near.local
        };
        let Some(far) = found.iter().position(is_far_end) else { continue };
        receivers.push(found[far].0);
        let knows = |limit| matches!(limit, None | Some(Limit::ReceiveWindow | Limit::ReceivingApplication));
        if knows(sender.limit) && found[far].1.limit.is_some() {
            let Diagnosis { limit, confidence, because, .. } = found[far].1.clone();
            let sender = &mut found[place].1;
            (sender.limit, sender.confidence) = (limit, confidence);
            sender.because = format!("{because} (seen at its receiver)");
        }
    }
    found.retain(|(place, _)| !receivers.contains(place));
    found.sort_by_key(|(place, diagnosis)| (std::cmp::Reverse(diagnosis.bytes), *place));
    found
}
