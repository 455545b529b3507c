//! The part of a task that is written once and never looked for: one JSON text.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use raincheck_core::retry::Policy;
use raincheck_core::task::{Limits, Resources, Task};

use super::kind_of;
use crate::fault::Fault;

/// What a task was submitted with. A field that is added later needs a default.
#[derive(Serialize, Deserialize)]
pub(super) struct Spec {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<Arc<str>>,
    pub(super) limits: StoredLimits,
    #[serde(default)]
    pub(super) resources: StoredResources,
    pub(super) supports_cancel: bool,
    pub(super) is_idempotent: bool,
    pub(super) retry: StoredPolicy,
}

impl Spec {
    pub(super) fn text(task: &Task) -> Result<String, Fault> {
        let spec = Self {
            tags: task.tags.clone(),
            limits: StoredLimits::of(&task.limits),
            resources: StoredResources::of(&task.resources),
            supports_cancel: task.supports_cancel,
            is_idempotent: task.is_idempotent,
            retry: StoredPolicy::of(&task.retry),
        };
        serde_json::to_string(&spec).map_err(|_| Fault::Broken("a task that cannot be written"))
    }

    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        serde_json::from_str(text).map_err(|_| Fault::Broken("a task that does not parse"))
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredLimits {
    ready: Duration,
    ttl: Duration,
    accept: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Duration>,
    #[serde(default)]
    run_margin: Duration,
    lease: Duration,
    grace: Duration,
    input: Duration,
    retention: Duration,
}

impl StoredLimits {
    const fn of(limits: &Limits) -> Self {
        let Limits { ready, ttl, accept, run, run_margin, lease, grace, input, retention } =
            *limits;
        Self { ready, ttl, accept, run, run_margin, lease, grace, input, retention }
    }
}

impl From<StoredLimits> for Limits {
    fn from(stored: StoredLimits) -> Self {
        let StoredLimits { ready, ttl, accept, run, run_margin, lease, grace, input, retention } =
            stored;
        Self { ready, ttl, accept, run, run_margin, lease, grace, input, retention }
    }
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct StoredResources {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu_milli: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_mb: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scratch_mb: Option<u64>,
}

impl StoredResources {
    const fn of(resources: &Resources) -> Self {
        let Resources { cpu_milli, memory_mb, scratch_mb } = *resources;
        Self { cpu_milli, memory_mb, scratch_mb }
    }
}

impl From<StoredResources> for Resources {
    fn from(stored: StoredResources) -> Self {
        let StoredResources { cpu_milli, memory_mb, scratch_mb } = stored;
        Self { cpu_milli, memory_mb, scratch_mb }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredPolicy {
    max_attempts: u32,
    backoff: Duration,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    on: Vec<String>,
}

impl StoredPolicy {
    fn of(policy: &Policy) -> Self {
        Self {
            max_attempts: policy.max_attempts,
            backoff: policy.backoff,
            on: policy.on.iter().map(|kind| kind.as_str().to_owned()).collect(),
        }
    }
}

impl TryFrom<StoredPolicy> for Policy {
    type Error = Fault;

    fn try_from(stored: StoredPolicy) -> Result<Self, Fault> {
        let StoredPolicy { max_attempts, backoff, on } = stored;
        let on = on.iter().map(|word| kind_of(word)).collect::<Result<_, _>>()?;
        Ok(Self { max_attempts, backoff, on })
    }
}
