//! Commands of one session over several connections: their numbers order them, whichever connection is faster.

use super::*;
use wire::iscsi::{DataOut, ScsiCommand, NO_TAG};

#[test]
fn commands_spread_over_connections_and_run_in_their_order() {
    for allegiance in [Allegiance::RoundRobin, Allegiance::LeastOutstanding] {
        let mut config = InitiatorConfig { connections: 4, allegiance, ..initiator() };
        config.settings.header_digest = Digest::Required;
        config.settings.data_digest = Digest::Required;
        let mut rig = Rig::new(config, TargetConfig::new(NAME), DataMode::Bytes);
        rig.run(SECOND);
        // The last write of a place counts, whatever connection it came on.
        for round in 0..400 {
            rig.write(0, pattern(512, round));
        }
        let read = rig.read(0, 1);
        rig.run(SECOND);
        assert_eq!(rig.done(read).data.to_payload(), pattern(512, 399));
        for index in 0..4 {
            let here = rig.seen.iter().filter(|(at, name)| *at == index && *name == "ScsiCommand").count();
            assert!(here > 50, "{here} commands on connection {index}");
        }
        assert_eq!((rig.target.session_count(), rig.target.connection_count()), (1, 4));
    }
}

/// A session of two connections with unsolicited data in segments of 4 KiB, up.
fn pair() -> Rig {
    let mut config = InitiatorConfig { connections: 2, ..initiator() };
    config.settings.initial_r2t = false;
    let mut target = TargetConfig::new(NAME);
    target.settings.max_recv_bytes = 4096;
    let mut rig = Rig::new(config, target, DataMode::Bytes);
    rig.run(SECOND);
    assert_eq!(rig.target.connection_count(), 2);
    rig
}

#[test]
fn unsolicited_data_of_an_early_command_is_kept() {
    for order in [[0, 1], [1, 0]] {
        let mut rig = pair();
        let data = [pattern(65_536, 1), pattern(65_536, 2)];
        let writes = [rig.write(0, data[0].clone()), rig.write(128, data[1].clone())];
        for index in order {
            while let Some(out) = rig.initiator.poll_pdu(index) {
                rig.target.handle_pdu(rig.now, rig.pipes[&index].at_target, out.pdu);
            }
        }
        rig.run(SECOND);
        writes.iter().for_each(|&id| assert_eq!(rig.done(id).status, status::GOOD));
        let read = rig.read(0, 256);
        rig.run(SECOND);
        let all = rig.done(read).data.to_payload().to_bytes();
        assert!(all[..65_536] == data[0].to_bytes() && all[65_536..] == data[1].to_bytes());
    }
}

#[test]
fn unbounded_early_data_ends_the_connection() {
    for length in [0, 4096] {
        let mut rig = pair();
        let at = rig.pipes[&0].at_target;
        let cdb = cdb(0x8a, 0, 2048);
        let command =
            ScsiCommand { write: true, itt: 77, expected_length: 1 << 20, cmd_sn: 5, cdb, ..Default::default() };
        rig.target.handle_pdu(rig.now, at, Pdu::with(command, Payload::default()));
        for data_sn in 0..20_000 {
            let header = DataOut { itt: 77, ttt: NO_TAG, data_sn, ..DataOut::default() };
            rig.target.handle_pdu(rig.now, at, Pdu::with(header, Payload::Zeros(length)));
        }
        assert!(rig.target.is_closing(at), "{length}");
        assert!(!rig.target.is_closing(rig.pipes[&1].at_target));
    }
}
