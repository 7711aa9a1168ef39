use std::collections::BTreeMap;

use super::*;

/// A series as a scrape reads it: name, labels, value.
type Series = (String, BTreeMap<String, String>, f64);

/// Reads the text format as strictly as Prometheus does: whatever is wrong with one line, nothing is read.
fn scraped(text: &str) -> Result<Vec<Series>, String> {
    let lines = text.strip_suffix('\n').ok_or("the last line does not end")?.split('\n');
    let series = lines.filter(|line| !line.starts_with("# HELP ") && !line.starts_with("# TYPE "));
    series.map(|line| series_of(line).ok_or_else(|| format!("{line:?} is no series"))).collect()
}

fn series_of(line: &str) -> Option<Series> {
    let (name, mut rest) = word(line)?;
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, after) = word(rest)?;
            let (value, after) = quoted(after.strip_prefix("=\"")?)?;
            labels.insert(label.to_owned(), value).is_none().then_some(())?;
            rest = after.strip_prefix(',').or(after.starts_with('}').then_some(after))?;
        }
        rest = &rest[1..];
    }
    Some((name.to_owned(), labels, rest.strip_prefix(' ')?.parse().ok()?))
}

/// A name, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    name.starts_with(|c: char| !c.is_ascii_digit()).then_some((name, rest))
}

/// What a label says, up to its closing quote, and what follows that.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut chars) = (String::new(), text.chars());
    loop {
        value.push(match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                _ => return None,
            },
            other => other,
        });
    }
}

#[test]
fn b156_whatever_labels_say_all_of_the_output_is_read_as_it_is_meant() {
    let hostile = [
        "My 14\" box\n\\",
        "\"",
        "\\",
        "\\n",
        "\n",
        "\r\t\u{2028}ü",
        "a\"} 1\nforged_total{x=\"",
        "},{x=\"y\"} 7",
        "# TYPE x counter",
    ];
    let registry = cofferdam_runtime::metrics::Metrics::new("some", "1.2.3\"\n\\").unwrap();
    let metrics = Metrics::register(registry.registry(), "a \"digest\"\n\\", true).unwrap();
    let read = || scraped(&String::from_utf8(registry.encode().unwrap()).unwrap()).unwrap();
    let before = read().len();
    let session = |text: &&str| {
        let mut tally = metrics.tally();
        tally.set(SessionState::Published, BTreeMap::from([(3000, PortState::default())]), text, text);
        tally
    };
    let _sessions: Vec<Tally> = hostile.iter().map(session).collect();
    let all = read();
    assert_eq!(all.len(), before + hostile.len(), "none is lost, and none is forged");
    let value = |name: &str, labels: &[(&str, &str)]| {
        let labels = labels.iter().map(|(label, value)| ((*label).to_owned(), (*value).to_owned())).collect();
        let found = all.iter().find(|series| series.0 == name && series.1 == labels);
        found.map(|(.., value)| value.to_string())
    };
    for text in hostile {
        let labels = [("namespace", text), ("session", text), ("port", "3000")];
        assert_eq!(value("some_session_address_reachable", &labels).as_deref(), Some("0"), "{text:?}");
    }
    // They come before and after those.
    assert_eq!(value("some_build_info", &[("version", "1.2.3\"\n\\")]).as_deref(), Some("1"));
    assert_eq!(value("some_sessions", &[("state", "published")]).as_deref(), Some("9"));
    assert_eq!(value("some_slipped_through_pods_total", &[]).as_deref(), Some("0"));
}

#[test]
fn what_no_scrape_would_take_is_not_read() {
    assert_eq!(scraped("# HELP a b\na{b=\"c\",d=\"\"} 1\ne +Inf\n").map(|series| series.len()), Ok(2));
    for broken in [
        "a 1",
        "a{b=\"My 14\" box\"} 1\n",
        "a{b=\"c\nd\"} 1\n",
        "a{b=\"\\c\"} 1\n",
        "a{b=\"c\"d=\"e\"} 1\n",
        "a{b=\"c\",b=\"d\"} 1\n",
        "a{b=\"c\"}\n",
        "a one\n",
        "1a 1\n",
        "\n",
    ] {
        assert!(scraped(broken).is_err(), "{broken:?}");
    }
}

#[test]
fn who_waits_is_counted_in_the_queue_until_the_wait_is_over() {
    let metrics = Metrics::register(&Registry::new(), "digest", false).unwrap();
    for (queue, other) in [(Queue::Publish, Queue::Tell), (Queue::Tell, Queue::Publish)] {
        let depths = || (metrics.depth(queue), metrics.depth(other));
        let (one, two) = (metrics.queued(queue), metrics.queued(queue));
        assert_eq!(depths(), (2, 0));
        drop(one);
        assert_eq!(depths(), (1, 0));
        drop(two);
        assert_eq!(depths(), (0, 0));
    }
}
