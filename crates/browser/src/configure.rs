//! What callers choose while the server runs.

use std::collections::HashMap;
use std::time::Duration;

use raincheck_core::error::{Error, Kind};
use raincheck_core::scope::Scope;
use serde::Serialize;

use crate::arguments::Arguments;
use crate::settings::Settings;

/// How many owners have a tab of their own choice at the most.
const MAX_SCOPES: usize = 1024;

/// What callers chose.
#[derive(Debug, Default)]
pub(crate) struct Choices {
    tabs: HashMap<Scope, i64>,
}

impl Choices {
    pub(crate) fn default_tab(&self, scope: &Scope) -> Option<i64> {
        self.tabs.get(scope).copied()
    }

    /// Sets the tab of an owner's commands, or with `None` lets the browser choose again.
    ///
    /// # Errors
    /// `queue_full` when as many owners as there may be have one.
    pub(crate) fn choose_tab(&mut self, scope: &Scope, tab: Option<i64>) -> Result<(), Error> {
        match tab {
            Some(tab) if self.tabs.len() < MAX_SCOPES || self.tabs.contains_key(scope) => {
                self.tabs.insert(scope.clone(), tab);
            }
            Some(_) => {
                let words = format!("{MAX_SCOPES} owners have a default tab of their own");
                return Err(Error::new(Kind::QueueFull, words)
                    .with_hint("name the tab in each command: tab_id"));
            }
            None => {
                self.tabs.remove(scope);
            }
        }
        Ok(())
    }
}

/// The limits as `configure` tells them.
#[derive(Debug, Serialize)]
pub(crate) struct Limits {
    accept_ms: u64,
    run_ms: u64,
    max_run_ms: u64,
    wait_ms: u64,
    result_ttl_s: f64,
    queue_timeout_s: f64,
    queue_limit: u32,
    max_body_bytes: usize,
}

impl Limits {
    pub(crate) fn of(settings: &Settings) -> Self {
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        Self {
            accept_ms: ms(settings.accept),
            run_ms: ms(settings.run_timeout),
            max_run_ms: ms(settings.max_run),
            wait_ms: ms(settings.wait),
            result_ttl_s: settings.result_ttl.as_secs_f64(),
            queue_timeout_s: settings.queue_timeout.as_secs_f64(),
            queue_limit: settings.queue_limit,
            max_body_bytes: settings.max_body,
        }
    }
}

/// Sets the limits that a call names, for commands from now on. Either all of them are set or none.
pub(crate) fn set_limits(settings: &mut Settings, arguments: &Arguments) -> Result<(), Error> {
    const DAY: f64 = 24.0 * 3600.0;
    let mut next = settings.clone();
    let most = next.max_run.as_secs_f64();
    for (name, unit, least, most, place) in [
        ("result_ttl_s", 1.0, 1.0, DAY, &mut next.result_ttl),
        ("queue_timeout_s", 1.0, 1.0, DAY, &mut next.queue_timeout),
        ("accept_ms", 0.001, 0.001, 600.0, &mut next.accept),
        ("run_ms", 0.001, 0.001, most, &mut next.run_timeout),
    ] {
        let Some(value) = arguments.number(name) else { continue };
        let seconds = value * unit;
        if !(least..=most).contains(&seconds) {
            let words = format!("`{name}` must be between {} and {}", least / unit, most / unit);
            return Err(Error::new(Kind::InvalidParams, words));
        }
        *place = Duration::from_secs_f64(seconds);
    }
    *settings = next;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_too_many_is_told_that_its_tab_is_not_set() {
        let mut choices = Choices::default();
        let scope = |n: usize| Scope::new(format!("s{n}").as_str());
        for n in 0..MAX_SCOPES {
            choices.choose_tab(&scope(n), Some(7)).expect("room");
        }
        let error = choices.choose_tab(&scope(MAX_SCOPES), Some(7)).expect_err("no room");
        assert_eq!(error.kind, Kind::QueueFull);
        choices.choose_tab(&scope(0), Some(8)).expect("it has one");
        choices.choose_tab(&scope(1), None).expect("gone");
        choices.choose_tab(&scope(MAX_SCOPES), Some(7)).expect("room");
        assert_eq!(choices.default_tab(&scope(0)), Some(8));
    }
}
