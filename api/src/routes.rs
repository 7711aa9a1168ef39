//! What each route does, and what it looks like to clients.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::http::openapi::{Operation, Schemas};
use crate::http::router::Route;
use crate::session::hub::Hub;
use crate::wire::{Io, TerminalInput};

pub mod events;
pub mod health;
pub mod io;
pub mod openapi;
pub mod watch;

/// A session, as its streams need it.
#[derive(Clone, Debug)]
pub struct Live {
    /// What it tells.
    pub hub: Arc<Hub>,
    /// Its one app.
    pub app: String,
    /// How the app's output is told apart.
    pub io: Io,
    /// Takes what clients type; closed where it is over.
    pub input: mpsc::Sender<TerminalInput>,
}

/// What a route looks like.
pub fn operation(route: Route, schemas: &mut Schemas) -> Operation {
    match route {
        Route::Events => events::operation(schemas),
        Route::Health => health::operation(schemas),
        Route::Io => io::operation(schemas),
        Route::OpenApi => openapi::operation(),
        Route::Watch(route) => watch::operation(route, schemas),
    }
}

#[cfg(test)]
impl Live {
    /// One of which nothing was told.
    pub(crate) fn of_test() -> Self {
        let hub = Arc::new(Hub::new(crate::session::hub::Limits::default(), 1));
        Self { hub, app: "app".to_owned(), io: Io::Tty, input: mpsc::channel(1).0 }
    }
}
