//! The one error table: every surface spells a failure from it [CALL-5, LEASE-4].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::content::Json;

/// What is known about whether the work ran [LEASE-4].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Guarantee {
    /// It surely did not run.
    NotExecuted,
    /// It may have run.
    Unknown,
    /// It ran.
    Executed,
}

impl Guarantee {
    /// Returns the contract's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotExecuted => "not_executed",
            Self::Unknown => "unknown",
            Self::Executed => "executed",
        }
    }

    /// Finds the guarantee a word stands for.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::NotExecuted, Self::Unknown, Self::Executed].into_iter().find(|g| g.as_str() == word)
    }
}

/// What the caller can sensibly do next [LEASE-4].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Make the same call again.
    Retry,
    /// Look at the effects first, then decide.
    InspectThenRetry,
    /// The same call will fail again.
    None,
}

impl Recovery {
    /// Returns the contract's word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::InspectThenRetry => "inspect_then_retry",
            Self::None => "none",
        }
    }
}

/// One row of the error table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The kind the row is about.
    pub kind: Kind,
    /// The canonical word.
    pub code: &'static str,
    /// The words of the operations surface, the most general first.
    pub unity: &'static [&'static str],
    /// The word of the browser surface where it differs from the canonical one.
    pub browser: Option<&'static str>,
    /// The HTTP status.
    pub http: u16,
    /// Whether the same call may work later.
    pub is_retryable: bool,
    /// What is known about execution, unless the error says otherwise; `None` where it does not apply.
    pub guarantee: Option<Guarantee>,
    /// What to do next, unless the error says otherwise.
    pub recovery: Recovery,
    /// The next step in words, unless the error says otherwise.
    pub hint: &'static str,
}

