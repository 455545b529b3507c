//! `[lanes.NAME]`.

use std::ops::Range;

use raincheck_core::ids::LaneId;
use raincheck_core::lane::{self, Config};
use toml::Spanned;
use toml::de::DeValue;

use super::section::{Section, entries};
use crate::config::keys;
use crate::config::problem::Problems;
use crate::suggest;

type Lanes = [(LaneId, Config)];

/// Reads the lanes of a file over the built-in ones.
pub(super) fn read(value: &Spanned<DeValue<'_>>, problems: &mut Problems) -> Vec<(LaneId, Config)> {
    let mut lanes = lane::built_in();
    for (name, value) in entries(value, "lanes", problems) {
        let word = name.get_ref();
        if !is_lane_name(word) {
            problems.add(
                name.span(),
                format!("`{word}` is no name of a lane"),
                "use 1 to 64 letters, digits, `_`, `-` and `.`",
            );
            continue;
        }
        let section = Section::read(value, &format!("lanes.{word}"), &[keys::LANE], problems);
        let id = LaneId::from(word.as_ref());
        match lanes.iter_mut().find(|(known, _)| *known == id) {
            Some((_, config)) => apply(&section, config),
            None => {
                let mut config = Config::new(1, 1000);
                apply(&section, &mut config);
                lanes.push((id, config));
            }
        }
    }
    lanes
}

/// Reports a lane that no section defines.
pub(super) fn check_known(
    section: &Section,
    span: Range<usize>,
    lanes: &Lanes,
    problems: &mut Problems,
) {
    let Some(word) = section.text("lane") else { return };
    if lanes.iter().any(|(id, _)| id.as_str() == word) {
        return;
    }
    let known = || lanes.iter().map(|(id, _)| id.as_str());
    let all = known().collect::<Vec<_>>().join(", ");
    let help = match suggest::nearest(word, known()) {
        Some(near) => format!("did you mean \"{near}\"? lanes: {all}; or add [lanes.{word}]"),
        None => format!("lanes: {all}; or add [lanes.{word}]"),
    };
    problems.add(span, format!("`{}.lane` names no lane: \"{word}\"", section.path()), help);
}

fn is_lane_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=64).contains(&word.len()) && word.chars().all(plain)
}

fn apply(section: &Section, config: &mut Config) {
    let small = |key| section.whole(key).and_then(|number| u32::try_from(number).ok());
    config.concurrency = small("concurrency").unwrap_or(config.concurrency);
    config.queue_limit = small("queue_limit").unwrap_or(config.queue_limit);
    config.max_runtime = section.seconds("max_runtime_s").or(config.max_runtime);
    config.cpu_milli = section.number("cpu").map(milli).or(config.cpu_milli);
    config.memory_mb = section.whole("memory_mb").or(config.memory_mb);
    config.scratch_mb = section.whole("scratch_mb").or(config.scratch_mb);
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the form of the key keeps it between 0.001 and 4096"
)]
fn milli(cpu: f64) -> u32 {
    (cpu * 1000.0).round() as u32
}
