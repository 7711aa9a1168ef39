//! What each route does, and what it looks like to clients.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::apps::Apps;
use crate::capabilities::CapabilitiesArgs;
use crate::catalogue::Catalogue;
use crate::http::openapi::{Operation, Schemas};
use crate::http::router::Route;
use crate::session::hub::Hub;
use crate::terms::Terms;
use crate::wire::{Io, TerminalInput};

pub mod app_sessions;
pub mod capabilities;
pub mod create;
pub mod events;
pub mod health;
pub mod io;
pub mod openapi;
pub mod probe;
pub mod session;
pub mod sessions;
pub mod watch;

/// What clients may ask for, and how they learn of it.
#[derive(Debug)]
pub struct Offers {
    /// What the service is called.
    pub about: CapabilitiesArgs,
    /// Images.
    pub catalogue: Catalogue,
    /// What has to be accepted before.
    pub terms: Option<Terms>,
    /// Apps by name.
    pub apps: Apps,
}

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
        Route::Capabilities => capabilities::operation(schemas),
        Route::CreateAppSession => app_sessions::operation(schemas),
        Route::CreateSession => sessions::operation(schemas),
        Route::Events => events::operation(schemas),
        Route::Health => health::operation(schemas),
        Route::Io => io::operation(schemas),
        Route::OpenApi => openapi::operation(),
        Route::Probe => probe::operation(schemas),
        Route::Session => session::operation(schemas),
        Route::StopSession => session::stopping(schemas),
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

#[cfg(test)]
impl Offers {
    /// One image, and nothing else.
    pub(crate) fn of_test(image: &str) -> Self {
        use clap::Parser;

        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            about: CapabilitiesArgs,
            #[command(flatten)]
            catalogue: crate::catalogue::CatalogueArgs,
        }

        let Line { about, catalogue } = Line::try_parse_from(["test", "--default-image", image]).unwrap();
        Self { about, catalogue: Catalogue::new(&catalogue).unwrap(), terms: None, apps: Apps::default() }
    }
}
