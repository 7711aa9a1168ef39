use proptest::prelude::*;
use tokio::task::JoinSet;

use super::*;
use crate::wire::{Event, Phase, Status};

/// Room for four events of [`progress`], or for four chunks of ten bytes.
const FOUR: Limits = Limits { events: 4 * (128 + 62), bytes: 4 * (128 + 10) };

fn progress(number: u64) -> Event {
    Event::Progress { app: None, phase: Phase::Provision, message: format!("{number:04}"), done: None }
}

fn status(status: Status) -> Event {
    Event::Status { status }
}

/// All that is there now.
fn all<T: Clone>(reader: &mut Reader<T>) -> Vec<Next<T>> {
    let mut all = Vec::new();
    while let Some(next) = reader.try_next() {
        let is_end = matches!(next, Next::End);
        all.push(next);
        if is_end {
            break;
        }
    }
    all
}

/// As ids, with `None` for a gap.
fn ids<T: Clone>(reader: &mut Reader<T>) -> Vec<Option<u64>> {
    let id = |next| match next {
        Next::Entry { id, .. } => Some(Some(id)),
        Next::Gap => Some(None),
        Next::End => None,
    };
    all(reader).into_iter().filter_map(id).collect()
}

#[test]
fn buf_02_a_client_that_asks_below_what_is_kept_gets_a_gap_first() {
    let hub = Hub::new(FOUR, 1);
    for number in 1..=6 {
        assert_eq!(hub.tell(&progress(number)), Some(number));
    }
    assert_eq!(ids(&mut hub.events(0)), [None, Some(3), Some(4), Some(5), Some(6)]);
    assert_eq!(ids(&mut hub.events(1)), [None, Some(3), Some(4), Some(5), Some(6)]);
    assert_eq!(ids(&mut hub.events(2)), [Some(3), Some(4), Some(5), Some(6)]);
    assert_eq!(ids(&mut hub.events(6)), []);
}

#[test]
fn d29_after_a_restart_ids_go_on_and_who_was_there_before_is_told_of_the_gap() {
    assert_eq!(first_id(Duration::ZERO), 1);
    let hub = Hub::new(FOUR, first_id(Duration::from_secs(90)));
    let mut known = hub.events(17);
    assert_eq!(ids(&mut known), [None], "at once, not only when something is told");
    assert_eq!(hub.tell(&progress(1)), Some(90_000));
    assert_eq!(ids(&mut known), [Some(90_000)]);
    hub.output(Stream::Tty, b"x");
    assert_eq!(ids(&mut hub.bytes(0)), [None, Some(90_000)]);
}

#[test]
fn d29_an_id_that_nobody_was_given_is_of_another_life_and_everything_is_told() {
    let hub = Hub::new(FOUR, 1);
    hub.tell(&progress(1));
    assert_eq!(ids(&mut hub.events(1_000)), [Some(1)]);
    assert_eq!(ids(&mut hub.events(u64::MAX)), [Some(1)]);
}

