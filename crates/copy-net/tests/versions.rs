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
