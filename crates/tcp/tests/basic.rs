//! Handshake and plain transfer.
use crate::common::*;
use tcp::config::{Config, Recovery};
use tcp::segment::{flags, WindowScale};
use tcp::State;
use units::Time;

#[test]
fn options_are_negotiated() {
    let pair = Pair::new(Config::default()).connect();
    let syn = pair.sent[0].seg;
    assert!(syn.has(flags::SYN | flags::TIMESTAMPS | flags::SACK_PERMITTED) && !syn.has(flags::ACK));
    assert_eq!((syn.mss, syn.wscale), (1460, Some(WindowScale::new(14))));
    assert_eq!(pair.client.mss(), 1448);
    assert_eq!(pair.client.state(), State::Established);
    assert_eq!(pair.client.established_at(), Some(at_ms(100)));
    assert_eq!(pair.server.established_at(), Some(at_ms(150)));
    assert_eq!(pair.client.srtt(), Some(ms(100)));
}

#[test]
fn bulk_is_delivered_in_every_era() {
    for recovery in [Recovery::NewReno, Recovery::Sack, Recovery::Rack] {
        let mut pair = Pair::new(Config { recovery, ..Config::default() }).bottleneck(100_000_000, 100).connect();
        pair.write(20_000_000);
        pair.run_until_received(20_000_000, Time::ZERO + units::Span::from_secs(200));
        pair.close();
        pair.run_for(ms(1000));
        assert_eq!(pair.client.state(), State::FinWait2);
        assert_eq!(pair.server.state(), State::CloseWait);
    }
}
