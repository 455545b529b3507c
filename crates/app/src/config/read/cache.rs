//! `[cache]`, and the calls of `[[cache.warm]]`.

use raincheck_core::content::Json;
use toml::Spanned;
use toml::de::DeValue;

use super::section::{Section, table};
use crate::config::problem::Problems;
use crate::config::{Cache, Tool, Warm, keys};

/// How many answers may be kept ahead.
const MAX_WARM: usize = 16;

/// The tool of a browser that only looks.
const LOOKS: &str = "observe";

/// The tools of a browser that act.
const ACTS: &[&str] = &["interact", "cancel", "configure"];

/// Reads the section; a call that is made ahead must be one that may be made unasked.
pub(super) fn read(value: &Spanned<DeValue<'_>>, tools: &[Tool], problems: &mut Problems) -> Cache {
    let section = Section::read(value, "cache", &[keys::CACHE], problems);
    let is_enabled = section.flag("enabled").unwrap_or(true);
    check_order(&section, "scope_mb", ("total_mb", 256), problems);
    check_order(&section, "entry_mb", ("scope_mb", 128), problems);
    let warm = match section.span_of("warm") {
        Some(_) => warm(value, tools, problems),
        None => Vec::new(),
    };
    Cache { is_enabled, limits: section.into(), warm }
}

/// Reports a part that is set larger than its whole; a default bends.
fn check_order(
    section: &Section,
    part: &str,
    (whole, whole_default): (&str, u64),
    problems: &mut Problems,
) {
    let Some(of_part) = section.whole(part) else { return };
    let of_whole = section.whole(whole).unwrap_or(whole_default);
    if of_part > of_whole {
        problems.add(
            section.span_of(part).unwrap_or_default(),
            format!("`cache.{part}` is {of_part}, above the {of_whole} of `cache.{whole}`"),
            format!("write at most {of_whole}, or raise `cache.{whole}`"),
        );
    }
}

fn warm(value: &Spanned<DeValue<'_>>, tools: &[Tool], problems: &mut Problems) -> Vec<Warm> {
    let cache = table(value, "cache", problems);
    let calls = cache.and_then(|cache| cache.get("warm")?.get_ref().as_array());
    let mut warm = Vec::new();
    for call in calls.into_iter().flat_map(|calls| calls.iter()) {
        let section = Section::read(call, "cache.warm", &[keys::WARM], problems);
        let Some(tool) = section.text("tool") else {
            if section.span_of("tool").is_none() {
                problems.add(
                    call.span(),
                    "[[cache.warm]] has no `tool`",
                    "name the tool: tool = \"…\"",
                );
            }
            continue;
        };
        if let Some((says, help)) = fault(tool, tools) {
            problems.add(section.span_of("tool").unwrap_or_default(), says, help);
            continue;
        }
        if warm.len() == MAX_WARM {
            let says = format!("there are more than {MAX_WARM} calls in [[cache.warm]]");
            problems.add(call.span(), says, "leave out those whose answers are seldom large");
            break;
        }
        warm.push(Warm {
            tool: tool.to_owned(),
            inputs: section.json("inputs").cloned().unwrap_or_else(Json::empty_object),
            every: section.seconds("every_s"),
        });
    }
    warm
}

/// Says why a tool may not be called unasked, and what to do.
fn fault(tool: &str, tools: &[Tool]) -> Option<(String, String)> {
    let spec = tools.iter().map(|known| &known.spec).find(|spec| spec.name.as_str() == tool);
    let acts = || {
        let says = format!("`{tool}` may change something, so it is not called unasked");
        let help = "name a tool with `read_only = true` or `idempotent = true`".to_owned();
        Some((says, help))
    };
    match spec {
        Some(spec) if spec.hints.read_only || spec.is_idempotent => None,
        Some(_) => acts(),
        None if tool == LOOKS => None,
        None if ACTS.contains(&tool) => acts(),
        None => {
            let says = format!("no tool is named `{tool}`");
            Some((says, "name one of [tools.NAME] in this file".to_owned()))
        }
    }
}
