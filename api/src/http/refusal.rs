//! What a client gets that does not get what it asked for.
//!
//! There are two shapes, since the contract has two: what is wrong with a request as such is told as the framework of the
//! first implementation told it (`statusCode`, `code`, `error`, `message`), and what is wrong with what it asks for as
//! `error`, a word, and `message`.

use cofferdam_model::text::shown;
use cofferdam_runtime::http::{BodyError, Reply, reply};
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::apps::AppCard;
use crate::cluster::PodAccess;
use crate::terms::Terms;
use crate::wire::{Port, PortProtocol};

/// How much of a client's own word is repeated, in bytes.
const SHOWN: usize = 100;

/// An answer that is no success. Messages are for people, and quote of the request at most names.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    status: StatusCode,
    told: Told,
    header: Option<(HeaderName, &'static str)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Framework(FrameworkError),
    Contract(ContractError),
    Terms(Box<TermsRequired>),
}

/// The terms have to be accepted first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TermsRequired {
    /// `terms_required`.
    pub error: &'static str,
    /// What to do, in one sentence.
    pub message: &'static str,
    /// What has to be accepted.
    pub terms: Terms,
}

/// Something is wrong with a request as such.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrameworkError {
    /// The status of the answer.
    pub status_code: u16,
    /// What it is, in one word; none for a route that is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The status in words.
    pub error: &'static str,
    /// What it is, in one sentence.
    pub message: String,
}

/// Something is wrong with what is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ContractError {
    /// What it is, in one word.
    pub error: &'static str,
    /// What it is, in one sentence.
    pub message: String,
}

impl Refusal {
    /// There is no such route.
    #[must_use]
    pub fn no_route(method: &Method, path: &str) -> Self {
        let path: String = path.chars().take(200).collect();
        Self::framework(StatusCode::NOT_FOUND, None, format!("Route {method}:{path} not found"))
    }

    /// The body is not what the route takes, as [`Shape::check`](super::validation::Shape::check) says it.
    #[must_use]
    pub fn invalid(sentence: String) -> Self {
        Self::framework(StatusCode::BAD_REQUEST, Some("FST_ERR_VALIDATION"), sentence)
    }

    /// The body is no JSON.
    #[must_use]
    pub fn malformed() -> Self {
        let message = "Body is not valid JSON but content-type is set to 'application/json'";
        Self::framework(StatusCode::BAD_REQUEST, Some("FST_ERR_CTP_INVALID_JSON_BODY"), message.to_owned())
    }

    /// There is no body.
    #[must_use]
    pub fn empty() -> Self {
        let message = "Body cannot be empty when content-type is set to 'application/json'";
        Self::framework(StatusCode::BAD_REQUEST, Some("FST_ERR_CTP_EMPTY_JSON_BODY"), message.to_owned())
    }

