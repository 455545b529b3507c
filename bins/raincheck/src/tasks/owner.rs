//! The server that owns a store, called over its listener.

use raincheck::core::text::escape_lines;
use raincheck_app::Failure;
use raincheck_loopback::client::Connection;
use raincheck_loopback::control;
use raincheck_loopback::endpoint::{self, Endpoint, Kind};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::place::Place;

/// An open connection to the server that owns the store.
pub(crate) struct Owner {
    connection: Connection,
    pub(crate) pid: u32,
    scope: String,
}

impl Owner {
    /// Connects to the server that owns a store; `None` when none can be reached.
    pub(crate) async fn reach(place: &Place) -> Option<Self> {
        let pid = place.reader.last_owner()?;
        let is_owner = |one: &Endpoint| one.pid == pid && one.kind == Kind::Http;
        for endpoint in endpoint::all(&place.endpoints).into_iter().filter(is_owner) {
            match Connection::open(&endpoint).await {
                Ok(connection) => {
                    let scope = place.scope.as_str().to_owned();
                    return Some(Self { connection, pid, scope });
                }
                Err(error) => tracing::debug!(%error, pid, "a server cannot be reached"),
            }
        }
        None
    }

    /// Calls one of the task tools and returns its answer.
    pub(crate) async fn call<T: DeserializeOwned>(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<T, Failure> {
        let call = json!({"scope": self.scope, "tool": tool, "arguments": arguments});
        let answer =
            self.connection.post(control::PATH, call.to_string()).await.map_err(|error| {
                let message = format!("the server, process {}, went away: {error}", self.pid);
                Failure::failed(message, "repeat the command")
            })?;
        if answer.status != 200 {
            return Err(refused(answer.status, &answer.body));
        }
        serde_json::from_slice(&answer.body).map_err(|error| {
            Failure::failed(
                format!("the server's answer to {tool} cannot be read: {error}"),
                "see that the server and this command are of one version: raincheck status",
            )
        })
    }
}

/// Puts an error answer of a server into words.
fn refused(status: u16, body: &[u8]) -> Failure {
    let (message, next) = told(status, body);
    Failure::failed(format!("the server refused the call: {message}"), next)
}

/// Returns what an error answer says, and what to do next.
pub(crate) fn told(status: u16, body: &[u8]) -> (String, String) {
    #[derive(Deserialize)]
    struct Body {
        error: Told,
    }

    #[derive(Deserialize)]
    struct Told {
        message: String,
        hint: Option<String>,
    }

    let (message, hint) = match serde_json::from_slice::<Body>(body) {
        Ok(Body { error: Told { message, hint } }) => (message, hint),
        Err(_) => (format!("its status is {status}"), None),
    };
    let next = hint.unwrap_or_else(|| "run: raincheck doctor".to_owned());
    (escape_lines(&message).into_owned(), escape_lines(&next).into_owned())
}
