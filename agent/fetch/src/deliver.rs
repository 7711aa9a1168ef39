//! One after the other: what is there, the download and the unpacking of it, the digest, the place, the acknowledgement.

use tokio::runtime::Runtime;

use crate::args::Args;
use crate::failure::Failure;
use crate::place::Place;
use crate::remote::acknowledge::acknowledge;
use crate::remote::deadline::Deadline;
use crate::remote::download::{Download, Stop};
use crate::remote::{Remote, connect};
use crate::say;
use crate::unpack::{Limits, unpack};
use crate::watchdog::Watchdog;

/// Sees to it that the body is in its place.
pub(crate) fn deliver(args: &Args) -> Result<(), Failure> {
    let deadline = Deadline::after(args.deadline);
    let watchdog = Watchdog::arm(&deadline, args.termination_log.clone())?;
    let (address, digest) = (args.address()?, args.digest()?);
    let place = Place::open(&args.into, &digest, &deadline)?;
    if place.is_complete() {
        say("the body is there already");
        return Ok(());
    }
    place.clean()?;
    let remote = Remote {
        address,
        tls: connect::tls()?,
        token_file: args.token_file.clone(),
        identity_file: args.identity_file.clone(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::disk("start", error))?;
    let delivered = place_body(args, &remote, &runtime, deadline, &place, &digest, watchdog);
    match &delivered {
        Ok(is_acknowledgement_asked) => {
            say("the body is in its place");
            if *is_acknowledgement_asked && args.token_file.is_some() {
                acknowledge(&runtime, &remote, &deadline);
            }
        }
        // The reason of the failure counts, and the next run cleans as well.
        Err(_) => drop(place.clean()),
    }
    // A lookup of a name may hang for longer than all of it may take.
    runtime.shutdown_background();
    delivered.map(drop)
}

/// Returns whether its server wants to know; nobody does of a body that an earlier run fetched.
fn place_body(
    args: &Args,
    remote: &Remote,
    runtime: &Runtime,
    deadline: Deadline,
    place: &Place,
    digest: &str,
    watchdog: Watchdog,
) -> Result<bool, Failure> {
    let mut is_acknowledgement_asked = false;
    if !place.is_verified() {
        let limits = Limits { bytes: args.max_bytes, entries: args.max_entries };
        let mut may_be_mixed = true;
        loop {
            let mut download = Download::new(runtime, remote, deadline, limits.stream());
            match fetch(&mut download, place, limits, digest)? {
                Outcome::Whole => {
                    is_acknowledgement_asked = download.is_acknowledgement_asked();
                    break;
                }
                Outcome::Changed => say("beginning anew: the body has changed on its server"),
                // Of what came in parts, some may be of another version, which a server need not say.
                Outcome::Different(_) if download.is_resumed() && may_be_mixed => {
                    may_be_mixed = false;
                    say("beginning anew: the parts do not belong together");
                }
                Outcome::Different(actual) => {
                    return Err(Failure::Digest { wanted: digest.to_owned(), actual });
                }
            }
        }
        place.verify()?;
    }
    // A run that is ended in the midst of it would have failed with all of the body there.
    drop(watchdog);
    place.complete()?;
    Ok(is_acknowledgement_asked)
}

enum Outcome {
    Whole,
    Changed,
    /// With the digest that it has.
    Different(String),
}

fn fetch(download: &mut Download<'_>, place: &Place, limits: Limits, digest: &str) -> Result<Outcome, Failure> {
    let unpacked = unpack(&mut *download, &mut place.incoming()?, limits);
    match download.take_stop() {
        Some(Stop::Changed) => return Ok(Outcome::Changed),
        Some(Stop::Failed(failure)) => return Err(failure),
        None => {}
    }
    if let Err(failure @ (Failure::Disk(_) | Failure::TooLarge(_))) = unpacked {
        return Err(failure);
    }
    // What cannot be unpacked may be a page that asks to log in, and then it is not the body: the digest goes first.
    match download.drain() {
        None => {}
        Some(Stop::Changed) => return Ok(Outcome::Changed),
        // What did not come to its end was never checked, whatever can be said of its beginning.
        Some(Stop::Failed(failure)) => return Err(failure),
    }
    let actual = download.digest();
    if actual != digest {
        return Ok(Outcome::Different(actual));
    }
    unpacked.map(|()| Outcome::Whole)
}
