//! The catalogue before servers: a real registry, and by hand what none can be brought to do.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use serde_json::json;

use super::*;

mod registry;
mod server;

use registry::{Access, Registry};
use server::{Reply, Server};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    catalogue: CatalogueArgs,
}

fn flags(arguments: &[&str]) -> CatalogueArgs {
    let line = ["test", "--default-image", "runtime:1"].into_iter().chain(arguments.iter().copied());
    Line::try_parse_from(line).unwrap().catalogue
}

fn start(arguments: &[&str]) -> Result<Catalogue, CatalogueError> {
    Catalogue::new(&flags(arguments))
}

/// A catalogue of `team/run` on Docker Hub, which is `server`.
fn on_docker_hub(server: &Server, arguments: &[&str]) -> Catalogue {
    let arguments = [&["--catalogue-repository", "team/run"], arguments].concat();
    let mut catalogue = start(&arguments).unwrap();
    catalogue.source.as_mut().unwrap().docker_hub = server.address();
    catalogue
}

/// A catalogue of `team/run` in plain HTTP.
fn in_registry(host: &str, arguments: &[&str]) -> Catalogue {
    let repository = format!("{host}/team/run");
    start(&[&["--catalogue-repository", &repository, "--catalogue-plain-http"], arguments].concat()).unwrap()
}

async fn tags_of(catalogue: &Catalogue) -> Vec<String> {
    catalogue.refresh().await.unwrap();
    let tag = |image: &String| image.rsplit(':').next().unwrap().to_owned();
    catalogue.choices().images().iter().skip(1).map(tag).collect()
}

async fn failure(catalogue: &Catalogue) -> String {
    with_causes(&catalogue.refresh().await.unwrap_err())
}

