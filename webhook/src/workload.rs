//! The kinds of objects that make pods, and where in them the template of these pods stands.

use cofferdam_model::Template;

/// A kind of object that makes pods.
#[derive(Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its API group; empty for the core group. The version is always [`VERSION`].
    pub group: &'static str,
    /// Its name in an object.
    pub kind: &'static str,
    /// Its name in a review.
    pub resource: &'static str,
    /// Where the template stands in it.
    pub at: &'static str,
    /// Which sort of template it is.
    pub template: Template,
}

/// The one version that they all have.
pub(crate) const VERSION: &str = "v1";

const ALL: &[Workload] = {
    use Template::{RunsForever, RunsToCompletion};
    &[
        Workload::new("apps", "DaemonSet", "daemonsets", "spec.template", RunsForever),
        Workload::new("apps", "Deployment", "deployments", "spec.template", RunsForever),
        Workload::new("apps", "ReplicaSet", "replicasets", "spec.template", RunsForever),
        Workload::new("apps", "StatefulSet", "statefulsets", "spec.template", RunsForever),
        Workload::new("", "ReplicationController", "replicationcontrollers", "spec.template", RunsForever),
        Workload::new("", "PodTemplate", "podtemplates", "template", RunsForever),
        Workload::new("batch", "Job", "jobs", "spec.template", RunsToCompletion),
        Workload::new("batch", "CronJob", "cronjobs", "spec.jobTemplate.spec.template", RunsToCompletion),
    ]
};

impl Workload {
    const fn new(
        group: &'static str,
        kind: &'static str,
        resource: &'static str,
        at: &'static str,
        template: Template,
    ) -> Self {
        Self { group, kind, resource, at, template }
    }

    /// The one that an object of this `apiVersion` and `kind` is, if any.
    #[must_use]
    pub fn of_object(api_version: &str, kind: &str) -> Option<&'static Self> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        ALL.iter().find(|known| (known.group, VERSION, known.kind) == (group, version, kind))
    }

    /// The one that a review of this resource is about, if any.
    #[must_use]
    pub fn of_resource(group: &str, resource: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| (known.group, known.resource) == (group, resource))
    }
}
