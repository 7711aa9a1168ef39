//! The words for what became of a request; labels of the metrics.

use cofferdam_model::Untouched;

use super::Entry;

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
    /// Allowed as it is: what would be changed in the pod, or in a workload's pods, is told.
    Advised = "advised",
    /// Allowed as it is: the pod, or a workload's pods, would be refused, and that is told.
    AdvisedRefusal = "advised-refusal",
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
    /// Denied: the pod cannot be turned into a tree. A workload is allowed.
    Unreadable = "unreadable",
    /// Denied: the pod would take too much memory. A workload is allowed.
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
    /// Whether a request that came in by `entry`, or by no path of ours, can end like this.
    #[must_use]
    pub fn belongs_to(self, entry: Option<Entry>) -> bool {
        (self == Self::NotFound) == entry.is_none()
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
