//! Files that a process which was killed had begun to write: a store in a directory does not list them.

use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

/// Deletes them. Blocks.
///
/// `age` is longer than any writing takes, because another process may write to the same directory.
pub(super) fn discard(root: &Path, age: Duration, now: SystemTime) -> io::Result<()> {
    for session in fs::read_dir(root)? {
        let session = session?;
        if !session.file_type()?.is_dir() {
            continue;
        }
        for file in if_there(fs::read_dir(session.path()))?.into_iter().flatten() {
            let file = file?;
            if is_unfinished(&file.path()) && is_older(&file, age, now)? {
                if_there(fs::remove_file(file.path()))?;
            }
        }
        // One that is not empty stays; whoever is about to write to it makes it anew.
        let _ = fs::remove_dir(session.path());
    }
    Ok(())
}

/// Whether the store has not given this file its name yet, to which it appends `#` and a number.
fn is_unfinished(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.contains('#'))
}

fn is_older(file: &fs::DirEntry, age: Duration, now: SystemTime) -> io::Result<bool> {
    let Some(metadata) = if_there(file.metadata())? else { return Ok(false) };
    Ok(now.duration_since(metadata.modified()?).is_ok_and(|since| since >= age))
}

/// What another process deletes at the same time is no error.
fn if_there<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_left_is_deleted_once_it_is_old() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["one/body#1", "one/body", "two/claim#12"] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), "").unwrap();
        }
        fs::write(at("other"), "").unwrap();
        let age = Duration::from_mins(1);
        discard(directory.path(), age, SystemTime::now()).unwrap();
        assert!(at("one/body#1").exists());
        discard(directory.path(), age, SystemTime::now() + age).unwrap();
        assert!(!at("one/body#1").exists() && !at("two").exists());
        assert!(at("one/body").exists() && at("other").exists());
    }
}
