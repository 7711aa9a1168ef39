//! A bucket in memory that speaks as much of S3, Google Cloud Storage and Azure Blob Storage as bodies need: whole
//! objects, parts of them, writing what is not there yet, listing, deleting.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LAST_MODIFIED, RANGE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::super::range::{self, Part};

/// The one bucket that there is, which is the account of Azure as well.
const BUCKET: &str = "bodies";

/// When everything in it was written: as good a time as any, in both spellings that clients read.
const WRITTEN: (&str, &str) = ("Mon, 30 Nov 2026 18:00:00 GMT", "2026-11-30T18:00:00.000Z");

pub(super) struct Fake {
    address: SocketAddr,
    objects: Arc<Objects>,
}

struct Objects {
    by_key: Mutex<BTreeMap<String, Bytes>>,
    /// Whether it heeds that something must not be there yet.
    exclusive: bool,
}

impl Fake {
    /// One that holds nothing. Where it is not `exclusive` it overwrites what must not be there yet, as stores do that
    /// do not know better.
    pub(super) async fn start(exclusive: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let objects = Arc::new(Objects { by_key: Mutex::default(), exclusive });
        let serving = Arc::clone(&objects);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let objects = Arc::clone(&serving);
                let service = service_fn(move |request| {
                    let objects = Arc::clone(&objects);
                    async move { Ok::<_, Infallible>(objects.answer(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, objects }
    }

    /// The environment of who uses it.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let url = format!("http://{}", self.address);
        let settings = [
            ("AWS_ENDPOINT", url.as_str()),
            ("AWS_REGION", "somewhere"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("GOOGLE_BASE_URL", &url),
            ("GOOGLE_BEARER_TOKEN", "token"),
            ("AZURE_STORAGE_ENDPOINT", &url),
            ("AZURE_STORAGE_ACCOUNT_NAME", BUCKET),
            ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0"),
            ("AWS_WITHOUT_MEANING", "x"),
            ("PATH", "/bin"),
        ];
        let every = ["AWS", "GOOGLE", "AZURE"]
            .into_iter()
            .flat_map(|whose| [format!("{whose}_ALLOW_HTTP"), format!("{whose}_DISABLE_SYSTEM_CERTIFICATES")]);
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter();
        settings.chain(every.map(|name| (name, "true".to_owned()))).collect()
    }

    /// What is in it.
    pub(super) fn keys(&self) -> Vec<String> {
        self.objects.by_key.lock().unwrap().keys().cloned().collect()
    }
}

impl Objects {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let query = parts.uri.query().unwrap_or_default();
        let key = key(parts.uri.path());
        let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let mut objects = self.by_key.lock().unwrap();
        match (parts.method, key.as_str()) {
            (Method::PUT, key) => {
                let is_new =
                    header(IF_NONE_MATCH.as_str()) == Some("*") || header("x-goog-if-generation-match") == Some("0");
                if is_new && self.exclusive && objects.contains_key(key) {
                    return empty(StatusCode::PRECONDITION_FAILED);
                }
                objects.insert(key.to_owned(), body);
                let mut reply = empty(StatusCode::CREATED);
                reply.headers_mut().insert(ETAG, "\"1\"".parse().unwrap());
                reply
            }
            (Method::GET, "") if query.contains("comp=list") => text(azure_list(&objects)),
            (Method::GET, "") => text(list(&objects)),
            (Method::GET, key) => match objects.get(key) {
                Some(object) => part(object, header(RANGE.as_str())),
                None => empty(StatusCode::NOT_FOUND),
            },
            (Method::DELETE, key) => {
                empty(if objects.remove(key).is_some() { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND })
            }
            (Method::POST, "") => {
                let asked = std::str::from_utf8(&body).unwrap();
                if query.contains("comp=batch") {
                    azure_delete(asked, &mut objects)
                } else {
                    delete(asked, &mut objects)
                }
            }
            (method, key) => panic!("{method} {key} is more than this bucket knows"),
        }
    }
}

/// The key in a path; one client writes every letter that is none as a number.
fn key(path: &str) -> String {
    let key = path.strip_prefix('/').and_then(|path| path.strip_prefix(BUCKET)).unwrap();
    key.replace("%2F", "/").replace("%2D", "-").trim_start_matches('/').to_owned()
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut reply = Response::new(Full::default());
    *reply.status_mut() = status;
    reply
}

fn text(text: String) -> Response<Full<Bytes>> {
    Response::new(Full::new(text.into()))
}

fn part(object: &Bytes, asked: Option<&str>) -> Response<Full<Bytes>> {
    let length = u64::try_from(object.len()).unwrap();
    let (part, status) = match range::asked(asked, None, "", length) {
        Part::Whole => (0..length, StatusCode::OK),
        Part::Bytes(part) => (part, StatusCode::PARTIAL_CONTENT),
        Part::Unsatisfiable => return empty(StatusCode::RANGE_NOT_SATISFIABLE),
    };
    let bytes = object.slice(usize::try_from(part.start).unwrap()..usize::try_from(part.end).unwrap());
    let headers = [
        (ETAG, "\"1\"".to_owned()),
        (LAST_MODIFIED, WRITTEN.0.to_owned()),
        (CONTENT_LENGTH, bytes.len().to_string()),
        (CONTENT_RANGE, format!("bytes {}-{}/{length}", part.start, part.end - 1)),
    ];
    let mut reply = Response::new(Full::new(bytes));
    *reply.status_mut() = status;
    for (name, value) in headers {
        if name != CONTENT_RANGE || status == StatusCode::PARTIAL_CONTENT {
            reply.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    reply
}

fn list(objects: &BTreeMap<String, Bytes>) -> String {
    let contents = objects.iter().fold(String::new(), |mut xml, (key, object)| {
        let (size, written) = (object.len(), WRITTEN.1);
        write!(xml, "<Contents><Key>{key}</Key><Size>{size}</Size><LastModified>{written}</LastModified></Contents>")
            .unwrap();
        xml
    });
    format!("<ListBucketResult>{contents}</ListBucketResult>")
}

fn azure_list(objects: &BTreeMap<String, Bytes>) -> String {
    let blobs = objects.iter().fold(String::new(), |mut xml, (key, object)| {
        let (size, written) = (object.len(), WRITTEN.0);
        write!(
            xml,
            "<Blob><Name>{key}</Name><Properties><Last-Modified>{written}</Last-Modified>\
             <Content-Length>{size}</Content-Length><Content-Type>x/y</Content-Type></Properties></Blob>"
        )
        .unwrap();
        xml
    });
    format!("<EnumerationResults><Blobs>{blobs}</Blobs></EnumerationResults>")
}

/// Of S3, to whom what is not there is deleted.
fn delete(asked: &str, objects: &mut BTreeMap<String, Bytes>) -> Response<Full<Bytes>> {
    let keys = asked.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap());
    let deleted = keys.fold(String::new(), |mut xml, key| {
        objects.remove(key);
        write!(xml, "<Deleted><Key>{key}</Key></Deleted>").unwrap();
        xml
    });
    text(format!("<DeleteResult>{deleted}</DeleteResult>"))
}

/// Of Azure, which answers each in a part of its own.
fn azure_delete(asked: &str, objects: &mut BTreeMap<String, Bytes>) -> Response<Full<Bytes>> {
    let paths = asked.lines().filter_map(|line| line.strip_prefix("DELETE ")?.split(' ').next());
    let mut answers = String::new();
    for (number, path) in paths.enumerate() {
        let status = if objects.remove(&key(path)).is_some() { "202 Accepted" } else { "404 Not Found" };
        write!(
            answers,
            "--parts\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {status}\r\n\r\n"
        )
        .unwrap();
    }
    let mut reply = text(format!("{answers}--parts--\r\n"));
    reply.headers_mut().insert(CONTENT_TYPE, "multipart/mixed; boundary=parts".parse().unwrap());
    reply
}
