//! What `error::TABLE` looks like on a page.

use std::fmt::Write as _;

use raincheck_core::error::{Guarantee, TABLE};

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
