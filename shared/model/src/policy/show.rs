//! A policy written out in full: what holds, defaults included, in the words of the file.

use std::collections::BTreeMap;

use super::{
    Allow, AppArmor, Bodies, DefaultRequest, HostUsers, Images, Network, NetworkMode, ParentGateway, Policy,
    ProbeRouting, Profile, ProofMode, Resources, Routing, RoutingMode, RuntimeClass, Scheduling, Scheme, Scratch,
    SlippedThrough, SupplementalGroups, Toleration,
    file::{
        BodiesFile, PolicyFile,
        network::{NetworkFile, NetworkModeFile},
        profile::{
            AllowFile, AppArmorFile, EachRequest, HostAliasesFile, HostUsersFile, ImagesFile, LifetimeFile, LimitsFile,
            PodFile, ProfileFile, PullPolicyFile, ResourcesFile, RunAsFile, ScratchFile, SeccompFile,
            SlippedThroughFile, SupplementalGroupsFile,
        },
        routing::{
            GatewayFile, IngressFile, ProbeFile, ProofFile, PublicUrlFile, RoutingFile, RoutingModeFile, SchemeFile,
        },
        scheduling::{Operator, RuntimeClassChoice, RuntimeClassFile, SchedulingFile, TaintEffect, TolerationFile},
        value::{Amount, Given, RequestFile, RequestsFile},
    },
};
use crate::quantity::Quantity;

impl Policy {
    /// The policy as YAML, every key of every profile spelled out. Read again it is the same policy, but for the
    /// digest, which is of the text, and for the image and namespace of the installation, which no file says.
    #[must_use]
    #[expect(clippy::missing_panics_doc, clippy::expect_used, reason = "texts, numbers, lists and maps are YAML")]
    pub fn show(&self) -> String {
        serde_saphyr::to_string(&written(self)).expect("a policy can be written")
    }
}

/// The file that says what the policy is.
pub(super) fn written(policy: &Policy) -> PolicyFile {
    let profiles = policy.profiles.iter().map(|(name, profile)| (text(name), Some(of_profile(profile))));
    PolicyFile {
        profiles: given(profiles.collect()),
        routing: Some(of_routing(&policy.routing)),
        network: Some(of_network(&policy.network)),
        finished_grace_seconds: Some(given(policy.finished_grace_seconds.into())),
        bodies: Some(of_bodies(&policy.bodies)),
        trusted: Some(texts(&policy.trusted)),
    }
}

fn of_profile(profile: &Profile) -> ProfileFile {
    ProfileFile {
        allow: Some(of_allow(&profile.allow)),
        images: Some(of_images(&profile.images)),
        scheduling: Some(of_scheduling(&profile.scheduling)),
        resources: Some(of_resources(&profile.resources)),
        pod: Some(PodFile { containers: Some(given(profile.pod.containers)), sum: Some(given(profile.pod.sum)) }),
        lifetime: Some(LifetimeFile {
            deadline_seconds: Some(given(profile.lifetime.deadline_seconds)),
            grace_seconds: Some(given(profile.lifetime.grace_seconds)),
        }),
        run_as: Some(RunAsFile {
            user: Some(given(profile.run_as.user)),
            group: Some(given(profile.run_as.group)),
            fs_group: Some(given(profile.run_as.fs_group)),
        }),
        volume_types: Some(given(texts(&profile.volume_types))),
        scratch: Some(profile.scratch.iter().map(of_scratch).collect()),
        seccomp: Some(SeccompFile { localhost_profiles: Some(texts(&profile.seccomp_localhost_profiles)) }),
        app_armor: Some(match profile.app_armor {
            AppArmor::Leave => AppArmorFile::Leave,
            AppArmor::Inject => AppArmorFile::Inject,
        }),
        sysctls: Some(texts(&profile.sysctls)),
        token_audiences: Some(texts(&profile.token_audiences)),
        host_users: Some(match profile.host_users {
            HostUsers::Leave => HostUsersFile::Leave,
            HostUsers::Never => HostUsersFile::Never,
        }),
        supplemental_groups_policy: Some(match profile.supplemental_groups {
            SupplementalGroups::Leave => SupplementalGroupsFile::Leave,
            SupplementalGroups::Strict => SupplementalGroupsFile::Strict,
        }),
        host_aliases: Some(if profile.host_aliases { HostAliasesFile::Allow } else { HostAliasesFile::Refuse }),
        command: Some(given(texts(&profile.command))),
        readiness_gate: Some(profile.readiness_gate),
        slipped_through: Some(match profile.slipped_through {
            SlippedThrough::Keep => SlippedThroughFile::Keep,
            SlippedThrough::Delete => SlippedThroughFile::Delete,
        }),
    }
}

