//! How names and paths look in Kubernetes (Kubernetes: Object Names and IDs; Labels and Selectors; Taints and Tolerations).

/// Longest DNS label, and so the longest volume name or label value.
pub(crate) const LABEL: usize = 63;

/// Longest DNS name.
const NAME: usize = 253;

/// Whether this is a DNS label of at most so many characters.
pub(crate) fn is_dns_label(text: &str, most: usize) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.len() <= most && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Whether this can name a container.
#[must_use]
pub fn is_container_name(text: &str) -> bool {
    is_dns_label(text, LABEL)
}

/// Whether this can name most objects: parts like DNS labels, of which only the whole has a longest length.
#[must_use]
pub fn is_object_name(text: &str) -> bool {
    text.len() <= NAME && text.split('.').all(|part| is_dns_label(part, NAME))
}

/// Whether this is a name that the DNS can hold.
pub(crate) fn is_dns_name(text: &str) -> bool {
    text.len() <= NAME && text.split('.').all(|label| is_dns_label(label, LABEL))
}

/// Whether this can be the key of a label or of a taint, or name a resource.
pub(crate) fn is_label_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(is_object_name) && !name.is_empty() && is_label_value(name)
}

/// Whether this can be the value of a label or of a taint.
pub(crate) fn is_label_value(text: &str) -> bool {
    let outer = |b: Option<u8>| b.is_none_or(|b| b.is_ascii_alphanumeric());
    text.len() <= LABEL
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && outer(text.bytes().next())
        && outer(text.bytes().last())
}

/// Whether this is an absolute path as it can be mounted and compared: not `/`, and nothing to resolve in it.
pub(crate) fn is_clean_path(path: &str) -> bool {
    path.len() > 1 && path.strip_prefix('/').is_some_and(is_clean_place)
}

/// Whether this leads down from a directory, with nothing to resolve: no `..`, and no `$` that a kubelet would expand.
pub(crate) fn is_clean_place(place: &str) -> bool {
    !place.contains([':', '$']) && is_plain_place(place)
}

/// Whether this leads down from a directory, with nothing to resolve.
pub(crate) fn is_plain_place(place: &str) -> bool {
    !place.contains(char::is_control) && place.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether this leads out of the directory that it is seen from.
pub(crate) fn leads_out(place: &str) -> bool {
    place.starts_with('/') || place.split('/').any(|part| part == "..")
}

/// Whether a path is the other, or in it.
pub(crate) fn is_within(outer: &str, path: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether one of the paths is the other, in it or around it: what cannot be mounted side by side.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    is_within(one, other) || is_within(other, one)
}

/// Whether this is a name that every shell takes for a variable.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_kubernetes_takes_for_names() {
        for (name, is_key) in [
            ("a", true),
            ("kubernetes.io/arch", true),
            ("example.com/Some_Name.x", true),
            ("", false),
            ("/x", false),
            ("x/", false),
            ("a/b/c", false),
            ("Example.com/x", false),
            ("-a", false),
            ("a-", false),
            ("a b", false),
        ] {
            assert_eq!(is_label_key(name), is_key, "{name}");
        }
        assert!(is_label_value("") && is_label_value("A_b.c-1") && !is_label_value("_") && !is_label_value("é"));
        assert!(!is_label_value(&"a".repeat(64)));
        let long = format!("{}.b", "a".repeat(64));
        assert!(is_object_name(&long) && !is_dns_name(&long) && !is_object_name(&"a".repeat(254)));
        assert!(is_dns_name("a.b-c") && !is_dns_name("a..b") && !is_dns_name("A.b") && !is_dns_name(""));
    }

    #[test]
    fn paths_overlap_where_one_is_in_the_other() {
        assert!(overlap("/a", "/a/b") && overlap("/a/b", "/a") && overlap("/a", "/a"));
        assert!(!overlap("/a", "/ab") && !overlap("/a/b", "/a/c"));
        for (path, is_clean) in [
            ("/a", true),
            ("/", false),
            ("a", false),
            ("/a/", false),
            ("//a", false),
            ("/a/../b", false),
            ("/$A", false),
        ] {
            assert_eq!(is_clean_path(path), is_clean, "{path}");
        }
    }
}
