use std::os::unix::fs::MetadataExt as _;

use super::*;

#[test]
fn archives_are_read_from_the_lines_that_have_an_address() {
    let output = "\
        'http://mirror.test/z/zlib1g_1.2_amd64.deb' zlib1g_1%3a1.2_amd64.deb 86684 MD5Sum:00\n\
        'http://mirror.test/l/libssl3_3.0_amd64.deb' libssl3_3.0_amd64.deb 2039888 \n\
        W: something that is no archive\n";
    let archives = apt::archives(output);
    let names: Vec<_> = archives.iter().map(Archive::name).collect();
    assert_eq!(names, ["zlib1g_1%3a1.2_amd64.deb", "libssl3_3.0_amd64.deb"]);
}

#[test]
fn an_image_is_another_when_a_version_a_file_or_what_it_runs_is() {
    let reference: Reference = "a:1".parse().unwrap();
    let archives = |text: &str| apt::archives(text);
    let (old, new) =
        (archives("'u' a_1_all.deb 1\n'u' b_1_all.deb 1"), archives("'u' a_2_all.deb 1\n'u' b_1_all.deb 1"));
    let recipe = Recipe { files: vec![("/etc/a", "a")], ..Recipe::default() };
    let other_file = Recipe { files: vec![("/etc/a", "b")], ..Recipe::default() };
    let a_link = Recipe { links: vec![("/etc/a", "a")], files: Vec::new(), ..Recipe::default() };
    let other_link = Recipe { links: vec![("/etc/a", "b")], ..a_link.clone() };
    let other_command = Recipe { config: Config { cmd: vec!["a".to_owned()], ..Config::default() }, ..recipe.clone() };
    let first = key(&reference, &recipe, &old);
    assert_ne!(first, key(&reference, &recipe, &new));
    assert_ne!(first, key(&reference, &other_file, &old));
    assert_ne!(first, key(&reference, &other_command, &old));
    assert_ne!(first, key(&reference, &a_link, &old), "a file is no link");
    assert_ne!(key(&reference, &a_link, &old), key(&reference, &other_link, &old));
    assert_ne!(first, key(&"a:2".parse().unwrap(), &recipe, &old));
    let turned: Vec<_> = old.iter().rev().cloned().collect();
    assert_eq!(first, key(&reference, &recipe, &turned), "apt's order of archives means nothing");
}

/// The files of a package: directories end in a slash.
fn package(files: &[(&str, u32)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, mode) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(*mode);
        // Whoever runs this test, so that it needs not be root.
        header.set_uid(rustix::process::geteuid().as_raw().into());
        header.set_gid(rustix::process::getegid().as_raw().into());
        let directory = path.ends_with('/');
        header.set_entry_type(if directory { tar::EntryType::Directory } else { tar::EntryType::Regular });
        header.set_size(u64::from(!directory));
        archive.append_data(&mut header, path, &b"x"[usize::from(directory)..]).unwrap();
    }
    archive.into_inner().unwrap()
}

#[test]
fn a_package_of_the_old_layout_lands_in_usr_and_the_links_stay() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    root::create(&root).unwrap();
    let files =
        package(&[("./", 0o755), ("./bin/", 0o755), ("./bin/sh", 0o4755), ("./usr/share/doc/a/copyright", 0o644)]);
    root::unpack_files(tar::Archive::new(files.as_slice()), &root).unwrap();
    assert!(root.join("bin").is_symlink());
    assert_eq!(fs::metadata(root.join("usr/bin/sh")).unwrap().mode() & 0o7777, 0o4755);
    assert!(!root.join("usr/share/doc").exists());
    assert_eq!(fs::metadata(root.join("tmp")).unwrap().mode() & 0o7777, 0o1777);
}

#[test]
fn a_link_is_made_with_its_folder_and_never_over_what_a_package_brought() {
    let folder = tempfile::tempdir().unwrap();
    root::link(folder.path(), "/etc/enabled/site", "/etc/available/site").unwrap();
    assert_eq!(fs::read_link(folder.path().join("etc/enabled/site")).unwrap(), Path::new("/etc/available/site"));
    fs::write(folder.path().join("etc/brought"), "x").unwrap();
    root::link(folder.path(), "/etc/brought", "/etc/other").unwrap_err();
}

#[test]
fn a_package_cannot_write_outside_the_root() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    root::create(&root).unwrap();
    std::os::unix::fs::symlink(folder.path(), root.join("var/out")).unwrap();
    let files = package(&[("./var/out/file", 0o644)]);
    root::unpack_files(tar::Archive::new(files.as_slice()), &root).unwrap_err();
    assert!(!folder.path().join("file").exists());
}
