//! What a hardened pod is, said once more and without the rules: from the promises, by plain JSON pointers.

use cofferdam_model::quantity::Quantity;
use serde_json::{Value, json};

use crate::placed;

/// Panics, naming the promise, if the pod breaks one.
pub(crate) fn check(pod: &Value) {
    let spec = &pod["spec"];
    assert_eq!(spec["automountServiceAccountToken"], json!(false));
    assert_eq!(spec["enableServiceLinks"], json!(false));
    assert_eq!(spec["shareProcessNamespace"], json!(false));
    for namespace in ["hostNetwork", "hostPID", "hostIPC"] {
        assert_ne!(spec[namespace], json!(true), "{namespace}");
    }
    assert!(spec["activeDeadlineSeconds"].as_i64().unwrap() <= 3600);
    assert!(spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(30) <= 30);

    placed::check(spec);

    let security = &spec["securityContext"];
    assert_eq!(security["runAsNonRoot"], json!(true));
    for id in ["runAsUser", "runAsGroup", "fsGroup"] {
        assert_ne!(security[id].as_i64().unwrap(), 0, "{id}");
    }
    assert!(items(&security["supplementalGroups"]).all(|group| *group != json!(0)));
    assert_eq!(security["seccompProfile"]["type"], json!("RuntimeDefault"));

    let owned = items(&pod["metadata"]["ownerReferences"]).any(|owner| owner["controller"] == json!(true));
    assert!(owned || spec["restartPolicy"] == json!("Never"));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items(&spec[list]) {
            check_container(container, list != "ephemeralContainers", spec);
            let is_fetch = list == "initContainers" && container["name"] == json!("cofferdam-fetch");
            assert!(is_fetch || !items(&container["volumeMounts"]).any(is_credential));
            let is_sidecar = list == "initContainers" && container["restartPolicy"] == json!("Always");
            let restart = container["restartPolicy"].as_str().unwrap_or("Never");
            assert!(owned || is_sidecar || restart == "Never", "{restart}");
        }
    }
    for volume in items(&spec["volumes"]) {
        assert!(volume.get("hostPath").is_none_or(Value::is_null) && volume.get("invented").is_none());
        let is_identity = volume["name"] == json!("cofferdam-body-identity");
        for source in items(&volume["projected"]["sources"]) {
            let audience = if is_identity { json!("cofferdam-bodies") } else { Value::Null };
            assert_eq!(source["serviceAccountToken"]["audience"], audience);
            assert_eq!(source["serviceAccountToken"].is_null(), !is_identity);
            assert_eq!(source["podCertificate"], Value::Null);
        }
        if volume["emptyDir"].is_object() {
            let size = amount(&volume["emptyDir"]["sizeLimit"]);
            let ceiling = if volume["emptyDir"]["medium"] == json!("Memory") { "512Mi" } else { "1Gi" };
            assert!(size > Quantity::ZERO && size <= quantity(ceiling));
        }
    }
}

/// Whether a mount shows the body's token or the pod's identity.
fn is_credential(mount: &Value) -> bool {
    mount["name"].as_str().is_some_and(|name| name.starts_with("cofferdam-body-"))
}

/// The pod without the init container that fetches a body.
pub(crate) fn without_fetch(pod: &Value) -> Value {
    let mut pod = pod.clone();
    if let Some(inits) = pod["spec"]["initContainers"].as_array_mut() {
        inits.retain(|container| container["name"] != json!("cofferdam-fetch"));
    }
    pod
}

