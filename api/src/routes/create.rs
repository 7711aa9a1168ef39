//! Whether a session may be had: what is checked before anything is begun, in the order in which clients of the contract
//! are told of it.
//!
//! ```text
//! body ─▶ terms ─▶ paths ─▶ config ─▶ mode ─▶ agent ─▶ apps and ports ─▶ room for one more
//! ```

use std::collections::HashSet;

use cofferdam_model::ports::Ports;
use cofferdam_runtime::http::{Reply, reply};
use http::{HeaderMap, StatusCode};

use super::Offers;
use crate::http::body::Bodies;
use crate::http::refusal::Refusal;
use crate::http::service::Shared;
use crate::http::turns::Turns;
use crate::http::validation::Shape;
use crate::session::pod;
use crate::session::record::{Confidential, shown};
use crate::sessions::{NotBegun, Order};
use crate::token::Token;
use crate::wire::{App, CreateAppSession, CreateSession, Created, Environment, Io, Mode, Port, Probe};

/// The header by which a client says which terms it has accepted.
const ACCEPTED_TERMS: &str = "x-telo-accepted-terms";

/// The app of a session that names none.
pub const ONLY_APP: &str = "app";

/// The longest path of an entry, in bytes: a pod with a longer one is refused.
const LONGEST_ENTRY: usize = 1024;

/// So many sessions are begun at a time, and so many wait for their turn.
const AT_A_TIME: usize = 8;
const WAITING: usize = 64;

/// What is taken of those who want a session.
#[derive(Debug)]
pub struct Intake {
    /// How much they may send.
    pub bodies: Bodies,
    /// How much is begun at a time.
    pub turns: Turns,
    /// What they send for a session.
    pub session: Shape,
    /// What they send for one of an app.
    pub app_session: Shape,
    /// What they send to find out whether there can be any.
    pub probe: Shape,
}

impl Intake {
    /// Requests whose bodies are bounded so.
    #[must_use]
    pub fn new(bodies: Bodies) -> Self {
        Self {
            bodies,
            turns: Turns::new(AT_A_TIME, WAITING),
            session: Shape::of::<CreateSession>(),
            app_session: Shape::of::<CreateAppSession>(),
            probe: Shape::of::<Probe>(),
        }
    }
}

/// Begins a session, and tells that it begins.
///
/// # Errors
/// When there is no room for it, or too much is begun at once.
pub async fn begin(shared: &Shared, mut order: Order) -> Result<Reply, Refusal> {
    let _turn = shared.intake.turns.take().await?;
    // Where everybody may read it, nobody needs one.
    let token = shared.access.asks().then(Token::random).transpose().map_err(|_| Refusal::overloaded())?;
    order.record.stream_token = token.as_ref().map(Token::digest);
    let created_at = shown(order.record.created_at);
    let id = shared.sessions.create(order).await.map_err(|error| match error {
        NotBegun::Full => Refusal::too_many_sessions(error.to_string()),
        NotBegun::Random(_) => Refusal::overloaded(),
    })?;
    let created = Created {
        stream_url: format!("/v1/sessions/{id}/events"),
        created_at,
        stream_token: token.map(|token| token.secret().to_owned()),
        session_id: id.to_string(),
    };
    // No key of it is anything but a text, so it can always be written.
    Ok(reply::json(StatusCode::CREATED, serde_json::to_vec(&created).unwrap_or_default()))
}

/// The variables, if a program can have them: told before the session is promised (defect D17).
///
/// # Errors
/// When it cannot.
pub fn confidential(environment: Environment) -> Result<Confidential, Refusal> {
    Confidential::new(environment, None).map_err(|error| Refusal::invalid(format!("body/env: {error}")))
}

/// The entry, if a pod can have it.
///
/// # Errors
/// When it cannot.
pub fn entry(path: String) -> Result<String, Refusal> {
    if path.len() <= LONGEST_ENTRY {
        return Ok(path);
    }
    Err(Refusal::invalid_bundle(format!("the path of what is run is longer than {LONGEST_ENTRY} bytes; shorten it")))
}

/// The ports, if a pod can have them.
///
/// # Errors
/// When it cannot.
pub fn ports_of(ports: &[Port]) -> Result<Ports, Refusal> {
    pod::ports(ports).map_err(|error| Refusal::invalid(format!("body/ports: {error}")))
}

/// Names of containers that are no client's.
const RESERVED_APPS: [&str; 2] = ["workspace", "agent"];

/// Whether the client has accepted the terms, where there are any.
///
/// # Errors
/// When it has not, or others than these.
pub fn terms(offers: &Offers, headers: &HeaderMap) -> Result<(), Refusal> {
    let sent = headers.get(ACCEPTED_TERMS).and_then(|value| value.to_str().ok());
    match &offers.terms {
        Some(terms) if !terms.accepted_by(sent) => Err(Refusal::terms_required(terms)),
        _ => Ok(()),
    }
}

/// Whether the client may have this image.
///
/// # Errors
/// When it is none of those that are offered.
pub fn config(offers: &Offers, create: &CreateSession) -> Result<(), Refusal> {
    offers.catalogue.choices().check(&create.config.image).map_err(|error| Refusal::invalid_config(error.to_string()))
}

