//! Errors that a transport answers itself.

use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use serde::Serialize;

use crate::server::Refusal;
use crate::wire::{Code, Id, Invalid};

/// An error that no handler has answered.
#[derive(Debug, Serialize)]
pub(crate) struct Refused {
    jsonrpc: &'static str,
    id: Option<Id>,
    error: ErrorData,
}

impl Refused {
    pub(crate) const fn new(id: Option<Id>, error: ErrorData) -> Self {
        Self { jsonrpc: "2.0", id, error }
    }
}

impl From<Invalid> for Refused {
    fn from(Invalid { id, code, message }: Invalid) -> Self {
        let error = match code {
            Code::Parse => ErrorData::parse_error(message, None),
            Code::Request => ErrorData::invalid_request(message, None),
            Code::Params => ErrorData::invalid_params(message, None),
        };
        Self::new(id, error)
    }
}

/// Words a request that is not taken in.
pub(crate) fn refused(refusal: Refusal) -> ErrorData {
    match refusal {
        Refusal::IdTaken => {
            ErrorData::invalid_request("a request with this `id` is still unanswered", None)
        }
        Refusal::Full => {
            let words = "too much is asked and not answered or not read; read answers first";
            let data = serde_json::json!({"code": "queue_full", "retryable": true});
            ErrorData::new(ErrorCode(-32000), words, Some(data))
        }
    }
}
