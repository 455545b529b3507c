//! What the extension is told of each item that it posted.

use serde::Serialize;

/// What became of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It counts, and that is committed: the extension may go on, or forget it.
    Accepted,
    /// Nobody has such a command.
    Unknown,
    /// It speaks for an attempt that is not the command's any more.
    Stale,
    /// The command had ended; an outcome was kept beside its own.
    AlreadyTerminal,
    /// It is not understood.
    Invalid(String),
    /// It could not be stored; the extension keeps it and posts it again.
    Unavailable,
}

/// What becomes of a verdict: the word, and whether the extension posts the item again.
const TABLE: &[(Verdict, Option<&str>)] = &[
    (Verdict::Accepted, None),
    (Verdict::Unknown, Some("unknown")),
    (Verdict::Stale, Some("stale")),
    (Verdict::AlreadyTerminal, Some("already_terminal")),
    (Verdict::Unavailable, Some("storage_unavailable")),
];

/// A verdict as it goes over the wire.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Verdict {
    /// Writes the verdict on an item that names a command so.
    pub(crate) fn line(self, correlation_id: Option<String>) -> Line {
        let known = TABLE.iter().find(|(known, _)| *known == self).map(|(_, word)| *word);
        // What is not in the table is an item that is not understood.
        let reason = known.unwrap_or(Some("invalid_request"));
        let message = if let Self::Invalid(why) = self { Some(why) } else { None };
        Line { correlation_id, accepted: reason.is_none(), reason, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_counts_is_accepted_and_anything_else_says_why() {
        // [BROWSER-11]
        let line = |verdict: Verdict| {
            serde_json::to_string(&verdict.line(Some("c".to_owned()))).expect("JSON")
        };
        assert_eq!(line(Verdict::Accepted), r#"{"correlation_id":"c","accepted":true}"#);
        for (verdict, reason) in [
            (Verdict::Unknown, "unknown"),
            (Verdict::Stale, "stale"),
            (Verdict::AlreadyTerminal, "already_terminal"),
            (Verdict::Unavailable, "storage_unavailable"),
            (Verdict::Invalid("why".to_owned()), r#"invalid_request","message":"why"#),
        ] {
            let told = format!(r#"{{"correlation_id":"c","accepted":false,"reason":"{reason}"}}"#);
            assert_eq!(line(verdict), told);
        }
    }
}
