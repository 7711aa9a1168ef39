//! Resources that a pod sets as a whole, as an API server validates and defaults them (`PodLevelResources`): what was
//! legal stays legal, and what the server fills in afterwards is no finding.

use cofferdam_model::{audit, policy::Policy, quantity::Quantity};
use proptest::{prelude::*, sample::select};
use serde_json::{Map, Value, json};

use crate::hardened;

/// What a container asks of a resource: its limit and its request, in the resource's unit.
type Asked = (Option<u64>, Option<u64>);

/// What a pod asks for as a whole beyond what its containers need: above their limits, and above their requests.
type Slack = (Option<u64>, Option<u64>);

const RESOURCES: [(&str, &str); 2] = [("cpu", "m"), ("memory", "Mi")];

fn asked() -> impl Strategy<Value = [Asked; 2]> {
    let one = || {
        let limit = prop::option::of(select(vec![0, 20, 100, 400, 3000]));
        (limit, prop::option::of(select(vec![1, 50, 200]))).prop_map(|(limit, request)| {
            (limit, request.map(|request| limit.map_or(request, |most| request.min(most))))
        })
    };
    [one(), one()]
}

/// A pod that an API server would accept, but for what it is asked to run.
fn legal() -> impl Strategy<Value = Value> {
    let slack = || {
        let amount = || prop::option::of(select(vec![0, 30, 700, 9000]));
        (amount(), amount())
    };
    let containers = prop::collection::vec(asked(), 1..=3);
    let inits = prop::collection::vec((asked(), any::<bool>()), 0..=2);
    (containers, inits, [slack(), slack()], any::<bool>()).prop_map(|(containers, inits, slacks, has_body)| {
        let container = |asked: &[Asked; 2], name: String| json!({ "name": name, "resources": resources(*asked) });
        let mut spec = json!({
            "containers": containers.iter().enumerate().map(|(i, asked)| container(asked, format!("c{i}"))).collect::<Vec<_>>(),
            "initContainers": inits.iter().enumerate().map(|(i, (asked, is_sidecar))| {
                let mut init = container(asked, format!("i{i}"));
                if *is_sidecar {
                    init["restartPolicy"] = json!("Always");
                }
                init
            }).collect::<Vec<_>>(),
        });
        let whole = whole(&containers, &inits, slacks);
        if whole.iter().any(|(limit, request)| limit.is_some() || request.is_some()) {
            spec["resources"] = resources(whole);
        }
        let mut pod = json!({ "metadata": { "generateName": "s-" }, "spec": spec });
        if has_body {
            pod["metadata"]["annotations"] = json!({
                "cofferdam.dev/body-url": "https://example.com/b.tgz", "cofferdam.dev/body-sha256": "0a".repeat(32),
            });
        }
        defaulted(&pod, false)
    })
}

/// What the pod sets as a whole, enough for all of its containers.
fn whole(containers: &[[Asked; 2]], inits: &[([Asked; 2], bool)], slacks: [Slack; 2]) -> [Asked; 2] {
    [0, 1].map(|which| {
        let requests = |asked: &[Asked; 2]| asked[which].1.or(asked[which].0).unwrap_or(0);
        let all = containers.iter().chain(inits.iter().map(|(asked, _)| asked));
        let needed: u64 = all.clone().map(requests).sum();
        let highest = all.filter_map(|asked| asked[which].0).max().unwrap_or(0);
        let (limit, request) = slacks[which];
        let request = request.map(|slack| needed + slack);
        (limit.map(|slack| request.unwrap_or(needed).max(highest) + slack), request)
    })
}

fn resources(asked: [Asked; 2]) -> Value {
    let amounts = |of: fn(Asked) -> Option<u64>| -> Map<String, Value> {
        let each = RESOURCES.iter().zip(asked);
        each.filter_map(|((name, unit), asked)| Some(((*name).to_owned(), json!(format!("{}{unit}", of(asked)?)))))
            .collect()
    };
    json!({ "limits": amounts(|(limit, _)| limit), "requests": amounts(|(_, request)| request) })
}

fn amount(holder: &Value, kind: &str, name: &str) -> Option<Quantity> {
    let value = &holder["resources"][kind][name];
    (!value.is_null()).then(|| Quantity::from_json(value).unwrap())
}

