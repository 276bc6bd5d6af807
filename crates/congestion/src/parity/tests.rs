//! A comparison finds what differs and nothing else.

use super::*;
use crate::builtin::find;

/// A recording whose answers are the native build's own, as BPF's would be if it did the same.
fn answered(algorithm: &Algorithm, values: &BTreeMap<String, i64>, given: &[u8]) -> Vec<HookCall> {
    let mut control = Controller::new(algorithm, values).expect("values in range");
    let params = control.sock().params;
    let mut recording = vec![];
    for before in given.chunks_exact(HOOK_CALL_BYTES).map(HookCall::read) {
        *control.sock_mut() = before.sock.clone();
        control.sock_mut().params = params;
        let result = call(&mut control, &before).unwrap_or(0);
        let after = HookCall { after: 1, result, sock: control.sock().clone(), ..before.clone() };
        recording.extend([before, after]);
    }
    recording
}

fn bytes(recording: &[HookCall]) -> Vec<u8> {
    let mut bytes = vec![];
    recording.iter().for_each(|one| one.write(&mut bytes));
    bytes
}

fn none() -> BTreeMap<String, i64> {
    BTreeMap::new()
}

fn htcp() -> (Algorithm, Vec<HookCall>) {
    let algorithm = find("htcp").expect("built in");
    let given = synthetic(&algorithm, &none(), 1, 3000).expect("no values");
    let recording = answered(&algorithm, &none(), &given);
    (algorithm, recording)
}

#[test]
fn the_same_answers_are_no_difference_and_every_hook_is_reached() {
    for algorithm in crate::builtin() {
        let given = synthetic(algorithm, &none(), 7, 3000).expect("no values");
        let recording = answered(algorithm, &none(), &given);
        let found = replay(algorithm, &none(), &bytes(&recording)).expect("no values");
        assert_eq!((found.steps, found.differing, found.unpaired, found.breaks), (3000, 0, 0, 0), "{found:?}");
        for hook in algorithm.hooks() {
            let index = HOOKS.iter().position(|name| *name == hook).expect("a hook");
            // A connection ends seldom: its hook is met at the end of few.
            assert!(found.by_hook[index] > 2, "{}: {hook}: {found:?}", algorithm.name());
        }
    }
}

#[test]
fn one_bit_in_any_field_is_found_with_its_step_hook_and_values() {
    let (algorithm, recording) = htcp();
    let at = recording.iter().position(|one| one.hook == SSTHRESH && one.after == 1).expect("a loss");
    let step = at as u64 / 2 + 1;
    type Change = fn(&mut HookCall);
    let changes: [(&str, Change); 6] = [
        ("snd_cwnd", |one| one.sock.snd_cwnd ^= 1),
        ("snd_cwnd_cnt", |one| one.sock.snd_cwnd_cnt ^= 1 << 31),
        ("pacing_rate", |one| one.sock.pacing_rate ^= 1 << 63),
        ("ecn_flags", |one| one.sock.ecn_flags ^= 4),
        ("private[12]", |one| one.sock.private[12] ^= 1 << 40),
        ("result", |one| one.result ^= 1),
    ];
    for (field, change) in changes {
        let mut changed = recording.clone();
        change(&mut changed[at]);
        let found = replay(&algorithm, &none(), &bytes(&changed)).expect("no values");
        assert_eq!(found.differing, 1, "{field}");
        let [difference] = &found.differences[..] else { panic!("{:?}", found.differences) };
        assert_eq!((difference.step, difference.hook, &*difference.field), (step, "ssthresh", field));
        assert_ne!(difference.bpf, difference.native);
        // The next call must begin with the state that this one left.
        assert_eq!(found.breaks, u64::from(field == "private[12]"), "{field}");
    }
}

#[test]
fn another_parameter_is_a_difference() {
    let algorithm = find("storage_friendly").expect("built in");
    let quarter = BTreeMap::from([("reduction".to_owned(), 250_000)]);
    let given = synthetic(&algorithm, &quarter, 3, 3000).expect("in range");
    let recording = bytes(&answered(&algorithm, &quarter, &given));
    assert_eq!(replay(&algorithm, &quarter, &recording).expect("in range").differing, 0);
    let half = BTreeMap::from([("reduction".to_owned(), 500_000)]);
    let found = replay(&algorithm, &half, &recording).expect("in range");
    assert!(found.differing > 10 && found.differences.iter().all(|d| d.hook == "ssthresh" && d.field == "result"));
}

#[test]
fn what_is_missing_is_counted_and_what_is_left_is_still_compared() {
    let (algorithm, mut recording) = htcp();
    // The second half of the 10th call and the first of the 20th: in between all is compared.
    recording.remove(38);
    recording.remove(18 + 1);
    let found = replay(&algorithm, &none(), &bytes(&recording)).expect("no values");
    assert_eq!((found.steps, found.unpaired, found.differing), (2998, 2, 0));
}

#[test]
fn a_clock_that_goes_on_during_a_call_may_give_either_value() {
    let algorithm = find("cubic").expect("built in");
    let given = synthetic(&algorithm, &none(), 5, 20_000).expect("no values");
    let recording = answered(&algorithm, &none(), &given);
    // A call whose answer depends on how long the sender was idle.
    let at = (0..recording.len() / 2).map(|i| 2 * i).find(|&i| {
        let mut changed = vec![recording[i].clone(), recording[i + 1].clone()];
        changed[0].sock.lsndtime_us = changed[0].sock.tcp_mstamp_us;
        replay(&algorithm, &none(), &bytes(&changed)).expect("no values").differing == 1
    });
    let at = at.expect("cubic's epoch begins later by the time of idleness");
    let mut pair = [recording[at].clone(), recording[at + 1].clone()];
    pair[0].sock.lsndtime_us = pair[0].sock.tcp_mstamp_us;
    assert_eq!(replay(&algorithm, &none(), &bytes(&pair)).expect("no values").differing, 1);
    pair[1].ticks += 1;
    let found = replay(&algorithm, &none(), &bytes(&pair)).expect("no values");
    assert_eq!((found.ticked, found.differing), (1, 0));
}
