use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_model::endpoints::Identity;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::*;
use crate::desired::Proof;
use crate::probe::budget::ADDRESSES;
use crate::probe::flips::{GRACE, SOON};
use crate::probe::pace::STEADY;
use crate::probe::testing::{answer, closed, header, listen, serve};
use crate::probe::{Closed, Failure, SLOW, Via};

const PORT: u16 = 3000;
const FAILURES: u32 = 3;

/// A session with one port, and what is told of it.
struct Session {
    watch: Watch,
    told: mpsc::UnboundedReceiver<Observation>,
    probes: Arc<Probes>,
}

#[derive(Default)]
struct Probes(Mutex<Vec<(Kind, Outcome)>>, tokio::sync::Notify);

impl Record for Probes {
    fn probed(&self, kind: Kind, outcome: Outcome) {
        self.0.lock().unwrap().push((kind, outcome));
        self.1.notify_one();
    }
    fn waited(&self, _: Duration) {}
}

#[tokio::test(start_paused = true)]
async fn a_port_is_told_once_it_takes_connections_and_again_whenever_that_changes() {
    let pod = closed();
    let mut session = Session::of(aim(pod, None));
    session.probed(Kind::Port, Outcome::Refused, 3).await;
    assert_eq!(session.seen(), Observation::default(), "still checking");
    let mut server = accept(pod).await;
    assert_eq!(session.listening().await, Some(Ok(())));
    for _ in 0..2 {
        server.abort();
        let _ = (&mut server).await;
        assert_eq!(session.listening().await, Some(Err(Closed::Refused)));
        server = accept(pod).await;
        assert_eq!(session.listening().await, Some(Ok(())));
    }
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn a_port_that_stays_closed_is_told_after_the_grace_and_once_and_once_before_that() {
    let begun = Instant::now();
    let mut session = Session::of(aim(closed(), None));
    assert_eq!(session.told().await, Observation { so_far: Some(Closed::Refused), ..Observation::default() });
    assert!(begun.elapsed() >= SOON);
    assert_eq!(session.listening().await, Some(Err(Closed::Refused)));
    assert!(begun.elapsed() >= GRACE);
    session.probed(Kind::Port, Outcome::Refused, 20).await;
    assert!(session.told.is_empty());
}

#[tokio::test(start_paused = true)]
async fn until_the_pod_has_started_nothing_fails_and_then_it_has_its_time() {
    let pod = closed();
    let aim = aim(pod, Some(target(serve(gateway_of(pod)).await)));
    let mut session = Session::of(Aim { has_started: false, ..aim.clone() });
    session.probed(Kind::Port, Outcome::Refused, 20).await;
    session.probed(Kind::Address, Outcome::BadGateway, 20).await;
    assert!(session.told.is_empty());
    let begun = Instant::now();
    session.update(aim.clone());
    while session.told().await.listening.is_none() {}
    assert!(begun.elapsed() >= GRACE, "{:?}", begun.elapsed());
    // What is reached is told whatever the pod's status says yet.
    let _server = accept(pod).await;
    let mut early = Session::of(Aim { has_started: false, ..aim });
    assert_eq!(early.listening().await, Some(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_routes_late_takes_nothing_of_the_time_that_a_program_has() {
    let pod = closed();
    let (gateway, routed) = late_gateway_of(pod).await;
    let aim = aim(pod, Some(target(gateway)));
    let mut session = Session::of(Aim { has_started: false, ..aim.clone() });
    session.probed(Kind::Address, Outcome::NotRouted, 3).await;
    routed.store(true, Ordering::Relaxed);
    let waited = Instant::now();
    while waited.elapsed() < GRACE {
        session.probed(Kind::Address, Outcome::BadGateway, 1).await;
    }
    assert!(session.told.is_empty());
    let begun = Instant::now();
    session.update(aim);
    while session.told().await.address.is_none() {}
    assert!(begun.elapsed() >= GRACE, "{:?}", begun.elapsed());
    assert_eq!(session.seen().address, Some(Err(Failure::BadGateway(503))));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_waits_for_a_slow_program_takes_nothing_of_its_time_either() {
    let (_listener, pod) = listen().await;
    // It takes connections, and its program says nothing yet.
    let (_silent, gateway) = listen().await;
    let aim = aim(pod, Some(target(gateway)));
    let mut session = Session::of(Aim { has_started: false, ..aim.clone() });
    let waited = Instant::now();
    while waited.elapsed() < 2 * GRACE {
        session.probed(Kind::Address, Outcome::TimedOut, 1).await;
    }
    assert_eq!(session.seen().address, None);
    let begun = Instant::now();
    session.update(aim);
    while session.told().await.address.is_none() {}
    assert!(begun.elapsed() >= GRACE, "{:?}", begun.elapsed());
    assert_eq!(session.seen().address, Some(Err(Failure::NoAnswer(SLOW))));
}

#[tokio::test(start_paused = true)]
async fn once_the_pod_has_started_port_and_address_are_probed_at_once_and_soon_again() {
    let pod = closed();
    let aim = aim(pod, Some(target(serve(gateway_of(pod)).await)));
    let mut session = Session::of(Aim { has_started: false, ..aim.clone() });
    // By now each waits some 5 s for its next turn.
    session.probed(Kind::Port, Outcome::Refused, 20).await;
    session.probed(Kind::Address, Outcome::BadGateway, 20).await;
    let begun = Instant::now();
    session.update(aim);
    session.probed(Kind::Port, Outcome::Refused, 3).await;
    session.probed(Kind::Address, Outcome::BadGateway, 1).await;
    let _server = accept(pod).await;
    let reached = Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None };
    while session.told().await != reached {}
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_while_a_container_waits_is_told_until_something_else_holds() {
    let pod = closed();
    let (gateway, routed) = late_gateway_of(pod).await;
    let mut session = Session::of(Aim { has_started: false, ..aim(pod, Some(target(gateway))) });
    assert_eq!(session.told().await.address, Some(Err(Failure::NotRouted(404))));
    routed.store(true, Ordering::Relaxed);
    assert_eq!(session.told().await, Observation::default(), "it is routed now, and nothing listens yet");
    // A container of several runs, and then no more.
    let server = accept(pod).await;
    let reached = Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None };
    while session.told().await != reached {}
    server.abort();
    let refused = (Some(Err(Closed::Refused)), Some(Err(Failure::BadGateway(503))));
    while (session.seen().listening, session.seen().address) != refused {
        session.told().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_is_probed_once_there_is_one_and_at_once_when_its_port_opens() {
    let pod = closed();
    let gateway = serve(gateway_of(pod)).await;
    let mut session = Session::of(aim(pod, None));
    session.probed(Kind::Port, Outcome::Refused, 8).await;
    assert!(session.probes.all().iter().all(|(kind, _)| *kind == Kind::Port));
    session.update(aim(pod, Some(target(gateway))));
    session.probed(Kind::Address, Outcome::BadGateway, 8).await;
    let _server = accept(pod).await;
    let reached = Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None };
    let mut opened = None;
    let mut told = session.told().await;
    while told != reached {
        opened = opened.or(told.listening.is_some_and(|listening| listening.is_ok()).then(Instant::now));
        told = session.told().await;
    }
    // By chance the address may be first; by itself it would have been due in 4 to 6 s.
    let late = opened.map(|opened| opened.elapsed()).unwrap_or_default();
    assert!(late < Duration::from_secs(1), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn an_address_is_probed_for_ever() {
    let (_listener, pod) = listen().await;
    let gateway = closed();
    let mut session = Session::of(aim(pod, Some(target(gateway))));
    assert_eq!(session.told().await.listening, Some(Ok(())));
    let refused = Some(Err(Failure::NoAnswer("refuses the connection")));
    assert_eq!(session.told().await.address, refused);
    session.update(aim(pod, Some(target(serve(gateway_of(pod)).await))));
    assert_eq!(session.told().await.address, Some(Ok(Identity::Proved)));
    session.update(aim(pod, Some(target(closed()))));
    assert_eq!(session.told().await.address, refused, "told without a word in between");
}

#[tokio::test(start_paused = true)]
async fn d22_a_program_that_dies_after_an_hour_is_told_of() {
    let pod = closed();
    let server = accept(pod).await;
    let mut session = Session::of(aim(pod, Some(target(serve(gateway_of(pod)).await))));
    let works = Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None };
    while session.told().await != works {}
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(session.told.is_empty(), "{:?}", session.told.recv().await);
    server.abort();
    assert!(server.await.is_err());
    let died = Observation {
        listening: Some(Err(Closed::Refused)),
        address: Some(Err(Failure::BadGateway(503))),
        so_far: None,
    };
    let told_so = async { while session.told().await != died {} };
    // As many failures as it takes, the longest pause before each.
    let soon = tokio::time::timeout(STEADY.mul_f64(1.2) * (FAILURES + 1), told_so).await;
    assert!(soon.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_asked_for_elsewhere_is_probed_at_once() {
    let (_listener, pod) = listen().await;
    let mut session = Session::of(aim(pod, Some(target(serve(gateway_of(pod)).await))));
    session.probed(Kind::Address, Outcome::Ok, 2).await;
    let begun = Instant::now();
    session.update(aim(pod, Some(target(closed()))));
    session.probed(Kind::Address, Outcome::Refused, 1).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn another_proof_is_another_address() {
    let (_listener, pod) = listen().await;
    let gateway = serve(gateway_of(pod)).await;
    let known = Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None };
    let known = Known { seen: known, was_unreachable: false };
    let mut session = Session::of(Aim { known, ..aim(pod, Some(target(gateway))) });
    session.probed(Kind::Address, Outcome::Ok, 1).await;
    let proof = Some(Proof { probe: "three".to_owned(), proof: "four".to_owned() });
    session.update(aim(pod, Some(Target { proof, ..target(gateway) })));
    assert_eq!(session.told().await.address, None);
    assert_eq!(session.told().await.address, Some(Err(Failure::NotRouted(404))));
    session.update(aim(pod, None));
    assert_eq!(session.told().await.address, None);
}

#[tokio::test(start_paused = true)]
async fn what_stays_the_same_keeps_its_state() {
    let (_listener, pod) = listen().await;
    let gateway = serve(gateway_of(pod)).await;
    let mut session = Session::of(aim(pod, Some(target(gateway))));
    while session.told().await.address.is_none() {}
    for failures in [FAILURES, FAILURES + 1] {
        session.watch.update(failures, &BTreeMap::from([(PORT, aim(pod, Some(target(gateway))))]));
        session.probed(Kind::Address, Outcome::Ok, 3).await;
        session.probed(Kind::Port, Outcome::Ok, 3).await;
    }
    assert!(session.told.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_flaps_when_an_agent_takes_over_from_another() {
    let (listener, pod) = listen().await;
    let known = Observation { listening: Some(Ok(())), address: Some(Ok(Identity::Proved)), so_far: None };
    let known = Known { seen: known, was_unreachable: false };
    let mut session = Session::of(Aim { known: known.clone(), ..aim(pod, None) });
    assert_eq!(session.seen(), known.seen);
    session.update(aim(pod, Some(target(serve(gateway_of(pod)).await))));
    session.probed(Kind::Address, Outcome::Ok, 2).await;
    session.probed(Kind::Port, Outcome::Ok, 2).await;
    assert!(session.told.is_empty());
    drop(listener);
    // It does not last, if it is wrong: the gateway finds no pod any more.
    let told = session.told().await;
    assert!(told.listening.unwrap().is_err() || told.address.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_program_that_did_not_listen_has_no_grace_again_when_an_agent_takes_over_from_another() {
    let pod = closed();
    let seen = Observation { listening: Some(Err(Closed::Refused)), ..Observation::default() };
    let known = Known { seen: seen.clone(), was_unreachable: true };
    let target = target(serve(gateway_of(pod)).await);
    let begun = Instant::now();
    let mut session = Session::of(Aim { known, ..aim(pod, None) });
    session.update(aim(pod, Some(target.clone())));
    let address = Some(Err(Failure::BadGateway(503)));
    assert_eq!(session.told().await, Observation { address, ..seen.clone() });
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    session.probed(Kind::Port, Outcome::Refused, 20).await;
    assert!(session.told.is_empty(), "{:?}", session.told.recv().await);
    // Another route nobody has waited for.
    let begun = Instant::now();
    session.update(aim(pod, Some(Target { host: "3000-other.example.com".to_owned(), ..target })));
    assert_eq!(session.told().await, seen);
    while session.told().await.address.is_none() {}
    assert!(begun.elapsed() >= GRACE, "{:?}", begun.elapsed());
    let _server = accept(pod).await;
    assert_eq!(session.listening().await, Some(Ok(())));
}

#[tokio::test(start_paused = true)]
async fn where_to_ask_may_be_unknown() {
    let (_listener, pod) = listen().await;
    let mut session = Session::of(aim(pod, Some(Target { via: None, ..target(pod) })));
    assert_eq!(session.told().await.listening, Some(Ok(())));
    assert_eq!(session.told().await.address, Some(Err(Failure::NoProbeAddress)));
    assert!(session.probes.all().iter().all(|(kind, _)| *kind == Kind::Port));
    let known = target(serve(gateway_of(pod)).await);
    session.update(aim(pod, Some(known)));
    assert_eq!(session.told().await.address, Some(Ok(Identity::Proved)));
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_there_now_is_probed_at_once() {
    let (_listener, pod) = listen().await;
    let (gateway, routed) = late_gateway_of(pod).await;
    let mut session = Session::of(aim(pod, Some(target(gateway))));
    session.probed(Kind::Address, Outcome::NotRouted, 10).await;
    routed.store(true, Ordering::Relaxed);
    let begun = Instant::now();
    session.watch.hurry(PORT);
    while session.told().await.address.is_none() {}
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn ports_that_are_not_named_any_more_are_forgotten() {
    let (_one, pod) = listen().await;
    let mut session = Session::of(aim(pod, None));
    assert_eq!(session.listening().await, Some(Ok(())));
    let (_two, other) = listen().await;
    session.update(aim(other, None));
    assert_eq!(session.seen(), Observation::default(), "another pod's address: nothing is known of it");
    assert_eq!(session.listening().await, Some(Ok(())));
    session.watch.update(FAILURES, &BTreeMap::new());
    assert!(session.watch.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn everything_ends_when_nobody_wants_to_know() {
    let (_listener, pod) = listen().await;
    let mut session = Session::of(aim(pod, Some(target(closed()))));
    session.probed(Kind::Address, Outcome::Refused, 1).await;
    let prober = session.watch.prober.clone();
    drop(session.watch);
    // The sender of what is told lives in the tasks alone by now.
    while session.told.recv().await.is_some() {}
    assert_eq!(prober.budget().interval(), crate::probe::pace::STEADY);
    assert_eq!(Arc::strong_count(&prober.budget), 1);
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_never_answers_waits_for_its_own_kind_until_it_does() {
    let (_listener, pod) = listen().await;
    // It takes connections, as far as anybody can see.
    let (_silent, gateway) = listen().await;
    let mut session = Session::of(aim(pod, None));
    let prober = session.watch.prober.clone();
    let mut held = Vec::new();
    for _ in 0..ADDRESSES[2] {
        held.push(prober.budget().turn(Kind::Address, Lane::Silent, 1).await);
    }
    session.update(aim(pod, Some(target(gateway))));
    session.probed(Kind::Address, Outcome::Other, 1).await;
    session.probed(Kind::Port, Outcome::Ok, 10).await;
    let addresses = || session.probes.all().iter().filter(|(kind, _)| *kind == Kind::Address).count();
    assert_eq!(addresses(), 1, "it has no turn before the others of its kind");
    held.clear();
    session.probed(Kind::Address, Outcome::TimedOut, 2).await;
    session.update(aim(pod, Some(target(serve(gateway_of(pod)).await))));
    while session.told().await.address != Some(Ok(Identity::Proved)) {}
}

#[tokio::test(start_paused = true)]
async fn of_one_session_one_probe_at_a_time_waits_among_the_silent() {
    let prober = Prober::new(200, Arc::<Probes>::default());
    let [one, other] = [(); 2].map(|()| prober.watch(Arc::new(|_, _| ())).prober);
    let make = |prober: &Prober, seconds: u64| {
        let (prober, wait) = (prober.clone(), move || tokio::time::sleep(Duration::from_secs(seconds)));
        async move { prober.make(Kind::Port, Lane::Silent, 1, wait).await }
    };
    let first = tokio::spawn(make(&one, 1));
    tokio::task::yield_now().await;
    let begun = Instant::now();
    make(&other, 0).await;
    assert!(begun.elapsed() < Duration::from_secs(1) && !first.is_finished());
    make(&one, 0).await;
    assert!(first.is_finished());
}

impl Session {
    fn of(aim: Aim) -> Self {
        let probes = Arc::<Probes>::default();
        let (sender, told) = mpsc::unbounded_channel();
        let tell: Tell = Arc::new(move |port, observation| {
            assert_eq!(port, PORT);
            // Nobody listens at a test's end.
            let _ = sender.send(observation);
        });
        let mut session =
            Self { watch: Prober::new(200, Arc::clone(&probes) as Arc<dyn Record>).watch(tell), told, probes };
        session.update(aim);
        session
    }

    fn update(&mut self, aim: Aim) {
        self.watch.update(FAILURES, &BTreeMap::from([(PORT, aim)]));
    }

    fn seen(&self) -> Observation {
        self.watch.seen().remove(&PORT).unwrap()
    }

    async fn told(&mut self) -> Observation {
        self.told.recv().await.unwrap()
    }

    async fn listening(&mut self) -> Option<Result<(), Closed>> {
        self.told().await.listening
    }

    /// Waits until there were so many more such probes.
    async fn probed(&self, kind: Kind, outcome: Outcome, times: usize) {
        let count = || self.probes.all().iter().filter(|probe| **probe == (kind, outcome)).count();
        let until = count() + times;
        while count() < until {
            self.probes.1.notified().await;
        }
    }
}

impl Probes {
    fn all(&self) -> Vec<(Kind, Outcome)> {
        self.0.lock().unwrap().clone()
    }
}

fn aim(pod: SocketAddr, address: Option<Target>) -> Aim {
    Aim { pod, has_started: true, address, known: Known::default() }
}

fn target(gateway: SocketAddr) -> Target {
    Target {
        via: Some(Via::from(gateway)),
        tls: None,
        host: "3000-abc.example.com".to_owned(),
        base_domain: "example.com".to_owned(),
        proof: Some(Proof { probe: "one".to_owned(), proof: "two".to_owned() }),
    }
}

/// Accepts connections at an address that was free a moment ago.
async fn accept(address: SocketAddr) -> JoinHandle<()> {
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await.unwrap());
        }
    })
}

/// A gateway that routes to the pod: its own 503, with the route's header, where nothing listens there.
fn gateway_of(pod: SocketAddr) -> impl Fn(&str) -> Vec<u8> {
    move |head| {
        let status = if std::net::TcpStream::connect(pod).is_ok() { 200 } else { 503 };
        if header(head, "x-cofferdam-probe") == Some("one") {
            answer(status, "x-cofferdam-proof: two\r\n")
        } else {
            answer(404, "")
        }
    }
}

/// The same, once it is told to; until then it knows no route.
async fn late_gateway_of(pod: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let (routed, route) = (Arc::<AtomicBool>::default(), gateway_of(pod));
    let is_routed = Arc::clone(&routed);
    let gateway = serve(move |head| if is_routed.load(Ordering::Relaxed) { route(head) } else { answer(404, "") });
    (gateway.await, routed)
}
