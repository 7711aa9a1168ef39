//! Files in `manifests/` that are made from the policy: they are what it says. `COFFERDAM_UPDATE=1` writes them anew.

use std::{env, fs, path::Path};

use cofferdam_model::policy::{Policy, params_config_map};

#[test]
fn the_parameters_of_the_admission_policies_are_those_of_the_policy() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/base/policy-params.yaml");
    let made = format!(
        "# What the admission policies read of policy.yaml. Made from it, so change that one.\n{}",
        params_config_map(&Policy::built_in(), "cofferdam-policy-params", "cofferdam-system")
    );
    if env::var_os("COFFERDAM_UPDATE").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), made, "run it again with COFFERDAM_UPDATE=1");
}
