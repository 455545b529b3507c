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

/// Parts of the name of a flag whose value is a secret.
const SECRET: [&str; 8] = ["key", "token", "secret", "pass", "auth", "cred", "header", "cookie"];

/// How long a word of letters and digits is that may be a secret.
const LONG: usize = 20;

/// Returns a command as it may be shown: without the credentials of addresses, the values of flags and
/// variables that are named like secrets, and words that look like one.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let mut shown = Vec::new();
    let mut is_value = false;
    for word in words {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        let lower = name.to_lowercase();
        let is_named = !name.contains("://") && SECRET.iter().any(|part| lower.contains(part));
        let is_flag = word.starts_with('-');
        shown.push(match value {
            _ if is_value && !is_flag => "…".to_owned(),
            Some(value) if is_named || is_random(value) => format!("{name}=…"),
            None if !is_flag && is_random(word) => "…".to_owned(),
            Some(_) | None => credentials(word).into_owned(),
        });
        is_value = is_flag && is_named && value.is_none();
    }
    shown.join(" ")
}

/// Tells whether a word is long, of letters and digits alone, and mixes them.
fn is_random(word: &str) -> bool {
    let is_of_token =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=');
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    let is_path = word.matches('/').count() > 1 || word.starts_with('/');
    word.len() >= LONG
        && !is_path
        && word.chars().all(is_of_token)
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_without_its_secrets() {
        // [SEC-11]
        for (line, shown) in [
            (
                "npx -y @modelcontextprotocol/server-github",
                "npx -y @modelcontextprotocol/server-github",
            ),
            (
                "uvx mcp-server-git --repository /home/me/a1b2c3d4e5f6",
                "uvx mcp-server-git --repository /home/me/a1b2c3d4e5f6",
            ),
            ("s --api-key abc --port 7", "s --api-key … --port 7"),
            ("s --token=abc API_TOKEN=x --verbose", "s --token=… API_TOKEN=… --verbose"),
            ("s ghp_16C7e42F292c6912E7710c838347Ae178B4a", "s …"),
            ("s postgres://me:pw@host/db", "s postgres://…@host/db"),
            ("s -p --password --fast", "s -p --password --fast"),
            ("https://host/mcp?key=1", "https://host/mcp?…"),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(command_line(&words), shown);
        }
    }

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
