//! Pods that the API server is only asked about: hundreds in seconds, and none is made.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::stage::Stage;

/// Requests that are under way at a time.
const AT_ONCE: usize = 16;

/// What the API server said: the pod as it would store it, or why not.
pub type Answer = Result<Value, String>;

/// Asks whether each of these pods could be created in `namespace`. The answers are in the order of the pods.
///
/// # Errors
/// When the cluster cannot be reached, or a pod is no object.
pub fn create(stage: &Stage, namespace: &str, pods: &[Value]) -> Result<Vec<Answer>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
        };
        let api: Api<DynamicObject> = Api::namespaced_with(stage.cluster.client().await?, namespace, &resource);
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let mut asked = JoinSet::new();
        for (index, pod) in pods.iter().enumerate() {
            let pod: DynamicObject = serde_json::from_value(pod.clone()).context("a pod is no object")?;
            let (api, turns) = (api.clone(), Arc::clone(&turns));
            asked.spawn(async move {
                let _turn = turns.acquire().await;
                let parameters = PostParams { dry_run: true, ..PostParams::default() };
                (index, api.create(&parameters, &pod).await)
            });
        }
        let mut answers = BTreeMap::new();
        while let Some(answer) = asked.join_next().await {
            let (index, answer) = answer?;
            let answer = match answer {
                Ok(pod) => Ok(serde_json::to_value(pod)?),
                Err(kube::Error::Api(status)) => Err(status.message),
                Err(other) => return Err(other.into()),
            };
            answers.insert(index, answer);
        }
        Ok(answers.into_values().collect())
    })
}
