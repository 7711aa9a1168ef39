//! The archive as a reader: it connects, asks, tries again and goes on where it stopped, until its deadline.
//!
//! With `restartPolicy: Never` an init container that failed is never started again, so whatever may pass is waited for
//! here: no network yet, refused and broken connections, 408, 429 and 5xx.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, DATE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::address::Address;
use super::connect::{self, Trouble};
use super::{Remote, resume};
use crate::failure::Failure;
use crate::say;

/// Answers that lead on, one after the other.
const MOST_REDIRECTS: usize = 5;

/// The pause after the first failure; the next ones are twice as long each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest that one step waits for the other side: a connection that hangs must not take all of the time.
const LONGEST_PATIENCE: Duration = Duration::from_secs(15);

/// Clocks that differ by less are usual. Tokens and certificates fail by more.
const TOLD_SKEW: Duration = Duration::from_secs(5);

/// Until when to try, and how long that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    whole: Duration,
}

impl Deadline {
    pub(crate) fn after(whole: Duration) -> Self {
        // A deadline that no clock can hold is none.
        let now = Instant::now();
        let at = now.checked_add(whole).unwrap_or_else(|| now + Duration::from_hours(24));
        Self { at, whole }
    }

    /// How long it is until then.
    pub(crate) fn left(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// How long one step may wait for the other side.
    pub(crate) fn patience(&self) -> Duration {
        (self.whole / 6).min(LONGEST_PATIENCE)
    }
}

/// Why a download ended before the archive did.
pub(crate) enum Stop {
    /// The server has another version by now: what came of the last one is worth nothing.
    Changed,
    Failed(Failure),
}

/// An archive on its way.
pub(crate) struct Download<'a> {
    runtime: &'a Runtime,
    remote: &'a Remote,
    deadline: Deadline,
    /// The most bytes that an archive of that many unpacked ones has.
    most: u64,
    body: Option<Incoming>,
    chunk: Bytes,
    hasher: Sha256,
    received: u64,
    validator: Option<HeaderValue>,
    resumed: bool,
    ended: bool,
    stop: Option<Stop>,
    trouble: String,
    failures: u32,
    told_skew: bool,
}

impl<'a> Download<'a> {
    pub(crate) fn new(runtime: &'a Runtime, remote: &'a Remote, deadline: Deadline, most: u64) -> Self {
        Self {
            runtime,
            remote,
            deadline,
            most,
            body: None,
            chunk: Bytes::new(),
            hasher: Sha256::new(),
            received: 0,
            validator: None,
            resumed: false,
            ended: false,
            stop: None,
            trouble: "it was still sending".to_owned(),
            failures: 0,
            told_skew: false,
        }
    }

    /// Why it stopped, if it did.
    pub(crate) fn take_stop(&mut self) -> Option<Stop> {
        self.stop.take()
    }

    /// Whether it consists of parts of several answers.
    pub(crate) fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Reads the rest, for the digest alone; returns why it stopped, if it did.
    pub(crate) fn drain(&mut self) -> Option<Stop> {
        // Reading fails for no other reason.
        let _ = io::copy(self, &mut io::sink());
        self.take_stop()
    }

