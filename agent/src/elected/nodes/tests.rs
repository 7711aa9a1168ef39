use serde_json::json;

use super::*;

const LIMITS: Limits =
    Limits { lost_node_share: 0.5, lost_node: Duration::from_secs(15), silent_agent: Duration::from_mins(1) };

/// `a+` is Ready, `a-` is not, `a.` is starting.
fn nodes(text: &str) -> BTreeMap<&str, Node> {
    text.split_whitespace()
        .map(|word| {
            let (name, state) = word.split_at(word.len() - 1);
            let state = match state {
                "+" => State::Ready,
                "-" => State::NotReady,
                _ => State::Starting,
            };
            (name, Node { state, has_agent: true })
        })
        .collect()
}

fn agents(text: &str) -> Vec<Agent> {
    nodes(text)
        .into_iter()
        .map(|(name, node)| Agent { node: name.to_owned(), is_ready: node.state == State::Ready })
        .collect()
}

/// The nodes with that outage.
fn names(outages: &Outages, with: Outage) -> String {
    let nodes = outages.iter().filter(|(_, (outage, _))| *outage == with).map(|(name, _)| name.as_str());
    nodes.collect::<Vec<_>>().join(" ")
}

fn lost(outages: &Outages) -> String {
    names(outages, Outage::Lost)
}

fn silent(outages: &Outages) -> String {
    names(outages, Outage::Silent)
}

#[test]
fn b143_lost_is_who_is_not_ready_unless_too_many_are_at_once() {
    for (text, names, is_braked) in [
        ("a+", "", false),
        ("a-", "a", false),
        ("a+ b-", "b", false),
        ("a- b-", "", true),
        ("a+ b- c-", "", true),
        ("a+ b+ c- d-", "c d", false),
        ("a+ b+ c- d- e-", "", true),
        ("a+ b+ c+ d+", "", false),
        // A cluster that grows to twice its size and more loses nobody.
        ("a+ b. c. d.", "", false),
        ("a+ b- c. d.", "b", false),
        ("a- b- c. d. e.", "", true),
        ("", "", false),
    ] {
        let (mut memory, start) = (Memory::default(), Instant::now());
        for (after, names) in [(Duration::ZERO, ""), (LIMITS.lost_node, names)] {
            let (assessment, _) = memory.assess(&nodes(text), &[], LIMITS, start + after);
            assert_eq!((lost(&assessment.outages).as_str(), assessment.is_braked), (names, is_braked), "{text}");
            assert_eq!(assessment.not_ready_count, text.matches('-').count(), "{text}");
        }
    }
}

/// What is lost after each of these steps, at so many seconds; `!` where the brake is on. And when to look again.
fn story(steps: &[(u64, &str)]) -> Vec<(String, Option<u64>)> {
    let (mut memory, mut joined, start) = (Memory::default(), Joined::default(), Instant::now());
    let step = |(after, text): &(u64, &str)| {
        let mut nodes = nodes(text);
        for (name, node) in &mut nodes {
            joined.told(name, Some(node.state));
            *node = joined.seen(name, *node);
        }
        let (assessment, next) = memory.assess(&nodes, &agents(text), LIMITS, start + Duration::from_secs(*after));
        let lost = if assessment.is_braked { "!".to_owned() } else { lost(&assessment.outages) };
        (lost, next.map(|next| next.duration_since(start).as_secs()))
    };
    steps.iter().map(step).collect()
}

fn is(lost: &str, next: impl Into<Option<u64>>) -> (String, Option<u64>) {
    (lost.to_owned(), next.into())
}

#[test]
fn b143_nodes_that_fall_silent_together_are_noticed_in_groups_and_none_is_lost() {
    let told = story(&[
        (0, "a+ b+ c+ d+ e+"),
        (1, "a- b+ c+ d+ e+"),
        (6, "a- b- c+ d+ e+"),
        (11, "a- b- c- d+ e+"),
        (16, "a- b- c- d- e+"),
        (99, "a- b- c- d- e+"),
    ]);
    assert_eq!(told, [is("", None), is("", 16), is("", 16), is("!", 16), is("!", 21), is("!", None)]);
}

#[test]
fn b143_nodes_that_come_back_one_by_one_are_waited_for() {
    let told = story(&[
        (0, "a+ b- c- d- e-"),
        (60, "a+ b- c- d- e-"),
        (61, "a+ b+ c+ d- e-"),
        (66, "a+ b+ c- d- e-"),
        (71, "a+ b+ c+ d- e-"),
        (85, "a+ b+ c+ d+ e-"),
        (86, "a+ b+ c+ d+ e-"),
        (90, "a+ b+ c+ d+ e-"),
    ]);
    let on = [is("!", 15), is("!", None)];
    let easing = [is("!", 76), is("!", 81), is("!", 86), is("!", 86)];
    let off = [is("e", None), is("e", None)];
    assert_eq!(told, [&on[..], &easing, &off].concat());
}

#[test]
fn b143_a_node_that_was_ready_in_between_is_not_lost() {
    let told = story(&[(0, "a- b+"), (14, "a+ b+"), (15, "a- b+"), (29, "a- b+"), (30, "a- b+")]);
    assert_eq!(told, [is("", 15), is("", None), is("", 30), is("", 30), is("a", None)]);
}

#[test]
fn b143_a_node_that_falls_silent_before_it_was_ready_is_starting_until_it_is() {
    let told = story(&[
        (0, "a+ b. c."),
        (1, "a+ b- c-"),
        (99, "a+ b- c-"),
        (100, "a+ b+ c-"),
        (101, "a+ b- c-"),
        (116, "a+ b- c-"),
    ]);
    assert_eq!(told, [is("", None), is("", None), is("", None), is("", None), is("", 116), is("b", None)]);
}

