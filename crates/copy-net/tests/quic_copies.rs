//! Copies over QUIC.

use crate::copies::{noise, same, tree};
use crate::ends::Pair;
use crate::folders::Folder;
use copy::{CopyOptions, TransportSpec};
use copy_net::ErrorKind;
use std::collections::BTreeMap;
use std::fs;

fn over_quic(mut pair: Pair, name: Option<&str>, source: Option<&str>) -> Pair {
    for end in [&mut pair.send, &mut pair.receive] {
        end.transport = TransportSpec::Quic {
            congestion_control: name.map(str::to_owned),
            source: source.map(str::to_owned),
            parameters: BTreeMap::new(),
            window_bytes: Some(8 << 20),
        };
    }
    pair
}

#[test]
fn a_tree_is_copied_over_quic_whichever_end_listens() {
    for turned in [false, true] {
        let folder = Folder::new("quic-copies");
        tree(&folder.join("from"));
        let to = folder.join("to");
        let pair = Pair::new(&[&folder.text("from/")], &to, CopyOptions::default());
        let pair = over_quic(if turned { pair.turned() } else { pair }, Some("storage_friendly"), None);
        let ended = pair.run();
        let (send, receive) = (ended.send.expect("sent"), ended.receive.expect("received"));
        assert_eq!(send.root, receive.root);
        assert_eq!(receive.faults, []);
        same(&folder.join("from"), &to);
    }
}

#[test]
fn a_control_of_ones_own_carries_a_copy_over_quic() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/congestion_controls/multcp.c");
    let source = fs::read_to_string(file).expect("the example");
    let folder = Folder::new("quic-own");
    fs::create_dir_all(folder.join("from")).expect("made");
    fs::write(folder.join("from/file"), noise(1, 3_000_000)).expect("written");
    let to = folder.join("to");
    let pair = Pair::new(&[&folder.text("from/")], &to, CopyOptions::default());
    let ended = over_quic(pair, None, Some(&source)).run();
    ended.send.expect("sent");
    ended.receive.expect("received");
    same(&folder.join("from"), &to);
}

#[test]
fn a_control_that_is_none_is_the_users_mistake() {
    let folder = Folder::new("quic-wrong");
    fs::create_dir_all(folder.join("from")).expect("made");
    let to = folder.join("to");
    let wrong = |name, source| {
        let pair = Pair::new(&[&folder.text("from/")], &to, CopyOptions::default());
        let ended = over_quic(pair, name, source).run();
        let error = ended.receive.expect_err("refused");
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        error.text
    };
    assert!(wrong(Some("fastest"), None).contains("congestion_control = \"fastest\": one of bbr, "));
    assert!(wrong(None, Some("int x;")).contains("transport.source: "));
}
