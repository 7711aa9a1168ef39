//! What the command line means.

use std::net::SocketAddr;
use std::time::Duration;

use crate::apps::AppsError;
use crate::catalogue::CatalogueError;
use crate::http::origin::Origins;
use crate::http::tokens::{Reloader, TokensError};
use crate::routes::Offers;
use crate::sessions::args::{BodyIdentity, SessionsConfig, SessionsError};
use crate::terms::TermsError;

/// Everything the API needs to start.
pub(crate) struct Config {
    /// Where clients are answered. Port 0 is any free one.
    pub listen: SocketAddr,
    /// Where the admin port is.
    pub admin_listen: SocketAddr,
    /// Who may call.
    pub auth: Auth,
    /// Which pages may.
    pub origins: Origins,
    /// What clients may ask for.
    pub offers: Offers,
    /// How sessions are made and kept.
    pub sessions: SessionsConfig,
    /// The most connections at the same time.
    pub connections: usize,
    /// From the wish to stop to the closing of the listener.
    pub drain_delay: Duration,
    /// From there to the cutting off of what is still in flight.
    pub drain_timeout: Duration,
}

/// Who may call.
pub(crate) enum Auth {
    /// Whoever sends one of these tokens.
    Token {
        /// They, and what looks after their file.
        tokens: Reloader,
        /// How often it does.
        poll: Duration,
    },
    /// Whoever the cluster knows.
    Review {
        /// By a token for it.
        audience: String,
    },
    /// Everybody who reaches the port.
    Everybody,
}

/// A configuration that the program cannot start with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Nobody could call.
    #[error("--auth=token needs a --token-file; write --auth=none to let everybody call who reaches the port")]
    NoTokenFile,
    /// Somebody thinks that tokens are asked for.
    #[error("the tokens of a file count with --auth=token alone; leave out --token-file, or write that")]
    TokenFileForNobody,
    /// Tokens of callers could be others'.
    #[error("--audience is empty, or that of bodies, for which pods of sessions hold tokens; name another one")]
    Audience,
    /// The catalogue of images.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The terms.
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The apps.
    #[error(transparent)]
    Apps(#[from] AppsError),
    /// The tokens.
    #[error(transparent)]
    Tokens(#[from] TokensError),
    /// Sessions.
    #[error(transparent)]
    Sessions(#[from] SessionsError),
}

impl Config {
    /// Logs what is in effect, once. Nothing here is secret.
    pub(crate) fn log(&self) {
        let Self { listen, admin_listen, auth, origins, offers, sessions, connections, drain_delay, drain_timeout } =
            self;
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            %listen,
            %admin_listen,
            auth = auth.as_str(),
            ?origins,
            default_image = offers.catalogue.choices().default_image(),
            has_terms = offers.terms.is_some(),
            apps = offers.apps.cards().len(),
            session_namespace = sessions.namespace,
            sessions = sessions.bounds.capacity,
            retention = ?sessions.bounds.kept,
            policy = %sessions.policy_source,
            policy_digest = sessions.policy.digest(),
            bodies_listen = %sessions.bodies_listen,
            self_url = sessions.self_url,
            body_store = %sessions.store_location,
            connections,
            ?drain_delay,
            ?drain_timeout,
            "starting"
        );
        if matches!(auth, Auth::Everybody) {
            tracing::warn!("--auth=none: whoever reaches the port may start sessions, read them and stop them");
        }
        if sessions.body_identity == BodyIdentity::None {
            tracing::warn!("--body-identity=none: whoever has a body's token may fetch it");
        }
    }
}

impl Auth {
    /// As it is typed.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Token { .. } => "token",
            Self::Review { .. } => "review",
            Self::Everybody => "none",
        }
    }
}