fn of_allow(allow: &Allow) -> AllowFile {
    AllowFile {
        namespaces: Some(texts(&allow.namespaces)),
        users: Some(texts(&allow.users)),
        groups: Some(texts(&allow.groups)),
    }
}

fn of_images(images: &Images) -> ImagesFile {
    ImagesFile {
        allowed: Some(texts(&images.allowed)),
        digest_only: Some(images.digest_only),
        pull_policy: Some(if images.always_pull { PullPolicyFile::Always } else { PullPolicyFile::Leave }),
    }
}

fn of_scheduling(scheduling: &Scheduling) -> SchedulingFile {
    let inject = scheduling.inject_runtime_class;
    SchedulingFile {
        runtime_classes: Some(scheduling.runtime_classes.iter().map(of_runtime_class).collect()),
        runtime_class: Some(given(if inject { RuntimeClassChoice::Inject } else { RuntimeClassChoice::Leave })),
        scheduler_names: Some(texts(&scheduling.scheduler_names)),
        node_selector: Some(text_map(&scheduling.node_selector)),
        node_labels: Some(texts(&scheduling.node_labels)),
        tolerations: Some(of_tolerations(&scheduling.tolerations)),
        allowed_tolerations: Some(of_tolerations(&scheduling.allowed_tolerations)),
        image_pull_secrets: Some(texts(&scheduling.image_pull_secrets)),
        max_priority: Some(given(scheduling.max_priority)),
    }
}

fn of_runtime_class(class: &RuntimeClass) -> RuntimeClassFile {
    RuntimeClassFile {
        name: text(&class.name),
        node_selector: Some(text_map(&class.node_selector)),
        tolerations: Some(of_tolerations(&class.tolerations)),
    }
}

fn of_tolerations(tolerations: &[Toleration]) -> Vec<Given<TolerationFile>> {
    let of_one = |toleration: &Toleration| TolerationFile {
        key: toleration.key.as_deref().map(text),
        operator: Some(if toleration.exists { Operator::Exists } else { Operator::Equal }),
        value: toleration.value.as_deref().map(text),
        effect: toleration.effect.as_deref().and_then(TaintEffect::of),
    };
    tolerations.iter().map(|toleration| given(of_one(toleration))).collect()
}

fn of_resources(resources: &Resources) -> ResourcesFile {
    let request = |request| {
        Some(given(match request {
            DefaultRequest::Limit => RequestFile::Limit,
            DefaultRequest::Amount(amount) => RequestFile::Amount(amount),
        }))
    };
    let (limits, requests) = (resources.limits, resources.requests);
    ResourcesFile {
        limits: Some(LimitsFile {
            cpu: Some(amount(limits.cpu)),
            memory: Some(amount(limits.memory)),
            ephemeral_storage: Some(amount(limits.ephemeral_storage)),
        }),
        requests: Some(RequestsFile::Each(EachRequest {
            cpu: request(requests.cpu),
            memory: request(requests.memory),
            ephemeral_storage: request(requests.ephemeral_storage),
        })),
        extended: Some(texts(&resources.extended)),
        claims: Some(resources.claims),
    }
}

