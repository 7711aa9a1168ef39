//! The flags of sessions, and what they mean.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use cofferdam_model::policy::{LONGEST_FINISHED_GRACE_SECONDS, Policy};
use cofferdam_policy_file::{Installation, PolicyFileError, PolicySource};
use cofferdam_runtime::duration;

use super::Bounds;
use crate::bodies::{BodyStore, Location, OpenError};
use crate::session::hub;
use crate::session::pod::Command;
use crate::session::retention;

/// The flags.
#[derive(Clone, Debug, clap::Args)]
pub struct SessionsArgs {
    /// The namespace of sessions.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_API_SESSION_NAMESPACE", default_value = "cofferdam-sessions")]
    pub session_namespace: String,

    /// The policy file. Without it the built-in policy holds. It is read again when it changes.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_API_POLICY")]
    pub policy: Option<PathBuf>,

    /// How often the policy file is looked at.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_API_POLICY_POLL_INTERVAL",
        default_value = "10s",
        value_parser = duration::interval
    )]
    pub policy_poll_interval: Duration,

    /// The policy's profile for sessions that run a client's program.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_API_PROFILE", default_value = "default")]
    pub profile: String,

    /// The policy's profile for sessions that run an app of --apps.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_API_APP_PROFILE", default_value = "app")]
    pub app_profile: String,

    /// What runs a client's program, where the profile does not say it: a JSON array, in which $(ENTRY) stands for the path of
    /// the entry, and a part $(INSPECT) for --inspect-arguments where a client asks for that.
    #[arg(long, value_name = "JSON", env = "COFFERDAM_API_RUN_COMMAND")]
    pub run_command: Option<Words>,

    /// What makes a program's inspector listen on port 9230, as a JSON array.
    #[arg(long, value_name = "JSON", env = "COFFERDAM_API_INSPECT_ARGUMENTS", default_value = "[]")]
    pub inspect_arguments: Words,

    /// How many sessions there may be at a time, with those that have ended and are kept.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "COFFERDAM_API_SESSIONS",
        default_value_t = u32::try_from(retention::CAPACITY).unwrap_or(u32::MAX),
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub sessions: u32,

    /// How long a session that has ended is kept for those who come back; a day at most, as its pod.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_API_RETENTION",
        default_value = "4h",
        value_parser = kept
    )]
    pub retention: Duration,

    /// How much of a session's events is kept for those who come back, and as much of its terminal, in bytes.
    #[arg(
        long,
        value_name = "BYTES",
        env = "COFFERDAM_API_REPLAY_BYTES",
        default_value = "5000000",
        value_parser = clap::value_parser!(u32).range(1_000..=100_000_000)
    )]
    pub replay_bytes: u32,

    /// The largest request for a session, with all that it brings, in bytes.
    #[arg(
        long,
        value_name = "BYTES",
        env = "COFFERDAM_API_REQUEST_BYTES",
        default_value = "16777216",
        value_parser = clap::value_parser!(u32).range(1_048_576..=268_435_456)
    )]
    pub request_bytes: u32,

    /// Where pods fetch their bodies, in plain HTTP.
    #[arg(long, value_name = "ADDRESS", env = "COFFERDAM_API_BODIES_LISTEN", default_value = "0.0.0.0:8063")]
    pub bodies_listen: SocketAddr,

    /// That port, as pods reach it.
    #[arg(
        long,
        value_name = "URL",
        env = "COFFERDAM_API_SELF_URL",
        default_value = "http://cofferdam-api.cofferdam-system.svc:8063"
    )]
    pub self_url: String,

    /// Where bodies wait for their pods: a directory (`file:///…`), a bucket (`s3://…`, `gs://…`, `az://…`), or `memory`.
    #[arg(
        long,
        value_name = "PLACE",
        env = "COFFERDAM_API_BODY_STORE",
        default_value = "file:///var/lib/cofferdam/bodies"
    )]
    pub body_store: Location,

    /// How much waits there at most, in bytes.
    #[arg(long, value_name = "BYTES", env = "COFFERDAM_API_BODY_STORE_BYTES", default_value = "1073741824")]
    pub body_store_bytes: u64,

    /// How a pod that fetches its body is known.
    #[arg(long, value_name = "HOW", env = "COFFERDAM_API_BODY_IDENTITY", default_value = "review")]
    pub body_identity: BodyIdentity,
}

/// How a pod that fetches its body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BodyIdentity {
    /// By its own token, of which the API server says whose it is.
    Review,
    /// By the body's token alone, where the API may not ask the API server for that.
    None,
}

/// A JSON array of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(pub Vec<String>);

/// What the flags mean.
pub struct SessionsConfig {
    /// The namespace of sessions.
    pub namespace: String,
    /// How many, and how much of each.
    pub bounds: Bounds,
    /// Profiles: of a client's program, and of an app.
    pub profiles: (String, String),
    /// What runs a client's program, where the profile does not say it.
    pub command: Option<Command>,
    /// The policy to begin with.
    pub policy: Policy,
    /// Where it is from.
    pub policy_source: PolicySource,
    /// What its file does not say.
    pub installation: Installation,
    /// How often it is looked at.
    pub policy_poll: Duration,
    /// The largest request, in bytes.
    pub request_bytes: usize,
    /// Where bodies are fetched.
    pub bodies_listen: SocketAddr,
    /// That, as pods reach it.
    pub self_url: String,
    /// Where bodies wait.
    pub store: BodyStore,
    /// What that is called.
    pub store_location: Location,
    /// How a pod is known.
    pub body_identity: BodyIdentity,
}

