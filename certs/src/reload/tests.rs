use std::fs;

use tokio::sync::mpsc;

use super::*;
use crate::testing::{Authority, Issued, SecretVolume};

const NAME: &str = "webhook.example.svc";
const HOUR: Duration = Duration::from_hours(1);

fn names() -> Vec<ServerName<'static>> {
    vec![ServerName::try_from(NAME).unwrap()]
}

/// A certificate that is told from others by the hours it is valid.
fn valid_hours(hours: u32) -> Issued {
    let now = SystemTime::now();
    Authority::new().unwrap().issue_for(NAME, now, now + HOUR * hours).unwrap()
}

fn load(files: Files) -> Result<Reloader, ReloadError> {
    Reloader::load(files, names(), SystemTime::now())
}

fn hours_left(reloader: &Reloader) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    (reloader.current().expires_unix_seconds() - now).div_ceil(HOUR.as_secs())
}

#[test]
fn b93_a_renewal_through_a_kubelets_symlinks_is_served_every_time() {
    let mut volume = SecretVolume::mount(&valid_hours(1)).unwrap();
    let mut reloader = load(volume.files()).unwrap();
    assert_eq!(reloader.look(SystemTime::now()), Outcome::Unchanged);
    // More than once: a watch on the files would see the first update and go deaf.
    for hours in 2..5 {
        volume.update(&valid_hours(hours)).unwrap();
        assert_eq!(reloader.look(SystemTime::now()), Outcome::Swapped);
        assert_eq!(hours_left(&reloader), u64::from(hours));
        assert_eq!(reloader.look(SystemTime::now()), Outcome::Unchanged);
    }
}

#[test]
fn a_half_written_pair_is_not_served_and_the_whole_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let files = Files { chain: directory.path().join("tls.crt"), key: directory.path().join("tls.key") };
    let (old, new) = (valid_hours(1), valid_hours(2));
    fs::write(&files.chain, &old.chain).unwrap();
    fs::write(&files.key, &old.key).unwrap();
    let mut reloader = load(files.clone()).unwrap();

    fs::write(&files.chain, &new.chain).unwrap();
    assert_eq!(reloader.look(SystemTime::now()), Outcome::Kept);
    assert_eq!(hours_left(&reloader), 1);
    fs::write(&files.key, &new.key[..new.key.len() / 2]).unwrap();
    assert_eq!(reloader.look(SystemTime::now()), Outcome::Kept);
    fs::write(&files.key, &new.key).unwrap();
    assert_eq!(reloader.look(SystemTime::now()), Outcome::Swapped);
    assert_eq!(hours_left(&reloader), 2);
}

#[test]
fn broken_renewals_keep_the_old_certificate() {
    let now = SystemTime::now();
    let mut volume = SecretVolume::mount(&valid_hours(1)).unwrap();
    let mut reloader = load(volume.files()).unwrap();
    let authority = Authority::new().unwrap();
    for broken in [
        authority.issue_for(NAME, now - 2 * HOUR, now - HOUR).unwrap(),
        authority.issue("other.example.svc").unwrap(),
        Issued { chain: String::new(), key: String::new() },
    ] {
        volume.update(&broken).unwrap();
        assert_eq!(reloader.look(now), Outcome::Kept);
        assert_eq!(hours_left(&reloader), 1);
    }
    let missing = volume.files();
    drop(volume);
    assert!(!missing.chain.exists());
    assert_eq!(reloader.look(now), Outcome::Kept);
    assert_eq!(hours_left(&reloader), 1);
}

#[test]
fn a_renewal_that_is_refused_now_is_served_once_its_time_has_come() {
    let now = SystemTime::now();
    let mut volume = SecretVolume::mount(&valid_hours(1)).unwrap();
    let mut reloader = load(volume.files()).unwrap();
    volume.update(&Authority::new().unwrap().issue_for(NAME, now + 2 * HOUR, now + 3 * HOUR).unwrap()).unwrap();
    assert_eq!(reloader.look(now), Outcome::Kept);
    assert_eq!(reloader.look(now + 2 * HOUR), Outcome::Swapped);
}

#[test]
fn an_expired_certificate_stops_the_start_and_the_error_says_where_it_lies() {
    let now = SystemTime::now();
    let expired = Authority::new().unwrap().issue_for(NAME, now - 2 * HOUR, now - HOUR).unwrap();
    let volume = SecretVolume::mount(&expired).unwrap();
    let error = load(volume.files()).err().unwrap();
    assert!(error.to_string().contains("tls.crt"), "{error}");
    let ReloadError::Certificate { source, .. } = error else { panic!("{error}") };
    assert!(matches!(source, CertificateError::Expired { .. }), "{source}");
}

#[tokio::test(start_paused = true)]
async fn the_files_are_looked_at_again_and_again() {
    let mut volume = SecretVolume::mount(&valid_hours(1)).unwrap();
    let reloader = load(volume.files()).unwrap();
    let current = reloader.current();
    let before = current.expires_unix_seconds();
    let (outcomes, mut seen) = mpsc::unbounded_channel();
    let run = tokio::spawn(reloader.run(Duration::from_secs(10), move |outcome| outcomes.send(outcome).unwrap()));
    assert_eq!(seen.recv().await, Some(Outcome::Unchanged));
    volume.update(&valid_hours(2)).unwrap();
    assert_eq!(seen.recv().await, Some(Outcome::Swapped));
    assert!(current.expires_unix_seconds() > before);
    run.abort();
}
