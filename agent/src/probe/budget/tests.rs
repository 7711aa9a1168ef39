use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

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
    assert_eq!(Budget::new(0).limit, 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_more_turns_than_the_limit_allows() {
    let budget = Arc::new(Budget::new(100));
    let begun = Instant::now();
    let turns = (0..1000).map(|index| {
        let budget = Arc::clone(&budget);
        tokio::spawn(async move {
            let lane = if index % 2 == 0 { Lane::New } else { Lane::Steady };
            drop(budget.turn(Kind::Port, lane, 1).await);
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
        tokio::spawn(async move { drop(budget.turn(Kind::Address, Lane::Steady, 1).await) })
    });
    let steady: Vec<_> = steady.collect();
    // All of them wait, for 49 s.
    tokio::task::yield_now().await;
    let turn = budget.turn(Kind::Address, Lane::New, 1).await;
    assert!(turn.waited <= Duration::from_secs(1), "{:?}", turn.waited);
    assert!(steady.iter().any(|steady| !steady.is_finished()));
}

#[tokio::test(start_paused = true)]
async fn those_that_hang_hold_up_their_own_lane_only() {
    let budget = Budget::new(1_000);
    let mut held = Vec::new();
    for _ in 0..PORTS[0] {
        held.push(budget.turn(Kind::Port, Lane::New, 1).await);
    }
    let (ports, addresses) = ([Lane::Steady, Lane::Silent], [Lane::New, Lane::Steady, Lane::Silent]);
    let others = ports.map(|lane| (Kind::Port, lane)).into_iter().chain(addresses.map(|lane| (Kind::Address, lane)));
    for (kind, lane) in others {
        drop(budget.turn(kind, lane, 1).await);
    }
    let mut next = Box::pin(budget.turn(Kind::Port, Lane::New, 1));
    let waits = tokio::time::timeout(Duration::from_mins(1), &mut next).await;
    assert!(waits.is_err(), "{waits:?}");
    held.pop();
    next.await;
    assert_eq!(PORTS.iter().chain(&ADDRESSES).sum::<usize>(), 64);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_leaves_nothing_behind() {
    let budget = Budget::new(1);
    drop(budget.turn(Kind::Port, Lane::New, 1).await);
    let waits = tokio::time::timeout(Duration::from_millis(1), budget.turn(Kind::Port, Lane::New, 1)).await;
    assert!(waits.is_err());
    assert_eq!(budget.waiting[Urgency::New as usize].load(Ordering::Relaxed), 0);
    drop(budget.turn(Kind::Port, Lane::Steady, 1).await);
}

#[tokio::test(start_paused = true)]
async fn who_takes_long_makes_room_and_goes_on_or_is_given_up() {
    let budget = Budget::new(1_000);
    let slow = || sleep(PROMPT * 3);
    let turn = budget.turn(Kind::Port, Lane::Steady, 1).await;
    let mut goes_on = Box::pin(turn.make(slow()));
    assert!(timeout(PROMPT * 2, &mut goes_on).await.is_err());
    assert_eq!((budget.ports[1].available_permits(), budget.ports[2].available_permits()), (PORTS[1], PORTS[2] - 1));
    assert_eq!(goes_on.await, Some(()));
    let mut held = Vec::new();
    for _ in 0..PORTS[2] {
        held.push(budget.turn(Kind::Port, Lane::Silent, 1).await);
    }
    let turn = budget.turn(Kind::Port, Lane::Steady, 1).await;
    assert_eq!(turn.make(slow()).await, None, "no place is left for it");
    let turn = budget.turn(Kind::Port, Lane::Steady, 1).await;
    assert_eq!(turn.make(sleep(PROMPT / 2)).await, Some(()));
    let own = held.pop().map(|turn| turn.make(slow()));
    assert_eq!(own.unwrap().await, Some(()), "a place of its own is kept to the end");
}

/// Probes of one target, each of which takes so long, every 5 s and for so many times. The longest wait for a turn.
async fn probed(budget: Arc<Budget>, kind: Kind, answers_after: Duration, times: u32) -> Duration {
    let _enlisted = budget.enlist(1);
    let (mut lane, mut longest) = (Lane::New, Duration::ZERO);
    for _ in 0..times {
        let turn = budget.turn(kind, lane, 1).await;
        longest = longest.max(turn.waited);
        let within = Duration::from_secs(if kind == Kind::Port { 1 } else { 4 });
        let answer = turn.make(timeout(within, sleep(answers_after))).await;
        lane = if matches!(answer, Some(Ok(()))) { Lane::Steady } else { Lane::Silent };
        sleep(budget.interval()).await;
    }
    longest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn who_answers_has_its_turn_however_many_do_not(
        silent in 0_usize..600, answering in 1_usize..50, kind in prop_oneof![Just(Kind::Port), Just(Kind::Address)],
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let longest = runtime.block_on(async {
            let budget = Arc::new(Budget::new(400));
            let silent: Vec<_> = (0..silent)
                .map(|_| tokio::spawn(probed(Arc::clone(&budget), kind, Duration::MAX, u32::MAX)))
                .collect();
            // They are known for what they are: until then, each has held a place for a moment.
            sleep(PROMPT * 200).await;
            let answering = (0..answering).map(|_| probed(Arc::clone(&budget), kind, PROMPT / 10, 20));
            let longest = futures_util::future::join_all(answering).await;
            silent.iter().for_each(tokio::task::JoinHandle::abort);
            longest.into_iter().collect::<BTreeSet<_>>().pop_last()
        });
        prop_assert!(longest < Some(STEADY / 4), "{longest:?}");
    }
}
