//! A body that somebody in the cluster serves: a pod gets it, or says why not.
//!
//! Sessions reach one port in the cluster besides the DNS: the one that our API serves bodies from. So what serves here
//! stands in its place.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cofferdam_e2e::images::{FIXTURE, SHELL};
use cofferdam_e2e::install::SYSTEM;
use cofferdam_e2e::namespace::{PATIENCE, Sessions, TestNamespace};
use cofferdam_e2e::stage::Stage;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::session::{assert_hardened, namespace};

/// Where it is, and its digest.
#[derive(Debug)]
struct Body {
    url: String,
    sha256: String,
}

/// Two files, as an archive of whoever made it: neither is for others to change.
fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (path, mode, text) in [("main.sh", 0o755, "echo hello from the body\n"), ("data/numbers", 0o600, "1 2 3\n")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(mode);
        tar.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// The body that is served, by a pod that both tests share.
fn body() -> &'static Body {
    static BODY: OnceLock<Body> = OnceLock::new();
    BODY.get_or_init(|| {
        let stage = Stage::shared();
        let archive = archive();
        let labels = json!({"app.kubernetes.io/name": "cofferdam", "app.kubernetes.io/component": "api"});
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "test-body"},
             "binaryData": {"body.tgz": BASE64_STANDARD.encode(&archive)}},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "test-bodies", "labels": labels}, "spec": {
                "containers": [{
                    "name": "bodies", "image": FIXTURE, "args": ["listen", "--port=8063", "--http"],
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "allowPrivilegeEscalation": false,
                        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "volumeMounts": [{"name": "body", "mountPath": "/bodies"}],
                }],
                "volumes": [{"name": "body", "configMap": {"name": "test-body"}}],
                "automountServiceAccountToken": false,
            }},
        ]});
        let of = format!("--namespace={SYSTEM}");
        stage.kubectl.run_with([of.as_str(), "apply", "--filename=-"], &objects.to_string()).unwrap();
        let limit = format!("--timeout={}s", PATIENCE.as_secs());
        stage.system(&["wait", "pod/test-bodies", "--for=condition=Ready", &limit]).unwrap();
        let address = stage.system(&["get", "pod/test-bodies", "--output=jsonpath={.status.podIP}"]).unwrap();
        let sha256 = Sha256::digest(&archive).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        Body { url: format!("http://{}:8063/file?path=/bodies/body.tgz", address.trim()), sha256 }
    })
}

/// A session, by its label alone, that asks for the body and then runs `script` as a user of its own.
fn create(namespace: &TestNamespace, sha256: &str, script: &str) {
    let created = namespace
        .create_object(
            &json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "with-body",
                    "labels": {"cofferdam.dev/session": ""},
                    "annotations": {"cofferdam.dev/body-url": body().url, "cofferdam.dev/body-sha256": sha256},
                },
                "spec": {
                    "securityContext": {"fsGroup": 2000},
                    "containers": [{
                        "name": "app", "image": SHELL, "args": ["sh", "-c", script],
                        "securityContext": {"runAsUser": 8001, "runAsGroup": 8001},
                    }],
                },
            })
            .to_string(),
        )
        .unwrap();
    assert_hardened(&created.pod);
    assert_eq!(created.warnings, Vec::<String>::new());
}

/// How the init container ended.
fn fetch(namespace: &TestNamespace) -> Value {
    let pod = namespace.json(["get", "pod/with-body", "--output=json"]).unwrap();
    let fetch = &pod["status"]["initContainerStatuses"][0];
    assert_eq!(fetch["name"], "cofferdam-fetch");
    fetch["state"]["terminated"].clone()
}

#[test]
fn b67_a_body_is_fetched_and_another_user_of_the_group_may_change_all_of_it() {
    let namespace = namespace("body", Sessions::None);
    let script = "cd /app; ls -A; sh main.sh; cat data/numbers; stat --format='%n %u:%g %a' . * data/*; \
                  for file in main.sh data/numbers; do echo >> $file && echo changed; done; mkdir new data/new && echo made";
    create(&namespace, &body().sha256, script);
    namespace.succeeded("with-body").unwrap();
    let ended = fetch(&namespace);
    assert_eq!((&ended["exitCode"], &ended["message"]), (&json!(0), &Value::Null));
    let said = namespace.logs("with-body", "app").unwrap();
    let expected = ".cofferdam-complete\ndata\nmain.sh\nhello from the body\n1 2 3\n\
                    . 0:2000 2777\ndata 1000:2000 2775\nmain.sh 1000:2000 775\ndata/numbers 1000:2000 660\n\
                    changed\nchanged\nmade\n";
    assert_eq!(said, expected);
}

#[test]
fn a_body_with_another_digest_fails_the_pod_with_a_sentence_and_no_part_of_its_url() {
    let namespace = namespace("body-digest", Sessions::None);
    create(&namespace, &"0".repeat(64), "echo must not run");
    namespace.failed("with-body").unwrap();
    let ended = fetch(&namespace);
    assert_eq!(ended["exitCode"], 12, "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains(&format!("SHA-256 is {}", body().sha256)), "{message}");
    assert!(message.chars().count() <= 500 && !message.contains("path="), "{message}");
}
