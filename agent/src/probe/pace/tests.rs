use super::*;

#[test]
fn first_at_once_then_twice_as_long_each_time() {
    let mut pace = Pace::NOW;
    let mut waits = Vec::new();
    for _ in 0..9 {
        waits.push(pace.wait(STEADY, 0.5).as_millis());
        pace = pace.after(false, false);
    }
    assert_eq!(waits, [0, 50, 100, 200, 400, 800, 1600, 3200, 5000]);
    for _ in 0..100 {
        pace = pace.after(false, false);
        assert_eq!(pace.wait(STEADY, 0.5), STEADY, "{pace:?}");
    }
    assert_eq!(Pace::Eager(u32::MAX).after(false, false).wait(STEADY, 0.5), STEADY);
}

#[test]
fn steady_waits_vary_by_a_fifth() {
    for pace in [Pace::Steady, Pace::Eager(50)] {
        assert_eq!(pace.wait(STEADY, 0.0).as_millis(), 4000, "{pace:?}");
        assert_eq!(pace.wait(STEADY, 1.0).as_millis(), 6000, "{pace:?}");
        assert_eq!(pace.wait(STEADY * 10, 0.0).as_millis(), 40_000, "{pace:?}");
    }
    assert_eq!(Pace::Eager(3).wait(STEADY, 0.0), Pace::Eager(3).wait(STEADY, 1.0));
}

#[test]
fn a_success_is_followed_by_steady_probes_and_a_fall_by_eager_ones() {
    for pace in [Pace::NOW, Pace::Eager(5), Pace::Eager(50), Pace::Steady] {
        assert_eq!(pace.after(true, true), Pace::Steady);
        assert_eq!(pace.after(true, false), Pace::Steady);
    }
    assert_eq!(Pace::Steady.after(false, false), Pace::Steady, "one failure is none");
    assert_eq!(Pace::Steady.after(false, true), Pace::Eager(1));
    assert_eq!(Pace::Eager(8).after(false, true), Pace::Eager(9), "a first verdict that is bad changes nothing");
}

#[test]
fn what_is_known_to_work_begins_steady() {
    assert_eq!(Pace::beginning::<(), ()>(Some(&Ok(()))), Pace::Steady);
    assert_eq!(Pace::beginning::<(), ()>(Some(&Err(()))), Pace::NOW);
    assert_eq!(Pace::beginning::<(), ()>(None), Pace::NOW);
}

#[test]
fn only_what_is_not_reached_is_hurried() {
    assert_eq!(Pace::Eager(9).hurried(), Pace::NOW);
    assert_eq!(Pace::Steady.hurried(), Pace::Steady);
}

#[test]
fn what_never_becomes_reachable_is_not_new_for_ever() {
    assert!(!Pace::NOW.can_wait());
    assert!(!Pace::Eager(7).can_wait());
    assert!(Pace::Eager(8).can_wait());
    assert!(Pace::Eager(u32::MAX).can_wait());
    assert!(Pace::Steady.can_wait());
}
