//! What the cache refuses, in the words of the error table.

use std::io;

use serde::Serialize;

use raincheck_cache::{FilterFailure, InvalidFilter, NotFound, PageError, Refused};
use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::text;

/// Adds details that are ours.
pub(super) fn with(error: Error, details: &impl Serialize) -> Error {
    match Json::of(details) {
        Ok(details) => error.with_details(details),
        Err(_) => error,
    }
}

/// Adds what an entry says about it: data, not instructions.
pub(super) fn quoting(error: Error, text: String, details: &impl Serialize) -> Error {
    error.with_quoted(text, Json::of(details).ok())
}

/// A body that cannot be read, such as a damaged file.
pub(super) fn unreadable(error: &io::Error) -> Error {
    if error.kind() == io::ErrorKind::TimedOut {
        let error = Error::new(Kind::FilterLimit, "the search was stopped after two seconds");
        return with(error, &serde_json::json!({"kind": "time", "limit": 2000}));
    }
    tracing::warn!(%error, "a cached response cannot be read");
    Error::new(Kind::CacheMiss, "the cached response cannot be read any more")
}

/// A path that leads nowhere. The names of members are the entry's words.
pub(super) fn not_found(error: &NotFound) -> Error {
    #[derive(Serialize)]
    struct Details<'a> {
        nearest: &'a str,
    }
    match error {
        NotFound::Io(error) => unreadable(error),
        NotFound::Absent { nearest, .. } => {
            let error = Error::new(Kind::PathNotFound, "nothing is at this path");
            let said = match nearest.as_str() {
                "" => "the nearest is the whole of it, the path \"\"".to_owned(),
                nearest => format!("the nearest is `{nearest}`"),
            };
            quoting(error, said, &Details { nearest: nearest.as_str() })
        }
    }
}

/// A page that there cannot be.
pub(super) fn page(error: &PageError) -> Error {
    #[derive(Serialize)]
    struct Details {
        page_size_kb: usize,
    }
    match error {
        PageError::BadCursor(why) => Error::new(Kind::BadCursor, why.to_string())
            .with_hint("start again without a cursor, or with `page`"),
        PageError::PathNotFound(error) => not_found(error),
        PageError::BudgetTooSmall { bytes, needed } => {
            let kb = needed.div_ceil(1024);
            let message = format!("a page of {bytes} bytes is too small here");
            let error = Error::new(Kind::BudgetTooSmall, message)
                .with_hint(format!("ask for page_size_kb {kb} or more"));
            with(error, &Details { page_size_kb: kb })
        }
        PageError::Io(error) => unreadable(error),
    }
}

/// A body that is not stored. Whatever made it has run.
#[expect(clippy::wildcard_enum_match_arm, reason = "there may be more reasons one day")]
pub(super) fn store(error: &Refused) -> Error {
    match error {
        Refused::TooLarge { bytes, limit } => {
            #[derive(Serialize)]
            struct Details {
                size_bytes: u64,
                limit_bytes: u64,
            }
            let message = format!("an answer of {bytes} bytes is larger than the cache keeps");
            let details = Details { size_bytes: *bytes, limit_bytes: *limit };
            with(Error::new(Kind::TooLarge, message), &details)
        }
        Refused::CacheFull => {
            let message = "the cache is full of responses that are being read";
            Error::new(Kind::CacheFull, message)
        }
        Refused::Gone(gone) => super::miss::error(gone),
        other => Error::new(Kind::CacheFull, other.to_string()),
    }
}

/// A filter that does not parse.
pub(super) fn filter(invalid: &InvalidFilter) -> Error {
    #[derive(Serialize)]
    struct Details<'a> {
        line: usize,
        column: usize,
        near: &'a str,
    }
    let InvalidFilter { line, column, near, hint } = invalid;
    let message = format!("the filter does not parse at line {line}, column {column}");
    let details = Details { line: *line, column: *column, near };
    with(Error::new(Kind::InvalidFilter, message).with_hint(&**hint), &details)
}

/// A filter that came to no end, or a bad one. What it failed with may be the entry's words.
#[expect(clippy::wildcard_enum_match_arm, reason = "there may be more reasons one day")]
pub(super) fn run(failure: &FilterFailure) -> Error {
    #[derive(Serialize)]
    struct Before {
        outputs_before: usize,
    }

    #[derive(Serialize)]
    struct Limit {
        kind: &'static str,
        limit: u64,
    }
    match failure {
        FilterFailure::Failed { message, outputs_before } => {
            let error = Error::new(Kind::FilterError, "the filter failed on this body");
            let details = Before { outputs_before: *outputs_before };
            with(error, &details).with_quoted(text::clip(message, MAX_SAID), None)
        }
        FilterFailure::Limit { kind, limit } => {
            let message = format!("the filter was stopped at its limit on {kind}: {limit}");
            let details = Limit { kind: kind.as_str(), limit: *limit };
            with(Error::new(Kind::FilterLimit, message), &details)
        }
        FilterFailure::Body(error) => unreadable(error),
        other => Error::new(Kind::FilterLimit, other.to_string())
            .with_hint("use a path such as .items[3].name, or read it with get_page"),
    }
}

/// How much of what a filter failed with is told, in bytes.
const MAX_SAID: usize = 500;
