//! The installation itself, applied again.

use std::collections::BTreeMap;

use cofferdam_e2e::stage::Stage;
use serde_json::Value;

/// What changes when somebody changes an object: its generation, or where it has none its version. (kubectl's own
/// word will not do: it says `configured` of a disruption budget whose patch changes nothing.)
fn versions(stage: &Stage) -> BTreeMap<String, String> {
    let arguments = ["get", "--filename=-", "--output=json"];
    let list: Value = serde_json::from_str(&stage.kubectl.run_with(arguments, &stage.manifests).unwrap()).unwrap();
    let objects = list["items"].as_array().unwrap().iter();
    // Agents write their Lease all the time.
    objects
        .filter(|object| object["kind"] != "Lease")
        .map(|object| {
            let metadata = &object["metadata"];
            let version = metadata.get("generation").unwrap_or(&metadata["resourceVersion"]);
            (format!("{} {}", object["kind"], metadata["name"]), version.to_string())
        })
        .collect()
}

#[test]
fn applying_the_manifests_again_changes_nothing() {
    let stage = Stage::shared();
    let before = versions(stage);
    assert!(before.len() > 10, "{before:?}");
    stage.kubectl.run_with(["apply", "--filename=-"], &stage.manifests).unwrap();
    assert_eq!(versions(stage), before);
}
