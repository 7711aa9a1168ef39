//! What annotations and labels of a session hold: whoever may write to a pod wrote them, and an agent reads them.

use cofferdam_model::endpoints::Endpoints;
use cofferdam_model::ports::{MOST, Ports};
use cofferdam_model::session::SessionId;

/// The most bytes that all annotations of an object may hold together.
const ROOM: usize = 256 * 1024;

/// Reads the bytes as a list of ports, as endpoints, and as a session's id.
///
/// # Panics
/// A promise is broken.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(ports) = Ports::parse(text) {
        assert!(ports.iter().count() <= MOST, "{ports}");
        assert!(ports.iter().all(|port| port.number != 0), "{ports}");
        assert_eq!(Ports::parse(&ports.to_string()), Ok(ports.clone()), "written as {ports}");
        assert_eq!(ports.among(&ports), ports);
    }
    if let Some(read) = Endpoints::parse(text) {
        assert_eq!(Endpoints::parse(&read.to_string()).as_ref(), Some(&read), "written as {read}");
        let own = Endpoints::new(read.for_ports.clone(), read.ports);
        assert_eq!(Endpoints::parse(&own.to_string()).as_ref(), Some(&own), "written as {own}");
        assert!(!own.to_string().contains('\n') && own.to_string().len() < ROOM);
        assert_eq!(Endpoints::new(own.for_ports.clone(), own.ports.clone()), own, "what was cut is cut again");
    }
    if let Ok(id) = SessionId::parse(text) {
        assert_eq!(id.as_str(), text);
        assert!(
            text.len() <= 63
                && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
    }
}
