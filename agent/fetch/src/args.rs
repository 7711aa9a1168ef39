//! The command line. What is wrong with it is said without repeating values: a URL may hold a signature.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use cofferdam_runtime::duration;

use crate::failure::Failure;
use crate::remote::address::Address;

/// Where a kubelet looks for a container's last words.
pub(crate) const TERMINATION_LOG: &str = "/dev/termination-log";

/// Fetches a tar.gz, checks its digest and unpacks it, once.
///
/// Exit codes: 0 done, 2 usage, 10 not reached, 11 refused, 12 digest, 13 unsafe archive, 14 too large, 15 disk. The reason
/// is one sentence, on standard error and as the termination message.
#[derive(Debug, Parser)]
#[command(name = "cofferdam-fetch", version)]
pub(crate) struct Args {
    /// Where the archive is: http or https.
    #[arg(long, value_name = "URL")]
    url: String,

    /// The archive's SHA-256, as 64 hex digits.
    #[arg(long, value_name = "DIGEST")]
    sha256: String,

    /// The directory to unpack it into. Nothing of it shows there before the digest is checked.
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) into: PathBuf,

    /// Holds the token that the server asks for. A server that wants to be told when the body has arrived is told by it.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Holds the token by which this pod proves who it is.
    #[arg(long, value_name = "FILE")]
    pub(crate) identity_file: Option<PathBuf>,

    /// How long all of it may take.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = duration::interval)]
    pub(crate) deadline: Duration,

    /// The most bytes that the body may take on the volume, in whole blocks of 4 KiB, as a kubelet counts them, and with its
    /// names.
    #[arg(long, value_name = "NUMBER", default_value_t = 256 << 20)]
    pub(crate) max_bytes: u64,

    /// The most files, directories and links that the archive may hold.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000)]
    pub(crate) max_entries: u64,

    /// The file that the reason of a failure is written to, if it is there.
    #[arg(long, value_name = "FILE", default_value = TERMINATION_LOG)]
    pub(crate) termination_log: PathBuf,
}

impl Args {
    /// Reads the command line. The outer error is a request for help or for the version, or a mistake.
    pub(crate) fn parse_from(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments)
    }

    /// Where the archive is.
    pub(crate) fn address(&self) -> Result<Address, Failure> {
        Address::parse(&self.url).map_err(|error| Failure::Usage(format!("--url {error}")))
    }

    /// The digest, in lower case.
    pub(crate) fn digest(&self) -> Result<String, Failure> {
        if self.sha256.len() == 64 && self.sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(self.sha256.to_ascii_lowercase());
        }
        Err(Failure::Usage("--sha256 must be the archive's SHA-256, as 64 hex digits".to_owned()))
    }
}

/// What is wrong with a command line, with the names of flags and without their values.
pub(crate) fn mistake(error: &clap::Error) -> Failure {
    let named = match error.get(ContextKind::InvalidArg) {
        // What is not known may be a value in the wrong place.
        _ if error.kind() == ErrorKind::UnknownArgument => String::new(),
        Some(ContextValue::String(name)) => format!(" ({name})"),
        Some(ContextValue::Strings(names)) => format!(" ({})", names.join(", ")),
        _ => String::new(),
    };
    Failure::Usage(format!("{}{named}; see cofferdam-fetch --help", error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args, clap::Error> {
        Args::parse_from(std::iter::once("cofferdam-fetch").chain(arguments.iter().copied()).map(OsString::from))
    }

    #[test]
    fn the_flags_of_the_init_container_are_understood() {
        let digest = "AB".repeat(32);
        let args = parse(&[
            "--url=http://a.example/b?c=d",
            &format!("--sha256={digest}"),
            "--into=/app",
            "--token-file=/t",
            "--identity-file=/i",
            "--deadline=90s",
            "--max-bytes=268435456",
            "--max-entries=20000",
        ])
        .unwrap();
        assert_eq!(args.digest(), Ok("ab".repeat(32)));
        assert_eq!(args.address().unwrap().origin(), "http://a.example");
        assert_eq!((args.deadline, args.max_bytes, args.max_entries), (Duration::from_secs(90), 268_435_456, 20_000));
        assert_eq!(args.termination_log, PathBuf::from("/dev/termination-log"));
    }

    #[test]
    fn a_mistake_names_flags_and_repeats_no_value() {
        for (arguments, named) in [
            (&["--url=http://a/?secret"] as &[&str], "--sha256"),
            (&["--url=http://a", "--sha256=0", "--into=/a", "--deadline=secret"], "--deadline"),
            (&["--url=http://a", "--sha256=0", "--into=/a", "http://secret"], "unexpected argument"),
            (&["--secret=secret"], "unexpected argument"),
        ] {
            let failure = mistake(&parse(arguments).unwrap_err());
            assert_eq!(failure.exit_code(), 2);
            assert!(failure.sentence().contains(named), "{failure}");
            assert!(!failure.sentence().contains("secret"), "{failure}");
        }
        for url in ["ftp://a.example/secret", "secret", "http://user:secret@a.example/"] {
            let args = parse(&["--url", url, "--sha256=secret", "--into=/app"]).unwrap();
            for failure in [args.address().unwrap_err(), args.digest().unwrap_err()] {
                assert!(matches!(&failure, Failure::Usage(text) if !text.contains("secret")), "{failure}");
            }
        }
    }
}
