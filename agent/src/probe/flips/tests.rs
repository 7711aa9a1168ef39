use super::*;

type Port = Flips<(), &'static str>;

const FAILURES: u32 = 3;

#[test]
fn one_success_is_enough() {
    let (mut flips, now) = (Port::new(None), Instant::now());
    assert!(flips.saw(now, FAILURES, None, Ok(())));
    assert_eq!(flips.verdict(), Some(&Ok(())));
    assert!(!flips.saw(now, FAILURES, None, Ok(())), "that was known");
}

#[test]
fn a_first_verdict_that_is_bad_takes_failures_and_the_grace() {
    let (mut flips, begun) = (Port::new(None), Instant::now());
    assert!(!flips.saw(begun, FAILURES, None, Err("refused")));
    assert!(!flips.saw(begun + GRACE, FAILURES, None, Err("refused")), "two failures are no verdict");
    assert!(flips.saw(begun + GRACE, FAILURES, None, Err("refused")));
    assert_eq!(flips.verdict(), Some(&Err("refused")));

    let mut flips = Port::new(None);
    for _ in 0..20 {
        assert!(!flips.saw(begun, FAILURES, None, Err("refused")));
    }
    let almost = GRACE.checked_sub(Duration::from_millis(1)).unwrap();
    assert!(!flips.saw(begun + almost, FAILURES, None, Err("refused")), "the grace is not over");
    assert_eq!(flips.verdict(), None);
    let mut takes_turns = flips.clone();
    assert!(flips.saw(begun + GRACE, FAILURES, None, Err("refused")));
    for reason in ["timed out", "refused"] {
        assert!(!takes_turns.saw(begun + GRACE, FAILURES, None, Err(reason)), "not so many in a row");
    }
    assert!(takes_turns.saw(begun + GRACE, FAILURES, None, Err("timed out")), "whatever the reasons are");
    assert_eq!(takes_turns.verdict(), Some(&Err("timed out")));
}

/// What is seen again and again while it is a matter of course, and then is none: by what there was before, what comes of it
/// at once, and what once the grace is over.
#[test]
fn what_is_a_matter_of_course_is_no_verdict_keeps_none_and_has_its_grace_afterwards() {
    for (before, course, at_last) in [
        (None, None, Some(Err("refused"))),
        // Somebody listened there.
        (Some(Ok(())), Some(Err("refused")), Some(Err("refused"))),
        // That is over.
        (Some(Err("not routed")), None, Some(Err("refused"))),
    ] {
        let (mut flips, begun) = (Port::new(before), Instant::now());
        for times in 1..20 {
            let now = begun + SOON * times;
            flips.saw(now, FAILURES, Some(now), Err("refused"));
            let expected = if times < FAILURES { before } else { course };
            assert_eq!((flips.verdict(), flips.so_far()), (expected.as_ref(), None), "{before:?}, {times} times");
        }
        // Another one that is none of it needs its own number.
        let mut other = flips.clone();
        let since = begun + SOON * 20;
        assert!(!other.saw(since, FAILURES, None, Err("not routed")), "{before:?}");
        assert_eq!(other.verdict(), course.as_ref());
        for passed in 0..GRACE.as_secs() {
            flips.saw(since + Duration::from_secs(passed), FAILURES, Some(since), Err("refused"));
            assert_eq!(flips.verdict(), course.as_ref(), "{before:?}, {passed} s");
        }
        flips.saw(since + GRACE, FAILURES, Some(since), Err("refused"));
        assert_eq!(flips.verdict(), at_last.as_ref(), "{before:?}");
    }
}

#[test]
fn what_is_found_before_a_verdict_is_told_once_it_stays_and_not_of_a_program_that_begins_soon() {
    let (mut flips, begun) = (Port::new(None), Instant::now());
    for _ in 0..20 {
        flips.saw(begun, FAILURES, None, Err("refused"));
    }
    assert_eq!(flips.so_far(), None, "it may begin any moment");
    flips.saw(begun + SOON, FAILURES, None, Err("refused"));
    assert_eq!(flips.so_far(), Some(&"refused"));
    for _ in 1..FAILURES {
        flips.saw(begun + SOON, FAILURES, None, Err("timed out"));
        assert_eq!(flips.so_far(), Some(&"refused"), "kinds that take turns are not told again and again");
    }
    flips.saw(begun + SOON, FAILURES, None, Err("timed out"));
    assert_eq!(flips.so_far(), Some(&"timed out"));
    assert!(flips.saw(begun + GRACE, FAILURES, None, Err("timed out")));
    assert_eq!(flips.so_far(), None, "that is a verdict now");
}

#[test]
fn what_somebody_has_waited_for_before_is_not_waited_for_again() {
    for before in [None, Some(Err("refused"))] {
        let (mut flips, now) = (Port::new(before).waited_for(true), Instant::now());
        for times in 1..=2 * FAILURES {
            flips.saw(now, FAILURES, Some(now), Err("refused"));
            let expected = if times < FAILURES { before } else { Some(Err("refused")) };
            assert_eq!(flips.verdict(), expected.as_ref(), "{before:?}, {times} times");
        }
        assert!(flips.saw(now, FAILURES, None, Ok(())));
    }
}

#[test]
fn d22_a_verdict_is_never_the_last_one() {
    let (mut flips, now) = (Port::new(Some(Ok(()))), Instant::now());
    assert!(!flips.saw(now, FAILURES, None, Err("refused")));
    assert!(!flips.saw(now, FAILURES, None, Err("refused")));
    assert!(!flips.saw(now, FAILURES, None, Ok(())), "not so many in a row");
    assert!(!flips.saw(now, FAILURES, None, Err("refused")));
    assert!(!flips.saw(now, FAILURES, None, Err("refused")));
    assert!(flips.saw(now, FAILURES, None, Err("refused")), "no grace for what was reachable");
    assert!(flips.saw(now, FAILURES, None, Ok(())));
    assert_eq!(flips.verdict(), Some(&Ok(())));
}

#[test]
fn b153_another_reason_is_told_once_it_stays() {
    let (mut flips, now) = (Port::new(Some(Ok(()))), Instant::now());
    for _ in 0..FAILURES {
        flips.saw(now, FAILURES, None, Err("refused"));
    }
    for _ in 0..10 {
        assert!(!flips.saw(now, FAILURES, None, Err("timed out")));
        assert!(!flips.saw(now, FAILURES, None, Err("refused")));
    }
    assert!(!flips.saw(now, FAILURES, None, Err("timed out")));
    assert!(!flips.saw(now, FAILURES, None, Err("timed out")));
    assert!(flips.saw(now, FAILURES, None, Err("timed out")));
    assert_eq!(flips.verdict(), Some(&Err("timed out")));
    assert!(!flips.saw(now, FAILURES, None, Err("timed out")));
}

#[test]
fn one_failure_may_be_enough_too() {
    for failures in [0, 1] {
        let mut flips = Port::new(Some(Ok(())));
        assert!(flips.saw(Instant::now(), failures, None, Err("refused")), "{failures}");
    }
}

#[test]
fn who_answers_is_part_of_the_verdict() {
    let mut flips = Flips::<&str, ()>::new(Some(Ok("unproved")));
    assert!(flips.saw(Instant::now(), FAILURES, None, Ok("proved")));
    assert_eq!(flips.verdict(), Some(&Ok("proved")));
}
