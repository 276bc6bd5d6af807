//! Names that lead out of a folder are not opened, with openat2(2) and without.

use super::*;
use rustix::fs::CWD;

fn ways(folder: &std::path::Path) -> [Beneath; 2] {
    let open = || openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    [Beneath::new(open()), Beneath::by_components(open())]
}

fn path(text: &str) -> Vec<Vec<u8>> {
    text.split('/').map(|name| name.as_bytes().to_vec()).collect()
}

#[test]
fn neither_links_nor_dots_lead_out_of_a_folder() {
    let base = std::env::temp_dir().join(format!("copy-net-beneath-{}", std::process::id()));
    std::fs::create_dir_all(base.join("in/folder")).unwrap();
    std::fs::create_dir_all(base.join("out")).unwrap();
    std::fs::write(base.join("out/secret"), "x").unwrap();
    std::fs::write(base.join("in/folder/file"), "x").unwrap();
    for (name, target) in [("up", ".."), ("away", "/"), ("file-link", "folder/file"), ("folder/self", ".")] {
        std::os::unix::fs::symlink(target, base.join("in").join(name)).unwrap();
    }
    for beneath in ways(&base.join("in")) {
        beneath.open(&path("folder/file"), OFlags::RDONLY).unwrap();
        beneath.listed(&[]).unwrap();
        for refused in
            ["../out/secret", "up/out/secret", "away/etc/passwd", "file-link", "folder/self/file", "", "folder//file"]
        {
            assert!(beneath.open(&path(refused), OFlags::RDONLY).is_err(), "{refused}");
        }
        assert!(beneath.open(&[b"../out/secret".to_vec()], OFlags::RDONLY).is_err());
        assert!(beneath.folder(&path("up")).is_err());
    }
    std::fs::remove_dir_all(base).unwrap();
}

#[test]
fn a_path_longer_than_the_kernel_takes_is_opened() {
    let base = std::env::temp_dir().join(format!("copy-net-long-{}", std::process::id()));
    std::fs::create_dir_all(&base).unwrap();
    let name = vec![b'n'; 200];
    for beneath in ways(&base) {
        let mut folder = beneath.folder(&[]).unwrap();
        let mut path = vec![];
        for _ in 0..40 {
            let _ = rustix::fs::mkdirat(&folder, name.as_slice(), Mode::RWXU);
            folder = openat(&folder, name.as_slice(), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
            path.push(name.clone());
        }
        beneath.listed(&path).unwrap();
    }
    std::fs::remove_dir_all(base).unwrap();
}
