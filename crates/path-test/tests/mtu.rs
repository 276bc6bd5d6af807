//! The search for the path's MTU.

use crate::line::{found, Link, Path};
use path_test::estimate::Outcome;
use path_test::mtu::{Mtu, Settings};
use proptest::prelude::*;

/// Two links, the second with an MTU of `mtu_bytes`.
fn narrow(mtu_bytes: u32) -> Path {
    let link = |mtu_bytes| Link { mtu_bytes, ..Link::new(1_000_000_000, 1_000_000) };
    Path::new(vec![link(65_535), link(mtu_bytes)])
}

fn searched(path: &mut Path) -> Outcome {
    path.play(&mut Mtu::new(Settings::default()).unwrap())
}

fn is(outcome: &Outcome, mtu_bytes: u32) {
    let truth = f64::from(mtu_bytes);
    assert_eq!(found(outcome, "path_mtu_bytes"), Some((truth, truth, truth)), "{outcome:?}");
    assert_eq!(outcome.refused, None);
}

fn noted(outcome: &Outcome, words: &str) -> bool {
    outcome.notes.iter().any(|note| note.contains(words))
}

#[test]
fn a_message_saves_the_search() {
    let outcome = searched(&mut narrow(1400));
    is(&outcome, 1400);
    // The base, all, what was told, and one byte more.
    assert_eq!(outcome.cost.packets, 4);
    assert!(noted(&outcome, "198.19.0.1 told that its next link takes 1400 bytes, as found"));
}

#[test]
fn a_path_without_messages_is_searched_to_the_byte() {
    for mtu in [68, 500, 576, 1199, 1280, 1337, 1500, 1501, 4352, 8999, 9000, 9215] {
        let mut path = narrow(mtu);
        path.links[0].tells_too_big = false;
        let outcome = searched(&mut path);
        is(&outcome, mtu);
        assert!(noted(&outcome, "lost without a message"));
        assert!(outcome.cost.packets < 100, "{mtu}: {}", outcome.cost.packets);
    }
    is(&searched(&mut narrow(9216)), 9216);
}

#[test]
fn what_a_router_tells_is_not_trusted() {
    for (tells, words) in [(1300, "not what was found"), (1450, "not what was found"), (0, "not followed")] {
        let mut path = narrow(1400);
        path.links[0].tells = Some(tells);
        let outcome = searched(&mut path);
        is(&outcome, 1400);
        assert!(noted(&outcome, words), "{tells}: {:?}", outcome.notes);
    }
}

#[test]
fn single_losses_are_no_limit() {
    let mut path = narrow(1500);
    (path.loses_one_in, path.links[0].tells_too_big) = (8, false);
    is(&searched(&mut path), 1500);
}

#[test]
fn a_path_that_shrinks_is_searched_anew() {
    let mut path = narrow(9000);
    path.links[0].tells_too_big = false;
    path.change = |links, train| {
        if train == 8 {
            links[1].mtu_bytes = 1450;
        }
    };
    let outcome = searched(&mut path);
    is(&outcome, 1450);
    assert!(noted(&outcome, "the search began anew"), "{:?}", outcome.notes);
}

#[test]
fn a_path_that_is_not_there_is_refused() {
    let mut path = narrow(1500);
    path.loses_one_in = 1;
    let outcome = searched(&mut path);
    assert!(outcome.refused.is_some_and(|why| why.contains("there is no path")));
    assert_eq!(outcome.estimates, []);
}

proptest! {
    #[test]
    fn every_mtu_is_found(mtu in 68u32..=9216, tells in any::<bool>(), told in proptest::option::of(0u32..20_000)) {
        let mut path = narrow(mtu);
        path.links[0].tells_too_big = tells;
        path.links[0].tells = told;
        is(&searched(&mut path), mtu);
    }
}
