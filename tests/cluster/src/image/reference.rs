//! The name of an image.

use std::fmt;
use std::str::FromStr;

use super::ImageError;

/// A tagged image name, completed as a kubelet completes it.
///
/// `fixture:1` becomes `docker.io/library/fixture:1`: a runtime looks a pod's image up under the completed name and
/// would not find one that was imported under the short one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    repository: String,
    tag: String,
}

impl Reference {
    /// The completed name with its tag.
    #[must_use]
    pub fn full(&self) -> String {
        format!("{}:{}", self.repository, self.tag)
    }

    /// The tag alone.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The name as one plain file name.
    #[must_use]
    pub fn file_name(&self) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let name = self.repository.strip_prefix("docker.io/library/").unwrap_or(&self.repository);
        format!("{name}_{}.tar", self.tag).chars().map(|c| if plain(c) { c } else { '_' }).collect()
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.repository, self.tag)
    }
}

impl FromStr for Reference {
    type Err = ImageError;

    /// Takes `[host[:port]/]path:tag`.
    ///
    /// A tag must be there and must not be `latest`: without one, or with that one, Kubernetes sets `imagePullPolicy:
    /// Always`, and there is no registry to pull from. A digest is refused, since it is known only once the image is
    /// written.
    fn from_str(text: &str) -> Result<Self, ImageError> {
        let invalid = |reason| ImageError::Reference { reference: text.to_owned(), reason };
        if text.contains('@') {
            return Err(invalid("give a tag, not a digest"));
        }
        let (repository, tag) = text
            .rsplit_once(':')
            .filter(|(_, tag)| !tag.contains('/'))
            .ok_or_else(|| invalid("give it a tag, as in `name:1`"))?;
        if tag == "latest" {
            return Err(invalid("the tag `latest` makes Kubernetes pull; give it another"));
        }
        let tag_fits = (1..=128).contains(&tag.len())
            && !tag.starts_with(['.', '-'])
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        if !tag_fits {
            return Err(invalid("a tag is 1 to 128 letters, digits, `_`, `.` and `-`, the last two not first"));
        }
        let (host, path) = match repository.split_once('/') {
            // The rule of every runtime: a first part that cannot be a host name is part of the path.
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path.to_owned()),
            Some(_) => ("docker.io", repository.to_owned()),
            None => ("docker.io", format!("library/{repository}")),
        };
        let host_fits = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':'));
        let part_fits = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.ends_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_'))
        };
        if !host_fits || !path.split('/').all(part_fits) {
            return Err(invalid("a name is lower-case letters, digits, `.`, `-` and `_`, in parts joined by `/`"));
        }
        Ok(Self { repository: format!("{host}/{path}"), tag: tag.to_owned() })
    }
}
