//! The API server, as the harness asks it.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};

use crate::error::Error;

/// How often something that is waited for is looked at.
const POLL: Duration = Duration::from_millis(50);

/// A client for the cluster that `kubeconfig` names.
///
/// # Errors
/// [`Error::Part`] when the file cannot be used.
pub(crate) async fn client(kubeconfig: &Path) -> Result<Client, Error> {
    let file = Kubeconfig::read_from(kubeconfig).map_err(Error::part)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(Error::part)?;
    // The cluster is on this machine, whatever proxy leads out of it.
    config.proxy_url = None;
    Client::try_from(config).map_err(Error::part)
}

/// Waits until the API server says that it is ready.
pub(crate) async fn ready(client: &Client, limit: Duration) -> Result<(), Error> {
    until("the API server", limit, async || {
        let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| error.to_string())?;
        client.request_text(request).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await
}

/// Waits until `node` reports Ready.
pub(crate) async fn node_ready(client: &Client, node: &str, limit: Duration) -> Result<(), Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    until(&format!("node {node}, Ready,"), limit, async || {
        let found = nodes.get(node).await.map_err(|error| error.to_string())?;
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        match conditions.iter().find(|condition| condition.type_ == "Ready") {
            Some(ready) if ready.status == "True" => Ok(()),
            Some(ready) => Err(ready.message.clone().unwrap_or_default()),
            None => Err("it has no Ready condition yet".to_owned()),
        }
    })
    .await
}

/// Waits until pods can be made in `namespace`: none is admitted before its ServiceAccount is there.
pub(crate) async fn namespace_ready(client: &Client, namespace: &str, limit: Duration) -> Result<(), Error> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    until("the ServiceAccount `default`", limit, async || {
        accounts.get("default").await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await
}

/// Tries until `attempt` succeeds; the last failure is what the error says.
async fn until(what: &str, limit: Duration, attempt: impl AsyncFn() -> Result<(), String>) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        match attempt().await {
            Ok(()) => return Ok(()),
            Err(look) if start.elapsed() > limit => {
                return Err(Error::Timeout { what: what.to_owned(), after: limit, look });
            }
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }
}
