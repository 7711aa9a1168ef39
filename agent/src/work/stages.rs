//! How long each stage of a start took. Nothing is observed of a stage that a pod had passed when the agent first saw it.

use std::time::{Duration, Instant};

use crate::metrics::{Metrics, Stage};
use crate::reason::{ConditionType, Reason, Status};
use crate::report::Report;
use crate::world::{Snapshot, Start};

/// The start of one session, by this agent's own clock.
#[derive(Debug, Default)]
pub(super) struct Stages {
    first: Option<Start>,
    has_body: Option<Instant>,
    addressed: Option<Instant>,
    published: Option<Instant>,
    is_running: bool,
    is_programmed: bool,
    is_reachable: bool,
}

impl Stages {
    /// Looks at what the pod has come to.
    pub(super) fn see(&mut self, snapshot: &Snapshot, metrics: &Metrics) {
        let (now, progress) = (Instant::now(), snapshot.seen.progress);
        let first = *self.first.get_or_insert_with(|| {
            let Start { progress, is_whole, .. } = snapshot.start;
            if let (Some(created), Some(scheduled), true) = (progress.created, progress.scheduled, is_whole) {
                let seconds = u64::try_from(scheduled - created).unwrap_or_default();
                metrics.stage(Stage::Scheduled, Duration::from_secs(seconds));
            }
            snapshot.start
        });
        self.addressed = snapshot.start.addressed;
        if progress.has_body && self.has_body.is_none() {
            self.has_body = Some(now);
            if !first.progress.has_body {
                metrics.stage(Stage::Body, now - first.at);
            }
        }
        if progress.is_running && !std::mem::replace(&mut self.is_running, true) && !first.progress.is_running {
            metrics.stage(Stage::Running, now - self.has_body.unwrap_or(first.at));
        }
    }

    /// All its objects are there, as the API server has just answered.
    pub(super) fn published(&mut self, metrics: &Metrics) {
        if let (Some(addressed), None, true) = (self.addressed, self.published, self.is_start()) {
            let took = addressed.elapsed();
            metrics.published(took);
            metrics.stage(Stage::Published, took);
        }
        self.published.get_or_insert_with(Instant::now);
    }

    /// Looks at what is told of it.
    pub(super) fn told(&mut self, report: &Report, metrics: &Metrics) {
        let Some(published) = self.published.filter(|_| self.is_start()) else { return };
        let holds = |type_: ConditionType| {
            let mut reasons = report.conditions.iter().filter(|condition| condition.type_ == type_).map(|it| it.reason);
            reasons.any(|reason| reason.status() == Status::True && reason != Reason::NothingToRoute)
        };
        if holds(ConditionType::RouteProgrammed) && !std::mem::replace(&mut self.is_programmed, true) {
            metrics.stage(Stage::Programmed, published.elapsed());
        }
        if holds(ConditionType::RouteReachable) && !std::mem::replace(&mut self.is_reachable, true) {
            metrics.stage(Stage::Reachable, published.elapsed());
        }
    }

    fn is_start(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.is_whole)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cofferdam_model::endpoints::Endpoints;
    use prometheus::Registry;
    use prometheus::proto::Metric;

    use super::*;
    use crate::desired::testing::session;
    use crate::report::Condition;
    use crate::session::{Phase, Progress, Seen, Session};
    use crate::work::testing::{Api, seen};

    #[test]
    fn the_stages_of_routes_end_when_a_route_holds_and_not_where_there_is_none() {
        let registry = Registry::new();
        let metrics = Metrics::register(&registry, "digest", false).unwrap();
        let start = Start::new(&seen(&Session { address: None, ..session("3000") }));
        let mut stages = Stages { first: Some(start), published: Some(start.at), ..Stages::default() };
        let mut ended_with = |type_, reason| {
            let conditions = vec![Condition { type_, reason, message: String::new() }];
            stages.told(&Report { conditions, endpoints: Endpoints::new(String::new(), Vec::new()) }, &metrics);
            let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
            [Stage::Programmed, Stage::Reachable]
                .map(|stage| text.contains(&format!("_count{{stage=\"{}\"}} 1", stage.as_str())))
        };
        assert_eq!(ended_with(ConditionType::RouteProgrammed, Reason::NothingToRoute), [false, false]);
        assert_eq!(ended_with(ConditionType::RouteReachable, Reason::NotRouted), [false, false]);
        assert_eq!(ended_with(ConditionType::PortsReachable, Reason::AllReachable), [false, false]);
        assert_eq!(ended_with(ConditionType::RouteProgrammed, Reason::AddressAssigned), [true, false]);
        assert_eq!(ended_with(ConditionType::RouteReachable, Reason::Reachable), [true, true]);
        assert_eq!(ended_with(ConditionType::RouteReachable, Reason::Reachable), [true, true], "once for each start");
    }

