//! Telling the server that the body has arrived, so that it need not keep it.

use http::{HeaderMap, Method};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::Remote;
use super::connect::{self, Trouble};
use super::deadline::Deadline;
use crate::say;

/// The header of an answer with the body by which a server asks to be told. To any other a `DELETE` would be an order.
const ASKED: &str = "x-cofferdam-acknowledge";

/// Whether whoever answered so wants a `DELETE` once the body has arrived.
pub(crate) fn is_asked_for(headers: &HeaderMap) -> bool {
    headers.get(ASKED).is_some_and(|how| how == "delete")
}

/// Sends one `DELETE` to the body's URL. The body is here, whatever comes of it: the server forgets it in a while anyway.
pub(crate) fn acknowledge(runtime: &Runtime, remote: &Remote, deadline: &Deadline) {
    let address = &remote.address;
    let told = async {
        let request = remote.authorize(connect::request(Method::DELETE, address))?;
        connect::send(request, address, &remote.tls, deadline.patience()).await
    };
    let told = runtime.block_on(async { timeout(deadline.left(), told).await });
    let why = match told {
        Ok(Ok(answer)) if answer.status().is_success() => return,
        Ok(Ok(answer)) => format!("it answered {}", answer.status().as_u16()),
        Ok(Err(Trouble::Passing(why))) => why,
        Ok(Err(Trouble::Lasting(failure))) => failure.sentence(),
        Err(_) => "the time is up".to_owned(),
    };
    say(&format!("the body is here, but its server could not be told: {why}"));
}
