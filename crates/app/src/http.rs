//! `--http` and `[http]`: where MCP is served over HTTP, and to whom.

use std::ffi::OsString;
use std::net::SocketAddr;

use raincheck::HttpConfig;

use crate::config::{File, TokenFrom};
use crate::failure::Failure;

/// The variable with the token of the server's own scope.
const TOKEN: &str = "RAINCHECK_HTTP_TOKEN";

/// Reads how the server is reached over HTTP; `None` when it is not. `address` is the one of `--http`, and
/// `allow_remote` whether the flag of that name was given.
///
/// # Errors
/// What is wrong with a token or an address.
pub(crate) fn read(
    address: Option<SocketAddr>,
    allow_remote: bool,
    file: &File,
    scope: &str,
) -> Result<Option<HttpConfig>, Failure> {
    read_with((address, allow_remote), file, scope, |name| std::env::var_os(name))
}

fn read_with(
    (address, allow_remote): (Option<SocketAddr>, bool),
    file: &File,
    scope: &str,
    env: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<HttpConfig>, Failure> {
    let Some(address) = address.or(file.http.listen) else { return Ok(None) };
    let variable = |name: &str| {
        let value = env(name).and_then(|value| value.into_string().ok());
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let mut http = HttpConfig::new(address);
    if let Some(token) = variable(TOKEN) {
        http = http.token(scope, &token);
    }
    for (owner, from) in &file.http.tokens {
        let token = match from {
            TokenFrom::Variable(name) => variable(name).ok_or_else(|| {
                Failure::usage(
                    format!("the variable {name}, the token of `{owner}`, is not set"),
                    format!("set {name}, or take `{owner}` out of [http.tokens]"),
                )
            })?,
            TokenFrom::File(path) => {
                let path = file.folder.join(path);
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    let path = path.display();
                    Failure::usage(
                        format!("the token of `{owner}` cannot be read from `{path}`: {error}"),
                        "correct the path in [http.tokens]",
                    )
                })?;
                text.trim().to_owned()
            }
        };
        http = http.token(owner, &token);
    }
    if allow_remote || file.http.allows_remote {
        http = http.allow_remote();
    }
    if file.http.is_anonymous {
        http = http.anonymous();
    }
    if let Some(oauth) = &file.http.oauth {
        http = http.oauth(oauth.clone());
    }
    http = file.http.names.iter().fold(http, |http, name| http.name(name));
    http = file.http.origins.iter().fold(http, |http, origin| http.origin(origin));
    http.check().map_err(|words| Failure::usage(words, "see docs/how-to/serve-over-http.md"))?;
    Ok(Some(http))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::address::http_address;
    use crate::config::{Overrides, parse};

    const LONG: &str = "0123456789abcdef0123456789abcdef";

    fn read(address: &str, section: &str, env: &[(&str, &str)]) -> Result<String, String> {
        let file = parse(section, PathBuf::from("."), Overrides::default()).expect("a file");
        let http = Some(http_address(address).expect("an address"));
        let find = |name: &str| {
            env.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        let http =
            read_with((http, false), &file, "local", find).map_err(|failure| failure.message)?;
        Ok(format!("{http:?}"))
    }

    #[test]
    fn a_remote_address_needs_leave_and_a_token() {
        // [SEC-1, HTTP-3]
        let leave = "[http]\nallow_remote = true\n";
        let token = [("RAINCHECK_HTTP_TOKEN", LONG)];
        for (section, env) in [("", &[][..]), (leave, &[]), ("", &token)] {
            let words = read("0.0.0.0:0", section, env).expect_err(section);
            assert!(words.contains("--allow-remote") && words.contains("token"), "{words}");
        }
        let open = "[http]\nallow_remote = true\nanonymous = true\n";
        assert!(read("0.0.0.0:0", open, &token).is_err(), "nobody without a name from elsewhere");
        let shown = read("0.0.0.0:0", leave, &token).expect("leave and a token");
        assert!(!shown.contains(LONG), "no token is shown: {shown}");
        assert!(read("7700", "", &[]).is_ok());
    }

    #[test]
    fn tokens_come_from_variables_and_files_and_short_ones_are_refused() {
        // [HTTP-3]
        let section = "[http.tokens]\nalice = { env = \"ALICE\" }\n";
        let words = read("7700", section, &[]).expect_err("not set");
        assert!(words.contains("ALICE"), "{words}");
        let words = read("7700", section, &[("ALICE", "short")]).expect_err("guessable");
        assert!(words.contains("alice") && words.contains("32"), "{words}");
        assert!(read("7700", section, &[("ALICE", LONG)]).is_ok());
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("token");
        std::fs::write(&path, format!("{LONG}\n")).expect("written");
        let section = format!("[http.tokens]\nbob = {{ file = {path:?} }}\n");
        assert!(read("7700", &section, &[]).is_ok());
        let section = "[http.tokens]\nbob = { file = \"nowhere/at/all\" }\n";
        assert!(read("7700", section, &[]).expect_err("no file").contains("nowhere"));
        for wrong in
            ["bob = \"token\"", "bob = { files = \"a\" }", "bob = { env = \"\" }", "bob = {}"]
        {
            let text = format!("[http.tokens]\n{wrong}\n");
            assert!(parse(&text, PathBuf::from("."), Overrides::default()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_a_port_or_a_numeric_host_and_a_port() {
        for (text, address) in [
            ("7700", "127.0.0.1:7700"),
            ("localhost:7700", "127.0.0.1:7700"),
            ("[::1]:7700", "[::1]:7700"),
            ("0.0.0.0:80", "0.0.0.0:80"),
        ] {
            assert_eq!(http_address(text).map(|address| address.to_string()), Ok(address.into()));
        }
        for wrong in ["", "example.org:80", "127.0.0.1", "70000", "http://127.0.0.1:7700"] {
            assert!(http_address(wrong).is_err(), "{wrong}");
        }
    }
}
