//! Which route a request is for.

use http::Method;

use super::access::Act;
use super::call;

/// Every route that there is. What it does is in [`crate::routes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// Makes a session of an app by name.
    CreateAppSession,
    /// Makes a session.
    CreateSession,
    /// What clients may ask for.
    Capabilities,
    /// A session's events.
    Events,
    /// Whether the process answers.
    Health,
    /// A session's terminal.
    Io,
    /// What all of it looks like.
    OpenApi,
    /// Whether sessions can be had now.
    Probe,
    /// How a session is.
    Session,
    /// Ends a session.
    StopSession,
    /// What only sessions have that outlive their runs.
    Watch(WatchRoute),
}

/// A route for sessions that outlive the runs of their programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchRoute {
    /// Lists its files.
    ReadWorkspace,
    /// Changes its files.
    ChangeWorkspace,
    /// Reads one of them.
    ReadFile,
    /// Runs its programs again.
    Reload,
    /// Gives it other programs.
    SetApps,
    /// Goes on after a rest.
    Resume,
}

/// Whom a route answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Everybody.
    Public,
    /// Whoever may call.
    Callers,
    /// They, and whoever has the stream token of the session that the path names.
    Readers,
    /// The same, who are told as the end of a WebSocket if they may not.
    Sockets,
}

/// A route, and where it is.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Which.
    pub route: Route,
    /// `GET` stands for `HEAD` as well.
    pub method: Method,
    /// With at most one place that is left open, as `{id}`.
    pub path: &'static str,
    /// Whom it answers.
    pub audience: Audience,
}

impl Entry {
    /// What it does, as a right of its caller: what its method says, but for a terminal, which is typed into.
    #[must_use]
    pub fn act(&self) -> Act {
        match (self.audience, self.method.as_str()) {
            (Audience::Sockets, _) => Act::Attach,
            (_, "GET") => Act::Read,
            (_, "POST") => Act::Create,
            (_, "DELETE") => Act::Delete,
            _ => Act::Change,
        }
    }
}

/// All routes.
pub static ENTRIES: [Entry; 16] = [
    entry(Route::Health, Method::GET, "/v1/health", Audience::Public),
    entry(Route::OpenApi, Method::GET, "/v1/openapi.json", Audience::Public),
    // Not for everybody: it names what the operator runs.
    entry(Route::Capabilities, Method::GET, "/v1/capabilities", Audience::Callers),
    entry(Route::Probe, Method::POST, "/v1/probe", Audience::Callers),
    entry(Route::CreateSession, Method::POST, "/v1/sessions", Audience::Callers),
    entry(Route::CreateAppSession, Method::POST, "/v1/apps/{name}/sessions", Audience::Callers),
    entry(Route::Session, Method::GET, "/v1/sessions/{id}", Audience::Callers),
    entry(Route::StopSession, Method::DELETE, "/v1/sessions/{id}", Audience::Callers),
    entry(Route::Events, Method::GET, "/v1/sessions/{id}/events", Audience::Readers),
    entry(Route::Io, Method::GET, "/v1/sessions/{id}/io", Audience::Sockets),
    watch(WatchRoute::ReadWorkspace, Method::GET, "/v1/sessions/{id}/workspace"),
    watch(WatchRoute::ChangeWorkspace, Method::POST, "/v1/sessions/{id}/workspace"),
    watch(WatchRoute::ReadFile, Method::GET, "/v1/sessions/{id}/workspace/file"),
    watch(WatchRoute::Reload, Method::POST, "/v1/sessions/{id}/reload"),
    watch(WatchRoute::SetApps, Method::PUT, "/v1/sessions/{id}/apps"),
    watch(WatchRoute::Resume, Method::POST, "/v1/sessions/{id}/resume"),
];

const fn entry(route: Route, method: Method, path: &'static str, audience: Audience) -> Entry {
    Entry { route, method, path, audience }
}

