//! What archives are unpacked to, and which are refused.
#![expect(clippy::panic, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use cofferdam_fetch::failure::Failure;
use cofferdam_fetch::unpack::{Limits, Tree, unpack};
use tempfile::TempDir;

use crate::archive::{Tar, gzip, header, sum};

mod archive;

const LIMITS: Limits = Limits { bytes: 1 << 20, entries: 100 };

/// A tree in a directory, beside which there is something that must stay as it is.
struct Unpacked {
    folder: TempDir,
    result: Result<(), Failure>,
}

impl Unpacked {
    fn of(archive: &[u8]) -> Self {
        Self::within(archive, LIMITS)
    }

    fn within(archive: &[u8], limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("tree")).unwrap();
        fs::write(folder.path().join("outside"), "outside").unwrap();
        let mut tree = Tree::open(&folder.path().join("tree")).unwrap();
        let result = unpack(archive, &mut tree, limits);
        let unpacked = Self { folder, result };
        let mut names: Vec<_> = fs::read_dir(unpacked.folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["outside", "tree"]);
        assert_eq!(fs::read_to_string(unpacked.folder.path().join("outside")).unwrap(), "outside");
        unpacked
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join("tree").join(name)
    }

    fn text(&self, name: &str) -> String {
        assert_eq!(self.result, Ok(()));
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        assert_eq!(self.result, Ok(()));
        fs::symlink_metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }
}

#[track_caller]
fn assert_unsafe(tar: Tar, why: &str) {
    let unpacked = Unpacked::of(&tar.gzip());
    match &unpacked.result {
        Err(Failure::Unsafe(reason)) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{other:?}, not {why}"),
    }
}

#[test]
fn files_directories_and_links_become_what_they_are() {
    let tar = Tar::new()
        .directory("./")
        .directory("./a/")
        .file("./a/f", "one")
        .file("b/c/d", "two")
        .symlink("a/l", "../b/c/d")
        .symlink("b/here", ".")
        .symlink("later", "a/not-there")
        .hard_link("h", "a/f");
    let unpacked = Unpacked::of(&tar.gzip());
    assert_eq!(
        (unpacked.text("a/f"), unpacked.text("b/c/d"), unpacked.text("a/l")),
        ("one".into(), "two".into(), "two".into())
    );
    assert_eq!(fs::read_link(unpacked.path("later")).unwrap(), Path::new("a/not-there"));
    let inode = |name| fs::metadata(unpacked.path(name)).unwrap().ino();
    assert_eq!(inode("h"), inode("a/f"));
}

#[test]
fn b67_what_is_unpacked_is_the_groups_to_change() {
    let tar = Tar::new()
        .entry("private", b'5', 0o700, "", b"")
        .entry("shared", b'5', 0o3777, "", b"")
        .entry("private/read-only", b'0', 0o400, "", b"")
        .entry("program", b'0', 0o755, "", b"")
        .entry("private-program", b'0', 0o1700, "", b"")
        .entry("open", b'0', 0o666, "", b"")
        .entry("implied/file", b'0', 0o644, "", b"");
    let unpacked = Unpacked::of(&tar.gzip());
    for (name, mode) in [
        ("private", 0o2770),
        ("shared", 0o2775),
        ("private/read-only", 0o660),
        ("program", 0o775),
        ("private-program", 0o770),
        ("open", 0o664),
        ("implied", 0o2775),
        ("implied/file", 0o664),
    ] {
        assert_eq!(unpacked.mode(name), mode, "{name}: {:o}", unpacked.mode(name));
    }
}

#[test]
fn b83_what_leads_out_of_the_tree_is_refused() {
    assert_unsafe(Tar::new().file("/etc/passwd", "x"), "has an absolute path");
    assert_unsafe(Tar::new().file("../outside", "x"), "has a path through \"..\"");
    assert_unsafe(Tar::new().file("a/../../outside", "x"), "has a path through \"..\"");
    assert_unsafe(Tar::new().symlink("d", "/srv").directory("d/.").file("d/x", "x"), "absolute target");
    assert_unsafe(Tar::new().symlink("d", "..").file("d/outside", "x"), "has a path through a symbolic link");
    assert_unsafe(Tar::new().symlink("d", ".."), "leads out of the body");
    assert_unsafe(Tar::new().directory("a").symlink("a/b", "../../outside"), "leads out of the body");
    assert_unsafe(Tar::new().hard_link("h", "/etc/passwd"), "whose target has an absolute path");
    assert_unsafe(Tar::new().hard_link("h", "../outside"), "whose target has a path through");
    assert_unsafe(Tar::new().symlink("d", "..").hard_link("h", "d/outside"), "does not come before it");
    assert_unsafe(Tar::new().pax("path", "/etc/passwd").file("a", "x"), "has an absolute path");
    assert_unsafe(Tar::new().pax("linkpath", "../outside").symlink("a", "b"), "leads out of the body");
    assert_unsafe(Tar::new().gnu_long(b'L', "../outside").file("a", "x"), "has a path through");
    assert_unsafe(Tar::new().gnu_long(b'K', "../outside").symlink("a", "b"), "leads out of the body");
}

