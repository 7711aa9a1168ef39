use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

use super::*;

#[tokio::test(start_paused = true)]
async fn one_answer_is_for_all_who_ask_within_some_seconds() {
    let (names, asked) = (Names::default(), AtomicU8::new(0));
    let ask = || names.addresses("gateway.test", |_| answer(&asked));
    let (one, two) = tokio::join!(ask(), ask());
    assert_eq!((&*one, &*two), (&[address(1)][..], &[address(1)][..]));
    tokio::time::advance(FRESH.mul_f64(0.9)).await;
    assert_eq!(*ask().await, [address(1)]);
    tokio::time::advance(FRESH.mul_f64(0.1)).await;
    assert_eq!(*ask().await, [address(2)], "the name may have moved");
}

#[tokio::test(start_paused = true)]
async fn names_are_kept_apart_and_so_is_that_there_is_no_answer() {
    let (names, asked) = (Names::default(), AtomicU8::new(0));
    let refused = |_| async { Err(io::Error::other("refused")) };
    assert!(names.addresses("a.test", refused).await.is_empty());
    assert_eq!(*names.addresses("b.test", |_| answer(&asked)).await, [address(1)]);
    assert!(names.addresses("a.test", |_| answer(&asked)).await.is_empty());
    tokio::time::advance(FRESH).await;
    assert_eq!(*names.addresses("a.test", |_| answer(&asked)).await, [address(2)]);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_leaves_the_question_to_others() {
    let (names, asked) = (Names::default(), AtomicU8::new(0));
    let hangs = names.addresses("a.test", |_| std::future::pending());
    assert!(tokio::time::timeout(Duration::from_secs(2), hangs).await.is_err());
    assert_eq!(*names.addresses("a.test", |_| answer(&asked)).await, [address(1)]);
}

#[tokio::test]
async fn names_that_are_not_asked_for_any_more_are_forgotten() {
    let (names, asked) = (Names::default(), AtomicU8::new(0));
    for index in 0..3 * MOST {
        names.addresses(&format!("{index}.test"), |_| answer(&asked)).await;
        assert!(names.0.lock().unwrap().len() <= MOST);
    }
}

/// Each answer is another address.
async fn answer(asked: &AtomicU8) -> io::Result<Vec<IpAddr>> {
    tokio::task::yield_now().await;
    Ok(vec![address(asked.fetch_add(1, Ordering::Relaxed).wrapping_add(1))])
}

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}
