//! Bodies that wait to be fetched, each under its session's id:
//!
//! ```text
//! <id>/body     the archive
//! <id>/record   its digest, its length, and the digest of its token; written last, so what it tells of is there
//! <id>/claim    who has redeemed it; made once, by whoever comes first
//! <id>/done     its pod has it; the archive is deleted
//! ```
//!
//! Nothing is known of a body but what lies here, so any process may stage it and any other serve it, also after a
//! restart. Times are the store's: when an object was written. The token itself is in the session's Secret alone.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use cofferdam_model::session::SessionId;
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload};
use serde::{Deserialize, Serialize};

use super::archive::Archive;
use super::backend::OpenError;
use super::claims::{Claim, LIFETIME, Redeemer, Standing};
use super::location::Location;
use super::unfinished;
use crate::token::{NoRandomness, Token, TokenDigest};

const BODY: &str = "body";
const RECORD: &str = "record";
const CLAIM: &str = "claim";
const DONE: &str = "done";

/// How much longer than a body can be had it is kept: whoever claims it at the last moment has claimed it before
/// anybody decides to delete it.
const MARGIN: Duration = Duration::from_secs(30);

/// How old something must be before it can belong to no session: a body is staged before its session's Secret is made.
const ORPHANED: Duration = Duration::from_mins(1);

/// How long writing may take. What is older and not finished never will be.
const UNFINISHED: Duration = Duration::from_mins(15);

/// The store. Clones share it.
#[derive(Clone)]
pub struct BodyStore {
    objects: Arc<dyn ObjectStore>,
    location: Location,
    budget: u64,
    /// Bytes that are being written: what is listed does not hold them yet.
    writing: Arc<AtomicU64>,
}

/// What is known of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The SHA-256 of the archive, as 64 hexadecimal digits.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// Its token's digest.
    pub token: TokenDigest,
    /// When it was staged, by the store's clock.
    pub staged: SystemTime,
}

/// What is written of it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    sha256: String,
    bytes: u64,
    token_sha256: String,
}

/// Why the store did not do what it was to do. The messages hold nothing of a body, and no word of the store's.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It does not answer, or not as it should.
    #[error("the body store does not work; the API's log says why")]
    Unavailable(#[from] object_store::Error),
    /// What it holds is not what we wrote.
    #[error("the body store holds something that is not Cofferdam's")]
    Foreign,
    /// It overwrites what must not be there yet.
    #[error(
        "the body store does not heed conditional writes, so that two pods could have the same body; use another one"
    )]
    NotExclusive,
    /// As much as it may hold waits in it.
    #[error("the bodies that wait to be fetched take up all the room that they may; try again in a few minutes")]
    Full,
    /// See there.
    #[error(transparent)]
    Random(#[from] NoRandomness),
}

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bodies that are gone now.
    pub removed: u64,
    /// Bytes that are still there.
    pub bytes: u64,
}

/// All objects of one session.
#[derive(Default)]
struct Found {
    bytes: u64,
    newest: Option<SystemTime>,
    record: Option<SystemTime>,
    claim: Option<SystemTime>,
}

impl BodyStore {
    /// Opens the store, which may hold `budget` bytes. Of a bucket, credentials and what else there is to know come
    /// from the environment.
    pub fn open(location: Location, budget: u64) -> Result<Self, OpenError> {
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let settings = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Self::open_with(location, budget, settings)
    }