#[test]
fn a_link_that_leads_out_only_through_another_one_is_found() {
    // By its letters `s/../..` is `a`; but `s` is the tree itself.
    let tar = Tar::new().directory("a/b").symlink("a/b/s", "../..").symlink("a/b/t", "s/../..");
    assert_unsafe(tar, "leads out of the body");
    // A link is made before what it leads through.
    let tar = Tar::new().symlink("t", "a/b/../../x").symlink("a", "c").file("c/d/b", "");
    assert_eq!(Unpacked::of(&tar.gzip()).result, Ok(()));
    let tar = Tar::new().symlink("t", "a/b/../../../x").directory("a").symlink("a/b", "../c").directory("c");
    assert_unsafe(tar, "leads out of the body");
    // What leads round and round leads nowhere.
    assert_eq!(Unpacked::of(&Tar::new().symlink("a", "b").symlink("b", "a").gzip()).result, Ok(()));
}

#[test]
fn links_that_take_without_end_to_follow_are_refused() {
    let through = |count: usize| {
        (0..count).fold(Tar::new().directory("d"), |tar, n| {
            let target = "d/../".repeat(100) + &format!("l{}", n + 1);
            tar.pax("linkpath", &target).symlink(&format!("l{n}"), "")
        })
    };
    assert_eq!(Unpacked::of(&through(10).gzip()).result, Ok(()));
    assert_unsafe(through(40), "lead through too many");
}

#[test]
fn a_link_that_is_too_long_to_be_followed_is_refused() {
    assert_unsafe(Tar::new().pax("linkpath", &("x".repeat(256) + "/../../outside")).symlink("a", ""), "leads out");
    // 15 directories, one more, and a name that makes one byte more than a program can name.
    let path = format!("{}{}/{}", format!("{}/", "d".repeat(255)).repeat(15), "e".repeat(127), "f".repeat(128));
    assert_eq!(path.len(), 4096);
    let out = "../".repeat(17) + "outside";
    assert_unsafe(Tar::new().pax("path", &path).symlink("a", &out), "too long for Linux");
    assert_unsafe(Tar::new().pax("path", &path[..4095]).symlink("a", &out), "leads out");
}

#[test]
fn what_is_no_file_directory_or_link_is_refused() {
    for (kind, why) in [
        (b'3', "is a device"),
        (b'4', "is a device"),
        (b'6', "is a named pipe"),
        (b'V', "is of a kind"),
        (b'M', "is of a kind"),
        (b'D', "is of a kind"),
    ] {
        assert_unsafe(Tar::new().entry("a", kind, 0o644, "", b""), why);
    }
    for mode in [0o4755, 0o2755, 0o6644] {
        assert_unsafe(Tar::new().entry("a", b'0', mode, "", b""), "set-user-ID or set-group-ID");
    }
    assert_unsafe(Tar::new().file(".cofferdam-complete", "0"), "which is ours");
    assert_unsafe(Tar::new().symlink(".cofferdam-incoming", "a"), "which is ours");
    assert_unsafe(Tar::new().file(".", "x"), "takes the place of the whole tree");
    assert_unsafe(Tar::new().symlink("./", "x"), "takes the place of the whole tree");
    assert_unsafe(Tar::new().symlink("a", ""), "to nothing");
    assert_unsafe(
        Tar::new().file(&"a/".repeat(49), "").pax("path", &"a/".repeat(200)).file("x", ""),
        "deeper than 128",
    );
}

#[test]
fn of_several_entries_for_one_path_the_last_wins_and_never_through_a_link() {
    let tar = Tar::new()
        .file("f", "one")
        .file("f", "two")
        .file("linked", "linked")
        .symlink("s", "linked")
        .file("s", "three")
        .hard_link("h", "linked")
        .file("h", "four")
        .file("d/x/y", "")
        .file("d", "five")
        .file("e", "")
        .file("e/g", "six")
        .directory("e")
        .symlink("t", "e")
        .directory("t")
        .file("t/u", "seven");
    let unpacked = Unpacked::of(&tar.gzip());
    for (name, text) in [
        ("f", "two"),
        ("linked", "linked"),
        ("s", "three"),
        ("h", "four"),
        ("d", "five"),
        ("e/g", "six"),
        ("t/u", "seven"),
    ] {
        assert_eq!(unpacked.text(name), text, "{name}");
    }
    assert!(!unpacked.path("e/u").exists());
    assert_unsafe(Tar::new().directory("e").symlink("t", "e").file("t/u", ""), "has a path through a symbolic link");
    assert_unsafe(Tar::new().file("a", "").hard_link("a/b", "a"), "is a hard link to what is no file");
    assert_unsafe(Tar::new().file("a/b", "").hard_link("a", "a/b"), "does not come before it");
    assert_unsafe(Tar::new().file("a", "").hard_link("a", "a"), "a hard link to itself");
    assert_unsafe(Tar::new().file("a", "").symlink("s", "a").hard_link("h", "s"), "is a hard link to what is no file");
}

