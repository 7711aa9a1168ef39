//! Our own images, really built: what is in them runs without anything beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, and clippy counts only functions marked #[test]")]

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use cofferdam_cluster::own_images;
use serde_json::Value;

/// Unpacks the image's only layer into `folder` and returns the image's configuration.
fn unpack(image: &Path, folder: &Path) -> Value {
    let mut files = HashMap::new();
    for entry in tar::Archive::new(File::open(image).unwrap()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.insert(name, bytes);
    }
    let blob =
        |descriptor: &Value| &files[&descriptor["digest"].as_str().unwrap().replacen("sha256:", "blobs/sha256/", 1)];
    let index: Value = serde_json::from_slice(&files["index.json"]).unwrap();
    let manifest: Value = serde_json::from_slice(blob(&index["manifests"][0])).unwrap();
    tar::Archive::new(blob(&manifest["layers"][0]).as_slice()).unpack(folder).unwrap();
    let config: Value = serde_json::from_slice(blob(&manifest["config"])).unwrap();
    config["config"].clone()
}

#[test]
fn the_fixture_in_its_image_runs_without_a_library() {
    let folder = tempfile::tempdir().unwrap();
    let config = unpack(&own_images::fixture_image("fixture:own-images-test").unwrap(), folder.path());
    assert_eq!(config["User"], Value::Null, "the fixture is root until something hardens it");
    let program = folder.path().join(config["Entrypoint"][0].as_str().unwrap().trim_start_matches('/'));
    let output = Command::new(program).arg("status").output().unwrap();
    assert!(output.status.success());
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(status["capabilities"]["effective"].is_string());
}

#[test]
fn the_image_with_a_named_user_knows_that_user() {
    let folder = tempfile::tempdir().unwrap();
    let config = unpack(&own_images::named_user_image("fixture:own-images-test-named").unwrap(), folder.path());
    let user = config["User"].as_str().unwrap();
    assert!(user.parse::<u32>().is_err(), "{user} is no name");
    assert!(fs::read_to_string(folder.path().join("etc/passwd")).unwrap().contains(&format!("\n{user}:x:1234:")));
}

#[test]
fn the_image_of_cofferdam_holds_the_webhook_and_does_not_run_as_root() {
    let folder = tempfile::tempdir().unwrap();
    let image = own_images::cofferdam_image("cofferdam:own-images-test").unwrap();
    let config = unpack(&image, folder.path());
    assert_eq!(config["User"], "65532:65532");
    assert!(folder.path().join("usr/bin/cofferdam-webhook").is_file());

    let written = fs::metadata(&image).unwrap().modified().unwrap();
    own_images::cofferdam_image("cofferdam:own-images-test").unwrap();
    assert_eq!(fs::metadata(&image).unwrap().modified().unwrap(), written, "it was written again for nothing");
}
