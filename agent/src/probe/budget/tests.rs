use std::sync::Arc;

use super::*;

#[test]
fn a_bucket_holds_one_second_and_fills_again() {
    let begun = Instant::now();
    let mut bucket = Bucket::new(10.0, begun);
    for _ in 0..10 {
        assert_eq!(bucket.take(begun, Urgency::Steady, 1.0, false), Ok(()));
    }
    assert_eq!(bucket.take(begun, Urgency::New, 1.0, false), Err(Duration::from_millis(100)));
    assert_eq!(bucket.take(begun, Urgency::New, 2.0, false), Err(Duration::from_millis(200)));
    assert_eq!(bucket.take(begun + Duration::from_millis(100), Urgency::New, 1.0, false), Ok(()));
    let later = begun + Duration::from_hours(1);
    for _ in 0..10 {
        assert_eq!(bucket.take(later, Urgency::New, 1.0, false), Ok(()));
    }
    assert!(bucket.take(later, Urgency::New, 1.0, false).is_err(), "an hour's are not kept");
}

#[test]
fn new_ones_go_first_and_every_fourth_turn_is_for_the_steady() {
    let now = Instant::now();
    let mut bucket = Bucket::new(100.0, now);
    let mut order = String::new();
    for _ in 0..8 {
        // Both wait; who asks first is chance.
        if bucket.take(now, Urgency::Steady, 1.0, true).is_ok() {
            order.push('s');
        } else {
            assert_eq!(bucket.take(now, Urgency::New, 1.0, true), Ok(()));
            order.push('n');
        }
    }
    assert_eq!(order, "nnnsnnns");
}

#[test]
fn two_questions_are_possible_with_one_a_second() {
    let begun = Instant::now();
    let mut bucket = Bucket::new(1.0, begun);
    assert_eq!(bucket.take(begun, Urgency::New, 2.0, false), Err(Duration::from_secs(1)));
    assert_eq!(bucket.take(begun + Duration::from_secs(1), Urgency::New, 2.0, false), Ok(()));
}

#[test]
fn steady_probes_are_repeated_less_often_where_there_are_many() {
    let budget = Budget::new(200);
    assert_eq!(budget.interval(), STEADY);
    let some = budget.enlist(800);
    assert_eq!(budget.interval(), STEADY);
    let more = budget.enlist(7200);
    assert_eq!(budget.interval(), Duration::from_secs(50));
    drop(more);
    drop(some);
    assert_eq!(budget.interval(), STEADY);
    assert_eq!(Budget::new(0).limit(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_more_turns_than_the_limit_allows() {
    let budget = Arc::new(Budget::new(100));
    let begun = Instant::now();
    let turns = (0..1000).map(|index| {
        let budget = Arc::clone(&budget);
        tokio::spawn(async move {
            let urgency = if index % 2 == 0 { Urgency::New } else { Urgency::Steady };
            drop(budget.turn(Kind::Port, urgency, 1).await);
        })
    });
    for turn in turns.collect::<Vec<_>>() {
        turn.await.unwrap();
    }
    let seconds = begun.elapsed().as_secs_f64();
    assert!((9.0..10.0).contains(&seconds), "{seconds} s: a second's worth at once, then 100 a second");
}

#[tokio::test(start_paused = true)]
async fn a_new_session_does_not_wait_behind_the_steady_ones() {
    let budget = Arc::new(Budget::new(10));
    let steady = (0..500).map(|_| {
        let budget = Arc::clone(&budget);
        tokio::spawn(async move { drop(budget.turn(Kind::Address, Urgency::Steady, 1).await) })
    });
    let steady: Vec<_> = steady.collect();
    // All of them wait, for 49 s.
    tokio::task::yield_now().await;
    let turn = budget.turn(Kind::Address, Urgency::New, 1).await;
    assert!(turn.waited <= Duration::from_secs(1), "{:?}", turn.waited);
    assert!(steady.iter().any(|steady| !steady.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn those_that_hang_hold_up_their_own_lane_only() {
    let budget = Budget::new(1_000);
    let mut held = Vec::new();
    for _ in 0..PORTS[0] {
        held.push(budget.turn(Kind::Port, Urgency::New, 1).await);
    }
    for (kind, urgency) in
        [(Kind::Port, Urgency::Steady), (Kind::Address, Urgency::New), (Kind::Address, Urgency::Steady)]
    {
        drop(budget.turn(kind, urgency, 1).await);
    }
    let mut next = Box::pin(budget.turn(Kind::Port, Urgency::New, 1));
    let waits = tokio::time::timeout(Duration::from_mins(1), &mut next).await;
    assert!(waits.is_err(), "{waits:?}");
    held.pop();
    next.await;
    assert_eq!(PORTS.iter().chain(&ADDRESSES).sum::<usize>(), 64);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_leaves_nothing_behind() {
    let budget = Budget::new(1);
    drop(budget.turn(Kind::Port, Urgency::New, 1).await);
    let waits = tokio::time::timeout(Duration::from_millis(1), budget.turn(Kind::Port, Urgency::New, 1)).await;
    assert!(waits.is_err());
    assert_eq!(budget.waiting[Urgency::New as usize].load(Ordering::Relaxed), 0);
    drop(budget.turn(Kind::Port, Urgency::Steady, 1).await);
}
