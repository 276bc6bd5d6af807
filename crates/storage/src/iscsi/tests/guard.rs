//! Violations that a side refuses.

use super::*;
use wire::iscsi::{LoginRequest, NopIn, ReadyToTransfer, NO_TAG};

/// Status of a login in one step with more text.
fn login(settings: Settings, more: &str) -> (u8, u8) {
    let config = TargetConfig { settings, ..TargetConfig::new(NAME) };
    let mut target = Target::new(config, device());
    let id = target.open(Time(0), "127.0.0.1:3260", [0; 17]);
    let text = format!("InitiatorName=iqn.2026-01.example:a\0TargetName={NAME}\0{more}");
    let request = LoginRequest { transit: true, csg: 1, nsg: 3, ..LoginRequest::default() };
    target.handle_pdu(Time(0), id, Pdu::with(request, text.into_bytes().into()));
    let out = target.poll_pdu(id).expect("an answer");
    assert!(out.pdu.data.len() <= 8192);
    let Header::LoginResponse(response) = out.pdu.header else { panic!("{out:?}") };
    assert_eq!(target.session_count(), usize::from(response.status_class == 0));
    (response.status_class, response.status_detail)
}

#[test]
fn a_login_settles_each_key_once() {
    assert_eq!(login(Settings::default(), "MaxBurstLength=1024\0"), (0, 0));
    assert_eq!(login(Settings::default(), "MaxBurstLength=1024\0MaxBurstLength=2048\0"), (2, 0));
    // A rejected key was not settled.
    assert_eq!(login(Settings::default(), "MaxBurstLength=1\0MaxBurstLength=2048\0"), (0, 0));
    let mut ours = Negotiation::new(Settings::default(), false);
    ours.offers();
    ours.handle("MaxBurstLength", "1024").unwrap();
    let error = ours.handle("MaxBurstLength", "2048").unwrap_err();
    assert!(error.contains("MaxBurstLength=2048") && error.contains("once"), "{error}");
}

#[test]
fn a_required_digest_is_not_waived() {
    let settings = Settings { data_digest: Digest::Required, ..Settings::default() };
    assert_eq!(login(settings, "DataDigest=CRC32C\0"), (0, 0));
    assert_eq!(login(settings, "DataDigest=None\0"), (2, 0));
    assert_eq!(login(settings, ""), (2, 0));
    let mut ours = Negotiation::new(settings, false);
    ours.offers();
    ours.handle("DataDigest", "NotUnderstood").unwrap();
    assert_eq!(ours.lacks(), Some("DataDigest"));
}

#[test]
fn keys_without_end_end_the_login() {
    assert_eq!(login(Settings::default(), &"X=1\0".repeat(5000)), (2, 0));
}

/// A session with a write whose data is asked for, and what the initiator does with one more PDU.
fn refusal(write: bool, more: impl Fn(&mut Rig, u32)) -> Option<String> {
    let mut target = TargetConfig::new(NAME);
    (target.settings.initial_r2t, target.settings.immediate_data) = (true, false);
    let mut rig = Rig::new(initiator(), target, DataMode::Bytes);
    rig.run(SECOND);
    if write {
        rig.write(0, pattern(4096, 1));
    }
    let tag = rig.initiator.poll_pdu(0).map_or(NO_TAG, |out| match out.pdu.header {
        Header::ScsiCommand(header) => header.itt,
        other => panic!("{other:?}"),
    });
    more(&mut rig, tag);
    std::iter::from_fn(|| rig.initiator.poll_event()).find_map(|event| match event {
        Event::Lost(why) => Some(why),
        _ => None,
    })
}

#[test]
fn a_target_that_does_not_read_is_disconnected() {
    let ask = |count: u32| {
        refusal(true, |rig, itt| {
            for r2t_sn in 0..count {
                let r2t = ReadyToTransfer { itt, ttt: r2t_sn, r2t_sn, desired_length: 512, ..Default::default() };
                rig.initiator.handle_pdu(rig.now, 0, Pdu::new(r2t));
            }
        })
    };
    // Settings::default() on both sides: 8.
    assert_eq!(ask(8), None);
    assert!(ask(9).unwrap().contains("MaxOutstandingR2T=8"));
    let ping = |count: u32| {
        refusal(false, |rig, _| {
            for ttt in 0..count {
                rig.initiator.handle_pdu(rig.now, 0, Pdu::new(NopIn { itt: NO_TAG, ttt, ..Default::default() }));
            }
        })
    };
    assert_eq!(ping(64), None);
    assert!(ping(65).unwrap().contains("pings"));
}

#[test]
fn a_session_without_all_its_connections_fails() {
    let config = InitiatorConfig { connections: 2, attempts: 3, ..initiator() };
    let mut rig = Rig::new(config, TargetConfig::new(NAME), DataMode::Bytes);
    for _ in 0..1000 {
        // The second connection is closed as soon as it is there, as by a target with room for one.
        if rig.pipes.contains_key(&1) {
            rig.cut(1);
        }
        if !rig.step() {
            rig.now += SECOND;
            rig.initiator.handle_timeout(rig.now);
        }
    }
    let failed = |event: &&Event| matches!(event, Event::Failed(_));
    assert_eq!(rig.events.iter().filter(failed).count(), 1, "{:?}", rig.events);
    assert!(rig.initiator.is_over());
}

#[test]
fn logins_beyond_the_limit_are_refused_except_reinstatements() {
    let config = TargetConfig { max_connections: Some(2), ..TargetConfig::new(NAME) };
    let mut target = Target::new(config, device());
    let mut login = |who: &str| {
        let id = target.open(Time(0), "127.0.0.1:3260", [0; 17]);
        assert_eq!(target.login_progress(id), Some(LoginProgress::Silent));
        let text = format!("InitiatorName=iqn.2026-01.example:{who}\0TargetName={NAME}\0");
        let request = LoginRequest { transit: true, csg: 1, nsg: 3, ..LoginRequest::default() };
        target.handle_pdu(Time(1), id, Pdu::with(request, text.into_bytes().into()));
        assert_eq!(target.login_progress(id), None);
        match target.poll_pdu(id).expect("an answer").pdu.header {
            Header::LoginResponse(response) => (response.status_class, response.status_detail),
            other => panic!("{other:?}"),
        }
    };
    // Both sessions take a place each; a third finds none, and the same initiator port anew takes its own again.
    assert_eq!([login("a"), login("b"), login("c"), login("a")], [(0, 0), (0, 0), (3, 2), (0, 0)]);
}
