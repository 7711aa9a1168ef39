//! One at a time: locks between processes, each gone with the process that held it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::cache::{self, CacheError};

/// The lock file for something that is not an entry of the cache, in a folder of the cache that is made for it.
pub(crate) fn called(name: &str) -> Result<PathBuf, CacheError> {
    let folder = cache::root()?.join("locks");
    fs::create_dir_all(&folder).map_err(CacheError::io("create", &folder))?;
    Ok(folder.join(name))
}

/// Waits for the turn that a file stands for; it lasts until the value is dropped.
pub(crate) fn wait(path: &Path) -> Result<File, CacheError> {
    let file = open(path)?;
    file.lock().map_err(CacheError::io("lock", path))?;
    Ok(file)
}

/// Takes the turn that a file stands for, unless another process has it.
pub(crate) fn take(path: &Path) -> Result<Option<File>, CacheError> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(CacheError::io("lock", path)(source)),
    }
}

fn open(path: &Path) -> Result<File, CacheError> {
    File::create(path).map_err(CacheError::io("create", path))
}