const fn watch(route: WatchRoute, method: Method, path: &'static str) -> Entry {
    entry(Route::Watch(route), method, path, Audience::Callers)
}

/// Finds routes.
#[derive(Clone)]
pub struct Router(matchit::Router<Vec<&'static Entry>>);

impl Router {
    /// One that knows `entries`.
    ///
    /// # Errors
    /// When two of their paths contradict each other.
    pub fn new(entries: &'static [Entry]) -> Result<Self, matchit::InsertError> {
        let mut router = matchit::Router::new();
        let mut paths: Vec<_> = entries.iter().map(|entry| entry.path).collect();
        paths.sort_unstable();
        paths.dedup();
        for path in paths {
            router.insert(path, entries.iter().filter(|entry| entry.path == path).collect())?;
        }
        Ok(Self(router))
    }

    /// The route of a request, and what its path has in the place that is left open.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<(&'static Entry, String)> {
        let found = self.0.at(path).ok()?;
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let entry = found.value.iter().find(|entry| entry.method == *method)?;
        let open = found.params.iter().next().map_or("", |(_, value)| value);
        Some((entry, call::decoded(open)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::PodAccess;

    static SOME: [Entry; 3] = [
        entry(Route::Health, Method::GET, "/v1/things/{id}", Audience::Public),
        entry(Route::OpenApi, Method::DELETE, "/v1/things/{id}", Audience::Callers),
        entry(Route::Health, Method::GET, "/v1/things/{id}/parts", Audience::Public),
    ];

    #[test]
    fn routes_are_found_by_method_and_path_and_what_is_left_open_is_decoded() {
        let router = Router::new(&SOME).unwrap();
        let find = |method: Method, path: &str| router.find(&method, path).map(|(entry, open)| (entry.route, open));
        assert_eq!(find(Method::GET, "/v1/things/a%20b"), Some((Route::Health, "a b".to_owned())));
        assert_eq!(find(Method::HEAD, "/v1/things/a"), Some((Route::Health, "a".to_owned())));
        assert_eq!(find(Method::DELETE, "/v1/things/a"), Some((Route::OpenApi, "a".to_owned())));
        assert_eq!(find(Method::GET, "/v1/things/a/parts"), Some((Route::Health, "a".to_owned())));
        for (method, path) in [
            (Method::POST, "/v1/things/a"),
            (Method::GET, "/v1/things/"),
            (Method::GET, "/v1/things"),
            (Method::GET, "/v1/things/a/"),
            (Method::GET, "/V1/things/a"),
            (Method::GET, "/v1/things/%ff"),
            (Method::GET, "*"),
            (Method::GET, ""),
        ] {
            assert_eq!(find(method, path), None, "{path}");
        }
    }

    #[test]
    fn each_route_takes_the_right_that_its_pod_would() {
        let act = |route: Route| ENTRIES.iter().find(|entry| entry.route == route).unwrap().act();
        for (route, verb, subresource) in [
            (Route::CreateSession, "create", ""),
            (Route::CreateAppSession, "create", ""),
            (Route::Probe, "create", ""),
            (Route::Capabilities, "get", ""),
            (Route::Session, "get", ""),
            (Route::Events, "get", ""),
            (Route::Io, "create", "attach"),
            (Route::StopSession, "delete", ""),
            (Route::Watch(WatchRoute::ReadWorkspace), "get", ""),
            (Route::Watch(WatchRoute::Resume), "create", ""),
            (Route::Watch(WatchRoute::SetApps), "update", ""),
        ] {
            assert_eq!(act(route).right(), PodAccess { verb, subresource }, "{route:?}");
        }
    }

    #[test]
    fn all_routes_fit_together() {
        let router = Router::new(&ENTRIES).unwrap();
        for entry in &ENTRIES {
            let (found, _) = router.find(&entry.method, entry.path).unwrap();
            assert_eq!(found.route, entry.route);
        }
    }
}
