//! What the server says to an editor.

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Guarantee, Kind};
use raincheck_core::time::Timestamp;
use serde::Serialize;

use super::RequestId;
use crate::specs::AnnouncedTool;

/// A message to an editor.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message<'a> {
    Hello {
        protocol_version: u64,
        server_version: &'static str,
        connection_id: &'a str,
        editor_status_interval_ms: u64,
        max_message_bytes: usize,
        nonce: &'a str,
        mac: &'a str,
    },
    Capability {
        tools: &'a [AnnouncedTool],
    },
    Execute(Call<'a>),
    SubmitJob(Call<'a>),
    ResultAck {
        request_id: &'a str,
    },
    GetJobStatus {
        request_id: String,
        job_id: &'a str,
    },
    Cancel {
        request_id: String,
        target_request_id: RequestId,
        #[serde(skip_serializing_if = "Option::is_none")]
        target_job_id: Option<&'a str>,
    },
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        request_id: Option<&'a str>,
        error: Refusal<'a>,
    },
    Bye {
        reason: &'a str,
    },
}

/// A call.
#[derive(Debug, Serialize)]
pub(crate) struct Call<'a> {
    pub(crate) request_id: RequestId,
    pub(crate) fence: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_request_id: Option<&'a str>,
    pub(crate) tool_name: &'a str,
    pub(crate) params: &'a Json,
    pub(crate) timeout_ms: u64,
    pub(crate) submitted_at: Timestamp,
}

/// An error in the words of the wire.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal<'a> {
    code: &'static str,
    message: &'a str,
    retryable: bool,
    details: Details,
}

#[derive(Debug, Serialize)]
struct Details {
    execution_guarantee: &'static str,
    recovery_action: &'static str,
}

impl<'a> Refusal<'a> {
    fn of(error: &'a Error) -> Self {
        Self {
            code: error.kind.entry().unity.first().copied().unwrap_or("ERR_INTERNAL"),
            message: &error.message,
            retryable: error.is_retryable(),
            details: Details {
                execution_guarantee: error.guarantee().map_or("not_executed", Guarantee::as_str),
                recovery_action: error.recovery().as_str(),
            },
        }
    }
}

impl Message<'_> {
    /// Writes the message.
    pub(crate) fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Writes an error about a call, or about what was sent.
pub(crate) fn error(kind: Kind, words: &str, request_id: Option<&str>) -> String {
    let error = Error::new(kind, words);
    Message::Error { request_id, error: Refusal::of(&error) }.write()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_was_done_and_what_to_do() {
        // [UNITY-5] [LEASE-4]
        expect_test::expect![[r#"{"type":"error","request_id":"k1","error":{"code":"ERR_UNKNOWN_COMMAND","message":"no such type","retryable":false,"details":{"execution_guarantee":"not_executed","recovery_action":"none"}}}"#]]
            .assert_eq(&error(Kind::UnknownTool, "no such type", Some("k1")));
    }
}
