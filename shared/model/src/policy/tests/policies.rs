//! Policies that a file can say.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};

use super::super::*;
use crate::{policy::kubernetes::VOLUME_TYPES, quantity::Quantity, testing::CERTIFICATES};

/// Any policy, in words that YAML could mistake for something else where the format allows them.
pub(in crate::policy) fn policy() -> impl Strategy<Value = Policy> {
    let profiles = (profile(), prop::collection::btree_map("[a-z0-9]([a-z0-9-]{0,9}[a-z0-9])?", profile(), 0..3));
    let seconds = 0..=LONGEST_FINISHED_GRACE_SECONDS;
    (profiles, routing(), network(), seconds, bodies(), vec("[a-z0-9:~.-]{1,12}", 0..3)).prop_map(
        |((default, mut profiles), routing, network, finished_grace_seconds, bodies, trusted)| {
            profiles.insert("default".to_owned(), default);
            let system_namespace = SYSTEM_NAMESPACE.to_owned();
            let digest = String::new();
            Policy { profiles, trusted, routing, network, finished_grace_seconds, bodies, system_namespace, digest }
        },
    )
}

prop_compose! {
    fn profile()(
        allow in allow(),
        images in images(),
        scheduling in scheduling(),
        resources in resources(),
        containers in 1_u32..100,
        more in 0_u32..100,
        seconds in (1..=i64::from(i32::MAX), 1..=i64::from(i32::MAX)),
        ids in (1..=i64::from(i32::MAX), 1..=i64::from(i32::MAX), 1..=i64::from(i32::MAX)),
        volume_types in subsequence(VOLUME_TYPES.to_vec(), 0..10),
        scratch in scratch(),
        seccomp_localhost_profiles in vec("[a-z0-9~][a-z0-9/ -]{0,8}", 0..3),
        switches in (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()),
        sysctls in vec("[a-z]{1,4}\\.[a-z_]{1,8}", 0..3),
        token_audiences in vec("[a-z0-9~.]{1,8}", 0..3),
        command in vec("[ -~]{0,6}\\$\\(ENTRY\\)", 0..3),
    ) -> Profile {
        let (app_armor, host_users, groups, host_aliases, readiness_gate, slipped_through) = switches;
        let mut volume_types: Vec<String> = volume_types.into_iter().map(str::to_owned).collect();
        volume_types.extend(["emptyDir".to_owned(), "projected".to_owned()]);
        Profile {
            allow,
            images,
            scheduling,
            resources,
            pod: PodCeilings { containers, sum: containers + more },
            lifetime: Lifetime { deadline_seconds: seconds.0, grace_seconds: seconds.1 },
            run_as: RunAs { user: ids.0, group: ids.1, fs_group: ids.2 },
            volume_types,
            scratch,
            seccomp_localhost_profiles,
            app_armor: if app_armor { AppArmor::Inject } else { AppArmor::Leave },
            sysctls,
            token_audiences,
            host_users: if host_users { HostUsers::Never } else { HostUsers::Leave },
            supplemental_groups: if groups { SupplementalGroups::Strict } else { SupplementalGroups::Leave },
            host_aliases,
            command,
            readiness_gate,
            slipped_through: if slipped_through { SlippedThrough::Delete } else { SlippedThrough::Keep },
        }
    }
}

fn allow() -> impl Strategy<Value = Allow> {
    // Names of users are not ours to restrict, so they are what YAML has most trouble with.
    let names = || vec("[^*\\p{Cc}]{1,12}", 0..3);
    (vec("[a-z0-9*-]{1,12}", 0..3), names(), names()).prop_map(|(namespaces, users, groups)| Allow {
        namespaces,
        users,
        groups,
    })
}

fn images() -> impl Strategy<Value = Images> {
    (vec("[a-z*]{1,3}\\.[a-z]{1,3}/[a-z]{1,3}(/\\*\\*)?", 0..3), any::<bool>(), any::<bool>())
        .prop_map(|(allowed, digest_only, always_pull)| Images { allowed, digest_only, always_pull })
        .prop_filter("three stars", |images| images.allowed.iter().all(|pattern| !pattern.contains("***")))
}

