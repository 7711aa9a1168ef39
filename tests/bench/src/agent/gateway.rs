//! A stand-in for a gateway: it takes every route as soon as it sees it, and answers for each as the route says. So what
//! is measured is the agent, and no gateway's haste.
//!
//! Pods take connections at the same address and port: a dial is a connection, and that is all that is asked of them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use http_body_util::Empty;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::ground::NAMESPACE;

/// Statuses that are on their way at the same time.
const AT_ONCE: usize = 16;

/// What leads to a session, by its host: the headers that a probe has, and that its answer has.
type Routes = Arc<Mutex<HashMap<String, (String, String)>>>;

/// The gateway; it ends when dropped.
#[derive(Debug)]
pub struct Gateway {
    /// Where it listens, and all pods too.
    pub address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Gateway {
    /// Makes the Gateway `bench` and serves its routes.
    ///
    /// # Errors
    /// When this machine has no address but its loopback, which no `EndpointSlice` takes.
    pub async fn start(client: &Client) -> Result<Self> {
        let listener = TcpListener::bind((address_of_this_machine()?, 0)).await?;
        let address = listener.local_addr()?;
        announce(client, address).await?;
        let routes = Routes::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::clone(&routes)));
        tasks.spawn(take(client.clone(), routes));
        Ok(Self { address, _tasks: tasks })
    }
}

/// The `routing` of a policy that names it.
pub const ROUTING: &str = "{baseDomain: sessions.example.test, gateway: {name: bench, namespace: cofferdam-system}, \
                           publicURL: {scheme: http}, proof: on}";

fn address_of_this_machine() -> Result<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // Nothing is sent: the system chooses the address that it would be sent from.
    socket.connect("192.0.2.1:9").context("this machine has no network")?;
    let address = socket.local_addr()?.ip();
    ensure!(!address.is_loopback() && !address.is_unspecified(), "this machine has no address but its loopback");
    Ok(address)
}

fn kind(kind: &str, plural: &str) -> ApiResource {
    let (group, version) = ("gateway.networking.k8s.io".to_owned(), "v1".to_owned());
    ApiResource { api_version: format!("{group}/{version}"), group, version, kind: kind.into(), plural: plural.into() }
}

async fn announce(client: &Client, address: SocketAddr) -> Result<()> {
    let gateways: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "cofferdam-system", &kind("Gateway", "gateways"));
    let classes: Api<DynamicObject> = Api::all_with(client.clone(), &kind("GatewayClass", "gatewayclasses"));
    let class = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "GatewayClass",
        "metadata": {"name": "bench"},
        "spec": {"controllerName": "cofferdam.test/bench"},
    });
    classes.create(&PostParams::default(), &serde_json::from_value(class)?).await?;
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "Gateway",
        "metadata": {"name": "bench"},
        "spec": {
            "gatewayClassName": "bench",
            "listeners": [{
                "name": "http",
                "protocol": "HTTP",
                "port": address.port(),
                "allowedRoutes": {"namespaces": {"from": "All"}},
            }],
        },
    });
    gateways.create(&PostParams::default(), &serde_json::from_value(gateway)?).await?;
    let conditions = |types: &[&str]| conditions(types, 1);
    let status = json!({"status": {
        "addresses": [{"type": "IPAddress", "value": address.ip()}],
        "conditions": conditions(&["Accepted", "Programmed"]),
        "listeners": [{
            "name": "http",
            "attachedRoutes": 0,
            "supportedKinds": [],
            "conditions": conditions(&["Accepted", "Programmed", "ResolvedRefs"]),
        }],
    }});
    gateways.patch_status("bench", &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(())
}