#[test]
fn long_names_of_either_kind_are_read() {
    let long = "long/".repeat(40) + "name";
    let tar = Tar::new()
        .pax("path", &long)
        .file("short", "pax")
        .gnu_long(b'L', &format!("gnu/{long}"))
        .file("short", "gnu")
        .gnu_long(b'K', &long)
        .gnu_long(b'L', "link")
        .symlink("x", "x")
        .pax("mtime", "1.5")
        .file("after", "after");
    let unpacked = Unpacked::of(&tar.gzip());
    assert_eq!((unpacked.text(&long), unpacked.text(&format!("gnu/{long}"))), ("pax".into(), "gnu".into()));
    assert_eq!((unpacked.text("link"), unpacked.text("after")), ("pax".into(), "after".into()));
    assert!(!unpacked.path("short").exists());
}

#[test]
fn an_extended_header_that_other_readers_take_otherwise_is_refused() {
    for (key, one, two) in [("path", "one", "two"), ("linkpath", "one", "two"), ("size", "0", "00")] {
        let twice = |tar: Tar| tar.pax_records(&[(key, one), ("mtime", "1"), (key, two)]);
        assert_unsafe(twice(Tar::new()).symlink("a", "b"), "says the same thing twice");
    }
    let tar = Tar::new().pax_records(&[("path", "one"), ("comment", "1"), ("comment", "2")]).file("a", "text");
    assert_eq!(Unpacked::of(&tar.gzip()).text("one"), "text");
}

#[test]
fn b85_more_than_may_come_out_of_an_archive_is_too_large() {
    let too_large = |archive: &[u8], limits| {
        let result = Unpacked::within(archive, limits).result;
        assert!(matches!(&result, Err(Failure::TooLarge(_))), "{result:?}");
    };
    let zeros = |length: usize| Tar::new().entry("zeros", b'0', 0o644, "", &vec![0; length]);
    // What names take: 8 bytes each, and themselves.
    let names = |names: &[&str]| names.iter().map(|name| 8 + name.len() as u64).sum::<u64>();
    let fits = Limits { bytes: (1 << 20) + names(&["zeros"]), entries: 1 };
    assert_eq!(Unpacked::within(&zeros(1 << 20).gzip(), fits).result, Ok(()));
    too_large(&zeros((1 << 20) + 1).gzip(), fits);
    // 256 files of one byte take as many blocks.
    let many = |count: usize| (0..count).fold(Tar::new(), |tar, n| tar.file(&n.to_string(), "x"));
    let bytes = (1 << 20) + (0..256).map(|n: u32| names(&[&n.to_string()])).sum::<u64>();
    assert_eq!(Unpacked::within(&many(256).gzip(), Limits { bytes, entries: 256 }).result, Ok(()));
    too_large(&many(257).gzip(), Limits { bytes: bytes + 4096, entries: 257 });
    // Names that take more room in their directory than what they name.
    let links =
        |count: usize| (0..count).fold(Tar::new().file("f", ""), |tar, n| tar.hard_link(&format!("{n:095}"), "f"));
    let bytes = 4096 + names(&["f"]) + 50 * 103;
    assert_eq!(Unpacked::within(&links(50).gzip(), Limits { bytes, entries: 60 }).result, Ok(()));
    too_large(&links(51).gzip(), Limits { bytes, entries: 60 });
    too_large(&many(257).gzip(), Limits { bytes: 2 << 20, entries: 256 });
    // Directories that are only named.
    too_large(&Tar::new().file("a/b/c/d", "").gzip(), Limits { bytes: 1 << 20, entries: 3 });
    // Headers, contents of what has none, and what follows the end.
    too_large(
        &Tar::new().file("b", "").entry("a", b'1', 0o644, "b", &vec![0; 2 << 20]).gzip(),
        Limits { bytes: 8192, entries: 2 },
    );
    let globals = (0..2000).fold(Tar::new(), |tar, _| tar.entry("g", b'g', 0o644, "", &[b'x'; 1024]));
    too_large(&globals.gzip(), Limits { bytes: 8192, entries: 1 });
    let mut padded = Tar::new().file("a", "").end();
    padded.resize(3 << 20, 0);
    too_large(&gzip(&padded), Limits { bytes: 8192, entries: 1 });
}

