//! What only sessions have that outlive the runs of their programs: files that change, other apps, a rest. None of ours
//! does, and each of these routes says so.

use cofferdam_runtime::http::Reply;

use super::Live;
use crate::http::openapi::{Operation, Schemas};
use crate::http::refusal::{ContractError, Refusal};
use crate::http::router::WatchRoute;

/// Why there is nothing here.
///
/// # Errors
/// Always.
pub fn answer(route: WatchRoute, session: Option<&Live>) -> Result<Reply, Refusal> {
    Err(match (route, session) {
        (WatchRoute::Resume, _) => Refusal::not_suspended(),
        (_, None) => Refusal::no_session(),
        (_, Some(_)) => Refusal::not_a_watch_session(),
    })
}

/// What such a route looks like.
pub fn operation(route: WatchRoute, schemas: &mut Schemas) -> Operation {
    let (id, summary) = match route {
        WatchRoute::ReadWorkspace => ("readWorkspace", "The files of a session that outlives its runs"),
        WatchRoute::ChangeWorkspace => ("changeWorkspace", "Changes files of a session that outlives its runs"),
        WatchRoute::ReadFile => ("readWorkspaceFile", "A file of a session that outlives its runs"),
        WatchRoute::Reload => ("reload", "Runs the programs of such a session again"),
        WatchRoute::SetApps => ("setApps", "Changes which programs such a session has"),
        WatchRoute::Resume => ("resume", "Goes on with such a session after a rest"),
    };
    let operation = Operation::new(id, summary).at("id", "The session's id");
    let schema = schemas.answered::<ContractError>();
    match route {
        WatchRoute::Resume => operation.answer(404, "The session does not rest", schema),
        _ => operation.answer(404, "There is no such session", schema.clone()).answer(
            409,
            "The session ends with its program",
            schema,
        ),
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn a_session_that_ends_with_its_program_has_none_of_it() {
        let live = Live::of_test();
        for (route, session, status, code) in [
            (WatchRoute::ReadWorkspace, None, StatusCode::NOT_FOUND, "not_found"),
            (WatchRoute::SetApps, Some(&live), StatusCode::CONFLICT, "not_a_watch_session"),
            (WatchRoute::Resume, Some(&live), StatusCode::NOT_FOUND, "not_suspended"),
        ] {
            let refusal = answer(route, session).unwrap_err();
            assert_eq!((refusal.status(), refusal.code()), (status, Some(code)));
        }
    }
}
