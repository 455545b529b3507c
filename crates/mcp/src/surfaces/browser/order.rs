//! A call taken apart: what is for the engine, and what is for the browser.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use raincheck_core::content::Json;
use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use raincheck_core::text;
use raincheck_core::tool::ToolSpec;
use raincheck_runtime::Request;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Tool;
use crate::caller::SURFACE_CAP;
use crate::wire::read_strictly;

/// The longest idempotency key, in bytes.
const MAX_KEY: usize = 512;

/// The longest wait for a browser.
const MAX_BROWSER_WAIT: Duration = Duration::from_secs(600);

/// A call of a tool of the bridge.
#[derive(Debug)]
pub(super) struct Order {
    /// How long the caller wants to wait.
    pub(super) wait: Option<Duration>,
    timeout: Option<Duration>,
    ready: Option<Duration>,
    key: Option<String>,
    what: String,
    inputs: Json,
}

impl Order {
    /// Reads the arguments of a call; `chooser` names the one that says what is asked for.
    pub(super) fn read(arguments: &Json, chooser: &str) -> Result<Self, Error> {
        let value = read_strictly(arguments, "the arguments")?;
        let wrong = |words: &str| Error::new(Kind::InvalidParams, words.to_owned());
        let Value::Object(values) = value else {
            return Err(wrong("the arguments must be an object"));
        };
        let mut members: BTreeMap<String, Box<RawValue>> =
            arguments.read().map_err(|error| wrong(&error.to_string()))?;
        members.retain(|name, _| values.get(name).is_some_and(|value| !value.is_null()));
        // `interact` takes `what` for `action`, the word that `observe` has.
        if !members.contains_key(chooser)
            && chooser == "action"
            && let Some(what) = members.remove("what")
        {
            members.insert(chooser.to_owned(), what);
        }
        let mut millis = |name: &str, least: u64, most: Duration| {
            let Some(raw) = members.remove(name) else { return Ok(None) };
            let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX);
            let whole = serde_json::from_str::<f64>(raw.get()).ok().and_then(whole);
            let fits = whole.filter(|ms| (least..=most).contains(ms));
            fits.map(|ms| Some(Duration::from_millis(ms))).ok_or_else(|| {
                wrong(&format!(
                    "`{name}` must be a whole number of milliseconds from {least} to {most}"
                ))
            })
        };
        let wait = millis("wait_ms", 0, SURFACE_CAP)?;
        let timeout = millis("timeout_ms", 1, Duration::from_secs(24 * 3600))?;
        let ready = millis("wait_for_browser_ms", 0, MAX_BROWSER_WAIT)?;
        let key = match members.remove("idempotency_key") {
            None => None,
            Some(raw) => {
                let key: Option<String> = serde_json::from_str(raw.get()).ok();
                let fits = key.filter(|key| !key.is_empty() && key.len() <= MAX_KEY);
                Some(fits.ok_or_else(|| {
                    wrong(&format!("`idempotency_key` must be a string of 1 to {MAX_KEY} bytes"))
                })?)
            }
        };
        let what =
            members.get(chooser).and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let what = text::clip(&what.unwrap_or_default(), 40).to_owned();
        let inputs = Json::of(&members).map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { wait, timeout, ready, key, what, inputs })
    }

    /// Returns how long `observe health` waits for a browser before it answers: as long as
    /// `wait_for_browser_ms` says, and no longer than `wait_ms`. Without the first it does not wait.
    pub(super) fn wait_before_health(&self, tool: Tool) -> Option<Duration> {
        let ready = self.ready.filter(|_| tool == Tool::Observe && self.what == "health")?;
        Some(self.wait.map_or(ready, |wait| wait.min(ready)))
    }

    /// Makes the request to the engine. Waits, limits and keys are no part of the inputs [IDEM-1].
    pub(super) fn request(self, spec: &ToolSpec, scope: Scope) -> Result<Request, Error> {
        if let (Some(timeout), Some(most)) = (self.timeout, spec.max_run)
            && timeout > most
        {
            let words =
                format!("`timeout_ms` is {}: at most {}", timeout.as_millis(), most.as_millis());
            return Err(Error::new(Kind::InvalidParams, words));
        }
        let mut request = Request::new(spec.name.clone(), self.inputs, scope);
        request.max_runtime = self.timeout;
        request.ready = self.ready;
        request.key = self.key.map(Arc::from);
        request.tags = vec![Arc::from(self.what)];
        Ok(request)
    }
}

/// Reads a whole number from 0 on.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be whole, positive and far below 2^53"
)]
fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..9e15).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Order, Error> {
        Order::read(&Json::parse(text).expect("JSON"), "action")
    }

    #[test]
    fn waits_limits_and_keys_are_taken_out_and_the_rest_stays_as_written() {
        // [BROWSER-2]
        let order = read(
            r#"{"what":"scroll","y":1.50,"wait_ms":0,"timeout_ms":7000.0,"idempotency_key":"k","x":null}"#,
        )
        .expect("an order");
        assert_eq!(order.inputs.get(), r#"{"action":"scroll","y":1.50}"#);
        assert_eq!(order.wait, Some(Duration::ZERO));
        assert_eq!(order.timeout, Some(Duration::from_secs(7)));
        assert_eq!((order.key.as_deref(), order.what.as_str()), (Some("k"), "scroll"));
    }

    #[test]
    fn a_limit_that_is_none_is_refused_by_its_name() {
        // [BROWSER-2]
        for (text, name) in [
            (r#"{"action":"back","wait_ms":-5}"#, "`wait_ms`"),
            (r#"{"action":"back","wait_ms":1.5}"#, "`wait_ms`"),
            (r#"{"action":"back","timeout_ms":0}"#, "`timeout_ms`"),
            (r#"{"action":"back","timeout_ms":1000000000000}"#, "`timeout_ms`"),
            (r#"{"action":"back","wait_for_browser_ms":"soon"}"#, "`wait_for_browser_ms`"),
            (r#"{"action":"back","idempotency_key":7}"#, "`idempotency_key`"),
        ] {
            let error = read(text).expect_err(text);
            assert_eq!(error.kind, Kind::InvalidParams);
            assert!(error.message.contains(name), "{error}");
        }
    }
}
