//! The algorithms of `congestion/` in the running kernel: through its verifier, and at work in its TCP.
//!
//! A part that this machine cannot do is skipped with a word on stderr: it needs clang, root, BTF and a kernel recent
//! enough. Nothing stays behind: every registration is a link, which ends with its owner.

use crate::common::{
    carried, goes, is_registered, kernel_since, lacks, loaded_with, object, CONG_CONTROL, EVERYTHING, LINKS,
};
use bpf::{check, Error, Settings};
use congestion::builtin;
use std::process;

/// Each algorithm with its text; also the file that uses every accessor and every hook.
fn all() -> Vec<(String, String)> {
    let mut all: Vec<_> = builtin().iter().map(|a| (a.name().to_owned(), a.code().to_owned())).collect();
    if kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        all.push(("everything".to_owned(), EVERYTHING.to_owned()));
    }
    all
}

/// A control under a name that no other process and no other test gives one, for as long as its owner lives.
fn linked(number: usize) -> Settings {
    Settings { name: format!("cct{}_{number}", process::id()), linked: true, ..Settings::default() }
}

#[test]
fn every_algorithm_passes_this_kernels_verifier() {
    for (name, code) in all() {
        let Some(object) = object(&name, &code) else { return };
        if lacks() {
            return;
        }
        let checked = check(&object, "algorithm", None, false).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert!(checked.programs > 1 && checked.steps > checked.programs as u64, "{name}: {checked:?}");
    }
}

#[test]
fn every_algorithm_carries_data_in_this_kernels_tcp() {
    if !kernel_since(LINKS, "no data was carried under an algorithm") {
        return;
    }
    for (number, (name, code)) in all().into_iter().enumerate() {
        let Some(object) = object(&name, &code) else { return };
        if lacks() {
            return;
        }
        let settings = linked(number);
        let carried = carried(&object, &settings, &settings.name, 20_000_000);
        assert_eq!(carried.map(|carried| carried.bytes), Ok(20_000_000), "{name}");
        assert!(goes(&settings.name), "{name} is still registered");
    }
}

#[test]
fn a_parameter_set_at_load_time_reaches_the_kernel() {
    if !kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        return;
    }
    for (window, number) in [(33, 90), (7, 91)] {
        let Some(object) = object("everything", EVERYTHING) else { return };
        if lacks() {
            return;
        }
        let parameters = [("first_window".to_owned(), window)].into();
        let settings = Settings { parameters, ..linked(number) };
        let carried = carried(&object, &settings, &settings.name, 1_000).expect("it carries");
        assert_eq!(i64::from(carried.first_window), window);
    }
}

#[test]
fn what_fails_leaves_nothing_registered() {
    if !kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        return;
    }
    let Some(object) = object("everything", EVERYTHING) else { return };
    if lacks() {
        return;
    }
    let settings = linked(92);
    // Registered under one name, asked for by another: it fails after the registration.
    let failed = carried(&object, &settings, "no_such_name", 1_000).expect_err("there is no such control");
    assert!(failed.starts_with("setsockopt(TCP_CONGESTION)"), "{failed}");
    assert!(goes(&settings.name));
}

#[test]
fn a_name_that_is_taken_is_refused_and_the_first_stays() {
    if !kernel_since(LINKS, "nothing was registered") {
        return;
    }
    let Some(object) = object("reno", congestion::find("reno").expect("built in").code()) else { return };
    if lacks() {
        return;
    }
    let settings = linked(93);
    let (mut first, mut second) = (loaded_with(&object, &settings), loaded_with(&object, &settings));
    let registration = first.register().expect("the name is free");
    let error = second.register().expect_err("the name is taken");
    assert_eq!(error.errno(), Some(libc::EEXIST), "{error}");
    assert!(is_registered(&settings.name));
    drop(registration);
    assert!(goes(&settings.name));
}

#[test]
fn the_verifier_refuses_what_a_native_build_would_run() {
    // So that a pass means something: a loop without a bound is caught.
    if !kernel_since(CONG_CONTROL, "the file with every hook was not loaded") {
        return;
    }
    let endless = EVERYTHING.replace(
        "static u32 every_min_tso_segs(struct cc_sock *sk)\n{\n",
        "static u32 every_min_tso_segs(struct cc_sock *sk)\n{\n\twhile (cc_snd_cwnd(sk))\n\t\tcc_state(sk)->acks++;\n",
    );
    assert_ne!(endless, EVERYTHING);
    let Some(object) = object("endless", &endless) else { return };
    if lacks() {
        return;
    }
    let error = check(&object, "algorithm", None, false).expect_err("the loop has no end");
    let Error::Load { program, log, .. } = error else { panic!("{error}") };
    assert_eq!(program, "hook_min_tso_segs");
    assert!(log.contains("infinite loop"), "{log}");
}
