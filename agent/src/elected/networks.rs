//! Which namespaces get the `NetworkPolicy`, and which lose it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cofferdam_kubernetes::Backoff;
use cofferdam_model::policy::{NetworkMode, Policy};
use serde_json::Value;
use tokio::time::Instant;

use crate::network_policy::{Live, network_policy};
use crate::session::Membership;

/// A namespace keeps its policy for so long after its last session: the next one need not wait for it.
const KEPT: Duration = Duration::from_mins(10);

/// After a try, about how long before the next in the same namespace; longer each time that did not help. Somebody who
/// changes the policy as fast as it is restored is not answered for ever.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// What matters of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Namespace {
    /// Which of its pods are sessions.
    pub(super) membership: Membership,
    /// It is being deleted: nothing can be made in it.
    pub(super) is_leaving: bool,
}

/// Whether a namespace has sessions: one that says nothing has, where one of its pods has the label of a session. Elsewhere
/// the label says nothing: pods that were sessions keep it.
pub(super) const fn has_sessions(membership: Membership, has_labelled_pod: bool) -> bool {
    match membership {
        Membership::Enforced => true,
        Membership::Exempt => false,
        Membership::Other => has_labelled_pod,
    }
}

/// What there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) namespaces: &'a BTreeMap<String, Namespace>,
    /// Namespaces in which a pod has the label of a session.
    pub(super) with_sessions: &'a BTreeSet<&'a str>,
    /// Policies of our name, by namespace, as they are.
    pub(super) policies: &'a BTreeMap<String, Live>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A server-side apply.
    Apply { namespace: String, policy: Value },
    /// Delete that very object, if the namespace has no session then either.
    Delete { namespace: String, uid: String },
    /// Say that a policy of that name is somebody else's, and left as it is.
    TellForeign { namespace: String },
}

/// What has to be remembered between two looks.
#[derive(Debug, Default)]
pub(super) struct Memory {
    empty: BTreeMap<String, Instant>,
    foreign: BTreeSet<String>,
    tried: BTreeMap<String, Tried>,
}

#[derive(Clone, Copy, Debug)]
struct Tried {
    not_before: Instant,
    in_vain: Backoff,
}

impl Memory {
    /// What is to be done now. Each step counts as tried, whether or not it succeeds. `system` is Cofferdam's own namespace.
    pub(super) fn due(&mut self, view: View<'_>, policy: &Policy, system: &str, now: Instant) -> Vec<Step> {
        if policy.network().mode == NetworkMode::Manual {
            return Vec::new();
        }
        // Once for all namespaces: there may be thousands, and this is looked at every second.
        let [labelled, enforced] = [false, true].map(|is_enforced| {
            let wanted = network_policy(is_enforced, policy.network(), system);
            (Live::read(&wanted), wanted)
        });
        let is_exempt = |namespace: &str| namespace == system || policy.exempts(namespace);
        let mut steps = Vec::new();
        let (mut empty, mut foreign) = (BTreeMap::new(), BTreeSet::new());
        for (name, namespace) in
            view.namespaces.iter().filter(|(name, namespace)| !namespace.is_leaving && !is_exempt(name))
        {
            let live = view.policies.get(name);
            let is_ours = live.is_none_or(|live| live.is_ours);
            let membership = namespace.membership;
            let has_sessions = has_sessions(membership, view.with_sessions.contains(name.as_str()));
            if has_sessions && !is_ours {
                // An admission policy keeps agents from what is not theirs.
                if foreign.insert(name.clone()) && !self.foreign.contains(name) {
                    steps.push(Step::TellForeign { namespace: name.clone() });
                }
            } else if has_sessions {
                let is_enforced = membership == Membership::Enforced;
                let (wanted, object) = if is_enforced { &enforced } else { &labelled };
                let is_fine = live.is_some_and(|live| live.is_as(wanted));
                if self.is_due(name, is_fine, now) {
                    let mut policy = object.clone();
                    policy["metadata"]["namespace"] = name.clone().into();
                    steps.push(Step::Apply { namespace: name.clone(), policy });
                }
            } else if let Some(live) = live.filter(|_| is_ours) {
                let since = self.empty.get(name).copied().unwrap_or(now);
                empty.insert(name.clone(), since);
                if now.duration_since(since) >= KEPT && self.is_due(name, false, now) {
                    steps.push(Step::Delete { namespace: name.clone(), uid: live.uid.clone() });
                }
            }
        }
        (self.empty, self.foreign) = (empty, foreign);
        self.tried.retain(|name, _| view.namespaces.contains_key(name));
        steps
    }

