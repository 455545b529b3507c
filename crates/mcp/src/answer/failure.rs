//! The error object of every surface [CALL-5].

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use raincheck_core::error::{Error, Guarantee, Kind};

use super::fence::Mark;

/// A call that came to nothing.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Why.
    pub error: Error,
    /// Whether the call only looks at work that was asked for before.
    pub is_read: bool,
}

impl Refused {
    /// A read that failed. What it says of work, if anything, is not whether *that* ran: unless its
    /// very form was refused, it tells no guarantee [LEASE-4].
    #[must_use]
    pub const fn read(error: Error) -> Self {
        Self { error, is_read: true }
    }

    /// A change of what was asked for before, such as a cancel: as a read where that is not found, and a
    /// work of its own otherwise.
    #[must_use]
    pub fn change(error: Error) -> Self {
        Self { is_read: error.kind == Kind::NotFound, error }
    }

    /// Returns what is known about whether the call's work ran; `None` where there is none.
    #[must_use]
    pub fn guarantee(&self) -> Option<Guarantee> {
        let is_of_form = matches!(
            self.error.kind,
            Kind::InvalidParams | Kind::InvalidRequest | Kind::UnknownTool | Kind::Unauthorized
        );
        self.error.guarantee().filter(|_| !self.is_read || is_of_form)
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self { error, is_read: false }
    }
}

/// An error as it is shown: with a surface's own word as its code, and what somebody else said in it
/// inside a fence.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    error: &'a Error,
    code: &'a str,
    guarantee: Option<Guarantee>,
    fence: Option<(&'a Mark, &'static str)>,
}

impl<'a> Failure<'a> {
    /// Shows an error whose words are ours.
    pub(crate) fn ours(error: &'a Error) -> Self {
        Self { error, code: error.kind.as_str(), guarantee: error.guarantee(), fence: None }
    }

    /// Shows an error that a task ended with: what is in the words of its tool, or quotes others, stands
    /// inside a fence.
    pub(crate) fn of_task(error: &'a Error, mark: &'a Mark, whose: &'static str) -> Self {
        let is_of_tool = matches!(
            error.kind,
            Kind::ToolFailed | Kind::InvalidResponse | Kind::TooLarge | Kind::FilterError
        );
        if is_of_tool || error.quoted.is_some() {
            Self::of_tool(error, mark, whose)
        } else {
            Self::ours(error)
        }
    }

    /// Shows an error whose message and details are of somebody else.
    pub(crate) fn of_tool(error: &'a Error, mark: &'a Mark, whose: &'static str) -> Self {
        Self { fence: Some((mark, whose)), ..Self::ours(error) }
    }

    /// Replaces the canonical word.
    pub(crate) const fn spelled(mut self, code: &'a str) -> Self {
        self.code = code;
        self
    }

    /// Replaces what is told about execution.
    pub(crate) const fn told(mut self, guarantee: Option<Guarantee>) -> Self {
        self.guarantee = guarantee;
        self
    }
}

impl Serialize for Failure<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = self.error;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code)?;
        if self.fence.is_none() {
            map.serialize_entry("message", &*error.message)?;
        }
        map.serialize_entry("retryable", &error.is_retryable())?;
        if let Some(guarantee) = self.guarantee {
            map.serialize_entry("guarantee", guarantee.as_str())?;
        }
        map.serialize_entry("recovery", error.recovery().as_str())?;
        if let Some(pause) = error.retry_after {
            let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            map.serialize_entry("retry_after_ms", &ms)?;
        }
        map.serialize_entry("hint", error.hint())?;
        if let Some((mark, whose)) = self.fence {
            map.serialize_entry("untrusted_begins", &mark.begins(whose))?;
            map.serialize_entry("message", &*error.message)?;
        }
        if let Some(details) = &error.details {
            map.serialize_entry("details", details)?;
        }
        if let Some((mark, _)) = self.fence {
            map.serialize_entry("untrusted_ends", mark.ends())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_run_is_never_said_to_be_retryable() {
        // [LEASE-9]
        let error = Error::new(Kind::StorageUnavailable, "no space");
        let shown = |error: &Error| serde_json::to_value(Failure::ours(error)).expect("JSON");
        let (usual, cut_off) = (shown(&error), error.with_guarantee(Guarantee::Unknown));
        assert_eq!((&usual["retryable"], &usual["recovery"]), (&true.into(), &"retry".into()));
        let told = shown(&cut_off);
        assert_eq!(told["retryable"], false, "{told}");
        assert_eq!(told["recovery"], "inspect_then_retry", "{told}");
        assert_ne!(told["hint"], usual["hint"]);
    }
}
