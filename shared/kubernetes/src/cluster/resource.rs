//! Which objects are asked for, and how much of each is read.

/// A kind of objects, as the API server's paths name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// In lower case and plural: `services`.
    pub name: &'static str,
    /// `/api/v1` or `/apis/<group>/<version>`.
    pub prefix: String,
    reading: Reading,
}

/// How much of each object is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    Whole,
    /// Each is small: of one that is not an [`outline`](crate::outline) is read.
    Small,
    /// Its metadata, and of that as of what is small.
    Metadata,
}

impl Resource {
    /// Of the core group.
    #[must_use]
    pub fn core(name: &'static str) -> Self {
        Self { name, prefix: "/api/v1".to_owned(), reading: Reading::Whole }
    }

    /// Of a group and version, such as `discovery.k8s.io/v1`.
    #[must_use]
    pub fn of(name: &'static str, group_version: &str) -> Self {
        Self { name, prefix: format!("/apis/{group_version}"), reading: Reading::Whole }
    }

    /// Of objects that are small unless somebody made them large.
    #[must_use]
    pub fn small(self) -> Self {
        Self { reading: Reading::Small, ..self }
    }

    /// Of whose objects the metadata alone is sent and read.
    #[must_use]
    pub fn metadata(self) -> Self {
        Self { reading: Reading::Metadata, ..self }
    }

    pub(super) fn is_bounded(&self) -> bool {
        self.reading != Reading::Whole
    }

    pub(super) fn is_metadata(&self) -> bool {
        self.reading == Reading::Metadata
    }

    pub(super) fn path(&self, namespace: Option<&str>) -> String {
        match namespace {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.prefix, self.name),
            None => format!("{}/{}", self.prefix, self.name),
        }
    }
}

/// What selects some objects of a kind.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// In one namespace, or in all.
    pub namespace: Option<String>,
    /// A label selector; empty for all.
    pub labels: String,
    /// A field selector; empty for all.
    pub fields: String,
}
