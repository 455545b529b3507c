//! What `error::TABLE` looks like on a page.

use std::fmt::Write as _;

use raincheck_core::error::{Guarantee, Recovery, TABLE};

/// Lists every kind of failure with its row.
pub(super) fn table() -> String {
    let mut text = String::from(
        "| kind | Unity surface | browser surface | HTTP | retryable | guarantee | recovery | next step |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for entry in TABLE {
        let unity: Vec<String> = entry.unity.iter().map(|word| format!("`{word}`")).collect();
        let _ = writeln!(
            text,
            "| `{}` | {} | `{}` | {} | {} | {} | {} | {} |",
            entry.code,
            unity.join(", "),
            entry.browser.unwrap_or(entry.code),
            entry.http,
            if entry.is_retryable { "yes" } else { "no" },
            entry.guarantee.map_or("–", Guarantee::as_str),
            entry.recovery.as_str(),
            entry.hint,
        );
    }
    text
}

/// Lists every kind of failure for people who met one: its code, and what to do.
pub(super) fn codes() -> String {
    let mut text = String::from(
        "| code | did the work run, unless `guarantee` says otherwise? | call again? | what to do |\n|---|---|---|---|\n",
    );
    for entry in TABLE {
        let ran = match entry.guarantee {
            Some(Guarantee::NotExecuted) => "no",
            Some(Guarantee::Executed) => "yes",
            Some(Guarantee::Unknown) => "not known",
            None => "–",
        };
        let again = match (entry.is_retryable, entry.recovery) {
            (true, _) => "yes",
            (false, Recovery::InspectThenRetry) => "after a look at what it left",
            (false, Recovery::Retry | Recovery::None) => "no",
        };
        let _ = writeln!(text, "| `{}` | {ran} | {again} | {} |", entry.code, entry.hint);
    }
    text
}