macro_rules! table {
    ($($(#[$doc:meta])* $kind:ident $code:literal $unity:tt $browser:tt $http:literal $retry:ident $guarantee:ident $recovery:ident $hint:literal;)+) => {
        /// The kinds of failure, one for each thing a caller can do about it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[$doc])* $kind,)+
        }

        /// The error table. Kinds of filters, the cache and its paths are for the response cache,
        /// [`Kind::CancelNotSupported`] is for native MCP tasks: nothing makes them yet.
        pub const TABLE: &[Entry] = &[$(Entry {
            kind: Kind::$kind,
            code: $code,
            unity: &$unity,
            browser: table!(@browser $browser),
            http: $http,
            is_retryable: table!(@bool $retry),
            guarantee: table!(@guarantee $guarantee),
            recovery: Recovery::$recovery,
            hint: $hint,
        },)+];
    };
    (@browser -) => { None };
    (@browser $word:literal) => { Some($word) };
    (@bool yes) => { true };
    (@bool no) => { false };
    (@guarantee Absent) => { None };
    (@guarantee $guarantee:ident) => { Some(Guarantee::$guarantee) };
}

table! {
    /// An argument is missing, unknown or out of range.
    InvalidParams "invalid_params" ["ERR_INVALID_PARAMS"] - 400 no NotExecuted None "correct the argument that the message names and call again";
    /// The request itself is malformed.
    InvalidRequest "invalid_request" ["ERR_INVALID_REQUEST"] - 400 no NotExecuted None "send a well-formed request";
    /// No tool has this name.
    UnknownTool "unknown_tool" ["ERR_UNKNOWN_COMMAND"] - 404 no NotExecuted None "call tools/list for the names";
    /// Nothing of the caller's has this id.
    NotFound "not_found" ["ERR_JOB_NOT_FOUND"] - 404 no NotExecuted None "check the id, or list your tasks";
    /// It was there; its retention is over.
    Expired "expired" ["ERR_JOB_NOT_FOUND"] - 410 no Absent None "its retention is over; run the tool again if you still need the result";
    /// The idempotency key was used with other inputs.
    IdempotencyConflict "idempotency_conflict" ["ERR_IDEMPOTENCY_CONFLICT"] - 409 no NotExecuted None "use a new idempotency_key for other inputs";
    /// The peer speaks another protocol version.
    PeerIncompatible "peer_incompatible" ["ERR_PROTOCOL_VERSION"] - 426 no NotExecuted None "install the matching version of the peer";
    /// The lane is full.
    QueueFull "queue_full" ["ERR_QUEUE_FULL"] - 429 yes NotExecuted Retry "wait for retry_after_ms and call again";
    /// Its time in the queue was over before it could run.
    QueueTimeout "queue_timeout" ["ERR_REQUEST_TIMEOUT"] - 504 yes NotExecuted Retry "submit it again when its queue is shorter, or with a higher priority";
    /// The peer was not ready in time.
    PeerNotReady "peer_not_ready" ["ERR_EDITOR_NOT_READY", "ERR_UNITY_DISCONNECTED", "ERR_COMPILE_TIMEOUT"] - 503 yes NotExecuted Retry "wait until the peer is ready and call again";
    /// The peer went away during the attempt.
    PeerLost "peer_lost" ["ERR_RECONNECT_TIMEOUT"] - 503 no Unknown InspectThenRetry "look at what the attempt left behind before you run it again";
    /// The worker went away during the attempt.
    WorkerLost "worker_lost" ["ERR_RECONNECT_TIMEOUT"] - 503 no Unknown InspectThenRetry "look at what the attempt left behind before you run it again";
    /// Nobody accepted the attempt in time.
    AcceptTimeout "accept_timeout" ["ERR_REQUEST_TIMEOUT"] "extension_no_response" 504 yes NotExecuted Retry "check that the peer is running and call again";
    /// The run deadline passed.
    RunTimeout "run_timeout" ["ERR_REQUEST_TIMEOUT"] "execution_timeout" 504 no Unknown InspectThenRetry "look at what the attempt left behind, then run it with a longer limit";
    /// The tool itself failed.
    ToolFailed "tool_failed" ["ERR_UNITY_EXECUTION"] - 200 no Executed InspectThenRetry "read the message and the log of the task, correct the cause and run it again";
    /// The executor answered something that is no answer.
    InvalidResponse "invalid_response" ["ERR_INVALID_RESPONSE"] - 502 no Unknown InspectThenRetry "look at the log of the task; the tool broke its own format";
    /// The answer is larger than may be kept.
    TooLarge "too_large" ["ERR_RESPONSE_TOO_LARGE"] - 413 no Executed None "ask for a smaller part, or have the tool write an artifact";
    /// It was cancelled.
    Cancelled "cancelled" ["ERR_CANCELLED"] - 200 no Absent None "submit it again if it is still needed";
    /// This kind of target takes no cancel.
    CancelNotSupported "cancel_not_supported" ["ERR_CANCEL_NOT_SUPPORTED"] - 409 no Absent None "wait for it to end";
    /// The executor panicked.
    Panicked "panicked" ["ERR_INTERNAL"] - 500 no Unknown InspectThenRetry "report the fault; look at the effects before you run it again";
    /// The store cannot take or give it.
    StorageUnavailable "storage_unavailable" ["ERR_STORAGE"] - 503 yes NotExecuted Retry "free space or restore access to the state folder, then call again";
    /// The caller may not do this.
    Unauthorized "unauthorized" ["ERR_AUTH"] - 401 no NotExecuted None "send the secret of endpoint.json as a bearer token";
    /// The address may not be opened.
    UrlBlocked "url_blocked" ["url_blocked"] - 403 no NotExecuted None "open an http or https page; this server itself, link-local addresses and the metadata services of clouds are blocked";
    /// The filter does not parse.
    InvalidFilter "invalid_filter" ["invalid_filter"] - 400 no NotExecuted None "correct the filter at the place the details name";
    /// The filter failed while it ran.
    FilterError "filter_error" ["filter_error"] - 422 no NotExecuted None "correct the filter for this data";
    /// The filter used up its limit.
    FilterLimit "filter_limit" ["filter_limit"] - 422 no NotExecuted None "ask for less at once";
    /// The cached response is gone.
    CacheMiss "cache_miss" ["cache_miss"] - 404 no NotExecuted None "run the call again that made it";
    /// The cache cannot keep it.
    CacheFull "cache_full" ["cache_full"] - 413 no NotExecuted None "ask for less at once";
    /// Nothing is at this path.
    PathNotFound "path_not_found" ["path_not_found"] - 404 no NotExecuted None "look at the outline for the paths there are";
    /// The cursor is not one of this list.
    BadCursor "bad_cursor" ["bad_cursor"] - 400 no NotExecuted None "start again without a cursor";
    /// A page of this size cannot hold what stands there.
    BudgetTooSmall "budget_too_small" ["budget_too_small"] - 400 no NotExecuted None "ask for a larger page_size_kb";
}

impl Kind {
    /// Returns the row of the table.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "TABLE holds one row per kind, in order")]
    pub const fn entry(self) -> &'static Entry {
        &TABLE[self as usize]
    }

    /// Returns the canonical word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.entry().code
    }

    /// Finds the kind a canonical word stands for.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        TABLE.iter().find(|entry| entry.code == word).map(|entry| entry.kind)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a page, a program or another server said, as an error repeats it: data, not instructions