fn scheduling() -> impl Strategy<Value = Scheduling> {
    let names = || vec("[a-z0-9]{1,6}", 0..3);
    (runtime_classes(), any::<bool>(), (names(), names()), labels(), (tolerations(), tolerations()), any::<i32>())
        .prop_map(|(mut runtime_classes, inject, names, node_selector, tolerations, max_priority)| {
            for class in &mut runtime_classes {
                class.node_selector.retain(|label, _| !node_selector.contains_key(label));
            }
            Scheduling {
                inject_runtime_class: inject && !runtime_classes.is_empty(),
                runtime_classes,
                scheduler_names: names.0,
                node_labels: node_selector.keys().cloned().collect(),
                node_selector,
                tolerations: tolerations.0,
                allowed_tolerations: tolerations.1,
                image_pull_secrets: names.1,
                max_priority: i64::from(max_priority),
            }
        })
}

fn runtime_classes() -> impl Strategy<Value = Vec<RuntimeClass>> {
    prop::collection::btree_map("[a-z0-9]{1,6}", (labels(), tolerations()), 0..3).prop_map(|classes| {
        let class = |(name, (node_selector, tolerations))| RuntimeClass { name, node_selector, tolerations };
        classes.into_iter().map(class).collect()
    })
}

fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
    prop::collection::btree_map("([a-z]{1,3}\\.io/)?[a-zA-Z0-9]{1,5}", "[a-zA-Z0-9]{0,5}", 0..3)
}

fn tolerations() -> impl Strategy<Value = Vec<Toleration>> {
    let effect = option::of(select(vec!["NoSchedule", "PreferNoSchedule", "NoExecute"]));
    let toleration = (option::of("[a-z0-9]{1,5}"), any::<bool>(), option::of("[a-z0-9]{0,5}"), effect).prop_map(
        |(key, exists, value, effect)| {
            let exists = exists || key.is_none();
            Toleration { key, exists, value: value.filter(|_| !exists), effect: effect.map(str::to_owned) }
        },
    );
    vec(toleration, 0..3)
}

fn resources() -> impl Strategy<Value = Resources> {
    let requests = || {
        prop_oneof![
            Just(DefaultRequest::Limit),
            select(vec!["1", "1m", "0.5", "1e1", "1Ki"]).prop_map(|a| DefaultRequest::Amount(Quantity::constant(a)))
        ]
    };
    let amounts = || select(vec!["2Ki", "1e4", "10k", "123456789n", "9.5Gi", "1T"]).prop_map(Quantity::constant);
    let limits = (amounts(), amounts(), select(vec!["8Gi", "1T", "5e9"]).prop_map(Quantity::constant));
    (limits, (requests(), requests(), requests()), vec("[a-z]{1,4}\\.com/[a-z]{1,4}", 0..3), any::<bool>()).prop_map(
        |(limits, requests, extended, claims)| {
            let within = |request, limit| match request {
                DefaultRequest::Amount(amount) if amount > limit => DefaultRequest::Limit,
                fitting => fitting,
            };
            Resources {
                limits: Ceilings { cpu: limits.0, memory: limits.1, ephemeral_storage: limits.2 },
                requests: Requests {
                    cpu: within(requests.0, limits.0),
                    memory: within(requests.1, limits.1),
                    ephemeral_storage: within(requests.2, limits.2),
                },
                extended,
                claims,
            }
        },
    )
}

fn scratch() -> impl Strategy<Value = Vec<Scratch>> {
    let directory = ("[1-9]{1,3}Mi", vec("[a-z0-9.~]{0,3}x", 0..3), any::<bool>());
    vec(directory, 0..4).prop_map(|directories| {
        let all = directories.into_iter().enumerate();
        let scratch = all.map(|(index, (size, places, per_container))| Scratch {
            name: format!("d{index}"),
            path: format!("/d/{index}"),
            size: Quantity::constant(&size),
            env: places.into_iter().enumerate().map(|(n, place)| (format!("V{index}_{n}"), place)).collect(),
            per_container,
        });
        scratch.collect()
    })
}

