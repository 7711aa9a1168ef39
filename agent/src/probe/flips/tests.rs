use super::*;

type Port = Flips<(), &'static str>;

const FAILURES: u32 = 3;

#[test]
fn one_success_is_enough() {
    let (mut flips, now) = (Port::new(None), Instant::now());
    assert!(flips.saw(now, FAILURES, Ok(())));
    assert_eq!(flips.verdict(), Some(&Ok(())));
    assert!(!flips.saw(now, FAILURES, Ok(())), "that was known");
}

#[test]
fn a_first_verdict_that_is_bad_takes_failures_and_the_grace() {
    let (mut flips, begun) = (Port::new(None), Instant::now());
    assert!(!flips.saw(begun, FAILURES, Err("refused")));
    assert!(!flips.saw(begun + GRACE, FAILURES, Err("refused")), "two failures are no verdict");
    assert!(flips.saw(begun + GRACE, FAILURES, Err("refused")));
    assert_eq!(flips.verdict(), Some(&Err("refused")));

    let mut flips = Port::new(None);
    for _ in 0..20 {
        assert!(!flips.saw(begun, FAILURES, Err("refused")));
    }
    let almost = GRACE.checked_sub(Duration::from_millis(1)).unwrap();
    assert!(!flips.saw(begun + almost, FAILURES, Err("refused")), "the grace is not over");
    assert_eq!(flips.verdict(), None);
    assert!(flips.saw(begun + GRACE, FAILURES, Err("timed out")), "whatever the reasons were");
    assert_eq!(flips.verdict(), Some(&Err("timed out")));
}

#[test]
fn what_is_found_before_a_verdict_is_told_once_it_stays_and_not_of_a_program_that_begins_soon() {
    let (mut flips, begun) = (Port::new(None), Instant::now());
    for _ in 0..20 {
        flips.saw(begun, FAILURES, Err("refused"));
    }
    assert_eq!(flips.so_far(), None, "it may begin any moment");
    flips.saw(begun + SOON, FAILURES, Err("refused"));
    assert_eq!(flips.so_far(), Some(&"refused"));
    for _ in 1..FAILURES {
        flips.saw(begun + SOON, FAILURES, Err("timed out"));
        assert_eq!(flips.so_far(), Some(&"refused"), "kinds that take turns are not told again and again");
    }
    flips.saw(begun + SOON, FAILURES, Err("timed out"));
    assert_eq!(flips.so_far(), Some(&"timed out"));
    assert!(flips.saw(begun + GRACE, FAILURES, Err("timed out")));
    assert_eq!(flips.so_far(), None, "that is a verdict now");
}

#[test]
fn d22_a_verdict_is_never_the_last_one() {
    let (mut flips, now) = (Port::new(Some(Ok(()))), Instant::now());
    assert!(!flips.saw(now, FAILURES, Err("refused")));
    assert!(!flips.saw(now, FAILURES, Err("refused")));
    assert!(!flips.saw(now, FAILURES, Ok(())), "not so many in a row");
    assert!(!flips.saw(now, FAILURES, Err("refused")));
    assert!(!flips.saw(now, FAILURES, Err("refused")));
    assert!(flips.saw(now, FAILURES, Err("refused")), "no grace for what was reachable");
    assert!(flips.saw(now, FAILURES, Ok(())));
    assert_eq!(flips.verdict(), Some(&Ok(())));
}

#[test]
fn b153_another_reason_is_told_once_it_stays() {
    let (mut flips, now) = (Port::new(Some(Err("refused"))), Instant::now());
    for _ in 0..10 {
        assert!(!flips.saw(now, FAILURES, Err("timed out")));
        assert!(!flips.saw(now, FAILURES, Err("refused")));
    }
    assert!(!flips.saw(now, FAILURES, Err("timed out")));
    assert!(!flips.saw(now, FAILURES, Err("timed out")));
    assert!(flips.saw(now, FAILURES, Err("timed out")));
    assert_eq!(flips.verdict(), Some(&Err("timed out")));
    assert!(!flips.saw(now, FAILURES, Err("timed out")));
}

#[test]
fn one_failure_may_be_enough_too() {
    for failures in [0, 1] {
        let mut flips = Port::new(Some(Ok(())));
        assert!(flips.saw(Instant::now(), failures, Err("refused")), "{failures}");
    }
}

#[test]
fn who_answers_is_part_of_the_verdict() {
    let mut flips = Flips::<&str, ()>::new(Some(Ok("unproved")));
    assert!(flips.saw(Instant::now(), FAILURES, Ok("proved")));
    assert_eq!(flips.verdict(), Some(&Ok("proved")));
}
