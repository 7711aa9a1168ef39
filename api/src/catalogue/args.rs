//! The flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;
use clap::builder::BoolishValueParser;
use cofferdam_runtime::duration;
use regex::Regex;

use super::Filter;

/// Which images may be picked.
#[derive(Clone, Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct CatalogueArgs {
    /// The image that is offered first, and the only one where no repository is named.
    #[arg(long, value_name = "IMAGE", env = "COFFERDAM_API_DEFAULT_IMAGE")]
    pub default_image: String,

    /// The repository whose tags may be picked, such as node, docker.io/team/runtime or registry.example.com/runtime.
    #[arg(long = "catalogue-repository", value_name = "NAME", env = "COFFERDAM_API_CATALOGUE_REPOSITORY")]
    pub repository: Option<String>,

    /// Whether only tags of whole versions may be picked, such as 1.2.3 and 1.2.3-slim.
    #[arg(
        long = "catalogue-pinned-only",
        value_name = "BOOL",
        env = "COFFERDAM_API_CATALOGUE_PINNED_ONLY",
        default_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub pinned_only: bool,

    /// Whether tags that are a commit or a digest are left out.
    #[arg(
        long = "catalogue-exclude-sha",
        value_name = "BOOL",
        env = "COFFERDAM_API_CATALOGUE_EXCLUDE_SHA",
        default_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub exclude_sha: bool,

    /// Whether tags of what is not released are left out, such as 1.2.3-rc.1 and nightly.
    #[arg(
        long = "catalogue-exclude-prerelease",
        value_name = "BOOL",
        env = "COFFERDAM_API_CATALOGUE_EXCLUDE_PRERELEASE",
        default_value = "true",
        action = ArgAction::Set,
        value_parser = BoolishValueParser::new()
    )]
    pub exclude_prerelease: bool,

    /// Only tags in which this regular expression is found may be picked.
    #[arg(long = "catalogue-include", value_name = "REGEX", env = "COFFERDAM_API_CATALOGUE_INCLUDE")]
    pub include: Option<Regex>,

    /// Tags in which this regular expression is found are left out.
    #[arg(long = "catalogue-exclude", value_name = "REGEX", env = "COFFERDAM_API_CATALOGUE_EXCLUDE")]
    pub exclude: Option<Regex>,

    /// How many tags are shown, the newest ones. Older ones that pass as well are accepted, so that what was picked once
    /// goes on.
    #[arg(
        long = "catalogue-limit",
        value_name = "NUMBER",
        env = "COFFERDAM_API_CATALOGUE_LIMIT",
        default_value = "20"
    )]
    pub limit: usize,

    /// How often the registry is asked.
    #[arg(
        long = "catalogue-refresh-interval",
        value_name = "TIME",
        env = "COFFERDAM_API_CATALOGUE_REFRESH_INTERVAL",
        default_value = "1h",
        value_parser = duration::interval
    )]
    pub refresh_interval: Duration,

    /// Credentials for the registry, as a kubernetes.io/dockerconfigjson Secret holds them. Read again each time.
    #[arg(long = "catalogue-credentials", value_name = "FILE", env = "COFFERDAM_API_CATALOGUE_CREDENTIALS")]
    pub credentials: Option<PathBuf>,

    /// PEM certificates of authorities that are trusted besides the public ones.
    #[arg(long = "catalogue-ca-bundle", value_name = "FILE", env = "COFFERDAM_API_CATALOGUE_CA_BUNDLE")]
    pub ca_bundle: Option<PathBuf>,

    /// Ask the registry in plain HTTP: passwords and tokens cross the network as they are.
    #[arg(long = "catalogue-plain-http", env = "COFFERDAM_API_CATALOGUE_PLAIN_HTTP")]
    pub plain_http: bool,
}

impl CatalogueArgs {
    pub(super) fn filter(&self) -> Filter {
        Filter {
            pinned_only: self.pinned_only,
            exclude_sha: self.exclude_sha,
            exclude_prerelease: self.exclude_prerelease,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
        }
    }
}
