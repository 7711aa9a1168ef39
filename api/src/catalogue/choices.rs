//! What may be picked at one time.

use std::collections::BTreeSet;

use cofferdam_model::image::in_full;
use cofferdam_model::text::shown;

/// How much of a client's own word a refusal repeats, in bytes.
const SHOWN: usize = 200;

/// Images that may be picked at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices {
    /// What is shown, the default image first.
    images: Vec<String>,
    /// All that is accepted, in full.
    accepted: BTreeSet<String>,
    /// Whether there is nothing to choose, and never will be.
    fixed: bool,
}

/// An image that may not be picked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("image `{image}` is not offered; choose one of {}", .offered.join(", "))]
pub struct NotOffered {
    /// What was asked for, cut where it is long.
    pub image: String,
    /// What is shown.
    pub offered: Vec<String>,
}

impl Choices {
    /// The default image alone.
    #[must_use]
    pub fn fixed(default_image: &str) -> Self {
        Self { fixed: true, ..Self::of(default_image, Vec::new(), 0) }
    }

    /// The default image, and of `images`, the newest first, as many as `limit` are shown and all accepted.
    ///
    /// A list that is cut by time moves on while nobody does anything, and what somebody picked and saved last month must
    /// not be refused today. So an image is accepted as long as the registry tells of it and the operator's filter lets it
    /// pass, shown or not.
    #[must_use]
    pub fn of(default_image: &str, images: Vec<String>, limit: usize) -> Self {
        let default = in_full(default_image).into_owned();
        let mut accepted = BTreeSet::from([default]);
        let mut shown = vec![default_image.to_owned()];
        for image in images {
            if accepted.insert(in_full(&image).into_owned()) && shown.len() <= limit {
                shown.push(image);
            }
        }
        Self { images: shown, accepted, fixed: false }
    }

    /// What is offered first.
    #[must_use]
    pub fn default_image(&self) -> &str {
        self.images.first().map_or("", String::as_str)
    }

    /// What is shown, the default image first.
    #[must_use]
    pub fn images(&self) -> &[String] {
        &self.images
    }

    /// Whether nothing can be chosen but the default image.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Whether a client may have this image. It is asked whether there is a catalogue or not: without one, the default
    /// image is all there is.
    pub fn check(&self, image: &str) -> Result<(), NotOffered> {
        if self.accepted.contains(&*in_full(image)) {
            return Ok(());
        }
        Err(NotOffered { image: shown(image, SHOWN), offered: self.images.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(tags: &[&str]) -> Vec<String> {
        tags.iter().map(|tag| format!("team/run:{tag}")).collect()
    }

    #[test]
    fn the_default_comes_first_once_and_the_newest_follow() {
        let all = images(&["4", "3", "2", "1"]);
        for (default, limit, list) in [
            ("team/run:3", 20, ["3", "4", "2", "1"].as_slice()),
            ("team/run:3", 2, &["3", "4", "2"]),
            ("team/run:9", 1, &["9", "4"]),
            ("team/run:9", 0, &["9"]),
        ] {
            let choices = Choices::of(default, all.clone(), limit);
            assert_eq!(choices.images(), images(list), "{default} {limit}");
            assert_eq!(choices.default_image(), default);
        }
        // The same image by its whole name.
        let choices = Choices::of("docker.io/team/run:4", all, 1);
        assert_eq!(choices.images(), ["docker.io/team/run:4", "team/run:3"]);
    }

    #[test]
    fn d28_what_is_shown_is_accepted_and_so_is_what_was_shown_before() {
        let before = Choices::of("team/run:9", images(&["2", "1"]), 2);
        let after = Choices::of("team/run:9", images(&["4", "3", "2", "1"]), 2);
        for image in before.images().iter().chain(after.images()) {
            assert_eq!(after.check(image), Ok(()), "{image}");
        }
        assert_eq!(after.check("docker.io/team/run:4"), Ok(()));
        for other in ["team/run:5", "team/run", "run:4", "evil/run:4", "team/run:4@sha256:01", "", "team/run:4 "] {
            assert!(after.check(other).is_err(), "{other}");
        }
    }

    #[test]
    fn without_a_catalogue_the_gate_is_there_as_well() {
        let choices = Choices::fixed("team/run:1");
        assert_eq!(choices.check("team/run:1"), Ok(()));
        let refused = choices.check("team/run:2").unwrap_err();
        assert_eq!(refused.to_string(), "image `team/run:2` is not offered; choose one of team/run:1");
        let long = choices.check(&"x".repeat(100_000)).unwrap_err().to_string();
        assert!(long.len() < 300, "{long}");
    }
}
