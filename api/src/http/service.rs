//! A request, from its head to its answer.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_runtime::http::{Reply, reply};
use http::{Method, Request, StatusCode};
use hyper::body::Body;
use tokio_util::sync::CancellationToken;

use super::access::{Access, Act};
use super::call::Call;
use super::openapi;
use super::origin::{self, Origins};
use super::refusal::Refusal;
use super::router::{Audience, ENTRIES, Entry, Route, Router};
use crate::metrics::Metrics;
use crate::routes::create::Intake;
use crate::routes::{self, Offers};
use crate::sessions::Sessions;

/// What routes share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Who may call.
    pub access: Access,
    /// Which pages may.
    pub origins: Origins,
    /// What clients may ask for.
    pub offers: Arc<Offers>,
    /// Those that there are.
    pub sessions: Sessions,
    /// What is taken of those who want one.
    pub intake: Arc<Intake>,
    /// What is counted.
    pub metrics: Metrics,
    /// Ends streams: the server takes no new connections from now on.
    pub close: CancellationToken,
}

impl Shared {
    /// Whether the caller may have the streams of the session that the request is about. A browser can send no header there,
    /// so what it was given when the session was made counts as well; the caller's own token never does: a URL is written to
    /// logs everywhere.
    ///
    /// # Errors
    /// As [`Access::caller`].
    pub async fn may_read<B>(&self, call: &Call<B>, act: Act) -> Result<(), Refusal> {
        let is_opened = call
            .session()
            .is_ok_and(|id| call.query("access_token").is_some_and(|sent| self.sessions.opens(&id, &sent)));
        if is_opened { Ok(()) } else { self.access.caller(&call.head.headers, act).await }
    }
}

/// Answers clients.
pub struct Service {
    router: Router,
    shared: Shared,
    openapi: Bytes,
}

impl Service {
    /// One that knows every route.
    ///
    /// # Errors
    /// When two routes contradict each other.
    pub fn new(shared: Shared) -> Result<Self, matchit::InsertError> {
        Ok(Self { router: Router::new(&ENTRIES)?, shared, openapi: openapi::document().into() })
    }

    /// Answers one request.
    pub async fn answer<B: Body + Unpin>(&self, request: Request<B>) -> Reply {
        let (head, body) = request.into_parts();
        let found = self.router.find(&head.method, head.uri.path());
        let begun = self.shared.metrics.begin(found.as_ref().map(|(entry, _)| entry.path));
        let (entry, parameter) = found.map_or((None, String::new()), |(entry, parameter)| (Some(entry), parameter));
        let mut call = Call::new(head, parameter, body);
        let mut reply = self.route(entry, &mut call).await.unwrap_or_else(|refusal| refusal.reply());
        self.shared.origins.mark(&call.head.headers, &mut reply);
        begun.end(reply.status());
        if call.is_unread() { reply::closing(reply) } else { reply }
    }

    async fn route<B: Body + Unpin>(&self, entry: Option<&Entry>, call: &mut Call<B>) -> Result<Reply, Refusal> {
        let headers = &call.head.headers;
        let shared = &self.shared;
        let Shared { access, origins, sessions, .. } = shared;
        let audience = entry.map_or(Audience::Public, |entry| entry.audience);
        if audience != Audience::Sockets && !origins.allow(headers) {
            return Err(Refusal::origin_not_allowed());
        }
        if call.head.method == Method::OPTIONS {
            return Ok(origin::preflight(headers));
        }
        let entry = entry.ok_or_else(|| Refusal::no_route(&call.head.method, call.head.uri.path()))?;
        match audience {
            Audience::Public | Audience::Sockets => {}
            Audience::Callers => access.caller(headers, entry.act()).await?,
            Audience::Readers => shared.may_read(call, entry.act()).await?,
        }
        match entry.route {
            Route::Capabilities => Ok(routes::capabilities::answer(&shared.offers)),
            Route::CreateAppSession => routes::app_sessions::answer(call, shared).await,
            Route::CreateSession => routes::sessions::answer(call, shared).await,
            Route::Events => routes::events::answer(call, sessions.find(&call.session()?), shared),
            Route::Health => Ok(routes::health::answer()),
            Route::Io => routes::io::answer(call, entry.act(), shared).await,
            Route::Probe => routes::probe::answer(call, shared).await,
            Route::Session => routes::session::answer(sessions, &call.session()?),
            Route::StopSession => routes::session::stop(sessions, call.session().ok().as_ref()).await,
            Route::Watch(route) => routes::watch::answer(route, sessions.find(&call.session()?).as_ref()),
            Route::OpenApi => Ok(reply::bytes(StatusCode::OK, "application/json", self.openapi.clone())),
        }
    }
}

#[cfg(test)]
mod tests;