    /// The same with other settings than the environment's.
    pub(super) fn open_with(
        location: Location,
        budget: u64,
        settings: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, OpenError> {
        Ok(Self { objects: location.open(settings)?, location, budget, writing: Arc::default() })
    }

    /// Finds out whether the store answers, and whether it lets only one claim be made: some overwrite what is there,
    /// and then two pods would have the same body.
    pub async fn prove(&self) -> Result<(), StoreError> {
        let id = format!("probe-{}", &Token::random()?.digest().hex()[..16]);
        let who = Redeemer { pod_uid: None };
        let claims = (self.claim(&id, &who).await?, self.claim(&id, &who).await?);
        self.delete(&id, CLAIM).await?;
        if claims == (true, false) { Ok(()) } else { Err(StoreError::NotExclusive) }
    }

    /// Keeps an archive for the session that is about to be made, and gives the token by which its pod may fetch it.
    ///
    /// An id is staged once. What could not be written whole is not there.
    pub async fn stage(&self, id: &str, archive: Archive) -> Result<Token, StoreError> {
        let token = Token::random()?;
        let written =
            Written { sha256: archive.sha256().to_owned(), bytes: archive.bytes(), token_sha256: token.digest().hex() };
        let record = serde_json::to_vec(&written).map_err(|_| StoreError::Foreign)?;
        let _room = self.room(archive.bytes()).await?;
        let staged = async {
            self.put(id, BODY, archive.pieces.into_iter().collect(), PutMode::Overwrite).await?;
            self.put(id, RECORD, record.into(), PutMode::Overwrite).await
        };
        match staged.await {
            Ok(()) => Ok(token),
            Err(error) => {
                // What stays is swept away later.
                let _ = self.remove(id).await;
                Err(error.into())
            }
        }
    }

    /// What is known of that session's body, if it has one.
    pub async fn record(&self, id: &str) -> Result<Option<Record>, StoreError> {
        // Whoever asks may ask for anything.
        if SessionId::parse(id).is_err() {
            return Ok(None);
        }
        let Some((written, staged)) = self.read::<Written>(id, RECORD).await? else { return Ok(None) };
        let token = TokenDigest::parse(&written.token_sha256).ok_or(StoreError::Foreign)?;
        Ok(Some(Record { sha256: written.sha256, bytes: written.bytes, token, staged }))
    }

    /// How it stands.
    pub async fn standing(&self, id: &str, record: &Record) -> Result<Standing, StoreError> {
        let (claim, done) = tokio::try_join!(self.read::<Redeemer>(id, CLAIM), self.read::<()>(id, DONE))?;
        let claim = claim.map(|(by, at)| Claim { by, at });
        Ok(Standing { staged: record.staged, claim, acknowledged: done.is_some() })
    }

    /// Claims a body, unless somebody has done so before: of many who try exactly one is told so.
    pub async fn claim(&self, id: &str, by: &Redeemer) -> Result<bool, StoreError> {
        let claim = serde_json::to_vec(by).map_err(|_| StoreError::Foreign)?;
        match self.put(id, CLAIM, claim.into(), PutMode::Create).await {
            Ok(()) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes that the pod has the body, and deletes the archive.
    pub async fn acknowledge(&self, id: &str) -> Result<(), StoreError> {
        self.put(id, DONE, "null".into(), PutMode::Overwrite).await?;
        Ok(self.delete(id, BODY).await?)
    }

    /// A part of the archive, read as it is taken; none where it was deleted meanwhile.
    pub async fn read_archive(
        &self,
        id: &str,
        part: Range<u64>,
    ) -> Result<Option<BoxStream<'static, Result<Bytes, object_store::Error>>>, StoreError> {
        let options = GetOptions::new().with_range(Some(part));
        Ok(found(self.objects.get_opts(&path(id, BODY), options).await)?.map(object_store::GetResult::into_stream))
    }

    /// Deletes all that there is of a session; none is no error.
    pub async fn remove(&self, id: &str) -> Result<(), StoreError> {
        // Without its record nobody finds a body any more.
        for name in [RECORD, BODY, CLAIM, DONE] {
            self.delete(id, name).await?;
        }
        Ok(())
    }

    /// Deletes what can be had no more, and what belongs to no session that `is_session` knows.
    pub async fn sweep(&self, now: SystemTime, is_session: impl Fn(&str) -> bool) -> Result<Swept, StoreError> {
        let mut swept = Swept::default();
        for (id, found) in self.list().await? {
            if found.is_over(now) || (!is_session(&id) && found.is_older(ORPHANED, now)) {
                self.remove(&id).await?;
                swept.removed += 1;
            } else {
                swept.bytes += found.bytes;
            }
        }
        if let Location::Directory(directory) = self.location.clone() {
            let discarded = tokio::task::spawn_blocking(move || unfinished::discard(&directory, UNFINISHED, now)).await;
            if let Ok(Err(error)) = discarded {
                tracing::warn!(%error, "files that were begun and never finished cannot be deleted");
            }
        }
        Ok(swept)
    }

    /// Room for that many bytes, until it is dropped.
    async fn room(&self, bytes: u64) -> Result<Room, StoreError> {
        let room = Room::take(&self.writing, bytes);
        let fits = |held: u64| held.saturating_add(self.writing.load(Ordering::Relaxed)) <= self.budget;
        // What can be had no more makes room first.
        if fits(self.bytes().await?) || fits(self.sweep(SystemTime::now(), |_| true).await?.bytes) {
            return Ok(room);
        }
        Err(StoreError::Full)
    }

    async fn bytes(&self) -> Result<u64, StoreError> {
        Ok(self.list().await?.values().map(|found| found.bytes).sum())
    }

    async fn list(&self) -> Result<BTreeMap<String, Found>, StoreError> {
        let mut all: BTreeMap<String, Found> = BTreeMap::new();
        let mut objects = self.objects.list(None);
        while let Some(object) = objects.try_next().await? {
            let mut parts = object.location.parts();
            // Of what is not laid out so nothing is ours.
            if let (Some(id), Some(name), None) = (parts.next(), parts.next(), parts.next()) {
                all.entry(id.as_ref().to_owned()).or_default().add(name.as_ref(), &object);
            }
        }
        Ok(all)
    }

    async fn put(&self, id: &str, name: &str, what: PutPayload, mode: PutMode) -> object_store::Result<()> {
        self.objects.put_opts(&path(id, name), what, PutOptions::from(mode)).await.map(|_| ())
    }

    async fn read<T: for<'de> Deserialize<'de>>(
        &self,
        id: &str,
        name: &str,
    ) -> Result<Option<(T, SystemTime)>, StoreError> {
        let Some(object) = found(self.objects.get(&path(id, name)).await)? else { return Ok(None) };
        let written = object.meta.last_modified.into();
        let Some(bytes) = found(object.bytes().await)? else { return Ok(None) };
        let value = serde_json::from_slice(&bytes).map_err(|_| StoreError::Foreign)?;
        Ok(Some((value, written)))
    }

    async fn delete(&self, id: &str, name: &str) -> object_store::Result<()> {
        found(self.objects.delete(&path(id, name)).await).map(|_| ())
    }
}

impl Found {
    fn add(&mut self, name: &str, object: &ObjectMeta) {
        let written = SystemTime::from(object.last_modified);
        self.bytes += object.size;
        self.newest = self.newest.max(Some(written));
        match name {
            RECORD => self.record = Some(written),
            CLAIM => self.claim = Some(written),
            _ => {}
        }
    }

    /// Whether the body can be had no more, by anybody. Without a record it was never whole, or is half deleted.
    fn is_over(&self, now: SystemTime) -> bool {
        let since = self.record.and(self.claim.or(self.record)).or(self.newest);
        since.is_some_and(|since| now >= since + LIFETIME + MARGIN)
    }

    fn is_older(&self, age: Duration, now: SystemTime) -> bool {
        self.newest.is_some_and(|newest| now >= newest + age)
    }
}

/// Bytes that are being written.
struct Room {
    writing: Arc<AtomicU64>,
    bytes: u64,
}

impl Room {
    fn take(writing: &Arc<AtomicU64>, bytes: u64) -> Self {
        writing.fetch_add(bytes, Ordering::Relaxed);
        Self { writing: Arc::clone(writing), bytes }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.writing.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

fn path(id: &str, name: &str) -> Path {
    Path::from_iter([id, name])
}

/// What is not there is nothing, and no error.
fn found<T>(outcome: object_store::Result<T>) -> object_store::Result<Option<T>> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Debug for BodyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BodyStore({})", self.location)
    }
}

#[cfg(test)]
mod tests;
