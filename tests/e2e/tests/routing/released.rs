//! Sessions of a namespace that has none any more.

use cofferdam_e2e::namespace::TestNamespace;
use cofferdam_e2e::routing::told;

use crate::shared::{create, reachable, sessions, stage, unpublished, web, who_answers};

fn label(namespace: &TestNamespace, value: &str) {
    let label = format!("cofferdam.dev/sessions={value}");
    stage().kubectl.run(["label", "--overwrite", "namespace", namespace.name(), &label]).unwrap();
}

#[test]
fn a_namespace_that_is_only_warned_any_more_has_no_addresses_and_its_pods_go_on() {
    let namespace = sessions("released");
    create(&namespace, [web("let-go")]);
    let host = reachable(&namespace, "let-go");
    label(&namespace, "warn");
    unpublished(&namespace, "let-go");
    told(&namespace, "let-go", "RouteReachable", "True/NothingToRoute").unwrap();
    namespace.ready("let-go").unwrap();

    label(&namespace, "enforced");
    assert_eq!(reachable(&namespace, "let-go"), host);
    assert_eq!(who_answers(&host).unwrap(), "let-go");
}
