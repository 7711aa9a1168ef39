//! Names stay in step however an overlay changes them, and certificates are valid for what is called.

use serde_json::{Value, json};

use crate::agreement::loose_ends;
use crate::objects::{Objects, items, overlay, overlay_with, text};

const WEBHOOK_CONFIGURATIONS: [&str; 2] = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Says where the certificate chain does not reach the API server's call: names, injected CA, issuer.
fn broken_trust(objects: &Objects) -> Vec<String> {
    let service = &objects.of_program("Service", "webhook")["metadata"];
    let (name, namespace) = (text(&service["name"]), text(&service["namespace"]));
    let mut broken = Vec::new();
    let mut ask = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    let (authorities, leaves): (Vec<_>, Vec<_>) =
        objects.kind("Certificate").partition(|certificate| certificate["spec"]["isCA"] == true);
    let ([authority], [leaf]) = (authorities.as_slice(), leaves.as_slice()) else {
        return vec!["one CA certificate and one leaf".to_owned()];
    };
    let called = json!([format!("{name}.{namespace}.svc"), format!("{name}.{namespace}.svc.cluster.local")]);
    ask(leaf["spec"]["dnsNames"] == called, "dnsNames");
    let demanded =
        items(&objects.of_program("Deployment", "webhook")["spec"]["template"]["spec"]["containers"][0]["env"]);
    let demanded = demanded.iter().find(|variable| variable["name"] == "COFFERDAM_WEBHOOK_TLS_SERVER_NAME");
    ask(demanded.is_some_and(|variable| variable["value"] == called[0]), "name that the program demands");
    let injected = format!("{namespace}/{}", text(&authority["metadata"]["name"]));
    for kind in WEBHOOK_CONFIGURATIONS {
        let annotations = &objects.only(kind)["metadata"]["annotations"];
        ask(annotations["cert-manager.io/inject-ca-from"] == injected, "inject-ca-from");
    }
    let issuer = |certificate: &Value| objects.named("Issuer", text(&certificate["spec"]["issuerRef"]["name"]));
    ask(issuer(authority).is_some_and(|issuer| issuer["spec"] == json!({"selfSigned": {}})), "issuer of the CA");
    let authority_secret = json!({"ca": {"secretName": authority["spec"]["secretName"]}});
    ask(issuer(leaf).is_some_and(|issuer| issuer["spec"] == authority_secret), "issuer of the leaf");
    for webhook in objects.webhooks() {
        let own = items(&webhook["namespaceSelector"]["matchExpressions"]).iter().any(|expression| {
            expression["key"] == "kubernetes.io/metadata.name"
                && expression["operator"] == "NotIn"
                && expression["values"] == json!([namespace, "kube-system"])
        });
        ask(own, "own namespace is not left out");
    }
    broken
}

#[test]
fn the_certificate_is_valid_for_what_api_servers_call() {
    assert_eq!(broken_trust(&Objects::of("overlays/cert-manager")), Vec::<String>::new());
    assert_eq!(broken_trust(&Objects::of("examples/renamed")), Vec::<String>::new());
}

#[test]
fn b97_names_stay_in_step_however_an_overlay_renames() {
    for (directory, settings, service, namespace) in [
        ("renamed-both", "namespace: guard\nnamePrefix: acme-\n", "acme-cofferdam-webhook", "guard"),
        ("renamed-namespace", "namespace: guard\n", "cofferdam-webhook", "guard"),
        ("renamed-prefix", "namePrefix: acme-\n", "acme-cofferdam-webhook", "cofferdam-system"),
        ("renamed-suffix", "nameSuffix: -two\n", "cofferdam-webhook-two", "cofferdam-system"),
    ] {
        let settings = format!("{settings}transformers: [NAMES]\n");
        let objects = Objects::render(&overlay_with(directory, &settings, &["cert-manager", "api"]));
        let metadata = &objects.of_program("Service", "webhook")["metadata"];
        assert_eq!((text(&metadata["name"]), text(&metadata["namespace"])), (service, namespace), "{directory}");
        assert_eq!(loose_ends(&objects), Vec::<String>::new(), "{directory}");
        assert_eq!(broken_trust(&objects), Vec::<String>::new(), "{directory}");
    }
}

#[test]
fn a_renamed_overlay_that_forgets_its_names_is_seen() {
    let objects = Objects::render(&overlay("renamed-forgotten", "namespace: guard\nnamePrefix: acme-\n"));
    let mut expected = vec!["dnsNames", "name that the program demands", "inject-ca-from", "inject-ca-from"];
    expected.extend(objects.webhooks().map(|_| "own namespace is not left out"));
    assert_eq!(broken_trust(&objects), expected);
}

#[test]
fn a_renamed_api_that_forgets_its_names_is_seen() {
    let settings = "namespace: guard\nnamePrefix: acme-\n";
    let objects = Objects::render(&overlay_with("renamed-api-forgotten", settings, &["cert-manager", "api"]));
    let loose = loose_ends(&objects);
    for end in ["Service acme-cofferdam-api is told otherwise", "Role acme-cofferdam-api is in namespace \"guard\""] {
        assert!(loose.iter().any(|found| found == end), "{end}: {loose:#?}");
    }
}

#[test]
fn a_renewed_leaf_has_a_new_key_and_a_renewed_ca_the_old_one() {
    let objects = Objects::of("overlays/cert-manager");
    for (name, rotation) in [("cofferdam-webhook", "Always"), ("cofferdam-ca", "Never")] {
        let spec = &objects.named("Certificate", name).expect("the overlay has it")["spec"];
        assert_eq!(spec["privateKey"]["rotationPolicy"], rotation, "{name}");
        // In the form in which cert-manager writes it back.
        for period in ["duration", "renewBefore"] {
            let period = text(&spec[period]);
            assert!(period.ends_with("h0m0s"), "{name}: {period}");
        }
    }
}

#[test]
fn an_image_is_set_where_kustomize_users_set_it() {
    let images = "images: [{name: cofferdam, newName: registry.example/guard, newTag: v9}]\n";
    let pod_image = |objects: &Objects| {
        let container = objects.only("Deployment")["spec"]["template"]["spec"]["containers"][0].clone();
        let variable = items(&container["env"]).iter().find(|variable| variable["name"] == "COFFERDAM_WEBHOOK_IMAGE");
        let told = variable.expect("the program is told its image")["value"].clone();
        (text(&container["image"]).to_owned(), text(&told).to_owned())
    };
    let both = |image: &str| (image.to_owned(), image.to_owned());
    assert_eq!(pod_image(&Objects::of("base")), both("cofferdam:dev"));
    let told = Objects::render(&overlay("other-image", &format!("{images}transformers: [NAMES]\n")));
    assert_eq!(pod_image(&told), both("registry.example/guard:v9"));
    let forgotten = Objects::render(&overlay("image-forgotten", images));
    assert_eq!(pod_image(&forgotten), ("registry.example/guard:v9".to_owned(), "cofferdam:dev".to_owned()));
}