prop_compose! {
    fn routing()(
        base_domain in option::of("[a-z0-9]{1,5}(\\.[a-z0-9]{1,5}){0,2}"),
        mode in select(vec![RoutingMode::Auto, RoutingMode::Gateway, RoutingMode::Ingress, RoutingMode::None]),
        home_namespace in option::of("[a-z0-9]{1,5}"),
        gateway in option::of(gateway()),
        ingress_class in option::of("[a-z0-9]{1,5}"),
        ingress_tls_secret in option::of("[a-z0-9]{1,5}"),
        public_url in (scheme(), option::of(1_u16..)).prop_map(|(scheme, port)| PublicUrl { scheme, port }),
        proof in select(vec![ProofMode::Auto, ProofMode::On, ProofMode::Off]),
        probe in probe(),
        deadline_seconds in 1_u32..=3600,
        failures in 1_u32..=100,
    ) -> Routing {
        let ignores_secret = mode == RoutingMode::Gateway || (mode == RoutingMode::Auto && gateway.is_some());
        Routing {
            base_domain,
            mode,
            home_namespace,
            gateway,
            ingress_class,
            ingress_tls_secret: ingress_tls_secret.filter(|_| !ignores_secret),
            public_url,
            proof,
            probe,
            deadline_seconds,
            failures,
        }
    }
}

fn gateway() -> impl Strategy<Value = ParentGateway> {
    ("[a-z0-9]{1,5}(\\.[a-z0-9]{1,3})?", "[a-z0-9]{1,5}", option::of("[a-z0-9]{1,5}"))
        .prop_map(|(name, namespace, listener)| ParentGateway { name, namespace, listener })
}

fn scheme() -> impl Strategy<Value = Scheme> {
    select(vec![Scheme::Http, Scheme::Https])
}

fn probe() -> impl Strategy<Value = ProbeRouting> {
    let by_number = (any::<IpAddr>(), option::of(1_u16..))
        .prop_map(|(address, port)| ProbeAddress { host: ProbeHost::Address(address), port });
    let by_name = ("[a-z0-9]{1,5}\\.[a-z]{1,3}", 1_u16..)
        .prop_map(|(name, port)| ProbeAddress { host: ProbeHost::Name(name), port: Some(port) });
    let certificates = vec(select(CERTIFICATES.to_vec()), 1..3);
    let ca_bundle = ("(# [ -~]{0,9}\n)?", certificates).prop_map(|(comment, blocks)| comment + &blocks.concat());
    (option::of(prop_oneof![by_number, by_name]), option::of(scheme()), option::of(ca_bundle)).prop_map(
        |(address, scheme, ca_bundle)| ProbeRouting {
            address,
            scheme,
            ca_bundle: ca_bundle.filter(|_| scheme != Some(Scheme::Http)),
        },
    )
}

fn network() -> impl Strategy<Value = Network> {
    let v4 = (any::<u32>(), 1_u32..=32).prop_map(|(bits, prefix)| {
        let shift = 32 - prefix;
        format!("{}/{prefix}", Ipv4Addr::from_bits(bits >> shift << shift))
    });
    let v6 = (any::<u128>(), 1_u32..=128).prop_map(|(bits, prefix)| {
        let shift = 128 - prefix;
        format!("{}/{prefix}", Ipv6Addr::from_bits(bits >> shift << shift))
    });
    (any::<bool>(), vec("[a-z0-9]{1,5}", 0..3), vec(prop_oneof![v4, v6], 0..4)).prop_map(
        |(is_manual, data_plane_namespaces, blocked)| Network {
            mode: if is_manual { NetworkMode::Manual } else { NetworkMode::Managed },
            data_plane_namespaces,
            blocked,
        },
    )
}

fn bodies() -> impl Strategy<Value = Bodies> {
    (any::<bool>(), "/b/[a-z0-9~.]{0,3}x", "[1-9]{1,3}Mi", 1_u64.., 1..=i64::from(i32::MAX), "[a-z0-9~.]{9}").prop_map(
        |(enabled, path, size, max_entries, deadline_seconds, audience)| Bodies {
            enabled,
            path,
            size: Quantity::constant(&size),
            max_entries,
            deadline_seconds,
            audience,
            ..Bodies::default()
        },
    )
}
