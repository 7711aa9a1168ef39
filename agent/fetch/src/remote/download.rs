//! The archive as a reader: it connects, asks, tries again and goes on where it stopped, until its deadline.
//!
//! With `restartPolicy: Never` an init container that failed is never started again, so whatever may pass is waited for
//! here: no network yet, refused and broken connections, 408, 429 and 5xx.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout, timeout_at};

use super::acknowledge;
use super::address::Address;
use super::answer::{Attempt, follow, meaning, refused};
use super::connect::{self, Trouble};
use super::deadline::{Deadline, pause};
use super::{Remote, resume};
use crate::failure::Failure;
use crate::say;

/// Answers that lead on, one after the other.
const MOST_REDIRECTS: usize = 5;

/// Clocks that differ by less are usual. Tokens and certificates fail by more.
const TOLD_SKEW: Duration = Duration::from_secs(5);

/// Why a download ended before the archive did.
pub(crate) enum Stop {
    /// The server has another version by now: what came of the last one is worth nothing.
    Changed,
    Failed(Failure),
}

/// The answer that is read from.
enum Body {
    Missing,
    Coming(Incoming),
    Ended,
}

/// An archive on its way.
pub(crate) struct Download<'a> {
    runtime: &'a Runtime,
    remote: &'a Remote,
    deadline: Deadline,
    /// The most bytes that an archive of that many unpacked ones has.
    most: u64,
    body: Body,
    chunk: Bytes,
    hasher: Sha256,
    received: u64,
    /// How long it is, where the server has said so.
    total: Option<u64>,
    validator: Option<HeaderValue>,
    resumed: bool,
    stop: Option<Stop>,
    trouble: String,
    failures: u32,
    told_skew: bool,
    acknowledgement_asked: bool,
}

impl<'a> Download<'a> {
    pub(crate) fn new(runtime: &'a Runtime, remote: &'a Remote, deadline: Deadline, most: u64) -> Self {
        Self {
            runtime,
            remote,
            deadline,
            most,
            body: Body::Missing,
            chunk: Bytes::new(),
            hasher: Sha256::new(),
            received: 0,
            total: None,
            validator: None,
            resumed: false,
            stop: None,
            trouble: "it was still sending".to_owned(),
            failures: 0,
            told_skew: false,
            acknowledgement_asked: false,
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

    /// Whether the origin of the body's URL sent it itself, the end of it at least, and wants to know that it arrived.
    pub(crate) fn is_acknowledgement_asked(&self) -> bool {
        self.acknowledgement_asked
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
            let body = match &mut self.body {
                Body::Coming(body) => body,
                Body::Ended => return Ok(None),
                Body::Missing => {
                    let rest = self.open().await?;
                    if !rest.is_empty() {
                        return Ok(Some(rest));
                    }
                    continue;
                }
            };
            match timeout(self.deadline.patience(), body.frame()).await {
                // A server may send less than it was asked for, and then the answer ends before the body does.
                Ok(None) if self.total.is_some_and(|total| self.received < total) => {
                    self.lose(format!("{}: it sent only a part", self.remote.address.origin()));
                }
                Ok(None) => self.body = Body::Ended,
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
        self.body = Body::Missing;
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
        // Who was led here by another origin goes where that one wants, and shows nothing there, wherever it is.
        let mut is_own = true;
        for _ in 0..=MOST_REDIRECTS {
            is_own &= address.is_same_origin(&self.remote.address);
            let response = self.ask(&address, is_own).await?;
            let status = response.status().as_u16();
            self.acknowledgement_asked = is_own && acknowledge::is_asked_for(response.headers());
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

    async fn ask(&mut self, address: &Address, is_own: bool) -> Result<Response<Incoming>, Attempt> {
        let mut request = connect::request(Method::GET, address).header(ACCEPT_ENCODING, "identity");
        if is_own {
            request = self.remote.authorize(request)?;
        }
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
        self.total = response.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        if self.total.is_some_and(|length| length > self.most) {
            return Err(self.too_large().into());
        }
        let mut body = response.into_body();
        let rest = self.skip(&mut body).await?;
        self.body = Body::Coming(body);
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
        self.total = resume::total(response.headers()).or(self.total);
        self.resumed = true;
        self.body = Body::Coming(response.into_body());
        Ok(Bytes::new())
    }

    fn too_large(&self) -> Failure {
        Failure::TooLarge(format!(
            "the archive is larger than {} bytes, and none of a body within the limits is; make the body smaller, or raise \
             bodies.size in the policy",
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
        if self.chunk.is_empty() && self.stop.is_none() {
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
                Ok(Ok(None)) => {}
                Ok(Err(stop)) => self.stop = Some(stop),
                Ok(Ok(Some(_))) | Err(_) => {
                    let why = format!("the body did not arrive within {:?}: {}", deadline.whole(), self.trouble);
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
