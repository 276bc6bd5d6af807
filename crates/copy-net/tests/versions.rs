//! Versions that backups keep: begun, complete, removed; and what is left alone.

use copy_net::{CopyError, ErrorKind, VersionsRequest};
use serde_json::{json, Value};
use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const FIRST: &str = "version-20261126T060000Z";
const SECOND: &str = "version-20261127T060000Z";

fn place(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("elephan-versions-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path
}

fn ask(request: Value) -> Result<Value, CopyError> {
    serde_json::from_value::<VersionsRequest>(request).unwrap().execute(&AtomicBool::new(false))
}

fn of(what: &str, place: &Path, version: &str) -> Result<Value, CopyError> {
    ask(json!({"do": what, "destination": place, "version": version}))
}

fn stays(found: Result<Value, CopyError>) {
    let error = found.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Input, "{error}");
    assert!(error.text.ends_with("it stays"), "{error}");
}

#[test]
fn a_version_is_begun_completed_and_removed_after_a_newer_one() {
    let place = place("life");
    for version in [FIRST, SECOND] {
        of("begin", &place, version).unwrap();
        // A second beginning goes on with the first.
        of("begin", &place, version).unwrap();
        fs::create_dir(place.join(version).join("sub")).unwrap();
        fs::write(place.join(version).join("sub/file"), version).unwrap();
        fs::set_permissions(place.join(version).join("sub"), fs::Permissions::from_mode(0o555)).unwrap();
        if version == SECOND {
            // Begun is not complete: the old one stays.
            stays(of("remove", &place, FIRST));
        }
        of("complete", &place, version).unwrap();
        assert_eq!(fs::read_link(place.join("latest")).unwrap(), Path::new(version));
        stays(of("remove", &place, version));
    }
    let is_empty = |path: &Path| ask(json!({"do": "look", "destination": path})).unwrap()["is_empty"].clone();
    assert_eq!(is_empty(&place), false);
    assert_eq!(is_empty(&place.join("none")), true);
    let outside = place.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("kept"), "").unwrap();
    symlink(&outside, place.join(FIRST).join("link")).unwrap();
    let seen =
        ask(json!({"do": "look", "destination": place, "names": [format!("{FIRST}/sub"), "latest", "none"]})).unwrap();
    assert_eq!(seen["latest"], SECOND);
    assert_eq!(seen["kinds"], json!({format!("{FIRST}/sub"): "folder", "latest": "link", "none": "absent"}));
    assert_eq!(of("remove", &place, FIRST).unwrap()["removed"], 4);
    assert!(
        !place.join(FIRST).exists() && outside.join("kept").exists() && place.join(SECOND).join("sub/file").exists()
    );
    let left: Vec<String> = ask(json!({"do": "look", "destination": place})).unwrap()["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["version"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(left, [SECOND]);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_folder_that_no_backup_made_stays() {
    let place = place("others");
    of("begin", &place, SECOND).unwrap();
    of("complete", &place, SECOND).unwrap();
    fs::create_dir(place.join(FIRST)).unwrap();
    stays(of("remove", &place, FIRST));
    stays(of("begin", &place, FIRST));
    for name in ["..", "latest", "version-20261126T060000Z/..", "version-2026", "version-20261126T060000é", ""] {
        assert_eq!(of("remove", &place, name).unwrap_err().kind, ErrorKind::Input, "{name}");
    }
    // A marker that says another name, or is none.
    for text in [json!({"version": SECOND, "state": "complete"}).to_string(), "{".into()] {
        fs::write(place.join(format!(".elephan-backup/{FIRST}.json")), text).unwrap();
        stays(of("remove", &place, FIRST));
    }
    assert!(place.join(FIRST).exists());
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_removal_that_was_stopped_goes_on() {
    let place = place("stopped");
    for version in [FIRST, SECOND] {
        of("begin", &place, version).unwrap();
        fs::write(place.join(version).join("file"), "").unwrap();
        of("complete", &place, version).unwrap();
    }
    let request = json!({"do": "remove", "destination": place, "version": FIRST});
    let stopped = serde_json::from_value::<VersionsRequest>(request).unwrap().execute(&AtomicBool::new(true));
    assert_eq!(stopped.unwrap_err().kind, ErrorKind::Stopped);
    assert!(!place.join(FIRST).exists());
    assert_eq!(ask(json!({"do": "look", "destination": place})).unwrap()["versions"][0]["state"], "removing");
    of("remove", &place, FIRST).unwrap();
    assert!(!place.join(".elephan-backup").join(FIRST).exists());
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_destination_whose_parent_is_not_there_is_refused() {
    let place = place("unmounted");
    let error = of("begin", &place.join("disk/backup"), FIRST).unwrap_err();
    assert!(error.text.contains("there is no folder") && error.kind == ErrorKind::Input, "{error}");
    assert_eq!(ask(json!({"do": "look", "destination": place.join("disk/backup")})).unwrap()["exists"], false);
    fs::remove_dir_all(place).unwrap();
}

const THIRD: &str = "version-20261128T060000Z";

fn job(backup: &str, store: Option<&str>) -> Value {
    json!({"backup": backup, "job": "records", "store": store, "host": "alpha"})
}

fn marker_of(place: &Path, version: &str) -> Value {
    let seen = ask(json!({"do": "look", "destination": place})).unwrap();
    let all = seen["versions"].as_array().unwrap();
    all.iter().find(|one| one["version"] == version).unwrap().clone()
}

fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (one, other) = (fs::symlink_metadata(one).unwrap(), fs::symlink_metadata(other).unwrap());
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[test]
fn what_could_not_be_copied_is_linked_from_the_newest_version_that_has_it() {
    let place = place("carry");
    of("begin", &place, FIRST).unwrap();
    let first = place.join(FIRST);
    fs::create_dir_all(first.join("d/e")).unwrap();
    fs::write(first.join("d/e/deep"), "deep").unwrap();
    fs::write(first.join("d/flat"), "flat").unwrap();
    symlink("nowhere", first.join("d/link")).unwrap();
    fs::write(first.join("old"), "old").unwrap();
    fs::write(first.join("gone"), "gone").unwrap();
    fs::set_permissions(first.join("d"), fs::Permissions::from_mode(0o750)).unwrap();
    of("complete", &place, FIRST).unwrap();
    of("begin", &place, SECOND).unwrap();
    let second = place.join(SECOND);
    // The folder could not be listed: the copy made it, without content and with the mode of the source.
    fs::create_dir(second.join("d")).unwrap();
    fs::set_permissions(second.join("d"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::write(second.join("own"), "own").unwrap();
    let paths = ["d", "old", "own", "never", "d\\x2fe"];
    let carry = json!({"do": "carry", "destination": place, "version": SECOND, "paths": paths});
    ask(carry.clone()).unwrap();
    let reply = of("complete", &place, SECOND).unwrap();
    assert_eq!(reply["state"], "partial");
    assert_eq!(
        (&reply["carried"]["older"], &reply["carried"]["missing"], &reply["carried"]["failed"]),
        (&json!(2), &json!(2), &json!(0)),
        "an entry that the run has copied itself is none of them"
    );
    assert_eq!(reply["carried"]["oldest"], FIRST);
    for name in ["d/e/deep", "d/flat", "d/link", "old"] {
        assert!(same_file(&first.join(name), &second.join(name)), "{name}");
    }
    assert!(!second.join("gone").exists() && fs::read_to_string(second.join("own")).unwrap() == "own");
    assert_eq!(fs::metadata(second.join("d")).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_link(place.join("latest")).unwrap(), Path::new(SECOND));
    // A version with faults pushes out no version without, and the next one keeps the time of its data.
    stays(of("remove", &place, FIRST));
    of("begin", &place, THIRD).unwrap();
    ask(json!({"do": "carry", "destination": place, "version": THIRD, "paths": ["d/e"]})).unwrap();
    let third = of("complete", &place, THIRD).unwrap();
    assert_eq!(third["carried"]["list"], json!([{"path": "d/e", "from": FIRST}]));
    assert!(same_file(&first.join("d/e/deep"), &place.join(THIRD).join("d/e/deep")));
    stays(of("remove", &place, FIRST));
    // The one with faults may go: the third has all that it has.
    of("remove", &place, SECOND).unwrap();
    assert!(!place.join(format!(".elephan-backup/{SECOND}.carried")).exists());
    // Of a version that has ended nothing is carried.
    assert!(ask(carry).is_err());
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_version_that_lacks_entries_of_an_older_one_pushes_out_none() {
    let place = place("unlisted");
    for (version, unlisted) in [(FIRST, 0), (SECOND, 1), (THIRD, 1)] {
        of("begin", &place, version).unwrap();
        ask(json!({"do": "complete", "destination": place, "version": version, "unlisted": unlisted})).unwrap();
    }
    stays(of("remove", &place, FIRST));
    stays(of("remove", &place, SECOND));
    // A marker of an earlier release, in which a version with faults was complete.
    let old = json!({"version": SECOND, "state": "complete", "facts": {"backup": "dr", "job": "records", "faults": 2}});
    fs::write(place.join(format!(".elephan-backup/{SECOND}.json")), old.to_string()).unwrap();
    assert_eq!(marker_of(&place, SECOND)["state"], "partial");
    stays(of("remove", &place, FIRST));
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn an_attempt_that_ended_before_its_version_takes_back_what_it_carried() {
    let place = place("undo");
    of("begin", &place, FIRST).unwrap();
    fs::create_dir(place.join(FIRST).join("d")).unwrap();
    for name in ["d/in", "file"] {
        fs::write(place.join(FIRST).join(name), "first").unwrap();
    }
    of("complete", &place, FIRST).unwrap();
    of("begin", &place, SECOND).unwrap();
    fs::write(place.join(SECOND).join("own"), "own").unwrap();
    ask(json!({"do": "carry", "destination": place, "version": SECOND, "paths": ["d", "file"]})).unwrap();
    assert!(place.join(SECOND).join("d/in").exists());
    of("begin", &place, SECOND).unwrap();
    assert!(!place.join(SECOND).join("d").exists() && !place.join(SECOND).join("file").exists());
    assert!(place.join(SECOND).join("own").exists() && place.join(FIRST).join("d/in").exists());
    assert_eq!(of("complete", &place, SECOND).unwrap()["state"], "complete");
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn nothing_is_carried_through_a_link_or_over_an_entry() {
    let place = place("links");
    let outside = place.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "outside").unwrap();
    of("begin", &place, FIRST).unwrap();
    let first = place.join(FIRST);
    fs::create_dir(first.join("d")).unwrap();
    fs::write(first.join("d/file"), "first").unwrap();
    symlink(&outside, first.join("way")).unwrap();
    of("complete", &place, FIRST).unwrap();
    of("begin", &place, SECOND).unwrap();
    symlink(&outside, place.join(SECOND).join("d")).unwrap();
    let paths = ["d/file", "d/other", "way/file", "../outside/file", "d"];
    ask(json!({"do": "carry", "destination": place, "version": SECOND, "paths": paths})).unwrap();
    of("complete", &place, SECOND).unwrap();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(fs::symlink_metadata(place.join(SECOND).join("d")).unwrap().is_symlink());
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn versions_of_another_job_are_neither_removed_nor_added_to() {
    let place = place("jobs");
    let begin = |version: &str, owner: Value| {
        ask(json!({"do": "begin", "destination": place, "version": version, "owner": owner}))?;
        ask(json!({"do": "complete", "destination": place, "version": version, "owner": owner}))
    };
    begin(FIRST, job("dr", Some("one"))).unwrap();
    for other in [job("dr", Some("two")), job("other", Some("one"))] {
        let error = begin(SECOND, other.clone()).unwrap_err();
        assert!(error.kind == ErrorKind::Input && error.text.contains("store one of host \"alpha\""), "{error}");
        let error = ask(json!({"do": "remove", "destination": place, "version": FIRST, "owner": other})).unwrap_err();
        assert!(error.text.ends_with("it is of another job: it stays"), "{error}");
        let seen = ask(json!({"do": "look", "destination": place, "owner": other})).unwrap();
        assert_eq!(seen["versions"][0]["own"], false);
    }
    begin(SECOND, job("dr", Some("one"))).unwrap();
    let adopted = ask(json!({"do": "adopt", "destination": place, "owner": job("dr", Some("two"))})).unwrap();
    assert_eq!(adopted["adopted"], 2);
    assert!(begin(THIRD, job("dr", Some("one"))).is_err());
    begin(THIRD, job("dr", Some("two"))).unwrap();
    // A marker of an earlier release names no store: backup and job decide.
    let old = json!({"version": FIRST, "state": "complete", "facts": {"backup": "dr", "job": "records", "faults": 0}});
    fs::write(place.join(format!(".elephan-backup/{FIRST}.json")), old.to_string()).unwrap();
    ask(json!({"do": "remove", "destination": place, "version": FIRST, "owner": job("dr", Some("two"))})).unwrap();
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn entries_are_listed_of_the_version_that_is_named_alone() {
    let place = place("listed");
    for version in [FIRST, SECOND] {
        of("begin", &place, version).unwrap();
        ask(json!({"do": "carry", "destination": place, "version": version, "paths": ["file"]})).unwrap();
        of("complete", &place, version).unwrap();
    }
    let seen = ask(json!({"do": "look", "destination": place, "list": SECOND})).unwrap();
    let lists: Vec<usize> = seen["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["carried"]["list"].as_array().unwrap().len())
        .collect();
    assert_eq!(lists, [0, 1]);
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_folder_that_could_never_be_listed_keeps_no_older_version() {
    let place = place("never");
    for version in [FIRST, SECOND, THIRD] {
        of("begin", &place, version).unwrap();
        // The copy makes the folder, and nothing in it.
        fs::create_dir(place.join(version).join("d")).unwrap();
        ask(json!({"do": "carry", "destination": place, "version": version, "paths": ["d"]})).unwrap();
        let carried = of("complete", &place, version).unwrap()["carried"].clone();
        assert_eq!((&carried["missing"], &carried["older"], &carried["failed"]), (&json!(1), &json!(0), &json!(0)));
    }
    of("remove", &place, FIRST).unwrap();
    of("remove", &place, SECOND).unwrap();
    fs::remove_dir_all(place).unwrap();
}

#[test]
fn a_folder_that_was_a_mount_point_is_told_by_its_state_and_lost_and_found_is_no_entry() {
    let place = place("mounts");
    for name in ["empty", "ext/lost+found", "filled/x", "a\\b"] {
        fs::create_dir_all(place.join(name)).unwrap();
    }
    symlink("empty", place.join("link")).unwrap();
    let look = |mounts: &[&str]| ask(json!({"do": "look", "destination": place, "mounts": mounts}));
    let names = ["empty", "ext", "filled", "filled/none", "none/deep", "link", "link/deep", "a\\x5cb"];
    let states = ["empty", "empty", "unmounted", "removed", "gone", "removed", "gone", "empty"];
    let found = look(&names).unwrap();
    for (name, state) in names.iter().zip(states) {
        assert_eq!(found["mounts"][name], state, "{name}");
    }
    assert_eq!(look(&["../x"]).unwrap_err().kind, ErrorKind::Input);
    let ext = ask(json!({"do": "look", "destination": place.join("ext")})).unwrap();
    assert_eq!(ext["is_empty"], true);
    let root = ask(json!({"do": "look", "destination": "/", "mounts": ["proc"]})).unwrap();
    assert_eq!(root["mounts"]["proc"], "mounted");
    fs::remove_dir_all(&place).unwrap();
}
