//! What heals by itself: watches that are too old, and objects that nobody knows how to read.

use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;

/// Counts what is said aloud: errors and warnings.
struct Alarms(Arc<AtomicUsize>);

impl Subscriber for Alarms {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A list at that version, in one page.
fn page(version: &str, items: &[Value]) -> Answer {
    (200, json!({"metadata": {"resourceVersion": version}, "items": items}).to_string(), false)
}

/// A watch that tells this and goes on.
fn tells(events: &[Value]) -> Answer {
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    (200, lines.join("\n") + "\n", true)
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// The value of a parameter of each request that has it.
fn parameters(asked: &Mutex<Vec<String>>, of: &str) -> Vec<String> {
    let asked = asked.lock().unwrap();
    let pairs = asked.iter().flat_map(|query| form_urlencoded::parse(query.as_bytes()));
    pairs.filter(|(name, _)| name == of).map(|(_, value)| value.into_owned()).collect()
}

/// What the series of that name come to, as it is shown.
fn counted(registry: &Registry, name: &str) -> String {
    let families = registry.gather();
    let family = families.iter().find(|family| family.name() == name).unwrap();
    family.get_metric().iter().map(|metric| metric.get_counter().get_value()).sum::<f64>().to_string()
}

#[tokio::test(start_paused = true)]
async fn b105_b113_a_watch_that_is_too_old_is_listed_anew_ever_later_and_nobody_is_alarmed() {
    let status = json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
    let refused: Answer = (410, status.to_string(), false);
    let told: Answer = (200, format!("{}\n", json!({"type": "ERROR", "object": status})), false);
    for too_old in [refused, told] {
        let alarms = Arc::default();
        let _guard = tracing::subscriber::set_default(Alarms(Arc::clone(&alarms)));
        let (cluster, watches, asked, registry) = noting_server(vec![
            page("10", &[named("a")]),
            too_old.clone(),
            page("20", &[named("a"), named("b")]),
            too_old.clone(),
            page("30", &[named("b")]),
            too_old,
            page("40", &[named("b"), named("c")]),
            tells(&[json!({"type": "ADDED", "object": {"metadata": {"name": "d", "resourceVersion": "41"}}})]),
        ]);
        let mut changes = followed(cluster, watches);
        let (mut store, mut begun, mut words) = (Collected::default(), Vec::new(), Vec::new());
        let mut known = String::new();
        while words.len() < 15 {
            let change = changes.recv().await.unwrap();
            words.push(match &change {
                Change::Seen(object) => object["metadata"]["name"].as_str().unwrap().to_owned(),
                other => format!("{other:?}"),
            });
            if matches!(change, Change::Begun) {
                begun.push(Instant::now());
            }
            let read = |object: &Value| (object["metadata"]["name"].as_str().unwrap().to_owned(), true);
            if let Some(all) = store.take(change, read) {
                known = all.keys().map(String::as_str).collect();
            }
        }
        assert_eq!(words.join(" "), "Begun a Listed Begun a b Listed Begun b Listed Begun b c Listed d");
        assert_eq!(known, "bcd");
        assert_eq!(parameters(&asked, "resourceVersion"), ["10", "20", "30", "40"], "never the one that is too old");
        let pauses: Vec<_> = begun.windows(2).map(|two| two[1] - two[0]).collect();
        assert!(pauses[0] >= SHORTEST_PAUSE / 2 && pauses.is_sorted(), "{pauses:?}");
        assert!(pauses[2] >= SHORTEST_PAUSE * 2, "{pauses:?}");
        assert_eq!(alarms.load(Ordering::Relaxed), 0);
        assert_eq!(["api_errors_total", "watch_restarts_total"].map(|name| counted(&registry, name)), ["0", "3"]);
    }
}

#[tokio::test(start_paused = true)]
async fn b107_an_object_that_nobody_knows_how_to_read_keeps_no_other_from_being_seen() {
    let filter = json!({"type": "Unheard-of", "unheardOf": {"of": [1, {"deep": null}]}});
    let odd_ones = [
        json!({"metadata": {"name": "odd"}, "spec": {"rules": [{"filters": [filter]}]}}),
        json!({"metadata": {"name": "odd"}, "kind": 7, "spec": "text", "status": [null]}),
        json!({"metadata": 7}),
        json!({}),
        json!([]),
        Value::Null,
    ];
    let routes = || Resource::of("httproutes", "gateway.networking.k8s.io/v1");
    for (odd, resource) in odd_ones
        .iter()
        .flat_map(|odd| [routes(), routes().small(), routes().metadata()].map(|resource| (odd, resource)))
    {
        let mut items: Vec<Value> = (0..9).map(|number| named(&number.to_string())).collect();
        items.insert(4, odd.clone());
        let added = |object: &Value| json!({"type": "ADDED", "object": object});
        let watch = tells(&[added(&named("before")), added(odd), added(&named("after"))]);
        let (cluster, watches, asked, registry) = noting_server(vec![page("1", &items), watch]);
        let mut changes = followed_of(resource.clone(), cluster, watches);
        let mut words = Vec::new();
        while words.len() < 15 {
            words.push(match changes.recv().await.unwrap() {
                Change::Seen(object) => object["metadata"]["name"].as_str().unwrap_or("odd").to_owned(),
                other => format!("{other:?}"),
            });
        }
        assert_eq!(words.join(" "), "Begun 0 1 2 3 odd 4 5 6 7 8 Listed before odd after", "{odd} {resource:?}");
        let nothing_more = timeout(Duration::from_secs(100), changes.recv()).await;
        assert!(nothing_more.is_err(), "{nothing_more:?}");
        assert_eq!(asked.lock().unwrap().len(), 2, "one list and one watch: {odd}");
        assert_eq!(counted(&registry, "watch_restarts_total"), "0");
    }
}