    /// A session's start, and how often each stage of it was observed.
    struct Scene {
        registry: Registry,
        metrics: Metrics,
        stages: Stages,
        snapshot: Snapshot,
    }

    impl Scene {
        /// It is first seen so far, with an address or without.
        fn first_seen(progress: Progress, has_address: bool) -> Self {
            let registry = Registry::new();
            let metrics = Metrics::register(&registry, "digest", false).unwrap();
            let session = session("3000");
            let address = session.address.filter(|_| has_address);
            let session = Session { address, phase: Phase::Starting, ..session };
            let snapshot = Api::default().snapshot(&session);
            let mut scene = Self { registry, metrics, stages: Stages::default(), snapshot };
            scene.snapshot.start = Start::new(&Seen { progress, ..seen(&session) });
            scene.comes_to(progress);
            scene
        }

        fn comes_to(&mut self, progress: Progress) {
            Arc::make_mut(&mut self.snapshot.seen).progress = progress;
            self.stages.see(&self.snapshot, &self.metrics);
        }

        /// It has an address, its objects are made, and its address is told to work.
        fn works(&mut self) {
            self.snapshot.start.addressed.get_or_insert_with(Instant::now);
            self.stages.see(&self.snapshot, &self.metrics);
            self.stages.published(&self.metrics);
            let condition = |(type_, reason)| Condition { type_, reason, message: String::new() };
            let conditions = [
                (ConditionType::RouteProgrammed, Reason::Programmed),
                (ConditionType::RouteReachable, Reason::Reachable),
            ];
            let conditions = conditions.map(condition).into();
            let report = Report { conditions, endpoints: Endpoints::new(String::new(), Vec::new()) };
            self.stages.told(&report, &self.metrics);
        }

        /// The stages that were observed, as often as they were.
        fn observed(&self) -> String {
            let families = self.registry.gather();
            let family = families.iter().find(|family| family.name() == "startup_seconds").unwrap();
            let all = Stage::ALL.into_iter().flat_map(|stage| {
                let is_its = |metric: &&Metric| metric.get_label()[0].value() == stage.as_str();
                let times = family.get_metric().iter().find(is_its).unwrap().get_histogram().get_sample_count();
                std::iter::repeat_n(stage.as_str(), usize::try_from(times).unwrap())
            });
            all.collect::<Vec<_>>().join(" ")
        }
    }

    const BOUND: Progress =
        Progress { created: Some(100), scheduled: Some(103), has_body: false, is_running: false, ended: None };
    const FILLED: Progress = Progress { has_body: true, ..BOUND };
    const RUNNING: Progress = Progress { is_running: true, ..FILLED };

    #[test]
    fn each_stage_of_a_start_is_observed_when_it_is_over_and_once() {
        let mut scene = Scene::first_seen(BOUND, false);
        assert_eq!(scene.observed(), "scheduled");
        for _ in 0..2 {
            scene.comes_to(FILLED);
            assert_eq!(scene.observed(), "scheduled body");
        }
        for _ in 0..2 {
            scene.comes_to(RUNNING);
            assert_eq!(scene.observed(), "scheduled body running");
        }
        for _ in 0..2 {
            scene.works();
            assert_eq!(scene.observed(), "scheduled body running published programmed reachable");
        }
        // A container of it began anew.
        scene.comes_to(FILLED);
        scene.comes_to(RUNNING);
        assert_eq!(scene.observed(), "scheduled body running published programmed reachable");
    }

    #[test]
    fn nothing_is_observed_of_a_stage_that_a_pod_had_passed_when_it_was_first_seen() {
        for (first, has_address, expected) in [
            (BOUND, false, "scheduled body running published programmed reachable"),
            (FILLED, false, "scheduled running published programmed reachable"),
            (RUNNING, false, "scheduled published programmed reachable"),
            (BOUND, true, "body running"),
            (FILLED, true, "running"),
            (RUNNING, true, ""),
        ] {
            let mut scene = Scene::first_seen(first, has_address);
            scene.comes_to(FILLED);
            scene.comes_to(RUNNING);
            scene.works();
            assert_eq!(scene.observed(), expected, "{first:?} {has_address}");
        }
    }

    #[test]
    fn a_body_that_comes_and_all_that_runs_at_one_look_are_two_stages() {
        let mut scene = Scene::first_seen(BOUND, false);
        scene.comes_to(RUNNING);
        assert_eq!(scene.observed(), "scheduled body running");
    }
}
