//! The words for where a request came in and what became of it; labels of the metrics.

use cofferdam_model::{Scope, Untouched};

/// Where a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// `/mutate/enforced`: pods of namespaces in which every pod becomes a session.
    Enforced,
    /// `/mutate/labelled`: pods that carry the label, anywhere else.
    ///
    /// A review does not carry the labels of its namespace, so the two entries of the webhook configuration, which
    /// select by them, say which they are by their paths.
    Labelled,
    /// A path that leads nowhere.
    None,
}

impl Entry {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Enforced, Self::Labelled, Self::None];

    /// The entry with that path.
    #[must_use]
    pub fn of_path(path: &str) -> Self {
        match path {
            "/mutate/enforced" => Self::Enforced,
            "/mutate/labelled" => Self::Labelled,
            _ => Self::None,
        }
    }

    /// What the rules call it.
    #[must_use]
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Enforced => Some(Scope::Enforced),
            Self::Labelled => Some(Scope::Labelled),
            Self::None => None,
        }
    }

    /// The label `scope`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enforced => "enforced",
            Self::Labelled => "labelled",
            Self::None => "none",
        }
    }
}

macro_rules! outcomes {
    ($($(#[$doc:meta])* $name:ident = $label:literal,)*) => {
        /// What became of a request; the table in [`admit`](crate::admit) says when.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Outcome {
            $($(#[$doc])* $name,)*
        }

        impl Outcome {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The label `outcome`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $label,)*
                }
            }
        }
    };
}

outcomes! {
    /// Allowed with a patch, or without one because nothing was left to do.
    Hardened = "hardened",
    /// Denied for what the pod asks.
    Refused = "refused",
    /// Allowed: the pod carries no label.
    NotASession = "not-a-session",
    /// Allowed: the cluster's own or ours.
    ExemptNamespace = "exempt-namespace",
    /// Allowed: a kubelet shows a static pod.
    MirrorPod = "mirror-pod",
    /// Allowed: an update that loosens nothing.
    NothingLoosened = "nothing-loosened",
    /// Denied: a review of something else.
    Unexpected = "unexpected",
    /// Denied: the pod cannot be turned into a tree.
    Unreadable = "unreadable",
    /// Denied: the pod would take too much memory.
    TooHeavy = "too-heavy",
    /// No review.
    Malformed = "malformed",
    /// No such path.
    NotFound = "not-found",
    /// No POST.
    WrongMethod = "wrong-method",
    /// No JSON.
    WrongContentType = "wrong-content-type",
    /// A body over the bound.
    TooLarge = "too-large",
    /// A body that takes too long.
    TooSlow = "too-slow",
    /// A body that breaks off.
    BrokenOff = "broken-off",
    /// All requests together hold as much as they may.
    Overloaded = "overloaded",
    /// The client left.
    Abandoned = "abandoned",
    /// We failed.
    Panicked = "panicked",
}

impl Outcome {
    /// Whether a request that came in by `entry` can end like this.
    #[must_use]
    pub fn belongs_to(self, entry: Entry) -> bool {
        (self == Self::NotFound) == (entry == Entry::None)
    }
}

impl From<Untouched> for Outcome {
    fn from(why: Untouched) -> Self {
        match why {
            Untouched::NotASession => Self::NotASession,
            Untouched::ExemptNamespace => Self::ExemptNamespace,
            Untouched::MirrorPod => Self::MirrorPod,
            Untouched::NothingLoosened => Self::NothingLoosened,
        }
    }
}
