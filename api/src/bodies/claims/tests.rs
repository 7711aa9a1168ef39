use std::sync::Arc;

use tokio::sync::Barrier;

use super::super::archive::Archive;
use super::super::testing::{archive_of, file_store, utf8};
use super::*;

const STAGED: SystemTime = SystemTime::UNIX_EPOCH;

fn pod(uid: &str) -> Redeemer {
    Redeemer { pod_uid: Some(uid.to_owned()) }
}

fn after(seconds: u64) -> SystemTime {
    STAGED + Duration::from_secs(seconds)
}

fn archive() -> Archive {
    archive_of(vec![utf8("app.yaml", "kind: App")])
}

#[test]
fn a_body_is_the_first_pods_until_it_has_it_or_its_time_is_over() {
    let standing = |claim: Option<(&str, u64)>, acknowledged| Standing {
        staged: STAGED,
        claim: claim.map(|(uid, at)| Claim { by: pod(uid), at: after(at) }),
        acknowledged,
    };
    for (claim, acknowledged, who, at, step, acknowledgement) in [
        (None, false, "a", 0, Ok(Step::Claim), Err(Refusal::Unclaimed)),
        (None, false, "a", 299, Ok(Step::Claim), Err(Refusal::Unclaimed)),
        (None, false, "a", 300, Err(Refusal::Expired), Err(Refusal::Expired)),
        (Some(("a", 299)), false, "a", 299, Ok(Step::Fetch), Ok(())),
        (Some(("a", 299)), false, "a", 598, Ok(Step::Fetch), Ok(())),
        (Some(("a", 299)), false, "a", 599, Err(Refusal::Expired), Err(Refusal::Expired)),
        (Some(("a", 299)), false, "b", 299, Err(Refusal::Claimed), Err(Refusal::Claimed)),
        (Some(("a", 299)), true, "a", 300, Err(Refusal::Acknowledged), Ok(())),
        (Some(("a", 299)), true, "b", 300, Err(Refusal::Claimed), Err(Refusal::Claimed)),
        (Some(("a", 299)), true, "a", 600, Err(Refusal::Expired), Err(Refusal::Expired)),
        // A clock that is behind the store's.
        (Some(("a", 299)), false, "a", 200, Ok(Step::Fetch), Ok(())),
    ] {
        let standing = standing(claim, acknowledged);
        let row = format!("{standing:?}, {who} after {at} s");
        assert_eq!(standing.step(&pod(who), after(at)), step, "{row}");
        assert_eq!(standing.acknowledgement(&pod(who), after(at)), acknowledgement, "{row}");
    }
    // Where the token is all that is known, whoever has it is the same; a pod is not.
    let by_token = Redeemer { pod_uid: None };
    let claimed = Standing { claim: Some(Claim { by: by_token.clone(), at: STAGED }), ..standing(None, false) };
    assert_eq!(claimed.step(&by_token, after(1)), Ok(Step::Fetch));
    assert_eq!(claimed.step(&pod("a"), after(1)), Err(Refusal::Claimed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_pods_that_race_through_several_processes_exactly_one_wins() {
    for _ in 0..10 {
        let directory = tempfile::tempdir().unwrap();
        let stores: Vec<_> = (0..2).map(|_| file_store(directory.path())).collect();
        stores[0].stage("abcdefghijkl", archive()).await.unwrap();
        let start = Arc::new(Barrier::new(24));
        let pods: Vec<_> = (0..24)
            .map(|number| {
                let (store, start) = (stores[number % 2].clone(), Arc::clone(&start));
                tokio::spawn(async move {
                    let record = store.record("abcdefghijkl").await.unwrap().unwrap();
                    // Each pod's container asks twice: a lost answer is no second pod.
                    let who = pod(&format!("uid-{}", number / 2));
                    start.wait().await;
                    let outcome = redeem(&store, "abcdefghijkl", &record, &who, SystemTime::now()).await;
                    (who, outcome.unwrap())
                })
            })
            .collect();
        let mut winners = Vec::new();
        for pod in pods {
            match pod.await.unwrap() {
                (who, Ok(())) => winners.push(who),
                (_, Err(refusal)) => assert_eq!(refusal, Refusal::Claimed),
            }
        }
        assert_eq!(winners.len(), 2, "{winners:?}");
        assert_eq!(winners[0], winners[1]);
    }
}

#[tokio::test]
async fn a_token_is_known_by_its_digest_and_an_unknown_session_by_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = file_store(directory.path());
    let token = store.stage("abcdefghijkl", archive()).await.unwrap();
    let found = find(&store, "abcdefghijkl", token.secret()).await.unwrap().unwrap();
    assert_eq!(found.sha256, archive().sha256());
    for (id, token, expected) in [
        ("abcdefghijkl", "", Refusal::Token),
        ("abcdefghijkl", &token.secret()[1..], Refusal::Token),
        ("abcdefghijkl", &token.digest().hex(), Refusal::Token),
        ("bbbbbbbbbbbb", token.secret(), Refusal::Unknown),
        ("bbbbbbbbbbbb", "", Refusal::Unknown),
        ("../abcdefghijkl", token.secret(), Refusal::Unknown),
        ("", token.secret(), Refusal::Unknown),
    ] {
        assert_eq!(find(&store, id, token).await.unwrap().unwrap_err(), expected, "{id} {token}");
    }
}
