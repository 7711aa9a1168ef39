use super::*;

use crate::probe::head::Looks;

type Answered = Result<Answer, Unanswered>;

const UNPROVED: Option<Result<Identity, Failure>> = Some(Ok(Identity::Unproved));
const PROVED: Option<Result<Identity, Failure>> = Some(Ok(Identity::Proved));

#[test]
fn with_a_proof_it_takes_the_proof_and_for_5xx_the_pods_own_word() {
    let refused = Err(Unanswered::Connect(Closed::Refused));
    for (session, pod, expected) in [
        (proved(200), None, PROVED),
        (proved(101), None, PROVED),
        (proved(302), None, PROVED),
        (proved(404), None, PROVED),
        (proved(499), None, PROVED),
        (plain(200), None, Some(Err(Failure::NotRouted(200)))),
        (plain(404), None, Some(Err(Failure::NotRouted(404)))),
        (plain(503), None, Some(Err(Failure::NotRouted(503)))),
        (proved(503), Some(plain(503)), PROVED),
        (proved(500), Some(plain(500)), PROVED),
        (proved(503), Some(plain(200)), Some(Err(Failure::BadGateway(503)))),
        (proved(503), Some(plain(500)), Some(Err(Failure::BadGateway(503)))),
        (proved(503), Some(refused), Some(Err(Failure::BadGateway(503)))),
        (proved(500), None, Some(Err(Failure::BadGateway(500)))),
        (proved(599), None, Some(Err(Failure::BadGateway(599)))),
        (proved(600), None, PROVED),
    ] {
        let heard = Heard { session, nobody: None, pod };
        assert_eq!(judge(&heard), expected, "{heard:?}");
    }
}

#[test]
fn without_a_proof_it_takes_a_difference() {
    let hung_up = Err(Unanswered::Ended);
    let no_certificate = Err(Unanswered::Tls("the gateway has no certificate for the host"));
    let not_routed = |status| Some(Err(Failure::NotRouted(status)));
    for (session, nobody, pod, expected) in [
        (plain(200), plain(404), None, UNPROVED),
        (plain(404), looking(404, "gateway"), None, UNPROVED),
        (plain(404), plain(404), None, not_routed(404)),
        (plain(200), plain(200), None, not_routed(200)),
        (looking(301, "a"), looking(301, "a"), None, not_routed(301)),
        (plain(503), plain(503), Some(plain(503)), not_routed(503)),
        (plain(200), hung_up.clone(), None, UNPROVED),
        (plain(200), no_certificate, None, UNPROVED),
        (plain(503), plain(404), Some(plain(200)), Some(Err(Failure::BadGateway(503)))),
        (plain(503), plain(404), Some(plain(503)), UNPROVED),
        (plain(503), hung_up, None, Some(Err(Failure::BadGateway(503)))),
    ] {
        let heard = Heard { session, nobody: Some(nobody), pod };
        assert_eq!(judge(&heard), expected, "{heard:?}");
    }
}

#[test]
fn a_gateway_that_is_gone_for_the_other_question_proves_no_difference() {
    for (unanswered, expected) in [
        (
            Unanswered::TimedOut,
            Some(Err(Failure::NoAnswer("does not answer in time; it may be waiting for the program"))),
        ),
        (Unanswered::Connect(Closed::Refused), Some(Err(Failure::NoAnswer("refuses the connection")))),
        (Unanswered::NotMade, None),
    ] {
        let heard = Heard { session: plain(200), nobody: Some(Err(unanswered)), pod: None };
        assert_eq!(judge(&heard), expected, "{unanswered:?}");
    }
}

#[test]
fn an_answer_that_did_not_come_is_told_for_what_it_was() {
    use Failure::{NoAnswer, TlsFailed};
    for (unanswered, expected) in [
        (Unanswered::Connect(Closed::Refused), NoAnswer("refuses the connection")),
        (Unanswered::Connect(Closed::TimedOut), NoAnswer("does not take the connection in time")),
        (Unanswered::Connect(Closed::Unreachable), NoAnswer("cannot be reached from the node")),
        (Unanswered::Unresolved, NoAnswer("has a name that cannot be resolved on the node")),
        (Unanswered::Tls("why"), TlsFailed("why")),
        (Unanswered::TimedOut, NoAnswer("does not answer in time; it may be waiting for the program")),
        (Unanswered::Ended, NoAnswer("closes the connection without an answer")),
        (Unanswered::Garbage, NoAnswer("answers with something that is not HTTP")),
        (Unanswered::TooLarge, NoAnswer("answers with more than 16 KiB of headers")),
    ] {
        for nobody in [None, Some(plain(404))] {
            let heard = Heard { session: Err(unanswered), nobody, pod: None };
            assert_eq!(judge(&heard), Some(Err(expected.clone())));
        }
    }
    assert_eq!(judge(&Heard { session: Err(Unanswered::NotMade), nobody: None, pod: None }), None);
}

#[test]
fn outcomes_are_counted_for_what_they_were() {
    for (session, nobody, expected) in [
        (proved(200), None, Outcome::Ok),
        (plain(200), None, Outcome::NotRouted),
        (proved(503), None, Outcome::BadGateway),
        (Err(Unanswered::Connect(Closed::Refused)), None, Outcome::Refused),
        (Err(Unanswered::Connect(Closed::TimedOut)), None, Outcome::TimedOut),
        (Err(Unanswered::Connect(Closed::Unreachable)), None, Outcome::Unreachable),
        (Err(Unanswered::TimedOut), None, Outcome::TimedOut),
        (Err(Unanswered::Ended), None, Outcome::NoAnswer),
        (Err(Unanswered::Tls("why")), None, Outcome::TlsFailed),
        (Err(Unanswered::Garbage), None, Outcome::Other),
        (Err(Unanswered::NotMade), None, Outcome::Other),
        (plain(200), Some(Err(Unanswered::TimedOut)), Outcome::TimedOut),
        (plain(200), Some(Err(Unanswered::NotMade)), Outcome::Other),
        (plain(200), Some(Err(Unanswered::Ended)), Outcome::Ok),
    ] {
        let heard = Heard { session, nobody, pod: None };
        assert_eq!(outcome(&heard, judge(&heard).as_ref()), expected, "{heard:?}");
    }
}

#[test]
fn the_pod_is_asked_only_where_its_word_counts() {
    assert!(asks_pod(&proved(500), true));
    assert!(asks_pod(&plain(503), false));
    assert!(!asks_pod(&plain(503), true), "somebody else's 503");
    assert!(!asks_pod(&proved(200), true));
    assert!(!asks_pod(&plain(404), false));
    assert!(!asks_pod(&Err(Unanswered::TimedOut), true));
}

#[expect(clippy::unnecessary_wraps, reason = "as it is heard")]
fn plain(status: u16) -> Answered {
    Ok(Answer { status, proved: false, looks: Looks::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "as it is heard")]
fn proved(status: u16) -> Answered {
    Ok(Answer { status, proved: true, looks: Looks::default() })
}

#[expect(clippy::unnecessary_wraps, reason = "as it is heard")]
fn looking(status: u16, server: &'static str) -> Answered {
    Ok(Answer { status, proved: false, looks: Looks::of_server(server) })
}
