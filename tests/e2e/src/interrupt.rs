//! Ctrl-C, and being asked to end, as something that is looked at between two steps.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, ensure};
use tokio::signal::unix::{SignalKind, signal};

static CAUGHT: AtomicBool = AtomicBool::new(false);

/// From now on the two signals do not end the process: [`check`] reports them.
///
/// # Errors
/// When the system does not let us.
pub fn catch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut interrupt, mut terminate) = {
        let _entered = runtime.enter();
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        CAUGHT.store(true, Ordering::Relaxed);
    });
    Ok(())
}

/// Whether to go on.
///
/// # Errors
/// When one of the signals has come.
pub fn check() -> Result<()> {
    ensure!(!CAUGHT.load(Ordering::Relaxed), "interrupted");
    Ok(())
}
