//! The add-on cert-manager does what it is for.

use cofferdam_cluster::addon::CERT_MANAGER;
use cofferdam_cluster::cluster::{Cluster, Options};
use cofferdam_cluster::parts;
use cofferdam_cluster::progress::Progress;

/// An authority of its own, a leaf that it signs, and a webhook configuration that wants its CA.
const CHAIN: &str = "
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: self-signed, namespace: default}
spec: {selfSigned: {}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: authority, namespace: default}
spec: {isCA: true, commonName: authority, secretName: authority, issuerRef: {name: self-signed}}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: authority, namespace: default}
spec: {ca: {secretName: authority}}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: leaf, namespace: default}
spec: {dnsNames: [some.default.svc], secretName: leaf, issuerRef: {name: authority}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: some, annotations: {cert-manager.io/inject-ca-from: default/leaf}}
webhooks:
- name: some.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {name: some, namespace: default}}
  rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [podtemplates]}]
";

/// Shorter than cert-manager allows, which only its webhook knows.
const TOO_SHORT: &str = "
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: short, namespace: default}
spec: {dnsNames: [some.default.svc], secretName: short, duration: 1m, issuerRef: {name: authority}}
";

#[test]
fn cert_manager_issues_certificates_injects_their_authority_and_refuses_what_its_webhook_knows_to_be_wrong() {
    let kubernetes = std::env::var("COFFERDAM_KUBERNETES").unwrap_or_else(|_| parts::NEWEST.to_owned());
    let options = Options { name: "cert-manager".to_owned(), kubernetes, ..Options::default() };
    let progress = Progress::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut cluster = runtime.block_on(Cluster::up(&options, &progress)).unwrap();
    cluster.install(&CERT_MANAGER, &progress).unwrap();

    cluster.apply(CHAIN).unwrap();
    for certificate in ["certificate/authority", "certificate/leaf"] {
        cluster.kubectl(["wait", "--for=condition=Ready", "--timeout=60s", certificate]).unwrap();
    }
    let bundle = "{.webhooks[0].clientConfig.caBundle}";
    let kind = "validatingwebhookconfiguration/some";
    cluster.kubectl(["wait", &format!("--for=jsonpath={bundle}"), "--timeout=60s", kind]).unwrap();
    let injected = cluster.kubectl(["get", kind, &format!("--output=jsonpath={bundle}")]).unwrap();
    let authority = cluster.kubectl(["get", "secret/authority", r"--output=jsonpath={.data.tls\.crt}"]).unwrap();
    assert_eq!(injected, authority);

    let refused = cluster.apply(TOO_SHORT).unwrap_err().to_string();
    assert!(refused.contains("spec.duration"), "{refused}");

    let generations = || {
        let what = "deployments,validatingwebhookconfigurations,mutatingwebhookconfigurations";
        let columns = "--output=custom-columns=NAME:.metadata.name,GENERATION:.metadata.generation";
        cluster.kubectl(["get", what, "--namespace=cert-manager", columns]).unwrap()
    };
    let before = generations();
    assert!(before.contains("cert-manager-cainjector"), "{before}");
    let mut again = Cluster::attach(cluster.name()).unwrap();
    again.install(&CERT_MANAGER, &progress).unwrap();
    assert_eq!(generations(), before);
}
