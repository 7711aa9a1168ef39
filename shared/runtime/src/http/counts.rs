//! What a listener counts. The label `listener` has one value per port of the program.

use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};

/// The metrics of all listeners of a process.
#[derive(Clone, Debug)]
pub struct Counts {
    connections: IntCounterVec,
    open_connections: IntGaugeVec,
    displaced: IntCounterVec,
    accept_errors: IntCounterVec,
    handshake_failures: IntCounterVec,
    connection_errors: IntCounterVec,
    panics: IntCounterVec,
}

/// The metrics of one listener, at zero from the start.
#[derive(Clone, Debug)]
pub struct ListenerCounts {
    pub(super) connections: IntCounter,
    pub(super) open_connections: IntGauge,
    pub(super) displaced: IntCounter,
    pub(super) accept_errors: IntCounter,
    pub(super) handshake_failures: IntCounterVec,
    pub(super) connection_errors: IntCounter,
    pub(super) panics: IntCounter,
    listener: &'static str,
}

/// Why a TLS handshake failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeFailure {
    /// It took longer than [`Limits::handshake`](super::Limits::handshake).
    Timeout,
    /// The client closed or reset the connection.
    Closed,
    /// The client sent an alert: it does not want us, most often because it does not trust our certificate.
    RefusedByClient,
    /// What came was no acceptable TLS: garbage, plain HTTP, an old version, no protocol in common.
    Protocol,
}

impl HandshakeFailure {
    const ALL: [Self; 4] = [Self::Timeout, Self::Closed, Self::RefusedByClient, Self::Protocol];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::RefusedByClient => "refused-by-client",
            Self::Protocol => "protocol",
        }
    }
}

impl Counts {
    /// Registers the families. Fails only if that was done before.
    pub fn register(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str, labels: &[&str]| -> prometheus::Result<IntCounterVec> {
            let family = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(family.clone()))?;
            Ok(family)
        };
        let open_connections =
            IntGaugeVec::new(Opts::new("open_connections", "Connections that are open now."), &["listener"])?;
        registry.register(Box::new(open_connections.clone()))?;
        Ok(Self {
            connections: counter("connections_total", "Connections accepted.", &["listener"])?,
            open_connections,
            displaced: counter(
                "displaced_connections_total",
                "Connections that were closed to make room for others; more than a few mean an attack.",
                &["listener"],
            )?,
            accept_errors: counter(
                "accept_errors_total",
                "Times that accepting a connection failed, for want of file descriptors for example.",
                &["listener"],
            )?,
            handshake_failures: counter(
                "tls_handshake_failures_total",
                "TLS handshakes that failed, by reason; refused-by-client mostly means an untrusted certificate.",
                &["listener", "reason"],
            )?,
            connection_errors: counter(
                "connection_errors_total",
                "Connections that ended in the middle of a request, in a timeout or in a protocol error.",
                &["listener"],
            )?,
            panics: counter("panics_total", "Requests whose handler panicked; answered 500.", &["listener"])?,
        })
    }

    /// The metrics of the listener called `listener`.
    #[must_use]
    pub fn of(&self, listener: &'static str) -> ListenerCounts {
        let label = [listener];
        for reason in HandshakeFailure::ALL {
            self.handshake_failures.with_label_values(&[listener, reason.as_str()]);
        }
        ListenerCounts {
            connections: self.connections.with_label_values(&label),
            open_connections: self.open_connections.with_label_values(&label),
            displaced: self.displaced.with_label_values(&label),
            accept_errors: self.accept_errors.with_label_values(&label),
            handshake_failures: self.handshake_failures.clone(),
            connection_errors: self.connection_errors.with_label_values(&label),
            panics: self.panics.with_label_values(&label),
            listener,
        }
    }
}

impl ListenerCounts {
    pub(super) fn handshake_failed(&self, reason: HandshakeFailure) {
        self.handshake_failures.with_label_values(&[self.listener, reason.as_str()]).inc();
    }

    /// What log lines call this listener.
    pub(super) fn listener(&self) -> &'static str {
        self.listener
    }

    /// One more open connection, until the guard is dropped.
    pub(super) fn open(&self) -> OpenConnection {
        self.connections.inc();
        self.open_connections.inc();
        OpenConnection(self.open_connections.clone())
    }
}

/// Counts down when the connection's task ends, however it ends.
pub(super) struct OpenConnection(IntGauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}
