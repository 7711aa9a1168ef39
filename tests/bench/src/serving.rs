//! What the server gives over TLS on one processor, held against a bare one in turns, and how long an arrival waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use cofferdam_certs::testing::{Authority, SecretVolume};
use rustls::ClientConfig;

use crate::connection::{Connection, NAME, post, trust};
use crate::distribution::{Latencies, Spread};
use crate::load::{CONNECTIONS, Exchange, arrive, saturate, schedule};
use crate::processor::{Division, on};
use crate::server::{Server, beside};
use crate::{Effort, fixture, markdown};

/// Arrivals a second where latency is measured.
const RATE: f64 = 1000.0;

/// A server and the connections to it.
struct Party {
    name: &'static str,
    server: Server,
    connections: Vec<Connection>,
}

/// What one round of saturation came to.
struct Round {
    /// Answers a second.
    rate: f64,
    /// Processor time of the server per answer, in microseconds.
    cost: f64,
    /// The share of its processor that the server used.
    share: f64,
}

/// Measures, and returns the tables.
///
/// # Errors
/// When a server does not start, or answers anything but what it has to.
pub fn run(effort: Effort) -> Result<String> {
    let division = Division::of_this_machine()?;
    on(&division.load, || measure(&division, effort))
}

fn measure(division: &Division, effort: Effort) -> Result<String> {
    let body = fixture::body();
    let (request, answer) = (post(&body), fixture::decision(&body)?.answer.to_body());
    let exchange = Exchange { request: &request, answer: &answer };
    let authority = Authority::new()?;
    let certificate = SecretVolume::mount(&authority.issue(NAME)?)?;
    let trust = trust(&authority)?;
    let start = |name, program, arguments: &[&str]| -> Result<Party> {
        let program = beside(program)?;
        let server = on(&division.server, || Server::start(&program, arguments, &certificate.files()))?;
        Party::connect(name, server, &trust, exchange)
    };
    let mut parties = [
        start("cofferdam-webhook", "cofferdam-webhook", &WEBHOOK)?,
        start("bare hyper and rustls", "cofferdam-bench-bare", &[])?,
    ];
    let saturation = saturation(&mut parties, exchange, effort)?;
    let latency = latency(&mut parties, exchange, effort)?;
    let memory = parties[0].server.peak_mebibytes()?;
    Ok(format!(
        "{CONNECTIONS} keep-alive connections, {} bytes to the server and {} back.\n\n{saturation}\n{latency}\n\
         The most memory that the webhook held (VmHWM): {memory:.1} MiB.\n",
        request.len(),
        answer.len()
    ))
}

/// Loopback only; the log as a container's, read by somebody through a pipe.
const WEBHOOK: [&str; 4] = ["serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0", "--log-format=json"];

impl Party {
    /// Connects, and exchanges once over every connection.
    fn connect(name: &'static str, server: Server, trust: &Arc<ClientConfig>, exchange: Exchange<'_>) -> Result<Self> {
        let open = |_| Connection::open(server.address, trust);
        let mut connections = (0..CONNECTIONS).map(open).collect::<Result<Vec<_>>>()?;
        saturate(&mut connections, exchange, Duration::from_millis(200))?;
        Ok(Self { name, server, connections })
    }

    fn round(&mut self, exchange: Exchange<'_>, length: Duration) -> Result<Round> {
        let (start, used) = (Instant::now(), self.server.processor_time()?);
        let answered = f64::from(saturate(&mut self.connections, exchange, length)?);
        ensure!(answered > 0.0, "{} answered nothing", self.name);
        let length = start.elapsed().as_secs_f64();
        let used = self.server.processor_time()?.saturating_sub(used).as_secs_f64();
        Ok(Round { rate: answered / length, cost: used * 1e6 / answered, share: used / length })
    }
}

fn saturation(parties: &mut [Party; 2], exchange: Exchange<'_>, effort: Effort) -> Result<String> {
    let (rounds, length) = effort.pick((7, Duration::from_secs(5)), (2, Duration::from_millis(500)));
    let mut webhook = Vec::new();
    let mut bare = Vec::new();
    for _ in 0..rounds {
        webhook.push(parties[0].round(exchange, length)?);
        bare.push(parties[1].round(exchange, length)?);
    }
    let mut rows = Vec::new();
    for (party, rounds) in parties.iter().zip([&webhook, &bare]) {
        let spread = |figure: fn(&Round) -> f64| Spread::of(rounds.iter().map(figure));
        rows.push([
            party.name.to_owned(),
            format!("{:.0}", spread(|round| round.rate)?),
            format!("{:.2}", spread(|round| round.share)?),
            format!("{:.1}", spread(|round| round.cost)?),
        ]);
    }
    // By what an answer costs, not by how many there were: a load that cannot fill its processor holds the quicker
    // server back, and would flatter the other.
    let ratio = Spread::of(webhook.iter().zip(&bare).map(|(webhook, bare)| bare.cost / webhook.cost))?;
    let heads = ["saturated, on one processor", "answers a second", "of the processor used", "processor time each, µs"];
    let table = markdown::table(heads, &rows);
    Ok(format!("{table}\nReviews per processor, of what the bare server gives, round by round: **{ratio:.2}**.\n"))
}

fn latency(parties: &mut [Party; 2], exchange: Exchange<'_>, effort: Effort) -> Result<String> {
    let schedule = schedule(RATE, effort.pick(Duration::from_secs(10), Duration::from_secs(1)));
    let mut latencies: [Vec<Latencies>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..effort.pick(5, 1) {
        for (party, latencies) in parties.iter_mut().zip(&mut latencies) {
            latencies.push(arrive(&mut party.connections, exchange, &schedule)?);
        }
    }
    let mut rows = Vec::new();
    for (party, latencies) in parties.iter().zip(&latencies) {
        let within = |per_mille| Spread::of(latencies.iter().map(|round| round.within(per_mille)));
        rows.push([
            party.name.to_owned(),
            format!("{:.2}", within(500)?),
            format!("{:.2}", within(990)?),
            format!("{:.2}", within(999)?),
        ]);
    }
    Ok(markdown::table([&format!("{RATE} arrivals a second"), "p50, ms", "p99, ms", "p99.9, ms"], &rows))
}
