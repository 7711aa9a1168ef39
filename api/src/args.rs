//! The command line: what may be typed. Every flag has an environment variable, `COFFERDAM_API_` and its name.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use cofferdam_policy_file::{PolicyFileError, PolicySource};
use cofferdam_runtime::{duration, logs};

use crate::apps::Apps;
use crate::capabilities::CapabilitiesArgs;
use crate::catalogue::{Catalogue, CatalogueArgs};
use crate::config::{Auth, Config, ConfigError};
use crate::http::origin::{OriginError, Origins};
use crate::http::tokens::Reloader;
use crate::quota;
use crate::routes::Offers;
use crate::sessions::args::SessionsArgs;
use crate::terms::{Terms, TermsArgs};

/// Turns requests of clients into pods, and tells what becomes of them.
#[derive(Debug, Parser)]
#[command(
    name = "cofferdam-api",
    version,
    after_help = "cofferdam-api quota: what all sessions may use together; see its --help"
)]
pub(crate) struct Args {
    /// Where clients are answered, in plain HTTP.
    #[arg(long, value_name = "ADDRESS", env = "COFFERDAM_API_LISTEN", default_value = "0.0.0.0:8062")]
    pub listen: SocketAddr,

    /// Where /livez, /readyz and /metrics are answered, in plain HTTP.
    #[arg(long, value_name = "ADDRESS", env = "COFFERDAM_API_ADMIN_LISTEN", default_value = "0.0.0.0:8080")]
    pub admin_listen: SocketAddr,

    /// Who may call.
    #[arg(long, value_name = "HOW", env = "COFFERDAM_API_AUTH", default_value = "token")]
    pub auth: AuthMode,

    /// The tokens that callers may send, one a line. It is read again when it changes.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_API_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,

    /// How often the file of tokens is looked at.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_API_TOKEN_POLL_INTERVAL",
        default_value = "10s",
        value_parser = duration::interval
    )]
    pub token_poll_interval: Duration,

    /// The audience that callers' tokens have to be for, with --auth=review.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_API_AUDIENCE", default_value = "cofferdam-api")]
    pub audience: String,

    /// The origins whose pages may use the service, with commas between them; * for all.
    #[arg(long, value_name = "LIST", env = "COFFERDAM_API_CORS_ORIGINS", default_value = "*", value_parser = origins)]
    pub cors_origins: Origins,

    /// Apps that clients start by name, JSON or YAML. It may hold secrets.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_API_APPS")]
    pub apps: Option<PathBuf>,

    /// What the service is called.
    #[command(flatten)]
    pub about: CapabilitiesArgs,

    /// Which images may be picked.
    #[command(flatten)]
    pub catalogue: CatalogueArgs,

    /// What has to be accepted before.
    #[command(flatten)]
    pub terms: TermsArgs,

    /// How sessions are made and kept.
    #[command(flatten)]
    pub sessions: SessionsArgs,

    /// The most connections at the same time. Each stream of events and each terminal is one.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "COFFERDAM_API_CONNECTIONS",
        default_value = "1024",
        value_parser = clap::value_parser!(u32).range(16..=65_536)
    )]
    pub connections: u32,

    /// How long to go on serving, unready, once asked to stop: until everybody knows that this replica is going.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_API_DRAIN_DELAY",
        default_value = "5s",
        value_parser = duration::parse
    )]
    pub drain_delay: Duration,

    /// How long requests in flight may take after that. Streams end then, and their clients come back elsewhere.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_API_DRAIN_TIMEOUT",
        default_value = "15s",
        value_parser = duration::parse
    )]
    pub drain_timeout: Duration,

    /// How log lines look: json or text.
    #[arg(long, value_name = "FORMAT", env = "COFFERDAM_API_LOG_FORMAT", default_value = "text")]
    pub log_format: logs::Format,

    /// What is logged: a level, or levels by target as in info,hyper=debug.
    #[arg(long, value_name = "FILTER", env = "COFFERDAM_API_LOG_FILTER", default_value = "info")]
    pub log_filter: String,
}

/// Prints what all sessions may use together, as YAML: a ResourceQuota and a LimitRange, computed from the policy.
#[derive(Debug, Parser)]
#[command(name = "cofferdam-api quota", version)]
pub(crate) struct QuotaArgs {
    /// The policy file. Without it the built-in policy holds.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_API_POLICY")]
    pub policy: Option<PathBuf>,

    /// How many sessions there may be at a time.
    #[arg(
        long,
        value_name = "NUMBER",
        env = "COFFERDAM_API_SESSIONS",
        default_value = "32",
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub sessions: u32,
}

/// Who may call, as a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthMode {
    /// Whoever sends one of the tokens of --token-file as a bearer.
    Token,
    /// Whoever the cluster knows by a token for --audience, for what roles let it do to pods of the session namespace.
    Review,
    /// Everybody who reaches the port, for clients that can send nothing: put something in front of it that knows them.
    None,
}

