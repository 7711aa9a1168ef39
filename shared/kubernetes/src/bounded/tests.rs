use serde_json::json;

use super::*;

fn read(object: &Value) -> Value {
    serde_json::from_str::<Bounded>(&object.to_string()).unwrap().0
}

/// An Ingress of ours whose specification, or metadata, others made so large.
fn ingress(rules: usize, more: &Value) -> Value {
    let rule = json!({"host": "a"});
    let mut object = json!({
        "metadata": {
            "annotations": {"cofferdam.dev/node": "node-1"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"cofferdam.dev/session": "a", "app.kubernetes.io/managed-by": "cofferdam-agent"},
            "name": "s-a", "namespace": "n", "uid": "u", "resourceVersion": "7",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}],
        },
        "spec": {"rules": vec![rule; rules]},
        "status": {"loadBalancer": {}, "count": 1, "share": -0.5, "is": true, "none": null},
    });
    for (key, value) in more.as_object().unwrap() {
        object["metadata"][key] = value.clone();
    }
    object
}

#[test]
fn what_is_small_is_read_as_it_is() {
    let object = ingress(100, &json!({"finalizers": ["a"]}));
    assert_eq!(read(&object), object);
}

#[test]
fn of_what_is_large_is_read_whose_it_is() {
    let expected = outline(&ingress(0, &json!({})));
    assert_eq!(expected["metadata"]["ownerReferences"][0]["uid"], "u1");
    let many = |text: &str| (0..50_000).map(|number| format!("{text}{number}")).collect::<Vec<_>>();
    // In their order in JSON these come before what is to be read, and after it.
    let notes: Value = many("a").into_iter().map(|key| (key, Value::from("x"))).collect::<Map<_, _>>().into();
    for (what, object) in [
        ("a specification", ingress(100_000, &json!({}))),
        ("a note", ingress(0, &json!({"aaa": "x".repeat(1 << 20)}))),
        ("notes", ingress(0, &json!({"aaa": notes.clone(), "zzz": notes}))),
        ("finalizers", ingress(0, &json!({"finalizers": many("f")}))),
    ] {
        assert_eq!(read(&object), expected, "{what}");
    }
}

#[test]
fn labels_annotations_and_owners_may_be_large_themselves() {
    let mut object = ingress(0, &json!({}));
    for part in ["labels", "annotations"] {
        for number in 0..50_000 {
            object["metadata"][part][format!("a{number}")] = "x".into();
        }
    }
    assert_eq!(read(&object), outline(&ingress(0, &json!({}))));
    let owner = |number: usize| json!({"kind": "Pod", "name": "p", "uid": format!("u{number}")});
    let object = ingress(0, &json!({"ownerReferences": (0..50_000).map(owner).collect::<Vec<_>>()}));
    let owners = read(&object)["metadata"]["ownerReferences"].as_array().unwrap().len();
    assert!((1..200).contains(&owners), "{owners}");
}

#[test]
fn what_takes_no_text_takes_room_all_the_same() {
    for part in ["[]", "{}", "null", "1", r#"{"host":"a"}"#] {
        let text = format!(r#"{{"metadata":{{"name":"n"}},"spec":[{}]}}"#, vec![part; 100_000].join(","));
        let read = serde_json::from_str::<Bounded>(&text).unwrap().0;
        assert_eq!(read["spec"], Value::Null, "{part}");
        assert_eq!(read["metadata"]["name"], "n");
    }
}
