//! What holds for every session, whoever made it.

use cofferdam_e2e::namespace::{Sessions, TestNamespace};
use cofferdam_e2e::stage::Stage;
use serde_json::{Value, json};

pub(crate) const MIB: u64 = 1024 * 1024;

/// A namespace for one test on the cluster that all of them share.
pub(crate) fn namespace(name: &str, sessions: Sessions) -> TestNamespace {
    Stage::shared().namespace(name, sessions)
}

/// What the fixture's first step, `status`, says about its process.
pub(crate) fn status(namespace: &TestNamespace, pod: &str, container: &str) -> Value {
    let logs = namespace.logs(pod, container).unwrap();
    serde_json::from_str(logs.lines().next().unwrap()).unwrap()
}

/// Holds for every container of every session: read inside the container, from the kernel.
pub(crate) fn assert_confined(status: &Value) {
    assert_eq!(status["uid"], 1000);
    assert_eq!(status["gid"], 1000);
    for set in ["effective", "permitted", "inheritable", "bounding", "ambient"] {
        assert_eq!(status["capabilities"][set], "0000000000000000", "{set} capabilities");
    }
    assert_eq!(status["seccomp"], 2, "a filter");
    assert_eq!(status["noNewPrivileges"], true);
    assert_eq!(status["rootReadOnly"], true);
    assert_eq!(status["serviceAccountToken"], false);
    assert_eq!(status["memoryLimit"], 512 * MIB);
    let home = status["home"].as_str().unwrap();
    for (path, writable) in [("/", false), ("/tmp", true), (home, true)] {
        assert_eq!(status["writes"][path]["ok"], writable, "writing to {path}: {}", status["writes"][path]);
    }
}

/// Holds for every session as an object.
pub(crate) fn assert_hardened(pod: &Value) {
    let spec = &pod["spec"];
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(spec["enableServiceLinks"], false);
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array().into_iter().flatten() {
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(context["readOnlyRootFilesystem"], true, "{container}");
            assert_eq!(context["capabilities"]["drop"], json!(["ALL"]), "{container}");
            for resource in ["cpu", "memory", "ephemeral-storage"] {
                assert!(container["resources"]["limits"][resource].is_string(), "{container}");
                assert!(container["resources"]["requests"][resource].is_string(), "{container}");
            }
        }
    }
    assert!(pod["metadata"]["labels"]["cofferdam.dev/session"].is_string());
    assert!(pod["metadata"]["annotations"]["cofferdam.dev/hardened"].is_string());
}
