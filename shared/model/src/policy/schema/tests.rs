use std::{env, fs, path::Path, sync::LazyLock};

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Map, json};

use super::*;
use crate::policy::{BUILT_IN, tests::policies};

/// All that does not fit the schema. Knows the keywords that our schema uses, and fails at others.
fn misfits(root: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let fits = |schema: &Value| misfits(root, schema, value).is_empty();
    let list = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let mut all = Vec::new();
    for (keyword, rule) in schema.as_object().into_iter().flatten() {
        let is_met = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" | "format" => true,
            "$ref" => {
                let definition = root.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
                all.extend(misfits(root, definition, value));
                true
            }
            "type" => list(rule).iter().chain(Some(rule)).any(|kind| is_of(value, kind)),
            "const" => value == rule,
            "anyOf" if list(rule).iter().any(fits) => true,
            "anyOf" => {
                all.extend(list(rule).iter().flat_map(|schema| misfits(root, schema, value)));
                true
            }
            "oneOf" => list(rule).iter().filter(|schema| fits(schema)).count() == 1,
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| Regex::new(rule.as_str().unwrap()).unwrap().is_match(text)),
            "required" => {
                let has = |object: &Map<String, Value>, key: &Value| object.contains_key(key.as_str().unwrap());
                value.as_object().is_none_or(|object| list(rule).iter().all(|key| has(object, key)))
            }
            "items" => {
                all.extend(list(value).iter().flat_map(|item| misfits(root, rule, item)));
                true
            }
            "properties" | "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    let known = &schema["properties"][key];
                    match (keyword.as_str(), known.is_null()) {
                        ("properties", false) => all.extend(misfits(root, known, value)),
                        ("additionalProperties", true) if *rule == json!(false) => {
                            all.push(format!("unknown key {key}"));
                        }
                        ("additionalProperties", true) => all.extend(misfits(root, rule, value)),
                        _ => {}
                    }
                }
                true
            }
            unknown => panic!("the schema uses {unknown}, which this test does not know"),
        };
        if !is_met {
            all.push(format!("{value} breaks {keyword} {rule}"));
        }
    }
    all
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        _ => false,
    }
}

/// What in the text, which is YAML, does not fit the schema of policies.
fn misfits_of(text: &str) -> Vec<String> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(schema);
    misfits(&SCHEMA, &SCHEMA, &serde_saphyr::from_str(text).unwrap())
}

#[test]
fn the_committed_schema_is_the_one_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests/policy.schema.json");
    let made = format!("{:#}\n", schema());
    if env::var_os("COFFERDAM_UPDATE").is_some() {
        fs::write(&file, &made).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap_or_default() == made, "run it again with COFFERDAM_UPDATE=1");
}

#[test]
fn the_shipped_policy_fits_the_schema_and_slips_of_the_pen_do_not() {
    assert!(misfits_of(BUILT_IN).is_empty());
    assert!(misfits_of("profiles: {default: {resources: {requests: limits, limits: {cpu: 1.5}}}, app: {}}").is_empty());
    for (text, misfit) in [
        ("{}", "breaks required"),
        ("profile: {}", "unknown key profile"),
        ("profiles: {default: {lifetime: {deadlineSecond: 1}}}", "unknown key deadlineSecond"),
        ("profiles: {default: {scratch: [{name: a, path: /a, size: 1Mi, envs: {}}]}}", "unknown key envs"),
        ("profiles: {default: {scratch: [{name: a, path: /a}]}}", "breaks required"),
        ("profiles: {default: {scheduling: {tolerations: [{operator: Is}]}}}", "breaks oneOf"),
        ("profiles: {default: {lifetime: {deadlineSeconds: 0}}}", "breaks minimum"),
        ("profiles: {default: {runAs: {user: 3000000000}}}", "breaks maximum"),
        ("profiles: {default: {appArmor: always}}", "breaks oneOf"),
        ("profiles: {default: {resources: {limits: {memory: 1GB}}}}", "breaks pattern"),
        ("profiles: {default: {resources: {requests: limit}}}", "breaks const"),
        ("profiles: {default: {readinessGate: 1}}", "breaks type"),
        ("profiles: {default: {slippedThrough: remove}}", "breaks oneOf"),
        ("profiles: {default: {}}\nrouting: {publicUrl: {}}", "unknown key publicUrl"),
        ("profiles: {default: {}}\nrouting: {publicURL: {port: 65536}}", "breaks maximum"),
        ("profiles: {default: {}}\nrouting: {probe: {scheme: tls}}", "breaks pattern"),
        ("profiles: {default: {}}\nrouting: {failures: 0}", "breaks minimum"),
        ("profiles: {default: {}}\nnetwork: {mode: auto}", "breaks oneOf"),
    ] {
        let found = misfits_of(text);
        assert!(found.iter().any(|found| found.contains(misfit)), "{text}: {found:?}");
    }
}

#[test]
fn every_key_has_a_description_and_those_of_the_default_profile_a_default() {
    let schema = schema();
    let mut described = 0;
    let definitions = schema["$defs"].as_object().unwrap();
    for (name, definition) in definitions.iter().map(|(name, d)| (name.as_str(), d)).chain(Some(("Policy", &schema))) {
        assert!(definition["description"].is_string(), "{name}");
        for (key, property) in definition["properties"].as_object().into_iter().flatten() {
            assert!(property["description"].as_str().is_some_and(|text| !text.contains('\n')), "{name}.{key}");
            described += 1;
        }
    }
    assert!(described > 60, "{described}");
    assert_eq!(definitions["Lifetime"]["properties"]["deadlineSeconds"]["default"], json!(3600));
    assert_eq!(definitions["Limits"]["properties"]["memory"]["default"], json!("512Mi"));
    assert_eq!(definitions["Scheduling"]["properties"]["nodeSelector"]["default"], json!({}));
    assert_eq!(definitions["Profile"]["properties"]["appArmor"]["default"], json!("leave"));
    assert_eq!(definitions["PublicURL"]["properties"]["scheme"]["default"], json!("https"));
    assert_eq!(definitions["Network"]["properties"]["mode"]["default"], json!("managed"));
    assert_eq!(schema["properties"]["finishedGraceSeconds"]["default"], json!(600));
    assert_eq!(definitions["Bodies"]["properties"]["path"]["default"], json!("/app"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_the_code_reads_fits_the_schema(policy in policies::policy()) {
        let text = policy.show();
        prop_assert_eq!(misfits_of(&text), Vec::<String>::new(), "{}", text);
    }
}
