//! What clients send and get, name for name: existing clients of the contract depend on every word.
//!
//! * [`Event`]: what a session's stream of events tells; [`Status`], [`Endpoint`] and the rest are its parts;
//! * [`ServerFrame`], [`ClientFrame`], [`TerminalInput`]: what goes over its byte channel beside bytes;
//! * [`CreateSession`], [`CreateAppSession`]: what makes a session; [`Created`], [`Session`]: what is answered;
//! * [`Probe`], [`Probed`]: whether one can be had.
//!
//! Members that nobody knows are ignored, and members that say nothing are left out.

mod event;
mod probe;
mod session;
mod terminal;

pub use event::{
    Endpoint, Event, GAP_REASON, ListeningState, Phase, PortProtocol, RejectedPort, RouteState, RunPhase, RunTrigger,
    Status,
};
pub use probe::{Probe, Probed};
pub use session::{
    App, Bundle, BundleFile, Config, CreateAppSession, CreateSession, Created, Encoding, Environment, Io, Mode, Port,
    PullPolicy, Session, SessionApp,
};
pub use terminal::{ClientFrame, RESIZE_UNSUPPORTED, ServerFrame, TerminalInput, TerminalSize};