fn conditions(types: &[&str], generation: i64) -> Value {
    let condition = |type_: &&str| {
        json!({
            "type": type_,
            "status": "True",
            "reason": type_,
            "message": "",
            "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    types.iter().map(condition).collect()
}

/// Takes every route, for ever.
async fn take(client: Client, routes: Routes) {
    let api: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &kind("HTTPRoute", "httproutes"));
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut events = std::pin::pin!(watcher::watcher(api.clone(), watcher::Config::default()));
    let mut taken: HashMap<String, i64> = HashMap::new();
    while let Some(event) = futures_util::StreamExt::next(&mut events).await {
        match event {
            Ok(Event::Apply(route) | Event::InitApply(route)) => {
                let (name, generation) = (route.name_any(), route.metadata.generation.unwrap_or_default());
                if taken.insert(name.clone(), generation) == Some(generation) {
                    continue;
                }
                if let Some((host, headers)) = leads(&route.data) {
                    lock(&routes).insert(host, headers);
                }
                let status = json!({"status": {"parents": [{
                    "parentRef": route.data["spec"]["parentRefs"][0],
                    "controllerName": "cofferdam.test/bench",
                    "conditions": conditions(&["Accepted", "ResolvedRefs"], generation),
                }]}});
                let (api, turns) = (api.clone(), Arc::clone(&turns));
                tokio::spawn(async move {
                    let _turn = turns.acquire().await;
                    // A route that is gone already needs none.
                    let _ = api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await;
                });
            }
            Ok(Event::Delete(route)) => {
                taken.remove(&route.name_any());
                if let Some((host, _)) = leads(&route.data) {
                    lock(&routes).remove(&host);
                }
            }
            // The watcher begins anew by itself.
            Ok(Event::Init | Event::InitDone) | Err(_) => {}
        }
    }
}

/// The host of a route, with the headers of its first rule, which proves who answers.
fn leads(route: &Value) -> Option<(String, (String, String))> {
    let (spec, rule) = (&route["spec"], &route["spec"]["rules"][0]);
    let probe = rule["matches"][0]["headers"][0]["value"].as_str()?;
    let mut filters = rule["filters"].as_array()?.iter();
    let proof = filters.find_map(|filter| filter["responseHeaderModifier"]["set"][0]["value"].as_str())?;
    Some((spec["hostnames"][0].as_str()?.to_owned(), (probe.to_owned(), proof.to_owned())))
}

async fn serve(listener: TcpListener, routes: Routes) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, Arc::clone(&routes)));
        }
    }
}

async fn connection(stream: TcpStream, routes: Routes) {
    let answer = service_fn(|request: http::Request<_>| {
        let answer = answer(request.headers(), &routes);
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    // Who asks notices by itself when a connection breaks.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

fn answer(headers: &HeaderMap, routes: &Routes) -> Response<Empty<Bytes>> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let host = text(header::HOST.as_str()).split(':').next().unwrap_or_default().to_owned();
    let mut response = Response::new(Empty::new());
    match lock(routes).get(&host) {
        Some((probe, proof)) if text("x-cofferdam-probe") == probe => {
            if let Ok(value) = proof.parse() {
                response.headers_mut().insert("x-cofferdam-proof", value);
            }
        }
        Some(_) => {}
        None => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    response
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_probe_of_a_route_gets_its_proof() {
        let route = json!({"spec": {"hostnames": ["h"], "rules": [{
            "matches": [{"headers": [{"value": "one"}]}],
            "filters": [
                {"requestHeaderModifier": {"remove": ["x-cofferdam-probe"]}},
                {"responseHeaderModifier": {"set": [{"value": "two"}]}},
            ],
        }]}});
        let routes = Routes::default();
        routes.lock().unwrap().extend(leads(&route));
        let ask = |host: &str, probe: &str| {
            let headers = [("host", host), ("x-cofferdam-probe", probe)];
            let headers = headers.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            let answer = answer(&HeaderMap::from_iter(headers), &routes);
            (answer.status().as_u16(), answer.headers().get("x-cofferdam-proof").cloned())
        };
        assert_eq!(ask("h:80", "one"), (200, Some("two".parse().unwrap())));
        assert_eq!(ask("h", "three"), (200, None));
        assert_eq!(ask("i", "one"), (404, None));
    }
}
