//! Unpacking: any archive stays within its tree, or is refused.
//!
//! The same check is that of the property tests of `agent/fetch`, which make their archives entry by entry.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use cofferdam_fetch::unpack::{Limits, Tree, unpack};
use flate2::{Compression, write::GzEncoder};

const LIMITS: Limits = Limits { bytes: 256 << 10, entries: 30 };

const BLOCK: usize = 512;

/// How every gzip stream begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Takes the bytes for a tar.gz, or else for a tar file, whose headers get the right sums; and unpacks it.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    if bytes.starts_with(&GZIP) {
        check_archive(bytes);
        return;
    }
    let mut tar = bytes.to_vec();
    repair(&mut tar);
    check_archive(&gzip(&tar));
}

/// Sums that are wrong would end nearly every archive at its first entry.
fn repair(tar: &mut [u8]) {
    let mut at = 0;
    while let Some(header) = tar.get_mut(at..at + BLOCK) {
        at += BLOCK;
        if header.iter().all(|byte| *byte == 0) {
            continue;
        }
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        let size = std::str::from_utf8(&header[124..135]).ok().and_then(|size| usize::from_str_radix(size, 8).ok());
        at = at.saturating_add(size.unwrap_or(0).min(tar.len()).next_multiple_of(BLOCK));
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
    // Writing to memory cannot fail; what is missing then would be refused.
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Unpacks an archive beside something, and looks at both.
///
/// # Panics
/// A promise is broken, or there is nowhere to unpack to.
pub fn check_archive(archive: &[u8]) {
    let folder = must(tempfile::tempdir());
    let root = folder.path().join("deep/tree");
    must(fs::create_dir_all(&root));
    let outside = folder.path().join("deep/outside");
    must(fs::write(&outside, "outside"));
    must(fs::set_permissions(&outside, fs::Permissions::from_mode(0o400)));

    let result = unpack(archive, &mut must(Tree::open(&root)), LIMITS);

    assert_eq!(must(fs::read_to_string(&outside)), "outside");
    assert_eq!(must(fs::metadata(&outside)).permissions().mode() & 0o7777, 0o400);
    assert_eq!((count(folder.path()), count(&folder.path().join("deep"))), (1, 2));
    if let Err(failure) = &result {
        assert!([13, 14].contains(&failure.exit_code()), "{failure}");
        assert!(failure.sentence().chars().count() <= 500);
        return;
    }
    let mut seen = Seen::default();
    look(&root, &must(root.canonicalize()), &mut seen);
    assert!(seen.entries <= LIMITS.entries && seen.bytes <= LIMITS.bytes, "{seen:?}");
}

fn must<T>(result: std::io::Result<T>) -> T {
    result.unwrap_or_else(|error| panic!("the machine says {error}"))
}

fn count(directory: &Path) -> usize {
    must(fs::read_dir(directory)).count()
}

#[derive(Debug, Default)]
struct Seen {
    entries: u64,
    bytes: u64,
}

fn look(directory: &Path, root: &Path, seen: &mut Seen) {
    for entry in must(fs::read_dir(directory)) {
        let path: PathBuf = must(entry).path();
        let found = must(fs::symlink_metadata(&path));
        seen.entries += 1;
        if found.is_symlink() {
            if let Ok(reached) = path.canonicalize() {
                assert!(reached.starts_with(root), "{} leads to {}", path.display(), reached.display());
            }
            continue;
        }
        let mode = found.permissions().mode();
        if found.is_dir() {
            assert_eq!(mode & 0o7772, 0o2770, "{}: {mode:o}", path.display());
            look(&path, root, seen);
        } else {
            assert!(found.is_file(), "{}", path.display());
            assert_eq!(mode & 0o7662, 0o660, "{}: {mode:o}", path.display());
            seen.bytes += found.len();
        }
    }
}
