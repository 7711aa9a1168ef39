//! Files in `manifests/` that are made from a policy: they are what it says. `COFFERDAM_UPDATE=1` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use cofferdam_model::policy::{Policy, params_config_map};

/// Where a policy of ours is, with its parameters beside it.
const FOLDERS: [&str; 3] = ["base", "examples/complete", "examples/renamed/system"];

#[test]
fn the_parameters_of_the_admission_policies_are_those_of_the_policy() {
    for folder in FOLDERS {
        let made = format!(
            "# What the admission policies read of policy.yaml. Made from it, so change that one.\n{}",
            params_config_map(&read(folder), "cofferdam-policy-params", "cofferdam-system")
        );
        let params = path(folder, "policy-params.yaml");
        if env::var_os("COFFERDAM_UPDATE").is_some() {
            fs::write(&params, &made).unwrap();
        }
        let is = fs::read_to_string(&params).unwrap_or_default();
        assert_eq!(is, made, "{}: run it again with COFFERDAM_UPDATE=1", params.display());
    }
}

/// A policy replaces the shipped one as a whole, so an example would quietly drop a profile that it does not name.
#[test]
fn the_examples_have_the_shipped_profiles() {
    let shipped = Policy::built_in();
    for folder in &FOLDERS[1..] {
        let policy = read(folder);
        assert!(policy.profile_names().eq(shipped.profile_names()), "{folder}");
        for name in shipped.profile_names() {
            assert_eq!(policy.profile(name), shipped.profile(name), "{folder}");
        }
    }
}

fn path(folder: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests").join(folder).join(file)
}

fn read(folder: &str) -> Policy {
    let path = path(folder, "policy.yaml");
    Policy::parse(&path.to_string_lossy(), &fs::read_to_string(&path).unwrap()).unwrap()
}
