use std::path::Path as Directory;

use futures_util::StreamExt as _;

use super::super::testing::{age, archive_of, base64, file_store, utf8};
use super::*;

const ID: &str = "abcdefghijkl";

fn archive() -> Archive {
    archive_of(vec![utf8("app.yaml", "kind: App"), utf8("src/main.ts", "main()")])
}

fn memory(budget: u64) -> BodyStore {
    BodyStore::open(Location::Memory, budget).unwrap()
}

fn who() -> Redeemer {
    Redeemer { pod_uid: Some("7d9f".to_owned()) }
}

async fn read(store: &BodyStore, part: Range<u64>) -> Option<Vec<u8>> {
    let stream = store.read_archive(ID, part).await.unwrap()?;
    Some(stream.try_collect::<Vec<_>>().await.unwrap().concat())
}

/// All files below a directory.
fn files(directory: &Directory) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test]
async fn what_is_staged_is_read_back_whole_and_in_parts_from_either_place() {
    let directory = tempfile::tempdir().unwrap();
    for store in [memory(1 << 20), file_store(directory.path())] {
        assert_eq!(store.record(ID).await.unwrap(), None);
        let token = store.stage(ID, archive()).await.unwrap();
        let record = store.record(ID).await.unwrap().unwrap();
        let whole = archive().pieces.concat();
        assert_eq!((record.sha256.as_str(), record.bytes), (archive().sha256(), archive().bytes()));
        assert!(record.token.is_of(token.secret()));
        assert_eq!(read(&store, 0..record.bytes).await.unwrap(), whole);
        assert_eq!(read(&store, 10..20).await.unwrap(), whole[10..20]);
        let standing = store.standing(ID, &record).await.unwrap();
        assert_eq!((standing.claim, standing.acknowledged), (None, false));

        store.remove(ID).await.unwrap();
        assert_eq!(store.record(ID).await.unwrap(), None);
        assert_eq!(read(&store, 0..1).await, None);
        store.remove(ID).await.unwrap();
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "not even a directory stays");
}

#[tokio::test]
async fn both_places_let_only_one_claim_be_made() {
    let directory = tempfile::tempdir().unwrap();
    for store in [memory(1), file_store(directory.path())] {
        store.prove().await.unwrap();
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_claim_is_made_once_and_an_acknowledged_body_takes_no_room() {
    let directory = tempfile::tempdir().unwrap();
    for store in [memory(1 << 20), file_store(directory.path())] {
        store.stage(ID, archive()).await.unwrap();
        let record = store.record(ID).await.unwrap().unwrap();
        assert!(store.claim(ID, &who()).await.unwrap());
        assert!(!store.claim(ID, &who()).await.unwrap());
        let standing = store.standing(ID, &record).await.unwrap();
        assert_eq!(standing.claim.unwrap().by, who());

        for _ in 0..2 {
            store.acknowledge(ID).await.unwrap();
            assert!(store.standing(ID, &record).await.unwrap().acknowledged);
            assert_eq!(read(&store, 0..1).await, None);
        }
    }
}

#[tokio::test]
async fn d18_a_restart_forgets_nothing_and_memory_forgets_all() {
    let directory = tempfile::tempdir().unwrap();
    let token = file_store(directory.path()).stage(ID, archive()).await.unwrap();
    let restarted = file_store(directory.path());
    let record = restarted.record(ID).await.unwrap().unwrap();
    assert!(record.token.is_of(token.secret()));
    assert!(restarted.claim(ID, &who()).await.unwrap());
    let again = file_store(directory.path());
    assert_eq!(again.standing(ID, &record).await.unwrap().claim.unwrap().by, who());
    assert_eq!(read(&again, 0..record.bytes).await.unwrap(), archive().pieces.concat());

    memory(1 << 20).stage(ID, archive()).await.unwrap();
    assert_eq!(memory(1 << 20).record(ID).await.unwrap(), None);
}

#[tokio::test]
async fn d10_the_store_knows_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let token = file_store(directory.path()).stage(ID, archive()).await.unwrap();
    let files = files(directory.path());
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        let bytes = std::fs::read(file).unwrap();
        assert!(!bytes.windows(token.secret().len()).any(|part| part == token.secret().as_bytes()));
    }
}

