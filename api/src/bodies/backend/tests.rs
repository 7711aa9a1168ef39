use std::os::unix::fs::PermissionsExt as _;

use super::super::claims::{self, Redeemer, Refusal};
use super::super::store::{BodyStore, StoreError};
use super::super::testing::{archive_of, utf8};
use super::fake::Fake;
use super::*;

const ID: &str = "abcdefghijkl";

const PLACES: [&str; 4] = ["s3://bodies", "s3://bodies/some/prefix", "gs://bodies/prefix", "az://bodies/prefix"];

fn pod(uid: &str) -> Redeemer {
    Redeemer { pod_uid: Some(uid.to_owned()) }
}

fn open(place: &str, fake: &Fake) -> BodyStore {
    BodyStore::open_with(place.parse().unwrap(), 1 << 20, fake.settings()).unwrap()
}

#[test]
fn a_directory_is_made_for_us_alone_and_what_is_none_is_told() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    Location::Directory(directory.clone()).open([]).unwrap();
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    fs::write(directory.join("file"), "").unwrap();
    let error = Location::Directory(directory.join("file")).open([]).unwrap_err();
    assert!(error.to_string().ends_with("is it a directory that can be written to?"), "{error}");
}

#[test]
fn a_bucket_without_what_it_needs_is_told() {
    let error = Location::from_str("az://container").unwrap().open([]).unwrap_err();
    assert!(error.to_string().starts_with("cannot keep bodies in az://container; are its variables right"), "{error}");
}

#[tokio::test]
async fn a_bucket_keeps_a_body_from_its_staging_to_its_end() {
    for place in PLACES {
        let fake = Fake::start(true).await;
        let (one, other) = (open(place, &fake), open(place, &fake));
        one.prove().await.unwrap_or_else(|error| panic!("{place}: {error}"));
        let archive = archive_of(vec![utf8("app.yaml", "kind: App")]);
        let token = one.stage(ID, archive.clone()).await.unwrap();
        let record = claims::find(&other, ID, token.secret()).await.unwrap().unwrap();
        assert_eq!((record.sha256.as_str(), record.bytes), (archive.sha256(), archive.bytes()), "{place}");

        let now = record.staged;
        assert_eq!(claims::redeem(&other, ID, &record, &pod("1"), now).await.unwrap(), Ok(()), "{place}");
        assert_eq!(claims::redeem(&one, ID, &record, &pod("1"), now).await.unwrap(), Ok(()), "{place}");
        assert_eq!(claims::redeem(&one, ID, &record, &pod("2"), now).await.unwrap(), Err(Refusal::Claimed), "{place}");
        let part = one.read_archive(ID, 5..record.bytes).await.unwrap().unwrap();
        let read: Vec<_> = futures_util::TryStreamExt::try_collect(part).await.unwrap();
        assert_eq!(read.concat(), archive.pieces.concat()[5..], "{place}");

        assert_eq!(claims::acknowledge(&other, ID, &record, &pod("1"), now).await.unwrap(), Ok(()), "{place}");
        assert!(one.read_archive(ID, 0..1).await.unwrap().is_none(), "{place}");
        let swept = one.sweep(now + Duration::from_hours(1), |_| true).await.unwrap();
        assert_eq!((swept.removed, fake.keys()), (1, Vec::<String>::new()), "{place}");
        assert_eq!(one.record(ID).await.unwrap(), None, "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_pods_that_race_for_a_body_in_a_bucket_exactly_one_wins() {
    for place in PLACES {
        let fake = Fake::start(true).await;
        let stores = [open(place, &fake), open(place, &fake)];
        stores[0].stage(ID, archive_of(vec![utf8("a", "")])).await.unwrap();
        let racing = (0..16).map(|number| {
            let store = stores[number % 2].clone();
            tokio::spawn(async move {
                let record = store.record(ID).await.unwrap().unwrap();
                claims::redeem(&store, ID, &record, &pod(&number.to_string()), record.staged).await.unwrap()
            })
        });
        let mut won = 0;
        for pod in racing.collect::<Vec<_>>() {
            won += usize::from(pod.await.unwrap().is_ok());
        }
        assert_eq!(won, 1, "{place}");
    }
}

#[tokio::test]
async fn a_store_that_lets_two_claim_the_same_is_not_taken() {
    for place in PLACES {
        let fake = Fake::start(false).await;
        let error = open(place, &fake).prove().await.unwrap_err();
        assert!(matches!(error, StoreError::NotExclusive), "{place}: {error}");
        assert_eq!(fake.keys(), Vec::<String>::new(), "{place}");
    }
}

#[tokio::test]
async fn names_lie_below_the_prefix() {
    let fake = Fake::start(true).await;
    open("s3://bodies/some/prefix", &fake).stage(ID, archive_of(vec![utf8("a", "")])).await.unwrap();
    assert_eq!(fake.keys(), ["some/prefix/abcdefghijkl/body", "some/prefix/abcdefghijkl/record"]);
}
