//! What hardening does, as a table: the list below *is* the table, and each file beside it is one row, but for
//! `mount_path` and `owner`, which several rules ask.

use std::fmt;

use crate::{
    pod::Draft,
    policy::{Policy, Profile},
    request::{Template, User},
    session::SessionId,
};

mod body;
mod command;
mod confinement;
mod empty_dir;
mod host;
mod host_aliases;
mod host_users;
mod image;
mod image_pull_secrets;
mod lifetime;
mod marks;
mod mount_path;
mod mounts;
mod owner;
mod ports;
mod priority;
mod privilege;
mod probe_host;
mod profile;
mod read_only_root;
mod readiness_gate;
mod reserved_names;
mod resources;
mod run_as;
mod scheduling;
mod scratch;
mod seccomp;
mod service_account_token;
mod sharing;
mod tolerations;
mod volume_types;

pub use command::is_entry;

/// What the rules go by.
pub(crate) struct Context<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) profile_name: &'a str,
    pub(crate) profile: &'a Profile,
    /// The id that the pod brings, or the one derived for it.
    pub(crate) session: Option<&'a SessionId>,
    pub(crate) occasion: Occasion,
    pub(crate) namespace: &'a str,
    /// Who asks; nobody where a live pod is looked at.
    pub(crate) user: Option<User<'a>>,
}

/// On which occasion the rules are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A pod is about to be created.
    Creation,
    /// A workload's template is looked at.
    Template(Template),
    /// New ephemeral containers are about to be added; nothing else is in view.
    Debugging,
    /// A pod is there, and is only looked at.
    Audit,
    /// A pod is there, and is looked at before and after somebody changes it.
    Update,
}

impl Occasion {
    /// Whether the whole pod is there already. It has by nature what nobody may ask for, such as a node, and what only
    /// its creation can settle is settled.
    pub(crate) fn is_afterwards(self) -> bool {
        matches!(self, Self::Audit | Self::Update)
    }
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Rule {
    /// Its name in warnings, refusals and recorded changes.
    pub name: &'static str,
    /// What it holds, in one line.
    pub holds: &'static str,
    /// What it may do to a pod.
    pub effects: &'static [Effect],
    /// Where it comes from: the Pod Security Standards' control or the page of the Kubernetes documentation.
    pub source: &'static str,
    /// Reports of people who met what it prevents, or what a rule like it got wrong.
    pub reports: &'static [&'static str],
    /// Whether the admission policies in the manifests hold it too, without the webhook.
    pub cel: Cel,
    /// Whether a live pod is audited by it; what only a creation can settle is not.
    pub audits: bool,
    /// Reads and edits the pod.
    pub(crate) apply: fn(&mut Draft, &Context<'_>),
}

/// What a rule may do to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Puts in what is missing, silently.
    Inject,
    /// Changes what was asked for and is weaker, with a warning.
    Tighten,
    /// Refuses what cannot be made safe without breaking what was asked.
    Refuse,
}

/// Whether an admission policy holds a rule too, by expressions that the API server evaluates itself (CEL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cel {
    /// It holds all of it.
    Stated,
    /// It holds all but this.
    But(&'static str),
    /// It cannot hold it, and why.
    WebhookOnly(&'static str),
}

use Cel::{But, Stated, WebhookOnly};
use Effect::{Inject, Refuse, Tighten};

/// All rules, in the order they run.
pub const RULES: &[Rule] = &[
    profile::RULE,
    host::RULE,
    host_aliases::RULE,
    volume_types::RULE,
    image::RULE,
    scheduling::RULE,
    priority::RULE,
    tolerations::RULE,
    image_pull_secrets::RULE,
    reserved_names::RULE,
    run_as::RULE,
    host_users::RULE,
    privilege::RULE,
    read_only_root::RULE,
    seccomp::RULE,
    confinement::RULE,
    service_account_token::RULE,
    sharing::RULE,
    mounts::RULE,
    probe_host::RULE,
    resources::RULE,
    empty_dir::RULE,
    lifetime::RULE,
    scratch::RULE,
    command::RULE,
    ports::RULE,
    readiness_gate::RULE,
    body::RULE,
    marks::RULE,
];

/// How many names a refusal spells out.
const SPELLED_OUT: usize = 10;

/// What a refusal says that the profile allows instead.
fn it_allows(names: &[&str]) -> String {
    match names.split_at_checked(SPELLED_OUT) {
        Some((first, rest)) if !rest.is_empty() => format!("it allows {} and {} more", first.join(", "), rest.len()),
        _ if names.is_empty() => "it allows none".to_owned(),
        _ => format!("it allows {}", names.join(", ")),
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("name", &self.name).field("effects", &self.effects).finish_non_exhaustive()
    }
}
