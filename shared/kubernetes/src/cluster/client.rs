//! The connection to the API server.

use std::time::Duration;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::{BoxError, ServiceExt as _};

/// A client that does not wait before it sends a small request's last packet, as the library's own would.
///
/// # Errors
/// When the configuration's certificates or token cannot be used.
pub fn client(config: &Config) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_keepalive(Some(Duration::from_secs(30)));
    let https = config.rustls_https_connector_with_connector(connector)?;
    let service = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build::<_, Body>(https);
    let service = service.map_err(BoxError::from);
    let namespace = config.default_namespace.clone();
    let builder = ClientBuilder::new(service, namespace).with_layer(&config.base_uri_layer());
    Ok(match config.auth_layer()? {
        Some(auth) => builder.with_layer(&auth).build(),
        None => builder.build(),
    })
}