#[test]
fn b143_the_share_is_the_one_that_is_configured() {
    for (share, is_braked) in [(0.0, true), (0.39, true), (0.4, false), (1.0, false)] {
        let limits = Limits { lost_node_share: share, ..LIMITS };
        let (assessment, _) = Memory::default().assess(&nodes("a+ b+ c+ d- e-"), &[], limits, Instant::now());
        assert_eq!(assessment.is_braked, is_braked, "{share}");
    }
}

#[test]
fn b143_a_deleted_node_is_lost_for_a_while_trips_no_brake_and_is_not_counted() {
    let mut memory = Memory::default();
    let start = Instant::now();
    let mut lost_then = |text, after| {
        let (assessment, _) = memory.assess(&nodes(text), &[], LIMITS, start + after);
        assert_eq!((assessment.is_braked, assessment.not_ready_count), (false, 0), "{text}");
        lost(&assessment.outages)
    };
    assert_eq!(lost_then("a+ b+ c+", Duration::ZERO), "");
    assert_eq!(lost_then("a+", Duration::from_secs(1)), "b c");
    assert_eq!(lost_then("a+ c+", Duration::from_secs(2)), "b");
    assert_eq!(lost_then("a+ c+", GONE), "b");
    assert_eq!(lost_then("a+ c+", GONE + Duration::from_secs(1)), "");
}

#[test]
fn b143_an_agent_is_silent_after_a_minute_without_it_on_a_ready_node() {
    let start = Instant::now();
    let minute = LIMITS.silent_agent;
    let almost = minute.checked_sub(Duration::from_millis(1)).unwrap();
    for (steps, names) in [
        // Missing, unready, and ready agents.
        (&[("a+ b+ c+", "b- c+", Duration::ZERO), ("a+ b+ c+", "b- c+", almost)][..], ""),
        (&[("a+ b+ c+", "b- c+", Duration::ZERO), ("a+ b+ c+", "b- c+", minute)], "a b"),
        // In between it was there.
        (&[("a+", "", Duration::ZERO), ("a+", "a+", almost), ("a+", "", minute)], ""),
        // A node that is not Ready, or just becomes so, has no agent to hear of.
        (&[("a-", "a-", Duration::ZERO), ("a-", "a-", minute)], ""),
        (&[("a-", "", Duration::ZERO), ("a+", "", minute)], ""),
        (&[("a.", "", Duration::ZERO), ("a.", "", minute)], ""),
        // While an agent is replaced there are two.
        (&[("a+", "a-", Duration::ZERO), ("a+", "a+", minute)], ""),
    ] {
        let mut memory = Memory::default();
        let mut last = Assessment::default();
        for (nodes_then, agents_then, after) in steps {
            (last, _) = memory.assess(&nodes(nodes_then), &agents(agents_then), LIMITS, start + *after);
        }
        assert_eq!(silent(&last.outages), names, "{steps:?}");
    }
}

#[test]
fn an_outage_is_not_the_one_before() {
    // What each node is, and each agent, when it is well and when it is not.
    for (well, ill, outage, after) in [
        (("a+ b+", "a+ b+"), ("a+ b-", "a+"), Outage::Lost, LIMITS.lost_node),
        (("a+ b+", "a+ b+"), ("a+", "a+"), Outage::Lost, Duration::ZERO),
        (("a+ b+", "a+ b+"), ("a+ b+", "a+"), Outage::Silent, LIMITS.silent_agent),
    ] {
        let (mut memory, mut now) = (Memory::default(), Instant::now());
        for _ in 0..2 {
            let mut assess = |(nodes_then, agents_then), now| {
                memory.assess(&nodes(nodes_then), &agents(agents_then), LIMITS, now).0.outages
            };
            assert_eq!(assess(well, now), Outages::new());
            let since = now + Duration::from_secs(1);
            assess(ill, since);
            now = since + after;
            for _ in 0..2 {
                assert_eq!(assess(ill, now), Outages::from([("b".to_owned(), (outage, since))]));
                now += Duration::from_secs(1);
            }
        }
    }
}

#[test]
fn two_agents_on_a_node_are_heard_if_one_is() {
    let pair = [Agent { node: "a".to_owned(), is_ready: true }, Agent { node: "a".to_owned(), is_ready: false }];
    let mut memory = Memory::default();
    let start = Instant::now();
    for after in [Duration::ZERO, LIMITS.silent_agent] {
        assert!(memory.assess(&nodes("a+"), &pair, LIMITS, start + after).0.outages.is_empty());
    }
}

#[test]
fn no_agent_is_missed_where_none_runs() {
    let windows = BTreeMap::from([("w", Node { state: State::Ready, has_agent: false })]);
    let mut memory = Memory::default();
    let start = Instant::now();
    for after in [Duration::ZERO, LIMITS.silent_agent] {
        assert!(memory.assess(&windows, &[], LIMITS, start + after).0.outages.is_empty());
    }
}

#[test]
fn a_node_is_read() {
    let node = |os: &str| {
        Node::read(&json!({
            "metadata": {"labels": {"kubernetes.io/os": os}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }))
    };
    assert_eq!(node("linux"), Node { state: State::Ready, has_agent: true });
    assert_eq!(node("windows"), Node { state: State::Ready, has_agent: false });
    assert_eq!(Node::read(&Value::Null), Node { state: State::Starting, has_agent: true });
}

#[test]
fn an_agents_pod_is_read() {
    let pod = json!({
        "spec": {"nodeName": "a", "containers": []},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    assert_eq!(Agent::read(&pod), Agent { node: "a".to_owned(), is_ready: true });
    assert_eq!(Agent::read(&Value::Null), Agent { node: String::new(), is_ready: false });
}
