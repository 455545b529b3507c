//! `[wrap]`, and `[wrapped.NAME]` for single tools.

use raincheck_core::cancel::OnDisconnect;
use raincheck_core::ids::LaneId;
use raincheck_core::lane;
use toml::Spanned;
use toml::de::DeValue;

use super::lanes;
use super::section::{Section, entries};
use crate::config::problem::Problems;
use crate::config::{Wrap, Wrapped, keys};

/// The lane that calls of the wrapped server stand in.
const LANE: &str = "wrapped";

/// Reads what holds for every tool.
pub(super) fn read(value: &Spanned<DeValue<'_>>, problems: &mut Problems) -> Wrap {
    let section = Section::read(value, "wrap", &[keys::WRAP], problems);
    Wrap {
        wait: section.seconds("wait_s"),
        run_timeout: section.seconds("timeout_s"),
        concurrency: small(&section, "concurrency"),
        queue_limit: small(&section, "queue_limit"),
        ready: section.seconds("ready_s"),
        start: section.seconds("start_s"),
        restarts: small(&section, "restarts"),
        tools: Vec::new(),
    }
}

fn small(section: &Section, key: &str) -> Option<u32> {
    section.whole(key).and_then(|number| u32::try_from(number).ok())
}

/// Reads what is said of single tools, whose names only the wrapped server knows.
pub(super) fn tools(
    value: &Spanned<DeValue<'_>>,
    known: &[(LaneId, lane::Config)],
    problems: &mut Problems,
) -> Vec<(String, Wrapped)> {
    let mut tools = Vec::new();
    for (name, value) in entries(value, "wrapped", problems) {
        let path = format!("wrapped.{}", name.get_ref());
        let own = Section::read(value, &path, &[keys::WRAPPED], problems);
        if let Some(span) = own.span_of("lane").filter(|_| own.text("lane") != Some(LANE)) {
            lanes::check_known(&own, span, known, problems);
        }
        tools.push((name.get_ref().to_string(), tool(&own)));
    }
    tools
}

fn tool(own: &Section) -> Wrapped {
    Wrapped {
        wait: own.seconds("wait_s"),
        run_timeout: own.seconds("timeout_s"),
        lane: own.text("lane").map(LaneId::from),
        supports_cancel: own.flag("supports_cancel"),
        on_disconnect: own.text("on_disconnect").map(|word| match word {
            "detach" => OnDisconnect::Detach,
            _ => OnDisconnect::Cancel,
        }),
        needs_tasks: own.flag("needs_tasks"),
        is_idempotent: own.flag("idempotent"),
        max_attempts: small(own, "max_attempts"),
        backoff: own.seconds("retry_backoff_s"),
        retry_on: own.kinds("retry_on").map(<[_]>::to_vec),
        sensitive: own.list("sensitive").map(<[_]>::to_vec),
        is_hidden: own.flag("hidden").unwrap_or_default(),
    }
}