    /// The SHA-256 of all that came, as hex digits.
    pub(crate) fn digest(&self) -> String {
        self.hasher.clone().finalize().iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    /// The next bytes; none at the end.
    async fn next(&mut self) -> Result<Option<Bytes>, Stop> {
        loop {
            let Some(body) = &mut self.body else {
                let rest = self.open().await?;
                if !rest.is_empty() {
                    return Ok(Some(rest));
                }
                continue;
            };
            match timeout(self.deadline.patience(), body.frame()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        self.failures = 0;
                        return Ok(Some(data));
                    }
                }
                Ok(Some(Err(_))) => self.lose(format!("{}: the connection was cut", self.remote.address.origin())),
                Err(_) => self.lose(format!("{}: it stopped sending", self.remote.address.origin())),
            }
        }
    }

    fn lose(&mut self, why: String) {
        self.body = None;
        self.failures += 1;
        say(&format!("trying again: {why}"));
        self.trouble = why;
    }

    /// Connects until there is an answer to read from; returns what of it is already here.
    async fn open(&mut self) -> Result<Bytes, Stop> {
        loop {
            if self.failures > 0 {
                sleep(pause(self.failures)).await;
            }
            match self.attempt().await {
                Ok(rest) => return Ok(rest),
                Err(Attempt::Changed) => return Err(Stop::Changed),
                Err(Attempt::Trouble(Trouble::Lasting(failure))) => return Err(Stop::Failed(failure)),
                Err(Attempt::Trouble(Trouble::Passing(why))) => self.lose(why),
            }
        }
    }

    async fn attempt(&mut self) -> Result<Bytes, Attempt> {
        let mut address = self.remote.address.clone();
        for _ in 0..=MOST_REDIRECTS {
            let response = self.ask(&address).await?;
            let status = response.status().as_u16();
            match status {
                200 => return self.whole(response).await,
                206 if self.received > 0 => return self.rest(response),
                // Nothing is left of it, so it is shorter than it was.
                416 if self.received > 0 => return Err(Attempt::Changed),
                301 | 302 | 303 | 307 | 308 => address = follow(&address, response.headers())?,
                408 | 429 | 500..=599 => {
                    let why = format!("{} answered {status}", address.origin());
                    return Err(Trouble::Passing(why).into());
                }
                _ => {
                    return Err(refused(&address, &format!("{status}, {}", meaning(status))));
                }
            }
        }
        Err(refused(&self.remote.address, &format!("more than {MOST_REDIRECTS} redirects")))
    }

    async fn ask(&mut self, address: &Address) -> Result<Response<Incoming>, Attempt> {
        let request = connect::request(Method::GET, address).header(ACCEPT_ENCODING, "identity");
        let mut request = self.remote.authorize(request, address)?;
        if self.received > 0 {
            request = resume::ask(request, self.received, self.validator.as_ref());
        }
        let response = connect::send(request, address, &self.remote.tls, self.deadline.patience()).await?;
        self.tell_skew(response.headers());
        Ok(response)
    }

    /// An answer with the whole archive: from its beginning, or of which we have the beginning.
    async fn whole(&mut self, response: Response<Incoming>) -> Result<Bytes, Attempt> {
        if self.received == 0 {
            self.validator = resume::validator(response.headers());
        }
        let length =
            response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > self.most) {
            return Err(self.too_large().into());
        }
        let mut body = response.into_body();
        let rest = self.skip(&mut body).await?;
        self.body = Some(body);
        Ok(rest)
    }

    /// Reads again what is here already, and returns what comes after it in the last piece.
    async fn skip(&mut self, body: &mut Incoming) -> Result<Bytes, Attempt> {
        let (mut hasher, mut left) = (Sha256::new(), self.received);
        while left > 0 {
            let cut = || Attempt::from(Trouble::Passing(format!("{}: cut again", self.remote.address.origin())));
            let frame = timeout(self.deadline.patience(), body.frame()).await.map_err(|_| cut())?;
            let Some(frame) = frame else { return Err(Attempt::Changed) };
            let Ok(mut data) = frame.map_err(|_| cut())?.into_data() else { continue };
            let rest = data.split_off(usize::try_from(left).unwrap_or(usize::MAX).min(data.len()));
            left -= data.len() as u64;
            hasher.update(&data);
            if left == 0 {
                self.resumed = true;
                return if hasher.finalize() == self.hasher.clone().finalize() {
                    Ok(rest)
                } else {
                    Err(Attempt::Changed)
                };
            }
        }
        Ok(Bytes::new())
    }

    fn rest(&mut self, response: Response<Incoming>) -> Result<Bytes, Attempt> {
        if !resume::goes_on(response.headers(), self.received, self.validator.as_ref()) {
            return Err(Attempt::Changed);
        }
        self.resumed = true;
        self.body = Some(response.into_body());
        Ok(Bytes::new())
    }

    fn too_large(&self) -> Failure {
        Failure::TooLarge(format!(
            "the archive is larger than {} bytes, which is more than one of a body that fits; make the body smaller, or \
             raise bodies.size in the policy",
            self.most
        ))
    }

    fn tell_skew(&mut self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        let Some(date) = date.filter(|_| !self.told_skew) else { return };
        let (skew, where_to) = match SystemTime::now().duration_since(date) {
            Ok(ahead) => (ahead, "ahead of"),
            Err(behind) => (behind.duration(), "behind"),
        };
        if skew > TOLD_SKEW {
            self.told_skew = true;
            say(&format!("this node's clock is {} s {where_to} the server's: a token may fail for it", skew.as_secs()));
        }
    }
}

