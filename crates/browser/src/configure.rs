//! The limits that callers set while the server runs.

use std::time::Duration;

use raincheck_core::error::{Error, Kind};
use serde::Serialize;

use crate::arguments::Arguments;
use crate::settings::Settings;

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
