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
    use cofferdam_model::endpoints::Endpoints;
    use prometheus::Registry;

    use super::*;
    use crate::desired::testing::session;
    use crate::report::Condition;
    use crate::session::Session;
    use crate::work::testing::seen;

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
}
