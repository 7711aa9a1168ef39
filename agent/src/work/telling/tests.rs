use cofferdam_model::endpoints::Endpoints;

use super::*;
use crate::desired::testing::session;
use crate::work::testing::Api;

fn report_of(status: &str) -> Report {
    let condition = |type_: &str| Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "R".to_owned(),
        message: "m".to_owned(),
    };
    Report {
        conditions: vec![condition(keys::ROUTE_REACHABLE)],
        endpoints: Endpoints::new("3000/tcp".to_owned(), Vec::new()),
    }
}

fn told_of(report: &Report) -> Told {
    Told { conditions: report.conditions.clone(), endpoints: Some(report.endpoints.to_string()) }
}

#[tokio::test]
async fn a_status_that_flaps_is_written_slower_and_what_waits_has_its_moment() {
    let api = Api::default();
    let (crew, mut teller, session) = (api.crew(), Teller::default(), session("3000"));
    let (up, down) = (report_of("True"), report_of("False"));
    for _ in 0..100 {
        for (told, report) in [(&down, &up), (&up, &down)] {
            teller.write(&crew, &session, &told_of(told), report).await;
        }
    }
    let written = api.asked().len();
    assert!(written >= usize::try_from(FREE).unwrap_or_default(), "a start is told at once: {written}");
    assert!(written < 100, "{written} writes of 200 flaps");
    let moment = teller.write(&crew, &session, &told_of(&up), &down).await;
    assert!(moment.is_some_and(|moment| moment <= Instant::now() + LONGEST_WAIT), "{moment:?}");
    // What flapped back is no write, and nothing waits.
    assert_eq!(teller.write(&crew, &session, &told_of(&up), &up).await, None);
}
