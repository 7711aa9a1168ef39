use super::*;

#[test]
fn the_built_in_policy_is_valid_and_says_what_the_defaults_say() {
    let policy = Policy::parse(BUILT_IN_NAME, BUILT_IN).unwrap();
    assert_eq!(policy.profile("default"), Some(&Profile::default()));
}
