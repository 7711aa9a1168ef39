//! The command line: what may be typed. Every flag has an environment variable, `COFFERDAM_WEBHOOK_` and its name.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use cofferdam_certs::Files;
use cofferdam_model::keys;
use cofferdam_policy_file::{Installation, PolicySource};
use cofferdam_runtime::{duration, logs};
use rustls::pki_types::ServerName;

use crate::config::{Config, ConfigError};
use crate::offline::args::HardenArgs;
use crate::policy_command::PolicyArgs;

/// Hardens every pod that an API server shows it.
#[derive(Debug, Parser)]
#[command(name = "cofferdam-webhook", version)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer admission reviews over HTTPS.
    Serve(ServeArgs),
    /// Harden the pods in a file, by the same rules.
    ///
    /// Pods, the templates of workloads and lists of both are hardened; everything else is written as it is. Warnings go to standard error. Exit codes: 0 done; 1 refused; 2 the command line, the input or the policy is unusable; 3 something would change (--check alone). With --review the answer says what was decided, and the code is 0.
    Harden(HardenArgs),
    /// Check a policy file, or show what it means.
    Policy(PolicyArgs),
}

/// Flags of `serve`.
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// The policy file. Without it the built-in policy holds. It is read again when it changes.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_WEBHOOK_POLICY")]
    pub policy: Option<PathBuf>,

    /// How often the policy file is looked at.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_WEBHOOK_POLICY_POLL_INTERVAL",
        default_value = "10s",
        value_parser = duration::interval
    )]
    pub policy_poll_interval: Duration,

    /// The image that holds cofferdam-fetch, which brings bodies into pods: the one that this program runs from.
    #[arg(long, value_name = "IMAGE", env = "COFFERDAM_WEBHOOK_IMAGE")]
    pub image: Option<String>,

    /// The namespace that this program runs in. Its pods are left alone, so that it can always be started.
    #[arg(long, value_name = "NAME", env = "COFFERDAM_WEBHOOK_NAMESPACE", default_value = keys::SYSTEM_NAMESPACE)]
    pub namespace: String,

    /// The serving certificate with its chain, PEM. It is read again when it changes.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_WEBHOOK_TLS_CERT")]
    pub tls_cert: PathBuf,

    /// The certificate's private key, PEM.
    #[arg(long, value_name = "FILE", env = "COFFERDAM_WEBHOOK_TLS_KEY")]
    pub tls_key: PathBuf,

    /// A name that the certificate must cover, usually SERVICE.NAMESPACE.svc. May be given more than once.
    #[arg(
        long,
        value_name = "NAME",
        env = "COFFERDAM_WEBHOOK_TLS_SERVER_NAME",
        value_delimiter = ',',
        value_parser = server_name
    )]
    pub tls_server_name: Vec<ServerName<'static>>,

    /// How often the certificate's files are looked at.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_WEBHOOK_TLS_POLL_INTERVAL",
        default_value = "10s",
        value_parser = duration::interval
    )]
    pub tls_poll_interval: Duration,

    /// Where admission reviews are answered.
    #[arg(long, value_name = "ADDRESS", env = "COFFERDAM_WEBHOOK_LISTEN", default_value = "0.0.0.0:9443")]
    pub listen: SocketAddr,

    /// Where /livez, /readyz and /metrics are answered, in plain HTTP.
    #[arg(long, value_name = "ADDRESS", env = "COFFERDAM_WEBHOOK_ADMIN_LISTEN", default_value = "0.0.0.0:8080")]
    pub admin_listen: SocketAddr,

    /// How long to go on serving, unready, once asked to stop: until API servers know that this replica is going.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_WEBHOOK_DRAIN_DELAY",
        default_value = "5s",
        value_parser = duration::parse
    )]
    pub drain_delay: Duration,

    /// How long requests in flight may take after that.
    #[arg(
        long,
        value_name = "TIME",
        env = "COFFERDAM_WEBHOOK_DRAIN_TIMEOUT",
        default_value = "15s",
        value_parser = duration::parse
    )]
    pub drain_timeout: Duration,

    /// How log lines look: json or text.
    #[arg(long, value_name = "FORMAT", env = "COFFERDAM_WEBHOOK_LOG_FORMAT", default_value = "text")]
    pub log_format: logs::Format,

    /// What is logged: a level, or levels by target as in info,hyper=debug.
    #[arg(long, value_name = "FILTER", env = "COFFERDAM_WEBHOOK_LOG_FILTER", default_value = "info")]
    pub log_filter: String,
}

