//! Credentials in addresses, left out of what is shown.

use std::borrow::Cow;

/// Returns a line with what may be a credential of an address left out: what stands before its host, and
/// its query. Rather more is left out than too little: a line that holds an address is one of a
/// configuration or of a message, and its host is what tells it apart.
#[must_use]
pub(crate) fn credentials(line: &str) -> Cow<'_, str> {
    let Some((before, address)) = line.split_once("://") else { return Cow::Borrowed(line) };
    let is_quote = |c: char| matches!(c, '"' | '\'' | '`');
    let (address, after) = match address.rfind(is_quote) {
        Some(end) => address.split_at(end),
        None => (address, ""),
    };
    let host = address.rsplit_once('@').map(|(_, host)| host);
    let shown = host.unwrap_or(address);
    let has_query = shown.contains('?');
    if host.is_none() && !has_query {
        return Cow::Borrowed(line);
    }
    let hidden = if host.is_some() { "…@" } else { "" };
    let plain = shown.split('?').next().unwrap_or_default();
    let query = if has_query { "?…" } else { "" };
    Cow::Owned(format!("{before}://{hidden}{plain}{query}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_credential_of_an_address_is_shown() {
        for (line, shown) in [
            (r#"url = "postgres://me:se/cr@t@host/db""#, r#"url = "postgres://…@host/db""#),
            ("postgres://me:secret@host", "postgres://…@host"),
            ("the store `x://:secret@host`: no", "the store `x://…@host`: no"),
            (r#"url = "x://host/db?password=secret" # mine"#, r#"url = "x://host/db?…" # mine"#),
            (r#"url = "x://me:sec ret@host"#, r#"url = "x://…@host"#),
            (r#"path = "a.db""#, r#"path = "a.db""#),
            ("see https://toml.io", "see https://toml.io"),
        ] {
            assert_eq!(credentials(line), shown);
        }
    }
}
