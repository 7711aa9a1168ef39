//! `policy`: whether a policy file is right, and what it means.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use cofferdam_model::keys;
use cofferdam_model::policy::{self, Policy};
use cofferdam_policy_file::{PolicyFileError, PolicySource, source};

/// Flags of `policy`.
#[derive(Args, Debug)]
pub(crate) struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    command: PolicyCommand,
}

/// What can be done with a policy.
#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Read a policy file and say what is wrong with it, with file, line and key, or what to look at.
    Check(FileArgs),
    /// Write a policy with every key, those that the file leaves out included.
    Show(FileArgs),
    /// Write the ConfigMap that the admission policies read their parameters from.
    Params(ParamsArgs),
    /// Write the JSON Schema of policy files.
    Schema,
}

/// Which policy.
#[derive(Args, Debug)]
struct FileArgs {
    /// The policy file; - is standard input. Without it the built-in policy.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Which policy, and where its parameters go.
#[derive(Args, Debug)]
struct ParamsArgs {
    #[command(flatten)]
    policy: FileArgs,
    /// The ConfigMap's name.
    #[arg(long, default_value = "cofferdam-policy-params")]
    name: String,
    /// The ConfigMap's namespace.
    #[arg(long, default_value = keys::SYSTEM_NAMESPACE)]
    namespace: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PolicyCommandError {
    /// The policy cannot be read or is wrong.
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    /// Nothing can be written.
    #[error("cannot write the answer")]
    Write(#[from] io::Error),
}

impl FileArgs {
    fn load(self) -> Result<Policy, PolicyFileError> {
        match self.file {
            Some(path) if path.as_os_str() == "-" => source::read("standard input", io::stdin().lock()),
            Some(path) => PolicySource::File(path).load(),
            None => PolicySource::BuiltIn.load(),
        }
    }
}

/// Does it, and writes the answer to `out`.
pub(crate) fn run(arguments: PolicyArgs, out: &mut impl Write) -> Result<(), PolicyCommandError> {
    match arguments.command {
        PolicyCommand::Check(file) => {
            let policy = file.load()?;
            let profiles: Vec<&str> = policy.profile_names().collect();
            writeln!(out, "The policy {} is right. Profiles: {}.", policy.digest(), profiles.join(", "))?;
            if policy.lacks_data_plane() {
                writeln!(
                    out,
                    "note: network.dataPlaneNamespaces is empty: where network policies are enforced, the gateway reaches no \
                     session"
                )?;
            }
        }
        PolicyCommand::Show(file) => out.write_all(file.load()?.show().as_bytes())?,
        PolicyCommand::Params(ParamsArgs { policy, name, namespace }) => {
            out.write_all(policy::params_config_map(&policy.load()?, &name, &namespace).as_bytes())?;
        }
        PolicyCommand::Schema => writeln!(out, "{:#}", policy::schema())?,
    }
    Ok(())
}
