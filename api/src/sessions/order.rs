//! What a session is made from: an order in which nothing is wrong, and what it becomes in the cluster.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use cofferdam_model::policy::Policy;
use cofferdam_model::ports::Ports;
use cofferdam_model::session::SessionId;
use cofferdam_runtime::errors::with_causes;
use cofferdam_runtime::http::budget::Share;

use crate::bodies::{self, Archiver, BodyStore, Files, Limits, StoreError};
use crate::session::pod::{self, Body, Command, SessionPod};
use crate::session::record::{Confidential, Record};
use crate::session::start::Objects;
use crate::wire::{Io, PullPolicy};

/// A session that somebody may have. Its `Debug` shows nothing of what it holds.
#[derive(Debug)]
pub struct Order {
    /// What is kept of it beside its pod.
    pub record: Record,
    /// What kind of session it is.
    pub kind: Kind,
    /// What it runs in.
    pub image: String,
    /// When that is pulled.
    pub pull_policy: PullPolicy,
    /// What only its program may know.
    pub confidential: Confidential,
    /// What it serves.
    pub ports: Ports,
}

/// A kind of session.
#[derive(Debug)]
pub enum Kind {
    /// A client's own program.
    Run {
        /// The path of what is run, in the body.
        entry: String,
        /// The body.
        parcel: Parcel,
    },
    /// A program of the operator's, which its image starts by itself.
    App,
}

/// Files on their way into a body, and the memory that they were granted.
#[derive(Debug)]
pub struct Parcel {
    /// The files.
    pub files: Files,
    /// It is given back when they are packed and kept.
    pub memory: Share,
}

/// What sessions are made with.
pub struct Workshop {
    /// The profile of sessions that run a client's program.
    pub profile: String,
    /// The profile of sessions that run an app of the operator's.
    pub app_profile: String,
    /// What runs a client's program, where the profile does not say it.
    pub command: Option<Command>,
    /// The policy of the moment.
    pub policy: Arc<ArcSwap<Policy>>,
    /// Packs bodies.
    pub archiver: Archiver,
    /// Where bodies wait; none where there are no bodies.
    pub store: Option<BodyStore>,
    /// Where pods reach it.
    pub self_url: String,
}

impl Workshop {
    /// How much may be unpacked into a pod.
    #[must_use]
    pub fn limits(&self) -> Limits {
        let policy = self.policy.load();
        let size = policy.bodies().size;
        let room = policy.profile(&self.profile).map(|profile| profile.resources.limits.ephemeral_storage);
        Limits {
            max_bytes: room.map_or(size, |room| size.min(room)).whole_units(),
            max_entries: policy.bodies().max_entries,
        }
    }
}

impl Order {
    /// Keeps its body, and makes its objects. What it cannot be made for is a sentence for clients.
    pub(super) async fn objects(
        self,
        id: &SessionId,
        workshop: &Workshop,
        namespace: &str,
        kept: Duration,
    ) -> Result<Objects, String> {
        let Self { record, kind, image, pull_policy, mut confidential, ports } = self;
        let (mut command, mut entry, mut body) = (Vec::new(), None, None);
        let profile = match kind {
            Kind::App => &workshop.app_profile,
            Kind::Run { entry: path, parcel } => {
                let (url, sha256, token) = keep(id, workshop, parcel).await?;
                confidential = confidential.with_token(token);
                body = Some((url, sha256));
                if let Some(its) = &workshop.command {
                    let place = format!("{}/{path}", workshop.policy.load().bodies().path);
                    command = its.of(&place, pod::inspects(record.inspect, &ports));
                }
                entry = Some(path);
                &workshop.profile
            }
        };
        let pod = SessionPod {
            id,
            namespace,
            profile,
            image: &image,
            pull_policy,
            command,
            entry: entry.as_deref(),
            body: body.as_ref().map(|(url, sha256)| Body { url, sha256, has_token: true }),
            variables: confidential.names().collect(),
            ports: &ports,
            io: record.apps.first().map_or(Io::Tty, |app| app.io),
            finished_grace_seconds: kept.as_secs(),
        };
        Ok(Objects { id: id.clone(), secret: record.secret(id, namespace, &confidential), pod: pod.object() })
    }
}

/// Keeps a body until its pod comes for it: from where, its digest, and its token.
async fn keep(id: &SessionId, workshop: &Workshop, parcel: Parcel) -> Result<(String, String, String), String> {
    let Parcel { files, memory } = parcel;
    let store = workshop.store.as_ref().ok_or("create: bodies are not delivered here; ask the operator")?;
    let archive = workshop.archiver.pack(files).await.map_err(|error| format!("create: {error}"))?;
    let sha256 = archive.sha256().to_owned();
    let token = store.stage(id.as_str(), archive).await.map_err(|error| {
        // Of a full store nobody has to look into the log.
        if !matches!(error, StoreError::Full) {
            tracing::warn!(session = %id, error = with_causes(&error), "a body cannot be kept");
        }
        format!("create: {error}")
    })?;
    drop(memory);
    Ok((bodies::url(&workshop.self_url, id.as_str()), sha256, token.secret().to_owned()))
}

impl std::fmt::Debug for Workshop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workshop").field("profile", &self.profile).finish_non_exhaustive()
    }
}
