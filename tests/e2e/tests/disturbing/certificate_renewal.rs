//! cert-manager renews the serving certificate while pods are created: nobody notices. A cluster of its own.

use anyhow::ensure;
use cofferdam_e2e::creations::Creations;
use cofferdam_e2e::namespace::Sessions;
use cofferdam_e2e::stage::Stage;
use cofferdam_e2e::wait::until;
use std::time::Duration;

/// A kubelet takes up to 90 s to follow a Secret, the program 10 s more.
const RENEWAL: Duration = Duration::from_mins(5);

/// What every replica says about the certificate that it serves: the second at which it expires.
fn served(stage: &Stage) -> anyhow::Result<Vec<String>> {
    stage.metrics("cofferdam_webhook_certificate_expiry_timestamp_seconds")
}

#[test]
fn no_creation_fails_while_the_certificate_is_renewed() {
    let stage = Stage::start("e2e-renewal", 1).unwrap();
    let namespace = stage.namespace("renewal", Sessions::Enforced);
    let bundle = || {
        stage.kubectl.run([
            "get",
            "mutatingwebhookconfiguration/cofferdam-webhook",
            "--output=jsonpath={.webhooks[*].clientConfig.caBundle}",
        ])
    };
    let (mut before, authority) = (served(&stage).unwrap(), bundle().unwrap());
    let creations = Creations::start(&stage, namespace.name()).unwrap();
    // The shortest life that cert-manager takes, renewed when half a minute of it has passed.
    let patch = r#"{"spec":{"duration":"1h","renewBefore":"59m30s"}}"#;
    stage.system(&["patch", "certificate/cofferdam-webhook", "--type=merge", "--patch", patch]).unwrap();
    // Twice: the first is the answer to the patch, the second a renewal by date.
    for _ in 0..2 {
        until("every replica serves a newer certificate", RENEWAL, || {
            ensure!(creations.running(), "the client gave up");
            let now = served(&stage)?;
            ensure!(now.iter().zip(&before).all(|(now, before)| now != before), "{now:?} are {before:?}");
            Ok(())
        })
        .unwrap();
        before = served(&stage).unwrap();
    }
    let report = creations.stop().unwrap();
    assert_eq!((&report.failures, report.unhardened), (&Vec::new(), 0));
    assert!(report.created > 100, "{report:?}");
    assert_eq!(bundle().unwrap(), authority, "renewing the leaf changed the authority");
    println!("{} creations over two renewals, none failed", report.created);
}
