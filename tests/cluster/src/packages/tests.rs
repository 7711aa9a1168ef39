use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

#[test]
fn what_every_machine_has_is_not_missing() {
    assert_eq!(missing(&[program("sh", "dash")]), []);
    ensure(&[program("sh", "dash")], &Progress::silent()).unwrap();
}

#[test]
fn what_no_machine_has_is_missing() {
    let packages = [program("no-such-program", "a"), Package { shows: Shows::Library("no-such-library"), name: "b" }];
    assert_eq!(missing(&packages), packages);
}

#[test]
fn the_sentence_names_everything_missing_and_each_package_once() {
    let missing = [program("unshare", "util-linux"), program("nsenter", "util-linux"), program("ip", "iproute2")];
    assert_eq!(words(&missing), ("unshare, nsenter, ip".to_owned(), "iproute2 util-linux".to_owned()));
}

#[test]
fn a_program_is_found_before_those_of_the_system_and_only_if_it_can_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sh");
    fs::write(&file, "").unwrap();
    assert_ne!(find_in(folder.path().as_os_str(), "sh").unwrap(), file);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(find_in(folder.path().as_os_str(), "sh").unwrap(), file);
}

#[test]
fn a_program_of_the_system_is_found_without_any_path() {
    assert!(find_in(OsStr::new(""), "sh").is_some());
}