/// As [`check`], for one container of a pod with this spec.
pub(crate) fn check_container(container: &Value, has_resources: bool, spec: &Value) {
    let security = &container["securityContext"];
    assert_eq!(security["privileged"], json!(false));
    assert_eq!(security["allowPrivilegeEscalation"], json!(false));
    assert_eq!(security["readOnlyRootFilesystem"], json!(true));
    assert_eq!(security["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(items(&security["capabilities"]["add"]).count(), 0);
    assert_ne!(security["runAsNonRoot"], json!(false));
    assert_ne!(security["runAsUser"], json!(0));
    assert_ne!(security["runAsGroup"], json!(0));
    assert!(matches!(security["seccompProfile"]["type"].as_str(), None | Some("RuntimeDefault")));
    assert!(matches!(security["appArmorProfile"]["type"].as_str(), None | Some("RuntimeDefault" | "Localhost")));
    assert!(matches!(security["procMount"].as_str(), None | Some("Default")));
    assert!(items(&container["ports"]).all(|port| port["hostPort"].as_i64().unwrap_or(0) == 0));
    for mount in items(&container["volumeMounts"]) {
        assert!(matches!(mount["mountPropagation"].as_str(), None | Some("None")), "{mount}");
        for path in ["subPath", "subPathExpr"] {
            let path = std::path::Path::new(mount[path].as_str().unwrap_or_default());
            let is_plain = |part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir);
            assert!(path.components().all(is_plain), "{mount}");
        }
    }
    let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
    for handler in hooks.into_iter().chain(probes) {
        for kind in ["httpGet", "tcpSocket"] {
            assert!(handler[kind]["host"].as_str().is_none_or(str::is_empty), "{handler}");
        }
    }
    if !has_resources {
        return;
    }
    for (resource, ceiling) in [("cpu", "500m"), ("memory", "512Mi"), ("ephemeral-storage", "1Gi")] {
        let for_pod = &spec["resources"];
        if for_pod["limits"][resource].is_null() {
            let limit = amount(&container["resources"]["limits"][resource]);
            assert!(limit > Quantity::ZERO && limit <= quantity(ceiling), "{resource} {limit}");
            // What the pod requests for all of them, none of them has to.
            let request = &container["resources"]["requests"][resource];
            if for_pod["requests"][resource].is_null() || !request.is_null() {
                let request = amount(request);
                assert!(request <= limit, "{resource} {request}");
                assert!(request > Quantity::ZERO || !for_pod["requests"][resource].is_null(), "{resource} {request}");
            }
        } else {
            let limit = amount(&for_pod["limits"][resource]);
            assert!(limit > Quantity::ZERO && limit <= quantity(ceiling).times(4), "{resource} {limit}");
        }
    }
}

/// The fields of a pod, as JSON pointers, that ask for no more than the default profile gives.
pub(crate) fn strict_already(pod: &Value) -> Vec<String> {
    let mut pointers = Vec::new();
    let mut keep = |pointer: String, is_strict: &dyn Fn(&Value) -> bool| {
        if pod.pointer(&pointer).is_some_and(|value| !value.is_null() && is_strict(value)) {
            pointers.push(pointer);
        }
    };
    let at_most = |most: i64| move |value: &Value| value.as_i64().is_some_and(|number| number <= most);
    keep("/spec/activeDeadlineSeconds".to_owned(), &at_most(3600));
    keep("/spec/terminationGracePeriodSeconds".to_owned(), &at_most(30));
    keep("/spec/restartPolicy".to_owned(), &|value| value == "Never");
    keep("/spec/securityContext/seccompProfile/type".to_owned(), &|value| value == "RuntimeDefault");
    keep("/metadata/labels/cofferdam.dev~1session".to_owned(), &|value| value != "");
    for id in ["runAsUser", "runAsGroup", "fsGroup"] {
        keep(format!("/spec/securityContext/{id}"), &|value| *value != json!(0));
    }
    keep("/spec/hostUsers".to_owned(), &|value| *value == json!(false));
    keep("/spec/schedulerName".to_owned(), &|_| true);
    keep("/spec/nodeSelector".to_owned(), &|_| true);
    keep("/spec/affinity".to_owned(), &|_| true);
    keep("/spec/imagePullSecrets".to_owned(), &|_| true);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for index in 0..items(&pod["spec"][list]).count() {
            let container = format!("/spec/{list}/{index}");
            let security = format!("{container}/securityContext");
            for id in ["runAsUser", "runAsGroup"] {
                keep(format!("{security}/{id}"), &|value| *value != json!(0));
            }
            for switch in ["privileged", "allowPrivilegeEscalation"] {
                keep(format!("{security}/{switch}"), &|value| *value == json!(false));
            }
            keep(format!("{security}/readOnlyRootFilesystem"), &|value| *value == json!(true));
            keep(format!("{container}/env/0"), &|_| true);
            for field in ["image", "imagePullPolicy", "readinessProbe/httpGet/port", "lifecycle/preStop/unknownToUs"] {
                keep(format!("{container}/{field}"), &|_| true);
            }
            for (resource, ceiling) in [("cpu", "500m"), ("memory", "512Mi"), ("ephemeral-storage", "1Gi")] {
                keep(format!("{container}/resources/limits/{resource}"), &|value| {
                    let amount = amount(value);
                    amount > Quantity::ZERO && amount <= quantity(ceiling)
                });
            }
        }
    }
    pointers
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn amount(value: &Value) -> Quantity {
    Quantity::from_json(value).unwrap()
}

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}