#[tokio::test]
async fn what_is_over_makes_room_and_what_is_not_stays() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = archive().bytes();
    // One body and its record, and no other.
    let store = BodyStore::open(Location::Directory(directory.path().to_owned()), bytes + bytes / 2).unwrap();
    store.stage(ID, archive()).await.unwrap();
    let full = store.stage("bbbbbbbbbbbb", archive()).await.unwrap_err();
    assert!(matches!(full, StoreError::Full), "{full}");
    assert_eq!(store.record("bbbbbbbbbbbb").await.unwrap(), None);

    for name in [BODY, RECORD] {
        age(directory.path(), ID, name, LIFETIME + MARGIN);
    }
    store.stage("bbbbbbbbbbbb", archive()).await.unwrap();
    assert_eq!(store.record(ID).await.unwrap(), None);
}

#[tokio::test]
async fn what_is_being_written_counts_as_well() {
    let bytes = archive().bytes();
    let store = memory(bytes);
    let room = store.room(bytes).await.unwrap();
    assert!(matches!(store.room(1).await, Err(StoreError::Full)));
    drop(room);
    assert!(store.room(bytes).await.is_ok());
}

#[tokio::test]
async fn a_sweep_deletes_what_is_over_and_what_is_nobodys() {
    const OVER: Duration = Duration::from_secs(330);
    const NEARLY: Duration = Duration::from_secs(325);
    const NONE: Duration = Duration::ZERO;
    for (what, known, body, record, claim, stays) in [
        ("one that waits", true, NONE, Some(NONE), None, true),
        ("one that could just be claimed", true, NEARLY, Some(NEARLY), None, true),
        ("one that nobody fetched", true, OVER, Some(OVER), None, false),
        ("one that was claimed late", true, OVER, Some(OVER), Some(NEARLY), true),
        ("one that was never acknowledged", true, OVER, Some(OVER), Some(OVER), false),
        ("one whose session is about to be made", false, NONE, Some(NONE), None, true),
        ("one whose session is gone", false, Duration::from_secs(70), Some(Duration::from_secs(70)), None, false),
        ("one that is about to be whole", true, NONE, None, None, true),
        ("one that was never whole", true, OVER, None, None, false),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let store = file_store(directory.path());
        store.stage(ID, archive()).await.unwrap();
        age(directory.path(), ID, BODY, body);
        match record {
            Some(by) => age(directory.path(), ID, RECORD, by),
            None => std::fs::remove_file(directory.path().join(ID).join(RECORD)).unwrap(),
        }
        if let Some(by) = claim {
            assert!(store.claim(ID, &who()).await.unwrap());
            age(directory.path(), ID, CLAIM, by);
        }
        let swept = store.sweep(SystemTime::now(), |_| known).await.unwrap();
        assert_eq!((swept.removed, swept.bytes > 0), (u64::from(!stays), stays), "{what}");
        assert_eq!(directory.path().join(ID).exists(), stays, "{what}");
    }
}

#[tokio::test]
async fn what_is_not_ours_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let store = file_store(directory.path());
    for file in ["lost+found", "deep/er/file"] {
        let path = directory.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let later = SystemTime::now() + Duration::from_hours(1);
    assert_eq!(store.sweep(later, |_| false).await.unwrap(), Swept::default());
    assert_eq!(files(directory.path()).len(), 2);
}

#[tokio::test]
async fn what_somebody_else_wrote_is_an_error_and_not_a_body() {
    let directory = tempfile::tempdir().unwrap();
    let store = file_store(directory.path());
    store.stage(ID, archive()).await.unwrap();
    let record = directory.path().join(ID).join(RECORD);
    for broken in ["", "null", r#"{"sha256": "", "bytes": 1, "tokenSha256": "short"}"#] {
        std::fs::write(&record, broken).unwrap();
        assert!(matches!(store.record(ID).await, Err(StoreError::Foreign)), "{broken}");
    }
}

#[tokio::test]
async fn an_archive_is_read_as_it_is_taken() {
    let noise: String = std::iter::repeat_with(fastrand::alphanumeric).take(4 << 20).collect();
    let archive = archive_of(vec![base64("noise", &noise)]);
    let directory = tempfile::tempdir().unwrap();
    let store = file_store(directory.path());
    let bytes = archive.bytes();
    store.stage(ID, archive).await.unwrap();
    let mut stream = store.read_archive(ID, 0..bytes).await.unwrap().unwrap();
    let first = stream.next().await.unwrap().unwrap();
    assert!(first.len() <= 64 * 1024, "{}", first.len());
    // Who has begun to read it reads it to its end, also if it is acknowledged meanwhile.
    store.remove(ID).await.unwrap();
    let rest: Vec<_> = stream.try_collect().await.unwrap();
    let read = first.len() + rest.iter().map(Bytes::len).sum::<usize>();
    assert_eq!(u64::try_from(read).unwrap(), bytes);
}

#[test]
fn nothing_shows_more_than_the_place() {
    assert_eq!(format!("{:?}", memory(1)), "BodyStore(memory)");
}