#[test]
fn a_size_that_is_only_claimed_is_too_large_before_anything_is_written() {
    let mut tar = Tar::new();
    tar.0.extend(header(b"huge", b'0', 0o644, b"", 0o77_777_777_777));
    let unpacked = Unpacked::of(&gzip(&tar.0));
    assert!(matches!(unpacked.result, Err(Failure::TooLarge(_))), "{:?}", unpacked.result);
    assert!(!unpacked.path("huge").exists());
    let unpacked = Unpacked::of(&Tar::new().pax("size", &u64::MAX.to_string()).file("huge", "").gzip());
    assert!(unpacked.result.is_err(), "{:?}", unpacked.result);
}

/// A sparse file as GNU tar writes it: `size` bytes, of which the last 512 are there.
fn sparse(size: u64) -> Tar {
    let mut block = header(b"sparse", b'S', 0o644, b"", 512);
    block[257..265].copy_from_slice(b"ustar  \0");
    block[386..398].copy_from_slice(format!("{:011o}\0", size - 512).as_bytes());
    block[398..410].copy_from_slice(format!("{:011o}\0", 512).as_bytes());
    block[483..495].copy_from_slice(format!("{size:011o}\0").as_bytes());
    sum(&mut block);
    Tar(block.to_vec()).contents(&[b'x'; 512])
}

#[test]
fn a_sparse_file_counts_by_its_real_size() {
    let unpacked = Unpacked::of(&sparse(1 << 19).gzip());
    assert_eq!(unpacked.text("sparse").len(), 1 << 19);
    let unpacked = Unpacked::of(&sparse(1 << 30).gzip());
    assert!(matches!(unpacked.result, Err(Failure::TooLarge(_))), "{:?}", unpacked.result);
    assert_unsafe(Tar::new().pax("GNU.sparse.major", "1").file("a", "0\n"), "sparse in a form");
}

#[test]
fn a_name_without_end_is_not_kept_in_memory() {
    let name = "a".repeat(400 << 10);
    assert_unsafe(Tar::new().gnu_long(b'L', &name).file("a", ""), "headers without end");
    assert_unsafe(Tar::new().pax("comment", &name).file("a", ""), "headers without end");
}

#[test]
fn an_archive_must_be_whole_and_alone() {
    let whole = Tar::new().file("a", &"text ".repeat(1000)).gzip();
    assert_eq!(Unpacked::of(&whole).result, Ok(()));
    for length in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
        let result = Unpacked::of(&whole[..length]).result;
        assert!(matches!(result, Err(Failure::Unsafe(_))), "{length}: {result:?}");
    }
    let tar = Tar::new().file("a", &"text ".repeat(1000)).end();
    let cases: [(Vec<u8>, &str); 6] = [
        (b"<html>".to_vec(), "no whole tar.gz"),
        (tar.clone(), "no whole tar.gz"),
        (
            gzip(b"not a tar file, but long enough to be taken for the header of one".repeat(10).as_slice()),
            "no whole tar.gz",
        ),
        ([whole.as_slice(), b"rubbish"].concat(), "no whole tar.gz"),
        (gzip(&[tar.as_slice(), b"rubbish"].concat()), "something follows"),
        (gzip(&tar[..2048]), "no whole tar.gz"),
    ];
    for (archive, why) in cases {
        let result = Unpacked::of(&archive).result;
        assert!(matches!(&result, Err(Failure::Unsafe(text)) if text.contains(why)), "{result:?}, not {why}");
    }
    // Two archives, of which tar would read the first alone.
    assert!(Unpacked::of(&[whole.as_slice(), &whole].concat()).result.is_err());
    // One in several members, as parallel compressors write them.
    let members = [gzip(&tar[..1000]), gzip(b""), gzip(&tar[1000..])].concat();
    assert_eq!(Unpacked::of(&members).text("a").len(), 5000);
    assert_eq!(Unpacked::of(&Tar::new().gzip()).result, Ok(()));
}

#[test]
fn a_reason_repeats_a_name_shortly_and_harmlessly() {
    let name = "\u{1b}[31m".to_owned() + &"x".repeat(3000) + "/../y";
    let failure = Unpacked::of(&Tar::new().pax("path", &name).file("a", "").gzip()).result.unwrap_err();
    let sentence = failure.sentence();
    assert!(sentence.chars().count() < 300 && !sentence.contains('\u{1b}'), "{sentence}");
}
