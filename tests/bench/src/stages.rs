//! The way of a review through the process, from the bytes of a body to those of its answer, whole and in parts.
//!
//! The parts call what [`decide`] calls, so they add up to the whole but for what is freed in between.

use std::hint::black_box;

use anyhow::{Context, Result, bail};
use cofferdam_model::policy::Policy;
use cofferdam_model::{Operation, Request, User, Verdict, changes_annotation, harden};
use cofferdam_webhook::admit::{Entry, decide};
use cofferdam_webhook::record::Record;
use cofferdam_webhook::review::{Answer, Review};
use cofferdam_webhook::weight;
use serde_json::Value;

use crate::fixture;

/// Something that can be done over and over.
pub struct Stage<'a> {
    /// What is done.
    pub name: &'static str,
    work: Box<dyn Fn() + 'a>,
}

impl<'a> Stage<'a> {
    fn new<T>(name: &'static str, work: impl Fn() -> T + 'a) -> Self {
        Self { name, work: Box::new(move || drop(black_box(work()))) }
    }

    /// Does it once, and frees what came of it.
    pub fn run(&self) {
        (self.work)();
    }
}

/// Runs `each` over the stages of a review whose body is `body`: first a yardstick that is none of ours, then the whole
/// way, then its parts in order.
///
/// # Errors
/// When the body is no review of a pod that gets a patch.
pub fn with_stages<T>(body: &[u8], each: impl FnOnce(&[Stage<'_>]) -> T) -> Result<T> {
    let policy = Policy::built_in();
    let entry = Entry::of_path(fixture::PATH).context("the webhook does not know the path")?;
    let review = Review::parse(body)?;
    let pod = review.object.tree()?;
    let creation = Request {
        uid: Some(&review.uid),
        namespace: &review.namespace,
        scope: entry.scope,
        user: User { name: &review.user_info.username, groups: &review.user_info.groups },
        operation: Operation::Create,
        pod: &pod,
    };
    let verdict = harden(&creation, &policy);
    let Verdict::Hardened(hardened) = &verdict else { bail!("the pod of the benchmarks is not hardened") };
    let stages = [
        Stage::new("yardstick: serde_json reads the body into a tree and writes it again", || {
            serde_json::from_slice::<Value>(body).and_then(|document| serde_json::to_vec(&document))
        }),
        Stage::new("**the whole way, from bytes to bytes**", || {
            let review = Review::parse(body).ok()?;
            Some(decide(entry, &review, &policy).answer.to_body())
        }),
        Stage::new("decode: the review around the pod", || Review::parse(body).map(|review| review.uid.len())),
        Stage::new("decode: what the pod would weigh", || weight::estimate(review.object.text())),
        Stage::new("decode: the pod into a tree", || review.object.tree()),
        Stage::new("harden: rules, patch and warnings", || harden(&creation, &policy)),
        Stage::new("– of it, copying the pod", || pod.clone()),
        Stage::new("record: the words for the log", || {
            Record::new(entry, &review).of_object(&pod).of_verdict(&verdict)
        }),
        Stage::new("encode: the changes for the audit log", || changes_annotation(&hardened.changes)),
        Stage::new("encode: patch, base64, answer", || {
            let mut answer = Answer::allow(&review.uid);
            answer.set_patch(&hardened.patch);
            answer.set_warnings(hardened.warnings.clone());
            answer.to_body()
        }),
    ];
    Ok(each(&stages))
}