    /// The body is of another type than JSON.
    #[must_use]
    pub fn wrong_type() -> Self {
        let (status, code) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "FST_ERR_CTP_INVALID_MEDIA_TYPE");
        Self::framework(status, Some(code), "Unsupported Media Type".to_owned())
    }

    /// The body is too large.
    #[must_use]
    pub fn too_large(message: String) -> Self {
        Self::framework(StatusCode::PAYLOAD_TOO_LARGE, Some("FST_ERR_CTP_BODY_TOO_LARGE"), message)
    }

    /// The request would have to ask for another protocol.
    #[must_use]
    pub fn no_upgrade() -> Self {
        let message = "this is a WebSocket; ask for it by an upgrade of version 13".to_owned();
        Self {
            header: Some((http::header::UPGRADE, "websocket")),
            ..Self::contract(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message)
        }
    }

    /// There is no such session.
    #[must_use]
    pub fn no_session() -> Self {
        let message = "there is no such session, or it ended too long ago".to_owned();
        Self::contract(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// The terms have to be accepted first.
    #[must_use]
    pub fn terms_required(terms: &Terms) -> Self {
        let message = "accept the terms, and say so with their version in the header x-telo-accepted-terms";
        let required = TermsRequired { error: "terms_required", message, terms: terms.clone() };
        Self { status: StatusCode::PRECONDITION_REQUIRED, told: Told::Terms(Box::new(required)), header: None }
    }

    /// Something is wrong with the files of a bundle.
    #[must_use]
    pub fn invalid_bundle(message: String) -> Self {
        Self::bad_request("invalid_bundle", message)
    }

    /// No app has that name.
    #[must_use]
    pub fn unknown_app(name: &str, offered: &[AppCard]) -> Self {
        let names: Vec<&str> = offered.iter().map(|card| card.name.as_str()).collect();
        let there = if names.is_empty() { "none is".to_owned() } else { format!("there are {}", names.join(", ")) };
        let message = format!("no app `{}` is offered; {there}", shown(name, SHOWN));
        Self::contract(StatusCode::NOT_FOUND, "unknown_app", message)
    }

    /// All places are taken by sessions that live.
    #[must_use]
    pub fn too_many_sessions(message: String) -> Self {
        Self::contract(StatusCode::CONFLICT, "too_many_sessions", message)
    }

    /// A session could not be stopped, for which there is a sentence.
    #[must_use]
    pub fn stop_failed(message: String) -> Self {
        Self::contract(StatusCode::INTERNAL_SERVER_ERROR, "stop_failed", message)
    }

    /// What is asked for in `config` is not offered.
    #[must_use]
    pub fn invalid_config(message: String) -> Self {
        Self::bad_request("invalid_config", message)
    }

    /// Sessions that outlive their programs are not offered.
    #[must_use]
    pub fn watch_disabled(message: &str) -> Self {
        Self::bad_request("watch_disabled", message.to_owned())
    }

    /// Only they have agents.
    #[must_use]
    pub fn agent_requires_watch() -> Self {
        let message = "only a session that outlives its programs has an agent; leave `agent` out";
        Self::bad_request("agent_requires_watch", message.to_owned())
    }

    /// An app's name can name no container.
    #[must_use]
    pub fn invalid_app_name(name: &str) -> Self {
        let message = "is no app's name; use at most 63 of a-z, 0-9 and `-` between them";
        Self::bad_request("invalid_app_name", format!("`{}` {message}", shown(name, SHOWN)))
    }

    /// An app has a name of ours.
    #[must_use]
    pub fn reserved_app_name(name: &str) -> Self {
        let message = "names something of ours; call the app otherwise";
        Self::bad_request("reserved_app_name", format!("`{}` {message}", shown(name, SHOWN)))
    }

    /// Two apps have one name.
    #[must_use]
    pub fn duplicate_app_name(name: &str) -> Self {
        let message = format!("two apps are called `{}`; call one otherwise", shown(name, SHOWN));
        Self::bad_request("duplicate_app_name", message)
    }

    /// Two ports are one.
    #[must_use]
    pub fn port_conflict(port: Port) -> Self {
        let protocol = match port.protocol {
            PortProtocol::Tcp => "tcp",
            PortProtocol::Udp => "udp",
        };
        let message = format!("port {}/{protocol} is there twice; all apps of a session share its ports", port.port);
        Self::bad_request("port_conflict", message)
    }

    /// The session ends with its program.
    #[must_use]
    pub fn not_a_watch_session() -> Self {
        let message = "this session ends with its program; it has no files to change and nothing to run again";
        Self::contract(StatusCode::CONFLICT, "not_a_watch_session", message.to_owned())
    }

    /// The session does not rest, whether there is one or not.
    #[must_use]
    pub fn not_suspended() -> Self {
        Self::contract(StatusCode::NOT_FOUND, "not_suspended", "there is no such session that rests".to_owned())
    }

    /// The caller did not say who it is.
    #[must_use]
    pub fn unauthenticated() -> Self {
        let message = "send a token as `Authorization: Bearer …`".to_owned();
        let header = Some((WWW_AUTHENTICATE, "Bearer"));
        Self { header, ..Self::contract(StatusCode::UNAUTHORIZED, "unauthenticated", message) }
    }

    /// The caller may not do what it asks for.
    #[must_use]
    pub fn forbidden(right: PodAccess) -> Self {
        let PodAccess { verb, subresource } = right;
        let slash = if subresource.is_empty() { "" } else { "/" };
        let message = format!(
            "you may not do this; it takes the right to {verb} pods{slash}{subresource} in the namespace of sessions, which its \
             operator gives"
        );
        Self::contract(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// Nobody can say now who the caller is, or what it may do, for which there is a sentence.
    #[must_use]
    pub fn unreviewed(message: String) -> Self {
        let header = Some((RETRY_AFTER, "1"));
        Self { header, ..Self::contract(StatusCode::SERVICE_UNAVAILABLE, "review_unavailable", message) }
    }

    /// The page that asks is none of those that may.
    #[must_use]
    pub fn origin_not_allowed() -> Self {
        let message = "pages of this origin may not use this service; its operator lists those that may".to_owned();
        Self::contract(StatusCode::FORBIDDEN, "origin_not_allowed", message)
    }

    /// Too much is asked at once.
    #[must_use]
    pub fn overloaded() -> Self {
        let message = "too many requests are being answered; try again".to_owned();
        let header = Some((RETRY_AFTER, "1"));
        Self { header, ..Self::contract(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message) }
    }

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What it is, in one word; none for a route that is not there.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        match &self.told {
            Told::Framework(error) => error.code,
            Told::Contract(error) => Some(error.error),
            Told::Terms(error) => Some(error.error),
        }
    }

    /// What it is, in one sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        match &self.told {
            Told::Framework(error) => &error.message,
            Told::Contract(error) => &error.message,
            Told::Terms(error) => error.message,
        }
    }

    /// The answer.
    #[must_use]
    pub fn reply(&self) -> Reply {
        let body = match &self.told {
            Told::Framework(error) => serde_json::to_vec(error),
            Told::Contract(error) => serde_json::to_vec(error),
            Told::Terms(error) => serde_json::to_vec(error),
        };
        // Texts and numbers can always be written.
        let reply = reply::json(self.status, body.unwrap_or_default());
        match &self.header {
            Some((name, value)) => reply::with_header(reply, name.clone(), value),
            None => reply,
        }
    }

    fn bad_request(error: &'static str, message: String) -> Self {
        Self::contract(StatusCode::BAD_REQUEST, error, message)
    }

    fn framework(status: StatusCode, code: Option<&'static str>, message: String) -> Self {
        let error = status.canonical_reason().unwrap_or_default();
        let told = Told::Framework(FrameworkError { status_code: status.as_u16(), code, error, message });
        Self { status, told, header: None }
    }

    fn contract(status: StatusCode, error: &'static str, message: String) -> Self {
        Self { status, told: Told::Contract(ContractError { error, message }), header: None }
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge { .. } => Self::too_large("Request body is too large".to_owned()),
            BodyError::TooSlow { .. } => {
                Self::contract(StatusCode::REQUEST_TIMEOUT, "request_timeout", error.to_string())
            }
            BodyError::Exhausted => Self::overloaded(),
            BodyError::Broken => Self::contract(StatusCode::BAD_REQUEST, "body_incomplete", error.to_string()),
        }
    }
}