    /// Whether something is to be done in that namespace, and not too soon after the last time.
    fn is_due(&mut self, namespace: &str, is_fine: bool, now: Instant) -> bool {
        let tried = self.tried.get(namespace).copied();
        if is_fine {
            // Only after a while of peace is it forgotten how often it was tried.
            if tried.is_some_and(|tried| now >= tried.not_before + LONGEST_PAUSE) {
                self.tried.remove(namespace);
            }
            return false;
        }
        if tried.is_some_and(|tried| now < tried.not_before) {
            return false;
        }
        let mut in_vain = tried.map_or(Backoff::new(PAUSE, LONGEST_PAUSE), |tried| tried.in_vain);
        self.tried.insert(namespace.to_owned(), Tried { not_before: now + in_vain.failed(), in_vain });
        true
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_model::keys::{AGENT, MANAGED_BY};
    use serde_json::json;

    use super::*;

    const SYSTEM: &str = "cofferdam-system";

    /// A cluster: `a!` is enforced, `a?` only wants to know, `a~` is being deleted, `a*` has a session.
    #[derive(Default)]
    struct Cluster {
        namespaces: BTreeMap<String, Namespace>,
        with_sessions: BTreeSet<&'static str>,
        policies: BTreeMap<String, Live>,
    }

    impl Cluster {
        fn set(&mut self, text: &'static str) -> &mut Self {
            (self.namespaces, self.with_sessions) = (BTreeMap::new(), BTreeSet::new());
            for word in text.split_whitespace() {
                let name = word.trim_end_matches(['!', '?', '~', '*']);
                let membership = match word {
                    _ if word.contains('!') => Membership::Enforced,
                    _ if word.contains('?') => Membership::Exempt,
                    _ => Membership::Other,
                };
                let namespace = Namespace { membership, is_leaving: word.contains('~') };
                self.namespaces.insert(name.to_owned(), namespace);
                if word.contains('*') {
                    self.with_sessions.insert(name);
                }
            }
            self
        }

        fn due(&self, memory: &mut Memory, now: Instant) -> Vec<Step> {
            let view =
                View { namespaces: &self.namespaces, with_sessions: &self.with_sessions, policies: &self.policies };
            memory.due(view, &Policy::built_in(), SYSTEM, now)
        }

        /// The API server does it.
        fn done(&mut self, steps: &[Step]) {
            for step in steps {
                match step {
                    Step::Apply { namespace, policy } => {
                        assert_eq!(policy["metadata"]["namespace"], namespace.as_str());
                        let mut live = policy.clone();
                        live["metadata"]["uid"] = json!(format!("uid-{namespace}"));
                        self.policies.insert(namespace.clone(), Live::read(&live));
                    }
                    Step::Delete { namespace, .. } => {
                        self.policies.remove(namespace);
                    }
                    Step::TellForeign { .. } => {}
                }
            }
        }
    }

    fn names(steps: &[Step]) -> String {
        let name = |step: &Step| match step {
            Step::Apply { namespace, .. } => namespace.clone(),
            Step::Delete { namespace, uid } => format!("-{namespace}/{uid}"),
            Step::TellForeign { namespace } => format!("?{namespace}"),
        };
        steps.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn whatever_has_sessions_gets_it_and_then_there_is_nothing_to_do() {
        let mut cluster = Cluster::default();
        cluster.set("a! b* c d!~ e*~ kube-system* cofferdam-system! f!* g?*");
        let (mut memory, now) = (Memory::default(), Instant::now());
        let steps = cluster.due(&mut memory, now);
        assert_eq!(names(&steps), "a b f");
        cluster.done(&steps);
        for after in [Duration::ZERO, PAUSE, LONGEST_PAUSE * 3, KEPT * 2] {
            assert_eq!(cluster.due(&mut memory, now + after), []);
        }
    }

    #[test]
    fn what_is_edited_or_deleted_comes_back_ever_more_slowly() {
        let mut cluster = Cluster::default();
        cluster.set("a!");
        let (mut memory, mut now) = (Memory::default(), Instant::now());
        let steps = cluster.due(&mut memory, now);
        cluster.done(&steps);
        // A while later, at once.
        now += KEPT;
        assert_eq!(cluster.due(&mut memory, now), []);
        for pause in [1, 2, 4, 8, 16, 32, 60, 60] {
            cluster.policies.clear();
            let steps = cluster.due(&mut memory, now);
            assert_eq!(names(&steps), "a");
            cluster.done(&steps);
            assert_eq!(cluster.due(&mut memory, now), []);
            let mut edited = Cluster { policies: cluster.policies.clone(), ..Cluster::default() };
            edited.set("a!");
            let another = json!({"metadata": {"labels": {MANAGED_BY: AGENT}}, "spec": {"egress": [{}]}});
            edited.policies.values_mut().for_each(|policy| *policy = Live::read(&another));
            // Half of a pause is chance.
            let pause = Duration::from_secs(pause);
            let too_early = now + pause / 2 - Duration::from_millis(1);
            assert_eq!(edited.due(&mut memory, too_early), [], "{pause:?}");
            now += pause;
        }
    }

    #[test]
    fn it_goes_ten_minutes_after_the_last_session_if_it_is_ours() {
        let mut cluster = Cluster::default();
        cluster.set("a* b* c*");
        let (mut memory, start) = (Memory::default(), Instant::now());
        let steps = cluster.due(&mut memory, start);
        cluster.done(&steps);
        let foreign = cluster.policies.get_mut("c").unwrap();
        foreign.is_ours = false;
        cluster.set("a b c");
        assert_eq!(cluster.due(&mut memory, start), []);
        // A session in between starts the wait again.
        let middle = start + KEPT / 2;
        cluster.set("a b* c");
        assert_eq!(cluster.due(&mut memory, middle), []);
        cluster.set("a b c");
        assert_eq!(cluster.due(&mut memory, middle), []);
        let steps = cluster.due(&mut memory, start + KEPT);
        assert_eq!(names(&steps), "-a/uid-a");
        cluster.done(&steps);
        let steps = cluster.due(&mut memory, middle + KEPT);
        assert_eq!(names(&steps), "-b/uid-b");
        cluster.done(&steps);
        assert_eq!(cluster.due(&mut memory, start + KEPT * 9), []);
    }

    #[test]
    fn a_namespace_that_becomes_enforced_has_all_its_pods_selected() {
        let mut cluster = Cluster::default();
        cluster.set("a*");
        let (mut memory, now) = (Memory::default(), Instant::now());
        let steps = cluster.due(&mut memory, now);
        cluster.done(&steps);
        cluster.set("a*!");
        let Some(Step::Apply { policy, .. }) = cluster.due(&mut memory, now + PAUSE).pop() else { panic!("no apply") };
        assert_eq!(policy["spec"]["podSelector"], json!({}));
    }

    #[test]
    fn what_is_somebody_elses_is_left_alone_and_told_once() {
        let mut cluster = Cluster::default();
        cluster.set("a!");
        let theirs = json!({"metadata": {"labels": {MANAGED_BY: "kustomize"}}, "spec": {}});
        cluster.policies.insert("a".to_owned(), Live::read(&theirs));
        let (mut memory, now) = (Memory::default(), Instant::now());
        assert_eq!(names(&cluster.due(&mut memory, now)), "?a");
        assert_eq!(cluster.due(&mut memory, now + KEPT), []);
        cluster.policies.clear();
        assert_eq!(names(&cluster.due(&mut memory, now + KEPT)), "a");
    }

    #[test]
    fn nothing_is_done_where_the_policies_are_kept_by_hand() {
        let mut cluster = Cluster::default();
        cluster.set("a! b*");
        let by_hand = Policy::parse("policy.yaml", "profiles: {default: {}}\nnetwork: {mode: manual}").unwrap();
        let view = View {
            namespaces: &cluster.namespaces,
            with_sessions: &cluster.with_sessions,
            policies: &cluster.policies,
        };
        assert_eq!(Memory::default().due(view, &by_hand, SYSTEM, Instant::now()), []);
    }
}