impl Args {
    /// What the flags mean. Reads the files that they name.
    pub(crate) fn into_config(self) -> Result<Config, ConfigError> {
        // Without `..`: a flag that nothing uses is a compiler's warning.
        let Self {
            listen,
            admin_listen,
            auth,
            token_file,
            token_poll_interval,
            audience,
            cors_origins,
            apps,
            about,
            catalogue,
            terms,
            sessions,
            connections,
            drain_delay,
            drain_timeout,
            log_format: _,
            log_filter: _,
        } = self;
        let apps = apps.map_or_else(|| Ok(Apps::default()), |path| Apps::load(&path))?;
        let sessions = sessions.into_config(!apps.cards().is_empty())?;
        let auth = match (auth, token_file) {
            (AuthMode::Token, Some(file)) => Auth::Token { tokens: Reloader::load(file)?, poll: token_poll_interval },
            (AuthMode::Token, None) => return Err(ConfigError::NoTokenFile),
            (AuthMode::None, None) => Auth::Everybody,
            (AuthMode::Review, None) if audience == sessions.policy.bodies().audience || audience.is_empty() => {
                return Err(ConfigError::Audience);
            }
            (AuthMode::Review, None) => Auth::Review { audience },
            (AuthMode::None | AuthMode::Review, Some(_)) => return Err(ConfigError::TokenFileForNobody),
        };
        Ok(Config {
            listen,
            admin_listen,
            auth,
            origins: cors_origins,
            offers: Offers { about, catalogue: Catalogue::new(&catalogue)?, terms: Terms::load(&terms)?, apps },
            sessions,
            // At most 65,536, which every usize holds.
            connections: usize::try_from(connections).unwrap_or(usize::MAX),
            drain_delay,
            drain_timeout,
        })
    }
}

impl QuotaArgs {
    /// The YAML. Reads the policy.
    pub(crate) fn render(self) -> Result<String, PolicyFileError> {
        let policy = self.policy.map_or(PolicySource::BuiltIn, PolicySource::File).load()?;
        Ok(quota::render(&policy, self.sessions))
    }
}

fn origins(text: &str) -> Result<Origins, OriginError> {
    Origins::parse(text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(flags: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(["cofferdam-api", "--default-image=i", "--body-store=memory"].iter().chain(flags))
    }

    #[test]
    fn every_flag_has_its_variable_and_none_that_a_service_of_our_name_would_set() {
        for argument in Args::command().get_arguments().filter(|argument| argument.get_env().is_some()) {
            let flag = argument.get_long().unwrap();
            let variable = format!("COFFERDAM_API_{}", flag.to_uppercase().replace('-', "_"));
            assert_eq!(argument.get_env().unwrap().to_str(), Some(variable.as_str()));
            assert!(!flag.starts_with("port") && !flag.starts_with("service"), "{flag}");
        }
    }

    #[tokio::test]
    async fn the_defaults_are_those_that_the_manifests_count_on() {
        let args = parse(&["--auth=none"]).unwrap();
        let config = args.into_config().unwrap();
        assert_eq!(config.listen.to_string(), "0.0.0.0:8062");
        assert_eq!(config.admin_listen.to_string(), "0.0.0.0:8080");
        assert_eq!(config.origins, Origins::Any);
        // Both fit into the 30 s that a kubelet waits by default.
        assert!(config.drain_delay + config.drain_timeout < Duration::from_secs(30));
    }

    #[tokio::test]
    async fn nobody_is_let_in_by_a_flag_that_was_forgotten() {
        assert!(matches!(parse(&[]).unwrap().into_config(), Err(ConfigError::NoTokenFile)));
        for auth in ["--auth=none", "--auth=review"] {
            let both = parse(&[auth, "--token-file=/token"]).unwrap();
            assert!(matches!(both.into_config(), Err(ConfigError::TokenFileForNobody)));
        }
        let missing = parse(&["--token-file=/nowhere/token"]).unwrap();
        assert!(matches!(missing.into_config(), Err(ConfigError::Tokens(_))));
    }

    #[tokio::test]
    async fn callers_tokens_have_an_audience_of_their_own() {
        let config = parse(&["--auth=review"]).unwrap().into_config().unwrap();
        assert!(matches!(config.auth, Auth::Review { audience } if audience == "cofferdam-api"));
        // That of bodies: pods of sessions hold tokens for it.
        for audience in ["--audience=cofferdam-bodies", "--audience="] {
            let args = parse(&["--auth=review", audience]).unwrap();
            assert!(matches!(args.into_config(), Err(ConfigError::Audience)), "{audience}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for flag in [
            "--auth=all",
            "--listen=8062",
            "--token-poll-interval=0s",
            "--cors-origins=example.com",
            "--connections=1",
            "--drain-delay=5",
            "--log-format=xml",
        ] {
            assert!(parse(&[flag]).is_err(), "{flag}");
        }
    }
}
