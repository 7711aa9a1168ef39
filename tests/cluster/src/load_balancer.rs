//! What a cloud would do for Services of type LoadBalancer: give each an address.
//!
//! The address only has to be written into the Service's status: kube-proxy makes it work on every node, and inside the
//! cluster's network all nodes have a route to the range.

use std::collections::BTreeSet;
use std::path::Path;

use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};

use crate::error::Error;
use crate::network::LOAD_BALANCERS;

/// Gives addresses until the process is ended.
///
/// # Errors
/// When an address cannot be given. The node starts the program again, and it begins with all Services.
pub(crate) async fn run(kubeconfig: &Path) -> Result<(), Error> {
    let services: Api<Service> = Api::all(crate::api::client(kubeconfig).await?);
    let mut changes =
        std::pin::pin!(watcher(services.clone(), watcher::Config::default()).default_backoff().applied_objects());
    loop {
        match changes.try_next().await {
            Ok(Some(service)) if wants(&service) => give(&services, &service).await.map_err(Error::Usage)?,
            Ok(Some(_)) => {}
            Ok(None) => return Ok(()),
            // The watch starts again by itself; the log is for whoever wonders.
            Err(error) => eprintln!("{error}"),
        }
    }
}

async fn give(all: &Api<Service>, service: &Service) -> Result<(), String> {
    // Asked for each time: what was deleted is free again, and no table can be out of step.
    let list = all.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
    let taken: BTreeSet<u8> = list.iter().filter_map(given).collect();
    let name = service.name_any();
    let number = (1..=254).find(|number| !taken.contains(number)).ok_or(format!("no address is left for {name}"))?;
    let [a, b, c] = LOAD_BALANCERS;
    let status =
        serde_json::json!({"status": {"loadBalancer": {"ingress": [{"ip": format!("{a}.{b}.{c}.{number}")}]}}});
    let own: Api<Service> = Api::namespaced(all.clone().into_client(), &service.namespace().unwrap_or_default());
    let written = own.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await;
    written.map(|_| ()).map_err(|error| format!("giving {name} an address: {error}"))
}

/// Whether `service` is one of those that a cloud would serve and has no address yet.
fn wants(service: &Service) -> bool {
    service
        .spec
        .as_ref()
        .is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer") && spec.load_balancer_class.is_none())
        && given(service).is_none()
}

/// The last number of the address that `service` has from us.
fn given(service: &Service) -> Option<u8> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?;
    let [a, b, c] = LOAD_BALANCERS;
    ingress.first()?.ip.as_ref()?.strip_prefix(&format!("{a}.{b}.{c}."))?.parse().ok()
}
