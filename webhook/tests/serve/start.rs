//! How the program starts, and how it does not.

use std::time::{Duration, SystemTime};

use cofferdam_certs::testing::{Authority, Issued, SecretVolume};

use crate::client::NAME;
use crate::program::{Program, run};

const USAGE: i32 = 64;
const FAILED: i32 = 1;

/// Tries to serve with this certificate; the program has to give up.
async fn try_to_serve(issued: &Issued, flags: &[&str]) -> (i32, String) {
    try_to_serve_on("127.0.0.1:0", issued, flags).await
}

async fn try_to_serve_on(address: &str, issued: &Issued, flags: &[&str]) -> (i32, String) {
    let volume = SecretVolume::mount(issued).unwrap();
    let files = volume.files();
    let (chain, key) = (files.chain.display().to_string(), files.key.display().to_string());
    let always = ["serve", "--listen", address, "--admin-listen=127.0.0.1:0", "--tls-cert", &chain, "--tls-key", &key];
    let (code, _, error) = run(&[&always, flags].concat()).await;
    (code, error)
}

fn good() -> Issued {
    Authority::new().unwrap().issue(NAME).unwrap()
}

#[tokio::test]
async fn an_unknown_key_in_the_policy_stops_the_start_and_is_named_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    let policy = directory.path().join("policy.yaml");
    std::fs::write(&policy, "profiles:\n  default:\n    runAsNonRot: true\n").unwrap();
    let (code, error) = try_to_serve(&good(), &["--policy", policy.to_str().unwrap()]).await;
    assert_eq!(code, USAGE);
    assert!(error.contains("policy.yaml:3") && error.contains("runAsNonRot"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[tokio::test]
async fn a_policy_that_is_not_there_stops_the_start() {
    let (code, error) = try_to_serve(&good(), &["--policy=/nowhere/policy.yaml"]).await;
    assert_eq!(code, USAGE);
    assert!(error.contains("/nowhere/policy.yaml"), "{error}");
}

#[tokio::test]
async fn bad_usage_exits_64_and_help_and_version_exit_0() {
    assert_eq!(run(&["serve"]).await.0, USAGE);
    assert_eq!(run(&["serve", "--tls-cert=a", "--tls-key=b", "--polcy=c"]).await.0, USAGE);
    assert_eq!(try_to_serve(&good(), &["--log-filter=,=,"]).await.0, USAGE);
    let (code, version, _) = run(&["--version"]).await;
    assert_eq!((code, version.as_str()), (0, concat!("cofferdam-webhook ", env!("CARGO_PKG_VERSION"), "\n")));
    let (code, help, _) = run(&["serve", "--help"]).await;
    assert_eq!(code, 0);
    assert!(help.contains("--drain-delay") && help.contains("COFFERDAM_WEBHOOK_DRAIN_DELAY"), "{help}");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_served_fails_the_start() {
    let now = SystemTime::now();
    let hour = Duration::from_hours(1);
    let authority = Authority::new().unwrap();
    let expired = authority.issue_for(NAME, now - 2 * hour, now - hour).unwrap();
    let (code, error) = try_to_serve(&expired, &[]).await;
    assert_eq!(code, FAILED);
    assert!(error.contains("expired at"), "{error}");

    let (code, error) = try_to_serve(&good(), &["--tls-server-name=elsewhere.svc"]).await;
    assert_eq!(code, FAILED);
    assert!(error.contains("elsewhere.svc"), "{error}");

    let other = Issued { key: good().key, ..good() };
    let (code, error) = try_to_serve(&other, &[]).await;
    assert_eq!(code, FAILED);
    assert!(error.contains("does not belong"), "{error}");
}

#[tokio::test]
async fn a_port_that_is_taken_fails_the_start() {
    let program = Program::start(&[]).await;
    let taken = program.address.to_string();
    let (code, error) = try_to_serve_on(&taken, &good(), &[]).await;
    assert_eq!(code, FAILED);
    assert!(error.contains(&format!("cannot listen on {taken}")), "{error}");
}

#[tokio::test]
async fn the_configuration_in_effect_is_logged_once_and_the_admin_port_tells_the_state() {
    let program = Program::start(&[]).await;
    let starting: Vec<_> = program.lines.iter().filter(|line| line.contains("\"starting\"")).collect();
    assert_eq!(starting.len(), 1);
    assert!(starting[0].contains("\"policy\":\"built-in\""), "{}", starting[0]);
    for path in ["/livez", "/readyz"] {
        assert_eq!(program.admin(path).await.body, "ok\n");
    }
    let build = format!("build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert!((program.metric(&build).await - 1.0).abs() < f64::EPSILON);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    assert!(program.metric("certificate_expiry_timestamp_seconds").await > now.as_secs_f64());
}