impl ServeArgs {
    /// What the flags mean. Reads the policy file.
    pub(crate) fn into_config(self) -> Result<Config, ConfigError> {
        // Without `..`: a flag that nothing uses is a compiler's warning.
        let Self {
            policy,
            policy_poll_interval,
            image,
            namespace,
            tls_cert,
            tls_key,
            tls_server_name,
            tls_poll_interval,
            listen,
            admin_listen,
            drain_delay,
            drain_timeout,
            log_format: _,
            log_filter: _,
        } = self;
        let installation = Installation { image, namespace };
        let policy_source = policy.map_or(PolicySource::BuiltIn, PolicySource::File);
        Ok(Config {
            policy: installation.complete(policy_source.load()?),
            policy_source,
            installation,
            policy_poll: policy_poll_interval,
            certificate: Files { chain: tls_cert, key: tls_key },
            server_names: tls_server_name,
            certificate_poll: tls_poll_interval,
            listen,
            admin_listen,
            drain_delay,
            drain_timeout,
        })
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(name.to_owned()).map_err(|_| "this is no DNS name or IP address".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(flags: &[&str]) -> Result<ServeArgs, clap::Error> {
        let required = ["cofferdam-webhook", "serve", "--tls-cert=/tls.crt", "--tls-key=/tls.key"];
        Cli::try_parse_from(required.iter().chain(flags)).map(|cli| {
            let Command::Serve(args) = cli.command else { panic!("another command") };
            args
        })
    }

    #[test]
    fn every_flag_has_its_variable_and_none_that_a_service_of_our_name_would_set() {
        let mut cli = Cli::command();
        cli.build();
        let serve = cli.find_subcommand("serve").unwrap();
        for argument in serve.get_arguments().filter(|argument| argument.get_id() != "help") {
            let flag = argument.get_long().unwrap();
            assert!(flag.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{flag}");
            let variable = format!("COFFERDAM_WEBHOOK_{}", flag.to_uppercase().replace('-', "_"));
            assert_eq!(argument.get_env().unwrap().to_str(), Some(variable.as_str()));
            // Kubernetes sets COFFERDAM_WEBHOOK_PORT, _PORT_443_TCP, _SERVICE_HOST ... in pods beside the Service.
            assert!(!flag.starts_with("port") && !flag.starts_with("service"), "{flag}");
        }
    }

    #[test]
    fn the_defaults_are_those_that_the_manifests_count_on() {
        let config = parse(&[]).unwrap().into_config().unwrap();
        assert_eq!(config.listen.to_string(), "0.0.0.0:9443");
        assert_eq!(config.admin_listen.to_string(), "0.0.0.0:8080");
        assert_eq!(config.drain_delay, Duration::from_secs(5));
        // Both fit into the 30 s that a kubelet waits by default.
        assert!(config.drain_delay + config.drain_timeout < Duration::from_secs(30));
        assert_eq!(config.policy_source, PolicySource::BuiltIn);
    }

    #[test]
    fn names_are_a_list_in_the_variable_and_repeated_on_the_command_line() {
        let names = |flags: &[&str]| parse(flags).unwrap().tls_server_name.len();
        assert_eq!(names(&["--tls-server-name=a.svc,b.svc"]), 2);
        assert_eq!(names(&["--tls-server-name=a.svc", "--tls-server-name=b.svc"]), 2);
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for flag in [
            "--drain-delay=5",
            "--tls-poll-interval=0s",
            "--policy-poll-interval=0s",
            "--listen=9443",
            "--log-format=xml",
            "--tls-server-name=not a name",
            "--polcy=/policy.yaml",
        ] {
            assert!(parse(&[flag]).is_err(), "{flag}");
        }
    }
}