#[test]
fn buf_03_long_output_is_split_and_keeps_its_stream() {
    let hub = Hub::new(Limits::default(), 1);
    hub.output(Stream::Stderr, &vec![7; 2 * LONGEST_CHUNK + 1]);
    hub.output(Stream::Tty, b"");
    let chunks = all(&mut hub.bytes(0));
    let sizes = chunks.iter().map(|next| match next {
        Next::Entry { entry: Chunk { stream: Stream::Stderr, bytes }, .. } => bytes.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [LONGEST_CHUNK, LONGEST_CHUNK, 1]);
}

#[test]
fn d07_after_a_final_status_no_event_is_told_and_bytes_still_are() {
    let hub = Hub::new(FOUR, 1);
    let (mut events, mut bytes) = (hub.events(0), hub.bytes(0));
    hub.tell(&status(Status::Running { endpoints: None }));
    assert_eq!(hub.tell(&status(Status::Exited { code: 0 })), Some(2));
    assert_eq!(hub.tell(&status(Status::Failed { message: "late".to_owned() })), None);
    assert_eq!(all(&mut events).last(), Some(&Next::End));
    hub.output(Stream::Tty, b"the last words");
    assert_eq!((ids(&mut events), ids(&mut bytes), hub.is_over()), (vec![], vec![Some(1)], false));
    hub.finish();
    hub.output(Stream::Tty, b"nobody");
    assert_eq!((all(&mut bytes), hub.is_over()), (vec![Next::End], true));
    assert_eq!(ids(&mut hub.events(0)), [Some(1), Some(2)], "what is over is replayed all the same");
}

#[test]
fn d15_a_reader_that_reads_nothing_keeps_nothing() {
    let hub = Hub::new(FOUR, 1);
    let mut slow = hub.bytes(0);
    hub.output(Stream::Tty, &[0; 10]);
    let Some(Next::Entry { entry: first, .. }) = hub.bytes(0).try_next() else { panic!("it is there") };
    assert!(!first.bytes.is_unique(), "the ring has it");
    for _ in 0..4 {
        hub.output(Stream::Tty, &[0; 10]);
    }
    assert!(first.bytes.is_unique(), "nobody else has it");
    assert_eq!(ids(&mut slow), [None, Some(2), Some(3), Some(4), Some(5)]);
    assert_eq!(Limits::default().most(32), 320_000_000);
}

#[tokio::test]
async fn a_hub_that_is_dropped_ends_its_readers() {
    let hub = Hub::new(FOUR, 1);
    let (mut events, mut bytes) = (hub.events(0), hub.bytes(0));
    assert_eq!(hub.readers(), 2);
    let waiting = tokio::spawn(async move { (events.next().await, bytes.next().await) });
    drop(hub);
    assert_eq!(waiting.await.unwrap(), (Next::End, Next::End));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn buf_05_whoever_comes_while_it_is_told_misses_nothing_and_gets_nothing_twice() {
    let hub = Arc::new(Hub::new(Limits::default(), 1));
    let mut readers = JoinSet::new();
    for first in 0..8_u64 {
        let hub = Arc::clone(&hub);
        readers.spawn(async move {
            let mut reader = hub.events(first);
            let mut read = Vec::new();
            while let Next::Entry { id, entry } = reader.next().await {
                read.push((id, entry.json));
            }
            (first, read)
        });
    }
    let telling = Arc::clone(&hub);
    tokio::spawn(async move {
        for number in 1..=2_000 {
            telling.tell(&progress(number));
            tokio::task::yield_now().await;
        }
        telling.tell(&status(Status::Stopped));
    });
    let mut counts = 0;
    while let Some(reader) = readers.join_next().await {
        let (first, read) = reader.unwrap();
        // One that came when less was told than it claims to know got all there is.
        let from = read[0].0;
        assert!(from == 1 || from == first + 1);
        assert_eq!(read.iter().map(|(id, _)| *id).collect::<Vec<_>>(), (from..=2_001).collect::<Vec<_>>());
        for (id, json) in &read[..read.len() - 1] {
            assert_eq!(*json, serde_json::to_vec(&progress(*id)).unwrap());
        }
        counts += 1;
    }
    assert_eq!(counts, 8);
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize),
    Come(u64),
    Read { who: usize, times: usize },
    Finish,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_usize..600).prop_map(Step::Write),
        2 => prop_oneof![Just(0), 0_u64..140, Just(u64::MAX)].prop_map(Step::Come),
        6 => (0_usize..8, 1_usize..6).prop_map(|(who, times)| Step::Read { who, times }),
        1 => Just(Step::Finish),
    ]
}

/// A reader, and what it may be told next.
struct Watched {
    reader: Chunks,
    last: u64,
    said: bool,
    ended: bool,
}

proptest! {
    /// Whatever happens in whatever order: ids rise, no byte comes twice, the bytes are those of their id, and a gap is
    /// told once for each hole and never else.
    #[test]
    fn buf_02_ids_rise_no_byte_comes_twice_and_gaps_are_told_exactly_where_something_is_missing(
        first in prop_oneof![Just(1_u64), 1_u64..100],
        limit in 0_usize..2_000,
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let hub = Hub::new(Limits { events: 0, bytes: limit }, first);
        let mut written = Vec::new();
        let mut readers: Vec<Watched> = Vec::new();
        let mut over = false;
        for step in steps {
            match step {
                Step::Write(size) => {
                    let bytes = vec![u8::try_from(written.len() % 251).unwrap(); size];
                    hub.output(Stream::Stdout, &bytes);
                    if size > 0 && !over {
                        written.push(bytes);
                    }
                }
                Step::Come(after) => {
                    let last = if after >= first + written.len() as u64 { 0 } else { after };
                    readers.push(Watched { reader: hub.bytes(after), last, said: false, ended: false });
                }
                Step::Finish => {
                    hub.finish();
                    over = true;
                }
                Step::Read { who, times } => {
                    let Some(Watched { reader, last, said, ended }) = readers.get_mut(who) else { continue };
                    for _ in 0..times {
                        match reader.try_next() {
                            Some(Next::Entry { id, entry }) => {
                                prop_assert!(!*ended && id > *last);
                                prop_assert_eq!(id > *last + 1, *said, "a gap is told exactly where one is");
                                let index = usize::try_from(id - first).unwrap();
                                prop_assert_eq!(&entry.bytes[..], &written[index][..]);
                                (*last, *said) = (id, false);
                            }
                            Some(Next::Gap) => {
                                prop_assert!(!*ended && !*said, "once");
                                *said = true;
                            }
                            Some(Next::End) => {
                                prop_assert!(over);
                                prop_assert!(*last + 1 == first + written.len() as u64 || *said, "nothing was left");
                                *ended = true;
                            }
                            None => {
                                prop_assert!(!over);
                                prop_assert!(*last + 1 == first + written.len() as u64 || *said, "nothing was there");
                            }
                        }
                    }
                }
            }
        }
    }
}
