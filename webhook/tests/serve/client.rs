//! An HTTP/1.1 client that sends exactly the bytes it is told to.

use std::sync::Arc;

use cofferdam_certs::testing::Authority;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The name that certificates are issued for and clients ask for.
pub(crate) const NAME: &str = "cofferdam-webhook.cofferdam-system.svc";

/// A connection over TLS.
pub(crate) type Secure = Connection<TlsStream<TcpStream>>;

/// A connection that speaks HTTP.
pub(crate) struct Connection<S> {
    pub(crate) stream: BufReader<S>,
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// What clients of `authority` trust.
pub(crate) fn trust(authority: &Authority) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(authority.root()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

impl Secure {
    pub(crate) async fn over(stream: TcpStream, trust: &TlsConnector) -> std::io::Result<Self> {
        let stream = trust.connect(ServerName::try_from(NAME).unwrap(), stream).await?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// The certificate that the server showed.
    pub(crate) fn certificate(&self) -> CertificateDer<'static> {
        let (_, session) = self.stream.get_ref().get_ref();
        session.peer_certificates().unwrap()[0].clone().into_owned()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    /// The next answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        let head = self.head().await;
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head, body: String::from_utf8(body).unwrap() }
    }

    /// The next head, which may be an interim one without an answer.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).await.unwrap() > 0, "closed after {head:?}");
        }
        head
    }

    /// Posts `body` and waits for the answer.
    pub(crate) async fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Answer {
        self.send(&post(path, content_type, body)).await;
        self.answer().await
    }

    /// Posts a good review and checks that it is answered as one.
    pub(crate) async fn good_request(&mut self) {
        let answer = self.post("/mutate/enforced", "application/json", plain_review().as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.response()["allowed"], true, "{answer:?}");
    }

    /// Waits until the server closes, which it has to do cleanly; whatever comes before that is returned.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.unwrap();
        rest
    }
}

impl Answer {
    /// The `response` of the review that was answered.
    pub(crate) fn response(&self) -> Value {
        serde_json::from_str::<Value>(&self.body).unwrap()["response"].take()
    }
}

/// A whole POST.
pub(crate) fn post(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path}?timeout=3s HTTP/1.1\r\nhost: {NAME}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A review of the creation of `pod` in namespace `sessions`.
pub(crate) fn review_of(pod: &Value) -> String {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": "sessions",
            "userInfo": {"username": "ann", "groups": ["system:authenticated"]},
            "object": pod,
            "oldObject": null,
            "dryRun": false,
        },
    })
    .to_string()
}

/// A review of an update of `part` of a pod, or of the whole.
pub(crate) fn review_of_update(part: &str, new: &Value, old: &Value) -> String {
    let mut review: Value = serde_json::from_str(&review_of(new)).unwrap();
    let request = &mut review["request"];
    request["operation"] = "UPDATE".into();
    request["subResource"] = part.into();
    request["oldObject"] = old.clone();
    review.to_string()
}

/// A pod that asks for nothing.
pub(crate) fn plain_pod() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain", "namespace": "sessions"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

/// A review of that pod.
pub(crate) fn plain_review() -> String {
    review_of(&plain_pod())
}