fn containers<'p>(pod: &'p Value, list: &str) -> impl Iterator<Item = &'p Value> + Clone + use<'p> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// What the containers ask for together: those that run together, or an init container with the sidecars before it.
fn aggregate(pod: &Value, kind: &str, name: &str) -> Option<Quantity> {
    let plus = |sum: Option<Quantity>, more: Option<Quantity>| match (sum, more) {
        (Some(sum), Some(more)) => Some(sum.plus(more)),
        (sum, more) => sum.or(more),
    };
    let mut together = containers(pod, "containers").fold(None, |sum, c| plus(sum, amount(c, kind, name)));
    let (mut sidecars, mut most) = (None, None);
    for init in containers(pod, "initContainers") {
        let request = amount(init, kind, name);
        if init["restartPolicy"] == json!("Always") {
            together = plus(together, request);
            sidecars = plus(sidecars, request);
            most = most.max(sidecars);
        } else {
            most = most.max(plus(sidecars, request));
        }
    }
    together.max(most)
}

/// The pod with what an API server fills in; since 1.37 with the pod's limits, where all containers have theirs
/// (`PodLevelResourcesFixDefaulting`).
fn defaulted(pod: &Value, fills_limits: bool) -> Value {
    let mut pod = pod.clone();
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
            for (name, limit) in limits {
                let request = &mut container["resources"]["requests"][name];
                if request.is_null() {
                    *request = limit;
                }
            }
        }
    }
    let sets_any = ["limits", "requests"]
        .iter()
        .any(|kind| pod["spec"]["resources"][kind].as_object().is_some_and(|amounts| !amounts.is_empty()));
    for (name, _) in RESOURCES.iter().filter(|_| sets_any) {
        let summed = aggregate(&pod, "requests", name);
        let limit = amount(&pod["spec"], "limits", name);
        if amount(&pod["spec"], "requests", name).is_none()
            && let Some(request) = summed.or(limit)
        {
            pod["spec"]["resources"]["requests"][*name] = json!(request.to_string());
        }
        let all = || containers(&pod, "containers").chain(containers(&pod, "initContainers"));
        if fills_limits
            && limit.is_none()
            && all().all(|container| amount(container, "limits", name).is_some())
            && let Some(request) = amount(&pod["spec"], "requests", name)
            && let Some(limit) = aggregate(&pod, "limits", name)
        {
            pod["spec"]["resources"]["limits"][*name] = json!(limit.max(request).to_string());
        }
    }
    pod
}

/// Why an API server would refuse the pod's resources.
fn faults(pod: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, _) in RESOURCES {
        let whole = &pod["spec"];
        let all = containers(pod, "containers").chain(containers(pod, "initContainers"));
        for holder in all.clone().chain([whole]) {
            if let (Some(limit), Some(request)) = (amount(holder, "limits", name), amount(holder, "requests", name))
                && request > limit
            {
                faults.push(format!("{} requests more {name} than its limit", holder["name"]));
            }
        }
        if let (Some(request), Some(needed)) = (amount(whole, "requests", name), aggregate(pod, "requests", name))
            && needed > request
        {
            faults.push(format!("the containers request {needed} {name}, and the pod {request}"));
        }
        for container in all {
            if let (Some(most), Some(limit)) = (amount(whole, "limits", name), amount(container, "limits", name))
                && limit > most
            {
                faults.push(format!("{} has a higher limit of {name} than the pod", container["name"]));
            }
        }
    }
    faults
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_legal_stays_legal_and_what_the_server_fills_in_is_no_finding(pod in legal()) {
        prop_assert_eq!(faults(&pod), Vec::<String>::new());
        if let Some(hardened) = hardened(&pod) {
            for fills_limits in [false, true] {
                let stored = defaulted(&hardened.pod, fills_limits);
                prop_assert_eq!(faults(&stored), Vec::<String>::new(), "{}", stored);
                let found = audit(&stored, &Policy::built_in());
                prop_assert!(found.is_empty(), "{:?} {}", found, stored);
                let again = crate::hardened(&stored);
                prop_assert!(again.is_some_and(|again| again.changes.is_empty()));
            }
        }
    }
}
