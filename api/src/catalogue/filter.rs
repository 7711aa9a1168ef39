//! Which tags may be picked, and in which order.

use regex::Regex;

use super::Tag;

/// Which tags may be picked.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only whole versions, with or without a variant.
    pub pinned_only: bool,
    /// No commits and digests.
    pub exclude_sha: bool,
    /// Nothing that is not released.
    pub exclude_prerelease: bool,
    /// Only those in which this is found.
    pub include: Option<Regex>,
    /// None in which this is found.
    pub exclude: Option<Regex>,
}

impl Filter {
    /// Those that may be picked, the newest first.
    pub(super) fn pick(&self, mut tags: Vec<Tag>) -> Vec<Tag> {
        tags.retain(|tag| tag.is_valid() && self.passes(tag));
        tags.sort_by(Tag::newest_first);
        tags
    }

    fn passes(&self, tag: &Tag) -> bool {
        !(self.pinned_only && !tag.is_pinned()
            || self.exclude_sha && tag.is_sha()
            || self.exclude_prerelease && tag.is_prerelease()
            || self.include.as_ref().is_some_and(|include| !include.is_match(&tag.name))
            || self.exclude.as_ref().is_some_and(|exclude| exclude.is_match(&tag.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAGS: [&str; 9] = [
        "latest",
        "1.2.2",
        "1.2.3",
        "1.2.3-slim",
        "1.3.0-rc.1",
        "sha-0123456",
        "0123456789abcdef",
        "nightly",
        "not a tag",
    ];

    #[test]
    fn each_rule_alone_and_all_together() {
        let none =
            Filter { pinned_only: false, exclude_sha: false, exclude_prerelease: false, include: None, exclude: None };
        let all = Filter { pinned_only: true, exclude_sha: true, exclude_prerelease: true, ..none.clone() };
        let regex = |text: &str| Some(Regex::new(text).unwrap());
        for (filter, picked) in [
            (none.clone(), TAGS[..8].to_vec()),
            (Filter { pinned_only: true, ..none.clone() }, vec!["1.2.2", "1.2.3", "1.2.3-slim", "1.3.0-rc.1"]),
            (
                Filter { exclude_sha: true, ..none.clone() },
                vec!["latest", "1.2.2", "1.2.3", "1.2.3-slim", "1.3.0-rc.1", "nightly"],
            ),
            (
                Filter { exclude_prerelease: true, ..none.clone() },
                vec!["latest", "1.2.2", "1.2.3", "1.2.3-slim", "sha-0123456", "0123456789abcdef"],
            ),
            (Filter { include: regex("slim"), ..none.clone() }, vec!["1.2.3-slim"]),
            (Filter { include: regex("^1\\.2\\.3$"), ..none.clone() }, vec!["1.2.3"]),
            (Filter { include: regex("^1"), exclude: regex("-"), ..none }, vec!["1.2.2", "1.2.3"]),
            (all.clone(), vec!["1.2.2", "1.2.3", "1.2.3-slim"]),
            (Filter { exclude: regex("slim$"), ..all }, vec!["1.2.2", "1.2.3"]),
        ] {
            let tags = TAGS.iter().map(|name| Tag { name: (*name).to_owned(), updated: None }).collect();
            let mut names: Vec<String> = filter.pick(tags).into_iter().map(|tag| tag.name).collect();
            names.sort_by_key(|name| TAGS.iter().position(|tag| tag == name));
            assert_eq!(names, picked, "{filter:?}");
        }
    }
}