/// The one program of a session that ends with it, from all that the request says of programs.
///
/// # Errors
/// When it asks for what only sessions have that outlive their programs, or for what cannot be had beside each other.
pub fn only_app(create: &CreateSession) -> Result<App, Refusal> {
    if create.mode == Mode::Watch {
        return Err(Refusal::watch_disabled(
            "sessions that outlive their programs are not offered here; leave `mode` out",
        ));
    }
    if create.agent.is_some() {
        return Err(Refusal::agent_requires_watch());
    }
    let Some(apps) = &create.apps else {
        let app = App {
            name: ONLY_APP.to_owned(),
            entry_relative_path: create.bundle.entry_relative_path.clone(),
            ports: create.ports.clone(),
            io: Io::Tty,
        };
        ports_beside_each_other(&app.ports)?;
        return Ok(app);
    };
    let mut names = HashSet::new();
    for App { name, .. } in apps {
        if !cofferdam_model::is_container_name(name) {
            return Err(Refusal::invalid_app_name(name));
        }
        if RESERVED_APPS.contains(&name.as_str()) {
            return Err(Refusal::reserved_app_name(name));
        }
        if !names.insert(name) {
            return Err(Refusal::duplicate_app_name(name));
        }
    }
    ports_beside_each_other(apps.iter().flat_map(|app| &app.ports))?;
    match apps.as_slice() {
        [app] => Ok(app.clone()),
        _ => Err(Refusal::watch_disabled("a session that ends with its program has one; send one app")),
    }
}

/// Whether all ports can be had beside each other.
///
/// # Errors
/// When two are one.
pub fn ports_beside_each_other<'a>(ports: impl IntoIterator<Item = &'a Port>) -> Result<(), Refusal> {
    let mut taken = HashSet::new();
    match ports.into_iter().find(|port| !taken.insert(**port)) {
        Some(port) => Err(Refusal::port_conflict(*port)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue, StatusCode};
    use serde::Deserialize as _;
    use serde_json::{Value, json};

    use super::*;
    use crate::terms::Terms;

    fn create(more: &Value) -> CreateSession {
        let mut request = json!({
            "bundle": {"entryRelativePath": "a.yaml", "files": []},
            "env": {},
            "ports": [{"port": 3000, "protocol": "tcp"}, {"port": 3000, "protocol": "udp"}],
            "config": {"image": "offered:1.0.0", "pullPolicy": "missing"},
        });
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        CreateSession::deserialize(request).unwrap()
    }

    fn code(refusal: &Refusal) -> (u16, &str) {
        (refusal.status().as_u16(), refusal.code().unwrap())
    }

    #[test]
    fn trm_03_a_client_accepts_the_very_terms_that_hold() {
        let mut offers = Offers::of_test("offered:1.0.0");
        assert_eq!(terms(&offers, &HeaderMap::new()), Ok(()));
        let told = Terms { version: "7".to_owned(), title: "T".to_owned(), body: "B".to_owned() };
        offers.terms = Some(told);
        let name = HeaderName::from_static(ACCEPTED_TERMS);
        let sends = |version| HeaderMap::from_iter([(name.clone(), HeaderValue::from_static(version))]);
        assert_eq!(terms(&offers, &sends("7")), Ok(()));
        for headers in [HeaderMap::new(), sends("6"), sends("")] {
            let refusal = terms(&offers, &headers).unwrap_err();
            assert_eq!(code(&refusal), (428, "terms_required"));
        }
    }

    #[test]
    fn cat_05_only_an_image_that_is_offered_is_had() {
        let offers = Offers::of_test("offered:1.0.0");
        assert_eq!(config(&offers, &create(&json!({}))), Ok(()));
        let other = create(&json!({"config": {"image": "other:1", "pullPolicy": "missing"}}));
        let refusal = config(&offers, &other).unwrap_err();
        assert_eq!(code(&refusal), (400, "invalid_config"));
        assert!(refusal.message().contains("offered:1.0.0"), "{refusal:?}");
    }

    #[test]
    fn a_request_that_names_no_app_has_one_with_the_bundles_entry_and_the_requests_ports() {
        let app = only_app(&create(&json!({}))).unwrap();
        assert_eq!((app.name.as_str(), app.entry_relative_path.as_str(), app.ports.len()), ("app", "a.yaml", 2));
        assert_eq!(app.io, Io::Tty);
        let named = json!({"apps": [{"name": "web", "entryRelativePath": "web.yaml", "io": "streams"}]});
        let app = only_app(&create(&named)).unwrap();
        assert_eq!((app.name.as_str(), app.entry_relative_path.as_str(), app.ports.len()), ("web", "web.yaml", 0));
        assert_eq!(app.io, Io::Streams);
    }

    #[test]
    fn what_a_session_that_ends_with_its_program_cannot_have_is_told_first_things_first() {
        let app = |name: &str| json!({"name": name, "entryRelativePath": "a"});
        let with = |ports: Value| json!({"name": "a", "entryRelativePath": "a", "ports": ports});
        let tcp = json!({"port": 80, "protocol": "tcp"});
        for (more, error) in [
            (json!({"mode": "watch", "agent": "x", "apps": [app("-")]}), "watch_disabled"),
            (json!({"agent": "x", "apps": [app("-")]}), "agent_requires_watch"),
            (json!({"apps": [app("Web")]}), "invalid_app_name"),
            (json!({"apps": [app("a"), app("a_b")]}), "invalid_app_name"),
            (json!({"apps": [app("workspace")]}), "reserved_app_name"),
            (json!({"apps": [app("agent")]}), "reserved_app_name"),
            (json!({"apps": [app("a"), app("a")]}), "duplicate_app_name"),
            (json!({"ports": [tcp, tcp]}), "port_conflict"),
            (
                json!({"apps": [with(json!([tcp])), {"name": "b", "entryRelativePath": "b", "ports": [tcp]}]}),
                "port_conflict",
            ),
            (json!({"apps": [app("a"), app("b")]}), "watch_disabled"),
        ] {
            let refusal = only_app(&create(&more)).unwrap_err();
            assert_eq!((refusal.status(), refusal.code()), (StatusCode::BAD_REQUEST, Some(error)), "{more}");
        }
    }
}
