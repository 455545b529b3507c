//! The part of a task that is written once and never looked for: one JSON text.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use raincheck_core::retry::Policy;
use raincheck_core::task::{Limits, Resources, Task};
use raincheck_core::trace::TraceContext;

use super::kind_of;
use crate::fault::Fault;

/// What a task was submitted with. A field that is added later needs a default.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Spec {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tags: Vec<Arc<str>>,
    pub(super) limits: StoredLimits,
    #[serde(default, skip_serializing_if = "StoredResources::is_empty")]
    pub(super) resources: StoredResources,
    pub(super) supports_cancel: bool,
    pub(super) is_idempotent: bool,
    pub(super) retry: StoredPolicy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace: Option<StoredTrace>,
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
            trace: task.trace.as_deref().map(StoredTrace::of),
        };
        serde_json::to_string(&spec).map_err(|_| Fault::Broken("a task that cannot be written"))
    }

    pub(super) fn read(text: &str) -> Result<Self, Fault> {
        serde_json::from_str(text).map_err(|_| Fault::Broken("a task that does not parse"))
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredLimits {
    ready: Span,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ready_is_accept: bool,
    #[serde(rename = "ttl")]
    queue_timeout: Span,
    accept: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<Span>,
    #[serde(default, skip_serializing_if = "Span::is_zero")]
    run_margin: Span,
    lease: Span,
    grace: Span,
    input: Span,
    retention: Span,
}

impl StoredLimits {
    fn of(limits: &Limits) -> Self {
        Self {
            ready: Span(limits.ready),
            ready_is_accept: limits.ready_is_accept,
            queue_timeout: Span(limits.queue_timeout),
            accept: Span(limits.accept),
            run: limits.run_timeout.map(Span),
            run_margin: Span(limits.run_margin),
            lease: Span(limits.lease),
            grace: Span(limits.grace),
            input: Span(limits.input),
            retention: Span(limits.retention),
        }
    }
}

impl From<StoredLimits> for Limits {
    fn from(stored: StoredLimits) -> Self {
        Self {
            ready: stored.ready.0,
            ready_is_accept: stored.ready_is_accept,
            queue_timeout: stored.queue_timeout.0,
            accept: stored.accept.0,
            run_timeout: stored.run.map(|run| run.0),
            run_margin: stored.run_margin.0,
            lease: stored.lease.0,
            grace: stored.grace.0,
            input: stored.input.0,
            retention: stored.retention.0,
        }
    }
}

/// A span of time: nanoseconds, because the text is written and read with every task. Files of earlier
/// builds hold seconds and nanoseconds apart; so does a span beyond 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Span(Duration);

impl Span {
    const fn is_zero(&self) -> bool {
        self.0.is_zero()
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match u64::try_from(self.0.as_nanos()) {
            Ok(nanos) => serializer.serialize_u64(nanos),
            Err(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Nanos(u64),
            Parts(Duration),
        }

        Ok(Self(match Either::deserialize(deserializer)? {
            Either::Nanos(nanos) => Duration::from_nanos(nanos),
            Either::Parts(span) => span,
        }))
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct StoredResources {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpu_milli: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory_mb: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scratch_mb: Option<u64>,
}

impl StoredResources {
    const fn is_empty(&self) -> bool {
        self.cpu_milli.is_none() && self.memory_mb.is_none() && self.scratch_mb.is_none()
    }

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

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredTrace {
    parent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    baggage: Option<String>,
}

impl StoredTrace {
    fn of(trace: &TraceContext) -> Self {
        Self {
            parent: trace.parent().to_owned(),
            state: trace.state().map(str::to_owned),
            baggage: trace.baggage().map(str::to_owned),
        }
    }

    /// One that this version would not take is left out: no work depends on it.
    pub(super) fn read(&self) -> Option<Arc<TraceContext>> {
        let Self { parent, state, baggage } = self;
        TraceContext::new(parent, state.as_deref(), baggage.as_deref()).map(Arc::new)
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredPolicy {
    max_attempts: u32,
    backoff: Span,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    on: Vec<String>,
}

impl StoredPolicy {
    fn of(policy: &Policy) -> Self {
        Self {
            max_attempts: policy.max_attempts,
            backoff: Span(policy.backoff),
            on: policy.on.iter().map(|kind| kind.as_str().to_owned()).collect(),
        }
    }
}

impl TryFrom<StoredPolicy> for Policy {
    type Error = Fault;

    fn try_from(stored: StoredPolicy) -> Result<Self, Fault> {
        let StoredPolicy { max_attempts, backoff, on } = stored;
        let on = on.iter().map(|word| kind_of(word)).collect::<Result<_, _>>()?;
        Ok(Self { max_attempts, backoff: backoff.0, on })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_a_number_and_the_older_form_is_still_read() {
        // [DUR-1]
        let spans = [Duration::ZERO, Duration::new(45, 1), Duration::MAX];
        let text = serde_json::to_string(&spans.map(Span)).expect("a text");
        assert!(text.starts_with("[0,45000000001,{"), "{text}");
        let read: [Span; 3] = serde_json::from_str(&text).expect("the spans");
        assert_eq!(read.map(|span| span.0), spans);
        let older: Span = serde_json::from_str(r#"{"secs":45,"nanos":1}"#).expect("a span");
        assert_eq!(older.0, Duration::new(45, 1));
    }
}