/// A file of credentials for a host.
fn credentials(folder: &tempfile::TempDir, host: &str, user: &str) -> String {
    let path = folder.path().join("config.json");
    fs::write(&path, json!({"auths": {host: {"auth": STANDARD.encode(user)}}}).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn page(tags: &[(&str, &str)], next: Option<&str>) -> Reply {
    let entry = |(name, updated): &(&str, &str)| json!({"name": name, "last_updated": updated, "images": []});
    let results = tags.iter().map(entry).collect::<Vec<_>>();
    Reply::json(&json!({"count": 9, "next": next, "previous": null, "results": results}))
}

#[tokio::test]
async fn without_a_repository_there_is_the_default_image_and_nobody_is_asked() {
    let catalogue = start(&["--catalogue-repository", ""]).unwrap();
    catalogue.refresh().await.unwrap();
    assert!(catalogue.choices().is_fixed());
    assert_eq!(catalogue.choices().images(), ["runtime:1"]);
}

#[test]
fn a_command_line_that_cannot_be_meant_ends_the_program() {
    assert!(Line::try_parse_from(["test"]).is_err(), "which image?");
    for wrong in [
        ["--catalogue-include", "("],
        ["--catalogue-exclude", "*"],
        ["--catalogue-pinned-only", "perhaps"],
        ["--catalogue-limit", "-1"],
        ["--catalogue-refresh-interval", "0s"],
    ] {
        assert!(Line::try_parse_from(["test", "--default-image", "i"].into_iter().chain(wrong)).is_err(), "{wrong:?}");
    }
    let nowhere = ["--catalogue-repository", "r.example/a", "--catalogue-credentials", "/nowhere"];
    assert!(matches!(start(&nowhere), Err(CatalogueError::Credentials(_))));
    assert!(matches!(start(&["--catalogue-repository", "a:1"]), Err(CatalogueError::Repository(_))));
    let nowhere = ["--catalogue-repository", "r.example/a", "--catalogue-ca-bundle", "/nowhere"];
    assert!(matches!(start(&nowhere), Err(CatalogueError::CaBundle(_))));
}

#[tokio::test]
async fn docker_hub_is_read_page_by_page_and_its_latest_come_first() {
    let server = Server::start(|request| match request.target.as_str() {
        "/v2/repositories/team/run/tags?page_size=100" => {
            let next = format!("http://{}/v2/repositories/team/run/tags?page=2&page_size=100", request.host);
            page(&[("1.9.9", "2024-03-01T00:00:00.5Z"), ("latest", "2024-03-01T00:00:00Z")], Some(&next))
        }
        "/v2/repositories/team/run/tags?page=2&page_size=100" => {
            page(&[("2.0.0", "2024-01-01T00:00:00Z"), ("1.0.0-slim", "2024-02-01T00:00:00Z")], None)
        }
        _ => Reply::status(404),
    })
    .await;
    let catalogue = on_docker_hub(&server, &[]);
    assert_eq!(tags_of(&catalogue).await, ["1.9.9", "1.0.0-slim", "2.0.0"]);
    assert_eq!(catalogue.choices().images()[1], "team/run:1.9.9");
}

#[tokio::test]
async fn docker_hub_is_read_no_further_than_two_hundred_tags() {
    let server = Server::start(|request| {
        let number = request.target.rsplit('=').next().unwrap().parse::<usize>().unwrap_or(0);
        let names: Vec<String> = (0..90).map(|n| format!("1.{number}.{n}")).collect();
        let tags: Vec<_> = names.iter().map(|name| (name.as_str(), "2024-01-01T00:00:00Z")).collect();
        page(&tags, Some(&format!("/v2/repositories/team/run/tags?page={}", number + 1)))
    })
    .await;
    let catalogue = on_docker_hub(&server, &["--catalogue-limit", "1000"]);
    assert_eq!(tags_of(&catalogue).await.len(), MOST);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_refresh_that_fails_keeps_the_last_good_list() {
    let server = Server::start(|request| match request.number {
        0 => page(&[("1.0.0", "2024-01-01T00:00:00Z")], None),
        1 => Reply::status(429),
        2 => Reply { body: b"<html>".to_vec(), ..Reply::json(&json!({})) },
        3 => Reply { body: vec![b' '; (8 << 20) + 1], ..Reply::json(&json!({})) },
        4 => page(&[], Some("http://evil.example/v2/repositories/team/run/tags")),
        5 => Reply { headers: vec![("location", "http://evil.example/".to_owned())], ..Reply::status(302) },
        6 => Reply::status(404),
        _ => page(&[("2.0.0", "2024-01-01T00:00:00Z")], None),
    })
    .await;
    let catalogue = on_docker_hub(&server, &[]);
    assert_eq!(catalogue.choices().images(), ["runtime:1"]);
    assert!(!catalogue.choices().is_fixed(), "there will be more");
    assert_eq!(tags_of(&catalogue).await, ["1.0.0"]);
    let host = server.host();
    for told in [
        format!("{host} answered with HTTP 429"),
        format!("{host} answered with something that is not a page of tags"),
        format!("{host} answered with more than 8388608 bytes"),
        format!("{host} sends us to an address that is not followed: the next page is somewhere else"),
        format!("{host} answered with HTTP 302"),
        format!("{host} knows no repository team/run, or shows it to nobody without --catalogue-credentials"),
    ] {
        assert_eq!(failure(&catalogue).await, told);
        assert_eq!(catalogue.choices().images(), ["runtime:1", "team/run:1.0.0"]);
    }
    assert_eq!(tags_of(&catalogue).await, ["2.0.0"]);
}

#[tokio::test]
async fn what_is_kept_up_to_date_goes_on_after_a_failure() {
    let server = Server::start(|request| match request.number {
        0 => page(&[("1.0.0", "2024-01-01T00:00:00Z")], None),
        1 => Reply::status(500),
        _ => page(&[("2.0.0", "2024-02-01T00:00:00Z"), ("1.0.0", "2024-01-01T00:00:00Z")], None),
    })
    .await;
    let catalogue = on_docker_hub(&server, &["--catalogue-refresh-interval", "1ms"]);
    let both = async {
        while catalogue.choices().images().len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = catalogue.keep() => panic!("it gave up"),
        () = both => {}
    }
    assert!(server.requests().len() >= 3);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_never_answers_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = silent.local_addr().unwrap().to_string();
    let catalogue = in_registry(&host, &[]);
    assert_eq!(failure(&catalogue).await, format!("{host} did not answer within 10 s"));
}

#[tokio::test]
async fn a_registry_that_is_not_there_is_told_by_its_name() {
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = closed.local_addr().unwrap().to_string();
    drop(closed);
    let told = failure(&in_registry(&host, &[])).await;
    assert!(told.starts_with(&format!("cannot reach {host}: ")), "{told}");
}

#[tokio::test]
async fn a_real_registry_is_read_page_by_page_and_its_newest_versions_come_first() {
    let registry = Registry::start(Access::Anyone).await;
    for tag in ["1.9.0", "1.10.0", "1.10.0-slim", "1.11.0-rc.1", "latest"] {
        registry.push("team/run", tag).await;
    }
    let catalogue = in_registry(&registry.host, &[]);
    assert_eq!(tags_of(&catalogue).await, ["1.10.0", "1.10.0-slim", "1.9.0"]);
    assert_eq!(catalogue.choices().images()[1], format!("{}/team/run:1.10.0", registry.host));
    registry.push("team/run", "2.0.0").await;
    assert_eq!(tags_of(&catalogue).await, ["2.0.0", "1.10.0", "1.10.0-slim", "1.9.0"]);

    let other = format!("{}/team/other", registry.host);
    let other = start(&["--catalogue-repository", &other, "--catalogue-plain-http"]).unwrap();
    let told = format!(
        "{} knows no repository team/other, or shows it to nobody without --catalogue-credentials",
        registry.host
    );
    assert_eq!(failure(&other).await, told);
}

#[tokio::test]
async fn a_real_registry_that_asks_for_a_password_gets_it() {
    let registry = Registry::start(Access::Password).await;
    registry.push("team/run", "1.0.0").await;
    let told = failure(&in_registry(&registry.host, &[])).await;
    let host = &registry.host;
    assert_eq!(told, format!("{host} asks for a login, and there is nobody to log in as; see --catalogue-credentials"));

    let folder = tempfile::tempdir().unwrap();
    let file = credentials(&folder, host, registry::USER);
    let catalogue = in_registry(host, &["--catalogue-credentials", &file]);
    assert_eq!(tags_of(&catalogue).await, ["1.0.0"]);
    // The file is read each time: a password that has changed needs no restart.
    credentials(&folder, host, "session:wrong");
    let told = failure(&catalogue).await;
    assert_eq!(told, format!("{host} refuses to list the tags of team/run (HTTP 401); check --catalogue-credentials"));
    assert_eq!(catalogue.choices().images().len(), 2);
}

#[tokio::test]
async fn a_real_registry_that_asks_for_a_token_gets_one_from_where_it_says() {
    let tokens = Server::start(|request| match request.header("authorization") {
        Some("Basic c2Vzc2lvbjpzZWNyZXQ=") | None => Reply::json(&json!({"token": "t", "access_token": "t"})),
        Some(_) => Reply::status(401),
    })
    .await;
    let registry = Registry::start(Access::Token { realm: format!("{}/token?a=b", tokens.address()) }).await;
    registry.push("team/run", "1.0.0").await;
    assert_eq!(tags_of(&in_registry(&registry.host, &[])).await, ["1.0.0"]);

    let folder = tempfile::tempdir().unwrap();
    let file = credentials(&folder, &registry.host, registry::USER);
    let catalogue = in_registry(&registry.host, &["--catalogue-credentials", &file]);
    assert_eq!(tags_of(&catalogue).await, ["1.0.0"]);
    credentials(&folder, &registry.host, "session:wrong");
    let told = failure(&catalogue).await;
    assert!(told.starts_with(&tokens.host()) && !told.contains("wrong"), "{told}");

    let asked = tokens.requests();
    let target = "/token?a=b&service=tests&scope=repository%3Ateam%2Frun%3Apull";
    assert!(asked.iter().all(|request| request.target == target), "{asked:?}");
    let users: Vec<_> = asked.iter().map(|request| request.header("authorization").is_some()).collect();
    assert_eq!(users, [false, true, true]);
}

#[tokio::test]
async fn a_real_registry_is_believed_by_its_certificate_alone() {
    let authority = cofferdam_certs::testing::Authority::new().unwrap();
    let registry = Registry::start(Access::Tls(authority.issue("localhost").unwrap())).await;
    let host = registry.host.replace("127.0.0.1", "localhost");
    let repository = ["--catalogue-repository", &format!("{host}/team/run")];
    let told = failure(&start(&repository).unwrap()).await;
    assert!(told.starts_with(&format!("cannot reach {host}: ")) && told.contains("UnknownIssuer"), "{told}");

    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("ca.crt");
    let pem = STANDARD.encode(authority.root());
    fs::write(&bundle, format!("-----BEGIN CERTIFICATE-----\n{pem}\n-----END CERTIFICATE-----\n")).unwrap();
    let trusting = [&repository[..], &["--catalogue-ca-bundle", bundle.to_str().unwrap()]].concat();
    // It is believed, and has nothing.
    let told = failure(&start(&trusting).unwrap()).await;
    assert!(told.starts_with(&format!("{host} knows no repository team/run")), "{told}");
}

#[tokio::test]
async fn whoever_wants_a_password_elsewhere_without_tls_does_not_get_it() {
    let server = Server::start(|_| Reply {
        headers: vec![("www-authenticate", "Bearer realm=\"http://tokens.example/\"".to_owned())],
        ..Reply::status(401)
    })
    .await;
    // Only the scheme is another: the registry itself is asked in plain HTTP by the test alone.
    let mut catalogue = in_registry(&server.host(), &[]);
    let source = catalogue.source.as_ref().unwrap();
    let uri: http::Uri = format!("{}/v2/", server.address()).parse().unwrap();
    let answer = source.client.get(&uri, None).await.unwrap();
    catalogue.source.as_mut().unwrap().scheme = "https";
    let source = catalogue.source.as_ref().unwrap();
    let error = distribution::log_in(source, &uri, &answer).await.unwrap_err();
    assert!(error.to_string().ends_with("names a place for it that is not https"), "{error}");
}
