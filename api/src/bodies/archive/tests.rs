use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use proptest::prelude::*;

use super::super::testing::{GENEROUS, archive_of, base64, bundle, utf8};
use super::*;

/// An entry, as the tar crate reads it.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    path: String,
    kind: EntryType,
    mode: u32,
    contents: Vec<u8>,
}

fn entries(archive: &Archive) -> Vec<Entry> {
    let whole = archive.pieces.concat();
    assert_eq!(u64::try_from(whole.len()).unwrap(), archive.bytes());
    assert_eq!(hex(&Sha256::digest(&whole)), archive.sha256());
    let mut tar = tar::Archive::new(GzDecoder::new(whole.as_slice()));
    let entries = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let header = entry.header();
        assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
        let (kind, mode) = (header.entry_type(), header.mode().unwrap());
        let path = String::from_utf8(entry.path_bytes().to_vec()).unwrap();
        let mut contents = Vec::new();
        entry.read_to_end(&mut contents).unwrap();
        Entry { path, kind, mode, contents }
    });
    entries.collect()
}

fn file(path: &str, contents: &[u8]) -> Entry {
    Entry { path: path.to_owned(), kind: EntryType::Regular, mode: 0o644, contents: contents.to_vec() }
}

fn directory(path: &str) -> Entry {
    Entry { path: path.to_owned(), kind: EntryType::Directory, mode: 0o755, contents: Vec::new() }
}

#[test]
fn directories_come_once_and_before_what_is_in_them() {
    // `d-e/` sorts between `d/` and its neighbours by bytes, which must not open `d/` twice.
    let files = [("d/e/2", "2"), ("d/1", "1"), ("d-e/3", "3"), ("/a", "é"), ("d/e/f/4", "4")];
    let archive = archive_of(files.iter().map(|(path, contents)| utf8(path, contents)).collect());
    let expected = [
        file("a", "é".as_bytes()),
        directory("d-e/"),
        file("d-e/3", b"3"),
        directory("d/"),
        file("d/1", b"1"),
        directory("d/e/"),
        file("d/e/2", b"2"),
        directory("d/e/f/"),
        file("d/e/f/4", b"4"),
    ];
    assert_eq!(entries(&archive), expected);
}

#[test]
fn the_same_files_give_the_same_bytes_in_whatever_order_they_come() {
    let (one, other) = (utf8("b/c", "x"), base64("a", "AA=="));
    let archive = archive_of(vec![one.clone(), other.clone()]);
    assert_eq!(archive.sha256(), archive_of(vec![other, one]).sha256());
    assert_ne!(archive.sha256(), archive_of(vec![utf8("b/c", "y"), base64("a", "AA==")]).sha256());
}

#[test]
fn d17_names_over_a_hundred_bytes_are_kept_whole() {
    let component = "n".repeat(60);
    let names = [
        format!("{component}/{component}/{component}"),
        "é".repeat(127),
        "x".repeat(99),
        "x".repeat(100),
        "x".repeat(101),
        // Cut off at a hundred bytes it would end in `..`.
        format!("{}/..hidden", "y".repeat(97)),
        format!("{}/file", "z".repeat(99)),
    ];
    let archive = archive_of(names.iter().map(|name| utf8(name, name)).collect());
    let files: BTreeMap<String, Vec<u8>> = entries(&archive)
        .into_iter()
        .filter(|entry| entry.kind == EntryType::Regular)
        .map(|entry| (entry.path, entry.contents))
        .collect();
    let expected = names.iter().map(|name| (name.clone(), name.clone().into_bytes())).collect();
    assert_eq!(files, expected);
}

#[test]
fn d16_more_than_a_mebibyte_is_packed_into_several_pieces() {
    // Bytes that do not compress.
    let mut state = 1_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    })
    .take(3 << 20)
    .collect();
    let archive = archive_of(vec![base64("noise", &STANDARD.encode(&noise))]);
    assert!(archive.pieces.len() > 8, "{archive:?}");
    assert!(archive.pieces.iter().all(|piece| piece.len() <= PIECE));
    assert_eq!(entries(&archive), [file("noise", &noise)]);
}

#[test]
fn an_archive_shows_its_size_and_digest_alone() {
    let archive = archive_of(vec![utf8("a", "secret")]);
    let shown = format!("{archive:?}");
    let expected = format!("Archive {{ bytes: {}, sha256: \"{}\", .. }}", archive.bytes(), archive.sha256());
    assert_eq!(shown, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bundles_take_turns_and_the_thread_that_serves_is_free_meanwhile() {
    let archiver = Archiver::new(NonZero::<usize>::MIN);
    let (release, held) = std::sync::mpsc::channel::<()>();
    let (began, beginning) = tokio::sync::oneshot::channel();
    let first = tokio::spawn({
        let archiver = archiver.clone();
        async move {
            let work = move || {
                let _ = began.send(());
                held.recv().map_err(|_| ArchiveError::Failed)
            };
            archiver.work(work).await
        }
    });
    beginning.await.unwrap();
    let mut second = Box::pin(archiver.check(bundle("a", vec![utf8("a", "")]), GENEROUS));
    // The first holds the only turn, although whoever asked for it may have left.
    first.abort();
    assert!(futures_util::poll!(&mut second).is_pending());
    tokio::task::yield_now().await;
    assert!(futures_util::poll!(&mut second).is_pending());
    release.send(()).unwrap();
    let files = second.await.unwrap();
    assert_eq!(archiver.pack(files).await.unwrap().sha256().len(), 64);
}

#[tokio::test]
async fn a_panic_beside_the_threads_that_serve_is_an_error() {
    let archiver = Archiver::new(NonZero::<usize>::MIN);
    assert_eq!(archiver.work::<()>(|| panic!("on purpose")).await, Err(ArchiveError::Failed));
    assert!(archiver.check(bundle("a", vec![utf8("a", "")]), GENEROUS).await.is_ok());
}

proptest! {
    #[test]
    fn what_is_packed_is_read_back(
        files in proptest::collection::btree_map("([a-c]{1,3}|é{40}|x{90})(/([a-c]{1,2}|y{60})){0,3}", any::<Vec<u8>>(), 1..12)
    ) {
        let sent: Vec<_> =
            files.iter().map(|(path, contents)| base64(path, &STANDARD.encode(contents))).collect();
        let entry = files.keys().next().unwrap();
        // Of paths that lie in one another the bundle is refused.
        if let Ok(checked) = Files::of(bundle(entry, sent), GENEROUS) {
            let archive = pack(checked).unwrap();
            let read = entries(&archive);
            let (directories, read): (Vec<_>, Vec<_>) =
                read.into_iter().partition(|entry| entry.kind == EntryType::Directory);
            let unique: BTreeSet<_> = directories.iter().map(|directory| &directory.path).collect();
            prop_assert_eq!(unique.len(), directories.len());
            let read: BTreeMap<_, _> = read.into_iter().map(|entry| (entry.path, entry.contents)).collect();
            prop_assert_eq!(&read, &files);
        }
    }
}
