//! One at a time: locks between processes, each gone with the process that held it.

use std::fs::{self, File, TryLockError};

use crate::cache::{self, CacheError};

/// Waits for the turn called `name`; it lasts until the value is dropped.
pub(crate) fn wait(name: &str) -> Result<File, CacheError> {
    let file = open(name)?;
    file.lock().map_err(failed(name))?;
    Ok(file)
}

/// Takes the turn called `name`, unless another process has it.
pub(crate) fn take(name: &str) -> Result<Option<File>, CacheError> {
    let file = open(name)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(failed(name)(source)),
    }
}

fn open(name: &str) -> Result<File, CacheError> {
    let folder = cache::root()?.join("locks");
    fs::create_dir_all(&folder).map_err(failed(name))?;
    File::create(folder.join(name)).map_err(failed(name))
}

fn failed(name: &str) -> impl FnOnce(std::io::Error) -> CacheError {
    let path = cache::root().unwrap_or_default().join("locks").join(name);
    move |source| CacheError::Io { action: "lock", path, source }
}
