//! A registry as people run them, built from its Go module, on an address of its own until the test ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use bytes::Bytes;
use cofferdam_certs::testing::Issued;
use cofferdam_cluster::parts;
use cofferdam_cluster::progress::Progress;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use tempfile::TempDir;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Who may come in where a password is asked for.
pub(super) const USER: &str = "session:secret";

/// The same, as `htpasswd -B` writes it.
const HTPASSWD: &str = "session:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";

/// The configuration of an image of nothing.
const CONFIG: &str = "{}";
const CONFIG_DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// Whom a registry lets in.
pub(super) enum Access {
    Anyone,
    Password,
    /// Whoever has a token of this place.
    Token {
        realm: String,
    },
    /// Anyone who believes this certificate.
    Tls(Issued),
}

pub(super) struct Registry {
    /// Address and port.
    pub(super) host: String,
    process: Child,
    _folder: TempDir,
}

impl Registry {
    pub(super) async fn start(access: Access) -> Self {
        tokio::task::spawn_blocking(move || Self::run(&access)).await.unwrap()
    }

    fn run(access: &Access) -> Self {
        let program = parts::ensure_part(&parts::REGISTRY, &Progress::silent()).unwrap().join("registry");
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "info", "formatter": "json", "accesslog": {"disabled": true}},
            "storage": {"inmemory": {}},
            "http": {"addr": "127.0.0.1:0", "secret": "tests"},
            // So that a few tags fill several pages.
            "tags": {"maxtags": 2},
        });
        match access {
            Access::Anyone => {}
            Access::Password => {
                config["auth"] = json!({"htpasswd": {"realm": "tests", "path": write("htpasswd", HTPASSWD)}});
            }
            Access::Token { realm } => config["auth"] = json!({"silly": {"realm": realm, "service": "tests"}}),
            Access::Tls(Issued { chain, key }) => {
                config["http"]["tls"] = json!({"certificate": write("tls.crt", chain), "key": write("tls.key", key)});
            }
        }
        let config = write("config.yaml", &config.to_string());
        let mut process = Command::new(program)
            .arg("serve")
            .arg(config)
            // It would look for a collector of traces.
            .env("OTEL_TRACES_EXPORTER", "none")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let host = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let host =
                line.split_once("listening on ").map(|(_, rest)| rest.split([',', '"']).next().unwrap().to_owned());
            said.push(line);
            host
        });
        // Whatever it says from here on would fill the pipe and stop it.
        std::thread::spawn(move || lines.for_each(drop));
        let registry = Self { host: host.unwrap_or_default(), process, _folder: folder };
        assert!(!registry.host.is_empty(), "it does not listen: {said:#?}");
        registry
    }

    /// Pushes an image of nothing, as clients do (OCI distribution specification, "Pushing manifests").
    pub(super) async fn push(&self, repository: &str, tag: &str) {
        let base = format!("http://{}/v2/{repository}", self.host);
        let begun = send(Method::POST, &format!("{base}/blobs/uploads/"), "application/octet-stream", Vec::new()).await;
        assert_eq!(begun.status(), StatusCode::ACCEPTED);
        let place = begun.headers()[LOCATION].to_str().unwrap();
        let place = format!("{place}{}digest={CONFIG_DIGEST}", if place.contains('?') { '&' } else { '?' });
        let pushed = send(Method::PUT, &place, "application/octet-stream", CONFIG.into()).await;
        assert_eq!(pushed.status(), StatusCode::CREATED);
        let manifest = "application/vnd.oci.image.manifest.v1+json";
        let content = json!({
            "schemaVersion": 2,
            "mediaType": manifest,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "size": CONFIG.len(), "digest": CONFIG_DIGEST},
            "layers": [],
        });
        let tagged = send(Method::PUT, &format!("{base}/manifests/{tag}"), manifest, content.to_string().into()).await;
        assert_eq!(tagged.status(), StatusCode::CREATED);
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn send(method: Method, uri: &str, content: &str, body: Vec<u8>) -> http::Response<hyper::body::Incoming> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header(CONTENT_TYPE, content)
        .header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(USER)))
        .body(Full::<Bytes>::from(body))
        .unwrap();
    Client::builder(TokioExecutor::new()).build_http().request(request).await.unwrap()
}
