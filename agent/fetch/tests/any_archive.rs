//! Whatever an archive holds, nothing of it comes to lie, or leads, outside of the tree.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::archive::{Tar, gzip};
use crate::within::check_archive;

mod archive;
#[path = "../../../tests/fuzz/src/archive.rs"]
pub mod within;

/// Few parts, so that entries meet each other.
fn path() -> impl Strategy<Value = String> {
    let part = select(vec!["a", "b", "c", "a", "b", "c", ".", "..", "", "outside", "tree", ".cofferdam-complete"]);
    vec(part, 1..5).prop_map(|parts| parts.join("/"))
}

#[derive(Debug, Clone)]
struct Piece {
    name: String,
    kind: u8,
    mode: u32,
    link: String,
    contents: Vec<u8>,
    long: Option<(u8, String)>,
}

fn piece() -> impl Strategy<Value = Piece> {
    let kind = select(b"0000111222222555\x003567Sg".to_vec());
    let mode = select(vec![0o644, 0o755, 0o777, 0, 0o4755, 0o3777]);
    let long = proptest::option::of((select(b"LKpl".to_vec()), path()));
    (path(), kind, mode, path(), vec(any::<u8>(), 0..600), long)
        .prop_map(|(name, kind, mode, link, contents, long)| Piece { name, kind, mode, link, contents, long })
}

fn tar(pieces: &[Piece]) -> Vec<u8> {
    let tar = pieces.iter().fold(Tar::new(), |tar, piece| {
        let tar = match &piece.long {
            Some((b'p', text)) => tar.pax("path", text),
            Some((b'l', text)) => tar.pax("linkpath", text),
            Some((kind, text)) => tar.gnu_long(*kind, text),
            None => tar,
        };
        let has_contents = matches!(piece.kind, b'0' | 0 | b'7' | b'g');
        tar.entry(&piece.name, piece.kind, piece.mode, &piece.link, if has_contents { &piece.contents } else { b"" })
    });
    tar.end()
}

#[test]
fn a_sparse_file_whose_size_wraps_around_is_refused() {
    within::check(include_bytes!("../../../tests/fuzz/corpus/archive/sparse-wraps.tar"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_entries_stay_within(pieces in vec(piece(), 0..12)) {
        check_archive(&gzip(&tar(&pieces)));
    }

    #[test]
    fn any_links_among_directories_stay_within(
        links in vec((path(), path()), 1..8),
        directories in vec(path(), 0..4),
    ) {
        let tar = directories.iter().fold(Tar::new(), |tar, name| tar.directory(name));
        let tar = links.iter().fold(tar, |tar, (name, target)| tar.symlink(name, target));
        check_archive(&tar.gzip());
    }

    #[test]
    fn any_bytes_in_between_stay_within(
        pieces in vec(piece(), 1..6),
        changes in vec((any::<Index>(), any::<u8>()), 1..6),
        end in any::<Index>(),
    ) {
        let mut tar = tar(&pieces);
        for (at, byte) in changes {
            let at = at.index(tar.len());
            tar[at] = byte;
        }
        // With sums that are right again, and without.
        within::check(&tar);
        let archive = gzip(&tar);
        check_archive(&archive[..end.index(archive.len())]);
    }
}