impl Read for Download<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && !self.ended && self.stop.is_none() {
            let (runtime, deadline) = (self.runtime, self.deadline);
            match runtime.block_on(async { timeout_at(deadline.at, self.next()).await }) {
                // A future that is ready is not asked the time: who always sends would have no deadline.
                Ok(Ok(Some(data))) if !deadline.left().is_zero() => {
                    self.hasher.update(&data);
                    self.received += data.len() as u64;
                    self.chunk = data;
                    if self.received > self.most {
                        self.stop = Some(Stop::Failed(self.too_large()));
                    }
                }
                Ok(Ok(None)) => self.ended = true,
                Ok(Err(stop)) => self.stop = Some(stop),
                Ok(Ok(Some(_))) | Err(_) => {
                    let why = format!("the body did not arrive within {:?}: {}", deadline.whole, self.trouble);
                    self.stop = Some(Stop::Failed(Failure::NotReached(why)));
                }
            }
        }
        if self.stop.is_some() {
            return Err(io::Error::other("the download stopped"));
        }
        let length = self.chunk.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.chunk.split_to(length));
        Ok(length)
    }
}

/// What an attempt came to, if not to an answer to read from.
enum Attempt {
    Trouble(Trouble),
    Changed,
}

impl From<Trouble> for Attempt {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

impl From<Failure> for Attempt {
    fn from(failure: Failure) -> Self {
        Self::Trouble(failure.into())
    }
}

fn refused(address: &Address, what: &str) -> Attempt {
    Failure::Refused(format!("{} does not give the body: {what}", address.origin())).into()
}

/// Where a redirect leads. Who asked by https is not led away from it.
fn follow(from: &Address, headers: &HeaderMap) -> Result<Address, Attempt> {
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let to = location.ok_or_else(|| refused(from, "a redirect to nowhere"))?;
    let to = from.join(to).map_err(|_| refused(from, "a redirect to what is no URL of http or https"))?;
    if from.is_https && !to.is_https {
        return Err(refused(from, "a redirect from https to http"));
    }
    Ok(to)
}

/// What people should look at.
fn meaning(status: u16) -> &'static str {
    match status {
        401 => "which is how a missing or unknown token is answered; check cofferdam.dev/body-token-secret",
        403 => "so this pod may not have it; check its token, and that the URL has not expired",
        404 | 410 => "so it is not there (any more); a body of single use belongs to the first pod that asked for it",
        _ => "which is neither the body nor a failure that passes",
    }
}

/// The pause after so many failures in a row: half of it is chance, so that sessions do not come back all at once.
fn pause(failures: u32) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16)).min(LONGEST_PAUSE);
    whole.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        for (failures, most) in [(1, 100), (2, 200), (4, 800), (7, 5_000), (u32::MAX, 5_000)] {
            let pause = pause(failures);
            let most = Duration::from_millis(most);
            assert!(most / 2 <= pause && pause <= most, "{failures}: {pause:?}");
        }
    }

    #[test]
    fn one_step_takes_a_part_of_the_time() {
        assert_eq!(Deadline::after(Duration::from_secs(90)).patience(), Duration::from_secs(15));
        assert_eq!(Deadline::after(Duration::from_secs(6)).patience(), Duration::from_secs(1));
        assert_eq!(Deadline::after(Duration::MAX).patience(), Duration::from_secs(15));
    }

    #[test]
    fn a_redirect_leads_on_but_not_away_from_https() {
        let from = Address::parse("https://a.example/b").unwrap();
        let to = |location: &'static str| {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]);
            follow(&from, &headers).ok().map(|to| to.origin())
        };
        assert_eq!(to("https://c.example/").as_deref(), Some("https://c.example"));
        assert_eq!(to("http://a.example/"), None);
        assert_eq!(to("file:///etc/passwd"), None);
        assert!(follow(&from, &HeaderMap::new()).is_err());
    }
}