fn of_scratch(scratch: &Scratch) -> ScratchFile {
    ScratchFile {
        name: text(&scratch.name),
        path: text(&scratch.path),
        size: amount(scratch.size),
        env: Some(scratch.env.iter().map(|(variable, place)| (text(variable), text(place))).collect()),
        shared: Some(!scratch.per_container),
    }
}

fn of_routing(routing: &Routing) -> RoutingFile {
    RoutingFile {
        base_domain: Some(optional(routing.base_domain.as_ref())),
        mode: Some(match routing.mode {
            RoutingMode::Auto => RoutingModeFile::Auto,
            RoutingMode::Gateway => RoutingModeFile::Gateway,
            RoutingMode::Ingress => RoutingModeFile::Ingress,
            RoutingMode::None => RoutingModeFile::None,
        }),
        home_namespace: Some(optional(routing.home_namespace.as_ref())),
        gateway: Some(of_gateway(routing.gateway.as_ref())),
        ingress: Some(IngressFile {
            class_name: Some(optional(routing.ingress_class.as_ref())),
            tls_secret: Some(optional(routing.ingress_tls_secret.as_ref())),
        }),
        public_url: Some(PublicUrlFile {
            scheme: Some(match routing.public_url.scheme {
                Scheme::Http => SchemeFile::Http,
                Scheme::Https => SchemeFile::Https,
            }),
            port: Some(given(routing.public_url.port.unwrap_or_default().into())),
        }),
        proof: Some(match routing.proof {
            ProofMode::Auto => ProofFile::Auto,
            ProofMode::On => ProofFile::On,
            ProofMode::Off => ProofFile::Off,
        }),
        probe: Some(of_probe(&routing.probe)),
        deadline_seconds: Some(given(routing.deadline_seconds.into())),
        failures: Some(given(routing.failures.into())),
    }
}

fn of_gateway(gateway: Option<&ParentGateway>) -> GatewayFile {
    GatewayFile {
        name: Some(optional(gateway.map(|gateway| &gateway.name))),
        namespace: Some(optional(gateway.map(|gateway| &gateway.namespace))),
        listener: Some(optional(gateway.and_then(|gateway| gateway.listener.as_ref()))),
    }
}

fn of_probe(probe: &ProbeRouting) -> ProbeFile {
    ProbeFile {
        address: Some(given(probe.address.as_ref().map(ToString::to_string).unwrap_or_default())),
        scheme: Some(text(probe.scheme.map(Scheme::as_str).unwrap_or_default())),
        ca_bundle: Some(optional(probe.ca_bundle.as_ref())),
    }
}

fn of_network(network: &Network) -> NetworkFile {
    NetworkFile {
        mode: Some(match network.mode {
            NetworkMode::Managed => NetworkModeFile::Managed,
            NetworkMode::Manual => NetworkModeFile::Manual,
        }),
        data_plane_namespaces: Some(texts(&network.data_plane_namespaces)),
        blocked: Some(texts(&network.blocked)),
    }
}

fn of_bodies(bodies: &Bodies) -> BodiesFile {
    BodiesFile {
        enabled: Some(bodies.enabled),
        path: Some(text(&bodies.path)),
        size: Some(amount(bodies.size)),
        max_entries: Some(given(bodies.max_entries)),
        deadline_seconds: Some(given(bodies.deadline_seconds)),
        audience: Some(text(&bodies.audience)),
    }
}

fn given<T>(value: T) -> Given<T> {
    Given::nowhere(value)
}

fn amount(quantity: Quantity) -> Given<Amount> {
    given(Amount(quantity))
}

fn text(text: &str) -> Given<String> {
    given(text.to_owned())
}

/// Empty for none.
fn optional(given: Option<&String>) -> Given<String> {
    text(given.map(String::as_str).unwrap_or_default())
}

fn texts(all: &[String]) -> Vec<Given<String>> {
    all.iter().map(|one| text(one)).collect()
}

fn text_map(map: &BTreeMap<String, String>) -> BTreeMap<Given<String>, Given<String>> {
    map.iter().map(|(key, value)| (text(key), text(value))).collect()
}
