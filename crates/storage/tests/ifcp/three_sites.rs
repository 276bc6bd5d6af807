//! Three regions whose hosts have one address each, and all the same: New York, Los Angeles and Austin of
//! Muknahallipatna et al., section 3.

use super::net::{data, settings, Net};
use std::collections::BTreeSet;
use storage::fc::fabric::PortKey;
use wire::fc::{FcId, Frame, Sof};
use wire::ifcp::AddressMode;

/// Three regions that know each other's hosts, each host logged in at every other.
fn three_sites() -> (Net, Vec<(usize, u64, FcId)>) {
    let mut net = Net::new(vec![settings(AddressMode::Translation); 3]);
    let hosts: Vec<_> = (0..3).map(|site| (site, site as u64 + 1, net.attach(site, site as u64 + 1))).collect();
    net.join(&hosts);
    for (from, to) in [(0, 1), (0, 2), (1, 2)] {
        net.log_in(hosts[from], hosts[to]);
    }
    (net, hosts)
}

#[test]
fn equal_addresses_of_three_regions_stay_distinct() {
    let (mut net, hosts) = three_sites();
    assert_eq!(hosts.iter().map(|host| host.2).collect::<BTreeSet<_>>().len(), 1, "each fabric gave the same address");
    for &(site, from, s_id) in &hosts {
        let mut local = BTreeSet::from([s_id]);
        for &(other, to, d_id) in hosts.iter().filter(|host| host.1 != from) {
            let proxy = net.alias(site, to);
            assert!(local.insert(proxy), "a proxy address of its own");
            let content = format!("from {from} to {to}");
            net.send_frame(site, PortKey(from as u32), data(s_id, proxy, 1, 0, content.as_bytes()));
            net.run();
            let frame = net.take(other, PortKey(to as u32));
            assert_eq!(frame.payload.to_bytes(), content);
            assert_eq!((frame.header.d_id, frame.header.s_id), (d_id, net.alias(other, from)));
        }
        assert_eq!(net.open(site).len(), 2, "a session for each pair, and so a connection");
    }
    assert!(net.sites.iter().all(|site| site.got.is_empty()), "no frame came to anybody else");
}

#[test]
fn frames_between_switches_reach_no_other_region() {
    let (mut net, hosts) = three_sites();
    for &(site, from, s_id) in &hosts {
        for &(_, to, _) in hosts.iter().filter(|host| host.1 != from) {
            let frame = data(s_id, net.alias(site, to), 1, 0, b"of a switch");
            net.send_frame(site, PortKey(from as u32), Frame { sof: Sof::Fabric, ..frame });
        }
    }
    net.run();
    assert!(net.sites.iter().all(|site| site.got.is_empty()));
}