/// [SEC-10].
///
/// A surface shows it inside a mark that its speaker cannot forge, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Its words.
    pub text: Arc<str>,
    /// Structured detail in its words, an object: such as the stack of an exception.
    pub details: Option<Json>,
}

/// A failure as a value: a kind, words, and what the kind's row does not say.
///
/// The message holds no absolute path, SQL, backtrace or secret, and no words of a page or another
/// program: those are [`Error::quoted`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The row of the table.
    pub kind: Kind,
    /// What happened, with the values in question.
    pub message: Arc<str>,
    /// What others said about it; it is not part of the serialized error object.
    pub quoted: Option<Arc<Quoted>>,
    /// Overrides the row's guarantee.
    pub guarantee: Option<Guarantee>,
    /// How long to wait before the same call may work.
    pub retry_after: Option<Duration>,
    /// Overrides the row's hint.
    pub hint: Option<Arc<str>>,
    /// Structured detail, an object.
    pub details: Option<Json>,
    /// Whether no other attempt of the same task may follow, whatever its policy says. It is no part of what
    /// is stored or told.
    pub is_last: bool,
}

impl Error {
    /// Makes an error of a kind with a message.
    pub fn new(kind: Kind, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            quoted: None,
            guarantee: None,
            retry_after: None,
            hint: None,
            details: None,
            is_last: false,
        }
    }

    /// Makes the answer for an id that is nobody's, or not the caller's [SCOPE-2].
    #[must_use]
    pub fn not_found() -> Self {
        Self::new(Kind::NotFound, "unknown task")
    }

    /// Replaces what the table says about execution.
    #[must_use]
    pub fn with_guarantee(mut self, guarantee: Guarantee) -> Self {
        self.guarantee = Some(guarantee);
        self
    }

    /// Says when the same call may work.
    #[must_use]
    pub fn with_retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }

    /// Replaces the table's next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Arc<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what a page, a program or another server said about it.
    #[must_use]
    pub fn with_quoted(mut self, text: impl Into<Arc<str>>, details: Option<Json>) -> Self {
        self.quoted = Some(Arc::new(Quoted { text: text.into(), details }));
        self
    }

    /// Adds structured detail in words of this program.
    #[must_use]
    pub fn with_details(mut self, details: Json) -> Self {
        self.details = Some(details);
        self
    }

    /// Returns what is known about execution.
    #[must_use]
    pub fn guarantee(&self) -> Option<Guarantee> {
        self.guarantee.or(self.kind.entry().guarantee)
    }

    /// Returns what to do next. What may have run is looked at before it is run again, whatever the
    /// row of the kind says.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        let recovery = self.kind.entry().recovery;
        let may_have_run =
            matches!(self.guarantee(), Some(Guarantee::Unknown | Guarantee::Executed));
        if recovery == Recovery::Retry && may_have_run {
            Recovery::InspectThenRetry
        } else {
            recovery
        }
    }

    /// Tells whether the same call may simply be made again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.kind.entry().is_retryable && self.recovery() == Recovery::Retry
    }

    /// Returns the next step in words.
    #[must_use]
    pub fn hint(&self) -> &str {
        match &self.hint {
            Some(hint) => hint,
            None if self.recovery() == self.kind.entry().recovery => self.kind.entry().hint,
            None => "look at what it left behind before you run it again",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Error {}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.kind.as_str())?;
        map.serialize_entry("message", &*self.message)?;
        map.serialize_entry("retryable", &self.is_retryable())?;
        map.serialize_entry("guarantee", &self.guarantee().map(Guarantee::as_str))?;
        map.serialize_entry("recovery", self.recovery().as_str())?;
        if let Some(pause) = self.retry_after {
            let ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
            map.serialize_entry("retry_after_ms", &ms)?;
        }
        map.serialize_entry("hint", self.hint())?;
        if let Some(details) = &self.details {
            map.serialize_entry("details", details)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_row_and_word() {
        for (place, entry) in TABLE.iter().enumerate() {
            assert_eq!(entry.kind as usize, place, "{} stands in another's place", entry.code);
            assert_eq!(
                Kind::from_word(entry.code),
                Some(entry.kind),
                "{} is not unique",
                entry.code
            );
            assert!(!entry.hint.is_empty(), "{} names no next step", entry.code);
        }
    }

    #[test]
    fn a_retryable_kind_never_claims_to_have_run() {
        for entry in TABLE.iter().filter(|entry| entry.is_retryable) {
            assert_eq!(entry.guarantee, Some(Guarantee::NotExecuted), "{}", entry.code);
            assert_eq!(entry.recovery, Recovery::Retry, "{}", entry.code);
        }
    }

    // [LEASE-4] [LEASE-9]
    #[test]
    fn what_may_have_run_is_never_to_be_called_again_blindly() {
        for entry in TABLE {
            let error = Error::new(entry.kind, "words").with_guarantee(Guarantee::Unknown);
            assert!(!error.is_retryable(), "{}", entry.code);
            assert_ne!(error.recovery(), Recovery::Retry, "{}", entry.code);
            let is_told_to_retry = error.hint().contains("call again");
            assert!(!is_told_to_retry || !entry.is_retryable, "{}: {}", entry.code, error.hint());
        }
    }

    #[test]
    fn words_of_others_stand_apart_from_the_error_object() {
        // [SEC-10]
        let details = Json::parse(r#"{"stack":"planted"}"#).expect("JSON");
        let error = Error::new(Kind::ToolFailed, "the script threw an error");
        let plain = serde_json::to_string(&error).expect("an error is JSON");
        let error = error.with_quoted("planted", Some(details));
        assert_eq!(serde_json::to_string(&error).expect("an error is JSON"), plain);
        assert!(!error.to_string().contains("planted"));
        assert_eq!(error.quoted.expect("quoted").text.as_ref(), "planted");
    }

    #[test]
    fn an_error_object_carries_the_fields_of_the_contract() {
        let error = Error::new(Kind::QueueFull, "lane `one` is full")
            .with_retry_after(Duration::from_millis(1500));
        expect_test::expect![[r#"{"code":"queue_full","message":"lane `one` is full","retryable":true,"guarantee":"not_executed","recovery":"retry","retry_after_ms":1500,"hint":"wait for retry_after_ms and call again"}"#]]
            .assert_eq(&serde_json::to_string(&error).expect("an error is JSON"));
    }
}