/// Flags that sessions cannot be made with.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// The policy.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// The store.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// A profile that the policy does not have: each session would be refused.
    #[error("the policy has no profile `{profile}`, which {flag} names; it has {there}")]
    NoProfile {
        /// Which.
        profile: String,
        /// Where it is named.
        flag: &'static str,
        /// Those that it has.
        there: String,
    },
    /// No URL of a body can be made of it.
    #[error(
        "--self-url must begin with http:// or https:// and a host, such as http://cofferdam-api.cofferdam-system.svc:8063"
    )]
    SelfUrl,
}

impl SessionsArgs {
    /// What they mean, where there are apps or none. Reads the policy, and opens the store.
    ///
    /// # Errors
    /// When sessions cannot be made with them.
    pub fn into_config(self, has_apps: bool) -> Result<SessionsConfig, SessionsError> {
        // Without `..`: a flag that nothing uses is a compiler's warning.
        let Self {
            session_namespace,
            policy,
            policy_poll_interval,
            profile,
            app_profile,
            run_command,
            inspect_arguments,
            sessions,
            retention,
            replay_bytes,
            request_bytes,
            bodies_listen,
            self_url,
            body_store,
            body_store_bytes,
            body_identity,
        } = self;
        let uri: Option<http::Uri> = self_url.parse().ok();
        let is_url = uri.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
        if !is_url || self_url.contains(['?', '#']) {
            return Err(SessionsError::SelfUrl);
        }
        let installation = Installation::default();
        let policy_source = policy.map_or(PolicySource::BuiltIn, PolicySource::File);
        let policy = installation.complete(policy_source.load()?);
        for (name, flag, is_used) in [(&profile, "--profile", true), (&app_profile, "--app-profile", has_apps)] {
            if is_used && policy.profile(name).is_none() {
                let there = policy.profile_names().collect::<Vec<_>>().join(", ");
                return Err(SessionsError::NoProfile { profile: name.clone(), flag, there });
            }
        }
        // Both fit where a process has 32 bits or more.
        let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(SessionsConfig {
            namespace: session_namespace,
            bounds: Bounds {
                capacity: size(sessions),
                kept: retention,
                replay: hub::Limits { events: size(replay_bytes), bytes: size(replay_bytes) },
            },
            profiles: (profile, app_profile),
            command: run_command.map(|Words(parts)| Command::new(parts, inspect_arguments.0)),
            policy,
            policy_source,
            installation,
            policy_poll: policy_poll_interval,
            request_bytes: size(request_bytes),
            bodies_listen,
            self_url,
            store: BodyStore::open(body_store.clone(), body_store_bytes)?,
            store_location: body_store,
            body_identity,
        })
    }
}

impl std::str::FromStr for Words {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_str(text)
            .map(Self)
            .map_err(|_| "write a JSON array of texts, such as [\"node\", \"$(ENTRY)\"]")
    }
}

/// How long an agent keeps a finished pod at most is how long a session can be kept.
fn kept(text: &str) -> Result<Duration, String> {
    let kept = duration::interval(text).map_err(|error| error.to_string())?;
    let most = Duration::from_secs(LONGEST_FINISHED_GRACE_SECONDS.into());
    if kept <= most { Ok(kept) } else { Err(format!("a finished pod is kept for {} h at most", most.as_secs() / 3600)) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: SessionsArgs,
    }

    fn args(flags: &[&str]) -> SessionsArgs {
        Line::try_parse_from(["test", "--body-store=memory"].iter().chain(flags)).unwrap().args
    }

    fn config(flags: &[&str]) -> Result<SessionsConfig, SessionsError> {
        args(flags).into_config(true)
    }

    #[tokio::test]
    async fn the_defaults_are_those_of_the_contract() {
        let config = config(&[]).unwrap();
        assert_eq!((config.bounds.capacity, config.bounds.kept), (32, retention::KEPT));
        assert_eq!(config.bounds.replay, hub::Limits::default());
        assert_eq!((config.namespace.as_str(), config.command), ("cofferdam-sessions", None));
    }

    #[tokio::test]
    async fn what_every_session_would_fail_by_is_told_at_the_start() {
        assert!(matches!(config(&["--profile=ap"]), Err(SessionsError::NoProfile { flag: "--profile", .. })));
        assert!(matches!(config(&["--app-profile=ap"]), Err(SessionsError::NoProfile { .. })));
        assert!(args(&["--app-profile=ap"]).into_config(false).is_ok(), "there are no apps");
        assert!(matches!(config(&["--policy=/nowhere"]), Err(SessionsError::Policy(_))));
        for url in ["cofferdam-api:8063", "ftp://a", "http://", "http://a?x=1", ""] {
            assert!(matches!(config(&["--self-url", url]), Err(SessionsError::SelfUrl)), "{url}");
        }
    }

    #[tokio::test]
    async fn what_runs_a_program_is_a_list() {
        let command =
            config(&["--run-command=[\"run\", \"$(INSPECT)\", \"$(ENTRY)\"]", "--inspect-arguments=[\"-i\"]"]);
        assert_eq!(command.unwrap().command.unwrap().of("/app/a", true), ["run", "-i", "/app/a"]);
        for flag in ["--run-command=node", "--retention=25h", "--retention=0s", "--sessions=0", "--body-store=ftp://a"]
        {
            assert!(Line::try_parse_from(["test", flag]).is_err(), "{flag}");
        }
    }
}
