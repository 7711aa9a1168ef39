//! Where a bundle's file may lie: below the directory that it is unpacked into, and at one place only (BUN-02).

/// Bytes of one name; Linux allows no more.
const LONGEST_NAME: usize = 255;

/// Bytes of a path: with the directory before it, it stays below the 4,096 that Linux allows.
const LONGEST_PATH: usize = 3072;

/// Names of a path: `cofferdam-fetch` goes no deeper.
const DEEPEST: usize = 128;

/// Names that begin so are the fetching program's, in the directory that it unpacks into.
const RESERVED: &str = ".cofferdam-";

/// Why a path is none that a file of a bundle can have. Each is the rest of a sentence that begins with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// Nothing is left of it.
    #[error("names no file")]
    Empty,
    /// It ends in `/`, `.` or `..`.
    #[error("names a directory; name the file in it")]
    Directory,
    /// `..` where there is nothing to go up to.
    #[error("leads out of the bundle; leave out the `..`")]
    Outside,
    /// No file system has such a name.
    #[error("contains a NUL character")]
    Nul,
    /// No file system has such a name, or nobody such a depth.
    #[error("is too long; a name may have {LONGEST_NAME} bytes, and a path {LONGEST_PATH} and {DEEPEST} names")]
    TooLong,
    /// The fetching program's.
    #[error("begins with `{RESERVED}`, which Cofferdam itself uses; choose another name")]
    Reserved,
}

/// The one way to write this path: relative, without `.`, `..` and doubled slashes.
///
/// A leading `/` is the bundle's root. A `..` goes up as far as there is something to go up to.
pub(super) fn normalize(path: &str) -> Result<String, PathProblem> {
    if path.contains('\0') {
        return Err(PathProblem::Nul);
    }
    let mut names = Vec::new();
    let mut is_file = false;
    for name in path.split('/') {
        is_file = !matches!(name, "" | "." | "..");
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or(PathProblem::Outside)?;
            }
            name => names.push(name),
        }
    }
    let Some(first) = names.first() else { return Err(PathProblem::Empty) };
    if !is_file {
        return Err(PathProblem::Directory);
    }
    if first.starts_with(RESERVED) {
        return Err(PathProblem::Reserved);
    }
    let normal = names.join("/");
    if normal.len() > LONGEST_PATH || names.len() > DEEPEST || names.iter().any(|name| name.len() > LONGEST_NAME) {
        return Err(PathProblem::TooLong);
    }
    Ok(normal)
}

/// The directories that a normal path lies in, outermost first.
pub(super) fn directories(normal: &str) -> impl Iterator<Item = &str> {
    normal.match_indices('/').map(|(at, _)| &normal[..at])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_have_one_spelling_or_none() {
        let long = |length| "n".repeat(length);
        for (path, expected) in [
            ("app.yaml", Ok("app.yaml")),
            ("src/app.ts", Ok("src/app.ts")),
            ("/src//./app.ts", Ok("src/app.ts")),
            ("///a", Ok("a")),
            ("src/../app.ts", Ok("app.ts")),
            ("a/b/../../c", Ok("c")),
            ("...", Ok("...")),
            ("..a/b..", Ok("..a/b..")),
            ("a\\..\\b", Ok("a\\..\\b")),
            ("src/.cofferdam-complete", Ok("src/.cofferdam-complete")),
            ("", Err(PathProblem::Empty)),
            ("/", Err(PathProblem::Empty)),
            (".", Err(PathProblem::Empty)),
            ("./.", Err(PathProblem::Empty)),
            ("a/..", Err(PathProblem::Empty)),
            ("..", Err(PathProblem::Outside)),
            ("../a", Err(PathProblem::Outside)),
            ("/../a", Err(PathProblem::Outside)),
            ("a/../../b", Err(PathProblem::Outside)),
            ("a/b/../../..", Err(PathProblem::Outside)),
            ("a/", Err(PathProblem::Directory)),
            ("a/.", Err(PathProblem::Directory)),
            ("a/b/..", Err(PathProblem::Directory)),
            ("a\0b", Err(PathProblem::Nul)),
            (".cofferdam-complete", Err(PathProblem::Reserved)),
            ("a/../.cofferdam-staging/x", Err(PathProblem::Reserved)),
        ] {
            assert_eq!(normalize(path).as_deref(), expected.as_ref().map(|path| *path), "{path:?}");
        }
        assert_eq!(normalize(&["n"; 128].join("/")), Ok(["n"; 128].join("/")));
        assert_eq!(normalize(&["n"; 129].join("/")), Err(PathProblem::TooLong));
        assert_eq!(normalize(&long(255)), Ok(long(255)));
        assert_eq!(normalize(&long(256)), Err(PathProblem::TooLong));
        let deep = vec![long(170); 18].join("/");
        let deep = &deep[deep.len() - LONGEST_PATH - 1..];
        assert_eq!(normalize(deep), Err(PathProblem::TooLong));
        assert_eq!(normalize(&deep[1..]), Ok(deep[1..].to_owned()));
    }

    #[test]
    fn directories_are_told_outermost_first() {
        assert_eq!(directories("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(directories("a").count(), 0);
    }

    proptest! {
        #[test]
        fn what_is_normal_stays_below_and_as_it_is(path in "[a./\\\\\u{e9} ]{0,24}") {
            if let Ok(normal) = normalize(&path) {
                prop_assert!(normal.split('/').all(|name| !matches!(name, "" | "." | "..")), "{}", normal);
                prop_assert_eq!(normalize(&normal), Ok(normal.clone()));
            }
        }
    }
}
